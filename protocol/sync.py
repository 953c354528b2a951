"""What is ordered across cores: which set releases which wait, and which calls meet in a barrier.

`Sync` gathers all points of an instance under global numbers and matches flags, events, barriers
and quiets. Where the matching is the same in every timing it is *determinate*, and all timings have
one partial order; where it is not, ``undetermined`` says why and the engines must choose.

Lemma (k-th set to k-th wait). If all sets of a counter are made by one core on one pipe, the sets'
predecessors grow with their index, so when the k-th wait is released, the predecessors of the k-th
set have happened whatever sets took effect; and since nothing but waits follows from a set's
effect, taking them in program order loses no behaviour of the other points. The waits of one pipe
are ordered. So the k-th wait comes after the k-th set, and that is all. Where several cores must
set for one event (modes 0 and 1, and mode 2 with two AIVs), the counter is the least of their
numbers of sets: the argument holds for each of them, and the k-th wait comes after all k-th sets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .flags import Channel, Counter, Wiring, counter_of
from .instance import Event, Instance, Kind
from .order import CoreOrder, order_core
from .program import Pipe
from .setup import Injected


class Use(NamedTuple):
    """One set or wait of a counter: who, by which event, on which pipe, at which point."""

    core: int
    event: int
    pipe: Pipe
    point: int


class Meeting(NamedTuple):
    """The k-th call of an assembly by every member; ``points`` of those that make it."""

    function: str
    turn: int
    points: tuple[int, ...]
    complete: bool


class Queue(NamedTuple):
    """The requests of one rank to one peer."""

    rank: int
    peer: int


@dataclass(slots=True)
class Sync:
    """The points of all cores and how they are tied together.

    Core ``c``'s local point ``p`` has the global number ``base[c] + p``. ``channels`` files the sets
    of each counter by channel and setter. ``released_by`` maps each wait's point to the points of
    its sets (one, but for flags that several cores set together), None where no set is left for it.
    """

    instance: Instance
    orders: list[CoreOrder] = field(default_factory=list)
    base: list[int] = field(default_factory=list)
    size: int = 0
    sets: dict[Counter, list[Use]] = field(default_factory=dict)
    channels: dict[Counter, dict[Channel, dict[int, list[Use]]]] = field(default_factory=dict)
    waits: dict[Counter, list[Use]] = field(default_factory=dict)
    meetings: list[Meeting] = field(default_factory=list)
    puts: dict[Queue, list[Use]] = field(default_factory=dict)
    quiets: dict[Queue, list[Use]] = field(default_factory=dict)
    ends: list[list[int]] = field(default_factory=list)
    released_by: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    undetermined: str | None = None

    def begin(self, core: int, event: int) -> int:
        """The point at which event ``event`` of core ``core`` begins."""
        return self.base[core] + self.orders[core].begin[event]

    def end(self, core: int, event: int) -> int:
        """The point at which it ends."""
        return self.base[core] + self.orders[core].end[event]

    def last(self, core: int, launch: int = -1) -> int:
        """The point at which the core has ended its launch number ``launch``, or the last one."""
        return self.ends[core][launch]

    def rises(self, counter: Counter) -> list[tuple[Use, ...]]:
        """The sets that together raise ``counter`` for the 1st, 2nd, ... time; channel by channel."""
        found: list[tuple[Use, ...]] = []
        for channel, uses in self.channels.get(counter, {}).items():
            if len(channel.setters) == 1:
                found += [(use,) for use in uses.get(channel.setters[0], ())]
                continue
            found += zip(*(uses.get(core, ()) for core in channel.setters), strict=False)
        return found

    def locate(self, point: int) -> tuple[int, int]:
        """The core and its event that a point belongs to."""
        from bisect import bisect_right

        core = bisect_right(self.base, point) - 1
        return core, self.orders[core].event[point - self.base[core]]

    def event_at(self, point: int) -> Event:
        """The event that a point belongs to."""
        core, index = self.locate(point)
        return self.instance.cores[core].events[index]

    def covered_by(self, core: int, event: int) -> int | None:
        """The point of the first Quiet of the same core that waits for the put ``event``, if any."""
        peer = self.instance.cores[core].events[event].peer
        rank = self.instance.cores[core].id.rank
        for use in self.quiets.get(Queue(rank, peer), ()):
            if use.core == core and use.event > event:
                return use.point
        return None


@dataclass(slots=True)
class Graph:
    """The order of all points where matching is determinate.

    ``predecessors[p]`` must happen before ``p``. Meeting number ``m`` is the extra point
    ``sync.size + m``: it comes after what precedes each call, and each call comes after it.
    ``blocked`` points never happen: nothing is left to release them.
    """

    predecessors: list[list[int]]
    blocked: frozenset[int]


def program_graph(sync: Sync) -> list[list[int]]:
    """Predecessors that hold whatever sets release whatever waits.

    Program order, meetings, and quiets after the landings of their own core's earlier requests.
    """
    before: list[list[int]] = []
    for base, order in zip(sync.base, sync.orders, strict=True):
        before += [[base + point for point in points] for points in order.predecessors]
    for queue, quiets in sync.quiets.items():
        for put in sync.puts.get(queue, ()):
            covering = next((q for q in quiets if q.core == put.core and q.event > put.event), None)
            if covering is not None:  # later quiets of the core follow this one
                before[covering.point].append(sync.end(put.core, put.event))
    for number, meeting in enumerate(sync.meetings):
        before.append(list(dict.fromkeys(p for call in meeting.points for p in before[call])))
        for call in meeting.points:
            before[call] = [sync.size + number]
    return before


def order_graph(sync: Sync) -> Graph:
    """The order of a determinate instance: the program's graph with matched sets and waits."""
    before = program_graph(sync)
    blocked = {sync.size + n for n, meeting in enumerate(sync.meetings) if not meeting.complete}
    for wait, setter in sync.released_by.items():
        if setter is None:
            blocked.add(wait)
        else:
            before[wait] += setter
    return Graph(before, frozenset(blocked))


