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


def timed(sync: Sync, costs: Costs) -> Timed:
    """The order of ``sync`` with durations. Raises Declined where timings share no one order."""
    if sync.undetermined is not None:
        raise Declined(sync.undetermined)
    graph = order_graph(sync)
    before = graph.predecessors
    exact: dict[int, Fraction] = {sync.size + n: costs.barrier_us for n in range(len(sync.meetings))}
    leaving: dict[int, tuple[int, int]] = {}
    for core, (_, events) in enumerate(sync.instance.cores):
        wire: dict[int, int] = {}  # the node at which the last bytes to each peer have left
        for number, event in enumerate(events):
            if event.kind is Kind.PUT:
                node = len(before)
                leaving[node] = (core, number)
                before.append([sync.begin(core, number), *([wire[event.peer]] if event.peer in wire else [])])
                wire[event.peer] = node
                landing = sync.end(core, number)
                before[landing] = [node]
                exact[node] = costs.put_bytes(max(0, event.writes[0].end - event.writes[0].begin))
                exact[landing] = costs.put_latency_us
            else:
                lasting = _duration(event, costs)
                if lasting:
                    exact[sync.end(core, number)] = lasting
    unit = Fraction(1, math.lcm(*(d.denominator for d in set(exact.values()))))
    durations = [0] * len(before)
    for node, lasting in exact.items():
        durations[node] = int(lasting / unit)
    order = _sorted(before, graph.blocked)
    return Timed(sync, before, durations, unit, order, len(order) == len(before), leaving)


def _duration(event: Event, costs: Costs) -> Fraction:
    match event.kind:
        case Kind.SET_FLAG:
            return costs.flag_us
        case Kind.WRITE if isinstance(event.operation, Compute):
            return costs.matmul_tile_us
        case Kind.READ | Kind.WRITE if not isinstance(event.operation, Compute):
            return costs.copy(sum(max(0, a.end - a.begin) for a in (*event.reads, *event.writes)))
    return Fraction(0)


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
    for node in graph.order:
        earlier = graph.predecessors[node]
        times[node] = durations[node] + (max([times[p] for p in earlier]) if earlier else 0)
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
