"""Which segments, read in place of the right ones, give the result that was found: by residuals.

A tile is a sum over sources, so a wrong segment changes it by an amount that does not depend on what
happened to the others. For each source in turn the substitution is taken that leaves the least of the
result unexplained, given what is taken for the others, until nothing gets better: any number of wrong
segments is found so, where their changes are different enough. With `tagged` inputs that have
``separate`` columns, each source alone decides its own columns, so this is certain. What is found is
then tried on every element: nothing is believed because it is near. Used by `forensics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from .acceptance import accepted
from .golden import accumulate, multiply
from .numerics import (
    Codes,
    Doubles,
    Floats,
    Integers,
    Mask,
    dequantise,
    from_bfloat16,
    to_bfloat16,
)
from .substitutions import Half, Launches, Part, Segment, Substitution, likely, misplaced, rows_of, scales

SAMPLE_ROWS = 12
SAMPLE_COLUMNS = 32
"""Columns of the sample for each rank."""
CHUNK = 1 << 22
"""Values of A that are made at once."""
SWEEPS = 4
"""Rounds over all sources beyond their number, after which a search is given up."""
STARTS = 12
"""Starts of a search: all is right, or the same is wrong with all that came from other ranks."""
MOST_CONFIRMED = 8
"""Other substitutions of a source that are tried on all elements."""
MOST_MISPLACED = 512
"""Segments of all ranks and tiles, beyond which those of other ranks are tried for the same tile only."""
SUBNORMAL = 0x007F
"""The largest bf16 code of a positive subnormal: hardware may give zero for it."""

Chosen = tuple[Substitution | None, ...]
"""For each source what its reader found, None for the right segment."""
Maker = Callable[[Launches, Segment], Iterator[Substitution]]
LEVELS: tuple[Maker, ...] = (likely, scales, misplaced)
"""The kinds of substitutions, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What was read in place of what: for each wrong segment all that fit, of which one happened.

    ``exact``: the result is the one found, to the bit; else within the tolerance.
    """

    chosen: Chosen
    wrong: tuple[tuple[Substitution, ...], ...]
    exact: bool


def same(result: Codes, found: Codes) -> Mask:
    """Which elements are equal, where all subnormals and zeros are one, and all NaNs."""
    sizes = result & 0x7FFF, found & 0x7FFF
    tiny = (sizes[0] <= SUBNORMAL) & (sizes[1] <= SUBNORMAL)
    nan = (sizes[0] > 0x7F80) & (sizes[1] > 0x7F80)
    equal: Mask = (result == found) | tiny | nan
    return equal


def tries_all_misplaced(launches: Launches) -> bool:
    """Whether segments of other ranks are tried for all tiles (see MOST_MISPLACED)."""
    return launches.geometry.ranks**2 * launches.geometry.tiles <= MOST_MISPLACED


class Weights:
    """B of one rank, dequantised once for each source, and what it makes of segments."""

    def __init__(self, launches: Launches, rank: int) -> None:
        self.launches, self.rank, self.geometry = launches, rank, launches.geometry
        segments = (launches.given.b_segment(rank, source) for source in range(self.geometry.ranks))
        self.of_source = [dequantise(*segment, self.geometry.dtypes.b) for segment in segments]

    def segments(self, tile: int) -> list[Segment]:
        """What the rank should read for ``tile``, by source."""
        return [Segment(source, self.rank, tile) for source in range(self.geometry.ranks)]

    def product(
        self, segment: Segment, one: Substitution | None, rows: Integers, columns: Integers
    ) -> Floats:
        """What ``segment``, or ``one`` in its place, gives in some rows and columns."""
        read = rows_of(self.launches, segment, rows) if one is None else one.found(self.launches, rows)
        b = self.of_source[segment.source]
        return multiply(
            dequantise(*read, self.geometry.dtypes.a), b if columns.size == len(b) else b[columns]
        )

    def products(self, tried: Sequence[Substitution], rows: Integers, columns: Integers) -> Floats:
        """The products of ``tried``, all of one segment: [substitution, row, column]."""
        if not tried:
            return np.zeros((0, rows.size, columns.size), np.float32)
        b = self.of_source[tried[0].segment.source][columns]
        step = max(1, CHUNK // (rows.size * self.geometry.k))
        parts = []
        for start in range(0, len(tried), step):
            read = [one.found(self.launches, rows) for one in tried[start : start + step]]
            values, scale = (np.concatenate([r[i] for r in read]) for i in (0, 1))
            parts.append(multiply(dequantise(values, scale, self.geometry.dtypes.a), b))
        return np.concatenate(parts).reshape(len(tried), rows.size, columns.size)


class Search:
    """The search for one tile in some ``rows`` and ``columns`` of its result ``found``."""

    def __init__(self, weights: Weights, tile: int, found: Codes, rows: Integers, columns: Integers) -> None:
        self.weights, self.found, self.rows, self.columns = weights, found, rows, columns
        self.segments = weights.segments(tile)
        self._right: dict[tuple[int, int, int], Floats] = {}

    def solve(self) -> Solution | None:
        """The first that fits to the bit, or else within the tolerance; None where nothing does."""
        sample = _Sample(self)
        near: Chosen | None = None
        for _ in LEVELS:
            for segment in self.segments:
                sample.extend(segment)
            for chosen in sample.descents():
                exact = self.fit(chosen)
                if exact:
                    return Solution(chosen, tuple(self._fitting(sample, chosen, True)), True)
                if exact is not None and near is None:
                    near = chosen
        return None if near is None else Solution(near, tuple(self._fitting(sample, near, False)), False)

    def fit(self, chosen: Chosen) -> bool | None:
        """Whether ``chosen`` gives what was found: True to the bit, False within the tolerance, or None."""
        result = self.result(chosen, self.columns)
        found = self.found[np.ix_(self.rows, self.columns)]
        if same(result, found).all():
            return True
        return False if accepted(result, found).all() else None

    def agrees(self, chosen: Chosen, columns: Integers) -> Mask:
        """In which of ``columns`` all rows are what ``chosen`` gives."""
        result = self.result(chosen, columns)
        agreeing: Mask = np.all(accepted(result, self.found[np.ix_(self.rows, columns)]), axis=0)
        return agreeing

    def hidden(self, source: int, candidates: Iterator[Substitution]) -> Iterator[Substitution]:
        """Those of ``candidates`` for ``source`` alone that give what was found."""
        sample = _Sample(self)
        right: Chosen = (None,) * len(self.segments)
        for one in sample.alone(source, list(candidates)):
            if self.fit((*right[:source], one, *right[source + 1 :])) is not None:
                yield one

    def _fitting(self, sample: _Sample, chosen: Chosen, exact: bool) -> Iterator[tuple[Substitution, ...]]:
        """For each substitution of ``chosen``: it, and all others that fit as well in its place."""
        for segment, one in zip(self.segments, chosen, strict=True):
            if one is None:
                continue
            while sample.extend(segment):
                pass
            fitting = [one]
            for other in islice(sample.instead(chosen, segment.source), MOST_CONFIRMED):
                changed = (*chosen[: segment.source], other, *chosen[segment.source + 1 :])
                if other != one and self.fit(changed) == exact:
                    fitting.append(other)
            yield tuple(told for told in fitting if not any(_says_less(o, told) for o in fitting))

    def result(self, chosen: Chosen, columns: Integers) -> Codes:
        """What ``chosen`` gives in all rows of the search and some ``columns``."""
        return accumulate(self._product(i, one, columns) for i, one in enumerate(chosen))

    def _product(self, source: int, one: Substitution | None, columns: Integers) -> Floats:
        segment = self.segments[source]
        if one is not None:
            return self.weights.product(segment, one, self.rows, columns)
        key = (source, int(columns[0]), columns.size)
        if key not in self._right:
            self._right[key] = self.weights.product(segment, None, self.rows, columns)
        return self._right[key]


def _says_less(one: Substitution, other: Substitution) -> bool:
    """Whether ``one`` tells what ``other`` does of fewer bytes, or of halves that need no telling apart.

    Both fit, so of the other bytes nothing can be said: they are equal, or do not count.
    """
    return (
        one != other
        and one.other == other.other
        and (one.part is other.part or other.part is Part.BOTH)
        and one.half in (other.half, Half.WHOLE)
    )


class _Sample:
    """Some elements of a search, and what every substitution gives there."""

    def __init__(self, search: Search) -> None:
        self.search = search
        ranks = len(search.segments)
        random = np.random.default_rng(0)
        self.rows = _evenly(search.rows, SAMPLE_ROWS)
        count = min(search.columns.size, SAMPLE_COLUMNS * ranks)
        self.columns = np.sort(random.choice(search.columns, count, replace=False))
        self.found = search.found[np.ix_(self.rows, self.columns)]
        self.level = [0] * ranks
        right = [search.weights.product(s, None, self.rows, self.columns) for s in search.segments]
        self.tried: list[list[Substitution | None]] = [[None] for _ in right]
        self.products = [product[np.newaxis] for product in right]
        self._use(right)

    def extend(self, segment: Segment) -> bool:
        """Let ``segment`` be the next kind of substitutions too; False where there is none left."""
        source = segment.source
        if self.level[source] == len(LEVELS):
            return False
        tried = self._candidates(LEVELS[self.level[source]], segment)
        more = self.search.weights.products(tried, self.rows, self.columns)
        self.level[source] += 1
        self.tried[source] += tried
        self.products[source] = np.concatenate([self.products[source], more])
        return True

    def descents(self) -> Iterator[Chosen]:
        """What remains least unexplained, from several starts: all is right, or all from others is alike."""
        seen = set()
        own = self.search.weights.rank
        weighed = [self._weighed(source) for source in range(len(self.tried))]
        for start in range(min(STARTS, *map(len, self.tried))):
            at = [0 if source == own else start for source in range(len(self.tried))]
            reached = tuple(self._descend(weighed, at))
            if reached not in seen and any(reached):
                seen.add(reached)
                yield tuple(self.tried[source][i] for source, i in enumerate(reached))

    def alone(self, source: int, tried: list[Substitution]) -> Iterator[Substitution]:
        """Those of ``tried`` for ``source`` that fit here where all else is right."""
        self.tried[source] += tried
        more = self.search.weights.products(tried, self.rows, self.columns)
        self.products[source] = np.concatenate([self.products[source], more])
        return self.instead((None,) * len(self.tried), source)

    def instead(self, chosen: Chosen, source: int) -> Iterator[Substitution]:
        """The substitutions of ``source`` that fit here where all else is as ``chosen``."""
        at = [self.tried[i].index(one) for i, one in enumerate(chosen)]
        with np.errstate(over="ignore", invalid="ignore"):
            others = np.zeros(self.found.shape, np.float32)
            for i, n in enumerate(at):
                if i != source:
                    others += self.products[i][n]
            for one, product in zip(self.tried[source], self.products[source], strict=True):
                if one is not None and accepted(to_bfloat16(others + product), self.found).all():
                    yield one

    def _candidates(self, make: Maker, segment: Segment) -> list[Substitution]:
        launches = self.search.weights.launches
        tried = list(make(launches, segment))
        if make is misplaced and not tries_all_misplaced(launches):
            tried = [one for one in tried if one.other is None or one.other.tile == segment.tile]
        return tried

    def _use(self, right: Sequence[Floats]) -> None:
        """Choose the elements that can be reckoned with, and what each column weighs."""
        expected = from_bfloat16(self.found).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(right, axis=0, dtype=np.float64)
            finite = np.isfinite(expected) & np.isfinite(total)
            size = np.abs(np.where(finite, expected, 0)) + np.abs(np.where(finite, total, 0))
        largest = size.max(axis=0, keepdims=True)
        weight = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
        self.usable = np.flatnonzero(finite.ravel())
        self.weight = np.broadcast_to(weight, expected.shape).ravel()[self.usable]
        self.expected = expected.ravel()[self.usable]

    def _weighed(self, source: int) -> Doubles:
        products = self.products[source].reshape(len(self.tried[source]), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            weighed: Doubles = products[:, self.usable] * self.weight
        return weighed

    def _descend(self, weighed: Sequence[Doubles], at: list[int]) -> list[int]:
        """``at`` says for each source which of its substitutions is taken; returns better ones."""
        expected = self.expected * self.weight
        for _ in range(len(at) + SWEEPS):
            before = list(at)
            for source, products in enumerate(weighed):
                with np.errstate(over="ignore", invalid="ignore"):
                    rest = expected - sum(weighed[i][n] for i, n in enumerate(at) if i != source)
                    errors = np.square(products - rest).sum(axis=1)
                at[source] = int(np.argmin(np.nan_to_num(errors, nan=np.inf)))
            if at == before:
                break
        return at


def _evenly(indices: Integers, count: int) -> Integers:
    """At most ``count`` of ``indices``, the first and the last among them."""
    if indices.size <= count:
        return indices
    return indices[np.linspace(0, indices.size - 1, count).round().astype(np.int64)]
