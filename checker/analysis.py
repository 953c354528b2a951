"""Everything that engines need to know about one instance, computed once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..protocol.instance import Instance, Kind
from ..protocol.program import RegionKind, Span
from ..protocol.sync import Sync, synchronise
from .flag_obligations import flag_obligations
from .obligations import Obligation, memory_obligations
from .pieces import Piece, Writes, all_events, all_pieces


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector: engines build many objects and none of them in cycles.

    It would visit all of them again and again, for about a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Kinds:
    """What occurs at all: a property is VACUOUS where nothing it speaks of does.

    ``written`` and ``read`` name the regions, inputs and outputs apart, that are written and read.
    """

    blocks_somewhere: bool
    requests: bool
    written: frozenset[str]
    read: frozenset[str]


@dataclass(frozen=True, slots=True)
class Analysis:
    """One instance with its points, the pieces of its reads, and all obligations in order.

    ``forwarded``: a put that sends on bytes which are no input. What such bytes must be, nothing
    says, so rows that judge data cannot be PROVED.
    """

    instance: Instance
    sync: Sync
    groups: tuple[tuple[tuple[int, ...], list[Piece]], ...]
    obligations: tuple[Obligation, ...]
    kinds: Kinds
    forwarded: Span | None

    def of(self, name: str) -> list[int]:
        """Indices of the obligations of property ``name``."""
        return [i for i, o in enumerate(self.obligations) if o.property == name]


_BLOCKING = frozenset({Kind.WAIT_FLAG, Kind.WAIT_EVENT, Kind.BARRIER, Kind.QUIET, Kind.PIPE_BARRIER})


def analyse(instance: Instance) -> Analysis:
    """The analysis of ``instance``."""
    sync = synchronise(instance)
    writes = Writes(instance)
    groups = all_pieces(instance, writes)
    obligations = memory_obligations(sync, writes, groups)
    obligations += flag_obligations(sync)
    return Analysis(instance, sync, tuple(groups), tuple(obligations), _kinds(instance), _forwarded(instance))


def _kinds(instance: Instance) -> Kinds:
    own = {RegionKind.INPUT, RegionKind.OUTPUT}
    outside = {r.name for r in instance.protocol.regions if r.kind in own}
    kinds: set[Kind] = set()
    written: set[str] = set()
    read: set[str] = set()
    for event in all_events(instance):
        if event.operation is not None:  # the order of launches is not the program's
            kinds.add(event.kind)
        written |= {a.region for a in event.writes}
        if event.kind is Kind.READ:
            read |= {a.region for a in event.reads}
    return Kinds(
        not kinds.isdisjoint(_BLOCKING),
        Kind.PUT in kinds,
        frozenset(written - outside),
        frozenset(read - outside),
    )


def _forwarded(instance: Instance) -> Span | None:
    """The place of the first put whose source is not an input, if there is one."""
    inputs = {r.name for r in instance.protocol.regions if r.kind is RegionKind.INPUT}
    for event in all_events(instance):
        if event.kind is Kind.PUT and any(a.region not in inputs and a.begin < a.end for a in event.reads):
            return event.span
    return None
