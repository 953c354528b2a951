"""Text laid out in lines: the same on a terminal and in a file, but for colours.

A line is a sequence of pieces, each with a style's name; layouts here never depend on the width of
the terminal, so that what users read can be compared. Used by `render`, `show` and `listing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TextIO

PLACE_COLUMN = 100
"""Places (file:line) stand here at the latest, if the text before them leaves room."""


class Piece(NamedTuple):
    """Some text and the name of its style ("" for none)."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]
BLANK: Line = ()
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def line(*pieces: str | Piece) -> Line:
    """A line of ``pieces``; strings are unstyled."""
    return tuple(Piece(p) if isinstance(p, str) else p for p in pieces)


def heading(text: str) -> Line:
    """The title of a section."""
    return (Piece(text, "bold"),)


def indented(lines: Sequence[Line], by: int = 2) -> list[Line]:
    """``lines`` moved to the right; blank ones stay blank."""
    return [(Piece(" " * by), *content) if content else content for content in lines]


def plain(lines: Sequence[Line]) -> str:
    """``lines`` without styles and trailing spaces, each ended."""
    return "".join("".join(piece.text for piece in pieces).rstrip() + "\n" for pieces in lines)


def size_text(count: int) -> str:
    """``4 MiB`` where that is exact, else ``17,301,504 B``."""
    for unit, name in _UNITS:
        if count and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count:,} B"


def width(pieces: Line) -> int:
    """The number of characters of a line."""
    return sum(len(piece.text) for piece in pieces)


def table(rows: Sequence[Sequence[str | Piece]], *, gap: int = 2) -> list[Line]:
    """``rows`` with their columns aligned to the left; the last column is as wide as it is."""
    cells = [line(*row) for row in rows]
    columns = max((len(row) for row in cells), default=0)
    widths = [max((len(r[i].text) for r in cells if i < len(r)), default=0) for i in range(columns)]
    lines = []
    for row in cells:
        padded = [
            Piece(cell.text.ljust(widths[i] + gap) if i < len(row) - 1 else cell.text, cell.style)
            for i, cell in enumerate(row)
        ]
        lines.append(tuple(padded))
    return lines


def with_places(rows: Sequence[tuple[Line, str]]) -> list[Line]:
    """Each line with its place (file:line, or "") at the right, aligned where the text leaves room."""
    longest = max((width(pieces) for pieces, place in rows if place), default=0)
    column = min(longest + 2, PLACE_COLUMN)
    lines = []
    for pieces, place in rows:
        if place:
            pieces = (*pieces, Piece(" " * max(column - width(pieces), 2)), Piece(place, "dim"))
        lines.append(pieces)
    return lines


def print_styled(lines: Sequence[Line], stream: TextIO) -> None:
    """Write ``lines`` to a terminal in colours. Lines are not wrapped by us, so they copy whole."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for pieces in lines:
        console.print(Text.assemble(*((piece.text, piece.style) for piece in pieces)))
