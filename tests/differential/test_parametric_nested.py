"""Proofs for all values against happens-before at single values, on random loops within loops.

What is PROVED for all values has no fault at 30 random ones, and the auditor accepts what is certified. 5
protocols, 250 with ``-m long``; the seed is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import FORMAT, CertificateFile
from mc2proof.checker.parametric import question
from mc2proof.checker.parametric.certify import certify
from mc2proof.checker.parametric.decide import Decision, decide
from mc2proof.checker.parametric.domain import domain_of, satisfied
from mc2proof.checker.properties import rows_for
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Severity
from mc2proof.fuzz.mutations import mutate
from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder, segment_index, window
from mc2proof.protocol.errors import Mc2proofError, UnsupportedError
from mc2proof.protocol.expr import Expr, both
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

VALUES = {
    "ranks": (1, 2, 3),
    "blocks": (1, 2, 3, 4),
    "depth": (1, 2, 3),
    "tile_cnt": (0, 1, 2, 3, 5, 8),
    "chunks": (0, 1, 2, 3, 4),
    "launches": (1, 2, 3),
}
PART = 8
RLIMIT = 3_000_000


@pytest.fixture(autouse=True)
def _gathering_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer happenings: less is proved, in a fraction of the time, and never more."""
    monkeypatch.setattr(question, "MOST", 30)


@dataclass(frozen=True)
class Shape:
    """Where flags stand (``inner``: in the inner loop), what their ids are, and what is left out."""

    inner: bool
    freed_inner: bool
    ids: str
    slot: str
    lag: str
    credit: bool
    by_block: bool
    first: bool
    last: bool
    quiet: str
    takes: str
    start: int


def shape(random: Random) -> Shape:
    inner = random.random() < 0.7
    return Shape(
        inner=inner,
        freed_inner=inner if random.random() < 0.8 else not inner,
        ids=random.choice(("chunk", "chunk", "slot", "tile", "constant", "sum")),
        slot=random.choice(("none", "%", "%")),
        lag=random.choice(("1", "depth", "depth", "2", "depth + 1")),
        credit=random.random() < 0.85,
        by_block=random.random() < 0.6,
        first=random.random() < 0.85,
        last=random.random() < 0.85,
        quiet=random.choice(("inner", "inner", "inner", "behind", "none")),
        takes=random.choice(("same", "same", "same", "same", "fewer", "other order")),
        start=random.choice((0, 0, 0, 1)),
    )


def nested(s: Shape) -> Protocol:
    """Tiles are sent in chunks, from each rank to each other."""
    p = ProtocolBuilder("nested")
    ranks, depth = p.parameter("ranks", low=1), p.parameter("depth", low=1)
    p.parameter("blocks", low=1)
    tiles, count = p.parameter("tile_cnt"), p.parameter("chunks")
    slots = 1 if s.slot == "none" else depth
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * count * PART, alignment=512)
    a = p.region("a", RegionKind.INPUT, ranks * tiles * count * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * count * PART, covered=True)
    lag = {"1": 1 + depth * 0, "2": 2 + depth * 0, "depth": depth, "depth + 1": depth + 1}[s.lag]

    def place(tile: Expr, source: Expr, chunk: Expr) -> Address:
        return Address(heap, ((tile % slots * ranks + source) * count + chunk) * PART)

    def sent(tile: Expr, to: Expr, chunk: Expr) -> Address:
        return Address(a, ((tile * ranks + to) * count + chunk) * PART)

    def flag(tile: Expr, chunk: Expr | None) -> Expr:
        within = tile if chunk is None else chunk
        ids = {"chunk": within, "slot": tile % slots, "tile": tile, "constant": tile * 0 + 3}
        return {**ids, "sum": tile + within}[s.ids]

    def each(core: RoleBuilder, inner: bool, tile: Expr, act: Callable[[Expr | None], None]) -> None:
        if inner:
            with core.loop("part", count, start=s.start) as part:
                act(part)
        else:
            act(None)

    def await_slot(tile: Expr, chunk: Expr | None) -> None:
        with aiv.when(tile >= lag):
            aiv.wait_flag(Pipe.MTE3, flag(tile - lag, chunk))
            if s.first:
                aiv.barrier()

    def send(tile: Expr, peer: Expr, chunk: Expr) -> None:
        aiv.put(peer, place(tile, p.rank, chunk), sent(tile, peer, chunk), PART)
        if s.quiet == "inner":
            aiv.quiet(peer)

    def send_all(tile: Expr, chunk: Expr) -> None:
        if s.by_block:
            with aiv.when(both(p.block < ranks, p.block.ne(p.rank))):
                send(tile, p.block, chunk)
        else:
            with aiv.when(p.block.eq(0)), aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
                send(tile, peer, chunk)
            if s.quiet == "behind":
                with (
                    aiv.when(p.block.eq(0)),
                    aiv.loop("posted", ranks) as posted,
                    aiv.when(posted.ne(p.rank)),
                ):
                    aiv.quiet(posted)

    def done(tile: Expr, chunk: Expr | None) -> None:
        if s.quiet == "behind" and s.by_block:
            with aiv.when(both(p.block < ranks, p.block.ne(p.rank))):
                aiv.quiet(p.block)
        if s.last:
            aiv.barrier()
        aiv.set_flag(Pipe.MTE3, flag(tile, chunk))

    def take(tile: Expr, chunk: Expr) -> None:
        source = segment_index("s")
        origin = Origin(source, sent(tile, p.rank, chunk))
        aic.compute(
            "matmul", "s", ranks,
            reads=[window(place(tile, source, chunk), PART, origin=origin, guard=source.ne(p.rank))],
            writes=[window(Address(c, (tile * count + chunk) * PART), PART)],
        )  # fmt: skip

    def free(tile: Expr, chunk: Expr | None) -> None:
        with aic.when(tile + lag < tiles):
            aic.set_flag(Pipe.FIX, flag(tile, chunk))

    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("tile", tiles) as tile:
        if s.credit and not s.freed_inner:
            await_slot(tile, None)
        with aiv.loop("chunk", count, start=s.start) as chunk:
            if s.credit and s.freed_inner:
                await_slot(tile, chunk)
            send_all(tile, chunk)
            if s.inner:
                done(tile, chunk)
        if not s.inner:
            done(tile, None)
    most = count - 1 if s.takes == "fewer" else count
    with aic.loop("tile", tiles) as tile:
        if not s.inner:
            aic.wait_flag(Pipe.MTE2, flag(tile, None))
        if s.takes == "other order" and s.inner:
            with aic.loop("first", count, start=s.start) as chunk:
                aic.wait_flag(Pipe.MTE2, flag(tile, chunk))
        with aic.loop("chunk", most, start=s.start) as chunk:
            if s.inner and s.takes != "other order":
                aic.wait_flag(Pipe.MTE2, flag(tile, chunk))
            take(tile, chunk)
            if s.credit and s.freed_inner and s.takes != "other order":
                free(tile, chunk)
        if s.credit and (not s.freed_inner or s.takes == "other order"):
            each(aic, s.freed_inner, tile, lambda part: free(tile, part))
    return p.build()


