"""Faults of buffers that are used again: rings between ranks, FIFOs between the cores of a block."""

from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.expr import Expr, select
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str) -> ProtocolBuilder:
    p = ProtocolBuilder(name)
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def fifo(*, credits: bool = True, wait_pipe: str = "FIX", index: str = "modulo") -> Protocol:
    """The cube fills slots, the vector empties them and gives each back; ``stages`` are in flight."""
    p = started("fifo")
    depth, stages, tiles = p.parameter("depth", low=1), p.parameter("stages", low=1), p.parameter("tiles")
    slots = p.region("slots", RegionKind.PRIVATE, depth * BYTES)
    work = p.region("work", RegionKind.INPUT, tiles * BYTES)
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)

    def slot(tile: Expr) -> Address:
        return Address(slots, (tile * 0 if index == "stuck" else tile % depth) * BYTES)

    def origin(tile: Expr) -> Origin:
        return Origin(p.rank, Address(work, tile * BYTES))

    with aic.loop("t", tiles) as t:
        with aic.when(t >= stages):
            aic.wait_flag(Pipe[wait_pipe], 1)
        aic.write(Pipe.FIX, window(slot(t), BYTES, origin=origin(t)))
        aic.set_flag(Pipe.FIX, 0)
    with aiv.loop("t", tiles) as t:
        aiv.wait_flag(Pipe.MTE2, 0)
        aiv.read(Pipe.MTE2, window(slot(t), BYTES, origin=origin(t)))
        if credits:
            with aiv.when(t + stages < tiles):
                aiv.set_flag(Pipe.MTE2, 1)
    return p.build()


def offset_pipeline() -> Protocol:
    """Three FIFOs without any flag that gives slots back: one step of offset bounds who runs ahead."""
    p = started("offset pipeline")
    depth, tiles = p.parameter("depth", low=1), p.parameter("tiles", low=1)
    names = ("scores", "weights", "outputs")
    fifos = {n: p.region(n, RegionKind.PRIVATE, depth * BYTES) for n in names}
    origins = {n: p.region(f"what {n} are", RegionKind.INPUT, tiles * BYTES) for n in names}
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    scores, weights, outputs = 0, 1, 2  # the flag of each FIFO

    def at(name: str, tile: Expr) -> tuple[Address, Origin]:
        return Address(fifos[name], tile % depth * BYTES), Origin(
            p.rank, Address(origins[name], tile * BYTES)
        )

    def finish(tile: Expr) -> None:
        aic.wait_flag(Pipe.M, weights)
        place, origin = at("weights", tile)
        aic.read(Pipe.M, window(place, BYTES, origin=origin))
        place, origin = at("outputs", tile)
        aic.write(Pipe.M, window(place, BYTES, origin=origin))
        aic.set_flag(Pipe.M, outputs)

    def collect(tile: Expr) -> None:
        aiv.wait_flag(Pipe.V, outputs)
        place, origin = at("outputs", tile)
        aiv.read(Pipe.V, window(place, BYTES, origin=origin))

    with aic.loop("t", tiles) as t:
        place, origin = at("scores", t)
        aic.write(Pipe.M, window(place, BYTES, origin=origin))
        aic.set_flag(Pipe.M, scores)
        with aic.when(t >= 1):
            finish(t - 1)
    finish(tiles - 1)
    with aiv.loop("t", tiles) as t:
        aiv.wait_flag(Pipe.V, scores)
        place, origin = at("scores", t)
        aiv.read(Pipe.V, window(place, BYTES, origin=origin))
        place, origin = at("weights", t)
        aiv.write(Pipe.V, window(place, BYTES, origin=origin))
        aiv.set_flag(Pipe.V, weights)
        with aiv.when(t >= 1):
            collect(t - 1)
    collect(tiles - 1)
    return p.build()


def ring(
    *,
    meet: bool = True,
    wait: bool = True,
    wait_pipe: str = "MTE3",
    release_pipe: str = "FIX",
    mask: bool = False,
    last: bool = False,
) -> Protocol:
    """Every rank puts tile t into slot t of its peers' rings; a slot is free when all have read it.

    ``last``: before it ends, every rank waits until its cube has read the last tiles, and meets all.
    """
    p = ProtocolBuilder("ring")
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    depth, stages, tiles = p.parameter("depth", low=1), p.parameter("stages", low=1), p.parameter("tiles")
    heap = p.region("heap", RegionKind.SHARED, depth * ranks * BYTES)
    source = p.region("source", RegionKind.INPUT, tiles * BYTES)
    output = p.region("output", RegionKind.OUTPUT, tiles * BYTES, covered=True)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    s = segment_index("s")

    def slot(tile: Expr, sender: Expr) -> Address:
        number = tile & (depth - 1) if mask else tile % depth
        return Address(heap, (number * ranks + sender) * BYTES)

    with aiv.loop("t", tiles) as t:
        with aiv.when(t >= stages):
            if wait:
                aiv.wait_flag(Pipe[wait_pipe], t - stages)
            if meet:
                aiv.barrier()
        with aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
            aiv.put(peer, slot(t, p.rank), Address(source, t * BYTES), BYTES)
            aiv.quiet(peer)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, t)
    if last:
        with aiv.loop("t", tiles, start=select(tiles > stages, tiles - stages, 0)) as t:
            aiv.wait_flag(Pipe.MTE3, t)
        aiv.barrier()
    with aic.loop("t", tiles) as t:
        aic.wait_flag(Pipe.MTE2, t)
        origin = Origin(s, Address(source, t * BYTES))
        aic.compute(
            "reduce",
            "s",
            ranks,
            reads=[window(slot(t, s), BYTES, origin=origin, guard=s.ne(p.rank))],
            writes=[window(Address(output, t * BYTES), BYTES)],
        )
        if wait:
            with aic.when(1 if last else t + stages < tiles):
                aic.set_flag(Pipe[release_pipe], t)
    return p.build()
