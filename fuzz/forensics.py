"""Which stale, torn, misplaced or missing segment, or output in the wrong place, explains a wrong result.

`explain_output` looks, for each wrong tile of a rank, for what gives the result found: first for the
whole tile, then for its first or last rows, then for shares of its columns, as blocks have them.
`residual` finds what readers found in place of their segments, `placement` what went wrong in the
output. Every explanation is tried on all elements that it speaks of; what explains them as well is told
beside it, and what nothing explains is told too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .acceptance import accepted
from .matrices import Inputs
from .numerics import Codes, Integers, Mask, from_bfloat16
from .placement import Placement, Placements
from .residual import Chosen, Search, Solution, Weights, tries_all_misplaced
from .substitutions import NOT_THERE, Launches, Substitution, likely

MOST_SHARES = 64
"""Shares of a tile's columns, each with its own fault, that are told apart."""

LEAST_COLUMNS = 3
"""Wrong columns that each of several shares must have."""
SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class Unwritten:
    """NaN in every column, as from memory that nobody wrote: of which source, NaN hides."""

    sources: tuple[int, ...]

    @property
    def text(self) -> str:
        """``NaN in all columns, ... in place of the segment of rank 1 or rank 3``."""
        ranks = " or ".join(f"rank {source}" for source in self.sources)
        return f"NaN in all columns, as of memory that nobody wrote, in place of the segment of {ranks}"

    @property
    def properties(self) -> tuple[str, ...]:
        """Those of a segment that is not there."""
        return NOT_THERE


Cause = Substitution | Placement | Unwritten
Either = tuple[Cause, ...]
"""Things each of which explains the same, so that one of them happened."""
Story = tuple[Either, ...]
"""Things that happened together."""