def errors_at(protocol: Protocol, values: dict[str, int]) -> set[str] | None:
    """The properties that fail; None where it makes no sense, or not all could be told."""
    parameters = {name: value for name, value in values.items() if name != "launches"}
    setup = Setup(launches=values.get("launches", 1))
    try:
        judgement = judge(unroll(protocol, parameters, setup, limits=Limits(max_events=4000)))
    except Mc2proofError:
        return None
    return {found.property for found in judgement.found if found.severity is Severity.ERROR}


def compared(count: int, seed: int) -> Counter[str]:
    random, tally = Random(seed), Counter[str]()
    while tally["protocols"] < count:
        what: tuple[object, ...] = (chosen := shape(random),)
        protocol = nested(chosen)
        if random.random() < 0.3:
            mutant = mutate(protocol, random)
            protocol, what = mutant.protocol, (*what, *mutant.changes)
        assume = random.choice(
            (("blocks >= ranks",), ("blocks >= ranks", "tile_cnt <= 8", "chunks <= 8"), ())
        )
        free = tuple(VALUES)[: None if random.random() < 0.2 else -1]
        compare(protocol, free, (*assume, "depth <= 8"), random, (what, assume, free), tally)
    return tally


def compare(
    protocol: Protocol, free: tuple[str, ...], assume: tuple[str, ...], random: Random, what: object,
    tally: Counter[str],
) -> None:  # fmt: skip
    try:
        domain = domain_of(protocol, free, {}, assume)
        names = rows_for(2 if "launches" in free else 1)
        found = decide(protocol, Setup(), domain, names, rlimit=RLIMIT)
    except UnsupportedError:
        tally["unsupported"] += 1
        return
    tally["protocols"] += 1
    tally["declined"] += found.declined is not None
    for _ in range(30):
        values = {name: random.choice(VALUES[name]) for name in free}
        errors = errors_at(protocol, values) if domain.contains(values) else None
        if errors is not None:
            tally["cases"] += 1
            for name, decision in found.decisions.items():
                assert not (name in errors and _claims(decision, values)), (name, values, what)
    proved = [name for name, decision in found.decisions.items() if decision.proved]
    tally["proved"] += len(proved)
    tally["loops deep"] += any(len(match.shift) > 2 for match in found.program.matches)
    if proved:
        made = certify(found, [], {}, proved, strict_ids=False)
        tally["left out"] += len(made.certificate.left_out)
        if made.certificate.properties:
            (audited,) = audit(CertificateFile(FORMAT, "0", [made.certificate]), [protocol])
            assert audited.problems == [], (audited.problems, what)
            tally["certified"] += len(made.certificate.properties)


def _claims(decision: Decision, values: dict[str, int]) -> bool:
    """Whether ``decision`` says that the property holds at ``values``."""
    when = decision.condition
    return decision.proved or (when is not None and satisfied(when, values))


def test_loops_in_loops_at_single_values() -> None:
    tally = compared(5, 3)
    assert min(tally["proved"], tally["certified"], tally["cases"] // 5) >= 12, tally
    assert tally["loops deep"] >= 2, tally


@pytest.mark.long
def test_loops_in_loops_at_many_values() -> None:
    tally = compared(250, 4)
    assert min(tally["proved"], tally["certified"]) >= 800, tally
    assert tally["loops deep"] >= 60, tally
