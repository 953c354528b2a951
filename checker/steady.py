"""The time of one more tile, in the long run: the maximum cycle mean of the order of one tile.

The order of an instance with many tiles is folded: points of equal statements and cores become one
node, and an edge carries how many tiles it reaches back. Every cycle of it is a dependency that
repeats; the one with the most time a tile sets the pace. What happens once for all tiles (one request
for the scales of all of them) is in the critical path, not here. Exact in fractions. Used by `sweep`; the
tests compare it with how the critical path grows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..protocol.instance import Event, Kind
from ..protocol.program import Compute
from .critical_path import Timed


class Edge(NamedTuple):
    """``target`` comes ``weight`` after ``source`` of ``distance`` tiles before."""

    source: int
    target: int
    weight: int
    distance: int


def steady_time(graph: Timed) -> Fraction | None:
    """Microseconds a tile, in the long run; None where tiles do not repeat one pattern."""
    edges = fold(graph) if graph.ends else None
    if edges is None:
        return None
    ratio = maximum_cycle_mean(edges)
    return None if ratio is None else ratio * graph.unit


# --- folding ----------------------------------------------------------------------------------

_Node = tuple[object, ...]


def fold(graph: Timed) -> list[Edge] | None:
    """The edges of one tile in the middle of the run; None if its neighbours have others."""
    names, turns = _labels(graph)
    most: dict[_Node, int] = defaultdict(int)
    for name, turn in zip(names, turns, strict=True):
        most[name] = max(most[name], turn)
    tiles = max(most.values(), default=0) + 1
    low, high = tiles // 3, 2 * tiles // 3
    if high - low < 2:
        return None
    found: dict[int, set[tuple[_Node, _Node, int, int]]] = {turn: set() for turn in range(low, high)}
    for node, earlier in enumerate(graph.predecessors):
        turn = turns[node]
        if low <= turn < high and most[names[node]] >= high:
            found[turn] |= {
                (names[p], names[node], graph.durations[node], turn - turns[p])
                for p in earlier
                if most[names[p]] >= high - 1
            }
    first = found[low]
    if any(edges != first for edges in found.values()):
        return None
    numbers: dict[_Node, int] = {}
    return [
        Edge(numbers.setdefault(a, len(numbers)), numbers.setdefault(b, len(numbers)), weight, distance)
        for a, b, weight, distance in sorted(first, key=repr)
    ]


def _labels(graph: Timed) -> tuple[list[_Node], list[int]]:
    """For every node what it is in each tile, and the how manieth of that it is."""
    sync = graph.sync
    names: list[_Node] = [()] * len(graph.predecessors)
    for core, (_, events) in enumerate(sync.instance.cores):
        statements = _statements(events)
        order = sync.orders[core]
        for local, number in enumerate(order.event):
            phase = "end" if order.end[number] == local != order.begin[number] else "begin"
            names[sync.base[core] + local] = (core, *statements[number], phase)
    for number, meeting in enumerate(sync.meetings):
        caller = names[meeting.points[0]]
        names[sync.size + number] = ("meeting", meeting.function, caller)
    for node, (core, number) in graph.leaving.items():
        names[node] = (*names[sync.begin(core, number)][:-1], "left")
    return names, _turns(names)


def _turns(names: Sequence[_Node]) -> list[int]:
    seen: dict[_Node, int] = defaultdict(int)
    turns = []
    for name in names:
        turns.append(seen[name])
        seen[name] += 1
    return turns


def _statements(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Which operation each event is of, and for the reads of a compute which one."""
    numbers: dict[int, int] = {}
    found: list[tuple[object, ...]] = []
    reads = 0
    for event in events:
        number = numbers.setdefault(id(event.operation), len(numbers))
        if event.kind is Kind.READ and isinstance(event.operation, Compute):
            found.append((number, reads))
            reads += 1
        else:
            found.append((number,))
            reads = 0
    return found


# --- the mean ---------------------------------------------------------------------------------


def maximum_cycle_mean(edges: Sequence[Edge]) -> Fraction | None:
    """The largest weight a distance of any cycle; None if there is no cycle.

    Every cycle must have a positive distance. Starts from no time at all and takes a cycle that is
    longer, while there is one: each is longer than the last, so it ends at the longest.
    """
    ratio: Fraction | None = None
    while True:
        cycle = _longer(edges, ratio)
        if cycle is None:
            return ratio
        weight, distance = (sum(e.weight for e in cycle), sum(e.distance for e in cycle))
        if distance <= 0:
            raise ValueError("a cycle that reaches back no tile")
        ratio = Fraction(weight, distance)


def _longer(edges: Sequence[Edge], ratio: Fraction | None) -> list[Edge] | None:
    """A cycle of more than ``ratio`` (None: any cycle), by Bellman and Ford."""
    if ratio is None:
        lengths = [1] * len(edges)
    else:
        lengths = [e.weight * ratio.denominator - e.distance * ratio.numerator for e in edges]
    nodes = {e.source for e in edges} | {e.target for e in edges}
    best: dict[int, int] = dict.fromkeys(nodes, 0)
    through: dict[int, Edge] = {}
    changed: int | None = None
    for _ in range(len(nodes)):
        changed = None
        for edge, length in zip(edges, lengths, strict=True):
            if best[edge.source] + length > best[edge.target]:
                best[edge.target] = best[edge.source] + length
                through[edge.target] = edge
                changed = edge.target
        if changed is None:
            return None
    return None if changed is None else _cycle(through, changed, len(nodes))


def _cycle(through: Mapping[int, Edge], node: int, count: int) -> list[Edge]:
    for _ in range(count):  # into the cycle
        node = through[node].source
    cycle, at = [], node
    while True:
        cycle.append(through[at])
        at = through[at].source
        if at == node:
            return cycle
