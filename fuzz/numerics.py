"""The number formats of MXFP8 data, by ml_dtypes: fp8 values, e8m0 scales of 32 values, bf16 results.

Arrays of bytes become float32 through tables of all 256 codes. Used by `golden`, which defines the
operator, and by `matrices`. Facts about the formats cite hardware.md 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..protocol.errors import ParameterError

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GROUP = 32
"""Values along K that share one scale (hardware.md 5)."""
SCALE_PAIR = 2
"""Scales are stored in pairs, one pair for 64 values: an odd last group has a spare byte beside it."""
SCALE_BIAS = 127
"""A scale byte b stands for 2^(b - 127); 255 is NaN."""
NO_SCALE = 255

FP8: Mapping[str, Any] = MappingProxyType(
    {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
)
"""The formats of values: their short names, and their numpy types."""
_ALL_CODES = np.arange(256, dtype=np.uint8)


def _frozen(table: Floats) -> Floats:
    table.setflags(write=False)
    return table


VALUES: Mapping[str, Floats] = MappingProxyType(
    {name: _frozen(_ALL_CODES.view(kind).astype(np.float32)) for name, kind in FP8.items()},
)
"""The value of each of the 256 codes of a format."""
SCALES: Floats = _frozen(_ALL_CODES.view(ml_dtypes.float8_e8m0fnu).astype(np.float32))
"""The value of each scale byte: 2^-127 .. 2^127, and NaN. All are exact in float32."""


@dataclass(frozen=True, slots=True)
class Dtypes:
    """The formats of A's and of B's values, each one of `FP8`."""

    a: str = "e4m3"
    b: str = "e4m3"

    def __post_init__(self) -> None:
        for name in (self.a, self.b):
            if name not in FP8:
                raise ParameterError("dtype", name, f"must be one of {', '.join(FP8)}")

    def __str__(self) -> str:
        return f"{self.a}:{self.b}"


PAIRS: tuple[Dtypes, ...] = tuple(Dtypes(a, b) for a in FP8 for b in FP8)
"""The four combinations that a kernel may be built for."""


def parse_dtypes(text: str) -> Dtypes:
    """The formats that ``A:B`` names, for example ``e4m3:e5m2``. Raises ParameterError."""
    a, colon, b = text.strip().lower().partition(":")
    if not colon or a not in FP8 or b not in FP8:
        raise ParameterError("dtype", repr(text), f"must be one of {', '.join(map(str, PAIRS))}")
    return Dtypes(a, b)


def groups(k: int) -> int:
    """The groups of 32 that ``k`` values along K are in; the last may be shorter."""
    return -(-k // GROUP)


def scale_bytes(k: int) -> int:
    """The scale bytes of a row of ``k`` values: ceil(k / 64) pairs (hardware.md 5)."""
    return -(-k // (GROUP * SCALE_PAIR)) * SCALE_PAIR


def dequantise(values: Bytes, scales: Bytes, dtype: str) -> Floats:
    """What the rows of ``values`` [rows, k] with their ``scales`` [rows, scale_bytes(k)] stand for.

    Exact, except that a product beyond float32 is infinite: the largest e4m3 value, 448, is so from
    scale byte 247 on. Spare scale bytes are not looked at.
    """
    rows, k = values.shape
    used = SCALES[scales[:, : groups(k)]]
    numbers = VALUES[dtype].take(values)  # in C order, whatever the order of ``values``
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results
        if k % GROUP == 0:
            numbers.reshape(rows, -1, GROUP)[...] *= used[:, :, np.newaxis]
        else:
            numbers *= np.repeat(used, GROUP, axis=1)[:, :k]
    return numbers


def to_bfloat16(numbers: Floats) -> Codes:
    """``numbers`` rounded to bf16, to the nearest, ties to even, as codes of 16 bits.

    Magnitudes from 2^127 * (2 - 2^-8) on become infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results
        codes: Codes = numbers.astype(ml_dtypes.bfloat16).view(np.uint16)
    return codes


def from_bfloat16(codes: Codes) -> Floats:
    """The numbers that bf16 ``codes`` stand for, exactly."""
    numbers: Floats = codes.view(ml_dtypes.bfloat16).astype(np.float32)
    return numbers


def round_to_bfloat16(numbers: Floats) -> Floats:
    """``numbers`` rounded to bf16 and kept in float32: one step of arithmetic in bf16."""
    return from_bfloat16(to_bfloat16(numbers))
