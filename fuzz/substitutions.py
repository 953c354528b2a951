"""What a faulty schedule can put in a segment's place: another one, nothing, or half of either.

A `Substitution` is that as data: which bytes it gives, how it is told, and which property it
violates. `forensics` searches among them; the tests try all of them on tagged inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from .inputs import Geometry, Inputs
from .numerics import Bytes, Integers, Mask


class Part(Enum):
    """Which bytes of a segment are not its own."""

    DATA = "values"
    SCALES = "scales"
    BOTH = "values and scales"


class Half(Enum):
    """How much of them: a put lands in two halves."""

    WHOLE = ""
    FIRST = "first half of the "
    SECOND = "second half of the "


class Segment(NamedTuple):
    """What ``source`` sends to ``rank`` for ``tile``."""

    source: int
    rank: int
    tile: int


@dataclass(frozen=True, slots=True)
class Substitution:
    """In place of ``segment`` its reader finds ``other``, or zeros where that is None."""

    segment: Segment
    other: Segment | None
    part: Part = Part.DATA
    half: Half = Half.WHOLE

    @property
    def text(self) -> str:
        """``segment of rank 0 is that of tile 1``."""
        of = f"segment of rank {self.segment.source}"
        if self.part is Part.SCALES:
            return f"{self.half.value}scales of the {of} are {self._other('those')}"
        both = ", with its scales," if self.part is Part.BOTH else ""
        return f"{self.half.value}{of}{both} is {self._other('that')}"

    @property
    def property(self) -> str:
        """The property that a schedule violates in which this happens.

        Values of a later tile came into their slot too early for its reader; everything else was not
        yet there when it was read, or never came. Scales have no ring, so no later tile's overwrite them.
        """
        other, own = self.other, self.segment
        if self.part is Part.DATA and other and other[:2] == own[:2] and other.tile > own.tile:
            return "no-overwrite-before-read"
        return "no-read-before-write"

    def _other(self, pronoun: str) -> str:
        if self.other is None:
            return "zero: nothing arrived"
        own = self.segment
        source = f" of rank {self.other.source}" if self.other.source != own.source else ""
        rank = f" for rank {self.other.rank}" if self.other.rank != own.rank else ""
        tile = f" of tile {self.other.tile}" if self.other.tile != own.tile else ""
        return f"{pronoun}{source}{rank}{tile}"

    def found(self, inputs: Inputs, rows: Integers) -> tuple[Bytes, Bytes]:
        """The values and scales that the reader finds in ``rows``, numbered within the tile."""
        values, scales = rows_of(inputs, self.segment, rows)
        wrong_values, wrong_scales = (
            (np.zeros_like(values), np.zeros_like(scales))
            if self.other is None
            else rows_of(inputs, self.other, rows)
        )
        total = self.segment_rows(inputs.geometry)
        if self.part is not Part.SCALES:
            values = np.where(self._wrong(values.shape[1], rows, total), wrong_values, values)
        if self.part is not Part.DATA:
            scales = np.where(self._wrong(scales.shape[1], rows, total), wrong_scales, scales)
        return values, scales

    def segment_rows(self, geometry: Geometry) -> int:
        """Rows of the segment."""
        span = geometry.tile_span(self.segment.tile)
        return int(span.stop - span.start)

    def _wrong(self, width: int, rows: Integers, total: int) -> Mask:
        """Which bytes are the other's, of ``rows`` of ``width`` bytes; a segment has ``total`` rows."""
        place = rows[:, np.newaxis] * width + np.arange(width)
        middle = total * width // 2
        first: Mask = place < middle
        if self.half is Half.WHOLE:
            return np.ones_like(first)
        return first if self.half is Half.FIRST else ~first


def rows_of(inputs: Inputs, segment: Segment, rows: Integers) -> tuple[Bytes, Bytes]:
    """``rows`` of a segment, zeros beyond its end (a shorter last tile)."""
    values, scales = inputs.a_segment(*segment)
    if len(values) > rows[-1]:
        return values[rows], scales[rows]
    there = rows < len(values)
    padded = (
        np.zeros((len(rows), values.shape[1]), np.uint8),
        np.zeros((len(rows), scales.shape[1]), np.uint8),
    )
    padded[0][there], padded[1][there] = values[rows[there]], scales[rows[there]]
    return padded


def likely(geometry: Geometry, segment: Segment) -> Iterator[Substitution]:
    """What a reader too early or too late finds in the ring: other tiles, or nothing; whole or half."""
    tiles = [segment._replace(tile=tile) for tile in range(geometry.tiles) if tile != segment.tile]
    for half in Half:
        for other in (*tiles, None):
            yield Substitution(segment, other, half=half)


def unlikely(geometry: Geometry, segment: Segment) -> Iterator[Substitution]:
    """The other single substitutions: segments of other ranks, and wrong scales."""
    others = [
        Segment(source, rank, tile)
        for source in range(geometry.ranks)
        for rank in range(geometry.ranks)
        for tile in range(geometry.tiles)
    ]
    misplaced = [other for other in others if other[:2] != segment[:2]]
    for half in Half:
        for other in misplaced:
            yield Substitution(segment, other, half=half)
    for part in (Part.SCALES, Part.BOTH):
        for found in (*(other for other in others if other != segment), None):
            yield Substitution(segment, found, part)
