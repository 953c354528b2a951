"""Small correct protocols to mutate: the built-in one and two relatives that sync in other ways."""

from __future__ import annotations

from collections.abc import Mapping

from ..protocol.builder import ProtocolBuilder, segment_index, window
from ..protocol.builtin import ring_all_to_all
from ..protocol.expr import Expr
from ..protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

TILE_BYTES = 8
"""Bytes of one block's part of a segment; small, the numbers do not matter."""


def fan_out(*, flag_per_slot: bool) -> Protocol:
    """Every block puts its part of each segment to all peers, in a loop over peers.

    With one block a rank, a queue has one poster; with more, blocks share the queues: their posts
    race (no-write-conflict), and a quiet also waits for other blocks' requests. Flags are numbered
    by slot (a counter is used again and again) or by tile. Safe for one block a rank.
    """
    p = ProtocolBuilder("fan-out")
    ranks = p.parameter("ranks", low=1)
    blocks = p.parameter("blocks", low=1)
    depth = p.parameter("buffer_size", low=1)
    tiles = p.parameter("tile_cnt")
    part = TILE_BYTES
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * blocks * part)
    a = p.region("a", RegionKind.INPUT, tiles * ranks * blocks * part)
    c = p.region("c", RegionKind.OUTPUT, tiles * part, covered=True)

    def flag(tile: Expr) -> Expr:
        return tile % depth if flag_per_slot else tile

    def place(tile: Expr, source: Expr, block: Expr) -> Expr:
        return (((tile % depth) * ranks + source) * blocks + block) * part

    def source_place(tile: Expr, target: Expr, block: Expr) -> Expr:
        return ((tile * ranks + target) * blocks + block) * part

    aiv = p.role(Role.AIV)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, flag(tile - depth))
            aiv.barrier()
        with aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
            aiv.put(
                peer,
                Address(heap, place(tile, p.rank, p.block)),
                Address(a, source_place(tile, peer, p.block)),
                part,
            )
        with aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
            aiv.quiet(peer)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, flag(tile))

    aic = p.role(Role.AIC)
    s = segment_index("s")
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, flag(tile))
        source, sender = s / blocks, s % blocks
        origin = Origin(source, Address(a, source_place(tile, p.rank, sender)))
        aic.compute(
            "matmul",
            "s",
            ranks * blocks,
            reads=[
                window(Address(heap, place(tile, source, sender)), part, origin=origin,
                       guard=source.ne(p.rank)),
                window(origin.address, part, origin=origin, guard=source.eq(p.rank)),
            ],
            writes=[window(Address(c, tile * part), part)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            aic.set_flag(Pipe.FIX, flag(tile))
    return p.build()


BASES: Mapping[str, Protocol] = {
    "ring-all-to-all": ring_all_to_all(),
    "fan-out, flag per tile": fan_out(flag_per_slot=False),
    "fan-out, flag per slot": fan_out(flag_per_slot=True),
}
"""The protocols that the differential tests mutate."""
