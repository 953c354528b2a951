"""Faults of flags and events: who sets how often, with which id, and whether anybody waits for it."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.expr import Element, Expr, VarKind, as_expr, cast
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str) -> ProtocolBuilder:
    p = ProtocolBuilder(name)
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def folded_ids(*, setter: int, waiter: int) -> Protocol:
    """One logical flag a group, folded onto few ids; both sides must fold alike."""
    p = started("folded ids")
    groups = p.parameter("groups")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    with aic.loop("g", groups) as g:
        aic.set_flag(Pipe.FIX, g / setter)
    with aiv.loop("g", groups) as g:
        aiv.wait_flag(Pipe.MTE2, g / waiter)
    return p.build()


def group_signal(*, signal: str) -> Protocol:
    """A signal a group, given where a group's last item is done, where it has any, or always."""
    p = started("group signal")
    groups = p.parameter("groups")
    p.parameter("cnt", meaning="items of each group")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)

    def count(group: Expr) -> Expr:
        return Element("cnt", group, CType.I64, VarKind.PARAMETER)

    with aic.loop("g", groups) as g:
        if signal == "after the last item":
            with aic.loop("t", count(g)) as t:
                aic.pipe_barrier(Pipe.M)
                with aic.when((t + 1).eq(count(g))):
                    aic.set_flag(Pipe.FIX, 0)
        elif signal == "where there are items":
            with aic.when(count(g) > 0):
                aic.set_flag(Pipe.FIX, 0)
        else:
            aic.set_flag(Pipe.FIX, 0)
    with aiv.loop("g", groups):
        aiv.wait_flag(Pipe.MTE2, 0)
    return p.build()


def ping_pong(
    *, prologue: bool = True, epilogue: bool = True, free: bool = True, data: bool = True, event: int = 0
) -> Protocol:
    """Two buffers between two pipes of one core, with an event each way for each buffer."""
    p = started("ping pong")
    steps = p.parameter("steps")
    ub = p.region("ub", RegionKind.PRIVATE, 2 * BYTES)
    source = p.region("source", RegionKind.INPUT, steps * BYTES)
    aiv = p.role(Role.AIV)
    if free and prologue:
        for buffer in (0, 1):
            aiv.set_event(Pipe.MTE3, Pipe.MTE2, event + buffer)
    with aiv.loop("i", steps) as i:
        place, origin = Address(ub, i % 2 * BYTES), Origin(p.rank, Address(source, i * BYTES))
        if free:
            aiv.wait_event(Pipe.MTE3, Pipe.MTE2, event + i % 2)
        if data:
            aiv.write(Pipe.MTE2, window(place, BYTES, origin=origin))
        aiv.set_event(Pipe.MTE2, Pipe.MTE3, event + i % 2)
        aiv.wait_event(Pipe.MTE2, Pipe.MTE3, event + i % 2)
        if data:
            aiv.read(Pipe.MTE3, window(place, BYTES, origin=origin))
        if free:
            aiv.set_event(Pipe.MTE3, Pipe.MTE2, event + i % 2)
    if free and epilogue:
        for buffer in (0, 1):
            aiv.wait_event(Pipe.MTE3, Pipe.MTE2, event + buffer)
    return p.build()


def backlog(*, window_size: int | None = None) -> Protocol:
    """A producer that signals every tile on one flag; with a window it waits for acknowledgements."""
    p = started("backlog")
    tiles = p.parameter("tiles")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    with aic.loop("t", tiles) as t:
        if window_size is not None:
            with aic.when(t >= window_size):
                aic.wait_flag(Pipe.FIX, 1)
        aic.set_flag(Pipe.FIX, 0)
    with aiv.loop("t", tiles) as t:
        aiv.wait_flag(Pipe.MTE2, 0)
        if window_size is not None:
            with aiv.when(t + window_size < tiles):
                aiv.set_flag(Pipe.MTE2, 1)
    return p.build()


def id_per_tile(*, from_aiv: bool = False, barrier: bool = False) -> Protocol:
    """The tile's number is its flag id; a barrier takes some of the ids for itself."""
    p = started("id per tile")
    tiles = p.parameter("tiles")
    setter, waiter = (Role.AIV, Role.AIC) if from_aiv else (Role.AIC, Role.AIV)
    if barrier:
        for role in Role:
            p.role(role).barrier()
    with p.role(setter).loop("t", tiles) as t:
        p.role(setter).set_flag(Pipe.MTE3 if from_aiv else Pipe.FIX, t)
    with p.role(waiter).loop("t", tiles) as t:
        p.role(waiter).wait_flag(Pipe.MTE2, t)
    return p.build()


def peeled_wait(*, guarded: bool) -> Protocol:
    """The consumer's first wait stands before its loop: wrong where nothing is ever produced."""
    p = started("peeled wait")
    chunks = p.parameter("chunks")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    with aic.loop("i", chunks):
        aic.set_flag(Pipe.FIX, 0)
    with aiv.when(chunks > 0 if guarded else 1):
        aiv.wait_flag(Pipe.MTE2, 0)
    with aiv.loop("i", chunks, start=1):
        aiv.wait_flag(Pipe.MTE2, 0)
    return p.build()


def named_pipe(*, pipe: str, mode: int = 2) -> Protocol:
    """One set on a pipe that the core has, or has not; in a mode that is decided, or is not."""
    p = started("named pipe")
    p.role(Role.AIC).set_flag(Pipe[pipe], 3, mode=mode)
    p.role(Role.AIV).wait_flag(Pipe.MTE2, 3)
    return p.build()


def choice_of_sets(*, sets: int) -> Protocol:
    """A flag that two pipes set: no wait has a set of its own, and the backlog is what all sets give."""
    p = started("choice of sets")
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    for _ in range(sets):
        aiv.set_flag(Pipe.MTE3, 0)
        aiv.set_flag(Pipe.V, 0)
    with aic.loop("i", 2 * sets):
        aic.wait_flag(Pipe.MTE2, 0)
    return p.build()


def unsigned_guard(*, guarded: bool) -> Protocol:
    """The last ``depth`` tiles signal nothing: ``t < tiles - depth`` in unsigned wraps for few tiles."""
    p = started("unsigned guard")
    tiles, depth = p.parameter("tiles"), p.parameter("depth")
    buffer = Address(p.region("buffer", RegionKind.PRIVATE, BYTES), as_expr(0))
    aic, aiv = p.role(Role.AIC), p.role(Role.AIV)
    with aic.loop("t", tiles) as t:
        aic.write(Pipe.FIX, window(buffer, BYTES))
        last = tiles - depth if guarded else cast(CType.U64, tiles) - cast(CType.U64, depth)
        with aic.when(cast(last.type, t) < last):
            aic.set_flag(Pipe.FIX, 0)
    with aiv.loop("t", tiles - depth):
        aiv.wait_flag(Pipe.MTE2, 0)
    return p.build()