@dataclass(frozen=True, slots=True)
class Share:
    """What explains some rows and columns of a tile, or all where these are None.

    ``stories``: each explains it alone. ``exact``: to the bit, else within the tolerance. Rows are of
    the tile; ``rows`` and ``columns`` are the first and the last one that is wrong.
    """

    stories: tuple[Story, ...]
    exact: bool
    columns: tuple[int, int] | None = None
    rows: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """``columns 8-15: segment of rank 0 is that of tile 1``."""
        place = [
            f"{name} {span[0]}-{span[1]}"
            for name, span in (("rows", self.rows), ("columns", self.columns))
            if span is not None
        ]
        where = f"{', '.join(place)}: " if place else ""
        told = "; or: ".join("; ".join(_either(one) for one in story) for story in self.stories)
        return f"{where}{told}{'' if self.exact else ' (within the tolerance)'}"

    @property
    def properties(self) -> tuple[tuple[str, ...], ...]:
        """For each thing that happened the properties of which it violates one, the same but once."""
        groups = (tuple(dict.fromkeys(p for c in e for p in c.properties)) for s in self.stories for e in s)
        return tuple(dict.fromkeys(groups))


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explains one wrong tile: all of ``shares`` together, or nothing that is known."""

    rank: int
    tile: int
    shares: tuple[Share, ...] = ()
    unexplained: str = ""

    @property
    def text(self) -> str:
        """``rank 2, tile 5: segment of rank 0 is that of tile 1``."""
        told = self.unexplained or "; ".join(share.text for share in self.shares)
        return f"rank {self.rank}, tile {self.tile}: {told}"

    @property
    def properties(self) -> tuple[tuple[str, ...], ...]:
        """The properties of all shares: of each group one is violated."""
        return tuple(dict.fromkeys(group for share in self.shares for group in share.properties))

    @property
    def exact(self) -> bool:
        """Whether the result is explained to the bit."""
        return bool(self.shares) and all(share.exact for share in self.shares)


def explain_output(launches: Launches, rank: int, golden: Codes, found: Codes) -> list[Explanation]:
    """One explanation for every wrong tile of ``rank``; ``golden`` and ``found`` are [rows, n] codes."""
    passes = accepted(golden, found)
    geometry = launches.geometry
    wrong = [t for t in range(geometry.tiles) if not passes[geometry.tile_span(t)].all()]
    if not wrong:
        return []
    weights = Weights(launches, rank)
    return [_Tile(weights, tile, golden, found, ~passes).explain() for tile in wrong]


def unseen(inputs: Inputs, rank: int) -> list[Substitution]:
    """The stale, torn and missing segments of ``rank`` that would pass as right with these inputs."""
    launches = Launches(inputs)
    geometry = launches.geometry
    weights = Weights(launches, rank)
    hidden: list[Substitution] = []
    columns = np.arange(geometry.n)
    for tile in range(geometry.tiles):
        span = geometry.tile_span(tile)
        rows = np.arange(span.stop - span.start)
        segments = weights.segments(tile)
        right: Chosen = (None,) * len(segments)
        result = np.zeros((rows.size, geometry.n), np.uint16)
        search = Search(weights, tile, result, rows, columns)
        result[...] = search.result(right, columns)
        for segment in segments[:rank] + segments[rank + 1 :]:
            hidden += search.hidden(segment.source, likely(launches, segment))
    return hidden


def _either(causes: Either) -> str:
    if len(causes) == 1:
        return causes[0].text
    return f"either {', or '.join(cause.text for cause in causes)}"


class _Tile:
    """The search for one tile; ``wrong`` says of all elements of the rank which are."""

    def __init__(self, weights: Weights, tile: int, golden: Codes, found: Codes, wrong: Mask) -> None:
        self.weights, self.launches, self.tile = weights, weights.launches, tile
        self.span = self.launches.geometry.tile_span(tile)
        self.golden, self.found, self.wrong = golden, found[self.span], wrong[self.span]
        self.all_columns = np.arange(self.found.shape[1])

    def explain(self) -> Explanation:
        """The explanation of the largest part: the tile, then some of its rows, then columns of these."""
        for rows in self._windows():
            shown = None if rows.size == len(self.found) else (int(rows[0]), int(rows[-1]))
            placements = self._placements(rows)
            share = self._whole(placements, rows, shown)
            if share is not None:
                return self._explained(share)
            shares = self._shares(placements, rows, shown)
            if shares:
                return self._explained(*shares)
        unwritten = self._unwritten()
        if unwritten is not None:
            return self._explained(unwritten)
        return Explanation(self.weights.rank, self.tile, unexplained=self._nothing_fits())

    def _explained(self, *shares: Share) -> Explanation:
        return Explanation(self.weights.rank, self.tile, shares)

    def _windows(self) -> Iterator[Integers]:
        """All rows; then those up to the last wrong one, or from the first on, as a torn put leaves them."""
        count = len(self.found)
        rows = np.flatnonzero(self.wrong.any(axis=1))
        first, last = int(rows[0]), int(rows[-1])
        yield np.arange(count)
        if first == 0 and last < count - 1:
            yield np.arange(last + 1)
        elif first > 0 and last == count - 1:
            yield np.arange(first, count)

    def _placements(self, rows: Integers) -> Placements:
        return Placements(self.launches, self.weights.rank, self.tile, self.golden, self.found, rows)

    def _whole(self, placements: Placements, rows: Integers, shown: tuple[int, int] | None) -> Share | None:
        """What explains all columns of ``rows``."""
        n = self.all_columns.size
        placed = [run.placement for run in placements.runs(0) if run.stop == n]
        placed += [] if placed else placements.of_other_ranks()
        solution = Search(self.weights, self.tile, self.found, rows, self.all_columns).solve()
        return self._share(placed, solution, rows=shown)

    def _shares(
        self, placements: Placements, rows: Integers, shown: tuple[int, int] | None
    ) -> tuple[Share, ...]:
        """What explains one run of columns after the other, each as long as it can be; () if not all."""
        wrong = np.flatnonzero(self.wrong[rows].any(axis=0))
        shares: list[Share] = []
        widths: list[int] = []
        while wrong.size:
            found = self._longest(placements, rows, wrong)
            if found is None or len(shares) == MOST_SHARES:
                return ()
            count, placed, solution = found
            span = (int(wrong[0]), int(wrong[count - 1]))
            share = self._share(placed, solution, columns=span, rows=shown)
            if share is None:
                return ()
            shares.append(share)
            widths.append(count)
            wrong = wrong[count:]
        # something explains every single column: several shares that narrow say nothing
        return tuple(shares) if len(shares) == 1 or min(widths) >= LEAST_COLUMNS else ()

    def _share(
        self,
        placed: list[Placement],
        solution: Solution | None,
        *,
        columns: tuple[int, int] | None = None,
        rows: tuple[int, int] | None = None,
    ) -> Share | None:
        """What is told of both; a rank's own segment is in no ring, so then the output alone is meant."""
        stories: list[Story] = [((placement,),) for placement in placed]
        own = solution is not None and solution.chosen[self.weights.rank] is not None
        if solution is not None and not (placed and (own or not solution.exact)):
            stories.append(solution.wrong)
        if not stories:
            return None
        return Share(tuple(stories), bool(placed) or (solution is not None and solution.exact), columns, rows)

    def _longest(
        self, placements: Placements, rows: Integers, wrong: Integers
    ) -> tuple[int, list[Placement], Solution | None] | None:
        """What explains the most of the first of the ``wrong`` columns, and how many of them."""
        first = int(wrong[0])
        runs = list(placements.runs(first))
        reach = max((int(np.searchsorted(wrong, run.stop)) for run in runs), default=0)
        solution, solved = self._solved(rows, first, wrong)
        best = max(reach, solved)
        if not best:
            return None
        placed = [run.placement for run in runs if np.searchsorted(wrong, run.stop) == best]
        return best, placed, solution if solved == best else None

    def _solved(self, rows: Integers, first: int, wrong: Integers) -> tuple[Solution | None, int]:
        """What readers found that explains the most columns from ``first`` on, of ``wrong`` so many."""
        stop = int(wrong[-1]) + 1
        width = stop - first
        while width >= min(self.launches.geometry.ranks, stop - first):
            columns = np.arange(first, first + width)
            search = Search(self.weights, self.tile, self.found, rows, columns)
            solution = search.solve()
            if solution is not None:
                rest = np.arange(first, stop)
                ends = np.flatnonzero(~search.agrees(solution.chosen, rest))
                end = first + int(ends[0]) if ends.size else stop
                return solution, int(np.searchsorted(wrong, end))
            width //= 2
            if not width:
                break
        return None, 0

    def _nothing_fits(self) -> str:
        places = np.argwhere(self.wrong)[:SHOWN_DIFFERENCES]
        right, found = from_bfloat16(self.golden[self.span]), from_bfloat16(self.found)
        shown = ", ".join(
            f"[{self.span.start + i}, {j}]: {found[i, j]:g} for {right[i, j]:g}" for i, j in places
        )
        some = "" if tries_all_misplaced(self.launches) else " (other ranks' tried for the same tile only)"
        return f"not explained by any single schedule fault{some}; first differences at {shown}"

    def _unwritten(self) -> Share | None:
        """Where whole rows are NaN and all others right: memory that nobody wrote, but for which source?"""
        nan = np.isnan(from_bfloat16(self.found)).all(axis=1)
        if not nan.any() or self.wrong[~nan].any():
            return None
        rows = np.flatnonzero(nan)
        ranks = range(self.launches.geometry.ranks)
        sources = tuple(s for s in ranks if s != self.weights.rank) or (self.weights.rank,)
        shown = None if rows.size == nan.size else (int(rows[0]), int(rows[-1]))
        return Share((((Unwritten(sources),),),), exact=True, rows=shown)
