"""Faults of ids: who else uses a number, and what the hardware makes of one that is too large."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str, *, vectors: int = 1) -> ProtocolBuilder:
    p = ProtocolBuilder(name, vectors_per_cube=vectors)
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def beside_barrier(*, barrier: str, setter: str, flag: int) -> Protocol:
    """A barrier, and one flag between the cube and its vector."""
    p = started("beside a barrier")
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    for role in (aiv, aic):
        role.barrier(barrier)
    if setter == "AIV":
        aiv.set_flag(Pipe.MTE3, flag)
        aic.wait_flag(Pipe.MTE2, flag)
    else:
        aic.set_flag(Pipe.FIX, flag)
        aiv.wait_flag(Pipe.MTE2, flag)
    return p.build()


def second_vector(*, barrier: str, flag: int, from_cube: bool = False) -> Protocol:
    """A barrier of all cores, and a mode-4 flag between the cube and its second vector.

    The vector's id ``flag`` is the cube's ``flag`` + 16.
    """
    p = started("second vector", vectors=2)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    if barrier:
        for role in (aiv, aic):
            role.barrier(barrier)
    second = p.sub.eq(1)
    if from_cube:
        aic.set_flag(Pipe.FIX, flag + 16, mode=4)
        with aiv.when(second):
            aiv.wait_flag(Pipe.MTE2, flag, mode=4)
    else:
        with aiv.when(second):
            aiv.set_flag(Pipe.MTE3, flag, mode=4)
        aic.wait_flag(Pipe.MTE2, flag + 16, mode=4)
    return p.build()


def two_flags(*, second: int) -> Protocol:
    """The cube announces two buffers by flags of their own; the vector takes the second one first."""
    p = started("two flags")
    buffers = p.region("buffers", RegionKind.PRIVATE, 2 * BYTES)
    work = p.region("work", RegionKind.INPUT, 2 * BYTES)
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    flags = (0, second)

    def buffer(number: int) -> Address:
        return Address(buffers, as_expr(number * BYTES))

    def origin(number: int) -> Origin:
        return Origin(p.rank, Address(work, as_expr(number * BYTES)))

    for number in (0, 1):
        aic.write(Pipe.FIX, window(buffer(number), BYTES, origin=origin(number)))
        aic.set_flag(Pipe.FIX, flags[number])
    for number in (1, 0):
        aiv.wait_flag(Pipe.MTE2, flags[number])
        aiv.read(Pipe.MTE2, window(buffer(number), BYTES, origin=origin(number)))
    return p.build()


def event_pipes(*, role: str) -> Protocol:
    """An event from the cube unit to its output pipe: on a vector core it compiles to nothing."""
    p = started("event pipes")
    core = p.role(Role[role])
    core.set_event(Pipe.M, Pipe.FIX, 0)
    core.wait_event(Pipe.M, Pipe.FIX, 0)
    return p.build()


def absent_wait(*, wait_pipe: str) -> Protocol:
    """The vector reads what the cube announces; its wait names a pipe that it has, or has not."""
    p = started("absent wait")
    slot = Address(p.region("slot", RegionKind.PRIVATE, BYTES), as_expr(0))
    origin = Origin(p.rank, Address(p.region("work", RegionKind.INPUT, BYTES), as_expr(0)))
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    aic.write(Pipe.FIX, window(slot, BYTES, origin=origin))
    aic.set_flag(Pipe.FIX, 0)
    aiv.wait_flag(Pipe[wait_pipe], 0)
    aiv.read(Pipe.MTE2, window(slot, BYTES, origin=origin))
    return p.build()
