"""Who writes and who reads which bytes: windows cut into pieces that the same writes touch.

`obligations` pairs them up into what must be ordered. Cores that run equal programs are looked at
once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.program import Compute, RegionKind, plain_text


class Place(NamedTuple):
    """An access: core, event, and the window of it that matters."""

    core: int
    event: int
    access: Access


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a reader's window that the same writes touch.

    ``needed``: writes of the right origin in the reader's launch (inputs may differ from launch to
    launch); ``others``: all other writes.
    """

    reader: Place
    begin: int
    end: int
    needed: tuple[Place, ...]
    others: tuple[Place, ...]


def distinct_cores(instance: Instance) -> list[tuple[int, ...]]:
    """Cores grouped by the event list they share, in order of their first member."""
    groups: dict[int, list[int]] = {}
    for index, core in enumerate(instance.cores):
        groups.setdefault(id(core.events), []).append(index)
    return [tuple(group) for group in groups.values()]


class Writes:
    """All writes of an instance by place, for finding those that overlap a window."""

    def __init__(self, instance: Instance) -> None:
        self.by_window: dict[tuple[int, str], dict[tuple[int, int], list[Place]]] = {}
        for core, (_, events) in enumerate(instance.cores):
            for number, event in enumerate(events):
                for access in event.writes:
                    if access.begin < access.end:
                        windows = self.by_window.setdefault((access.rank, access.region), {})
                        place = Place(core, number, access)
                        windows.setdefault((access.begin, access.end), []).append(place)
        self.sorted = {key: sorted(windows) for key, windows in self.by_window.items()}
        self._longest = {
            key: max(end - begin for begin, end in windows) for key, windows in self.sorted.items()
        }

    def overlapping(self, rank: int, region: str, begin: int, end: int) -> list[tuple[int, int]]:
        """The distinct written windows that share a byte with [begin, end), in order."""
        from bisect import bisect_left

        windows = self.sorted.get((rank, region), [])
        if not windows or begin >= end:
            return []
        first = bisect_left(windows, (begin - self._longest[rank, region] + 1, 0))
        found = []
        for window in windows[first:]:
            if window[0] >= end:
                break
            if window[1] > begin:
                found.append(window)
        return found


def pieces(instance: Instance, writes: Writes, reader: Place) -> list[Piece]:
    """The reader's window cut where the set of writes that touch it changes.

    A window of an input that nobody writes yields no piece if it is its own origin.
    """
    access = reader.access
    if access.begin >= access.end or access.origin is None:
        return []
    windows = writes.overlapping(access.rank, access.region, access.begin, access.end)
    if not windows and access.origin == (access.rank, access.region, access.begin):
        return []
    cuts = {access.begin, access.end}
    for begin, end in windows:
        cuts |= {max(begin, access.begin), min(end, access.end)}
    edges = sorted(cuts)
    by_window = writes.by_window.get((access.rank, access.region), {})
    result = []
    for begin, end in itertools.pairwise(edges):
        touching = [
            place
            for window in windows
            if window[0] < end and window[1] > begin
            for place in by_window[window]
        ]
        if not touching and access.origin == (access.rank, access.region, access.begin):
            continue  # the input itself, and nobody writes these bytes of it
        touching.sort(key=lambda place: (place.core, place.event))
        apart: dict[bool, list[Place]] = {True: [], False: []}
        for place in touching:
            apart[_is_needed(instance, place, reader)].append(place)
        result.append(Piece(reader, begin, end, tuple(apart[True]), tuple(apart[False])))
    return result


def _is_needed(instance: Instance, write: Place, reader: Place) -> bool:
    if not _delivers(write.access, reader.access):
        return False
    return launch_of(instance, write) == launch_of(instance, reader)


def launch_of(instance: Instance, place: Place) -> int:
    return instance.cores[place.core].events[place.event].launch


def _delivers(write: Access, read: Access) -> bool:
    """Whether the bytes that ``write`` puts there are those that ``read`` must find.

    A write that adds leaves a sum there, which is no single origin.
    """
    if write.origin is None or read.origin is None or write.add:
        return False
    return (
        write.origin[:2] == read.origin[:2] and write.origin[2] - write.begin == read.origin[2] - read.begin
    )


def all_pieces(instance: Instance, writes: Writes) -> list[tuple[tuple[int, ...], list[Piece]]]:
    """For every group of equal cores that reads: its cores and the pieces of their reads."""
    result = []
    for cores in distinct_cores(instance):
        found: list[Piece] = []
        for number, event in enumerate(instance.cores[cores[0]].events):
            if event.kind is Kind.READ:
                for access in event.reads:
                    found += pieces(instance, writes, Place(cores[0], number, access))
        if found:
            result.append((cores, found))
    return result


def contract_of(event: Event) -> str:
    """What call a share of a window belongs to; empty for a write that is no share.

    Calls that stand at several places, alike in all but that, are one: in each branch a block may
    take.
    """
    operation = event.operation
    return _call_text(_Same(operation)) if isinstance(operation, Compute) else ""


class _Same:
    """An operation that is compared by identity: comparing its expressions would take long."""

    __slots__ = ("operation",)

    def __init__(self, operation: Compute) -> None:
        self.operation = operation

    def __hash__(self) -> int:
        return id(self.operation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.operation is self.operation


@lru_cache(maxsize=256)
def _call_text(call: _Same) -> str:
    """The call without its places, and without the name of its segment index."""
    return plain_text(call.operation).replace(plain_text(call.operation.segment), "segment")


def shared_regions(instance: Instance) -> frozenset[str]:
    """Names of the regions that other ranks can reach."""
    return frozenset(r.name for r in instance.protocol.regions if r.kind is RegionKind.SHARED)


def all_events(instance: Instance) -> Iterable[Event]:
    """The events of all cores, equal cores once."""
    for cores in distinct_cores(instance):
        yield from instance.cores[cores[0]].events
