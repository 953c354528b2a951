"""The order inside a core and across cores against the Machine, which executes the same rules.

Both directions: no run of the Machine leaves the order, and every order that the graph allows runs.
"""

from collections.abc import Callable
from random import Random

import pytest

from mc2proof.checker.counterexample import to_actions
from mc2proof.fuzz.mutations import Mutant
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.instance import Instance, Kind
from mc2proof.protocol.machine import Machine, Phase
from mc2proof.protocol.order import NO_CHAIN, order_core
from mc2proof.protocol.program import Address, Pipe, RegionKind, Role
from mc2proof.protocol.sync import Graph, Sync, order_graph, program_graph, synchronise

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]


def is_silent(sync: Sync, point: int) -> bool:
    """Whether the Machine has no action for ``point``: pipe barriers of a queue, and meetings."""
    if point >= sync.size:
        return True
    event = sync.event_at(point)
    return event.kind is Kind.PIPE_BARRIER and event.pipe is not Pipe.S


def happened_before(sync: Sync, graph: list[list[int]], point: int, happened: set[int]) -> bool:
    """Whether everything that ``point`` must come after has happened."""
    return all(
        earlier in happened or (is_silent(sync, earlier) and happened_before(sync, graph, earlier, happened))
        for earlier in graph[point]
    )


def test_no_run_of_the_machine_leaves_the_order(mutants: list[tuple[Mutant, Instance]]) -> None:
    """Program order, meetings and quiets hold whatever the timing; determinate or not."""
    for number, (mutant, instance) in enumerate(mutants):
        sync = synchronise(instance)
        graph = program_graph(sync)
        machine = Machine(instance)
        for seed in range(4):
            random, state = Random(1000 * number + seed), machine.initial()
            happened: set[int] = set()
            while actions := machine.enabled(state):
                action = random.choice(actions)
                points = {
                    sync.begin(m.core, m.event) if m.phase is Phase.BEGIN else sync.end(m.core, m.event)
                    for m in machine.points(state, action)
                }
                for point in points:
                    assert happened_before(sync, graph, point, happened), (mutant.changes, action)
                happened |= points
                state = machine.step(state, action)


def random_order(graph: Graph, random: Random) -> list[int]:
    """One order in which everything that can happen does."""
    successors: list[list[int]] = [[] for _ in graph.predecessors]
    missing = []
    for point, before in enumerate(graph.predecessors):
        missing.append(len(before) + (point in graph.blocked))
        for earlier in before:
            successors[earlier].append(point)
    ready = [p for p, count in enumerate(missing) if not count]
    order = []
    while ready:
        point = ready.pop(random.randrange(len(ready)))
        order.append(point)
        for after in successors[point]:
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return order


def test_every_order_of_the_graph_runs_on_the_machine(mutants: list[tuple[Mutant, Instance]]) -> None:
    determinate = stuck = 0
    for number, (mutant, instance) in enumerate(mutants):
        sync = synchronise(instance)
        if sync.undetermined is not None:
            continue
        determinate += 1
        graph, machine = order_graph(sync), Machine(instance)
        for seed in range(4):
            order = random_order(graph, Random(1000 * number + seed))
            state = machine.initial()
            for action in to_actions(sync, order):
                assert action in machine.enabled(state), (mutant.changes, action)
                state = machine.step(state, action)
            # and nothing is left that the graph takes for impossible
            assert machine.enabled(state) == []
            assert machine.finished(state) is (len(order) == len(graph.predecessors))
        stuck += not machine.finished(state)
    assert determinate >= 60
    assert stuck >= 10


# --- the rules, one by one --------------------------------------------------------------------


def test_points_of_events(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    aiv.write(Pipe.MTE3, window(heap, 8))  # points 0, 1
    aiv.set_flag(Pipe.MTE3, 0)  # 2
    aiv.put(1, heap, heap, 8)  # 3, 4
    aiv.write(Pipe.V, window(heap, 8))  # 5, 6
    aiv.pipe_barrier()  # 7; END is 8
    order = order_core(instantiate(p.build()).cores[0].events)
    assert order.begin == [0, 2, 3, 5, 7, 8]
    assert order.end == [1, 2, 4, 6, 7, 8]
    assert order.event == [0, 0, 1, 2, 2, 3, 3, 4, 5]
    before = [set(points) for points in order.predecessors]
    assert before == [set(), {0}, {1}, {1}, {3}, {3}, {5}, {3, 1, 6}, {7, 1, 6}]
    assert [p for p, chain in enumerate(order.chain) if chain == NO_CHAIN] == [2, 4]


def test_positions_count_up_along_a_chain(mutants: list[tuple[Mutant, Instance]]) -> None:
    for _, instance in mutants[:20]:
        for core in instance.cores:
            order = order_core(core.events)
            for chain in set(order.chain) - {NO_CHAIN}:
                positions = [p for p, c in zip(order.position, order.chain, strict=True) if c == chain]
                assert positions == list(range(len(positions)))
            assert all(q < p for p, points in enumerate(order.predecessors) for q in points)


@pytest.mark.parametrize("staging", [Pipe.MTE3, Pipe.S])
def test_staging_decides_what_a_put_comes_after(
    start: Start, instantiate: Instantiate, staging: Pipe
) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    p.role(Role.AIV).write(Pipe.MTE3, window(heap, 8))
    p.role(Role.AIV).put(1, heap, heap, 8, staging=staging)
    order = order_core(instantiate(p.build()).cores[0].events)
    assert order.predecessors[order.begin[1]] == ((1,) if staging is Pipe.MTE3 else ())
