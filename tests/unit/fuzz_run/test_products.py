"""Products with names, orders and layouts of their own: the golden result is found from their windows."""

from __future__ import annotations

import numpy as np
import pytest

from mc2proof.fuzz.assertions import assert_matches_golden
from mc2proof.fuzz.contracts import Matmul
from mc2proof.fuzz.execute import Outcome, run
from mc2proof.fuzz.golden import golden
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.mix import Mix
from mc2proof.fuzz.product import geometry_of, is_matmul
from mc2proof.fuzz.search import runner_of
from mc2proof.fuzz.timings import Uniform
from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.errors import ParameterError, UnsupportedError
from mc2proof.protocol.expr import Expr, both, call
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role

from .conftest import instance_of


def product(
    *, tiles: str = "tile_cnt", a: str = "a", c: str = "c", sized: bool = True, turned: bool = False,
    swapped: bool = False, shifted: int = 0, quiet: bool = True,
) -> Protocol:  # fmt: skip
    """All-to-all + matmul in which every tile has a place of its own on the heap.

    The parameter of its tiles, A and C have the names given; not ``sized``: the sizes of A and C are not
    known. ``turned``: every rank adds up from its own segment on. ``swapped``: the first two tiles of C
    change places. ``shifted``: so many rows of A are passed over.
    """
    p = ProtocolBuilder("own-product")
    ranks = p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1)
    count = p.parameter(tiles, default=4)
    m, k, n = (p.parameter(name, low=1, default=size) for name, size in (("m", 2), ("k", 64), ("n", 3)))
    row = call("ceil_div", k, 64) * 2
    rows = count * m
    heap = p.region("heap", RegionKind.SHARED)
    lhs = p.region(a, RegionKind.INPUT, ranks * rows * k if sized else None)
    scales = p.region("scales of " + a, RegionKind.INPUT)
    out = p.region(c, RegionKind.OUTPUT, rows * n * 2 if sized else None, covered=sized)
    base = count * ranks * m * k

    def data(tile: Expr, rank: Expr) -> Expr:
        return (tile * ranks + rank) * m * k

    def scale(tile: Expr, rank: Expr) -> Expr:
        return base + (tile * ranks + rank) * m * row

    aiv = p.role(Role.AIV)
    with aiv.loop("tile", count) as tile:
        with aiv.when(both(p.block < ranks, p.block.ne(p.rank))):
            first = p.block * rows + tile * m + shifted
            aiv.put(p.block, Address(heap, data(tile, p.rank)), Address(lhs, first * k), m * k)
            aiv.put(p.block, Address(heap, scale(tile, p.rank)), Address(scales, first * row), m * row)
            if quiet:
                aiv.quiet(p.block)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, tile)
    aic = p.role(Role.AIC)
    i = segment_index("i")
    source = (i + p.rank) % ranks if turned else i
    with aic.loop("tile", count) as tile:
        aic.wait_flag(Pipe.MTE2, tile)
        first = p.rank * rows + tile * m + shifted
        of_data, of_scale = (
            Origin(source, Address(lhs, first * k)),
            Origin(source, Address(scales, first * row)),
        )
        remote, own = source.ne(p.rank), source.eq(p.rank)
        to = (tile + tile.eq(0) - tile.eq(1)) if swapped else tile
        aic.compute(
            "matmul", "i", ranks,
            reads=[
                window(Address(heap, data(tile, source)), m * k, origin=of_data, guard=remote),
                window(Address(heap, scale(tile, source)), m * row, origin=of_scale, guard=remote),
                window(of_data.address, m * k, origin=of_data, guard=own),
                window(of_scale.address, m * row, origin=of_scale, guard=own),
            ],
            writes=[window(Address(out, to * m * n * 2), m * n * 2)],
        )  # fmt: skip
    return p.build()


OWN_NAMES = {
    "tiles": product(tiles="count"),
    "A": product(a="lhs"),
    "A called b": product(a="b"),
    "C": product(c="out"),
    "all, of no size": product(tiles="count", a="lhs", c="out", sized=False),
}


