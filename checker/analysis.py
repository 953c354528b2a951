"""Everything that engines need to know about one instance, computed once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..protocol.instance import Instance, Kind
from ..protocol.program import RegionKind, Span
from ..protocol.sync import Sync, synchronise
from .obligations import (
    Obligation,
    Piece,
    Writes,
    all_events,
    all_pieces,
    backlog_obligations,
    memory_obligations,
    shared_regions,
)


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
    """What occurs at all: a property is VACUOUS where nothing it speaks of does."""

    blocks_somewhere: bool
    remote_writes: bool
    shared_reads: bool
    requests: bool


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
    obligations += backlog_obligations(sync, cap=instance.profile.counter_cap)
    return Analysis(instance, sync, tuple(groups), tuple(obligations), _kinds(instance), _forwarded(instance))


def _kinds(instance: Instance) -> Kinds:
    shared = shared_regions(instance)
    blocking = puts = reads = False
    for event in all_events(instance):
        blocking = blocking or event.kind in _BLOCKING
        puts = puts or event.kind is Kind.PUT
        if event.kind is Kind.READ:
            reads = reads or any(a.region in shared for a in event.reads)
    return Kinds(blocking, puts, reads, puts)


def _forwarded(instance: Instance) -> Span | None:
    """The place of the first put whose source is not an input, if there is one."""
    inputs = {r.name for r in instance.protocol.regions if r.kind is RegionKind.INPUT}
    for event in all_events(instance):
        if event.kind is Kind.PUT and any(a.region not in inputs and a.begin < a.end for a in event.reads):
            return event.span
    return None
