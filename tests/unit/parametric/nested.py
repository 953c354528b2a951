"""Protocols whose flags, puts and reads stand in a loop within the loop over tiles."""

from __future__ import annotations

from typing import Literal

from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.expr import Const, Expr, both
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

PART = 64


def peers(*, quiet: Literal["each", "behind", "missing"] = "each") -> Protocol:
    """A loop over tiles; in it, the first block puts to every peer in turn.

    ``quiet``: it waits for each at once, or for all in a loop behind.
    """
    p = ProtocolBuilder("nested-peers")
    ranks = p.parameter("ranks", low=2)
    p.parameter("blocks", low=1)
    depth, tiles = p.parameter("buffer_size", low=1), p.parameter("tile_cnt", low=1)
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * PART, alignment=512)
    a = p.region("a", RegionKind.INPUT, ranks * tiles * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * PART, covered=True)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, tile % depth)
            aiv.barrier()
        with aiv.when(p.block.eq(0)):
            with aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
                target = Address(heap, (tile % depth * ranks + p.rank) * PART)
                aiv.put(peer, target, Address(a, (tile * ranks + peer) * PART), PART)
                if quiet == "each":
                    aiv.quiet(peer)
            if quiet == "behind":
                with aiv.loop("posted", ranks) as posted, aiv.when(posted.ne(p.rank)):
                    aiv.quiet(posted)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, tile % depth)
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, tile % depth)
        s = segment_index("s")
        origin = Origin(s, Address(a, (tile * ranks + p.rank) * PART))
        landed = Address(heap, (tile % depth * ranks + s) * PART)
        aic.compute(
            "matmul", "s", ranks,
            reads=[window(landed, PART, origin=origin, guard=s.ne(p.rank))],
            writes=[window(Address(c, tile * PART), PART)],
        )  # fmt: skip
        with aic.when(tile + depth < tiles):
            aic.set_flag(Pipe.FIX, tile % depth)
    return p.build()


def chunks(*, early: bool = False) -> Protocol:
    """A tile is sent in chunks, and its flag is set behind the loop over them; read chunk by chunk.

    ``early``: the flag is set before the chunks are there.
    """
    p = ProtocolBuilder("nested-chunks")
    ranks = p.parameter("ranks", low=2)
    p.parameter("blocks", low=1)
    depth, tiles = p.parameter("buffer_size", low=1), p.parameter("tile_cnt", low=1)
    count = p.parameter("chunks", low=1)
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * count * PART, alignment=512)
    a = p.region("a", RegionKind.INPUT, ranks * tiles * count * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * count * PART, covered=True)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, tile % depth)
            aiv.barrier()
        if early:
            aiv.set_flag(Pipe.MTE3, tile % depth)
        with (
            aiv.when(both(p.block < ranks, p.block.ne(p.rank))),
            aiv.loop("chunk", count) as chunk,
        ):
            target = Address(heap, ((tile % depth * ranks + p.rank) * count + chunk) * PART)
            source = Address(a, ((tile * ranks + p.block) * count + chunk) * PART)
            aiv.put(p.block, target, source, PART)
            aiv.quiet(p.block)
        aiv.barrier()
        if not early:
            aiv.set_flag(Pipe.MTE3, tile % depth)
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, tile % depth)
        with aic.loop("chunk", count) as chunk:
            s = segment_index("s")
            origin = Origin(s, Address(a, ((tile * ranks + p.rank) * count + chunk) * PART))
            landed = Address(heap, ((tile % depth * ranks + s) * count + chunk) * PART)
            aic.compute(
                "matmul", "s", ranks,
                reads=[window(landed, PART, origin=origin, guard=s.ne(p.rank))],
                writes=[window(Address(c, (tile * count + chunk) * PART), PART)],
            )  # fmt: skip
        with aic.when(tile + depth < tiles):
            aic.set_flag(Pipe.FIX, tile % depth)
    return p.build()


def handshakes(
    *, slots: int = 1, lag: int | None = None, released: bool = True, one_flag: bool = False
) -> Protocol:
    """Every chunk has its own flag, set in the inner loop and awaited in the matching one.

    The chunks of ``slots`` tiles fill the ring; the release of a chunk is awaited ``lag`` tiles later, which
    is as many unless given. ``one_flag``: all chunks have the same.
    """
    lag = slots if lag is None else lag
    p = ProtocolBuilder("nested-handshakes")
    ranks = p.parameter("ranks", low=2)
    p.parameter("blocks", low=1)
    tiles, count = p.parameter("tile_cnt", low=1), p.parameter("chunks", low=1)
    heap = p.region("heap", RegionKind.SHARED, slots * ranks * count * PART, alignment=512)
    a = p.region("a", RegionKind.INPUT, ranks * tiles * count * PART)
    c = p.region("c", RegionKind.OUTPUT, tiles * count * PART, covered=True)

    def place(tile: Expr, source: Expr, chunk: Expr) -> Address:
        slot = tile % slots if slots > 1 else 0
        return Address(heap, ((slot * ranks + source) * count + chunk) * PART)

    def flag(chunk: Expr) -> Expr:
        return Const(3) if one_flag else chunk

    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("tile", tiles) as tile, aiv.loop("chunk", count) as chunk:
        if released:
            with aiv.when(tile >= lag):
                aiv.wait_flag(Pipe.MTE3, flag(chunk))
                aiv.barrier()
        with aiv.when(both(p.block < ranks, p.block.ne(p.rank))):
            source = Address(a, ((tile * ranks + p.block) * count + chunk) * PART)
            aiv.put(p.block, place(tile, p.rank, chunk), source, PART)
            aiv.quiet(p.block)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, flag(chunk))
    with aic.loop("tile", tiles) as tile, aic.loop("chunk", count) as chunk:
        aic.wait_flag(Pipe.MTE2, flag(chunk))
        s = segment_index("s")
        origin = Origin(s, Address(a, ((tile * ranks + p.rank) * count + chunk) * PART))
        aic.compute(
            "matmul", "s", ranks,
            reads=[window(place(tile, s, chunk), PART, origin=origin, guard=s.ne(p.rank))],
            writes=[window(Address(c, (tile * count + chunk) * PART), PART)],
        )  # fmt: skip
        if released:
            with aic.when(tile + lag < tiles):
                aic.set_flag(Pipe.FIX, flag(chunk))
    return p.build()
