"""Faults of puts: completion, order, place, size and number."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.expr import Expr, as_expr, both, cast, either
from mc2proof.protocol.program import Address, Mode, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str, *, vectors: int = 1) -> tuple[ProtocolBuilder, Expr]:
    p = ProtocolBuilder(name, vectors_per_cube=vectors)
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


def by_two_vectors(*, in_turn: bool) -> Protocol:
    """Both vectors of a block post to one peer, at once, or the second when the cube says that it may."""
    p, ranks = started("by two vectors", vectors=2)
    heap = p.region("heap", RegionKind.SHARED, 2 * BYTES)
    source = p.region("source", RegionKind.INPUT, 2 * BYTES)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    if in_turn:
        with aiv.when(p.sub.eq(1)):
            aiv.wait_flag(Pipe.MTE3, 0, mode=4)
        aic.wait_flag(Pipe.FIX, 0, mode=4)
        aic.set_flag(Pipe.FIX, 16, mode=4)
    aiv.put(to, Address(heap, p.sub * BYTES), Address(source, p.sub * BYTES), BYTES)
    if in_turn:
        with aiv.when(p.sub.eq(0)):
            aiv.set_flag(Pipe.MTE3, 0, mode=4)
    aiv.quiet(to)
    aiv.barrier()
    origin = Origin(sender, Address(source, p.sub * BYTES))
    aiv.read(Pipe.MTE2, window(Address(heap, p.sub * BYTES), BYTES, origin=origin))
    return p.build()


def two_requests(*, quiet_between: bool, same: bool = False) -> Protocol:
    """Two requests of one core into the same bytes; the second one brings other data, or the same."""
    p, ranks = started("two requests")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = p.region("source", RegionKind.INPUT, 2 * BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    last = Address(source, as_expr(BYTES))
    aiv.put(to, heap, last if same else Address(source, as_expr(0)), BYTES)
    if quiet_between:
        aiv.quiet(to)
    aiv.put(to, heap, last, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, last)))
    return p.build()


def batch(*, quiet_after: int) -> Protocol:
    """Two requests and one quiet, which covers those before it and no others."""
    p, ranks = started("batch")
    heap = p.region("heap", RegionKind.SHARED, 2 * BYTES)
    source = p.region("source", RegionKind.INPUT, 2 * BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    parts = [as_expr(0), as_expr(BYTES)]
    for number, part in enumerate(parts, 1):
        aiv.put(to, Address(heap, part), Address(source, part), BYTES)
        if number == quiet_after:
            aiv.quiet(to)
    aiv.barrier()
    for part in parts:
        aiv.read(Pipe.MTE2, window(Address(heap, part), BYTES, origin=Origin(sender, Address(source, part))))
    return p.build()


def reused_source(*, quiet_between: bool) -> Protocol:
    """One buffer is filled and sent twice; a put reads its source until it is complete."""
    p, ranks = started("reused source")
    heap = p.region("heap", RegionKind.SHARED, 2 * BYTES)
    buffer = Address(p.region("buffer", RegionKind.PRIVATE, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    for turn in (0, 1):
        aiv.write(Pipe.MTE3, window(buffer, BYTES))
        aiv.put(to, Address(heap, as_expr(turn * BYTES)), buffer, BYTES)
        if quiet_between or turn == 1:
            aiv.quiet(to)
    aiv.barrier()
    for turn in (0, 1):
        place = Address(heap, as_expr(turn * BYTES))
        aiv.read(Pipe.MTE2, window(place, BYTES, origin=Origin(sender, buffer)))
    return p.build()


def sized() -> Protocol:
    """A request between a source and a heap of given sizes."""
    p, ranks = started("sized")
    sizes = {n: p.parameter(n) for n in ("size", "source_bytes", "heap_bytes")}
    heap = Address(p.region("heap", RegionKind.SHARED, sizes["heap_bytes"]), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, sizes["source_bytes"]), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    aiv.put(to, heap, source, sizes["size"])
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, sizes["size"], origin=Origin(sender, source)))
    return p.build()


def based(*, alignment: int) -> Protocol:
    """A request into a heap whose base is a multiple of ``alignment``."""
    p, ranks = started("based")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES, alignment=alignment), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    aiv.put(to, heap, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    return p.build()


def own_slot(*, skipped: bool) -> Protocol:
    """Every rank puts to all others and reads all slots, or all but its own, which nobody writes."""
    p, ranks = started("own slot")
    heap = p.region("heap", RegionKind.SHARED, ranks * BYTES)
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.loop("peer", ranks) as peer, aiv.when(peer.ne(p.rank)):
        aiv.put(peer, Address(heap, p.rank * BYTES), source, BYTES)
        aiv.quiet(peer)
    aiv.barrier()
    with aiv.loop("s", ranks) as s, aiv.when(s.ne(p.rank) if skipped else 1):
        aiv.read(Pipe.MTE2, window(Address(heap, s * BYTES), BYTES, origin=Origin(s, source)))
    return p.build()


def narrow_offset(*, wide: bool) -> Protocol:
    """The sender computes its offsets in 32 bits without sign, or in 64; the reader in 64."""
    p, ranks = started("narrow offset")
    stride, tiles = p.parameter("stride"), p.parameter("tiles")
    heap = p.region("heap", RegionKind.SHARED)
    source = p.region("source", RegionKind.INPUT, tiles * BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    width = CType.I64 if wide else CType.U32
    with aiv.loop("t", tiles) as t:
        offset = cast(width, t) * cast(width, stride)
        aiv.put(to, Address(heap, offset), Address(source, t * BYTES), BYTES)
        aiv.quiet(to)
    aiv.barrier()
    with aiv.loop("t", tiles) as t:
        origin = Origin(sender, Address(source, t * BYTES))
        aiv.read(Pipe.MTE2, window(Address(heap, t * stride), BYTES, origin=origin))
    return p.build()


def neighbour() -> Protocol:
    """Every rank puts to the one ``shift`` behind it and reads what must be from the one before it."""
    p, ranks = started("neighbour")
    shift = p.parameter("shift")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + shift) % ranks, (p.rank + ranks - 1) % ranks
    aiv.put(to, heap, source, BYTES)
    aiv.quiet(to)
    aiv.barrier()
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    return p.build()


def remainder() -> Protocol:
    """A head and the rest of ``total`` bytes: the rest is negative where the head is too long."""
    p, ranks = started("remainder")
    total, head = p.parameter("total"), p.parameter("head")
    heap = p.region("heap", RegionKind.SHARED, 2 * total)
    source = p.region("source", RegionKind.INPUT, 2 * total)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    for begin, size in ((as_expr(0), head), (head, total - head)):
        aiv.put(to, Address(heap, begin), Address(source, begin), size)
    aiv.quiet(to)
    aiv.barrier()
    origin = Origin(sender, Address(source, as_expr(0)))
    aiv.read(Pipe.MTE2, window(Address(heap, as_expr(0)), total, origin=origin))
    return p.build()


def output_tiles(*, twice: bool = False, once: bool = False) -> Protocol:
    """The cube writes ``done`` of ``tiles`` tiles of the output; the last one perhaps twice.

    ``once``: all but the first tile in the first launch only.
    """
    p, _ = started("output tiles")
    tiles, done = p.parameter("tiles", low=1), p.parameter("done", low=1)
    output = p.region("output", RegionKind.OUTPUT, tiles * BYTES, covered=True)
    aic = p.role(Role.AIC)
    with aic.loop("t", done) as t, aic.when(either(t.eq(0), p.launch.eq(0)) if once else 1):
        aic.write(Pipe.FIX, window(Address(output, t * BYTES), BYTES))
    if twice:
        aic.write(Pipe.FIX, window(Address(output, (done - 1) * BYTES), BYTES))
    return p.build()


def late_quiet(*, late: bool) -> Protocol:
    """A request whose quiet comes behind it, or at the beginning of the next launch and at no end."""
    p, ranks = started("late quiet")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to = (p.rank + 1) % ranks
    if late:
        aiv.quiet(to)
    aiv.put(to, heap, source, BYTES)
    if not late:
        aiv.quiet(to)
    return p.build()
