"""Whether the results of a device run pass, and where they do not: `judge_rank` for one rank's files.

Passes and fails as the reference's acceptance script does, files that are missing or of a wrong size
included; what it adds is where the errors are, tile by tile. Used by ``mc2proof verify``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .acceptance import accepted, difference
from .devicefiles import FOUND_FILE, GOLDEN_FILE, DeviceFileError
from .matrices import TILE_ROWS
from .numerics import Codes, Mask, from_bfloat16


@dataclass(frozen=True, slots=True)
class WrongTile:
    """The errors in one tile: how many of its elements, and the worst one.

    The worst is the one that is farthest off; what is NaN or infinite on one side only comes first.
    """

    tile: int
    first_row: int
    last_row: int
    wrong: int
    elements: int
    row: int
    column: int
    golden: float
    found: float


@dataclass(frozen=True, slots=True, eq=False)
class RankVerdict:
    """The verdict on one rank: the wrong tiles, or the reason why nothing could be compared.

    ``golden`` and ``found`` are the results, [rows, n] bf16 codes, where both could be read.
    """

    rank: int
    tiles: tuple[WrongTile, ...] = ()
    unreadable: str = ""
    golden: Codes | None = None
    found: Codes | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every element is within the tolerance."""
        return not self.tiles and not self.unreadable


def judge_rank(base: Path, rank: int, rows: int, n: int, tile_rows: int = TILE_ROWS) -> RankVerdict:
    """The verdict on the files in ``base``/``rank``, each of ``rows`` x ``n`` bf16 values."""
    try:
        found, note = _read_result(base / str(rank) / FOUND_FILE, rows, n)
        golden, other_note = _read_result(base / str(rank) / GOLDEN_FILE, rows, n)
    except DeviceFileError as error:
        return RankVerdict(rank, unreadable=str(error))
    tiles = wrong_tiles(golden, found, tile_rows)
    notes = tuple(text for text in (note, other_note) if text)
    return RankVerdict(rank, tiles, golden=golden, found=found, notes=notes)


def wrong_tiles(golden: Codes, found: Codes, tile_rows: int) -> tuple[WrongTile, ...]:
    """The tiles of ``tile_rows`` rows in which some element of ``found`` does not pass."""
    wrong = ~accepted(golden, found)
    tiles = []
    for tile, first in enumerate(range(0, len(golden), tile_rows)):
        span = slice(first, first + tile_rows)
        if wrong[span].any():
            tiles.append(_wrong_tile(tile, first, wrong[span], golden[span], found[span]))
    return tuple(tiles)


def _wrong_tile(tile: int, first: int, wrong: Mask, golden: Codes, found: Codes) -> WrongTile:
    expected, result = from_bfloat16(golden), from_bfloat16(found)
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are the worst
        error = np.nan_to_num(difference(expected, result), nan=np.inf)
    row, column = divmod(int(np.argmax(np.where(wrong, error, -1))), wrong.shape[1])
    return WrongTile(
        tile=tile,
        first_row=first,
        last_row=first + len(wrong) - 1,
        wrong=int(wrong.sum()),
        elements=wrong.size,
        row=first + row,
        column=column,
        golden=float(expected[row, column]),
        found=float(result[row, column]),
    )


def _read_result(path: Path, rows: int, n: int) -> tuple[Codes, str]:
    """The result in ``path``, and a note on a spare byte, which the reference's script ignores."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DeviceFileError(f"{path}: cannot be read: {error.strerror}") from error
    values = len(data) // 2
    if values != rows * n or min(rows, n) < 0:
        raise DeviceFileError(f"{path}: holds {values} values, not {rows} x {n} = {rows * n}")
    note = f"{path}: the last byte is half a value, and ignored" if len(data) % 2 else ""
    return np.frombuffer(data, np.uint16, values).reshape(rows, n), note
