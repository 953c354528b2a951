"""What `mc2proof verify` does and prints: which ranks pass, where the errors are, what explains them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mc2proof import checks
from mc2proof.fuzz.acceptance import accepted
from mc2proof.fuzz.devicefiles import GOLDEN_FILE, DeviceFileError, read_inputs
from mc2proof.fuzz.forensics import Explanation, explain_output, unseen
from mc2proof.fuzz.golden import golden
from mc2proof.fuzz.judge import RankVerdict, WrongTile, judge_rank
from mc2proof.fuzz.matrices import Inputs
from mc2proof.fuzz.numerics import parse_dtypes
from mc2proof.fuzz.substitutions import Launches, Substitution
from mc2proof.protocol.errors import ParameterError
from mc2proof.text import Line, Piece, indented, line, table

SHOWN_TILES = 16
"""Wrong tiles of a rank that are listed; the others are counted."""
SCHEMA_VERSION = 1
"""Of `as_json`: rises when a field changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the results are to be: ``inputs`` is the folder that they were computed from, if known.

    ``before`` and ``after`` are those of the launches around it.
    """

    base: str
    rows: int
    n: int
    ranks: int
    tile_rows: int
    inputs: str | None
    dtype: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """One rank: its verdict, what explains each wrong tile, and what its inputs would not have shown."""

    verdict: RankVerdict
    explanations: Sequence[Explanation] = ()
    hidden: Sequence[Substitution] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """All ranks."""

    ranks: Sequence[Judged]

    @property
    def passed(self) -> bool:
        """Whether all ranks pass; as with the script, none fails where there is none."""
        return all(rank.verdict.passed for rank in self.ranks)


def verify(asked: Asked, tell: Callable[[str], None] | None = None) -> Verified:
    """Judge all ranks. Raises Mc2proofError for options and inputs that do not fit."""
    checks.whole("tile_rows", asked.tile_rows, 1)
    launches = _launches(asked)
    judged = []
    for rank in range(asked.ranks):
        if tell is not None:
            tell(f"rank {rank} of {asked.ranks}")
        verdict = judge_rank(Path(asked.base), rank, asked.rows, asked.n, asked.tile_rows)
        judged.append(Judged(verdict) if launches is None else _explained(launches, verdict, asked))
    return Verified(judged)


def _launches(asked: Asked) -> Launches | None:
    others = asked.before, asked.after
    if asked.inputs is None:
        if any(folder is not None for folder in others):
            raise ParameterError("input", None, "is needed too where --before or --after is given")
        return None
    given = _inputs(asked, asked.inputs)
    before, after = (None if folder is None else _inputs(asked, folder) for folder in others)
    for inputs in (before, after):
        if inputs is not None and inputs.geometry != given.geometry:
            raise ParameterError("input", asked.inputs, "has another K than another launch's inputs")
    return Launches(given, before, after)


def _inputs(asked: Asked, folder: str) -> Inputs:
    return read_inputs(
        Path(folder),
        ranks=asked.ranks,
        rows=asked.rows,
        n=asked.n,
        tile_rows=asked.tile_rows,
        dtypes=parse_dtypes(asked.dtype),
    )


def _explained(launches: Launches, verdict: RankVerdict, asked: Asked) -> Judged:
    """What explains the wrong tiles; where there are none, what these inputs would not have shown."""
    if verdict.golden is None or verdict.found is None:
        return Judged(verdict)
    expected = golden(launches.given, verdict.rank)
    if not np.all(accepted(expected, verdict.golden)):
        place = Path(asked.base) / str(verdict.rank) / GOLDEN_FILE
        raise DeviceFileError(
            f"{place}: is not the result of the inputs in {asked.inputs}: give those that it was made "
            "from, and their --dtype"
        )
    if verdict.passed:
        return Judged(verdict, hidden=unseen(launches.given, verdict.rank))
    return Judged(verdict, explain_output(launches, verdict.rank, verdict.golden, verdict.found))


# --- as text ------------------------------------------------------------------------------------


def as_text(verified: Verified) -> list[Line]:
    """Every rank, and how many pass."""
    lines: list[Line] = []
    for judged in verified.ranks:
        lines += _rank(judged.verdict)
        lines += indented([*_explanations(judged.explanations), *_undetectable(judged.hidden)])
    passing = sum(judged.verdict.passed for judged in verified.ranks)
    last = Piece("PASS", "green") if verified.passed else Piece("FAIL", "bold red")
    return [*lines, line(last, f"  {passing} of {len(verified.ranks)} ranks pass")]


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


def _explanations(explanations: Sequence[Explanation]) -> list[Line]:
    lines = []
    for found in explanations:
        violated = "; ".join(_one_of(group) for group in found.properties)
        lines.append(line(found.text, Piece(f"  violates {violated}" if violated else "", "bold")))
    return lines


def _one_of(properties: Sequence[str]) -> str:
    return " or ".join([", ".join(properties[:-1]), properties[-1]] if properties[1:] else properties)


def _undetectable(hidden: Sequence[Substitution]) -> list[Line]:
    if not hidden:
        return []
    first = hidden[0]
    text = (
        f"with these inputs {len(hidden)} stale, torn or missing segments would pass unseen, the first: "
        f"tile {first.segment.tile}, {first.text} (gen-data --tagged makes inputs that show them)"
    )
    return [line(Piece(text, "yellow"))]


# --- as JSON ------------------------------------------------------------------------------------


def as_json(verified: Verified) -> list[Line]:
    """The same as one object; its keys are in the README."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "passed": verified.passed,
        "ranks": [_rank_object(judged) for judged in verified.ranks],
    }
    return [line(json.dumps(content, indent=2))]


def _rank_object(judged: Judged) -> dict[str, Any]:
    verdict = judged.verdict
    return {
        "rank": verdict.rank,
        "passed": verdict.passed,
        "unreadable": verdict.unreadable or None,
        "notes": list(verdict.notes),
        "tiles": [
            asdict(tile) | {"golden": _number(tile.golden), "found": _number(tile.found)}
            for tile in verdict.tiles
        ],
        "explanations": [_explanation_object(one) for one in judged.explanations],
        "unseen": [{"tile": one.segment.tile, "text": one.text} for one in judged.hidden],
    }


def _explanation_object(found: Explanation) -> dict[str, Any]:
    return {
        "tile": found.tile,
        "text": found.text,
        "explained": bool(found.shares),
        "exact": found.exact,
        "violates_one_of": [list(group) for group in found.properties],
        "shares": [
            {
                "rows": share.rows,
                "columns": share.columns,
                "stories": [[[cause.text for cause in either] for either in s] for s in share.stories],
            }
            for share in found.shares
        ],
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinities: these are "nan", "inf" and "-inf"."""
    return value if math.isfinite(value) else str(value)
