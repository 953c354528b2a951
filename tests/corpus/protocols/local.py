"""Faults inside one core: what orders two pipes and what does not."""

from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

BYTES = 8


def started(name: str) -> ProtocolBuilder:
    p = ProtocolBuilder(name)
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def handed_on(*, by: str) -> Protocol:
    """One pipe brings in what another computes on.

    ``by``: an event, an event toward another pipe, a pipe barrier of one pipe or of all, or nothing.
    """
    p = started("handed on")
    ub = Address(p.region("ub", RegionKind.PRIVATE, BYTES), as_expr(0))
    origin = Origin(p.rank, Address(p.region("source", RegionKind.INPUT, BYTES), as_expr(0)))
    aiv = p.role(Role.AIV)
    aiv.write(Pipe.MTE2, window(ub, BYTES, origin=origin))
    if by in ("event", "event toward another pipe"):
        target = Pipe.V if by == "event" else Pipe.MTE3
        aiv.set_event(Pipe.MTE2, target, 0)
        aiv.wait_event(Pipe.MTE2, target, 0)
    elif by in ("barrier MTE2", "barrier V", "barrier ALL"):
        aiv.pipe_barrier(Pipe[by.split()[1]])
    aiv.read(Pipe.V, window(ub, BYTES, origin=origin))
    return p.build()


def set_again(*, awaited: bool, drain: str = "nothing") -> Protocol:
    """An event is set, perhaps awaited, and set again; in the end the core may empty its pipes.

    ``drain``: by a pipe barrier, by a barrier of all ranks, or not.
    """
    p = started("set again")
    aiv = p.role(Role.AIV)
    if awaited:
        for _ in range(2):
            aiv.set_event(Pipe.MTE2, Pipe.V, 0)
            aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
            aiv.set_event(Pipe.V, Pipe.MTE2, 0)
            aiv.wait_event(Pipe.V, Pipe.MTE2, 0)
    else:
        for _ in range(2):
            aiv.set_event(Pipe.MTE2, Pipe.V, 0)
        for _ in range(2):
            aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
    if drain == "pipe barrier":
        aiv.pipe_barrier()
    elif drain == "barrier":
        aiv.barrier()
    return p.build()
