"""The golden result against the definition in float64, for all formats, sizes and kinds of inputs."""

import numpy as np
import pytest

from mc2proof.fuzz.bounds import decode, reference
from mc2proof.fuzz.golden import accumulate, golden, golden_tile, segment_product
from mc2proof.fuzz.kinds import KINDS, make_inputs
from mc2proof.fuzz.matrices import Geometry, Inputs, RankInputs
from mc2proof.fuzz.numerics import PAIRS, VALUES, Dtypes, from_bfloat16, scale_bytes
from mc2proof.protocol.errors import ParameterError

SIZES = {  # ranks, rows, k, n, rows of a tile
    "usual": (3, 12, 64, 9, 4),
    "one group": (2, 8, 32, 8, 4),
    "odd groups": (2, 8, 96, 8, 4),
    "half a group more": (4, 6, 80, 12, 3),
    "shorter last tile": (2, 10, 64, 8, 4),
    "one rank": (1, 4, 128, 8, 4),
    "long": (2, 4, 2048, 8, 2),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtypes", PAIRS, ids=str)
def test_within_the_bound_of_the_definition(dtypes: Dtypes, kind: str, size: str) -> None:
    inputs = make_inputs(kind, Geometry(*SIZES[size], dtypes), 11)
    promised = 0
    for rank in range(inputs.geometry.ranks):
        found = from_bfloat16(golden(inputs, rank)).astype(np.float64)
        expected = reference(inputs, rank)
        fixed = np.isfinite(expected.bound)
        promised += int(fixed.sum())
        assert (np.abs(found[fixed] - expected.value[fixed]) <= expected.bound[fixed]).all()
        assert (np.isnan(found) >= np.isnan(expected.value)).all()
        if kind == "tagged":  # sums are exact: only the rounding to bf16 is left
            assert (np.abs(found - expected.value) <= np.abs(expected.value) * 2.0**-8).all()
    if kind != "special":
        assert promised == inputs.geometry.ranks * inputs.geometry.rows * inputs.geometry.n


def test_the_bound_is_no_wider_than_it_has_to_be() -> None:
    """Most of it is the rounding to bf16, which data by chance nearly uses up."""
    inputs = make_inputs("normal", Geometry(3, 16, 64, 16, 4), 1)
    expected = reference(inputs, 0)
    used = np.abs(from_bfloat16(golden(inputs, 0)) - expected.value) / expected.bound
    assert 0.8 < used.max() <= 1
    assert (expected.bound <= np.abs(expected.value) * 2.0**-8 + 0.02).all()


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_the_definition_decodes_every_code(dtype: str) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(-1, 32)
    ones = np.full((8, 2), 127, np.uint8)
    np.testing.assert_array_equal(decode(codes, ones, dtype).ravel(), VALUES[dtype].astype(np.float64))
    top = decode(codes, np.full((8, 2), 254, np.uint8), dtype)
    assert np.max(top[np.isfinite(top)]) == {"e4m3": 448, "e5m2": 57344}[dtype] * 2.0**127
    assert np.isnan(decode(codes, np.full((8, 2), 255, np.uint8), dtype)).all()


def by_loops(inputs: Inputs, rank: int) -> np.ndarray:
    """The definition once more, one product at a time in Python's numbers."""
    g = inputs.geometry
    result = np.zeros((g.rows, g.n))
    for m in range(g.rows):
        for n in range(g.n):
            for s in range(g.ranks):
                for kk in range(g.k):
                    row = rank * g.rows + m
                    a = float(VALUES[g.dtypes.a][inputs.of_rank[s].a[row, kk]])
                    sa = 2.0 ** (int(inputs.of_rank[s].scale_a[row, kk // 32]) - 127)
                    b = float(VALUES[g.dtypes.b][inputs.of_rank[rank].b[n, s * g.k + kk]])
                    sb = int(inputs.of_rank[rank].scale_b[n, s * scale_bytes(g.k) + kk // 32])
                    result[m, n] += a * sa * b * 2.0 ** (sb - 127)
    return result


@pytest.mark.parametrize("dtypes", PAIRS, ids=str)
def test_layout_of_buffers_by_loops(dtypes: Dtypes) -> None:
    inputs = make_inputs("normal", Geometry(3, 4, 70, 3, 2, dtypes), 5)
    for rank in range(3):
        np.testing.assert_allclose(reference(inputs, rank).value, by_loops(inputs, rank), rtol=1e-12)


def test_equal_to_the_bit_however_it_is_put_together() -> None:
    inputs = make_inputs("normal", Geometry(4, 32, 256, 24, 8), 3)
    whole = golden(inputs, 1)
    for tile in range(4):
        products = [
            segment_product(*inputs.a_segment(s, 1, tile), *inputs.b_segment(1, s), inputs.geometry.dtypes)
            for s in range(4)
        ]
        copied = [
            segment_product(*map(np.copy, (*inputs.a_segment(s, 1, tile), *inputs.b_segment(1, s))), Dtypes())
            for s in range(4)
        ]
        np.testing.assert_array_equal(accumulate(products), accumulate(copied))
        np.testing.assert_array_equal(golden_tile(inputs, 1, tile), accumulate(products))
        np.testing.assert_array_equal(whole[tile * 8 : tile * 8 + 8], accumulate(products))


def test_sums_are_in_float32_in_the_order_of_ranks_and_rounded_once() -> None:
    big, small = np.full((1, 1), 2.0**24, np.float32), np.ones((1, 1), np.float32)
    assert from_bfloat16(accumulate([big, small, -big]))[0, 0] == 0  # 2^24 + 1 is no float32
    assert from_bfloat16(accumulate([big, -big, small]))[0, 0] == 1
    parts = [np.full((1, 1), x, np.float32) for x in (1, 2**-9, 2**-9, 2**-20)]
    assert from_bfloat16(accumulate(parts))[0, 0] == 1 + 2**-7
    with pytest.raises(ValueError, match="at least one"):
        accumulate([])


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_depend_on_their_seed_alone(kind: str) -> None:
    geometry = Geometry(2, 8, 64, 8, 4)
    one, same, other = (make_inputs(kind, geometry, seed) for seed in (1, 1, 2))
    for name in geometry.shapes:
        for rank in range(2):
            assert (one.buffers(rank)[name] == same.buffers(rank)[name]).all()
    assert any((one.buffers(0)[name] != other.buffers(0)[name]).any() for name in geometry.shapes)


@pytest.mark.parametrize("dtypes", PAIRS, ids=str)
def test_special_and_extreme_values_are_there(dtypes: Dtypes) -> None:
    geometry = Geometry(2, 64, 64, 64, 16, dtypes)
    special, extreme = make_inputs("special", geometry, 0), make_inputs("extreme", geometry, 0)
    for name, dtype in (("a", dtypes.a), ("b", dtypes.b)):
        seen = VALUES[dtype][np.concatenate([special.buffers(rank)[name].ravel() for rank in range(2)])]
        assert np.isnan(seen).any()
        assert np.isinf(seen).any() == (dtype == "e5m2")
        scales = np.concatenate([special.buffers(rank)[f"scale_{name}"].ravel() for rank in range(2)])
        assert {0, 254, 255} <= set(map(int, scales))
        corners = set(map(float, np.abs(VALUES[dtype][extreme.buffers(0)[name]]).ravel()))
        largest, least = {"e4m3": (448, 2**-9), "e5m2": (57344, 2**-16)}[dtype]
        assert {0.0, float(largest), float(least)} <= corners
        assert len(corners) == 4


def test_wrong_arguments_are_named() -> None:
    geometry = Geometry(2, 8, 64, 8, 4)
    with pytest.raises(ParameterError, match="kind = odd: must be one of tagged, normal"):
        make_inputs("odd", geometry, 0)
    with pytest.raises(ParameterError, match="seed = -1"):
        make_inputs("normal", geometry, -1)
    with pytest.raises(ParameterError, match="n = 0: must be an integer from 1"):
        Geometry(2, 8, 64, 0)
    with pytest.raises(ParameterError, match="tile = 2: must be from 0 to 1"):
        geometry.tile_span(2)
    right = make_inputs("normal", geometry, 0)
    with pytest.raises(ParameterError, match="inputs = 1: ranks given, not 2"):
        Inputs(geometry, right.of_rank[:1])
    one = right.of_rank[0]
    with pytest.raises(ParameterError, match=r"a = uint8 \[8, 64\]: of rank 1 must be uint8 \[16, 64\]"):
        Inputs(geometry, [one, RankInputs(one.a[:8], one.scale_a, one.b, one.scale_b)])
