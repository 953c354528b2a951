"""Faults of puts: completion, order, place, size and number."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import Expr, as_expr, both
from mc2proof.protocol.program import Address, Mode, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str) -> tuple[ProtocolBuilder, Expr]:
    p = ProtocolBuilder(name)
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p, ranks


def exchange(*, quiet: str, meet: bool = True, times: int = 1) -> Protocol:
    """Every rank puts to the next one, which reads after a barrier.

    ``quiet``: before or after the barrier, of itself instead of its peer, or none.
    """
    p, ranks = started("exchange")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    for _ in range(times):
        aiv.put(to, heap, source, BYTES)
        if quiet == "before":
            aiv.quiet(to)
        elif quiet == "of itself":
            aiv.quiet(p.rank)
    if meet:
        aiv.barrier()
    if quiet == "after":
        aiv.quiet(to)
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    return p.build()


def forward(*, staging: str = "MTE3", wait_pipe: str = "MTE3") -> Protocol:
    """The cube prepares what the vector puts: the put must not be posted before it is ready."""
    p, ranks = started("forward")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    ready = Address(p.region("ready", RegionKind.PRIVATE, BYTES), as_expr(0))
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    aic.write(Pipe.FIX, window(ready, BYTES))
    aic.set_flag(Pipe.FIX, 0)
    aiv.wait_flag(Pipe[wait_pipe], 0)
    aiv.put(to, heap, ready, BYTES, staging=Pipe[staging])
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, ready)))
    return p.build()


def several_writers(*, add: bool) -> Protocol:
    """All ranks but 0 write the same bytes of rank 0, which also reads a word of its own from each."""
    p, ranks = started("several writers")
    heap = p.region("heap", RegionKind.SHARED, (ranks + 1) * BYTES)
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank > 0):
        aiv.put(0, Address(heap, p.rank * BYTES), source, BYTES)
        aiv.put(0, Address(heap, as_expr(0)), source, BYTES, mode=Mode.ADD if add else Mode.STORE)
        aiv.quiet(0)
    aiv.barrier()
    with aiv.when(p.rank.eq(0)), aiv.loop("s", ranks, start=1) as s:
        aiv.read(Pipe.MTE2, window(Address(heap, s * BYTES), BYTES, origin=Origin(s, source)))
    return p.build()


def two_areas() -> Protocol:
    """Data slots and, behind them, a header: the slots' stride must be what the header's place assumes."""
    p, ranks = started("two areas")
    stride, heap_bytes = p.parameter("stride"), p.parameter("heap_bytes")
    heap = p.region("heap", RegionKind.SHARED, heap_bytes)
    data = p.region("data", RegionKind.INPUT, 2 * BYTES)
    header = p.region("header", RegionKind.INPUT, BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    header_at = Address(heap, as_expr(2 * BYTES))
    aiv.put(to, header_at, Address(header, as_expr(0)), BYTES)
    aiv.quiet(to)
    with aiv.loop("slot", 2) as slot:
        aiv.put(to, Address(heap, slot * stride), Address(data, slot * BYTES), BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(header_at, BYTES, origin=Origin(sender, Address(header, as_expr(0)))))
    with aiv.loop("slot", 2) as slot:
        origin = Origin(sender, Address(data, slot * BYTES))
        aiv.read(Pipe.MTE2, window(Address(heap, slot * stride), BYTES, origin=origin))
    return p.build()


def block_per_rank(*, to_self: bool = False) -> Protocol:
    """Block b puts to rank b: with fewer blocks than ranks some ranks get nothing."""
    p, ranks = started("block per rank")
    heap = p.region("heap", RegionKind.SHARED, ranks * BYTES)
    source = p.region("source", RegionKind.INPUT, ranks * BYTES)
    aiv = p.role(Role.AIV)
    with aiv.when(p.block < ranks if to_self else both(p.block < ranks, p.block.ne(p.rank))):
        aiv.put(p.block, Address(heap, p.rank * BYTES), Address(source, p.block * BYTES), BYTES)
        aiv.quiet(p.block)
    aiv.barrier()
    with aiv.when(p.block.eq(0)), aiv.loop("s", ranks) as s:
        origin = Origin(s, Address(source, p.rank * BYTES))
        with aiv.when(s.ne(p.rank)):
            aiv.read(Pipe.MTE2, window(Address(heap, s * BYTES), BYTES, origin=origin))
    return p.build()


def one_request() -> Protocol:
    """One put of ``size`` bytes to rank ``peer`` and back."""
    p, ranks = started("one request")
    size, peer = p.parameter("size"), p.parameter("peer")
    heap = Address(p.region("heap", RegionKind.SHARED), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.put(peer, heap, source, size)
        aiv.quiet(peer)
    aiv.barrier()
    with aiv.when(p.rank.eq(ranks - 1)):
        aiv.read(Pipe.MTE2, window(heap, size, origin=Origin(as_expr(0), source)))
    return p.build()


def shared_queue(*, own_quiet: bool, in_turn: bool) -> Protocol:
    """Two blocks post to one peer, at once or in turn; each waits for all requests, or block 0 for both."""
    p, ranks = started("shared queue")
    blocks = 2
    heap = p.region("heap", RegionKind.SHARED, blocks * BYTES)
    source = p.region("source", RegionKind.INPUT, blocks * BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks

    def post() -> None:
        aiv.put(to, Address(heap, p.block * BYTES), Address(source, p.block * BYTES), BYTES)

    if in_turn:
        with aiv.when(p.block.eq(0)):
            post()
        aiv.barrier()
        with aiv.when(p.block.eq(1)):
            post()
    else:
        post()
    with aiv.when(1 if own_quiet else p.block.eq(0)):
        aiv.quiet(to)
    aiv.barrier()
    origin = Origin(sender, Address(source, p.block * BYTES))
    aiv.read(Pipe.MTE2, window(Address(heap, p.block * BYTES), BYTES, origin=origin))
    return p.build()


def wrong_target(*, target: str) -> Protocol:
    """A put into symmetric memory, or into memory that is none, and back to reading it."""
    p, ranks = started("wrong target")
    regions = {kind.name: p.region(kind.name.lower(), kind, BYTES) for kind in RegionKind}
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    place = Address(regions[target], as_expr(0))
    aiv.put(to, place, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(place, BYTES, origin=Origin(sender, source)))
    return p.build()
