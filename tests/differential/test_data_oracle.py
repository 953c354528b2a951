"""The memory rows against data: every timing of small random protocols, run with what memory holds.

The oracle, `mc2proof.fuzz.data`, knows nothing of obligations. An exhaustive search must see exactly
what the rows say; one that was cut off, and single runs, may see nothing that the rows do not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, ask
from mc2proof.checker.properties import rows_for
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.data import Oracle, Seen
from mc2proof.fuzz.mutations import MUTATIONS, Mutant, mutate
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Hold
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import Limits, unroll

MOST_STATES = 8_000

CODES: Mapping[Seen, frozenset[str]] = {
    Seen.EARLY: frozenset({"never-written", "foreign-data", "read-before-write"}),
    Seen.OVERWRITTEN: frozenset({"overwrite"}),
    Seen.RELAUNCHED: frozenset({"relaunch-overwrite"}),
    Seen.TORN: frozenset({"write-conflict"}),
    Seen.TORN_BETWEEN: frozenset({"relaunch-write-conflict"}),
    Seen.OPEN: frozenset({"not-complete-at-end"}),
}
"""The codes of findings that say that something can be seen."""

READERS = {Seen.EARLY, Seen.OVERWRITTEN, Seen.RELAUNCHED}

# --- the rows ---------------------------------------------------------------------------------


def answer_of(analysis: Analysis) -> Answers | None:
    """What an engine that applies says; None where only the explorer does, and finds it too large."""
    names = rows_for(analysis.instance.setup.launches)
    for engine in ("happens-before", "z3", "explore"):
        answers = ask(engine, analysis, names, Limits(max_states=40_000))
        if answers.declined is None and not answers.lossy:
            return answers
    return None


def said(analysis: Analysis, answers: Answers) -> set[Seen]:
    """What the rows say can be seen."""
    codes = {analysis.obligations[i].code for i in answers.violated}
    return {what for what in Seen if codes & CODES[what]}


def delivered_twice(analysis: Analysis) -> bool:
    """Whether some bytes are delivered twice: the rows judge the reader against the last delivery."""
    return any(len(piece.needed) > 1 for _, pieces in analysis.groups for piece in pieces)


# --- protocols --------------------------------------------------------------------------------


def small_instance(number: int) -> tuple[Mutant, Instance]:
    """Random protocol ``number``, most of them small enough to run in every timing."""
    random = Random(f"data/{number}")
    name = random.choice(list(BASES))
    launches = random.choice((1, 1, 1, 2, 2, 3))
    tiles = random.choice(((1, 2, 3), (1, 1, 2), (1,))[launches - 1])
    values = {"ranks": 2, "blocks": 1, "buffer_size": random.choice((1, 1, 2)), "tile_cnt": tiles}
    if name.startswith("ring"):
        values |= {"m": 2, "k": 64, "n": 2, "blocks": 2}
    elif name.startswith("staged") and random.random() < 0.5:
        values |= {"ranks": 1, "blocks": random.choice((1, 2))}
    elif random.random() < 0.15:
        values |= {"blocks": 2, "tile_cnt": min(tiles, 2)}
    setup = Setup(
        replace(
            ASCEND950,
            wait_holds=random.choice((Hold.PIPE, Hold.PIPE, Hold.CORE)),
            flags_merge=random.random() < 0.1,
        ),
        random.choice((BarrierAll.VEC, BarrierAll.VEC, BarrierAll.SOFT)),
        launches=launches,
        flags_cleared=random.random() < 0.3,
        faults=frozenset({Injected.QUIET_TIMEOUT} if random.random() < 0.08 else ()),
    )
    first = list(MUTATIONS)[number % len(MUTATIONS)]
    mutant = mutate(BASES[name], random, changes=random.choice((0, 1, 1, 2)), first=first)
    return mutant, unroll(mutant.protocol, values, setup)


@dataclass(frozen=True, slots=True)
class Compared:
    """A protocol, whether all its timings were run, and what was seen."""

    instance: Instance
    whole: bool
    seen: frozenset[Seen]


def compared(numbers: range) -> Iterator[Compared]:
    """Random protocols; an assertion fails where the rows and what is seen differ."""
    for number in numbers:
        mutant, instance = small_instance(number)
        analysis = analyse(instance)
        answers = answer_of(analysis)
        if answers is None:
            continue
        oracle = Oracle(instance)
        whole = oracle.explore(MOST_STATES)
        for seed in () if whole else range(12):
            oracle.run(Random(seed))
        told = said(analysis, answers)
        where = f"protocol {number}, {mutant.protocol.name} {mutant.changes}"
        judged = set(Seen) - (READERS if delivered_twice(analysis) else set())
        assert not (oracle.seen - told) & judged, f"{where}: {oracle.seen} is seen, the rows say {told}"
        if whole:
            assert not (told - oracle.seen) & judged, f"{where}: {told} is said, seen is {oracle.seen}"
        yield Compared(instance, whole, frozenset(oracle.seen))


def assert_worth_it(found: list[Compared], protocols: int) -> None:
    """Most are run in every timing, and everything is seen often enough, and often not."""
    whole = [one for one in found if one.whole]
    assert len(found) >= 0.9 * protocols
    assert len(whole) >= 0.7 * protocols
    assert sum(one.instance.setup.launches > 1 for one in whole) >= 0.2 * protocols
    assert sum(one.instance.protocol.vectors_per_cube == 2 for one in whole) >= 0.2 * protocols
    seen = Counter(what for one in found for what in one.seen)
    assert not [what for what in Seen if seen[what] < 0.02 * protocols], seen
    assert sum(not one.seen for one in whole) >= 0.2 * protocols


def test_what_is_seen_is_what_the_rows_say() -> None:
    assert_worth_it(list(compared(range(90))), 90)


@pytest.mark.long
def test_what_is_seen_of_800_protocols_is_what_the_rows_say() -> None:
    assert_worth_it(list(compared(range(1000, 1800))), 800)


def test_trying_less_sees_the_same() -> None:
    """What the oracle does at once makes no difference to what is seen."""
    done = 0
    for number in range(25):
        _, instance = small_instance(number)
        plain = Oracle(instance, reduce=False)
        if plain.explore(3_000):
            reduced = Oracle(instance)
            assert reduced.explore(3_000)
            assert reduced.seen == plain.seen, f"protocol {number}"
            done += 1
    assert done >= 3
