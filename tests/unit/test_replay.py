"""Replay: traces of the right program run, all others are refused with a reason."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Counterexample, Report
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutations import Mutant
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.errors import TraceError
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, BarrierAll
from mc2proof.protocol.program import Pipe, Protocol, Role
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.trace import Claim, SetupNote, decode, encode

Start = Callable[..., ProtocolBuilder]


def shown(report: Report) -> list[tuple[str, str, Counterexample]]:
    """Every counterexample with a timing: its property, its code, itself."""
    return [
        (r.property, f.code, f.counterexample)
        for r in report.results
        for f in r.findings
        if f.counterexample is not None and f.counterexample.trace is not None
    ]


def test_every_counterexample_replays(mutants: list[tuple[Mutant, Instance]]) -> None:
    """Of mutants of all bases, determinate or not, under all readings: reproduced, and as shown."""
    count = 0
    for mutant, instance in mutants[:24]:
        report = prove_protocols([mutant.protocol], instance.values, instance.setup)
        for name, code, example in shown(report):
            assert example.trace is not None
            result = replay(example.trace, [BASES["ring-all-to-all"], mutant.protocol])
            assert result.reproduced, (mutant.changes, name, code)
            assert (result.property, result.code) == (name, code)
            assert (result.parameters, result.conflict) == (example.parameters, example.conflict)
            assert [(s.core, s.operation, s.line) for s in result.steps] == [
                (s.core, s.operation, s.line) for s in example.steps
            ]
            for key, value in example.parameters.items():  # it is shrunk, never grown
                whole = instance.values[key]
                assert isinstance(value, int)
                assert isinstance(whole, int)
                assert value <= whole
            count += 1
    assert count >= 15


def stuck_protocol(start: Start, name: str = "stuck", flag: int = 0) -> Protocol:
    p = start(name)
    p.role(Role.AIV).set_flag(Pipe.MTE3, flag)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, flag)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, flag)
    return p.build()


@pytest.fixture
def protocol(start: Start) -> Protocol:
    return stuck_protocol(start)


@pytest.fixture
def text(protocol: Protocol) -> str:
    report = prove_protocols([protocol], {"ranks": 1})
    (_, _, example), *_ = shown(report)
    assert example.trace is not None
    return example.trace


def changed(text: str, **fields: object) -> str:
    return encode(msgspec.structs.replace(decode(text), **fields))


def test_a_trace_reproduces_its_claim(protocol: Protocol, text: str) -> None:
    assert replay(text, [protocol]).reproduced


def test_a_trace_of_another_program_is_refused(start: Start, protocol: Protocol, text: str) -> None:
    other = stuck_protocol(start, "other", flag=1)
    with pytest.raises(
        TraceError, match=rf"of program {protocol.digest()}, not of other \({other.digest()}\)"
    ):
        replay(text, [other])


def test_the_right_one_of_several_programs_is_taken(start: Start, protocol: Protocol, text: str) -> None:
    other = stuck_protocol(start, "other", flag=1)
    assert replay(text, [other, protocol]).protocol is protocol


@pytest.mark.parametrize("number", [0, 1])
def test_an_impossible_action_is_refused_with_its_number(protocol: Protocol, text: str, number: int) -> None:
    words = decode(text).actions.split()
    words.insert(number, "l0.0")
    with pytest.raises(TraceError, match=rf"action {number + 1} \(l0\.0\) is not possible"):
        replay(changed(text, actions=" ".join(words)), [protocol])


def test_actions_in_another_order_are_refused(protocol: Protocol, text: str) -> None:
    actions = " ".join(reversed(decode(text).actions.split()))
    with pytest.raises(TraceError, match="not possible"):
        replay(changed(text, actions=actions), [protocol])


def test_actions_of_cores_that_do_not_exist_are_refused(protocol: Protocol, text: str) -> None:
    with pytest.raises(TraceError, match="not possible"):
        replay(changed(text, actions="s99.0"), [protocol])


def test_a_timing_that_stops_too_early_does_not_reproduce(protocol: Protocol, text: str) -> None:
    actions = " ".join(decode(text).actions.split()[:-1])
    assert not replay(changed(text, actions=actions), [protocol]).reproduced


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Claim(happened=[(0, 0, "end")]), True),
        (Claim(happened=[(1, 1, "end")]), False),
        (Claim(pending=[(1, 1, "begin")]), True),
        (Claim(happened=[(0, 0, "end")], pending=[(1, 0, "end")]), False),
        (Claim(counter=(1, 0, "", 0, 0)), False),
        (Claim(stuck=True), True),
    ],
)
def test_the_claim_is_checked(protocol: Protocol, text: str, claim: Claim, holds: bool) -> None:
    assert replay(changed(text, claim=claim), [protocol]).reproduced is holds


def test_an_unknown_profile_is_refused_and_a_given_one_is_used(protocol: Protocol, text: str) -> None:
    mine = replace(ASCEND950, name="mine")
    with pytest.raises(TraceError, match="profile mine"):
        replay(changed(text, setup=SetupNote("mine")), [protocol])
    assert replay(changed(text, setup=SetupNote("mine")), [protocol], profiles=[mine]).reproduced


def test_an_unknown_reading_is_refused(protocol: Protocol, text: str) -> None:
    with pytest.raises(TraceError, match="'hard'"):
        replay(changed(text, setup=SetupNote("ascend950", "hard")), [protocol])


def test_a_meeting_is_shown_as_one_step(start: Start) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIV).wait_flag(Pipe.S, 0)
    report = prove_protocols([p.build()], {"ranks": 3, "blocks": 1}, Setup(barrier_all=BarrierAll.VEC))
    (_, _, example), *_ = shown(report)
    assert [(s.core, s.operation) for s in example.steps] == [("all 1 cores", "meet in aclshmem_barrier_all")]
