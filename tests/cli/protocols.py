"""Small protocols that the command is tested on, written as a user would write them."""

from mc2proof import Address, Const, Origin, Pipe, Protocol, ProtocolBuilder, RegionKind, Role, window
from mc2proof.protocol.program import Fence, Span


def started(name: str) -> ProtocolBuilder:
    p = ProtocolBuilder(name)
    p.parameter("ranks", low=2, meaning="processing elements")
    p.parameter("blocks", low=1)
    return p


def hand_over() -> Protocol:
    """Every vector core hands one flag a round to its cube core."""
    p = started("hand-over")
    rounds = p.parameter("rounds", default=3, meaning="hand-overs")
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("i", rounds) as i:
        aiv.set_flag(Pipe.MTE3, i)
    with aic.loop("i", rounds) as i:
        aic.wait_flag(Pipe.MTE2, i)
    return p.build()


def missing_set() -> Protocol:
    """The last round is never set."""
    p = started("missing-set")
    rounds = p.parameter("rounds", low=1, default=3)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("i", rounds - 1) as i:
        aiv.set_flag(Pipe.MTE3, i)
    with aic.loop("i", rounds) as i:
        aic.wait_flag(Pipe.MTE2, i)
    return p.build()


def exchange(*, quiet: bool) -> Protocol:
    """Two ranks put their input into each other's heap, and read it there after a barrier."""
    p = started("exchange" if quiet else "exchange-without-quiet")
    size = p.parameter("size", low=1, default=64)
    heap = Address(p.region("heap", RegionKind.SHARED, size), Const(0))
    source = Address(p.region("source", RegionKind.INPUT, size), Const(0))
    peer = 1 - p.rank
    aiv = p.role(Role.AIV)
    with aiv.when(p.block.eq(0)):
        aiv.put(peer, heap, source, size)
        if quiet:
            aiv.quiet(peer)
    aiv.barrier()
    with aiv.when(p.block.eq(0)):
        aiv.read(Pipe.MTE2, window(heap, size, origin=Origin(peer, source)))
    return p.build()


def safe_exchange() -> Protocol:
    return exchange(quiet=True)


def unsafe_exchange() -> Protocol:
    return exchange(quiet=False)


def fenced() -> Protocol:
    """Fences can be written down and are not decided."""
    p = started("fenced")
    p.role(Role.AIV).add(Fence(1 - p.rank, Span("mine.h", 7)))
    return p.build()


def takes_arguments(x: int) -> int:
    return x


def raises() -> Protocol:
    print("on its way")
    raise ValueError("no\nluck")


number = 3
builder = ProtocolBuilder("never-built")
ready = hand_over()
