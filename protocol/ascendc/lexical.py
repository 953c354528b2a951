"""Characters and lexemes of a source: encoding, comments, strings, line splices, brackets.

The first step of `prepass`. All replacements keep the length, so that every offset stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

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


def words(text: str) -> frozenset[str]:
    """The words of ``text``."""
    return frozenset(text.split())


def span_at(text: bytes | bytearray, offset: int, file: str) -> Span:
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
        span = span_at(source, error.start, file)
        if source.startswith(UTF_16):
            raise SourceError("the file is UTF-16: save it as UTF-8", span) from error
        if error.reason == "unexpected end of data":
            raise SourceError("the file ends inside a UTF-8 character: it is cut off", span) from error
        byte = f"byte 0x{source[error.start]:02x}"
        raise SourceError(f"the file is not UTF-8 ({byte}): save it as UTF-8", span) from error
    odd = re.search(rb"\r(?!\n)|\0", source)
    if odd is not None:
        what = "a NUL byte" if odd[0] == b"\0" else "a carriage return inside a line"
        raise SourceError(what, span_at(source, odd.start(), file))
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
    joined: set[int] = set()
    source = bytes(text)
    for match in _LEXEME.finditer(source):
        start, end = match.span()
        lexeme = match[0]
        if lexeme.startswith(b"/*") and (len(lexeme) < 4 or not lexeme.endswith(b"*/")):
            raise SourceError("comment without end", span_at(text, start, file))
        if lexeme.startswith(b'"') and (len(lexeme) < 2 or not lexeme.endswith(b'"')):
            raise SourceError("string without end", span_at(text, start, file))
        if lexeme.startswith(b"/"):
            joined.update(start + i for i, byte in enumerate(lexeme) if byte == 0x0A)
            blank(text, start, end)
        else:
            literals.append((start, end))
    found = Lexemes(tuple(literals), frozenset(joined))
    shape = bytes(found.shape(text))
    _refuse_odd_characters(shape, file)
    return Lexemes(found.literals, found.joined | _splices(source, shape, file))


_MAY_MERGE = re.compile(rb"[\w\x80-\xff\"'.]{2}|[-+*/%<>=!&|^~:.#?]{2}")


def _splices(text: bytes, shape: bytes, file: str) -> set[int]:
    """The line ends after a backslash. Raises UnsupportedError where two halves may be one token."""
    ends = set()
    for match in re.finditer(_SPLICE, text):
        if shape[match.start()] != 0x5C:
            continue  # in a comment or string
        if _MAY_MERGE.match(
            text[max(0, match.start() - 1) : match.start()] + text[match.end() : match.end() + 1]
        ):
            raise UnsupportedError(
                "a token that continues on the next line", span_at(text, match.start(), file)
            )
        ends.add(match.end() - 1)
    return ends


def _refuse_odd_characters(shape: bytes, file: str) -> None:
    """Refuse what other parts would misread: names with ``$``, directives that begin with ``%:``."""
    odd = re.search(rb"\$|^[ \t]*%:|\?\?=", shape, re.MULTILINE)
    if odd is not None:
        raise UnsupportedError(f"`{odd[0].decode().strip()}`", span_at(shape, odd.start(), file))


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
            if not text[start:stop].rstrip().endswith(b"\\") and not text[start:stop].lstrip().startswith(
                b"#"
            ):
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
        if not opened or (shape[opened[-1]] == 0x7B and byte != 0x7D):
            raise SourceError(f"syntax error: `{chr(byte)}` closes nothing", span_at(shape, position, file))
        if shape[opened[-1]] != _PAIRS[byte]:
            line = span_at(shape, position, file).line
            raise SourceError(
                f"syntax error: `{chr(shape[opened[-1]])}` is not closed before `{chr(byte)}` in line {line}",
                span_at(shape, opened[-1], file),
            )
        opened.pop()
    if opened:
        raise SourceError(
            f"syntax error: `{chr(shape[opened[-1]])}` is never closed", span_at(shape, opened[-1], file)
        )


_OPENS_NAMESPACE = re.compile(rb"(?:\binline\s+)?\bnamespace\b[\w\s:]*\Z|(?P<extern>\bextern\s*)\Z")


class Scope(Enum):
    """What is open at a position, the innermost that matters."""

    FILE = "the file, perhaps in extern C"
    NAMESPACE = "a namespace, between declarations"
    DECLARATION = "a declaration outside classes and functions"
    INSIDE = "a class, function or bracket"


def scope_after(shape: bytes | bytearray) -> Scope:
    """The scope at the end of ``shape``."""
    begin = 0
    opened: list[Scope] = []
    for match in re.finditer(rb"[()\[\]{};]", shape):
        byte = match[0]
        if byte in b"{([":
            head = _OPENS_NAMESPACE.search(bytes(shape[begin : match.start()])) if byte == b"{" else None
            named = Scope.FILE if head is not None and head["extern"] else Scope.NAMESPACE
            opened.append(Scope.INSIDE if head is None else named)
        elif byte != b";" and opened:
            opened.pop()
        if byte in b"{};":
            begin = match.end()
    if Scope.INSIDE in opened:
        return Scope.INSIDE
    if shape[begin:].strip():
        return Scope.DECLARATION
    return Scope.NAMESPACE if Scope.NAMESPACE in opened else Scope.FILE
