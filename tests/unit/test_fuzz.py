"""The base protocols are safe where they are meant to be, every mutation applies, data tells faults."""

from __future__ import annotations

from random import Random

import pytest

from mc2proof.checker.analysis import analyse
from mc2proof.checker.ask import ask, compare
from mc2proof.checker.properties import rows_for
from mc2proof.checker.report import Verdict
from mc2proof.checker.rows import rows
from mc2proof.fuzz.bases import BASES, ONE_LAUNCH
from mc2proof.fuzz.data import Oracle, Seen
from mc2proof.fuzz.mutations import MUTATIONS, mutate
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import Protocol, SetFlag, WaitFlag, statements
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

FAN_OUTS = [name for name in BASES if name.startswith("fan-out")]


def not_proved(protocol: Protocol, *, ranks: int = 2, blocks: int = 1, launches: int = 1) -> list[str]:
    """The rows that are not PROVED, at depth 2 and 4 tiles (less where launches make it larger)."""
    tiles = 4 if launches == 1 else 3
    values = {"ranks": ranks, "blocks": blocks, "buffer_size": 2, "tile_cnt": tiles}
    analysis = analyse(unroll(protocol, values, Setup(launches=launches)))
    names = rows_for(launches)
    answers = [ask(engine, analysis, names, Limits()) for engine in ("z3", "happens-before")]
    compare(analysis, answers)
    table = rows(analysis, answers, ["base"], names, strict_ids=False, needs_z3=True)
    return [r.property for r in table if r.verdict is not Verdict.PROVED]


def least_blocks(name: str) -> int:
    """The ring needs a block for every peer."""
    return 2 if name.startswith("ring") else 1


@pytest.mark.parametrize("name", list(BASES))
def test_the_bases_are_safe(name: str) -> None:
    """A base with a fault of its own would make every mutant of it violate something."""
    assert not_proved(BASES[name], blocks=least_blocks(name)) == []


@pytest.mark.parametrize("name", [name for name in BASES if name not in FAN_OUTS])
def test_the_bases_are_safe_with_more_ranks_and_blocks(name: str) -> None:
    assert not_proved(BASES[name], ranks=3, blocks=3 if name.startswith("ring") else 2) == []


@pytest.mark.parametrize("name", FAN_OUTS)
def test_blocks_that_share_a_queue_race(name: str) -> None:
    """With two blocks a rank the fan-outs post to one queue from two cores, and are safe otherwise."""
    assert not_proved(BASES[name], blocks=2) == ["no-write-conflict"]


@pytest.mark.parametrize("launches", [2, 3])
@pytest.mark.parametrize("name", list(BASES))
def test_bases_keep_their_launches_apart_or_not(name: str, launches: int) -> None:
    """Where nothing does, a fast rank's next launch overwrites what a slow rank still reads."""
    expected = ["relaunch"] if name in ONE_LAUNCH else []
    assert not_proved(BASES[name], blocks=least_blocks(name), launches=launches) == expected


def test_the_bases_use_every_mode() -> None:
    used = {
        s.mode
        for protocol in BASES.values()
        for program in protocol.programs.values()
        for s in statements(program)
        if isinstance(s, SetFlag | WaitFlag)
    }
    assert used == {0, 1, 2, 4}


def test_every_mutation_applies_somewhere() -> None:
    """A mutation that never applies would silently drop out of the comparison."""
    random = Random(0)
    seen: set[str] = set()
    for _ in range(900):
        seen.add(mutate(random.choice(list(BASES.values())), random).changes[0])
    applied = {name for name in MUTATIONS if any(change.startswith(f"{name} ") for change in seen)}
    assert applied == set(MUTATIONS)


@pytest.mark.parametrize("first", list(MUTATIONS))
def test_a_mutant_is_changed_as_it_says_and_the_same_each_time(first: str) -> None:
    for name, protocol in BASES.items():
        mutant = mutate(protocol, Random(name), first=first)
        assert mutant.changes[0].startswith(f"{first} ")
        assert mutant.protocol.programs != protocol.programs
        assert mutate(protocol, Random(name), first=first) == mutant


# --- data -------------------------------------------------------------------------------------


def seen(
    name: str, *, first: str | None = None, blocks: int = 1, tiles: int = 1, **setup: object
) -> set[Seen]:
    """What is seen of base ``name`` at 2 ranks and depth 1, changed by mutation ``first`` if given."""
    protocol = mutate(BASES[name], Random(0), first=first).protocol if first else BASES[name]
    values = {"ranks": 2, "blocks": blocks, "buffer_size": 1, "tile_cnt": tiles}
    oracle = Oracle(unroll(protocol, values, Setup(**setup)))  # type: ignore[arg-type]
    oracle.explore(20_000)
    return oracle.seen


def test_nothing_is_seen_of_a_safe_protocol() -> None:
    assert seen("fan-out, flag per tile", tiles=2) == set()
    assert seen("fan-out, closed", launches=2) == set()


def test_a_launch_that_nothing_closes_is_overwritten_by_the_next() -> None:
    assert seen("fan-out, flag per tile", launches=2) == {Seen.RELAUNCHED}


def test_a_barrier_that_drains_nothing_lets_the_next_tile_in() -> None:
    assert Seen.OVERWRITTEN in seen("fan-out, flag per tile", tiles=2, barrier_all=BarrierAll.SOFT)


def test_a_request_without_a_quiet_is_late_and_left_open() -> None:
    assert seen("fan-out, flag per tile", first="no quiet") == {Seen.EARLY, Seen.OPEN}
    late = seen("fan-out, flag per tile", first="no quiet", tiles=2)
    assert late >= {Seen.EARLY, Seen.OPEN, Seen.TORN}
    between = seen("fan-out, flag per tile", first="no quiet", launches=2)
    assert between >= {Seen.EARLY, Seen.OPEN, Seen.TORN_BETWEEN}


def test_single_runs_see_what_all_of_them_do() -> None:
    values = {"ranks": 2, "blocks": 1, "buffer_size": 1, "tile_cnt": 1}
    oracle = Oracle(unroll(BASES["fan-out, flag per tile"], values, Setup(launches=2)))
    for seed in range(100):
        oracle.run(Random(seed))
    assert oracle.seen == {Seen.RELAUNCHED}