@pytest.mark.parametrize("name", OWN_NAMES)
def test_names_do_not_matter(name: str) -> None:
    instance = instance_of(OWN_NAMES[name], ranks=3)
    assert is_matmul(instance)
    assert geometry_of(instance).rows == 4 * 2
    assert isinstance(runner_of(instance).contract, Matmul)
    assert assert_matches_golden(OWN_NAMES[name], values={"ranks": 3}, examples=20).fault is None


def test_it_is_judged_by_the_golden_result_under_any_name() -> None:
    instance = instance_of(product(c="out"), ranks=2, tile_cnt=3)
    inputs = make_inputs("tagged", geometry_of(instance), 0)
    outcome = run(instance, inputs, Uniform(0))
    for rank, regions in enumerate(outcome.outputs[0]):
        assert regions["out"].tobytes() == golden(inputs, rank).tobytes()


def test_a_fault_is_found_under_any_name() -> None:
    with pytest.raises(AssertionError, match="read-before-write"):
        assert_matches_golden(product(tiles="count", a="lhs", c="out", quiet=False), examples=50)


@pytest.mark.parametrize("kind", ["normal", "special", "extreme"])
def test_segments_are_added_up_in_the_order_of_the_kernel(kind: str) -> None:
    instance = instance_of(product(turned=True), ranks=3, m=3, k=64, n=5)
    runner = runner_of(instance, kind=kind)
    assert not any(runner.run(Uniform(seed)).failed for seed in range(10))


def test_any_nan_is_any_other() -> None:
    contract = runner_of(instance_of(product())).contract
    codes = np.array([0x7FC0, 0xFFC1, 0x7F80, 0x3F80], np.uint16)
    found = np.array([0xFFFF, 0x7FC0, 0xFF80, 0x3F81], np.uint16)
    differs = contract.differs("c", codes.view(np.uint8), found.view(np.uint8))
    assert list(np.flatnonzero(differs)) == [5, 6]  # the sign of the infinity, the last bit of 1


def failure(protocol: Protocol) -> str:
    with pytest.raises(AssertionError) as raised:
        assert_matches_golden(protocol, examples=3)
    return str(raised.value)


def test_tiles_in_wrong_places_are_called_so() -> None:
    text = failure(product(swapped=True))
    assert "violates    golden-result (not-golden)" in text
    assert "rank 0 AIC block 0 writes c[" in text


def test_another_layout_is_judged_by_origins_alone() -> None:
    instance = instance_of(product(shifted=1, sized=False))
    assert not is_matmul(instance)
    runner = runner_of(instance)
    assert isinstance(runner.contract, Mix)
    assert runner.judged
    assert not any(runner.run(Uniform(seed)).failed for seed in range(10))
    with pytest.raises(UnsupportedError, match="segment 0 is no tile of the rows for its rank"):
        geometry_of(instance)
    matrices = make_inputs("tagged", geometry_of(instance_of(product())), 0)
    with pytest.raises(ParameterError, match="of no use here: a product whose segment 0 is no tile"):
        run(instance, matrices, Uniform(0))


def test_no_tile_leaves_nothing_to_run() -> None:
    instance = instance_of(product(tiles="count"), count=0)
    with pytest.raises(UnsupportedError, match="own-product leaves nothing to multiply here"):
        runner_of(instance)


def test_a_protocol_without_roles_is_refused() -> None:
    p = ProtocolBuilder("no roles")
    p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1, default=1)
    with pytest.raises(ParameterError, match="no roles has no roles: nothing to run"):
        runner_of(instance_of(p.build()))


def test_an_outcome_says_how_much_was_judged() -> None:
    outcome: Outcome = runner_of(instance_of(product(), tile_cnt=3, n=3)).run(Uniform(0))
    reads = 2 * 2 * 3 * 2 * 2  # ranks, blocks, tiles, segments, windows
    assert (outcome.judged.reads, outcome.judged.output_bytes) == (reads, 2 * 3 * 2 * 3 * 2)
    assert str(outcome.judged) == "48 reads and 72 bytes of outputs judged in each timing"
