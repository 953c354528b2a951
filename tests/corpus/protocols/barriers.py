"""Faults of barriers: who calls them, in which order, and what they wait for."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.expr import Element, Expr, VarKind, as_expr
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8
MIXED, VECTOR = "aclshmem_barrier_all", "aclshmemx_barrier_all_vec"


def started(name: str) -> tuple[ProtocolBuilder, Expr]:
    p = ProtocolBuilder(name)
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p, ranks


def empty_rank(*, skips: bool) -> Protocol:
    """A rank without tokens moves no data; it must not skip the meeting as well."""
    p, ranks = started("empty rank")
    p.parameter("cnt", meaning="tokens of each rank")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks

    def has_tokens(rank: Expr) -> Expr:
        return Element("cnt", rank, CType.I64, VarKind.PARAMETER) > 0

    with aiv.when(has_tokens(p.rank)):
        aiv.put(to, heap, source, BYTES)
        aiv.quiet(to)
        if skips:
            aiv.barrier()
    if not skips:
        aiv.barrier()
    with aiv.when(has_tokens(sender)):
        aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    return p.build()


def two_barriers(*, opposite: bool, cubes: bool = True) -> Protocol:
    """Two collectives, on rank 1 perhaps in the opposite order; the cubes take part in the mixed one."""
    p, _ = started("two barriers")
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.when(p.rank.eq(1) if opposite else 0):
        aiv.barrier(VECTOR)
        aiv.barrier(MIXED)
    with aiv.otherwise():
        aiv.barrier(MIXED)
        aiv.barrier(VECTOR)
    if cubes:
        aic.barrier(MIXED)
    else:
        aic.pipe_barrier()
    return p.build()


def drained(*, drain: str) -> Protocol:
    """Every rank reads what was put there, all meet, and the same bytes are put again.

    ``drain``: a pipe barrier between the reading and the meeting, of one pipe or of all, or none.
    """
    p, ranks = started("drained")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = p.region("source", RegionKind.INPUT, 2 * BYTES)
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    for turn in (0, 1):
        data = Address(source, as_expr(turn * BYTES))
        aiv.put(to, heap, data, BYTES)
        aiv.quiet(to)
        aiv.barrier()
        aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, data)))
        if turn == 0:
            if drain != "none":
                aiv.pipe_barrier(Pipe[drain])
            aiv.barrier()
    return p.build()


def on_one_rank(*, function: str, skips: bool = False, cubes: bool = True) -> Protocol:
    """Every block writes its part, the cores of the rank meet, and every block reads all parts.

    ``skips``: block 0 does not come; ``cubes``: the cubes come, as far as the function is theirs.
    """
    p, _ = started("on one rank")
    parts = p.parameter("parts", low=1, meaning="blocks of a rank")
    buffer = p.region("buffer", RegionKind.PRIVATE, parts * BYTES)
    work = p.region("work", RegionKind.INPUT, parts * BYTES)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)

    def part(index: Expr) -> tuple[Address, Origin]:
        return Address(buffer, index * BYTES), Origin(p.rank, Address(work, index * BYTES))

    place, origin = part(p.block)
    aiv.write(Pipe.MTE3, window(place, BYTES, origin=origin))
    with aiv.when(p.block > 0 if skips else 1):
        aiv.barrier(function)
    if cubes:
        aic.barrier(function)
    with aiv.loop("i", parts) as i:
        place, origin = part(i)
        aiv.read(Pipe.MTE2, window(place, BYTES, origin=origin))
    return p.build()


def across_ranks(*, function: str) -> Protocol:
    """Every rank puts to the next one, which reads after a barrier of all ranks, or of its own cores."""
    p, ranks = started("across ranks")
    heap = Address(p.region("heap", RegionKind.SHARED, BYTES), as_expr(0))
    source = Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0))
    aiv = p.role(Role.AIV)
    to, sender = (p.rank + 1) % ranks, (p.rank + ranks - 1) % ranks
    aiv.put(to, heap, source, BYTES)
    aiv.quiet(to)
    aiv.barrier(function)
    aiv.read(Pipe.MTE2, window(heap, BYTES, origin=Origin(sender, source)))
    return p.build()
