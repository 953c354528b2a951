"""Which stale, torn, misplaced or missing segment explains a wrong result.

`explain_output` tries, for each wrong tile of a rank, the `substitutions` that faulty schedules can
produce, and names the one whose result is the one found: to the bit, or else within the tolerance.
They are tried on a sample of the tile, and what fits there is confirmed on all of it. With tagged
inputs one substitution fits; with others several may, which is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from .acceptance import accepted, tolerance
from .golden import accumulate, multiply
from .inputs import Geometry, Inputs
from .numerics import Codes, Doubles, Floats, Integers, Mask, dequantise, from_bfloat16
from .substitutions import Segment, Substitution, likely, rows_of, unlikely

SAMPLE_ROWS, SAMPLE_COLUMNS = 16, 64
PAIR_ELEMENTS = 128
"""Elements of the sample that pairs of substitutions are compared on."""
PAIR_CHUNK = 16
"""Substitutions of the first segment that are paired with all of the second at once."""

Fitting = tuple[Substitution, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explains one wrong tile: ``substitutions`` that happened together, or none that is known.

    ``exact``: the result is theirs to the bit. ``alternatives``: as many others explain it as well.
    """

    rank: int
    tile: int
    substitutions: Fitting = ()
    exact: bool = False
    alternatives: int = 0
    whole: str = ""

    @property
    def text(self) -> str:
        """``rank 2, tile 5: segment of rank 0 is that of tile 1``."""
        what = self.whole or "; ".join(s.text for s in self.substitutions)
        if not what:
            what = "no stale, torn, misplaced or missing segment explains it, nor any two together"
        unsure = f" ({self.alternatives} more explain it as well)" if self.alternatives else ""
        return f"rank {self.rank}, tile {self.tile}: {what}{unsure}"

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that are violated by it, each once."""
        if self.whole:
            return ("coverage",)
        return tuple(dict.fromkeys(s.property for s in self.substitutions))


def explain_output(inputs: Inputs, rank: int, golden: Codes, found: Codes) -> list[Explanation]:
    """One explanation for every wrong tile of ``rank``; ``golden`` and ``found`` are [rows, n] codes."""
    passes = accepted(golden, found)
    weights = _Weights(inputs, rank)
    wrong = [t for t in range(inputs.geometry.tiles) if not passes[inputs.geometry.tile_span(t)].all()]
    return [
        _whole_tile(inputs.geometry, rank, tile, golden, found)
        or _Tile(weights, tile, found[inputs.geometry.tile_span(tile)], passes).explain()
        for tile in wrong
    ]


def unseen(inputs: Inputs, rank: int) -> list[Substitution]:
    """The stale, torn and missing segments of ``rank`` that would pass as right with these inputs."""
    geometry = inputs.geometry
    weights = _Weights(inputs, rank)
    hidden: list[Substitution] = []
    for tile in range(geometry.tiles):
        segments = [Segment(source, rank, tile) for source in range(geometry.ranks)]
        rows = np.arange(geometry.tile_span(tile).stop - geometry.tile_span(tile).start)
        right = accumulate(weights.product(s.source, *rows_of(inputs, s, rows)) for s in segments)
        nothing_wrong = np.ones((geometry.rows, geometry.n), np.bool_)
        view = _Tile(weights, tile, right, nothing_wrong)
        for segment in segments[:rank] + segments[rank + 1 :]:
            hidden += [found[0] for found, _ in view.fitting((s,) for s in likely(geometry, segment))]
    return hidden


def _whole_tile(geometry: Geometry, rank: int, tile: int, golden: Codes, found: Codes) -> Explanation | None:
    """Whether the whole tile is zero, or that of another tile, while it should not be."""
    span = geometry.tile_span(tile)
    if not found[span].any():
        return Explanation(rank, tile, exact=True, whole="its result is zero: it was never written")
    for other in range(geometry.tiles):
        right = golden[geometry.tile_span(other)]
        if other != tile and np.array_equal(right, found[span]):
            return Explanation(rank, tile, exact=True, whole=f"its result is that of tile {other}")
    return None


@dataclass(slots=True, eq=False)
class _Weights:
    """B of one rank, dequantised once for each source."""

    inputs: Inputs
    rank: int
    of_source: list[Floats] = field(init=False)

    def __post_init__(self) -> None:
        shape = self.inputs.geometry
        segments = (self.inputs.b_segment(self.rank, source) for source in range(shape.ranks))
        self.of_source = [dequantise(*segment, shape.dtypes.b) for segment in segments]

    def product(
        self, source: int, values: np.ndarray, scales: np.ndarray, columns: Integers | None = None
    ) -> Floats:
        """What ``values`` and ``scales`` in place of a segment of ``source`` give, in some columns."""
        b = self.of_source[source]
        a = dequantise(values, scales, self.inputs.geometry.dtypes.a)
        return multiply(a, b if columns is None else b[columns])


class _Tile:
    """The search for one tile, whose result is ``found`` [rows of the tile, n].

    ``passes`` says of all elements of the rank which are right.
    """

    def __init__(self, weights: _Weights, tile: int, found: Codes, passes: Mask) -> None:
        self.weights = weights
        self.inputs = weights.inputs
        self.geometry = weights.inputs.geometry
        self.rank, self.tile, self.found = weights.rank, tile, found
        wrong = ~passes[self.geometry.tile_span(tile)]
        self.all_rows = np.arange(len(found))
        self.rows = _spread(np.any(wrong, axis=1), SAMPLE_ROWS)
        self.columns = _spread(np.any(wrong, axis=0), SAMPLE_COLUMNS)
        self.segments = [Segment(source, self.rank, tile) for source in range(self.geometry.ranks)]
        self.sampled = found[np.ix_(self.rows, self.columns)]
        self.right = [self._right(segment) for segment in self.segments]
        self.full: dict[int, Floats] = {}

    def explain(self) -> Explanation:
        """The first kind of substitutions that has one that fits; one that fits to the bit if any does."""
        for candidates in self._stages():
            fits = sorted(self.fitting(candidates()), key=lambda fit: not fit[1])
            if fits:
                best, exact = fits[0]
                as_good = sum(same == exact for _, same in fits) - 1
                return Explanation(self.rank, self.tile, best, exact, as_good)
        return Explanation(self.rank, self.tile)

    def fitting(self, candidates: Iterable[Fitting]) -> Iterator[tuple[Fitting, bool]]:
        """Those of ``candidates`` whose result passes as what was found, and whether it is equal to it."""
        for together in candidates:
            if self._fits(self._sampled(together), self.sampled):
                result = self._whole(together)
                if self._fits(result, self.found):
                    yield together, np.array_equal(result, self.found)

    def _stages(self) -> tuple[Callable[[], Iterable[Fitting]], ...]:
        each = self.segments
        return (
            lambda: ((s,) for segment in each for s in likely(self.geometry, segment)),
            self._all_remote,
            lambda: ((s,) for segment in each for s in unlikely(self.geometry, segment)),
            self._pairs,
        )

    def _all_remote(self) -> Iterator[Fitting]:
        """The same happened to every segment that came from another rank."""
        remote = [segment for segment in self.segments if segment.source != self.rank]
        if len(remote) > 1:
            yield from zip(*(likely(self.geometry, segment) for segment in remote), strict=True)

    def _pairs(self) -> Iterator[Fitting]:
        """Two likely substitutions whose changes add up to what is seen, on some elements."""
        expected = from_bfloat16(self.sampled).astype(np.float64).ravel()
        total = np.sum(self.right, axis=0, dtype=np.float64).ravel()
        usable = np.flatnonzero(np.isfinite(expected) & np.isfinite(total))[:PAIR_ELEMENTS]
        if not usable.size:
            return
        residual = (expected - total)[usable]
        slack = 2 * tolerance(expected[usable].astype(np.float32)).astype(np.float64)
        changes = [self._changes(segment, usable) for segment in self.segments]
        for (one, first), (two, second) in combinations(changes, 2):
            for start in range(0, len(one), PAIR_CHUNK):
                missing = residual - first[start : start + PAIR_CHUNK]
                near = np.all(np.abs(missing[:, np.newaxis] - second) <= slack, axis=2)
                for i, j in np.argwhere(near):
                    yield one[start + int(i)], two[int(j)]

    def _changes(self, segment: Segment, usable: Integers) -> tuple[list[Substitution], Doubles]:
        """The likely substitutions of ``segment``, and by how much each changes some elements."""
        right = self.right[segment.source].astype(np.float64)
        tried = list(likely(self.geometry, segment))
        changes = [(self._product(s).astype(np.float64) - right).ravel()[usable] for s in tried]
        return tried, np.array(changes)

    def _right(self, segment: Segment) -> Floats:
        values = rows_of(self.inputs, segment, self.rows)
        return self.weights.product(segment.source, *values, self.columns)

    def _product(self, one: Substitution) -> Floats:
        values = one.found(self.inputs, self.rows)
        return self.weights.product(one.segment.source, *values, self.columns)

    def _sampled(self, together: Fitting) -> Codes:
        products = list(self.right)
        for one in together:
            products[one.segment.source] = self._product(one)
        return accumulate(products)

    def _whole(self, together: Fitting) -> Codes:
        products = {one.segment.source: self._full(one) for one in together}
        return accumulate(products.get(s.source, self._full_right(s)) for s in self.segments)

    def _full(self, one: Substitution) -> Floats:
        return self.weights.product(one.segment.source, *one.found(self.inputs, self.all_rows))

    def _full_right(self, segment: Segment) -> Floats:
        if segment.source not in self.full:
            values = rows_of(self.inputs, segment, self.all_rows)
            self.full[segment.source] = self.weights.product(segment.source, *values)
        return self.full[segment.source]

    def _fits(self, result: Codes, found: Codes) -> bool:
        return bool(accepted(result, found).all())


def _spread(wrong: Mask, count: int) -> Integers:
    """Up to ``count`` indices in order: wrong ones mostly, and others, which must stay right."""
    chosen = [_evenly(np.flatnonzero(wrong), count * 3 // 4), _evenly(np.flatnonzero(~wrong), count // 4)]
    return np.unique(np.concatenate(chosen))


def _evenly(indices: Integers, count: int) -> Integers:
    """At most ``count`` of ``indices``, the first and the last among them."""
    if indices.size <= count:
        return indices
    return indices[np.linspace(0, indices.size - 1, count).round().astype(np.int64)]
