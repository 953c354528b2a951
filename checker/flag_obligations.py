"""Obligations about flags and events: the backlog of counters, events set twice, ids that change mode.

Used by `analysis`, beside `obligations`, which pairs accesses of memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..protocol.flags import Counter
from ..protocol.instance import Access, Kind
from ..protocol.program import ALL_PIPES, SetFlag, WaitFlag, statements
from ..protocol.sync import Sync, Use, determinate
from .obligations import NEVER, Clause, Obligation
from .pieces import Place

MERGED = "flag-merged"
"""The code of a set that is lost because flags merge; how a run goes on depends on the timing."""


def flag_obligations(sync: Sync) -> Iterator[Obligation]:
    """Every obligation that counters and flag ids make."""
    yield from _backlog(sync)
    yield from _mode_changes(sync)


def _backlog(sync: Sync) -> Iterator[Obligation]:
    """No counter passes its cap (an intra-core event, or where flags merge: 1).

    With one order of sets and waits, the j-th rise passes it unless one of its sets comes after the
    (j-cap)-th wait; otherwise the engine counts. Several sets that make one rise have a common
    timing if each has one, but only where all timings share one order.
    """
    for counter in sync.sets:
        code, bound = _cap(sync, counter)
        rises, waits = sync.rises(counter), sync.waits.get(counter, [])
        if len(rises) <= bound:
            continue
        together = len(rises[0]) > 1
        if not determinate(sync, counter) or (together and sync.undetermined is not None):
            actor = _place(sync, rises[0][0])
            yield Obligation("flag-range", code, (), (actor,), 1, counter, bound)
            continue
        for j in range(bound, len(rises)):
            wait = waits[j - bound].point if j - bound < len(waits) else NEVER
            clauses = tuple(Clause((wait,), (use.point,)) for use in rises[j])
            actors = tuple(_place(sync, use) for use in rises[j])
            yield Obligation("flag-range", code, clauses, actors, 1, counter, bound)
            if counter.is_event and _drained_later(sync, rises[j][0]):
                yield Obligation("deadlock-freedom", "event-hang", clauses, actors, 1, counter, bound)


def _cap(sync: Sync, counter: Counter) -> tuple[str, int]:
    """What passing the cap of ``counter`` is called, and the cap."""
    if counter.is_event:
        return "event-set-twice", 1
    if sync.instance.profile.flags_merge:
        return MERGED, 1
    return "counter-cap", sync.instance.profile.counter_cap


def _drained_later(sync: Sync, use: Use) -> bool:
    """Whether the core empties all its pipes at some time after ``use``: a second set hangs that."""
    kinds = (Kind.PIPE_BARRIER, Kind.BARRIER)
    events = sync.instance.cores[use.core].events[use.event + 1 :]
    return any(event.kind in kinds and event.drains == ALL_PIPES for event in events)


def _mode_changes(sync: Sync) -> Iterator[Obligation]:
    """A core uses an id in another mode only when all its earlier sets and waits of it are done."""
    programs = sync.instance.protocol.programs.values()
    flags = (s for program in programs for s in statements(program) if isinstance(s, SetFlag | WaitFlag))
    if len({flag.mode for flag in flags}) < 2:
        return
    for (core, _), uses in _uses_by_id(sync).items():
        if len({mode for mode, _ in uses}) < 2:
            continue
        for number, (mode, use) in enumerate(uses):
            before = [earlier for other, earlier in uses[:number] if other != mode]
            for earlier, clauses in _done(sync, core, before, use.point):
                actors = (_place(sync, use), _place(sync, earlier))
                yield Obligation("flag-range", "mode-change", clauses, actors, at_once=True)


def _done(
    sync: Sync, core: int, before: Sequence[Use], then: int
) -> Iterator[tuple[Use, tuple[Clause, ...]]]:
    """For what must be done before ``then``: clauses that all hold where it is not.

    A wait is done when it has happened, a set when it has taken effect. Where all timings share one
    order, that order takes sets in turn, though they may take effect in any: there all are done when
    the wait for the last has happened, at any receiver.
    """
    points = {use.point for use in before}
    last: dict[Use, list[int]] = {}
    for counter, sets in sync.sets.items():
        own = [use for use in sets if use.core == core]
        mine = [k for k, use in enumerate(own) if use.point in points]
        if not mine:
            continue
        waits = sync.waits.get(counter, [])
        if sync.undetermined is None:
            released = waits[mine[-1]].point if mine[-1] < len(waits) else NEVER
            last.setdefault(own[mine[-1]], []).append(released)
        else:
            last |= {own[k]: [own[k].point] for k in mine}
    for use in before:
        if sync.event_at(use.point).kind is Kind.WAIT_FLAG:
            last[use] = [use.point]
    for use, firsts in last.items():
        yield use, tuple(Clause((first,), (then,)) for first in dict.fromkeys(firsts))


def _uses_by_id(sync: Sync) -> dict[tuple[int, int], list[tuple[int, Use]]]:
    """For every core and id its sets and waits in program order, each with its mode."""
    found: dict[tuple[int, int], list[tuple[int, Use]]] = defaultdict(list)
    for core, (_, events) in enumerate(sync.instance.cores):
        for number, event in enumerate(events):
            if event.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG):
                use = Use(core, number, event.pipe, sync.begin(core, number))
                found[core, event.flag].append((event.mode, use))
    return found


def counters_of_mixed_ids(sync: Sync) -> set[Counter]:
    """The counters that sets of ids in several modes raise: obligations ask when these sets are done."""
    mixed = {
        use.point for uses in _uses_by_id(sync).values() if len({m for m, _ in uses}) > 1 for _, use in uses
    }
    return {counter for counter, sets in sync.sets.items() if any(use.point in mixed for use in sets)}


def _place(sync: Sync, use: Use) -> Place:
    rank = sync.instance.cores[use.core].id.rank
    return Place(use.core, use.event, Access(rank, "", 0, 0))
