"""The time of one more tile: cycle means by hand, and against how the critical path grows."""

import itertools
from fractions import Fraction
from random import Random

import pytest

from mc2proof.checker.cells import Cells
from mc2proof.checker.costs import Costs
from mc2proof.checker.critical_path import Timed, finished, launch_time, timed
from mc2proof.checker.steady import Edge, maximum_cycle_mean, steady_time
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.sync import synchronise

COSTS = {
    "slow matmul": Costs(matmul_tile_us=Fraction(900)),
    "slow puts": Costs(put_latency_us=Fraction(700), matmul_tile_us=Fraction(1)),
    "like each other": Costs(put_latency_us=Fraction(97, 3), matmul_tile_us=Fraction(101)),
}


def test_cycles_by_hand() -> None:
    assert maximum_cycle_mean([]) is None
    assert maximum_cycle_mean([Edge(0, 1, 5, 1)]) is None
    assert maximum_cycle_mean([Edge(0, 0, 5, 2)]) == Fraction(5, 2)
    two = [Edge(0, 1, 4, 0), Edge(1, 0, 3, 2), Edge(1, 1, 3, 1)]
    assert maximum_cycle_mean(two) == Fraction(7, 2)
    assert maximum_cycle_mean([Edge(0, 1, 0, 0), Edge(1, 0, 0, 1)]) == 0


def test_against_all_simple_cycles() -> None:
    random = Random(5)
    for _ in range(100):
        size = random.randint(1, 5)
        edges = [
            Edge(a, b, random.randint(0, 9), random.randint(0, 3) if a < b else random.randint(1, 3))
            for a in range(size)
            for b in range(size)
            if random.random() < 0.5
        ]
        by_ends = {(e.source, e.target): e for e in edges}
        means = []
        for length in range(1, size + 1):
            for nodes in itertools.permutations(range(size), length):
                cycle = [by_ends.get(pair) for pair in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
                if None not in cycle:
                    weight = sum(e.weight for e in cycle if e)
                    means.append(Fraction(weight, sum(e.distance for e in cycle if e)))
        assert maximum_cycle_mean(edges) == max(means, default=None)


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_it_is_the_pace_of_a_long_run(costs: str, depth: int) -> None:
    """Of the barriers: what is sent once for all tiles, and more of it with more tiles, is apart."""
    values = {"ranks": 3, "buffer_size": depth, "tile_cnt": 80}
    sync = synchronise(Cells(ring_all_to_all(), Setup()).reduced(values))
    graph = timed(sync, COSTS[costs])
    times = finished(graph)
    barriers = sorted(times[sync.size + number] for number in range(len(sync.meetings)))
    late, more = len(barriers) - 2, 12  # tiles: a multiple of every number that a cycle reaches back
    grown = Fraction(barriers[late] - barriers[late - 2 * more], more)
    assert steady_time(graph) == grown * graph.unit


def test_the_critical_path_grows_by_it_and_by_what_is_sent_once() -> None:
    cells, costs = Cells(ring_all_to_all(), Setup()), COSTS["slow matmul"]

    def at(tiles: int) -> Timed:
        values = {"ranks": 3, "buffer_size": 2, "tile_cnt": tiles, "m": 8, "k": 64}
        return timed(synchronise(cells.reduced(values)), costs)

    shorter, longer = launch_time(at(60)), launch_time(at(72))
    steady = steady_time(at(60))
    assert shorter is not None
    assert longer is not None
    assert steady is not None
    assert (longer - shorter) / 12 - steady == costs.put_bytes(8 * 2)  # the scales of a tile


def test_too_few_tiles_have_no_pattern() -> None:
    values = {"ranks": 2, "buffer_size": 4, "tile_cnt": 2}
    cells = Cells(ring_all_to_all(), Setup())
    assert steady_time(timed(synchronise(cells.reduced(values)), Costs())) is None
