"""The engines against each other on random small protocols with faults put in.

Happens-before, Z3 and the explorer are independent; whatever all three can answer they must answer
alike, obligation by obligation. 60 protocols a run, 500 with ``-m long``; the seed is fixed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, ask, compare
from mc2proof.checker.properties import PROPERTIES
from mc2proof.checker.report import Verdict
from mc2proof.checker.rows import rows
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutants import MUTATIONS, Mutant, mutate
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Hold
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

LIMITS = Limits(max_states=50_000)
ENGINES = ("happens-before", "z3", "explore")


@dataclass(slots=True)
class Tally:
    """What came of a set of protocols."""

    protocols: int = 0
    violating: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)


def small_instance(number: int) -> tuple[Mutant, Instance]:
    """Random protocol ``number``: a base, a few edits, small parameters, a profile and a reading."""
    random = Random(f"agree/{number}")
    name = random.choice(list(BASES))
    values = {"ranks": random.choice((2, 2, 2, 3)), "buffer_size": random.choice((1, 1, 2))}
    values["tile_cnt"] = random.choice((1, 2, 3, 3, 4))
    if name.startswith("ring"):
        values |= {"m": 2, "k": 64, "n": 2, "blocks": values["ranks"]}
    else:
        values["blocks"] = random.choice((1, 1, 1, 2)) if values["ranks"] == 2 else 1
    profile = replace(
        ASCEND950,
        wait_holds=random.choice((Hold.PIPE,) * 5 + (Hold.CORE,)),
        counter_cap=random.choice((1, 2, 15)),
    )
    reading = random.choice((BarrierAll.VEC,) * 6 + (BarrierAll.SOFT, BarrierAll.MIX))
    first = list(MUTATIONS)[number % len(MUTATIONS)]
    mutant = mutate(BASES[name], random, changes=random.choice((0, 1, 1, 1, 2)), first=first)
    return mutant, unroll(mutant.protocol, values, Setup(profile, reading))


def check(number: int, tally: Tally) -> None:
    """Ask every engine about protocol ``number``; what they answer must be the same, and replay."""
    mutant, instance = small_instance(number)
    analysis = analyse(instance)
    answers = [ask(name, analysis, list(PROPERTIES), LIMITS) for name in ENGINES]
    assert answers[1].declined is None, f"protocol {number}: Z3 says {answers[1].declined}"
    compare(analysis, answers)  # raises if they differ
    quick = ask("z3", analysis, list(PROPERTIES), LIMITS, one_each=True)
    compare(analysis, [answers[1], quick])
    tally.protocols += 1
    tally.answered.update(a.engine for a in answers if a.declined is None)
    count_verdicts(analysis, answers, mutant, tally)


def count_verdicts(analysis: Analysis, answers: list[Answers], mutant: Mutant, tally: Tally) -> None:
    """File the verdicts; every one of the engines' findings must come with a replayed trace."""
    table = rows(analysis, answers, ["mutant"], list(PROPERTIES), strict_ids=False, needs_z3=True)
    violated = [r.property for r in table if r.verdict is Verdict.VIOLATED]
    assert not [r for r in table if r.verdict in (Verdict.UNKNOWN, Verdict.UNSUPPORTED)], mutant.changes
    tally.violated.update(violated)
    tally.violating += bool(violated)


def run(numbers: range) -> Tally:
    tally = Tally()
    for number in numbers:
        check(number, tally)
    return tally


def assert_shares(tally: Tally) -> None:
    """The protocols must be worth the run: neither all safe nor all broken in one way."""
    assert tally.answered["z3"] == tally.protocols
    assert tally.answered["happens-before"] >= 0.8 * tally.protocols
    assert tally.answered["explore"] >= 0.5 * tally.protocols
    assert tally.violating >= 0.4 * tally.protocols
    assert tally.violating <= 0.95 * tally.protocols
    rare = {name: tally.violated[name] for name in PROPERTIES if tally.violated[name] < 5}
    assert not rare, f"violated fewer than 5 times: {rare}"


def test_60_random_protocols() -> None:
    assert_shares(run(range(60)))


@pytest.mark.long
def test_500_random_protocols() -> None:
    assert_shares(run(range(1000, 1500)))


@pytest.mark.parametrize("name", list(BASES))
def test_the_bases_are_safe(name: str) -> None:
    """A base with a fault of its own would make every mutant of it violate something."""
    blocks = 2 if name.startswith("ring") else 1
    assert not_proved(BASES[name], blocks) == []


@pytest.mark.parametrize("name", [name for name in BASES if not name.startswith("ring")])
def test_blocks_that_share_a_queue_race(name: str) -> None:
    """With two blocks a rank the fan-out posts to one queue from two cores, and is safe otherwise."""
    assert not_proved(BASES[name], 2) == ["no-write-conflict"]


def not_proved(protocol: Protocol, blocks: int) -> list[str]:
    values = {"ranks": 2, "blocks": blocks, "buffer_size": 2, "tile_cnt": 4}
    analysis = analyse(unroll(protocol, values))
    answers = [ask("z3", analysis, list(PROPERTIES), LIMITS)]
    table = rows(analysis, answers, ["base"], list(PROPERTIES), strict_ids=False, needs_z3=True)
    return [r.property for r in table if r.verdict is not Verdict.PROVED]


def test_every_mutation_applies_somewhere() -> None:
    """A mutation that never applies would silently drop out of the comparison."""
    random = Random(0)
    seen: set[str] = set()
    for _ in range(600):
        protocol = BASES[random.choice(list(BASES))]
        seen.add(mutate(protocol, random).changes[0].split(" For")[0].split(" If")[0])
    applied = {name for name in MUTATIONS if any(change.startswith(name) for change in seen)}
    assert applied == set(MUTATIONS)
