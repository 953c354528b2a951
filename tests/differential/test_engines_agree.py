"""The engines against each other on random small protocols with faults put in.

Happens-before, Z3 and the explorer are independent; whatever all three can answer they must answer
alike, obligation by obligation. 60 protocols a run, 500 with ``-m long``; the seed is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, ask, compare
from mc2proof.checker.engine import Declined, Engine
from mc2proof.checker.explorer import Explorer
from mc2proof.checker.properties import PROPERTIES, rows_for
from mc2proof.checker.report import Verdict
from mc2proof.checker.rows import rows
from mc2proof.checker.smt_times import Times
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutations import MUTATIONS, Mutant, mutate
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Hold, Profile
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import Limits, unroll

LIMITS = Limits(max_states=50_000)
ENGINES = ("happens-before", "z3", "explore")


@dataclass(slots=True)
class Tally:
    """What came of a set of protocols, and what they were."""

    protocols: int = 0
    violating: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)


# --- what is drawn ----------------------------------------------------------------------------


def small_values(name: str, random: Random, launches: int) -> dict[str, int]:
    """Parameters that leave base ``name`` small enough to explore, mostly."""
    values = {"buffer_size": random.choice((1, 1, 2)), "blocks": 1}
    values["tile_cnt"] = random.choice((1, 2, 3, 3, 4) if launches == 1 else (1, 1, 2))
    if name.startswith("staged"):
        values["ranks"] = random.choice((1, 1, 2))
        values["blocks"] = random.choice((1, 2)) if values["ranks"] == 1 else 1
        values["tile_cnt"] = min(values["tile_cnt"], 2)
    elif name.startswith("every"):
        values["ranks"] = random.choice((2, 2, 2, 3)) if launches == 1 else 2
        values["tile_cnt"] = min(values["tile_cnt"], 3)
    elif name.startswith("ring"):
        values["ranks"] = random.choice((2, 2, 2, 3)) if launches == 1 else 2
        values |= {"m": 2, "k": 64, "n": 2, "blocks": values["ranks"]}
    else:
        values["ranks"] = random.choice((2, 2, 2, 3)) if launches == 1 else 2
        values["blocks"] = random.choice((1, 1, 1, 2)) if values["ranks"] == 2 else 1
    return values


def small_profile(random: Random) -> Profile:
    """A machine: small caps are passed by short programs."""
    return replace(
        ASCEND950,
        wait_holds=random.choice((Hold.PIPE,) * 5 + (Hold.CORE,)),
        counter_cap=random.choice((1, 2, 15)),
        flags_merge=random.random() < 0.1,
    )


def small_setup(random: Random) -> Setup:
    """A machine, a reading of barrier_all, launches, and now and then a quiet that gives up."""
    return Setup(
        small_profile(random),
        random.choice((BarrierAll.VEC,) * 6 + (BarrierAll.SOFT, BarrierAll.MIX)),
        launches=random.choice((1, 1, 2)),
        flags_cleared=random.random() < 0.3,
        faults=frozenset({Injected.QUIET_TIMEOUT} if random.random() < 0.12 else ()),
    )


def small_instance(number: int) -> tuple[Mutant, Instance]:
    """Random protocol ``number``: a base, a few edits, small parameters, a setup."""
    random = Random(f"agree/{number}")
    name = random.choice(list(BASES))
    setup = small_setup(random)
    values = small_values(name, random, setup.launches)
    first = list(MUTATIONS)[number % len(MUTATIONS)]
    mutant = mutate(BASES[name], random, changes=random.choice((0, 1, 1, 1, 2)), first=first)
    return mutant, unroll(mutant.protocol, values, setup)


# --- what is compared -------------------------------------------------------------------------


def check(number: int, tally: Tally) -> None:
    """Ask every engine about protocol ``number``; what they answer must be the same, and replay."""
    mutant, instance = small_instance(number)
    names = rows_for(instance.setup.launches)
    analysis = analyse(instance)
    answers = [ask(name, analysis, names, LIMITS) for name in ENGINES]
    assert answers[1].declined is None, f"protocol {number}: Z3 says {answers[1].declined}"
    compare(analysis, answers)  # raises if they differ
    quick = ask("z3", analysis, names, LIMITS, one_each=True)
    compare(analysis, [answers[1], quick])
    if number % 4 == 0:
        tally.answered.update(check_other_forms(analysis, answers))
    tally.protocols += 1
    tally.answered.update(a.engine for a in answers if a.declined is None)
    count_drawn(instance, tally)
    count_verdicts(analysis, answers, mutant, tally)


def check_other_forms(analysis: Analysis, answers: list[Answers]) -> list[str]:
    """Z3's general form also where the special one applies, and the explorer without its reduction."""
    makers: dict[str, Callable[[], Engine]] = {
        "times": lambda: times(analysis),
        "everything": lambda: Explorer(analysis.sync, analysis.obligations, max_states=20_000, reduce=False),
    }
    done = []
    for name, make in makers.items():
        try:
            engine = make()
        except Declined:
            continue
        found = engine.violated(analysis.obligations)
        lossy = answers[1].lossy and name == "times"
        other = Answers(name, None, engine.stuck(), engine.completes(), found, lossy=lossy)
        for answer in answers:
            compare(analysis, [answer, other])
        done.append(name)
    return done


