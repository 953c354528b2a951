"""The search: what it finds is the smallest case, by name, with a trace that replays."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis
import pytest
from msgspec.structs import replace as replaced

from mc2proof.fuzz.assertions import assert_matches_golden
from mc2proof.fuzz.mutations import _replaced
from mc2proof.fuzz.numerics import Dtypes
from mc2proof.fuzz.replaying import replay_with_data
from mc2proof.fuzz.reproduction import read_line
from mc2proof.fuzz.search import Found, search
from mc2proof.fuzz.strategies import parameters
from mc2proof.fuzz.timings import Pct
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError, TraceError
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import (
    Address,
    Barrier,
    Origin,
    Pipe,
    Protocol,
    Quiet,
    RegionKind,
    Role,
    WaitFlag,
    statements,
)
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.trace import DataNote, decode, encode


def without(kind: type, role: Role = Role.AIV) -> Protocol:
    """The built-in protocol without its statements of ``kind`` in ``role``."""
    protocol = ring_all_to_all()
    program = protocol.programs[role]
    for statement in statements(program):
        if isinstance(statement, kind):
            program = _replaced(program, statement, ())
    return replace(protocol, programs={**protocol.programs, role: program})


def small(found: Found) -> dict[str, object]:
    assert found.fault is not None
    return {n: found.fault.instance.values[n] for n in ("ranks", "buffer_size", "tile_cnt")}


def test_a_correct_protocol_has_no_fault() -> None:
    told: list[str] = []
    found = search(ring_all_to_all(), {"ranks": 2}, examples=50, progress=told.append)
    assert found.fault is None
    assert found.acceptance is None
    assert found.examples == 50
    assert told == [f"{ran} of 50 examples" for ran in range(1, 51)]


@pytest.mark.parametrize("timing", ["pct", "preempt", "uniform"])
def test_the_depth_that_is_no_power_of_two(timing: str) -> None:
    found = search(
        ring_all_to_all(), {"ranks": 3, "buffer_size": 3, "tile_cnt": 6}, examples=1000, timing=timing
    )
    assert found.fault is not None
    assert found.fault.code == "overwrite"
    assert small(found) == {"ranks": 2, "buffer_size": 3, "tile_cnt": 2}
    assert re.match(r"rank \d, tile 0: segment \d of rank \d", found.fault.headline)
    assert found.acceptance is not None


def test_no_quiet_and_no_wait() -> None:
    values = {"ranks": 2, "buffer_size": 2, "tile_cnt": 6}
    no_quiet = search(without(Quiet), values)
    assert no_quiet.fault is not None
    assert no_quiet.fault.property == "no-read-before-write"
    assert small(no_quiet) == {"ranks": 2, "buffer_size": 1, "tile_cnt": 1}
    no_wait = search(without(WaitFlag), values)
    assert no_wait.fault is not None
    assert no_wait.fault.code == "overwrite"
    hangs = search(ring_all_to_all(), values, Setup(barrier_all=BarrierAll.MIX))
    assert hangs.fault is not None
    assert hangs.fault.code == "deadlock"
    assert any("for ever" in line for line in hangs.fault.conflict)
    assert hangs.acceptance is None


def test_a_trace_replays_and_shows_wrong_bytes() -> None:
    protocol = without(WaitFlag)
    found = search(protocol, {"ranks": 2, "buffer_size": 2, "tile_cnt": 6})
    assert found.fault is not None
    shown = replay(found.fault.trace, [protocol])
    assert shown.reproduced
    assert len(shown.steps) <= 30
    with_data = replay_with_data(found.fault.trace, [protocol])
    assert with_data.readers
    assert with_data.noted
    with pytest.raises(TraceError, match="not given"):
        replay_with_data(found.fault.trace, [ring_all_to_all()])


def test_a_trace_notes_its_data_and_is_replayed_with_it() -> None:
    protocol = without(WaitFlag)
    values = {"ranks": 2, "buffer_size": 2, "tile_cnt": 6}
    found = search(protocol, values, number=3, dtypes=Dtypes("e5m2", "e4m3"), kind="normal")
    assert found.fault is not None
    trace = decode(found.fault.trace)
    assert trace.data == DataNote("e5m2:e4m3", "normal", 3)
    shown = replay_with_data(found.fault.trace, [protocol])
    assert (shown.data, shown.noted) == (trace.data, True)
    unnoted = replay_with_data(encode(replaced(trace, data=None)), [protocol])
    assert (unnoted.data, unnoted.noted) == (DataNote("e4m3:e4m3", "tagged", 0), False)


@pytest.mark.parametrize(
    "note", [("fp4:e4m3", "tagged", 0), ("e4m3:e4m3", "odd", 0), ("e4m3:e4m3", "tagged", -1)]
)
def test_data_that_is_not_known_is_refused(note: tuple[str, str, int]) -> None:
    protocol = without(WaitFlag)
    found = search(protocol, {"ranks": 2, "buffer_size": 2, "tile_cnt": 6})
    assert found.fault is not None
    odd = encode(replaced(decode(found.fault.trace), data=DataNote(*note)))
    with pytest.raises(TraceError, match="the trace was made with"):
        replay_with_data(odd, [protocol])


def test_hypothesis_line_meets_the_failure_at_once() -> None:
    values = {"ranks": 3, "buffer_size": 3, "tile_cnt": 6}
    found = search(ring_all_to_all(), values, timing="uniform", number=2)
    assert found.reproduction is not None
    again = search(
        ring_all_to_all(), values, timing="uniform", number=2, reproduce=read_line(f"@{found.reproduction}")
    )
    assert again.examples == 1
    assert again.fault == found.fault
    assert again.reproduction is None
    right = search(ring_all_to_all(), {"ranks": 3}, reproduce=read_line(found.reproduction))
    assert (right.examples, right.fault) == (1, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reproduce_failure('6.0.0', b'AEI=')", "different version"),
        (f"reproduce_failure('{hypothesis.__version__}', b'a')", "base64"),
        (f"reproduce_failure('{hypothesis.__version__}', b'AA==')", "same test"),
        ("@seed(3)", "must be the reproduce_failure"),
    ],
)
def test_a_line_of_something_else_is_refused(line: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        search(ring_all_to_all(), {"ranks": 2}, reproduce=read_line(line))
    assert "\n" not in str(caught.value)


def test_a_timing_of_ones_own_is_run_alone_and_at_no_other_size() -> None:
    values = {"ranks": 2, "buffer_size": 3, "tile_cnt": 4}
    assert assert_matches_golden(ring_all_to_all(), timing=Pct(seed=1)).examples == 1
    with pytest.raises(AssertionError, match=r"tile_cnt 4.*\n.*in timing 1 \(Pct\(seed=1, changes=0\)"):
        assert_matches_golden(ring_all_to_all(), values=values, timing=Pct(seed=1, changes=0))


def test_equal_seeds_find_the_same() -> None:
    values = {"ranks": 2, "buffer_size": 3, "tile_cnt": 5}
    first, second, other = (search(ring_all_to_all(), values, number=n) for n in (4, 4, 5))
    assert first.fault is not None
    assert second.fault is not None
    assert other.fault is not None
    assert first.examples == second.examples
    assert first.fault.trace == second.fault.trace


def test_assert_matches_golden() -> None:
    assert assert_matches_golden(ring_all_to_all(), examples=20).examples == 20
    with pytest.raises(AssertionError) as caught:
        assert_matches_golden(without(Barrier), seed=3)
    text = str(caught.value)
    for part in ("segment", "violates", "smallest", "ranks 2", "replay      mc2proof replay v2:", "seed 3"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"timing": "random"}, "timing"),
        ({"inputs": "zeros"}, "inputs"),
        ({"examples": 0}, "examples"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 1 << 63}, "seed"),
        ({"timing": 3}, "timing"),
        ({"reproduce": "AAEB"}, "reproduce"),
        ({"values": 3}, "values"),
        ({"values": {"rank": 3}}, "rank"),
        ({"dtype": "fp4"}, "dtype"),
        ({"dtype": None}, "dtype"),
        ({"setup": {"launches": 2}}, "setup"),
        ({"values": {"ranks": 2.0}}, "ranks"),
        ({"inputs": []}, "inputs"),
    ],
)
def test_assert_matches_golden_checks_its_arguments(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        assert_matches_golden(ring_all_to_all(), **arguments)  # type: ignore[arg-type]


def test_a_protocol_is_asked_for() -> None:
    with pytest.raises(ParameterError, match="must be a Protocol"):
        assert_matches_golden("kernel.h")  # type: ignore[arg-type]


def through_a_local() -> Protocol:
    """Tiles overwrite each other in a ring that nobody releases; the loops end at a local."""
    p = ProtocolBuilder("through-a-local")
    p.parameter("ranks", low=2, high=2, default=2)
    p.parameter("blocks", low=1, high=1, default=1)
    count = p.parameter("count", low=1, default=9)
    heap = p.region("heap", RegionKind.SHARED, 64)
    source = p.region("source", RegionKind.INPUT, count * 16)
    peer = 1 - p.rank
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("t", aiv.let("top", count + 0)) as t:
        aiv.put(peer, Address(heap, (t % 4) * 16), Address(source, t * 16), 16)
        aiv.quiet(peer)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, t)
    with aic.loop("t", aic.let("top", count + 0)) as t:
        aic.wait_flag(Pipe.MTE2, t)
        origin = Origin(peer, Address(source, t * 16))
        aic.read(Pipe.MTE2, window(Address(heap, (t % 4) * 16), 16, origin=origin))
    return p.build()


def test_a_bound_held_in_a_local_shrinks() -> None:
    found = search(through_a_local(), {})
    assert found.fault is not None
    assert found.fault.code == "overwrite"
    assert found.fault.instance.values["count"] == 5


def test_inside_a_test_of_hypothesis() -> None:
    runs = 0

    @hypothesis.settings(max_examples=3, database=None, deadline=None)
    @hypothesis.given(values=parameters(of=ring_all_to_all(), max_buffer_size=2))
    def outer(values: dict[str, int]) -> None:
        nonlocal runs
        runs += assert_matches_golden(ring_all_to_all(), values=values, examples=10).examples

    outer()
    assert runs == 30


def test_what_hypothesis_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mc2proof.fuzz.search.AT_ONCE", 2)
    assert search(ring_all_to_all(), {"ranks": 2, "tile_cnt": 2}, examples=5).examples == 5
    protocol, values = without(WaitFlag), {"ranks": 2, "buffer_size": 2, "tile_cnt": 6}
    found = search(protocol, values, number=1)
    assert found.examples > 2
    assert found.reproduction is not None
    again = search(protocol, values, number=1, reproduce=read_line(found.reproduction))
    assert (again.examples, again.fault) == (1, found.fault)


def test_whether_a_byte_was_judged() -> None:
    assert search(ring_all_to_all(), {"ranks": 2}, examples=1).judged
    p = ProtocolBuilder("flags")
    p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1, default=1)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    assert not search(p.build(), {}, examples=1).judged
