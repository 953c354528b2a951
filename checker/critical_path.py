"""The predicted time of a launch: the longest path of the order, with a duration for each point.

`timed` puts `costs` on the points of an instance; `critical_path` walks them once. Exact: durations
are whole numbers of a unit that all of them share. Where the cores are those of `cells.reduced`, the
time is that of the whole instance. `steady` asks the same graph for the time of one more tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..protocol.instance import Event, Kind
from ..protocol.program import Compute, Span
from ..protocol.sync import Sync, order_graph
from .costs import Costs
from .engine import Declined
from .happens_before import HappensBefore


@dataclass(frozen=True, slots=True)
class Timed:
    """Points in an order in which they can happen, each with what precedes it and how long it takes.

    Numbers are those of `order_graph`, and after them one node for each put: its bytes have left.
    ``durations`` are in units of ``unit`` microseconds. ``ends``: whether all points can happen.
    """

    sync: Sync
    predecessors: list[list[int]]
    durations: list[int]
    unit: Fraction
    order: list[int]
    ends: bool
    leaving: dict[int, tuple[int, int]]
    """For the nodes of leaving bytes: core and event."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the critical path that takes time: what, from when, for how long (microseconds)."""

    what: str
    core: str
    span: Span | None
    begin: Fraction
    duration: Fraction


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """``time`` of a launch in microseconds, and the stretches that make it, in order."""

    time: Fraction
    stretches: tuple[Stretch, ...]


def timed(sync: Sync, costs: Costs, order: HappensBefore | None = None) -> Timed:
    """The order of ``sync`` with durations. Raises Declined where timings share no one order.

    ``order``: that of ``sync``, where it is known already.
    """
    if sync.undetermined is not None:
        raise Declined(sync.undetermined)
    graph = order_graph(sync) if order is None else order.graph
    before = list(graph.predecessors)  # entries are replaced here, never changed
    exact = _Exact(costs)
    durations = [exact.place(0)] * len(before)
    durations[sync.size :] = [exact.place(costs.barrier_us)] * len(sync.meetings)
    leaving: dict[int, tuple[int, int]] = {}
    after_begin: dict[int, int] = {}  # for a put's begin, the node of its leaving bytes
    for core, (_, events) in enumerate(sync.instance.cores):
        wire: dict[int, int] = {}  # the node at which the last bytes to each peer have left
        base, begins, ends = sync.base[core], sync.orders[core].begin, sync.orders[core].end
        for number, event in enumerate(events):
            kind = event.kind
            if kind is Kind.PUT:
                begin, landing, node = base + begins[number], base + ends[number], len(before)
                leaving[node] = (core, number)
                after_begin[begin] = node
                before.append([begin, wire[event.peer]] if event.peer in wire else [begin])
                wire[event.peer] = node
                before[landing] = [node]
                durations.append(exact.put(max(0, event.writes[0].end - event.writes[0].begin)))
                durations[landing] = exact.place(costs.put_latency_us)
            elif kind in _LASTING:
                durations[base + ends[number]] = exact.event(event)
    unit, numbers = exact.numbers()
    if order is None:
        nodes = _sorted(before, graph.blocked)
    else:  # bytes leave right after their put is posted, which comes after earlier puts of its core
        nodes = [n for p in order.order for n in ((p, after_begin[p]) if p in after_begin else (p,))]
    return Timed(
        sync, before, [numbers[d] for d in durations], unit, nodes, len(nodes) == len(before), leaving
    )


_LASTING = frozenset({Kind.SET_FLAG, Kind.READ, Kind.WRITE})
"""Kinds, other than puts, that may take time."""


