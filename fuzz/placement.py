"""Right results in the wrong place of the output, or none: what a block did not write, or wrote elsewhere.

A `Placement` says that some columns of a tile hold zeros, the result of another tile, rank or launch,
or that of other columns. `forensics` tries them beside what the readers of A may have found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .golden import golden_tile
from .numerics import Codes, Integers, Mask
from .residual import same
from .substitutions import Launches

MOST_LIKE = 8
"""Columns alike that are tried as the ones that were written instead."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What a part of the output holds instead of its own: ``what`` is ``that of tile 2``."""

    what: str

    @property
    def text(self) -> str:
        """``the result is that of tile 2``."""
        return f"its result is {self.what}"

    @property
    def properties(self) -> tuple[str, ...]:
        """The output was not delivered, or not to its place; or its readers found another tile throughout."""
        return ("coverage", "no-read-before-write")


@dataclass(frozen=True, slots=True)
class Run:
    """Columns ``first`` up to ``stop`` of a tile that ``placement`` explains."""

    first: int
    stop: int
    placement: Placement


class Placements:
    """The placements of one tile: ``found`` are some ``rows`` of it, ``golden`` the rank's whole result."""

    def __init__(
        self, launches: Launches, rank: int, tile: int, golden: Codes, found: Codes, rows: Integers
    ) -> None:
        self.launches, self.rank, self.tile, self.rows = launches, rank, tile, rows
        self.golden, self.found = golden, found[rows]
        geometry = launches.geometry
        self.right = golden[geometry.tile_span(tile)][rows]
        self._matches = [(placement, self._agrees(codes)) for placement, codes in self._others()]
        self._ids = self._numbered()

    def runs(self, first: int) -> Iterator[Run]:
        """The runs of columns from ``first`` on that each placement explains."""
        for placement, agrees in self._matches:
            stop = _end_of_run(agrees, first)
            if stop > first:
                yield Run(first, stop, placement)
        found, right = self._ids
        for column in np.flatnonzero(right == found[first])[:MOST_LIKE]:
            if column != first:
                length = min(found.size - first, right.size - int(column))
                alike = found[first : first + length] == right[column : column + length]
                stop = first + _end_of_run(alike, 0)
                end = int(column) + stop - first - 1
                yield Run(first, stop, Placement(f"that of columns {column}-{end}"))

    def _agrees(self, codes: Codes) -> Mask:
        agrees: Mask = np.all(same(codes, self.found), axis=0)
        return agrees

    def _others(self) -> Iterator[tuple[Placement, Codes]]:
        geometry = self.launches.geometry
        yield Placement("zero: it was never written"), np.zeros_like(self.found)
        for tile in range(geometry.tiles):
            result = self.golden[geometry.tile_span(tile)]
            if tile != self.tile and len(result) > self.rows[-1]:
                yield Placement(f"that of tile {tile}"), result[self.rows]
        names = {-1: "that of the launch before: it was never written", 1: "that of the next launch"}
        for launch in self.launches.others:
            result = golden_tile(self.launches.of(launch), self.rank, self.tile)
            yield Placement(names[launch]), result[self.rows]

    def of_other_ranks(self) -> Iterator[Placement]:
        """The ranks whose result for this tile is the one found; they are computed for that."""
        for rank in range(self.launches.geometry.ranks):
            if rank != self.rank:
                codes = golden_tile(self.launches.given, rank, self.tile)
                if self._agrees(codes[self.rows]).all():
                    yield Placement(f"that of rank {rank}")

    def _numbered(self) -> tuple[Integers, Integers]:
        """The columns found, and the right ones, as numbers that are equal where the columns are."""
        columns = np.ascontiguousarray(np.concatenate([self.found, self.right], axis=1).T)
        whole = columns.view(np.dtype((np.void, columns.shape[1] * columns.itemsize))).ravel()
        _, numbers = np.unique(whole, return_inverse=True)
        width = self.found.shape[1]
        return numbers[:width], numbers[width:]


def _end_of_run(agrees: Mask, first: int) -> int:
    """The first index from ``first`` on at which ``agrees`` ends."""
    ends = np.flatnonzero(~agrees[first:])
    return first + int(ends[0]) if ends.size else agrees.size
