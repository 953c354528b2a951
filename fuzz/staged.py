"""Protocols in which the AIVs of a rank or block stage a tile together, joined by flags. Used by `bases`."""

from __future__ import annotations

from ..protocol.builder import ProtocolBuilder, RoleBuilder, segment_index, window
from ..protocol.expr import Expr, both
from ..protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from .fan_out import PART, Between, close_launch

STAGED, RELEASED = 8, 9
"""The ids of the two joins."""


def join(core: RoleBuilder, pipe: Pipe, flag: int, mode: int) -> None:
    """Wait on ``pipe`` until all cores of the mode have come here."""
    core.set_flag(pipe, flag, mode=mode)
    core.wait_flag(pipe, flag, mode=mode)


def _scale_of(p: ProtocolBuilder, ranks: Expr, between: Between, aiv: RoleBuilder) -> tuple[Expr, Origin]:
    """What each rank puts to every peer at the start of a launch: where source s's lands, its origin."""
    heap = p.region("heap", RegionKind.SHARED, between.slots(ranks) * PART)
    scale = p.region("scale", RegionKind.INPUT, ranks * PART)
    first = both(p.block.eq(0), p.sub.eq(0))
    with aiv.loop("peer", ranks) as peer, aiv.when(both(first, peer.ne(p.rank))):
        target = Address(heap, between.slot(p, p.rank, ranks) * PART)
        aiv.put(peer, target, Address(scale, peer * PART), PART)
        aiv.quiet(peer)
    aiv.barrier()
    s = segment_index("s")
    return between.slot(p, s, ranks) * PART, Origin(s, Address(scale, p.rank * PART))


def staged_by_rank(between: Between) -> Protocol:
    """All AIVs of a rank stage their parts of a tile, and the AIC of every block reads all of it.

    They join in mode 0 before they speak to their AICs, and the AICs do before they hand the slot
    back. Safe for any number of blocks.
    """
    p = ProtocolBuilder("staged-by-rank")
    ranks = p.parameter("ranks", low=1)
    blocks = p.parameter("blocks", low=1)
    depth = p.parameter("buffer_size", low=1)
    tiles = p.parameter("tile_cnt")
    a = p.region("a", RegionKind.INPUT, tiles * blocks * PART)
    work = p.region("work", RegionKind.PRIVATE, depth * blocks * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)

    def part(tile: Expr, block: Expr) -> Address:
        return Address(work, (tile % depth * blocks + block) * PART)

    def origin(tile: Expr, block: Expr) -> Origin:
        return Origin(p.rank, Address(a, (tile * blocks + block) * PART))

    aiv = p.role(Role.AIV)
    landed, scale = _scale_of(p, ranks, between, aiv)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, tile % depth)
        aiv.write(Pipe.MTE3, window(part(tile, p.block), PART, origin=origin(tile, p.block)))
        join(aiv, Pipe.MTE3, STAGED, 0)
        aiv.set_flag(Pipe.MTE3, tile % depth)

    aic = p.role(Role.AIC)
    s = segment_index("s")
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, tile % depth)
        aic.compute(
            "matmul",
            "s",
            ranks * blocks,  # segments of the tile and of the scale are read side by side
            reads=[
                window(part(tile, s), PART, origin=origin(tile, s), guard=s < blocks),
                window(Address("heap", landed), PART, origin=scale, guard=both(s < ranks, s.ne(p.rank))),
            ],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            join(aic, Pipe.FIX, RELEASED, 0)
            aic.set_flag(Pipe.FIX, tile % depth)
    close_launch(between, aiv, aic)
    return p.build()


def staged_by_pair(between: Between) -> Protocol:
    """The two AIVs of a block stage a tile for their AIC, and AIV 0 speaks to it for both, in mode 4.

    They join in mode 1 before it does, and after it has been told that the slot is free. Safe for
    any number of blocks.
    """
    p = ProtocolBuilder("staged-by-pair", vectors_per_cube=2)
    ranks = p.parameter("ranks", low=1)
    blocks = p.parameter("blocks", low=1)
    depth = p.parameter("buffer_size", low=1)
    tiles = p.parameter("tile_cnt")
    a = p.region("a", RegionKind.INPUT, tiles * blocks * 2 * PART)
    work = p.region("work", RegionKind.PRIVATE, depth * blocks * 2 * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)

    def part(tile: Expr, sub: Expr) -> Address:
        return Address(work, ((tile % depth * blocks + p.block) * 2 + sub) * PART)

    def origin(tile: Expr, sub: Expr) -> Origin:
        return Origin(p.rank, Address(a, ((tile * blocks + p.block) * 2 + sub) * PART))

    aiv = p.role(Role.AIV)
    landed, scale = _scale_of(p, ranks, between, aiv)
    speaks = p.sub.eq(0)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            with aiv.when(speaks):
                aiv.wait_flag(Pipe.MTE3, tile % depth, mode=4)
            join(aiv, Pipe.MTE3, RELEASED, 1)
        aiv.write(Pipe.MTE3, window(part(tile, p.sub), PART, origin=origin(tile, p.sub)))
        join(aiv, Pipe.MTE3, STAGED, 1)
        with aiv.when(speaks):
            aiv.set_flag(Pipe.MTE3, tile % depth, mode=4)

    aic = p.role(Role.AIC)
    s = segment_index("s")
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, tile % depth, mode=4)
        aic.compute(
            "matmul",
            "s",
            ranks + 1,  # segments of the tile (two) and of the scale are read side by side
            reads=[
                window(part(tile, s), PART, origin=origin(tile, s), guard=s < 2),
                window(Address("heap", landed), PART, origin=scale, guard=both(s < ranks, s.ne(p.rank))),
            ],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            aic.set_flag(Pipe.FIX, tile % depth, mode=4)
    close_launch(between, aiv, aic)
    return p.build()
