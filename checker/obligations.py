"""What has to be ordered: the questions that properties pose and engines decide.

An obligation is a conjunction of clauses about two points (see `protocol.order`); it is VIOLATED
where all its clauses hold. Engines know clauses, not properties. `memory_obligations` pairs the
writes and reads of an instance, which `pieces` finds; those of flags are in `flag_obligations`.

Pairs that follow from others are left out: for two writes a, b of one pipe, in this order, every
later write c of that pipe begins after b, so that "a ends before b begins" covers c too (b being the
first that a may conflict with), and "the reader ends before b begins" likewise. Writes of the same
launch and of later ones are apart in this: an obligation between two launches is one of the property
relaunch, whatever else it would be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..protocol.flags import Counter
from ..protocol.instance import Kind
from ..protocol.sync import Queue, Sync, Use
from .pieces import Piece, Place, Writes, contract_of, launch_of

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


@dataclass(frozen=True, slots=True)
class Obligation:
    """VIOLATED if, for one of its ``width`` equal cores, all ``clauses`` hold.

    Or, where ``counter`` is given, if some timing takes that counter above ``cap``. ``at_once``: in
    one timing; where all timings share one order, clauses that hold at all do.
    ``actors`` are the accesses it speaks of, in the order in which a reader wants them.
    """

    property: str
    code: str
    clauses: tuple[Clause, ...]
    actors: tuple[Place, ...]
    width: int = 1
    counter: Counter | None = None
    cap: int = 0
    at_once: bool = False

    def clauses_at(self, index: int) -> list[tuple[int, int, bool]]:
        """The clauses for equal core number ``index``."""
        return [(c.first[index % len(c.first)], c.then[index % len(c.then)], c.ordered) for c in self.clauses]

    def thens_at(self, index: int) -> list[int]:
        """What has happened at the moment that ``at_once`` speaks of: see `firsts_at`."""
        return [then for first, then, ordered in self.clauses_at(index) if not ordered and first != NEVER]

    def firsts_at(self, index: int) -> list[int]:
        """What has not happened then; a point that is also among `thens_at` is the last of them."""
        return [first for first, _, ordered in self.clauses_at(index) if not ordered and first != NEVER]


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
        yield Obligation(name, code, clauses, actors, width, at_once=True)


def _named(sync: Sync, name: str, code: str, a: Place, b: Place) -> tuple[str, str]:
    """Property and code of an obligation between ``a`` and ``b``: relaunch if their launches differ."""
    if launch_of(sync.instance, a) == launch_of(sync.instance, b):
        return name, code
    return "relaunch", f"relaunch-{code}"


def _cut(place: Place, piece: Piece) -> Place:
    """``place`` with its window narrowed to the piece."""
    if (place.access.begin, place.access.end) == (piece.begin, piece.end):
        return place
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
    pipe, launch = _pipe_of(sync, needed), launch_of(sync.instance, needed)
    result: list[Place] = []
    following: dict[bool, Place] = {}
    for place in (*piece.needed[:-1], *piece.others):
        if _pipe_of(sync, place) != pipe:
            result.append(place)
        elif place.event > needed.event:
            later = launch_of(sync.instance, place) > launch
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
    # two writes of the same bytes must be ordered, even where they exclude each other
    meanwhile = code == "source-overwritten"
    return Obligation(*_named(sync, prop, code, a, b), clauses, (a, b), at_once=meanwhile)


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
            yield _unordered(sync, "no-write-conflict", "write-conflict", a, b)
    chains = list(pipes.values())
    for i, chain in enumerate(chains):
        for other in chains[i + 1 :]:
            for a in chain:
                for b in other:
                    if _may_conflict(sync, a, b) and not _in_stream_order(sync, a, b):
                        yield _unordered(sync, "no-write-conflict", "write-conflict", a, b)


def _in_stream_order(sync: Sync, a: Place, b: Place) -> bool:
    """Whether they are writes by two launches of one rank, all of whose cores end one before the next."""
    cores = sync.instance.cores
    kinds = {cores[place.core].events[place.event].kind for place in (a, b)}
    same_rank = cores[a.core].id.rank == cores[b.core].id.rank
    return same_rank and kinds == {Kind.WRITE} and launch_of(sync.instance, a) != launch_of(sync.instance, b)


def _neighbours(sync: Sync, chain: list[Place]) -> Iterator[tuple[Place, Place]]:
    """Each write of one pipe with the next of its launch, and of a later one, that it may conflict with."""
    launches = [launch_of(sync.instance, place) for place in chain]
    for number, place in enumerate(chain):
        found: set[bool] = set()
        for after in range(number + 1, len(chain)):
            later = launches[after] > launches[number]
            if later not in found and _may_conflict(sync, place, chain[after]):
                found.add(later)
                yield place, chain[after]
            if later in found and (later or launches[-1] == launches[number]):
                break


def _may_conflict(sync: Sync, a: Place, b: Place) -> bool:
    """Whether two overlapping writes need an order.

    Not those of one event, not two that both add, and not the shares that different blocks write of
    one window in one compute: they are disjoint (its contract).
    """
    if (a.core, a.event) == (b.core, b.event) or (a.access.add and b.access.add):
        return False
    blocks = [sync.instance.cores[place.core].id.block for place in (a, b)]
    if not (a.access.share and b.access.share) or blocks[0] == blocks[1]:
        return True
    first = contract_of(sync.instance.cores[a.core].events[a.event])
    second = contract_of(sync.instance.cores[b.core].events[b.event])
    same_window = (a.access.begin, a.access.end) == (b.access.begin, b.access.end)
    return first != second or not same_window


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