def times(analysis: Analysis) -> Times:
    """Z3's general form; it takes minutes where it is asked much."""
    if analysis.sync.size > 120:
        raise Declined("too large")
    return Times(analysis.sync)


def count_drawn(instance: Instance, tally: Tally) -> None:
    """File what the protocol exercises."""
    setup = instance.setup
    modes = {event.mode for core in instance.cores for event in core.events} - {-1}
    tally.drawn.update(f"mode {mode}" for mode in modes)
    tally.drawn[f"{setup.launches} launches"] += 1
    tally.drawn["two AIVs an AIC"] += instance.protocol.vectors_per_cube == 2
    tally.drawn["flags cleared"] += setup.launches > 1 and setup.flags_cleared
    tally.drawn["flags merge"] += setup.profile.flags_merge
    tally.drawn["quiet timeout"] += bool(setup.faults)


def count_verdicts(analysis: Analysis, answers: list[Answers], mutant: Mutant, tally: Tally) -> None:
    """File the verdicts; every one of the engines' findings must come with a replayed trace."""
    names = rows_for(analysis.instance.setup.launches)
    table = rows(analysis, answers, ["mutant"], names, strict_ids=False, needs_z3=True)
    open_rows = [r.property for r in table if r.verdict in (Verdict.UNKNOWN, Verdict.UNSUPPORTED)]
    assert not open_rows or any(a.lossy for a in answers), (open_rows, mutant.changes)
    violated = [r.property for r in table if r.verdict is Verdict.VIOLATED]
    tally.violated.update(violated)
    tally.violating += bool(violated)


def run(numbers: range) -> Tally:
    tally = Tally()
    for number in numbers:
        check(number, tally)
    return tally


DRAWN = ("mode 0", "mode 1", "mode 4", "two AIVs an AIC", "flags cleared", "flags merge", "quiet timeout")


def assert_shares(tally: Tally) -> None:
    """The protocols must be worth the run: neither all safe nor all broken in one way."""
    assert tally.answered["z3"] == tally.protocols
    assert tally.answered["happens-before"] >= 0.8 * tally.protocols
    assert tally.answered["explore"] >= 0.5 * tally.protocols
    assert tally.violating >= 0.4 * tally.protocols
    assert tally.violating <= 0.95 * tally.protocols
    rare = {name: tally.violated[name] for name in PROPERTIES if tally.violated[name] < 5}
    assert not rare, f"violated fewer than 5 times: {rare}"
    assert tally.drawn["2 launches"] >= 0.2 * tally.protocols
    assert tally.answered["times"] >= 0.1 * tally.protocols
    assert tally.answered["everything"] >= 0.05 * tally.protocols
    assert not [name for name in DRAWN if tally.drawn[name] < 3], tally.drawn


def test_60_random_protocols() -> None:
    assert_shares(run(range(60)))


@pytest.mark.long
def test_500_random_protocols() -> None:
    assert_shares(run(range(1000, 1500)))