def synchronise(instance: Instance) -> Sync:
    """All points of ``instance`` with their ties across cores."""
    sync = Sync(instance)
    templates: dict[int, CoreOrder] = {}
    for core in instance.cores:
        order = templates.get(id(core.events))
        if order is None:
            order = templates[id(core.events)] = order_core(core.events)
        sync.orders.append(order)
        sync.base.append(sync.size)
        sync.size += len(order)
    calls: dict[str, list[list[int]]] = {f: [[] for _ in instance.cores] for f in instance.assemblies}
    wiring = Wiring(instance)
    for index in range(len(instance.cores)):
        _collect(sync, index, calls, wiring)
    _meet(sync, calls)
    _match(sync)
    _check_queues(sync)
    return sync


_COLLECTED = frozenset({
    Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.SET_EVENT, Kind.WAIT_EVENT, Kind.BARRIER, Kind.PUT, Kind.QUIET,
    Kind.END,
})  # fmt: skip


def _collect(sync: Sync, index: int, calls: dict[str, list[list[int]]], wiring: Wiring) -> None:
    """File the synchronising events of one core."""
    core = sync.instance.cores[index]
    base, begin = sync.base[index], sync.orders[index].begin
    sync.ends.append([])
    may_give_up = Injected.QUIET_TIMEOUT in sync.instance.setup.faults
    for number, event in enumerate(core.events):
        kind = event.kind
        if kind not in _COLLECTED:
            continue
        use = Use(index, number, event.pipe, base + begin[number])
        if kind is Kind.END:
            sync.ends[index].append(use.point)
        elif kind is Kind.BARRIER:
            calls[event.barrier][index].append(use.point)
        elif kind is Kind.PUT:
            sync.puts.setdefault(Queue(core.id.rank, event.peer), []).append(use)
        elif kind is Kind.QUIET:
            if not may_give_up:
                sync.quiets.setdefault(Queue(core.id.rank, event.peer), []).append(use)
        elif kind is Kind.WAIT_FLAG or kind is Kind.WAIT_EVENT:
            sync.waits.setdefault(counter_of(sync.instance, index, event), []).append(use)
        elif kind is Kind.SET_EVENT:
            _file_set(sync, counter_of(sync.instance, index, event), Channel(-1, (index,)), use)
        else:
            channel, counters = wiring.raised_by(index, event)
            for counter in counters:
                _file_set(sync, counter, channel, use)


def _file_set(sync: Sync, counter: Counter, channel: Channel, use: Use) -> None:
    sync.sets.setdefault(counter, []).append(use)
    sync.channels.setdefault(counter, {}).setdefault(channel, {}).setdefault(use.core, []).append(use)


def _meet(sync: Sync, calls: dict[str, list[list[int]]]) -> None:
    """Pair the k-th calls of every assembly."""
    for function, (_, members) in sync.instance.assemblies.items():
        longest = max((len(calls[function][core]) for core in members), default=0)
        for k in range(longest):
            points = tuple(calls[function][core][k] for core in members if k < len(calls[function][core]))
            sync.meetings.append(Meeting(function, k, points, len(points) == len(members)))


def determinate(sync: Sync, counter: Counter) -> bool:
    """Whether the k-th set of ``counter`` releases its k-th wait in every timing (the lemma above)."""
    channels = sync.channels.get(counter, {})
    setters = [uses for channel in channels.values() for uses in channel.values()]
    lists = [*setters, sync.waits.get(counter, [])]
    return len(channels) <= 1 and all(len({use.pipe for use in uses}) <= 1 for uses in lists)


def _match(sync: Sync) -> None:
    """Match sets to waits, or say why they cannot be matched once for all timings."""
    for counter in {**sync.waits, **sync.sets}:
        rises, waits = sync.rises(counter), sync.waits.get(counter, [])
        for k, use in enumerate(waits):
            sync.released_by[use.point] = tuple(s.point for s in rises[k]) if k < len(rises) else None
        # sets that nobody waits for matter where they can pass the cap, or be lost
        matters = waits or len(rises) > sync.instance.profile.backlog
        if sync.undetermined is None and matters and not determinate(sync, counter):
            name = f"{'event' if counter.is_event else 'flag'} {counter.flag}"
            core = sync.instance.cores[counter.core].id
            sync.undetermined = f"{name} of {core} is set or awaited on several pipes"


def _check_queues(sync: Sync) -> None:
    """A Quiet whose queue other cores post to as well may or may not wait for their requests."""
    for queue, quiets in sync.quiets.items():
        posters = {use.core for use in sync.puts.get(queue, ())}
        if any(posters - {use.core} for use in quiets):
            core = sync.instance.cores[quiets[0].core].id
            sync.undetermined = sync.undetermined or (
                f"several cores of rank {core.rank} use the queue to rank {queue.peer}"
            )
