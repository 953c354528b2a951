"""Inputs in which every segment of every tile is recognisable in the result.

A segment is what one rank sends to one rank for one tile. If any segment is replaced by another, by
zeros, or by another for one half of its bytes, then the result leaves the tolerance in every row that
is affected: that is what makes a stale, torn, misplaced or missing segment show, and lets
`forensics` name it. Made for `kinds`.

How: a segment has a number, written in ``levels`` levels on ``digits`` digits, then more digits by
chance. Column j of A holds digit j modulo ``digits`` of it, as an odd number, so never 0; every row of
a tile adds other amounts to the digits, so that no two rows are alike. Each column of B adds up the
columns of A that hold one digit, with a sign. So a wrong digit changes some column of the result by at
least 2 for each column of A that holds it, of which each half of K has its share. All sums are exact
in float32, in any order. Scale bytes of A stand for 1 or 2, the same for all groups of a row, and carry
the number again, one bit a row.

Where the result has columns enough, they are ``separate``: column j reads source j modulo ranks alone
(the other sources' B is 0 there). Then any number of wrong segments in a tile can be told, each by its
own columns, and the tolerance hides nothing at any number of ranks. With fewer columns every column
reads all sources: one wrong segment always shows up to MOST_CONTRAST, several may hide one another.
Scale bytes of B make columns different by powers of two, so that results in the wrong columns show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..protocol.errors import ParameterError
from .matrices import Geometry, Inputs, RankInputs
from .numerics import FP8, SCALE_BIAS, Bytes, Integers, groups

LEVELS = (2, 4, 8)
"""Levels of a digit, the fewest first: they stand for -1, 1 or -3, -1, 1, 3, and so on, all exact in e5m2."""
MOST_DIGITS = 16
COLUMN_POWERS = 16
"""Powers of two, from 1 up, that columns are multiplied by."""
MOST_CONTRAST = 12
"""Sources of a column times their largest digit, above which the weakest change is lost in the tolerance.

