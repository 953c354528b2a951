"""The kinds of inputs: tagged, normal, extreme and special, each made from a seed alone.

Used by `devicefiles` and by the strategies of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ..protocol.errors import ParameterError
from .matrices import Geometry, Inputs, RankInputs
from .numerics import FP8, NO_SCALE, SCALE_BIAS, VALUES, Bytes
from .tagged import tagged

LEAST_NORMAL: Mapping[str, float] = MappingProxyType({"e4m3": 2.0**-6, "e5m2": 2.0**-14})
"""The least value with a full fraction."""

Maker = Callable[[Geometry, np.random.Generator], Inputs]


def make_inputs(kind: str, geometry: Geometry, seed: int) -> Inputs:
    """Inputs of a kind of `KINDS`: the same for the same arguments. Raises ParameterError."""
    if kind not in KINDS:
        raise ParameterError("kind", kind, f"must be one of {', '.join(KINDS)}")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ParameterError("seed", seed, "must be a whole number from 0")
    return KINDS[kind](geometry, np.random.default_rng(seed))


def normal(geometry: Geometry, random: np.random.Generator) -> Inputs:
    """Values of a standard normal distribution, scales from 1/4 to 4."""

    def values(shape: tuple[int, int], dtype: str) -> Bytes:
        codes: Bytes = random.standard_normal(shape, np.float32).astype(FP8[dtype]).view(np.uint8)
        return codes

    return _independent(geometry, values, lambda shape: _scales(random, shape, 2))


def extreme(geometry: Geometry, random: np.random.Generator) -> Inputs:
    """The largest, the smallest normal and subnormal values, and zeros; scales from 2^-20 to 2^20."""

    def values(shape: tuple[int, int], dtype: str) -> Bytes:
        return random.choice(_corners(dtype), size=shape)

    return _independent(geometry, values, lambda shape: _scales(random, shape, 20))


def special(geometry: Geometry, random: np.random.Generator) -> Inputs:
    """Normal data in which a row in four has a NaN code, an infinity (e5m2) or a scale 0, 254 or 255."""
    inputs = normal(geometry, random)
    for buffers in inputs.of_rank:
        for values, scales, dtype in (
            (buffers.a, buffers.scale_a, geometry.dtypes.a),
            (buffers.b, buffers.scale_b, geometry.dtypes.b),
        ):
            table = VALUES[dtype]
            codes = np.flatnonzero(~np.isfinite(table)).astype(np.uint8)
            _spoil(values, codes, random)
            _spoil(scales, np.array([0, 0, 254, NO_SCALE], np.uint8), random)
    return inputs


def _spoil(buffer: Bytes, codes: Bytes, random: np.random.Generator) -> None:
    """Put one of ``codes`` somewhere into one row in eight."""
    rows = np.flatnonzero(random.random(len(buffer)) < 1 / 8)
    buffer[rows, random.integers(buffer.shape[1], size=rows.size)] = random.choice(codes, size=rows.size)


def _corners(dtype: str) -> Bytes:
    """The codes of the largest, least normal and least subnormal value, their negatives, and zero."""
    table = VALUES[dtype]
    magnitudes = np.unique(np.abs(table[np.isfinite(table)]))
    wanted = [magnitudes[-1], LEAST_NORMAL[dtype], magnitudes[1], 0.0]
    return np.array([code for code in range(256) if abs(table[code]) in wanted], np.uint8)


def _scales(random: np.random.Generator, shape: tuple[int, int], reach: int) -> Bytes:
    return random.integers(SCALE_BIAS - reach, SCALE_BIAS + reach + 1, size=shape, dtype=np.uint8)


def _independent(
    geometry: Geometry,
    values: Callable[[tuple[int, int], str], Bytes],
    scales: Callable[[tuple[int, int]], Bytes],
) -> Inputs:
    """Inputs whose buffers are drawn one after the other."""
    shapes, dtypes = geometry.shapes, geometry.dtypes
    return Inputs(
        geometry,
        [
            RankInputs(
                values(shapes["a"], dtypes.a),
                scales(shapes["scale_a"]),
                values(shapes["b"], dtypes.b),
                scales(shapes["scale_b"]),
            )
            for _ in range(geometry.ranks)
        ],
    )


KINDS: Mapping[str, Maker] = MappingProxyType(
    {"tagged": tagged, "normal": normal, "extreme": extreme, "special": special}
)
"""What makes each kind of inputs."""
