"""Proofs for all values against happens-before at single values, on random protocols.

What is PROVED for all values holds at 50 random ones, what has a condition holds where that is satisfied
and, where it is called exact, fails just outside it; what is VIOLATED fails at the values shown. 10
protocols, 300 with ``-m long``; the seed is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest

from mc2proof.checker.parametric import question
from mc2proof.checker.parametric.concrete import outside
from mc2proof.checker.parametric.decide import Decision, decide
from mc2proof.checker.parametric.domain import Domain, domain_of, satisfied
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Report, Severity, Verdict
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutations import mutate
from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.errors import Mc2proofError, UnsupportedError
from mc2proof.protocol.expr import Expr, both
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

FREE = ("ranks", "blocks", "buffer_size", "tile_cnt")
VALUES: Mapping[str, tuple[int, ...]] = {
    "ranks": (1, 2, 3),
    "blocks": (1, 2, 3, 4),
    "buffer_size": (1, 2, 3, 4, 5),
    "tile_cnt": (0, 1, 2, 3, 4, 5, 7, 9, 12, 17),
    "launches": (1, 2, 3),
}
SAMPLES = 50
MOST_EVENTS = 4_000
RLIMIT = 5_000_000
LIMITS = Limits(rlimit=RLIMIT)
PART = 8


@pytest.fixture(autouse=True)
def _gathering_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer happenings: less is proved, in a fraction of the time, and never more."""
    monkeypatch.setattr(question, "MOST", 30)


@dataclass(frozen=True)
class Drawn:
    """A protocol, the domain it is asked about, and what was done to it."""

    protocol: Protocol
    assume: tuple[str, ...]
    free: tuple[str, ...]
    what: tuple[object, ...]


def drawn(random: Random) -> Drawn:
    what: tuple[object, ...] = ()
    assume = random.choice((("tile_cnt >= 1", "ranks >= 2"), ("tile_cnt <= 9",), ()))
    if random.random() < 0.35:
        protocol = BASES[random.choice(list(BASES))]
        assume += random.choice(((), ("blocks == 1",), ("blocks >= ranks",)))
        if any(name in protocol.name for name in ("ring", "a2a")):
            assume += ("buffer_size power of 2",)
    else:
        protocol, assume_more, what = exchange(random)
        assume += assume_more
    if random.random() < 0.5:
        mutant = mutate(protocol, random)
        protocol, what = mutant.protocol, (*what, *mutant.changes)
    free = tuple(name for name in FREE if protocol.parameter(name) is not None)
    if random.random() < 0.25:
        free += ("launches",)
    return Drawn(protocol, assume, free, (protocol.name, assume, free, *what))


