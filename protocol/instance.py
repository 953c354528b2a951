"""An `Instance`: a protocol at concrete parameters, as one list of events per core.

Made by `unroll`; read by the Machine and by every engine. Cores that run equal programs share one
event list. Read `order` (what is ordered inside a core) and `machine` (what events do) next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .profile import STREAM_ORDER, BarrierForm, Profile
from .program import Operation, Pipe, Protocol, Role, SetEvent, SetFlag, Span, WaitEvent, WaitFlag
from .setup import Setup


class Kind(Enum):
    """What an event does."""

    SET_FLAG = "set flag"
    WAIT_FLAG = "wait flag"
    SET_EVENT = "set event"
    WAIT_EVENT = "wait event"
    PIPE_BARRIER = "pipe barrier"
    BARRIER = "barrier"
    PUT = "put"
    QUIET = "quiet"
    READ = "read"
    WRITE = "write"
    END = "end"

    __hash__ = object.__hash__  # Enum's own is slow, and dictionaries of many events use it


class Access(NamedTuple):
    """A byte window of a region on one rank.

    ``origin`` = (rank, region, offset): for a write where its bytes come from, for a read where
    they must come from. ``add``: combines with what is there. ``share``: this block's share of the
    window, disjoint from the shares of other blocks (a contract's promise).
    """

    rank: int
    region: str
    begin: int
    end: int
    origin: tuple[int, str, int] | None = None
    add: bool = False
    share: bool = False


class Event(NamedTuple):
    """One executed operation of one core.

    ``flag`` is the counter or event id after truncation, ``raw`` as the program computed it;
    ``mode`` is that of a cross-core flag, ``link`` names the pipes of an intra-core event.
    ``barrier`` is the name of an `Assembly`. ``launch`` counts from 0.
    ``drains``: the pipes that must be empty before a scalar event happens. ``after``: indices of
    events of this core that must end before it begins (inside one Compute).
    """

    kind: Kind
    pipe: Pipe
    operation: Operation | None
    flag: int = -1
    raw: int = -1
    mode: int = -1
    peer: int = -1
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    drains: tuple[Pipe, ...] = ()
    after: tuple[int, ...] = ()
    barrier: str = ""
    link: str = ""
    launch: int = 0

    @property
    def span(self) -> Span | None:
        """Where the operation stands in the source."""
        return self.operation.span if self.operation is not None else None

    def plain(self) -> tuple[object, ...]:
        """Everything but the place in the source and the untruncated id's statement."""
        return (self.kind.name, self.pipe.name, *self[3:])


class CoreId(NamedTuple):
    """A core: one AIV or AIC of one block of one rank. Every launch runs on the same cores."""

    rank: int
    role: Role
    block: int
    sub: int = 0

    def __str__(self) -> str:
        sub = f".{self.sub}" if self.sub else ""
        return f"rank {self.rank} {self.role.name} block {self.block}{sub}"


class Core(NamedTuple):
    """A core and what it executes, in program order; every launch ends with END."""

    id: CoreId
    events: tuple[Event, ...]


class Wrap(NamedTuple):
    """An expression whose C value differs from its value over unbounded integers."""

    span: Span
    text: str
    core: CoreId
    value: int
    exact: int


class Absent(NamedTuple):
    """A set or wait that names a pipe its core lacks, so that nothing is executed."""

    operation: SetFlag | WaitFlag | SetEvent | WaitEvent
    core: CoreId
    raw: int


class Assembly(NamedTuple):
    """The cores that meet: a barrier over all ranks, over one, or a rank's cores between launches."""

    form: BarrierForm
    members: tuple[int, ...]


def assembly_name(form: BarrierForm, rank: int | None) -> str:
    """What an assembly is called: its form, with the rank if it is of one."""
    return form.name if rank is None else f"{form.name} of rank {rank}"


@dataclass(frozen=True, slots=True)
class Instance:
    """A protocol at concrete parameters, for a setup.

    ``assemblies`` are the barriers in use by name: functions of one form are one barrier.
    ``straight_line``: no event branches on memory at run time. ``wraps`` and ``absent`` are what
    unrolling noticed, one entry a place and core.
    """

    protocol: Protocol
    values: Mapping[str, int | tuple[int, ...]]
    setup: Setup
    cores: tuple[Core, ...]
    assemblies: Mapping[str, Assembly] = field(default_factory=dict)
    wraps: tuple[Wrap, ...] = ()
    absent: tuple[Absent, ...] = ()
    straight_line: bool = True

    @property
    def profile(self) -> Profile:
        """The hardware it runs on."""
        return self.setup.profile

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        value = self.values["ranks"]
        assert isinstance(value, int)
        return value

    @property
    def blocks(self) -> int:
        """The number of blocks launched on each rank."""
        value = self.values["blocks"]
        assert isinstance(value, int)
        return value

    def event_count(self) -> int:
        """Events over all cores, END included."""
        return sum(len(core.events) for core in self.cores)

    def barriers(self) -> dict[str, Assembly]:
        """The assemblies that the program calls: all but those between launches."""
        return {name: a for name, a in self.assemblies.items() if a.form is not STREAM_ORDER}

    def signature(self) -> str:
        """A hash of what every core executes: equal for instances that differ only in spans."""
        state = hashlib.sha256()
        seen: dict[int, str] = {}
        for core in self.cores:
            text = seen.get(id(core.events))
            if text is None:
                text = repr([event.plain() for event in core.events])
                seen[id(core.events)] = text
            state.update(f"{core.id}:{text}\n".encode())
        return state.hexdigest()[:16]
