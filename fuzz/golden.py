"""What the operator must compute, by its definition: AllToAll, then the product, in plain numpy.

C_r = sum over the ranks s of A_s[block r] x B_r[segment s], dequantised, accumulated in float32 in
the order of the ranks, rounded to bf16 once (hardware.md 5): in another order the sum may differ in
its last bits, so a kernel's own order can be given. It knows nothing of tiles in flight,
flags or heaps. The executable model calls `segment_product` and `accumulate` in the same shapes, one
tile and source at a time, because a BLAS result may depend on the shape of the call: then both are
equal to the bit. `bounds` checks the result against float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .matrices import Inputs
from .numerics import Bytes, Codes, Dtypes, Floats, dequantise, to_bfloat16


def segment_product(a: Bytes, scale_a: Bytes, b: Bytes, scale_b: Bytes, dtypes: Dtypes) -> Floats:
    """The part of a tile that the segment of one source gives, in float32, [m, n].

    Bytes of A are [m, k], of B [n, k], with k columns of one rank; scales are [m, scale_bytes(k)]
    and [n, scale_bytes(k)].
    """
    return multiply(dequantise(a, scale_a, dtypes.a), dequantise(b, scale_b, dtypes.b))


def multiply(a: Floats, b: Floats) -> Floats:
    """``a`` [m, k] times ``b`` [n, k] transposed: the second half of `segment_product`.

    For a caller that dequantises B once for many tiles.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results
        product: Floats = np.ascontiguousarray(a) @ np.ascontiguousarray(b).T
    return product


def accumulate(products: Iterable[Floats]) -> Codes:
    """The tile that ``products``, given in the order of their ranks, add up to, as bf16 codes."""
    total: Floats | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for product in products:
            if total is None:
                total = np.zeros_like(product)
            total += product
    if total is None:
        raise ValueError("a tile has at least one segment")
    return to_bfloat16(total)


def golden_tile(inputs: Inputs, rank: int, tile: int, order: Sequence[int] | None = None) -> Codes:
    """Tile ``tile`` of the result of ``rank``, [rows of the tile, n] bf16 codes.

    ``order``: all ranks, in the order in which a kernel adds up their segments (None: ascending).
    """
    shape = inputs.geometry
    return accumulate(
        segment_product(*inputs.a_segment(source, rank, tile), *inputs.b_segment(rank, source), shape.dtypes)
        for source in (range(shape.ranks) if order is None else order)
    )


def golden(inputs: Inputs, rank: int, orders: Mapping[int, Sequence[int]] | None = None) -> Codes:
    """The result of ``rank``, [rows, n] bf16 codes, tile by tile; the last may be shorter.

    ``orders``: of tiles that are added up in another order than that of the ranks (see `golden_tile`).
    """
    of = orders or {}
    tiles = (golden_tile(inputs, rank, tile, of.get(tile)) for tile in range(inputs.geometry.tiles))
    return np.concatenate(list(tiles))
