"""Running against proving, on random small protocols with faults put in.

A run hangs in some timing if and only if deadlock-freedom is VIOLATED; wrong bytes in some timing mean
that a row about data is; and where a reader can be misled, some timing has wrong bytes. 40 protocols,
400 with ``-m long``; the seed is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Verdict
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.diagnose import diagnose
from mc2proof.fuzz.execute import Outcome, Runner
from mc2proof.fuzz.mutations import mutate
from mc2proof.fuzz.search import runner_of, sized
from mc2proof.fuzz.timings import TIMINGS
from mc2proof.protocol.errors import Mc2proofError
from mc2proof.protocol.evaluate import Value
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

DATA = {
    "no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion", "coverage",
    "layout", "relaunch",
}  # fmt: skip
MISLED = {"no-read-before-write", "no-overwrite-before-read"}
TIMINGS_OF_A_KIND = 120
MOST_EVENTS = 600


def drawn(random: Random) -> Iterator[tuple[Protocol, dict[str, Value], Setup, tuple[str, ...]]]:
    while True:
        protocol, changes = BASES[random.choice(list(BASES))], ()
        if random.random() < 0.8:
            mutant = mutate(protocol, random, changes=random.choice((1, 2)))
            protocol, changes = mutant.protocol, mutant.changes
        values = {
            "ranks": random.choice((2, 3)),
            "blocks": random.choice((1, 1, 2)),
            "buffer_size": random.choice((1, 2)),
            "tile_cnt": random.choice((1, 2, 3)),
        }
        yield protocol, sized(protocol, values), Setup(launches=random.choice((1, 1, 2))), changes


def seen(runner: Runner) -> tuple[Outcome | None, Outcome | None]:
    """A run that hangs, and one with wrong bytes, if there are any."""
    hangs = wrong = None
    for make in TIMINGS.values():
        for seed in range(TIMINGS_OF_A_KIND):
            outcome = runner.run(make(seed, runner.model.length))
            if not outcome.finished:
                hangs = outcome
            if outcome.wrong_reads or outcome.wrong_outputs:
                wrong = outcome
    return hangs, wrong


def compared(count: int, seed: int) -> Counter[str]:
    tally: Counter[str] = Counter()
    source = drawn(Random(seed))
    while tally["protocols"] < count:
        protocol, values, setup, changes = next(source)
        try:
            instance = unroll(protocol, values, setup)
            if instance.event_count() > MOST_EVENTS:
                continue
            runner = runner_of(instance)
        except Mc2proofError:
            continue  # the fault made a program that makes no sense
        compare(protocol, values, setup, changes, runner, tally)
    return tally


def compare(
    protocol: Protocol,
    values: dict[str, Value],
    setup: Setup,
    changes: tuple[str, ...],
    runner: Runner,
    tally: Counter[str],
) -> None:
    report = prove_protocols([protocol], values, setup, engine="happens-before")
    verdicts = {r.property: r.verdict for r in report.results}
    if {Verdict.UNKNOWN, Verdict.UNSUPPORTED} & set(verdicts.values()):
        return  # happens-before alone declines where a wait's set is not fixed
    violated = {name for name, verdict in verdicts.items() if verdict is Verdict.VIOLATED}
    hangs, wrong = seen(runner)
    what = (protocol.name, changes, values, setup.launches, violated)
    assert (hangs is not None) == ("deadlock-freedom" in violated), what
    if wrong is not None:
        assert violated & DATA, what
    else:
        assert not violated & MISLED, what
    for outcome in (hangs, wrong):
        if outcome is not None:
            assert diagnose(runner, outcome).property in violated | {"no-write-conflict"}, what
    tally.update(
        {"protocols": 1, "hang": hangs is not None, "wrong": wrong is not None, "right": not violated}
    )


def test_running_and_proving_agree() -> None:
    tally = compared(40, 1)
    assert min(tally["hang"], tally["wrong"], tally["right"]) >= 4, tally


@pytest.mark.long
def test_running_and_proving_agree_on_many() -> None:
    tally = compared(400, 2)
    assert min(tally["hang"], tally["wrong"], tally["right"]) >= 40, tally