class _Exact:
    """Exact durations, each under a number of its own: there are few, and many points that take them."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.found: dict[Fraction, int] = {}
        self.puts: dict[int, int] = {}
        self.copies: dict[int, int] = {}
        self.flag, self.tile = self.place(costs.flag_us), self.place(costs.matmul_tile_us)
        self.nothing = self.place(0)

    def place(self, duration: Fraction | int) -> int:
        """The number of ``duration``."""
        return self.found.setdefault(Fraction(duration), len(self.found))

    def put(self, count: int) -> int:
        """That of ``count`` bytes leaving."""
        if count not in self.puts:
            self.puts[count] = self.place(self.costs.put_bytes(count))
        return self.puts[count]

    def event(self, event: Event) -> int:
        """That of an event other than a put."""
        if event.kind is Kind.SET_FLAG:
            return self.flag
        if isinstance(event.operation, Compute):
            return self.tile if event.kind is Kind.WRITE else self.nothing
        count = sum(max(0, a.end - a.begin) for a in (*event.reads, *event.writes))
        if count not in self.copies:
            self.copies[count] = self.place(self.costs.copy(count))
        return self.copies[count]

    def numbers(self) -> tuple[Fraction, list[int]]:
        """A unit that all durations share, and each of them in units."""
        unit = Fraction(1, math.lcm(*(d.denominator for d in self.found)))
        return unit, [int(d / unit) for d in self.found]


def _sorted(before: Sequence[Sequence[int]], blocked: frozenset[int]) -> list[int]:
    """The nodes that can happen, each after what precedes it."""
    after: list[list[int]] = [[] for _ in before]
    for node, earlier in enumerate(before):
        for one in earlier:
            after[one].append(node)
    missing = [len(earlier) + (node in blocked) for node, earlier in enumerate(before)]
    ready = [node for node, count in enumerate(missing) if count == 0]
    for node in ready:  # grows while it is read
        for one in after[node]:
            missing[one] -= 1
            if not missing[one]:
                ready.append(one)
    return ready


def finished(graph: Timed) -> list[int]:
    """When each node is over, in units; 0 for those that never happen."""
    times = [0] * len(graph.predecessors)
    durations = graph.durations
    before = graph.predecessors
    for node in graph.order:
        earlier = before[node]
        if len(earlier) == 1:
            times[node] = durations[node] + times[earlier[0]]
        elif earlier:
            times[node] = durations[node] + max([times[p] for p in earlier])
        else:
            times[node] = durations[node]
    return times


def launch_time(graph: Timed) -> Fraction | None:
    """The time of all launches in microseconds; None where they never end."""
    return max(finished(graph), default=0) * graph.unit if graph.ends else None


def critical_path(graph: Timed) -> CriticalPath | None:
    """The time with the path that makes it; None where the launch never ends."""
    if not graph.ends:
        return None
    times = finished(graph)
    if not times:
        return CriticalPath(Fraction(0), ())
    node = max(range(len(times)), key=lambda n: (times[n], -n))
    total, found = times[node], []
    while True:
        if graph.durations[node]:
            begin = (times[node] - graph.durations[node]) * graph.unit
            what, core, span = _described(graph, node)
            found.append(Stretch(what, core, span, begin, graph.durations[node] * graph.unit))
        earlier = graph.predecessors[node]
        if not earlier:
            return CriticalPath(total * graph.unit, tuple(reversed(found)))
        node = max(earlier, key=lambda n: (times[n], -n))


def place(graph: Timed, node: int) -> tuple[int, int] | None:
    """Core and event that a node belongs to; None for a meeting of several cores."""
    if node in graph.leaving:
        return graph.leaving[node]
    return graph.sync.locate(node) if node < graph.sync.size else None


def _described(graph: Timed, node: int) -> tuple[str, str, Span | None]:
    sync = graph.sync
    at = place(graph, node)
    if at is None:
        meeting = sync.meetings[node - sync.size]
        return f"{meeting.function} barrier", "all", sync.event_at(meeting.points[0]).span
    core, number = at
    event = sync.instance.cores[core].events[number]
    if event.kind is Kind.PUT:
        what = "bytes of a put leave" if node in graph.leaving else "put lands"
    elif isinstance(event.operation, Compute):
        what = event.operation.contract
    else:
        what = event.kind.value
    return what, str(sync.instance.cores[core].id), event.span
