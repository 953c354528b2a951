"""The operator in float64, and how far a float32 result may be from it.

Independent of `golden` and of ml_dtypes: codes are decoded by their fields, sums are taken in float64,
over all of K at once. The tests compare all four pairs of formats with it.

The bound. Let u = 2^-24, x the exact sum of the N = ranks * k products, X the sum of their magnitudes.

- Dequantised values are exact in float32: at most 4 bits, from 2^-143 (subnormal) to 2^127.
- A product of two has at most 8 bits, so it is exact, or too small for float32 and then off by at most
  half of 2^-149 (and float32 sums of such are exact).
- Each product passes through at most N - 1 + ranks additions, in any order, with or without fused
  multiplication: the sum is off by at most g * X, where g = n u / (1 - n u) for n = N + ranks.
- So e32 = g X + N 2^-150 (1 + g).
- Rounding to bf16 (8 bits) adds half a unit of the last place: at most 2^-8 of what is rounded, or
  2^-134 if that is subnormal: (|x| + e32) 2^-8 + 2^-134.
- The float64 sums are off by as much with u = 2^-53 and no underflow: g64 X; and |x| is only known so.

All of it holds where float32 does not overflow: the bound is infinite where X, or a dequantised value,
could pass 2^127, and where a NaN or an infinity takes part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .matrices import Inputs
from .numerics import GROUP, NO_SCALE, SCALE_BIAS, Bytes, Doubles, Integers, Mask

UNIT32, UNIT64, UNIT_BF16 = 2.0**-24, 2.0**-53, 2.0**-8
LEAST_PRODUCT_ERROR, LEAST_BF16_ERROR = 2.0**-150, 2.0**-134
SAFE = 2.0**127
"""Magnitudes below it are far enough from float32's and bf16's largest that nothing rounds up to infinity."""

_FIELDS = {"e4m3": (4, 3), "e5m2": (5, 2)}  # bits of the exponent and of the fraction


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The result of one rank in float64, and how far a bf16 result may be from each element.

    ``bound`` is infinite where nothing is promised: a value there may be NaN or infinite.
    """

    value: Doubles
    bound: Doubles


def reference(inputs: Inputs, rank: int) -> Reference:
    """The result of ``rank``, [rows, n]."""
    shape = inputs.geometry
    rows = slice(rank * shape.rows, (rank + 1) * shape.rows)
    a = np.concatenate([decode(r.a[rows], r.scale_a[rows], shape.dtypes.a) for r in inputs.of_rank], axis=1)
    segments = [inputs.b_segment(rank, source) for source in range(shape.ranks)]
    b = np.concatenate([decode(*segment, shape.dtypes.b) for segment in segments], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        value = a @ b.T
        magnitudes = np.abs(a) @ np.abs(b).T
        within = np.outer(_stays_finite(a), _stays_finite(b)) & (magnitudes < SAFE)
        bound = np.where(within, _bound(value, magnitudes, shape.ranks * shape.k, shape.ranks), np.inf)
    return Reference(value, bound)


def decode(codes: Bytes, scales: Bytes, dtype: str) -> Doubles:
    """What ``codes`` [rows, k] and their ``scales`` stand for, from the bits of each format."""
    exponent_bits, fraction_bits = _FIELDS[dtype]
    bias = (1 << exponent_bits - 1) - 1
    exponent = (codes >> fraction_bits & (1 << exponent_bits) - 1).astype(np.int64)
    fraction = (codes & (1 << fraction_bits) - 1).astype(np.int64)
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction)
    values = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - bias - fraction_bits)
    values[_no_number(dtype, exponent, fraction)] = np.nan
    if dtype == "e5m2":
        values[(exponent == 31) & (fraction == 0)] = np.inf
    values = np.where(codes >= 128, -values, values)
    shift = np.repeat(scales.astype(np.int64), GROUP, axis=1)[:, : codes.shape[1]]
    scaled: Doubles = np.where(shift == NO_SCALE, np.nan, np.ldexp(values, shift - SCALE_BIAS))
    return scaled


def _no_number(dtype: str, exponent: Integers, fraction: Integers) -> Mask:
    """e4m3 has one NaN for each sign and no infinity, e5m2 has both as IEEE has them."""
    nan: Mask = (exponent == 15) & (fraction == 7) if dtype == "e4m3" else (exponent == 31) & (fraction > 0)
    return nan


def _stays_finite(numbers: Doubles) -> Mask:
    """Rows without NaN, and without a number that float32 could not hold."""
    fine: Mask = np.all(np.abs(numbers) < SAFE, axis=1)
    return fine


def _bound(value: Doubles, magnitudes: Doubles, products: int, ranks: int) -> Doubles:
    growth32, growth64 = (_growth(products + ranks, unit) for unit in (UNIT32, UNIT64))
    exactly = np.abs(value) + growth64 * magnitudes
    error32 = growth32 * magnitudes + products * LEAST_PRODUCT_ERROR * (1 + growth32)
    bound: Doubles = (
        growth64 * magnitudes + error32 + (exactly + error32) * UNIT_BF16 + LEAST_BF16_ERROR
    ) * (1 + 2.0**-40)  # this line itself is computed in float64
    return bound


def _growth(additions: int, unit: float) -> float:
    return additions * unit / (1 - additions * unit)
