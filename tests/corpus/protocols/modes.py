"""Faults of flag modes: who must set for one event, and whose counter rises."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import Expr, as_expr
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8
OUT = {Role.AIV: Pipe.MTE3, Role.AIC: Pipe.FIX}
"""The pipe on which each kind of core writes."""


def started(name: str, *, vectors: int = 1) -> ProtocolBuilder:
    p = ProtocolBuilder(name, vectors_per_cube=vectors)
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def all_to_all(*, mode: int, role: str = "AIV", vectors: int = 1, absent: bool = False) -> Protocol:
    """Every core of a role writes its part, all set and wait, and every core reads all parts.

    ``absent``: the first of them does not set.
    """
    p = started("all to all", vectors=vectors)
    blocks = p.parameter("parts", low=1, meaning="cores of the role on a rank")
    parts = p.region("parts of all", RegionKind.PRIVATE, blocks * BYTES)
    work = p.region("work", RegionKind.INPUT, blocks * BYTES)
    core = p.role(Role[role])
    me = p.block * vectors + p.sub

    def part(index: Expr) -> tuple[Address, Origin]:
        return Address(parts, index * BYTES), Origin(p.rank, Address(work, index * BYTES))

    place, origin = part(me)
    core.write(OUT[Role[role]], window(place, BYTES, origin=origin))
    with core.when(me > 0 if absent else 1):
        core.set_flag(OUT[Role[role]], 0, mode=mode)
    core.wait_flag(Pipe.MTE2, 0, mode=mode)
    with core.loop("i", blocks) as i:
        place, origin = part(i)
        core.read(Pipe.MTE2, window(place, BYTES, origin=origin))
    return p.build()


def gather(*, setters: str = "both", waits: int = 1, rounds: int = 1) -> Protocol:
    """Both vectors write their half, the cube reads the whole: one event needs a set of each."""
    p = started("gather", vectors=2)
    buffer = p.region("buffer", RegionKind.PRIVATE, 2 * BYTES)
    work = p.region("work", RegionKind.INPUT, 2 * BYTES)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    half = Origin(p.rank, Address(work, p.sub * BYTES))
    aiv.write(Pipe.MTE3, window(Address(buffer, p.sub * BYTES), BYTES, origin=half))
    with aiv.when(1 if setters == "both" else p.sub.eq(0)), aiv.loop("round", rounds):
        aiv.set_flag(Pipe.MTE3, 0)
    with aic.loop("round", waits * rounds):
        aic.wait_flag(Pipe.MTE2, 0)
    whole = Origin(p.rank, Address(work, as_expr(0)))
    aic.read(Pipe.MTE2, window(Address(buffer, as_expr(0)), 2 * BYTES, origin=whole))
    return p.build()


def scatter(*, sets: int = 1, waiters: str = "both") -> Protocol:
    """The cube writes, both vectors read: one set raises the counter of each."""
    p = started("scatter", vectors=2)
    buffer = Address(p.region("buffer", RegionKind.PRIVATE, BYTES), as_expr(0))
    origin = Origin(p.rank, Address(p.region("work", RegionKind.INPUT, BYTES), as_expr(0)))
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    aic.write(Pipe.FIX, window(buffer, BYTES, origin=origin))
    for _ in range(sets):
        aic.set_flag(Pipe.FIX, 0)
    with aiv.when(1 if waiters == "both" else p.sub.eq(0)):
        aiv.wait_flag(Pipe.MTE2, 0)
        aiv.read(Pipe.MTE2, window(buffer, BYTES, origin=origin))
    return p.build()


def partners(*, from_cube: bool, second: int) -> Protocol:
    """The cube and each of its vectors alone, in mode 4; it names its second vector by ``second``."""
    p = started("partners", vectors=2)
    buffer = p.region("buffer", RegionKind.PRIVATE, 2 * BYTES)
    work = p.region("work", RegionKind.INPUT, 2 * BYTES)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    ids = (0, second)

    def half(index: Expr) -> tuple[Address, Origin]:
        return Address(buffer, index * BYTES), Origin(p.rank, Address(work, index * BYTES))

    place, origin = half(p.sub)
    mine = window(place, BYTES, origin=origin)
    if from_cube:
        aiv.wait_flag(Pipe.MTE2, 0, mode=4)
        aiv.read(Pipe.MTE2, mine)
    else:
        aiv.write(Pipe.MTE3, mine)
        aiv.set_flag(Pipe.MTE3, 0, mode=4)
    for number, flag in enumerate(ids):
        place, origin = half(as_expr(number))
        what = window(place, BYTES, origin=origin)
        if from_cube:
            aic.write(Pipe.FIX, what)
            aic.set_flag(Pipe.FIX, flag, mode=4)
        else:
            aic.wait_flag(Pipe.MTE2, flag, mode=4)
            aic.read(Pipe.MTE2, what)
    return p.build()


def one_partner(*, mode: int = 4, wait_mode: int | None = None, vectors: int = 2) -> Protocol:
    """One set and one wait in a mode that the hardware has, or has not; the wait perhaps in another."""
    p = started("one partner", vectors=vectors)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.when(p.sub.eq(0)):
        aiv.set_flag(Pipe.MTE3, 0, mode=mode)
    aic.wait_flag(Pipe.MTE2, 0, mode=mode if wait_mode is None else wait_mode)
    return p.build()


def scalar_set(*, mode: int, drained: bool) -> Protocol:
    """A vector writes and sets on its scalar pipe, which only mode 4 has and no write on MTE3 holds."""
    p = started("scalar set", vectors=2)
    buffer = Address(p.region("buffer", RegionKind.PRIVATE, BYTES), as_expr(0))
    origin = Origin(p.rank, Address(p.region("work", RegionKind.INPUT, BYTES), as_expr(0)))
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.when(p.sub.eq(0)):
        aiv.write(Pipe.MTE3, window(buffer, BYTES, origin=origin))
        if drained:
            aiv.pipe_barrier()
        aiv.set_flag(Pipe.S, 0, mode=mode)
    aic.wait_flag(Pipe.MTE2, 0, mode=mode)
    aic.read(Pipe.MTE2, window(buffer, BYTES, origin=origin))
    return p.build()


def changed_mode(*, form: str) -> Protocol:
    """The vector sets an id for its cube, and then in mode 0 for all vectors.

    ``form``: at once, after the cube's answer, with another id, or in another launch, where the cube
    may have left the last set over.
    """
    p = started("changed mode")
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    by_launch = form.startswith("another launch")
    with aiv.when(p.launch.eq(0) if by_launch else 1):
        aiv.set_flag(Pipe.MTE3, 0)
    with aic.when(0 if form.endswith("left over") else p.launch.eq(0) if by_launch else 1):
        aic.wait_flag(Pipe.FIX, 0)
    if form == "after an answer":
        aic.set_flag(Pipe.FIX, 1)
        aiv.wait_flag(Pipe.MTE3, 1)
    flag = 2 if form == "another id" else 0
    with aiv.when(p.launch.eq(1) if by_launch else 1):
        aiv.set_flag(Pipe.MTE3, flag, mode=0)
        aiv.wait_flag(Pipe.MTE2, flag, mode=0)
    return p.build()
