"""Faults between launches: a fast rank is in its next launch while a slow one is still in this one."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import Expr, as_expr, call
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str) -> tuple[ProtocolBuilder, Expr]:
    p = ProtocolBuilder(name)
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p, ranks


def handover(*, meet_again: bool, says_origin: bool = True) -> Protocol:
    """Every rank puts to the next one, which reads; perhaps all meet once more before they end.

    A reader that does not say what it must find (a checksum, say) wants its bytes left alone.
    """
    p, ranks = started("handover")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    aiv.put(to, heap, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source) if says_origin else None))
    if meet_again:
        aiv.barrier()
    return p.build()


def send_on(*, meet_again: bool) -> Protocol:
    """What came from one neighbour is sent on to the other: the put reads what the next launch puts there."""
    p, ranks = started("send on")
    heap = p.region("heap", RegionKind.SHARED, 2 * BYTES)
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to = (p.rank + 1) % ranks
    first, second = Address(heap, as_expr(0)), Address(heap, as_expr(BYTES))
    aiv.put(to, first, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.put(to, second, first, BYTES)
    aiv.quiet(to)
    if meet_again:
        aiv.barrier()
    return p.build()


def cleared_by_reader(*, meet_again: bool) -> Protocol:
    """Rank 0 puts to rank 1, which reads in peace and then clears what it has read."""
    p, _ = started("cleared by its reader")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.put(1, heap, source, BYTES)
        aiv.quiet(1)
    aiv.barrier()
    with aiv.when(p.rank.eq(1)):
        aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(as_expr(0), source)))
    aiv.barrier()
    with aiv.when(p.rank.eq(1)):
        aiv.write(Pipe.MTE3, window(heap, BYTES))
    if meet_again:
        aiv.barrier()
    return p.build()


def two_writers(*, meet_again: bool) -> Protocol:
    """Ranks 0 and 1 write the same bytes of rank 2, one after the other; nobody reads them."""
    p, _ = started("two writers")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    for writer in (0, 1):
        with aiv.when(p.rank.eq(writer)):
            aiv.put(2, heap, source, BYTES)
            aiv.quiet(2)
        if writer == 0 or meet_again:
            aiv.barrier()
    return p.build()


def buffer_sets(*, sets: int, clear: str = "never") -> Protocol:
    """Launch c uses buffer set c mod ``sets`` and perhaps clears the other, before or after the meeting."""
    p, ranks = started("buffer sets")
    heap = p.region("heap", RegionKind.SHARED, 2 * BYTES)
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    mine = Address(heap, p.launch % sets * BYTES)
    other = Address(heap, (p.launch + 1) % 2 * BYTES)
    if clear == "before":
        aiv.write(Pipe.MTE3, window(other, BYTES))
    aiv.put(to, mine, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(mine, BYTES, origin=Origin(sender, source)))
    if clear == "after":
        aiv.write(Pipe.MTE3, window(other, BYTES))
    return p.build()


def leftover(*, sets: int) -> Protocol:
    """The cube tells the vector that its data are ready; told twice, the next launch does not wait."""
    p, _ = started("leftover")
    slot = Address(p.region("slot", RegionKind.PRIVATE, BYTES), as_expr(0))
    work = Address(p.region("work", RegionKind.INPUT, BYTES), as_expr(0))
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    origin = Origin(p.rank, work)
    aic.write(Pipe.FIX, window(slot, BYTES, origin=origin))
    for _ in range(sets):
        aic.set_flag(Pipe.FIX, 0)
    aiv.wait_flag(Pipe.MTE2, 0)
    aiv.read(Pipe.MTE2, window(slot, BYTES, origin=origin))
    return p.build()


def batched_credits(*, drain: bool) -> Protocol:
    """A FIFO whose reader gives slots back in batches; what the writer did not need must be drained."""
    p, _ = started("batched credits")
    depth, period, tiles = p.parameter("depth", low=1), p.parameter("period", low=1), p.parameter("tiles")
    slots = p.region("slots", RegionKind.PRIVATE, depth * BYTES)
    work = p.region("work", RegionKind.INPUT, tiles * BYTES)
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    ready, free = 0, 1

    def place(tile: Expr) -> Address:
        return Address(slots, tile % depth * BYTES)

    def origin(tile: Expr) -> Origin:
        return Origin(p.rank, Address(work, tile * BYTES))

    with aic.loop("i", tiles) as i:
        with aic.when(i >= depth), aic.when((i % period).eq(0)):
            aic.wait_flag(Pipe.FIX, free)
        aic.write(Pipe.FIX, window(place(i), BYTES, origin=origin(i)))
        aic.set_flag(Pipe.FIX, ready)
    if drain:
        emitted = tiles / period
        consumed = call("ceil_div", tiles, period) - call("ceil_div", depth, period)
        with aic.loop("rest", emitted - consumed):
            aic.wait_flag(Pipe.FIX, free)
    with aiv.loop("i", tiles) as i:
        aiv.wait_flag(Pipe.MTE2, ready)
        aiv.read(Pipe.MTE2, window(place(i), BYTES, origin=origin(i)))
        with aiv.when(((i + 1) % period).eq(0)):
            aiv.set_flag(Pipe.MTE2, free)
    return p.build()


def set_ahead() -> Protocol:
    """The first launch sets for itself and for the next one; each waits once."""
    p, _ = started("set ahead")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    with aic.when(p.launch.eq(0)):
        for _ in range(2):
            aic.set_flag(Pipe.FIX, 0)
    aiv.wait_flag(Pipe.MTE2, 0)
    return p.build()


def delivered_once(*, once: bool) -> Protocol:
    """Every launch reads what its neighbour sends, which perhaps only the first one does.

    The inputs may differ from launch to launch: what the first one brought is not what the second needs.
    """
    p, ranks = started("delivered once")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    with aiv.when(p.launch.eq(0) if once else 1):
        aiv.put(to, heap, source, BYTES)
        aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    aiv.barrier()
    return p.build()
