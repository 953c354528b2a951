"""The data that a run starts from: for every rank the bytes of A, B and their scales.

`Geometry` says how large they are and how they are laid out (hardware.md 5), `Inputs` holds them.
`tagged` and `kinds` make them, `devicefiles` writes them for a device, `golden` multiplies them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..protocol.errors import ParameterError
from .numerics import Bytes, Dtypes, scale_bytes

TILE_ROWS = 512
"""Rows of a tile of the reference kernel, its headMSize (hardware.md 5)."""
LEAST = 1
MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes of a problem. ``rows`` are those of A that each rank receives, ``k`` the columns of A
    on one rank, ``n`` the columns of the result; a tile is ``tile_rows`` rows, the last may be fewer.
    """

    ranks: int
    rows: int
    k: int
    n: int
    tile_rows: int = TILE_ROWS
    dtypes: Dtypes = field(default_factory=Dtypes)

    def __post_init__(self) -> None:
        for name in ("ranks", "rows", "k", "n", "tile_rows"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not LEAST <= value < MOST:
                raise ParameterError(name, value, f"must be an integer from {LEAST} to {MOST - 1}")

    @property
    def tiles(self) -> int:
        """Tiles of the rows that a rank receives, a shorter last one included."""
        return -(-self.rows // self.tile_rows)

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales of one row of one segment."""
        return scale_bytes(self.k)

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """The buffers of one rank by name, as rows and bytes of a row.

        Block r of the rows of ``a`` and ``scale_a`` is for rank r; segment s of the columns of ``b``
        and ``scale_b`` meets what comes from rank s.
        """
        return {
            "a": (self.ranks * self.rows, self.k),
            "scale_a": (self.ranks * self.rows, self.scale_bytes),
            "b": (self.n, self.ranks * self.k),
            "scale_b": (self.n, self.ranks * self.scale_bytes),
        }

    def tile_span(self, tile: int) -> slice:
        """The rows of the result that ``tile`` covers."""
        if not 0 <= tile < self.tiles:
            raise ParameterError("tile", tile, f"must be from 0 to {self.tiles - 1}")
        return slice(tile * self.tile_rows, min((tile + 1) * self.tile_rows, self.rows))


@dataclass(frozen=True, slots=True, eq=False)
class RankInputs:
    """The input buffers of one rank, with the shapes that `Geometry.shapes` says."""

    a: Bytes
    scale_a: Bytes
    b: Bytes
    scale_b: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The input buffers of all ranks. Raises ParameterError where a buffer has another shape."""

    geometry: Geometry
    of_rank: Sequence[RankInputs]

    def __post_init__(self) -> None:
        if len(self.of_rank) != self.geometry.ranks:
            raise ParameterError("inputs", len(self.of_rank), f"ranks given, not {self.geometry.ranks}")
        for rank, buffers in enumerate(self.of_rank):
            for name, shape in self.geometry.shapes.items():
                buffer: Bytes = getattr(buffers, name)
                if buffer.shape != shape or buffer.dtype != np.uint8:
                    found = f"{buffer.dtype} {list(buffer.shape)}"
                    raise ParameterError(name, found, f"of rank {rank} must be uint8 {list(shape)}")

    def a_segment(self, source: int, rank: int, tile: int) -> tuple[Bytes, Bytes]:
        """What ``source`` sends to ``rank`` for ``tile``: rows of A and of its scales."""
        span = self.geometry.tile_span(tile)
        first = rank * self.geometry.rows
        rows = slice(first + span.start, first + span.stop)
        buffers = self.of_rank[source]
        return buffers.a[rows], buffers.scale_a[rows]

    def b_segment(self, rank: int, source: int) -> tuple[Bytes, Bytes]:
        """The columns of B, and of its scales, of ``rank`` that meet what comes from ``source``."""
        k, sb = self.geometry.k, self.geometry.scale_bytes
        buffers = self.of_rank[rank]
        return buffers.b[:, source * k : (source + 1) * k], buffers.scale_b[
            :, source * sb : (source + 1) * sb
        ]

    def buffers(self, rank: int) -> Mapping[str, Bytes]:
        """The buffers of ``rank`` by the names of their regions."""
        return {name: getattr(self.of_rank[rank], name) for name in self.geometry.shapes}
