"""What `mc2proof verify` does and prints: which ranks pass, where the errors are, what explains them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mc2proof import checks
from mc2proof.fuzz.acceptance import accepted
from mc2proof.fuzz.devicefiles import GOLDEN_FILE, DeviceFileError, read_inputs
from mc2proof.fuzz.forensics import explain_output, unseen
from mc2proof.fuzz.golden import golden
from mc2proof.fuzz.inputs import Inputs
from mc2proof.fuzz.judge import RankVerdict, WrongTile, judge_rank
from mc2proof.fuzz.numerics import parse_dtypes
from mc2proof.text import Line, Piece, indented, line, table

SHOWN_TILES = 16
"""Wrong tiles of a rank that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the results are to be: ``inputs`` is the folder that they were computed from, if known."""

    base: str
    rows: int
    n: int
    ranks: int
    tile_rows: int
    inputs: str | None
    dtype: str


def verify(asked: Asked, tell: Callable[[str], None] | None = None) -> tuple[list[Line], bool]:
    """The lines to print, and whether all ranks pass. Raises Mc2proofError for inputs that do not fit."""
    for name, value in (("M", asked.rows), ("N", asked.n), ("RANKS", asked.ranks)):
        checks.whole(name, value, 1)
    checks.whole("tile_rows", asked.tile_rows, 1)
    inputs = _inputs(asked)
    lines: list[Line] = []
    passed = 0
    for rank in range(asked.ranks):
        if tell is not None:
            tell(f"rank {rank} of {asked.ranks}")
        verdict = judge_rank(Path(asked.base), rank, asked.rows, asked.n, asked.tile_rows)
        passed += verdict.passed
        lines += _rank(verdict)
        if inputs is not None:
            lines += indented(_explained(inputs, verdict, asked))
    last = Piece("PASS", "green") if passed == asked.ranks else Piece("FAIL", "bold red")
    return [*lines, line(last, f"  {passed} of {asked.ranks} ranks pass")], passed == asked.ranks


def _inputs(asked: Asked) -> Inputs | None:
    if asked.inputs is None:
        return None
    return read_inputs(
        Path(asked.inputs),
        ranks=asked.ranks,
        rows=asked.rows,
        n=asked.n,
        tile_rows=asked.tile_rows,
        dtypes=parse_dtypes(asked.dtype),
    )


def _rank(verdict: RankVerdict) -> list[Line]:
    head = Piece("PASS", "green") if verdict.passed else Piece("FAIL", "bold red")
    wrong = sum(tile.wrong for tile in verdict.tiles)
    what = "all values are within the tolerance"
    if verdict.tiles:
        tiles = "1 tile" if len(verdict.tiles) == 1 else f"{len(verdict.tiles)} tiles"
        what = f"{wrong:,} values beyond the tolerance, in {tiles}"
    notes = [line(Piece(note, "yellow")) for note in verdict.notes]
    return [
        line(head, f"  rank {verdict.rank}: {verdict.unreadable or what}"),
        *indented([*_tiles(verdict.tiles), *notes]),
    ]


def _tiles(tiles: Sequence[WrongTile]) -> list[Line]:
    rows = [
        [
            f"tile {t.tile}",
            f"rows {t.first_row}-{t.last_row}",
            f"{t.wrong:,} of {t.elements:,} wrong",
            f"worst at [{t.row}, {t.column}]: {t.found:g}, expected {t.golden:g}",
        ]
        for t in tiles[:SHOWN_TILES]
    ]
    more = len(tiles) - len(rows)
    return [*table(rows), *([line(f"and {more} more")] if more else [])]


def _explained(inputs: Inputs, verdict: RankVerdict, asked: Asked) -> list[Line]:
    """What explains the wrong tiles; where there are none, what these inputs would not have shown."""
    if verdict.golden is None or verdict.found is None:
        return []
    expected = golden(inputs, verdict.rank)
    if not np.all(accepted(expected, verdict.golden)):
        place = Path(asked.base) / str(verdict.rank) / GOLDEN_FILE
        raise DeviceFileError(
            f"{place}: is not the result of the inputs in {asked.inputs}: give those that it was made "
            "from, and their --dtype"
        )
    if verdict.passed:
        return _undetectable(inputs, verdict.rank)
    lines = []
    for found in explain_output(inputs, verdict.rank, expected, verdict.found):
        violated = f"  violates {', '.join(found.properties)}" if found.properties else ""
        lines.append(line(found.text, Piece(violated, "bold")))
    return lines


def _undetectable(inputs: Inputs, rank: int) -> list[Line]:
    hidden = unseen(inputs, rank)
    if not hidden:
        return []
    first = hidden[0]
    text = (
        f"with these inputs {len(hidden)} stale, torn or missing segments would pass unseen, the first: "
        f"tile {first.segment.tile}, {first.text} (gen-data --tagged makes inputs that show them)"
    )
    return [line(Piece(text, "yellow"))]
