"""The predicted time: small cases by hand, and cells against whole instances."""

from fractions import Fraction
from pathlib import Path

import pytest

from mc2proof.checker.cell_rules import backlog
from mc2proof.checker.cells import Cells, classes
from mc2proof.checker.costs import DEFAULT, Costs, load_costs
from mc2proof.checker.critical_path import critical_path, finished, launch_time, timed
from mc2proof.checker.engine import Declined
from mc2proof.checker.happens_before import HappensBefore
from mc2proof.checker.layout import extents
from mc2proof.checker.reach import reach
from mc2proof.fuzz.bases import BASES
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.expr import Const
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.parameters import check_values
from mc2proof.protocol.program import Address, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.sync import synchronise
from mc2proof.protocol.unroll import unroll

ODD = Costs(Fraction(7), Fraction(1, 1000), Fraction(11), Fraction(3), Fraction(1, 3), Fraction(1, 500))


def two_puts() -> Protocol:
    """Rank 0 puts 10 and 20 bytes to rank 1, waits for them, and all meet."""
    p = ProtocolBuilder("two-puts")
    p.parameter("ranks", low=2, high=2, default=2)
    p.parameter("blocks", low=1, high=1, default=1)
    heap = Address(p.region("heap", RegionKind.SHARED, 64), Const(0))
    source = Address(p.region("source", RegionKind.INPUT, 64), Const(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.put(1 - p.rank, heap, source, 10)
        aiv.put(1 - p.rank, heap, source, 20)
        aiv.quiet(1 - p.rank)
    aiv.barrier()
    return p.build()


def test_requests_to_one_peer_leave_in_turn() -> None:
    graph = timed(synchronise(unroll(two_puts(), {})), ODD)
    path = critical_path(graph)
    assert path is not None
    # one byte a microsecond: 10, then 20, then the latency, then the barrier
    assert path.time == launch_time(graph) == 10 + 20 + 7 + 3
    assert [(s.what, s.duration) for s in path.stretches] == [
        ("bytes of a put leave", 10),
        ("bytes of a put leave", 20),
        ("put lands", 7),
        ("vec barrier", 3),
    ]
    assert [s.begin for s in path.stretches] == [0, 10, 30, 37]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("tiles", [0, 1, 5, 8])
def test_one_cell_of_each_kind_is_enough(ranks: int, depth: int, tiles: int) -> None:
    protocol = ring_all_to_all()
    values = {"ranks": ranks, "buffer_size": depth, "tile_cnt": tiles}
    complete = check_values(protocol, values)
    assert len(classes(protocol, complete, Setup())) <= 2
    whole = unroll(protocol, values)
    _same(whole, Cells(protocol, Setup()).reduced(values))
    assert reach(protocol, complete, Setup()) == max((e.needed for e in extents(whole)), default=0)


@pytest.mark.parametrize("launches", [1, 2])
@pytest.mark.parametrize("name", BASES)
def test_cells_of_the_base_protocols(name: str, launches: int) -> None:
    setup = Setup(launches=launches)
    protocol = BASES[name]
    values = {"ranks": 3, "blocks": 3, "buffer_size": 2, "tile_cnt": 5}
    values = {n: v for n, v in values.items() if protocol.parameter(n) is not None}
    _same(unroll(protocol, values, setup), Cells(protocol, setup).reduced(values))


def test_cells_of_mutants(mutants: list) -> None:
    for _, instance in mutants:
        _same(instance, Cells(instance.protocol, instance.setup).reduced(instance.values))


def test_reach_of_mutants(mutants: list) -> None:
    told = 0
    for _, instance in mutants:
        try:
            found = reach(instance.protocol, instance.values, instance.setup)
        except Declined:
            continue
        told += 1
        assert found == max((e.needed for e in extents(instance)), default=0)
    assert told > 60


def _same(whole: Instance, part: Instance) -> None:
    """Time, ends and backlog are those of the whole."""
    sync, cells = synchronise(whole), synchronise(part)
    assert (sync.undetermined is None) == (cells.undetermined is None)
    if sync.undetermined is None:
        graphs = timed(sync, ODD), timed(cells, ODD)
        assert launch_time(graphs[0]) == launch_time(graphs[1])
        orders = HappensBefore(sync), HappensBefore(cells)
        for graph, order in zip(graphs, orders, strict=True):
            again = timed(order.sync, ODD, order)
            assert finished(again) == finished(graph)
            assert (again.ends, again.leaving, sorted(again.order)) == (
                graph.ends, graph.leaving, sorted(graph.order)
            )  # fmt: skip
        assert (orders[0].stuck() is None) == (orders[1].stuck() is None)
        assert backlog(sync, orders[0]) == backlog(cells, orders[1])


def test_a_launch_that_never_ends_has_no_time() -> None:
    p = ProtocolBuilder("stuck")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=1)
    p.role(Role.AIV).wait_flag(Pipe.MTE3, Const(0))
    graph = timed(synchronise(unroll(p.build(), {})), DEFAULT)
    assert launch_time(graph) is None
    assert critical_path(graph) is None


def test_a_cost_file(tmp_path: Path) -> None:
    file = tmp_path / "costs.toml"
    file.write_text("put_latency_us = 0.1\nmatmul_tile_us = 3\n")
    costs = load_costs(file)
    assert costs.put_latency_us == Fraction(1, 10)
    assert costs.numbers() == DEFAULT.numbers() | {"put_latency_us": 0.1, "matmul_tile_us": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed = 1", "no such name"),
        ("put_bandwidth_gb_s = 0", "above 0"),
        ("flag_us = -1", "at least 0"),
        ("flag_us = true", "must be a number"),
        ("flag_us = nan", "must be a number"),
    ],
)
def test_a_bad_cost(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "costs.toml").write_text(text)
    with pytest.raises(ParameterError, match=said):
        load_costs(tmp_path / "costs.toml")