A missing half changes the result by half a unit or more, where a unit is what the digit 1 gives at
scale 1. The result is at most 2 x sources x largest digit units; 1% of it is tolerated, and the golden
and the found one are each rounded by at most 2^-8 of it: 0.5 > 2 * 12 * (0.01 + 2 * 2^-8) * 1.13, where
the last factor is for the absolute 0.01 and the rounding in the test itself.
"""


@dataclass(frozen=True, slots=True)
class Code:
    """How the numbers of segments are written: ``digits`` digits of ``levels`` levels each.

    ``separate``: every column of the result reads one source alone.
    """

    digits: int
    levels: int
    separate: bool


def code_for(geometry: Geometry) -> Code:
    """The code that tells all segments of ``geometry`` apart. Raises ParameterError if there is none.

    Every digit needs a column of the result, and a column of A in each half of K.
    """
    segments = geometry.ranks**2 * geometry.tiles
    for separate in (True, False):
        columns = geometry.n // geometry.ranks if separate else geometry.n
        most = min(columns, geometry.k // 2, MOST_DIGITS)
        for levels in LEVELS:
            if most and levels**most >= segments:
                return Code(most, levels, separate)
    raise ParameterError(
        "inputs",
        None,
        f"tagged inputs cannot tell {segments} segments apart in {geometry.n} columns and {geometry.k} "
        f"values along K: give more of the smaller one, or fewer tiles",
    )


def is_certain(geometry: Geometry) -> bool:
    """Whether every change shows beyond doubt, not only almost surely (see MOST_CONTRAST).

    Halves of a tile's rows and halves of K are meant; scales are told apart where a tile has as many
    rows as the number of a segment has bits.
    """
    code = code_for(geometry)
    together = 1 if code.separate else geometry.ranks
    return together * (code.levels - 1) <= MOST_CONTRAST


def tagged(geometry: Geometry, random: np.random.Generator) -> Inputs:
    """Tagged inputs; ``random`` chooses what the guarantee leaves open."""
    code = code_for(geometry)
    words = _words(geometry, code, random)
    row_salts = random.integers(code.levels, size=(geometry.tile_rows, code.digits))
    patterns = _scale_patterns(geometry, random)
    turns = np.stack([random.permutation(code.digits) for _ in range(geometry.ranks)])
    ranks = []
    for rank in range(geometry.ranks):
        b = _b(geometry, code, turns, random)
        ranks.append(
            RankInputs(
                _a(geometry, code, words[rank], row_salts),
                _scale_a(geometry, patterns[rank]),
                b,
                _scale_b(geometry, random),
            )
        )
    return Inputs(geometry, ranks)


def _words(geometry: Geometry, code: Code, random: np.random.Generator) -> Integers:
    """The digits of every segment, [source, rank, tile, digit], no two segments the same."""
    shape = (geometry.ranks, geometry.ranks, geometry.tiles)
    numbers = random.permutation(int(np.prod(shape)))
    needed = 1
    while code.levels**needed < numbers.size:
        needed += 1
    digits = random.integers(code.levels, size=(numbers.size, code.digits))
    for i in range(needed):
        digits[:, i] = numbers // code.levels**i % code.levels
    return digits.reshape(*shape, code.digits)


def _a(geometry: Geometry, code: Code, words: Integers, row_salts: Integers) -> Bytes:
    """The values of A of the source whose ``words`` are [rank, tile, digit]."""
    rows = np.arange(geometry.rows)
    tile, row = rows // geometry.tile_rows, rows % geometry.tile_rows
    digits = (words[:, tile] + row_salts[row]) % code.levels  # [rank, row, digit]
    signed = (2 * digits - (code.levels - 1)).reshape(-1, code.digits)
    encoded = _encode(signed, geometry.dtypes.a)
    return np.ascontiguousarray(encoded[:, np.arange(geometry.k) % code.digits])


def _b(geometry: Geometry, code: Code, turns: Integers, random: np.random.Generator) -> Bytes:
    """B of one rank: column j of the result reads digit ``turns[source, j]`` of what ``source`` sent."""
    columns = np.arange(geometry.n)
    held = np.arange(geometry.k) % code.digits
    signs = _encode(random.choice([-1, 1], size=(geometry.ranks, geometry.n, 1)), geometry.dtypes.b)
    parts = []
    for source in range(geometry.ranks):
        place = columns // geometry.ranks if code.separate else columns
        part = np.where(held == turns[source][place % code.digits, np.newaxis], signs[source], np.uint8(0))
        if code.separate:
            part[columns % geometry.ranks != source] = 0
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _scale_b(geometry: Geometry, random: np.random.Generator) -> Bytes:
    """One power of two for each column of the result: a column does not pass for another."""
    powers = random.integers(COLUMN_POWERS, size=(geometry.n, 1))
    scales: Bytes = np.full(geometry.shapes["scale_b"], SCALE_BIAS, np.uint8) + powers.astype(np.uint8)
    return scales


def _scale_patterns(geometry: Geometry, random: np.random.Generator) -> Integers:
    """Exponents 0 or 1 of the scales of every row, [source, rank, tile, row], different for each segment.

    Where a tile has too few rows for that, they are as different as they can be. Groups of one row
    have the same, or changes in two of them could cancel.
    """
    shape = (geometry.ranks, geometry.ranks, geometry.tiles)
    count, cells = int(np.prod(shape)), geometry.tile_rows
    bits = random.integers(2, size=(count, cells))
    numbers = random.permutation(count)
    for i in range(min((count - 1).bit_length(), cells)):
        bits[:, i] = numbers >> i & 1
    return bits.reshape(*shape, cells)


def _scale_a(geometry: Geometry, patterns: Integers) -> Bytes:
    scales = np.full(geometry.shapes["scale_a"], SCALE_BIAS, np.uint8)
    rows = patterns.reshape(geometry.ranks, -1)[:, : geometry.rows].reshape(-1, 1)
    scales[:, : groups(geometry.k)] += rows.astype(np.uint8)
    return scales


def _encode(numbers: Integers, dtype: str) -> Bytes:
    """Small whole ``numbers`` as codes of a format that holds them exactly."""
    codes: Bytes = numbers.astype(np.float32).astype(FP8[dtype]).view(np.uint8)
    return codes
