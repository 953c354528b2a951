"""Traces: what is written is read back, and damage is a TraceError, never anything else."""

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc2proof.protocol.errors import TraceError
from mc2proof.protocol.machine import Action, ActionKind, Moment, Phase
from mc2proof.protocol.trace import (
    PREFIX,
    Claim,
    DataNote,
    SetupNote,
    Trace,
    decode,
    encode,
    from_words,
    read_actions,
    to_words,
    write_actions,
)

numbers = st.integers(0, 10_000)
actions = st.builds(Action, st.sampled_from(ActionKind), numbers, numbers)
moments = st.builds(Moment, numbers, numbers, st.sampled_from(Phase))
claims = st.builds(
    Claim,
    st.lists(moments, max_size=3).map(to_words),
    st.lists(moments, max_size=3).map(to_words),
    st.booleans(),
    st.none() | st.tuples(numbers, numbers, st.sampled_from(("", "MTE2_V")), numbers, numbers),
)
traces = st.builds(
    Trace,
    digest=st.text("0123456789abcdef", min_size=16, max_size=16),
    parameters=st.dictionaries(st.text(max_size=8), numbers | st.lists(numbers, max_size=4), max_size=4),
    setup=st.builds(
        SetupNote,
        st.text(max_size=10),
        st.none() | st.text(max_size=5),
        st.integers(1, 4),
        st.booleans(),
        st.lists(st.text(max_size=5), max_size=2),
        st.none() | numbers,
        st.booleans(),
        numbers,
    ),
    property=st.text(max_size=20),
    code=st.text(max_size=20),
    conflict=st.lists(st.text(max_size=40), max_size=3),
    claim=claims,
    actions=st.lists(actions, max_size=30).map(write_actions),
    data=st.none() | st.builds(DataNote, st.text(max_size=9), st.text(max_size=9), st.integers(0, 2**63 - 1)),
)
EXAMPLE = Trace("0" * 16, {"ranks": 2, "cnt": [1, 2]}, SetupNote("ascend950", "vec"),
                "deadlock-freedom", "deadlock", ["rank 0 waits"],
                Claim(stuck=True), "s0.0 b0.0 l1.3")  # fmt: skip


@given(trace=traces)
def test_a_trace_reads_back(trace: Trace) -> None:
    text = encode(trace)
    assert decode(text) == trace
    assert decode(f"\n  {text} \n") == trace


@given(trace=traces)
def test_a_trace_is_one_word_that_survives_a_shell(trace: Trace) -> None:
    text = encode(trace)
    assert text.startswith(PREFIX)
    assert set(text.removeprefix(PREFIX)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="
    )


def test_a_trace_without_data_is_as_it_was_before_there_was_such_a_field() -> None:
    packed = zlib.decompress(base64.urlsafe_b64decode(encode(EXAMPLE).removeprefix(PREFIX)))
    assert list(json.loads(packed)) == [
        "digest", "parameters", "setup", "property", "code", "conflict", "claim", "actions",
    ]  # fmt: skip


def test_a_later_versions_fields_are_skipped() -> None:
    packed = zlib.decompress(base64.urlsafe_b64decode(encode(EXAMPLE).removeprefix(PREFIX)))
    later = json.dumps({**json.loads(packed), "later": [1]}).encode()
    assert decode(PREFIX + base64.urlsafe_b64encode(zlib.compress(later)).decode()) == EXAMPLE


@given(some=st.lists(actions, max_size=30))
def test_actions_read_back(some: list[Action]) -> None:
    assert read_actions(write_actions(some)) == some


@given(some=st.lists(moments, max_size=5))
def test_points_read_back(some: list[Moment]) -> None:
    assert from_words(to_words(some)) == some


@given(cut=st.integers(0, 400))
def test_a_trace_that_is_cut_off_is_refused(cut: int) -> None:
    text = encode(EXAMPLE)
    if cut < len(text):
        with pytest.raises(TraceError):
            decode(text[:cut])


@given(at=st.integers(0, 10_000), letter=st.sampled_from("ABCdef019-_"))
def test_a_changed_letter_is_noticed(at: int, letter: str) -> None:
    text = encode(EXAMPLE)
    at = len(PREFIX) + at % (len(text) - len(PREFIX) - 6)  # the last letters hold padding bits
    changed = text[:at] + letter + text[at + 1 :]
    if changed != text:
        with pytest.raises(TraceError):
            decode(changed)


@given(text=st.text(max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    for candidate in (text, PREFIX + text):
        with pytest.raises(TraceError):
            decode(candidate)


@pytest.mark.parametrize("text", ["v1:AAAA", "", "mc2proof", "V2:"])
def test_the_version_is_part_of_the_word(text: str) -> None:
    with pytest.raises(TraceError, match="starts with 'v2:'"):
        decode(text)


@pytest.mark.parametrize("word", ["x0.0", "s", "s.0", "s0", "s0.", "s-1.0", "s0.0.1", "sa.b", "p1,2"])
def test_a_word_that_is_no_action_is_refused(word: str) -> None:
    with pytest.raises(TraceError, match="is no action"):
        read_actions(f"s0.0 {word} l1.2")


def test_a_damaged_claim_is_refused() -> None:
    with pytest.raises(TraceError, match="claim"):
        from_words([(0, 0, "middle")])


def test_equal_traces_are_equal_texts() -> None:
    assert encode(EXAMPLE) == encode(decode(encode(EXAMPLE)))
