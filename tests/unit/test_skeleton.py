"""Folding the order: the skeleton answers what reachability in the whole order does."""

from mc2proof.checker.analysis import Analysis
from mc2proof.checker.obligations import NEVER
from mc2proof.checker.skeleton import Skeleton, fold
from mc2proof.protocol.instance import Kind
from mc2proof.protocol.sync import Graph, Sync, order_graph


def pasts(predecessors: list[list[int]] | tuple[tuple[int, ...], ...]) -> list[int]:
    """For every vertex a mask of all that come before it, itself included."""
    masks = [1 << v for v in range(len(predecessors))]
    changed = True
    while changed:
        changed = False
        for vertex, before in enumerate(predecessors):
            mask = masks[vertex]
            for earlier in before:
                mask |= masks[earlier]
            changed = changed or mask != masks[vertex]
            masks[vertex] = mask
    return masks


def happening(
    predecessors: list[list[int]] | tuple[tuple[int, ...], ...], blocked: frozenset[int]
) -> set[int]:
    """Every vertex that some timing reaches."""
    done: set[int] = set()
    grown = True
    while grown:
        new = {v for v, b in enumerate(predecessors) if v not in done | blocked and done.issuperset(b)}
        grown = bool(new)
        done |= new
    return done


def is_call(sync: Sync, point: int) -> bool:
    """Calls of barriers stand for nothing of their own: their meeting does."""
    return point < sync.size and sync.event_at(point).kind is Kind.BARRIER


def check(sync: Sync, graph: Graph, skeleton: Skeleton) -> None:
    """ "``first`` before ``then`` in every timing where ``then`` happens" of all pairs, both ways."""
    whole, folded = pasts(graph.predecessors), pasts(skeleton.predecessors)
    points = happening(graph.predecessors, graph.blocked)
    nodes = happening(skeleton.predecessors, skeleton.blocked)
    for first in range(NEVER, len(graph.predecessors)):
        if first != NEVER and is_call(sync, first):
            continue
        for then in range(len(graph.predecessors)):
            question = skeleton.question(first, then)
            if question is None:
                answer = True
            else:
                a, b = question
                answer = b not in nodes or (a != NEVER and bool(folded[b] >> a & 1))
            expected = then not in points or (first != NEVER and bool(whole[then] >> first & 1))
            assert answer is expected, (first, then)


def test_the_skeleton_answers_what_the_whole_order_does(analyses: list[Analysis]) -> None:
    checked = folds = 0
    for analysis in analyses[:50]:
        sync = analysis.sync
        if sync.undetermined is not None:
            continue
        graph = order_graph(sync)
        skeleton = fold(sync, graph)
        check(sync, graph, skeleton)
        checked += 1
        folds += len(skeleton.members) < len(graph.predecessors) * 0.8
    assert checked >= 30
    assert folds >= 0.9 * checked  # it is worth its while


def test_a_node_happens_exactly_if_its_points_do(analyses: list[Analysis]) -> None:
    stuck = 0
    for analysis in analyses:
        if analysis.sync.undetermined is not None:
            continue
        graph = order_graph(analysis.sync)
        skeleton = fold(analysis.sync, graph)
        points = happening(graph.predecessors, graph.blocked)
        nodes = happening(skeleton.predecessors, skeleton.blocked)
        for point in range(len(graph.predecessors)):
            assert (point in points) is (skeleton.node[point] in nodes)
        stuck += len(points) < len(graph.predecessors)
    assert stuck >= 10


def test_members_are_where_node_and_index_say(analyses: list[Analysis]) -> None:
    for analysis in analyses[:20]:
        graph = order_graph(analysis.sync)
        skeleton = fold(analysis.sync, graph)
        places = {p: (n, i) for n, line in enumerate(skeleton.members) for i, p in enumerate(line)}
        assert sorted(places) == list(range(len(graph.predecessors)))
        assert all((skeleton.node[p], skeleton.index[p]) == place for p, place in places.items())
