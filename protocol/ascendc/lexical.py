"""Characters and lexemes of a source: encoding, comments, strings, line splices, brackets.

The first step of `prepass`. All replacements keep the length, so that every offset stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import SourceError, UnsupportedError
from ..program import Span

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

NAME = rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*"


@dataclass(frozen=True, slots=True)
class Lexemes:
    """What the first look at a file found.

    ``joined`` are the offsets of line ends that end no line: after a backslash, or in a comment.
    ``literals`` are the extents of strings and characters.
    """

    literals: tuple[tuple[int, int], ...]
    joined: frozenset[int]

    def shape(self, text: bytearray) -> bytearray:
        """``text`` with blanks for its strings and characters: what is left is code."""
        shape = bytearray(text)
        for start, end in self.literals:
            blank(shape, start, end)
        return shape


def place(text: bytes | bytearray, offset: int, file: str) -> Span:
    """The place of the byte at ``offset``; columns count characters."""
    begin = text.rfind(b"\n", 0, offset) + 1
    column = len(text[begin:offset].decode(errors="replace")) + 1
    return Span(file, text.count(b"\n", 0, begin) + 1, column)


def blank(text: bytearray, start: int, end: int) -> None:
    """Replace ``text[start:end]`` by spaces; line ends stay."""
    for index in range(start, end):
        if text[index] != 0x0A:
            text[index] = 0x20


def decoded(source: bytes, file: str) -> bytes:
    """``source`` without a byte order mark. Raises SourceError for anything but UTF-8 text."""
    source = source.removeprefix(BOM)
    try:
        source.decode()
    except UnicodeDecodeError as error:
        kind = "UTF-16" if source.startswith(UTF_16) else f"byte 0x{source[error.start]:02x}"
        span = place(source, error.start, file)
        raise SourceError(f"not UTF-8 ({kind}): save the file as UTF-8", span) from error
    odd = re.search(rb"\r(?!\n)|\0", source)
    if odd is not None:
        what = "a NUL byte" if odd[0] == b"\0" else "a carriage return inside a line"
        raise SourceError(what, place(source, odd.start(), file))
    return source


_SPLICE = rb"\\[ \t\v\f\r]*\n"
_LEXEME = re.compile(
    rb"""//(?:[^\n\\]|%(splice)s|\\)*      # a line comment, with continuation
    |/\*.*?(?:\*/|\Z)
    |R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
    |"(?:[^"\\\n]|%(splice)s|\\.)*(?:"|(?=\n)|\Z)
    |(?:\bu8|(?<![0-9A-Fa-f']))'(?:[^'\\\n]|\\.)*'  # not the separator of 1'000
    """
    % {b"splice": _SPLICE},
    re.DOTALL | re.VERBOSE,
)


def read_lexemes(text: bytearray, file: str) -> Lexemes:
    """Blank all comments of ``text``; where its strings are, and which line ends do not end a line.

    Raises SourceError for a comment or string without end.
    """
    literals = []
    joined = set()
    for match in _LEXEME.finditer(bytes(text)):
        start, end = match.span()
        lexeme = match[0]
        if lexeme.startswith(b"/*") and (len(lexeme) < 4 or not lexeme.endswith(b"*/")):
            raise SourceError("comment without end", place(text, start, file))
        if lexeme.startswith(b'"') and (len(lexeme) < 2 or not lexeme.endswith(b'"')):
            raise SourceError("string without end", place(text, start, file))
        if lexeme.startswith(b"/"):
            joined.update(start + i for i, byte in enumerate(lexeme) if byte == 0x0A)
            blank(text, start, end)
        else:
            literals.append((start, end))
    found = Lexemes(tuple(literals), frozenset(joined))
    shape = bytes(found.shape(text))
    _refuse_odd_characters(shape, file)
    return Lexemes(found.literals, found.joined | _splices(shape, file))


def _splices(shape: bytes, file: str) -> set[int]:
    """The line ends after a backslash. Raises UnsupportedError where two halves may be one token."""
    ends = set()
    for match in re.finditer(_SPLICE, shape):
        before, after = shape[match.start() - 1 : match.start()], shape[match.end() : match.end() + 1]
        if before.strip() and after.strip():
            raise UnsupportedError("a token that continues on the next line", place(shape, match.start(), file))
        ends.add(match.end() - 1)
    return ends


def _refuse_odd_characters(shape: bytes, file: str) -> None:
    """Refuse what other parts would misread: names with ``$``, directives that begin with ``%:``."""
    odd = re.search(rb"\$|^[ \t]*%:|\?\?=", shape, re.MULTILINE)
    if odd is not None:
        raise UnsupportedError(f"`{odd[0].decode().strip()}`", place(shape, odd.start(), file))


def logical_lines(text: bytearray, joined: Iterable[int]) -> list[tuple[int, int, int]]:
    """Start, end (without the line end) and number of each line.

    A line goes on after a final backslash; that of a directive also after a comment's line ends.
    """
    inside = frozenset(joined)
    lines = []
    start, number = 0, 1
    while start < len(text):
        end, first = start, number
        while True:
            found = text.find(b"\n", end)
            stop = len(text) if found < 0 else found
            number += 1
            if found not in inside:
                break
            if not text[start:stop].rstrip().endswith(b"\\") and not text[start:stop].lstrip().startswith(b"#"):
                break
            end = found + 1
        lines.append((start, stop, first))
        start = stop + 1
    return lines


# --- brackets -----------------------------------------------------------------------------------

_PAIRS = {0x29: 0x28, 0x5D: 0x5B, 0x7D: 0x7B}


def check_brackets(shape: bytes | bytearray, file: str) -> None:
    """Raise SourceError at a bracket that nothing closes, or that closes nothing."""
    opened: list[int] = []
    for match in re.finditer(rb"[()\[\]{}]", shape):
        position, byte = match.start(), match[0][0]
        if byte not in _PAIRS:
            opened.append(position)
            continue
        if not opened:
            raise SourceError(f"syntax error: `{chr(byte)}` closes nothing", place(shape, position, file))
        if shape[opened[-1]] != _PAIRS[byte]:
            line = place(shape, position, file).line
            raise SourceError(
                f"syntax error: `{chr(shape[opened[-1]])}` is not closed before `{chr(byte)}` in line {line}",
                place(shape, opened[-1], file),
            )
        opened.pop()
    if opened:
        raise SourceError(
            f"syntax error: `{chr(shape[opened[-1]])}` is never closed", place(shape, opened[-1], file)
        )


_OPENS_NAMESPACE = re.compile(rb"(?:\binline\s+)?\bnamespace\b[\w\s:]*\Z|\bextern\s*\Z")


def declarations_scope(shape: bytes | bytearray) -> bool:
    """Whether a declaration can begin at the end of ``shape``: no function, class or statement is open."""
    begin = 0
    depth: list[bool] = []
    for match in re.finditer(rb"[()\[\]{};]", shape):
        byte = match[0]
        if byte == b"{":
            depth.append(_OPENS_NAMESPACE.search(bytes(shape[begin : match.start()])) is not None)
        elif byte in b"([":
            depth.append(False)
        elif byte != b";" and depth:
            depth.pop()
        if byte in b"{};":
            begin = match.end()
    return all(depth) and not shape[begin:].strip()


def enclosed_by_namespaces(shape: bytes | bytearray) -> bool:
    """Whether no function, class or argument list is open at the end of ``shape``."""
    cut = max(shape.rfind(mark) for mark in (b"{", b"}", b";"))
    inside = shape[cut + 1 :]
    return declarations_scope(shape[: cut + 1]) and inside.count(b"(") == inside.count(b")")
