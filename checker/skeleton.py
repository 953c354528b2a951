"""The order of an instance with everything that cannot matter folded away.

Two neighbouring points a, b where b has no other predecessor and a no other successor tell the same
to every other point, so each maximal line of such points is one *node*. Used by `smt`, whose
formulas would otherwise carry every begin and end of every read. Exact: `Skeleton.question`
restores the order inside a line. Tested against the unfolded order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.sync import Graph, Sync
from .obligations import NEVER


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Nodes numbered from 0 with their predecessors; ``node`` and ``index`` place every point.

    A node has happened when all its points have; ``blocked`` nodes never happen. ``members`` lists
    each node's points in order.
    """

    node: tuple[int, ...]
    index: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    blocked: frozenset[int]

    def question(self, first: int, then: int) -> tuple[int, int] | None:
        """The nodes to ask about for "``first`` comes before ``then``"; None: their line says so.

        A later point of a line comes before an earlier one only if the line never starts: then the
        first node is NEVER, as it is for a ``first`` that never happens.
        """
        b = self.node[then]
        if first == NEVER:
            return NEVER, b
        a = self.node[first]
        if a != b:
            return a, b
        return None if self.index[first] <= self.index[then] else (NEVER, b)


def fold(sync: Sync, graph: Graph) -> Skeleton:
    """The skeleton of ``graph``."""
    before = _without_shortcuts(sync, graph)
    successors = [0] * len(before)
    for points in before:
        for point in points:
            successors[point] += 1
    node, index = [-1] * len(before), [0] * len(before)
    members: list[list[int]] = []
    heads: list[int] = []
    alone = graph.blocked | {sync.size + m for m in range(len(sync.meetings))}
    following: list[int] = [-1] * len(before)
    is_inside = [False] * len(before)
    for point, points in enumerate(before):
        if len(points) == 1 and successors[points[0]] == 1 and not {point, points[0]} & alone:
            following[points[0]] = point
            is_inside[point] = True
    for point in range(len(before)):
        if is_inside[point]:
            continue
        heads.append(point)
        line: list[int] = []
        at = point
        while at >= 0:
            node[at], index[at] = len(members), len(line)
            line.append(at)
            at = following[at]
        members.append(line)
    for point, number in enumerate(node):
        if number < 0:  # a line that closes on itself: no head, so it can never start
            node[point], index[point] = len(members), 0
            members.append([point])
            heads.append(point)
    predecessors = tuple(
        tuple(dict.fromkeys(node[p] for p in before[head] if node[p] != number))
        for number, head in enumerate(heads)
    )
    # a line whose own points come before its head can never start
    circular = {number for number, head in enumerate(heads) if any(node[p] == number for p in before[head])}
    blocked = frozenset(node[p] for p in graph.blocked) | circular
    return Skeleton(tuple(node), tuple(index), tuple(map(tuple, members)), predecessors, blocked)


def _without_shortcuts(sync: Sync, graph: Graph) -> list[tuple[int, ...]]:
    """Predecessors without those that another predecessor already has among its own.

    A call of a barrier counts as its meeting: the call follows the meeting and nothing else.
    """
    alias = list(range(len(graph.predecessors)))
    for number, meeting in enumerate(sync.meetings):
        for call in meeting.points:
            alias[call] = sync.size + number
    before = [tuple(dict.fromkeys(alias[p] for p in points)) for points in graph.predecessors]
    result = []
    for point, points in enumerate(before):
        kept = list(points)
        if len(points) > 1 and point < sync.size:
            for candidate in points:  # one at a time: on a cycle each could stand for the other
                if any(candidate in before[other] for other in kept if other != candidate):
                    kept.remove(candidate)
        result.append(tuple(kept))
    return result