def exchange(random: Random) -> tuple[Protocol, tuple[str, ...], tuple[object, ...]]:
    """Every rank sends a tile to each other one; slots, flags and order are chosen at random."""
    ring = random.choice(("%", "%", "mask", "% + 1"))
    flags = random.choice(("tile", "slot", "constant"))
    by_block = random.random() < 0.5
    credit = random.choice(("late", "late", "prologue", "barrier", "none"))
    lag = random.choice((0, 0, 0, 0, 1, -1))
    first = random.choice((True, True, True, False))
    last = random.choice((True, True, True, False))
    p = ProtocolBuilder("exchange")
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    depth = p.parameter("buffer_size", low=1)
    tiles = p.parameter("tile_cnt")
    slots = depth + 1 if ring == "% + 1" else depth
    heap = p.region("heap", RegionKind.SHARED, slots * ranks * PART)
    a = p.region("a", RegionKind.INPUT, tiles * ranks * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)

    def slot(tile: Expr) -> Expr:
        return tile & (depth - 1) if ring == "mask" else tile % slots

    def flag(tile: Expr) -> Expr:
        return {"tile": tile, "slot": slot(tile), "constant": tile * 0 + 3}[flags]

    def place(tile: Expr, source: Expr) -> Expr:
        return (slot(tile) * ranks + source) * PART

    def send(peer: Expr) -> None:
        source = Address(a, (tile * ranks + peer) * PART)
        aiv.put(peer, Address(heap, place(tile, p.rank)), source, PART)
        aiv.quiet(peer)

    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    if credit == "prologue":
        with aic.loop("early", depth) as early, aic.when(early < tiles):
            aic.set_flag(Pipe.FIX, flag(early) if flags != "tile" else early)
    with aiv.loop("tile", tiles) as tile:
        if credit == "late":
            with aiv.when(tile >= depth + lag):
                aiv.wait_flag(Pipe.MTE3, flag(tile - depth))
        elif credit == "prologue":
            aiv.wait_flag(Pipe.MTE3, flag(tile))
        if first:
            aiv.barrier()
        if by_block:
            with aiv.when(both(p.block < ranks, p.block.ne(p.rank))):
                send(p.block)
        else:
            with (
                aiv.when(p.block.eq(0)),
                aiv.loop("peer", ranks) as peer,
                aiv.when(peer.ne(p.rank)),
            ):
                send(peer)
        if last:
            aiv.barrier()
        aiv.set_flag(Pipe.MTE3, flag(tile))
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, flag(tile))
        s = segment_index("s")
        origin = Origin(s, Address(a, (tile * ranks + p.rank) * PART))
        aic.compute(
            "matmul", "s", ranks,
            reads=[
                window(Address(heap, place(tile, s)), PART, origin=origin, guard=s.ne(p.rank)),
                window(origin.address, PART, origin=origin, guard=s.eq(p.rank)),
            ],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        if credit in ("late", "prologue"):
            with aic.when(tile + depth < tiles):
                aic.set_flag(Pipe.FIX, flag(tile) if credit == "late" else flag(tile + depth))
    more = random.choice((("blocks >= ranks",), ("blocks >= ranks",), ()))
    if ring == "mask" and random.random() < 0.8:
        more += ("buffer_size power of 2",)
    return p.build(), more, (ring, flags, by_block, credit, lag, first, last)


def errors_at(protocol: Protocol, case: Mapping[str, int]) -> set[str] | None:
    """The properties that fail at ``case``; None where it makes no sense, or not all could be told."""
    values = {name: value for name, value in case.items() if name != "launches"}
    setup = Setup(launches=case.get("launches", 1))
    try:
        judgement = judge(unroll(protocol, values, setup, limits=Limits(max_events=MOST_EVENTS)))
    except Mc2proofError:
        return None
    return {found.property for found in judgement.found if found.severity is Severity.ERROR}


def samples(domain: Domain, random: Random) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for _ in range(40 * SAMPLES):
        case = {name: random.choice(VALUES[name]) for name in domain.free}
        if case not in found and domain.contains(case):
            found.append(case)
        if len(found) == SAMPLES:
            break
    return found


def compared(count: int, seed: int, shown: int) -> Counter[str]:
    random, tally = Random(seed), Counter[str]()
    while tally["protocols"] < count:
        one = drawn(random)
        names = rows_for(2 if "launches" in one.free else 1)
        try:
            domain = domain_of(one.protocol, one.free, {}, one.assume)
            decisions = decide(one.protocol, Setup(), domain, names, rlimit=RLIMIT).decisions
        except UnsupportedError:
            tally["unsupported"] += 1
            continue
        except Mc2proofError:
            continue
        tally["protocols"] += 1
        for case in samples(domain, random):
            compare_at(one, decisions, case, tally)
        compare_outside(one, domain, decisions, tally)
        tally.update("proved" if d.proved else "open" for d in decisions.values())
        if tally["protocols"] <= shown:
            confirm(one, tally)
    return tally


def compare_at(
    one: Drawn, decisions: Mapping[str, Decision], case: dict[str, int], tally: Counter[str]
) -> None:
    errors = errors_at(one.protocol, case)
    if errors is None:
        return
    tally["cases"] += 1
    for name, decision in decisions.items():
        when = decision.condition
        if decision.proved or (when is not None and satisfied(when, case)):
            assert name not in errors, (name, case, decision.holds_when, one.what)
            tally["conditioned"] += when is not None


def compare_outside(
    one: Drawn, domain: Domain, decisions: Mapping[str, Decision], tally: Counter[str]
) -> None:
    """An exact condition is needed: what lies just outside it fails."""
    for name, decision in decisions.items():
        if decision.condition is None or not decision.exact:
            continue
        for case, _ in zip(outside(domain, decision.condition), range(4), strict=False):
            errors = errors_at(one.protocol, case)
            if errors is not None:
                assert name in errors, (name, case, decision.holds_when, one.what)
                tally["outside"] += 1


def confirm(one: Drawn, tally: Counter[str]) -> None:
    """What the report calls VIOLATED fails at the values of its counterexamples."""
    report: Report = prove_for_all([one.protocol], {}, one.free, one.assume, limits=LIMITS)
    for row in report.results:
        tally[row.verdict.name] += 1
        if row.verdict is not Verdict.VIOLATED:
            continue
        cases = [f.counterexample for f in row.findings if f.counterexample is not None]
        assert cases or row.findings, (row.property, one.what)
        for shown in cases:
            values = {n: v for n, v in shown.parameters.items() if isinstance(v, int)}
            instance = unroll(one.protocol, values, Setup(launches=shown.launches))
            errors = {f.property for f in judge(instance).found if f.severity is Severity.ERROR}
            assert row.property in errors, (row.property, values, one.what)
            tally["confirmed"] += 1


def test_for_all_values_and_at_single_ones() -> None:
    tally = compared(10, 5, 2)
    assert min(tally["proved"], tally["open"], tally["cases"] // 10) >= 15, tally
    assert min(tally["conditioned"], tally["confirmed"]) >= 2, tally


@pytest.mark.long
def test_for_all_values_and_at_many() -> None:
    tally = compared(300, 6, 30)
    assert min(tally["proved"], tally["open"], tally["cases"] // 4) >= 600, tally
    assert min(tally["conditioned"], tally["confirmed"], tally["outside"]) >= 20, tally
