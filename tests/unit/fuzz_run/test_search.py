"""The search: what it finds is the smallest case, by name, with a trace that replays."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mc2proof.fuzz.assertions import assert_matches_golden
from mc2proof.fuzz.mutants import _replaced
from mc2proof.fuzz.replaying import replay_with_data
from mc2proof.fuzz.search import Found, search, sized
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError, TraceError
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import Barrier, Protocol, Quiet, Role, WaitFlag, statements
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup


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
    told: list[int] = []
    found = search(ring_all_to_all(), {"ranks": 2}, examples=50, progress=told.append)
    assert found.fault is None
    assert found.acceptance is None
    assert found.examples == 50
    assert told == list(range(1, 51))


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
    with pytest.raises(TraceError, match="not given"):
        replay_with_data(found.fault.trace, [ring_all_to_all()])


def test_equal_seeds_find_the_same() -> None:
    values = {"ranks": 2, "buffer_size": 3, "tile_cnt": 5}
    first, second, other = (search(ring_all_to_all(), values, number=n) for n in (4, 4, 5))
    assert first.fault is not None
    assert second.fault is not None
    assert other.fault is not None
    assert first.examples == second.examples
    assert first.fault.trace == second.fault.trace


def test_sizes_are_small_unless_given() -> None:
    assert sized(ring_all_to_all(), {"ranks": 3}) == {"ranks": 3, "m": 2, "k": 64, "n": 3}
    assert sized(ring_all_to_all(), {"m": 8, "n": 1}) == {"m": 8, "k": 64, "n": 1}
    assert sized(ring_all_to_all(), {"ranks": 4, "blocks": 2})["n"] == 2
    assert sized(ring_all_to_all(), {})["n"] == 4  # by the default of ranks


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
        ({"values": 3}, "values"),
        ({"values": {"rank": 3}}, "rank"),
        ({"dtype": "fp4"}, "dtype"),
    ],
)
def test_assert_matches_golden_checks_its_arguments(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        assert_matches_golden(ring_all_to_all(), **arguments)  # type: ignore[arg-type]


def test_a_protocol_is_asked_for() -> None:
    with pytest.raises(ParameterError, match="must be a Protocol"):
        assert_matches_golden("kernel.h")  # type: ignore[arg-type]
