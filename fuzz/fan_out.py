"""Protocols in which every AIV puts to several peers in a loop. Used by `bases`."""

from __future__ import annotations

from enum import Enum

from ..protocol.builder import ProtocolBuilder, RoleBuilder, segment_index, window
from ..protocol.expr import Expr, both
from ..protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

PART = 8
"""Bytes of what one core puts or writes at a time; small, the numbers do not matter."""

DONE = 10
"""The flag that closes a launch; tiles use the ids below it."""


class Between(Enum):
    """What keeps a fast rank's next launch from a slow rank's data."""

    NOTHING = "nothing: safe for one launch only"
    BARRIER = "a barrier closes the launch, once every AIC has handed over"
    PARITY = "two buffers, taken in turns; a barrier in every launch keeps ranks within one of each other"

    def slots(self, depth: Expr) -> Expr:
        """The number of slots that a buffer ``depth`` deep needs."""
        return depth * 2 if self is Between.PARITY else depth

    def slot(self, p: ProtocolBuilder, tile: Expr, depth: Expr) -> Expr:
        """The slot of ``tile``."""
        first = p.launch % 2 * depth if self is Between.PARITY else 0
        return tile % depth + first


def close_launch(between: Between, aiv: RoleBuilder, aic: RoleBuilder) -> None:
    """End both programs as ``between`` says."""
    if between is Between.BARRIER:
        aic.set_flag(Pipe.FIX, DONE)
        aiv.wait_flag(Pipe.MTE3, DONE)
        aiv.barrier()


def fan_out(*, flag_per_slot: bool, between: Between = Between.NOTHING) -> Protocol:
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
    heap = p.region("heap", RegionKind.SHARED, between.slots(depth) * ranks * blocks * PART)
    a = p.region("a", RegionKind.INPUT, tiles * ranks * blocks * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)

    def flag(tile: Expr) -> Expr:
        return tile % depth if flag_per_slot else tile

    def place(tile: Expr, source: Expr, block: Expr) -> Expr:
        return ((between.slot(p, tile, depth) * ranks + source) * blocks + block) * PART

    def source_place(tile: Expr, target: Expr, block: Expr) -> Expr:
        return ((tile * ranks + target) * blocks + block) * PART

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
                PART,
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
                window(Address(heap, place(tile, source, sender)), PART, origin=origin,
                       guard=source.ne(p.rank)),
                window(origin.address, PART, origin=origin, guard=source.eq(p.rank)),
            ],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            aic.set_flag(Pipe.FIX, flag(tile))
    close_launch(between, aiv, aic)
    return p.build()


def every_other_peer(*, single: bool, between: Between) -> Protocol:
    """Two AIVs an AIC that share out the peers, so that every queue has one poster.

    The AIC multiplies a tile when both of its AIVs say so, and hands the slot back to both: by one
    flag of mode 2 each way, or (``single``) by two of mode 4, of which the AIC knows AIV 1's by 16
    more. Safe for any number of blocks.
    """
    p = ProtocolBuilder("every-other-peer", vectors_per_cube=2)
    ranks = p.parameter("ranks", low=1)
    blocks = p.parameter("blocks", low=1)
    depth = p.parameter("buffer_size", low=1)
    tiles = p.parameter("tile_cnt")
    heap = p.region("heap", RegionKind.SHARED, between.slots(depth) * ranks * PART)
    a = p.region("a", RegionKind.INPUT, tiles * ranks * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)
    mode = 4 if single else 2
    names = (0, 16) if single else (0,)  # what the AIC adds to an id to speak with each AIV

    def place(tile: Expr, source: Expr) -> Expr:
        return (between.slot(p, tile, depth) * ranks + source) * PART

    def source_place(tile: Expr, target: Expr) -> Expr:
        return (tile * ranks + target) * PART

    aiv = p.role(Role.AIV)
    vector = p.block * 2 + p.sub
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, tile - depth, mode=mode)
            aiv.barrier()
        with aiv.loop("peer", ranks) as peer:
            mine = both(peer.ne(p.rank), (peer % (blocks * 2)).eq(vector))
            with aiv.when(mine):
                aiv.put(peer, Address(heap, place(tile, p.rank)), Address(a, source_place(tile, peer)), PART)
                aiv.quiet(peer)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, tile, mode=mode)

    aic = p.role(Role.AIC)
    s = segment_index("s")
    with aic.loop("tile", tiles) as tile:
        for name in names:
            aic.wait_flag(Pipe.MTE2, tile + name, mode=mode)
        origin = Origin(s, Address(a, source_place(tile, p.rank)))
        aic.compute(
            "matmul",
            "s",
            ranks,
            reads=[
                window(Address(heap, place(tile, s)), PART, origin=origin, guard=s.ne(p.rank)),
                window(origin.address, PART, origin=origin, guard=s.eq(p.rank)),
            ],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            for name in names:
                aic.set_flag(Pipe.FIX, tile + name, mode=mode)
    close_launch(between, aiv, aic)
    return p.build()
