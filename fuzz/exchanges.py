"""Random protocols that the parametric engine follows: every rank sends its peers a tile a turn.

`drawn` chooses how slots, flags, peers and launches are kept apart, so that the protocol is safe, and with
a chance of one in two a fault. The differential test of proofs for all values asks about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from ..protocol.builder import ProtocolBuilder, RoleBuilder, segment_index, window
from ..protocol.expr import Const, Expr, both
from ..protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from .fan_out import DONE, PART


class Slots(Enum):
    """How the slot of a tile is computed."""

    MODULO = "%"
    MASK = "mask"
    ONE_MORE = "% (depth + 1)"


class Ids(Enum):
    """What the flag of a tile is."""

    TILE = "tile"
    SLOT = "slot"
    CONSTANT = "constant"


class Peers(Enum):
    """Who puts to whom."""

    BY_BLOCK = "block p puts to rank p"
    BY_LOOP = "block 0 puts to all, in a loop"
    NEXT = "block 0 puts to the next rank, the last one to nobody"


class Reader(Enum):
    """Who reads what has arrived."""

    CUBE = "the AIC, told by flags"
    VECTOR = "the AIV itself"


class Reuse(Enum):
    """What keeps a slot from being written again too early."""

    CREDIT = "a flag back, and a barrier"
    PEELED = "the same; the first tiles, which need none, have loops of their own"
    NEVER = "there is a slot for every tile"


class Fault(Enum):
    """What is wrong on purpose."""

    EARLY = "the credit of the tile before the right one"
    NO_FIRST_BARRIER = "no barrier between the credit and the put"
    BARRIER_FIRST = "the barrier before the credit"
    NO_LAST_BARRIER = "no barrier between the put and the flag"
    NO_QUIET = "no quiet"
    QUIET_OF_ANOTHER = "the quiet names the own rank"
    SET_FIRST = "the flag is set before the put"
    WAIT_OF_ANOTHER = "the AIC waits for another id"
    FEW_SLOTS = "the AIV turns over one slot too few"
    PLACE_BY_PEER = "the put writes where the peer's own part would be"
    NOT_LAST = "the last tile is not sent"
    ONE_BLOCK_WAITS = "only block 0 waits for the credit"
    NOT_CLOSED = "no barrier at the end"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was chosen."""

    slots: Slots
    ids: Ids
    peers: Peers
    reader: Reader
    reuse: Reuse
    closed: bool
    quiets_after: bool
    spare: int
    fault: Fault | None = None

    @property
    def assume(self) -> tuple[str, ...]:
        """What has to be assumed of the parameters, unless a fault is looked for."""
        found = ["blocks >= ranks"] if self.peers is Peers.BY_BLOCK else []
        found += ["buffer_size power of 2"] if self.slots is Slots.MASK else []
        found += ["tile_cnt <= buffer_size"] if self.reuse is Reuse.NEVER else []
        if self.closed and self.reader is Reader.CUBE:
            found += {
                Ids.TILE: ["tile_cnt <= 9"],
                Ids.SLOT: ["buffer_size <= 8"],
                Ids.CONSTANT: [],
            }[self.ids]
        return tuple(found)

    def build(self) -> Protocol:
        """The protocol."""
        return _Builder(self).build()


def drawn(random: Random, *, faulty: bool, closed: bool) -> Exchange:
    """A random one."""
    reader = random.choices(list(Reader), (4, 1))[0]
    peeled = 1 if reader is Reader.CUBE else 6  # no set is matched where several sites set for one wait
    one = Exchange(
        random.choices(list(Slots), (2, 1, 1))[0],
        random.choice(list(Ids)),
        random.choices(list(Peers), (4, 1, 3))[0],  # of what is sent in a loop, no supplier is found
        reader,
        random.choices(list(Reuse), (15, peeled, 4))[0],
        closed,
        random.random() < 0.3,
        random.choice((0, 0, 0, 1, 2)),
    )
    return replace(one, fault=random.choice(list(Fault))) if faulty else one


