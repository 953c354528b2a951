"""Programs that keep a slot counter, a toggle or a running offset, for all values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import CertificateFile
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.report import Report
from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.expr import Expr, binary, both, select
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

TILE = 64
Step = Callable[[Expr, Expr], Expr]

WRAPS: dict[str, Step] = {
    "remainder": lambda slot, depth: (slot + 1) % depth,
    "reset": lambda slot, depth: select((slot + 1).eq(depth), 0, slot + 1),
    "mask": lambda slot, depth: binary("&", slot + 1, depth - 1),
}


def counted_ring(sends: Step, takes: Step | None = None) -> Protocol:
    """A ring whose slot, flag id and offset into the input are kept in locals on both sides."""
    p = ProtocolBuilder("counted-ring")
    ranks = p.parameter("ranks", low=2)
    p.parameter("blocks", low=1)
    depth, tiles = p.parameter("buffer_size", low=1), p.parameter("tile_cnt", low=1)
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * TILE, alignment=512)
    source = p.region("source", RegionKind.INPUT, ranks * tiles * TILE)
    result = p.region("result", RegionKind.OUTPUT, tiles * TILE, covered=True)

    aiv = p.role(Role.AIV)
    remote = both(p.block < ranks, p.block.ne(p.rank))
    slot, at = aiv.let("slot", 0), aiv.let("at", 0)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, slot)
            aiv.barrier()
        with aiv.when(remote):
            target = Address(heap, (slot * ranks + p.rank) * TILE)
            aiv.put(p.block, target, Address(source, p.block * tiles * TILE + at), TILE)
            aiv.quiet(p.block)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, slot)
        aiv.let("slot", sends(slot, depth))
        aiv.let("at", at + TILE)

    aic = p.role(Role.AIC)
    taken = aic.let("taken", 0)
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, taken)
        s = segment_index("from")
        origin = Origin(s, Address(source, p.rank * tiles * TILE + tile * TILE))
        landed = Address(heap, (taken * ranks + s) * TILE)
        aic.compute(
            "matmul", "from", ranks,
            reads=[window(landed, TILE, origin=origin, guard=s.ne(p.rank))],
            writes=[window(Address(result, tile * TILE), TILE)],
        )  # fmt: skip
        with aic.when(tile < tiles - depth):
            aic.set_flag(Pipe.MTE2, taken)
        aic.let("taken", (takes or sends)(taken, depth))
    return p.build()


def verdicts(report: Report) -> dict[str, str]:
    return {row.property: row.verdict.value for row in report.results}


FREE = ("ranks", "tile_cnt", "buffer_size")
POWER = ("buffer_size power of 2", "buffer_size <= 8")


@pytest.mark.parametrize("wrap", WRAPS)
def test_counters_of_a_ring(
    wrap: str,
    certified: Callable[..., tuple[Report, Certified]],
    file_of: Callable[[Certified], CertificateFile],
) -> None:
    protocol = counted_ring(WRAPS[wrap])
    report, made = certified(protocol, POWER if wrap == "mask" else ("buffer_size <= 8",))
    assert verdicts(report) == dict.fromkeys(rows_for(1), "PROVED")
    (found,) = audit(file_of(made), [protocol])
    assert found.problems == []
    assert list(found.needed) == list(rows_for(1))


def test_a_counter_that_never_wraps() -> None:
    wrong = counted_ring(lambda slot, depth: slot + 1)
    report = prove_for_all([wrong], {}, FREE, ("buffer_size <= 8",), properties=["layout"])
    assert verdicts(report) == {"layout": "VIOLATED"}


def test_counters_that_are_apart() -> None:
    """The reader forgets to wrap where the writer does."""
    wrong = counted_ring(WRAPS["remainder"], lambda slot, depth: (slot + 1) % (depth + 1))
    report = prove_for_all([wrong], {}, FREE, ("buffer_size <= 8",))
    found = verdicts(report)
    assert found["deadlock-freedom"] == "VIOLATED"
    assert "PROVED" not in {found[name] for name in ("no-read-before-write", "completion", "coverage")}


def test_two_buffers_by_a_toggle() -> None:
    protocol = counted_ring(lambda slot, depth: 1 - slot)
    report = prove_for_all([protocol], {"buffer_size": 2}, ("ranks", "tile_cnt"))
    assert verdicts(report) == dict.fromkeys(rows_for(1), "PROVED")
    report = prove_for_all([protocol], {"buffer_size": 3}, ("ranks", "tile_cnt"))
    assert verdicts(report)["no-overwrite-before-read"] == "VIOLATED"


def test_what_has_no_closed_form_is_refused_with_its_line() -> None:
    protocol = counted_ring(lambda slot, depth: select(slot + 1 > depth - 1, 0, slot + 1))
    report = prove_for_all([protocol], {}, FREE, ("buffer_size <= 8",), properties=["flag-balance"])
    (row,) = report.results
    assert row.verdict.value == "UNKNOWN"
    assert row.reason is not None
    assert "slot, whose value changes while the program runs" in row.reason
    assert "test_locals.py:" in row.reason
