"""What a faulty schedule can put in a segment's place: another one, nothing, or half of either.

A `Substitution` is that as data: which bytes it gives, how it is told, and which properties it may
violate. `residual` searches among them; the tests try all of them on tagged inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from .matrices import Geometry, Inputs
from .numerics import Bytes, Integers, Mask

NOT_THERE = ("no-read-before-write", "completion", "coverage")
"""Read too early, its put never completed, or never sent: the bytes found are the same."""
OVERWRITTEN = ("no-overwrite-before-read", "no-read-before-write")
"""Overwritten by a later tile; or read too early, what an earlier launch on the same inputs left there."""
MISPLACED = ("no-read-before-write", "coverage")
"""A reader finds other data, and its own was not delivered, or not where it looks."""
NEXT_LAUNCH = ("relaunch",)


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
    """What ``source`` sends to ``rank`` for ``tile``.

    In another launch than the one that is judged: ``launch`` -1 or 1. ``shift``: that many rows above
    its own, as a kernel reads that takes row blocks for whole tiles where they are not.
    """

    source: int
    rank: int
    tile: int
    launch: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """The inputs of the launch that is judged, and of those before and after it where they are known."""

    given: Inputs
    before: Inputs | None = None
    after: Inputs | None = None

    @property
    def geometry(self) -> Geometry:
        """The sizes, the same in all launches."""
        return self.given.geometry

    @property
    def others(self) -> tuple[int, ...]:
        """The numbers of the other known launches."""
        return tuple(n for n, inputs in ((-1, self.before), (1, self.after)) if inputs is not None)

    def of(self, launch: int) -> Inputs:
        """The inputs of launch -1, 0 or 1."""
        inputs = (self.given, self.after, self.before)[launch]
        if inputs is None:
            raise ValueError(f"the inputs of launch {launch} are not known")
        return inputs


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
    def properties(self) -> tuple[str, ...]:
        """The properties one of which a schedule violates in which this happens: outputs do not tell which.

        What a later tile sends came into a slot too early for its reader. What an earlier one sent, or
        nothing, was read in place of what was not there yet, or never came.
        """
        other, own = self.other, self.segment
        if other is None:
            return NOT_THERE
        if other.launch > own.launch:
            return NEXT_LAUNCH
        if other.launch < own.launch:
            return NOT_THERE
        if other[:2] != own[:2] or other.shift != own.shift:
            return MISPLACED
        return OVERWRITTEN if other.tile > own.tile else NOT_THERE

    def _other(self, pronoun: str) -> str:
        if self.other is None:
            return "zero: nothing arrived"
        own = self.segment
        source = f" of rank {self.other.source}" if self.other.source != own.source else ""
        rank = f" for rank {self.other.rank}" if self.other.rank != own.rank else ""
        tile = f" of tile {self.other.tile}" if self.other.tile != own.tile else ""
        launch = {-1: " of the launch before", 0: "", 1: " of the next launch"}[self.other.launch]
        shift = f" {self.other.shift} rows above" if self.other.shift else ""
        return f"{pronoun}{source}{rank}{tile}{launch}{shift}"

    def found(self, launches: Launches, rows: Integers) -> tuple[Bytes, Bytes]:
        """The values and scales that the reader finds in ``rows``, numbered within the tile."""
        values, scales = rows_of(launches, self.segment, rows)
        wrong_values, wrong_scales = (
            (np.zeros_like(values), np.zeros_like(scales))
            if self.other is None
            else rows_of(launches, self.other, rows)
        )
        total = self.segment_rows(launches.geometry)
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


def rows_of(launches: Launches, segment: Segment, rows: Integers) -> tuple[Bytes, Bytes]:
    """``rows`` of a segment, zeros beyond its end (a shorter last tile)."""
    inputs = launches.of(segment.launch)
    geometry = inputs.geometry
    span = geometry.tile_span(segment.tile)
    first = segment.rank * geometry.rows + span.start - segment.shift
    buffers = inputs.of_rank[segment.source]
    count = span.stop - span.start
    if count > rows[-1]:
        return buffers.a[first + rows], buffers.scale_a[first + rows]
    there = rows < count
    values = np.zeros((len(rows), geometry.k), np.uint8)
    scales = np.zeros((len(rows), geometry.scale_bytes), np.uint8)
    values[there], scales[there] = buffers.a[first + rows[there]], buffers.scale_a[first + rows[there]]
    return values, scales


def likely(launches: Launches, segment: Segment) -> Iterator[Substitution]:
    """What a reader too early or too late finds in the ring: other tiles, or nothing; whole or half."""
    yield from _each(segment, (*_own_pair(launches, segment), None), (Part.DATA,))


def scales(launches: Launches, segment: Segment) -> Iterator[Substitution]:
    """The same of the scales, or of both."""
    yield from _each(segment, (*_own_pair(launches, segment), None), (Part.SCALES, Part.BOTH))


def misplaced(launches: Launches, segment: Segment) -> Iterator[Substitution]:
    """What was sent from or to another place: other ranks' segments, and rows that are off."""
    geometry = launches.geometry
    others = [
        Segment(source, rank, tile)
        for source in range(geometry.ranks)
        for rank in range(geometry.ranks)
        for tile in range(geometry.tiles)
        if (source, rank) != segment[:2]
    ]
    shift = segment.rank * (geometry.rows % geometry.tile_rows)
    if shift:
        others.append(segment._replace(shift=shift))
    yield from _each(segment, tuple(others), (Part.DATA,))
    for part in (Part.SCALES, Part.BOTH):
        for other in others:
            yield Substitution(segment, other, part)


def _own_pair(launches: Launches, segment: Segment) -> list[Segment]:
    """All other segments from the same source to the same rank, in every known launch."""
    return [
        segment._replace(tile=tile, launch=launch)
        for launch in (0, *launches.others)
        for tile in range(launches.geometry.tiles)
        if (tile, launch) != (segment.tile, segment.launch)
    ]


def _each(
    segment: Segment, others: tuple[Segment | None, ...], parts: tuple[Part, ...]
) -> Iterator[Substitution]:
    for part in parts:
        for half in Half:
            for other in others:
                yield Substitution(segment, other, part, half)