class _Builder:
    def __init__(self, one: Exchange) -> None:
        self.one = one
        self.p = p = ProtocolBuilder("exchange")
        self.ranks = p.parameter("ranks", low=1)
        p.parameter("blocks", low=1)
        self.depth = p.parameter("buffer_size", low=1)
        self.tiles = p.parameter("tile_cnt")
        self.size = self.depth + 1 if one.slots is Slots.ONE_MORE else self.depth
        self.heap = p.region("heap", RegionKind.SHARED, self.size * self.ranks * PART)
        self.a = p.region("a", RegionKind.INPUT, self.tiles * self.ranks * PART)
        self.c = p.region("c", RegionKind.OUTPUT, self.tiles * PART, covered=True)
        self.aiv: RoleBuilder = p.role(Role.AIV)

    def build(self) -> Protocol:
        self.in_turns(self.aiv, self.sent)
        if self.one.reader is Reader.CUBE:
            self.in_turns(self.p.role(Role.AIC), self.multiplied)
        if self.one.closed:
            self.close()
        return self.p.build()

    def has(self, fault: Fault) -> bool:
        return self.one.fault is fault

    # --- numbers --------------------------------------------------------------------------------

    def slot(self, tile: Expr, size: Expr | None = None) -> Expr:
        size = self.size if size is None else size
        return tile & (size - 1) if self.one.slots is Slots.MASK else tile % size

    def flag(self, tile: Expr) -> Expr:
        match self.one.ids:
            case Ids.TILE:
                return tile
            case Ids.SLOT:
                return self.slot(tile)
        return Const(3)

    def place(self, tile: Expr, source: Expr) -> Expr:
        return (self.slot(tile) * self.ranks + source) * PART

    def sent_place(self, tile: Expr, peer: Expr) -> Expr:
        size = self.size - 1 if self.has(Fault.FEW_SLOTS) else self.size
        source = peer if self.has(Fault.PLACE_BY_PEER) else self.p.rank
        return (self.slot(tile, size) * self.ranks + source) * PART

    # --- loops ----------------------------------------------------------------------------------

    def in_turns(self, role: RoleBuilder, body: Callable[[Expr, bool], None]) -> None:
        """``body`` for every tile; and whether it is surely one of the first ``depth``, or surely not."""
        if self.one.reuse is not Reuse.PEELED:
            with role.loop("tile", self.tiles) as tile:
                body(tile, False)
            return
        with role.loop("first", self.depth) as tile, role.when(tile < self.tiles):
            body(tile, True)
        with role.loop("tile", self.tiles, start=self.depth) as tile:
            body(tile, False)

    def sent(self, tile: Expr, early: bool) -> None:
        """What the AIV does for a tile."""
        aiv = self.aiv
        self.credit(tile, early)
        if self.has(Fault.SET_FIRST):
            self.tell(tile)
        if self.has(Fault.NOT_LAST):
            with aiv.when(tile + 1 < self.tiles):
                self.to_peers(tile)
        else:
            self.to_peers(tile)
        if not self.has(Fault.NO_LAST_BARRIER):
            for _ in range(1 + (self.one.spare == 1)):
                aiv.barrier()
        if not self.has(Fault.SET_FIRST):
            self.tell(tile)
        if self.one.reader is Reader.VECTOR:
            self.read_by_vector(tile)

    def credit(self, tile: Expr, early: bool) -> None:
        """Wait until the slot is free on every rank."""
        if early or self.one.reuse is Reuse.NEVER:
            return
        if self.one.reuse is Reuse.PEELED:
            self.wait_and_meet(tile)
        else:
            with self.aiv.when(tile >= self.depth):
                self.wait_and_meet(tile)

    def wait_and_meet(self, tile: Expr) -> None:
        aiv = self.aiv
        meets = not self.has(Fault.NO_FIRST_BARRIER)
        if meets and self.has(Fault.BARRIER_FIRST):
            aiv.barrier()
        if self.one.reader is Reader.CUBE:
            freed = self.flag(tile - self.depth + self.has(Fault.EARLY))
            if self.has(Fault.ONE_BLOCK_WAITS):
                with aiv.when(self.p.block.eq(0)):
                    aiv.wait_flag(Pipe.MTE3, freed)
            else:
                aiv.wait_flag(Pipe.MTE3, freed)
        if meets and not self.has(Fault.BARRIER_FIRST):
            aiv.barrier()

    def tell(self, tile: Expr) -> None:
        if self.one.reader is Reader.CUBE:
            self.aiv.set_flag(Pipe.MTE3, self.flag(tile))

    # --- data -----------------------------------------------------------------------------------

    def to_peers(self, tile: Expr) -> None:
        aiv, rank, block = self.aiv, self.p.rank, self.p.block
        match self.one.peers:
            case Peers.BY_BLOCK:
                with aiv.when(both(block < self.ranks, block.ne(rank))):
                    self.send(tile, block)
            case Peers.NEXT:
                with aiv.when(both(block.eq(0), rank + 1 < self.ranks)):
                    self.send(tile, rank + 1)
            case Peers.BY_LOOP:
                with aiv.when(block.eq(0)):
                    with aiv.loop("peer", self.ranks) as peer, aiv.when(peer.ne(rank)):
                        self.send(tile, peer, quiet=not self.one.quiets_after)
                    if self.one.quiets_after:
                        with aiv.loop("peer", self.ranks) as peer, aiv.when(peer.ne(rank)):
                            self.quiet(peer)

    def send(self, tile: Expr, peer: Expr, *, quiet: bool = True) -> None:
        source = Address(self.a, (tile * self.ranks + peer) * PART)
        self.aiv.put(peer, Address(self.heap, self.sent_place(tile, peer)), source, PART)
        if quiet:
            self.quiet(peer)

    def quiet(self, peer: Expr) -> None:
        if not self.has(Fault.NO_QUIET):
            self.aiv.quiet(self.p.rank if self.has(Fault.QUIET_OF_ANOTHER) else peer)

    def multiplied(self, tile: Expr, early: bool) -> None:
        """What the AIC does for a tile."""
        aic, rank = self.p.role(Role.AIC), self.p.rank
        aic.wait_flag(Pipe.MTE2, self.flag(tile + self.has(Fault.WAIT_OF_ANOTHER)))
        s = segment_index("s")
        origin = Origin(s, Address(self.a, (tile * self.ranks + rank) * PART))
        sender = s.eq(rank - 1) if self.one.peers is Peers.NEXT else s.ne(rank)
        aic.compute(
            "matmul", "s", self.ranks,
            reads=[
                window(Address(self.heap, self.place(tile, s)), PART, origin=origin, guard=sender),
                window(origin.address, PART, origin=origin, guard=s.eq(rank)),
            ],
            writes=[window(Address(self.c, tile * PART), PART)],
        )  # fmt: skip
        if self.one.spare == 2:
            aic.pipe_barrier()
        if self.one.reuse is not Reuse.NEVER:
            with aic.when(tile + self.depth < self.tiles):
                aic.set_flag(Pipe.FIX, self.flag(tile))

    def read_by_vector(self, tile: Expr) -> None:
        aiv, rank = self.aiv, self.p.rank
        with aiv.when(self.p.block.eq(0)):
            with aiv.loop("s", self.ranks) as s:
                origin = Origin(s, Address(self.a, (tile * self.ranks + rank) * PART))
                with aiv.when(s.eq(rank - 1) if self.one.peers is Peers.NEXT else s.ne(rank)):
                    aiv.read(Pipe.MTE2, window(Address(self.heap, self.place(tile, s)), PART, origin=origin))
            aiv.write(Pipe.MTE3, window(Address(self.c, tile * PART), PART))

    def close(self) -> None:
        """Every rank has read everything before any goes on to the next launch."""
        if self.one.reader is Reader.CUBE:
            self.p.role(Role.AIC).set_flag(Pipe.FIX, DONE)
            self.aiv.wait_flag(Pipe.MTE3, DONE)
        if not self.has(Fault.NOT_CLOSED):
            self.aiv.barrier()
