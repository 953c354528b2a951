"""What has to be ordered: the questions that properties pose and engines decide.

An obligation is a conjunction of clauses about two points (see `protocol.order`); it is VIOLATED
where all its clauses hold. Engines know clauses, not properties. `memory_obligations` pairs the
writes and reads of an instance; `backlog_obligations` bounds its counters.

Pairs that follow from others are left out: for two writes a, b of one pipe, in this order, every
later write c of that pipe begins after b, so that "a ends before b begins" covers c too, and "the
reader ends before b begins" likewise. Writes of the same launch and of later ones are apart in this:
an obligation between two launches is one of the property relaunch, whatever else it would be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ..protocol.cinteger import CType
from ..protocol.expr import Var, VarKind
from ..protocol.flags import Counter
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.program import Compute, RegionKind, plain_text
from ..protocol.sync import Queue, Sync, Use

NEVER = -1
"""As the first point of a clause: a point that never happens."""


class Clause(NamedTuple):
    """ "``first`` comes before ``then`` in every timing" is ``ordered``.

    Vacuously true if ``then`` never happens. Where an obligation stands for several equal cores,
    ``first`` or ``then`` has one point for each of them.
    """

    first: tuple[int, ...]
    then: tuple[int, ...]
    ordered: bool = False


class Place(NamedTuple):
    """An access: core, event, and the window of it that matters."""

    core: int
    event: int
    access: Access


@dataclass(frozen=True, slots=True)
class Obligation:
    """VIOLATED if, for one of its ``width`` equal cores, all ``clauses`` hold.

    Or, where ``counter`` is given, if some timing takes that counter above ``cap``.
    ``actors`` are the accesses it speaks of, in the order in which a reader wants them.
    """

    property: str
    code: str
    clauses: tuple[Clause, ...]
    actors: tuple[Place, ...]
    width: int = 1
    counter: Counter | None = None
    cap: int = 0

    def clauses_at(self, index: int) -> list[tuple[int, int, bool]]:
        """The clauses for equal core number ``index``."""
        return [(c.first[index % len(c.first)], c.then[index % len(c.then)], c.ordered) for c in self.clauses]


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
        launch = _launch(instance, reader)
        needed = tuple(p for p in touching if _delivers(p.access, access) and _launch(instance, p) == launch)
        others = tuple(p for p in touching if p not in needed)
        result.append(Piece(reader, begin, end, needed, others))
    return result


def _launch(instance: Instance, place: Place) -> int:
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


def memory_obligations(
    sync: Sync, writes: Writes, groups: Sequence[tuple[tuple[int, ...], list[Piece]]]
) -> list[Obligation]:
    """Every obligation of the memory rows and of completion, in program order of the readers."""
    result: list[Obligation] = []
    for cores, found in groups:
        for piece in found:
            result += _reader_obligations(sync, cores, piece)
    result += _source_obligations(sync, writes)
    result += _conflicts(sync, writes)
    result += _queue_races(sync)
    result += _completions(sync)
    return result


def _reader_obligations(sync: Sync, cores: tuple[int, ...], piece: Piece) -> Iterator[Obligation]:
    reader = piece.reader
    begins = tuple(sync.begin(core, reader.event) for core in cores)
    ends = tuple(sync.end(core, reader.event) for core in cores)
    width = len(cores)
    if not piece.needed:
        code = "foreign-data" if piece.others else "never-written"
        clause = Clause((NEVER,), begins)
        actors = (_cut(reader, piece), *(_cut(p, piece) for p in piece.others[:1]))
        yield Obligation("no-read-before-write", code, (clause,), actors, width)
        return
    chosen = piece.needed[-1]
    needed = _cut(chosen, piece)
    arrival = Clause((sync.end(chosen.core, chosen.event),), begins)
    yield Obligation(
        "no-read-before-write", "read-before-write", (arrival,), (_cut(reader, piece), needed), width
    )
    for place in piece.needed:
        if sync.instance.cores[place.core].events[place.event].kind is Kind.PUT:
            posted = Clause((sync.begin(place.core, place.event),), begins, ordered=True)
            landed = Clause((sync.end(place.core, place.event),), begins)
            yield Obligation(
                "completion", "request-not-complete", (posted, landed), (place, _cut(reader, piece)), width
            )
    for place in _first_after(sync, piece):
        writer_begins = (sync.begin(place.core, place.event),)
        clauses = (
            Clause(ends, writer_begins),
            Clause(writer_begins, (sync.begin(chosen.core, chosen.event),)),
            Clause((NEVER,), begins),  # a reader that never begins needs nothing
        )
        actors = (_cut(place, piece), _cut(reader, piece), needed)
        name, code = _named(sync, "no-overwrite-before-read", "overwrite", place, reader)
        yield Obligation(name, code, clauses, actors, width)


def _named(sync: Sync, name: str, code: str, a: Place, b: Place) -> tuple[str, str]:
    """Property and code of an obligation between ``a`` and ``b``: relaunch if their launches differ."""
    if _launch(sync.instance, a) == _launch(sync.instance, b):
        return name, code
    return "relaunch", f"relaunch-{code}"


def _cut(place: Place, piece: Piece) -> Place:
    """``place`` with its window narrowed to the piece."""
    return Place(place.core, place.event, place.access._replace(begin=piece.begin, end=piece.end))


def _pipe_of(sync: Sync, place: Place) -> tuple[int, str]:
    return place.core, sync.instance.cores[place.core].events[place.event].pipe.name


def _first_after(sync: Sync, piece: Piece) -> list[Place]:
    """The other writes that matter: of the pipe that makes the needed write, the next one only.

    The next of the same launch and the next of a later one. Earlier ones of that pipe begin before
    it; later ones begin after the next. A second delivery of the same bytes is an other write as
    well: a reader needs *one*, here the last in program order.
    """
    needed = piece.needed[-1]
    pipe, launch = _pipe_of(sync, needed), _launch(sync.instance, needed)
    result: list[Place] = []
    following: dict[bool, Place] = {}
    for place in (*piece.needed[:-1], *piece.others):
        if _pipe_of(sync, place) != pipe:
            result.append(place)
        elif place.event > needed.event:
            later = _launch(sync.instance, place) > launch
            if later not in following or place.event < following[later].event:
                following[later] = place
    return result + [following[later] for later in sorted(following)]


def _source_obligations(sync: Sync, writes: Writes) -> Iterator[Obligation]:
    """Reads that state no origin: nobody may write the bytes meanwhile.

    A put reads its source until it is complete; a Read by hand may leave its origin out.
    """
    for core, (_, events) in enumerate(sync.instance.cores):
        for number, event in enumerate(events):
            for access in event.reads:
                if access.origin is not None:
                    continue
                reader = Place(core, number, access)
                for window in writes.overlapping(access.rank, access.region, access.begin, access.end):
                    for place in writes.by_window[access.rank, access.region][window]:
                        if (place.core, place.event) != (core, number):
                            yield _unordered(
                                sync, "no-overwrite-before-read", "source-overwritten", place, reader
                            )


def _unordered(sync: Sync, prop: str, code: str, a: Place, b: Place) -> Obligation:
    clauses = (
        Clause((sync.end(a.core, a.event),), (sync.begin(b.core, b.event),)),
        Clause((sync.end(b.core, b.event),), (sync.begin(a.core, a.event),)),
    )
    return Obligation(*_named(sync, prop, code, a, b), clauses, (a, b))


def _conflicts(sync: Sync, writes: Writes) -> Iterator[Obligation]:
    for key, windows in writes.sorted.items():
        by_window = writes.by_window[key]
        for i, window in enumerate(windows):
            yield from _conflicts_within(sync, by_window[window])
            for other in windows[i + 1 :]:
                if other[0] >= window[1]:
                    break
                for a in by_window[window]:
                    for b in by_window[other]:
                        if _may_conflict(sync, a, b):
                            yield _unordered(sync, "no-write-conflict", "write-conflict", a, b)


def _conflicts_within(sync: Sync, places: list[Place]) -> Iterator[Obligation]:
    """Pairs among writes of one window: neighbours of one pipe, and all pairs of different pipes."""
    pipes: dict[tuple[int, str], list[Place]] = {}
    for place in places:
        pipes.setdefault(_pipe_of(sync, place), []).append(place)
    for chain in pipes.values():
        for a, b in _neighbours(sync, chain):
            if _may_conflict(sync, a, b):
                yield _unordered(sync, "no-write-conflict", "write-conflict", a, b)
    chains = list(pipes.values())
    for i, chain in enumerate(chains):
        for other in chains[i + 1 :]:
            for a in chain:
                for b in other:
                    if _may_conflict(sync, a, b):
                        yield _unordered(sync, "no-write-conflict", "write-conflict", a, b)


def _neighbours(sync: Sync, chain: list[Place]) -> Iterator[tuple[Place, Place]]:
    """Each write of one pipe with the next of its launch, and with the next of a later launch."""
    launches = [_launch(sync.instance, place) for place in chain]
    for number, place in enumerate(chain[:-1]):
        if launches[number + 1] == launches[number]:
            yield place, chain[number + 1]
        if launches[-1] > launches[number]:
            after = next(i for i in range(number + 1, len(chain)) if launches[i] > launches[number])
            yield place, chain[after]


def _may_conflict(sync: Sync, a: Place, b: Place) -> bool:
    """Whether two overlapping writes need an order.

    Not those of one event, not two that both add, and not the shares that different blocks write of
    one window in one compute: they are disjoint (its contract).
    """
    if (a.core, a.event) == (b.core, b.event) or (a.access.add and b.access.add):
        return False
    if not (a.access.share and b.access.share) or a.core == b.core:
        return True
    first = contract_of(sync.instance.cores[a.core].events[a.event])
    second = contract_of(sync.instance.cores[b.core].events[b.event])
    same_window = (a.access.begin, a.access.end) == (b.access.begin, b.access.end)
    return first != second or not same_window


def contract_of(event: Event) -> str:
    """What call a share of a window belongs to; empty for a write that is no share.

    Calls that stand at several places, alike in all but that, are one: in each branch a block may
    take.
    """
    operation = event.operation
    return _call_text(operation) if isinstance(operation, Compute) else ""


@lru_cache(maxsize=256)
def _call_text(operation: Compute) -> str:
    return plain_text(replace(operation, segment=_SEGMENT)).replace(repr(operation.segment.name), "")


_SEGMENT = Var("segment", CType.I64, VarKind.LOOP)


def _queue_races(sync: Sync) -> Iterator[Obligation]:
    """Posts of two cores of a rank to one peer write the same send queue, without atomics.

    Those of two launches are ordered: a rank's cores all end one before any begins the next.
    """
    by_launch: dict[tuple[Queue, int], list[Use]] = {}
    for queue, uses in sync.puts.items():
        for use in uses:
            launch = sync.instance.cores[use.core].events[use.event].launch
            by_launch.setdefault((queue, launch), []).append(use)
    for uses in by_launch.values():
        by_core: dict[int, list[Use]] = {}
        for use in uses:
            by_core.setdefault(use.core, []).append(use)
        for first, second in itertools.combinations(by_core.values(), 2):
            for a, b in itertools.product(first, second):
                clauses = (Clause((a.point,), (b.point,)), Clause((b.point,), (a.point,)))
                actors = tuple(
                    Place(u.core, u.event, sync.instance.cores[u.core].events[u.event].writes[0])
                    for u in (a, b)
                )
                yield Obligation("no-write-conflict", "queue-race", clauses, actors)


def _completions(sync: Sync) -> Iterator[Obligation]:
    """Every request is complete before its core ends the launch; those of 0 bytes count."""
    for core, (_, events) in enumerate(sync.instance.cores):
        for number, event in enumerate(events):
            if event.kind is Kind.PUT:
                clause = Clause((sync.end(core, number),), (sync.last(core, event.launch),))
                actor = Place(core, number, event.writes[0])
                yield Obligation("completion", "not-complete-at-end", (clause,), (actor,))


def shared_regions(instance: Instance) -> frozenset[str]:
    """Names of the regions that other ranks can reach."""
    return frozenset(r.name for r in instance.protocol.regions if r.kind is RegionKind.SHARED)


def all_events(instance: Instance) -> Iterable[Event]:
    """The events of all cores, equal cores once."""
    for cores in distinct_cores(instance):
        yield from instance.cores[cores[0]].events
