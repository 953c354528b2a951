"""The pre-pass: what tree-sitter's C++ grammar cannot read, replaced by text of the same length.

Byte offsets and line numbers stay exactly, so that a span found in the tree is a span of the user's
file. Used by `parse`; `preprocess` is the part that handles directives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import SourceError
from ..program import Span
from .preprocess import Includer, Macros, NoIncludes, Preprocessor, blank

ROLE_MACROS = {b"ASCEND_IS_AIV": b"ASC_IS_AIV", b"ASCEND_IS_AIC": b"ASC_IS_AIC"}
"""The role tests, used as ``if ASCEND_IS_AIV {``, and the shorter names that leave room for ( )."""

ATTRIBUTES_WITH_ARGUMENTS = frozenset(
    {b"__schedmode__", b"__mix__", b"__attribute__", b"__launch_bounds__", b"__aligned__"}
)
FORCED_RATIOS = {b"__cube__": (1, 0), b"__vector__": (0, 1)}
"""Attribute words that say which cores run an entry, as ``core_ratio`` does."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One file after the pre-pass.

    ``entries`` are the offsets of ``__global__``; ``ratios`` those of core ratios with their
    (cubes, vectors).
    """

    text: bytes
    entries: tuple[int, ...]
    ratios: tuple[tuple[int, tuple[int, int]], ...]


def prepare(source: bytes, file: str, macros: Macros, includer: Includer | None = None) -> Prepared:
    """``source`` made readable for the grammar; ``macros`` takes what it and its includes define.

    Raises UnsupportedError for an undecided ``#if``, SourceError for a comment or string without end.
    """
    text = bytearray(source)
    strings = _blank_comments(text, file)
    Preprocessor(text, file, macros, includer or NoIncludes()).run()
    for start, end in strings:
        _neutralise_string(text, start, end)
    entries: list[int] = []
    ratios: list[tuple[int, tuple[int, int]]] = []
    _blank_brackets(text, ratios)
    _blank_attributes(text, entries, ratios)
    _blank_launches(text)
    _parenthesise_roles(text)
    _rewrite_casts(text)
    assert len(text) == len(source), "a rewrite changed the length"
    return Prepared(bytes(text), tuple(entries), tuple(sorted(ratios)))


# --- comments and strings ---------------------------------------------------------------------

_LEXEME = re.compile(
    rb"""//(?:[^\n\\]|\\.|\\)*            # a line comment, with continuation
    |/\*.*?(?:\*/|\Z)
    |R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
    |"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z)
    |(?<![0-9A-Fa-f'])'(?:[^'\\\n]|\\.)*'  # not the separator of 1'000
    """,
    re.DOTALL | re.VERBOSE,
)


def _blank_comments(text: bytearray, file: str) -> list[tuple[int, int]]:
    """Blank all comments; the extents of the strings and characters."""
    strings = []
    for match in _LEXEME.finditer(bytes(text)):
        start, end = match.span()
        lexeme = match[0]
        if lexeme.startswith(b"/*") and (len(lexeme) < 4 or not lexeme.endswith(b"*/")):
            raise SourceError("comment without end", Span(file, text.count(b"\n", 0, start) + 1))
        if lexeme.startswith(b"/"):
            blank(text, start, end)
        else:
            strings.append((start, end))
    return strings


def _neutralise_string(text: bytearray, start: int, end: int) -> None:
    """Fill a string with ``_``: what it says reaches no protocol, but must not look like code."""
    opening = text.find(b'"', start, end)
    if opening < 0 or text[end - 1] != 0x22:
        return
    for index in range(opening + 1, end - 1):
        if text[index] != 0x0A:
            text[index] = 0x5F
    if text[start : start + 1] == b"R":
        text[start] = 0x20


# --- words that only the device compiler knows ------------------------------------------------

_BRACKETS = re.compile(rb"\[\[(?P<body>[^\[\]]*)\]\]")
_RATIO = re.compile(rb"core_ratio\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WORD = re.compile(rb"\b__[a-z][a-z0-9_]*\b")
_NUMBERS = re.compile(rb"\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def _blank_brackets(text: bytearray, ratios: list[tuple[int, tuple[int, int]]]) -> None:
    for match in _BRACKETS.finditer(bytes(text)):
        ratio = _RATIO.search(match["body"])
        if ratio is not None:
            ratios.append((match.start(), (int(ratio[1]), int(ratio[2]))))
        blank(text, *match.span())


def _blank_attributes(text: bytearray, entries: list[int], ratios: list[tuple[int, tuple[int, int]]]) -> None:
    for match in _WORD.finditer(bytes(text)):
        word, start, end = match[0], match.start(), match.end()
        if word == b"__global__":
            entries.append(start)
        if word in FORCED_RATIOS:
            ratios.append((start, FORCED_RATIOS[word]))
        if word in ATTRIBUTES_WITH_ARGUMENTS:
            numbers = _NUMBERS.match(text, end)
            if word == b"__mix__" and numbers is not None:
                ratios.append((start, (int(numbers[1]), int(numbers[2]))))
            end = _after_parentheses(text, end)
        blank(text, start, end)


def _after_parentheses(text: bytearray, start: int) -> int:
    """The offset after the parenthesised group that follows ``start``, or ``start``."""
    position = start
    while text[position : position + 1].isspace():
        position += 1
    if text[position : position + 1] != b"(":
        return start
    closing = _closing(text, position)
    return start if closing is None else closing + 1


def _closing(text: bytearray | bytes, opening: int) -> int | None:
    """The offset of the bracket that closes the one at ``opening``."""
    depth = 0
    for position in range(opening, len(text)):
        if text[position] in b"([{":
            depth += 1
        elif text[position] in b")]}":
            depth -= 1
            if depth == 0:
                return position
    return None


def _blank_launches(text: bytearray) -> None:
    """``kernel<<<blocks, l2, stream>>>(x)`` becomes ``kernel(x)``."""
    start = text.find(b"<<<")
    while start >= 0:
        end = text.find(b">>>", start)
        if end < 0:
            return
        blank(text, start, end + 3)
        start = text.find(b"<<<", end)


def _parenthesise_roles(text: bytearray) -> None:
    """``if ASCEND_IS_AIV {`` becomes ``if (ASC_IS_AIV ) {`` in the same room."""
    for macro, name in ROLE_MACROS.items():
        replacement = (b"(" + name).ljust(len(macro) - 1) + b")"
        for match in list(re.finditer(rb"\b" + macro + rb"\b", bytes(text))):
            text[match.start() : match.end()] = replacement


# --- casts ------------------------------------------------------------------------------------

_CAST = re.compile(rb"\(\s*((?:[A-Za-z_]\w*\s*::\s*)*[A-Za-z_]\w*(?:\s*<[\w\s:,]*>)?)\s*\)\s*(?=\()")
_ENDS_OPERAND = re.compile(rb"\s*(?!->|\+\+|--)(!=|[-+*/%&|^<>=?:;,)\]}]|\Z)")
_BEFORE = re.compile(rb"([A-Za-z_]\w*|[^\s])\s*\Z")
_OPERAND_FOLLOWS = frozenset({b"return", b"case", b"else", b"do", b"throw"})
_BUILTIN_TYPES = frozenset(b"void bool char short int long signed unsigned float double size_t".split())


def _rewrite_casts(text: bytearray) -> None:
    """``(T)(x) + y`` becomes ``  T (x) + y``: the same value, and only one way to read it.

    The grammar cannot know that T is a type. Depending on what follows it takes ``(T)(x) + y`` for
    a call of T, or for a cast of a cast of ``+y``, which silently loses x. Written as a functional
    cast it is a call of T in every reading, and lowering knows whether T is a type. A cast of
    ``(x).y`` or ``(U)x`` binds differently and stays; lowering refuses what the grammar may make of it.
    """
    for match in list(_CAST.finditer(bytes(text))):
        name = match[1].split(b"<")[0].strip()
        if name in _BUILTIN_TYPES or not _begins_operand(text, match.start()):
            continue
        closing = _closing(text, match.end())
        if closing is None or not _ENDS_OPERAND.match(text, closing + 1):
            continue
        text[match.start()] = 0x20
        text[text.index(b")", match.end(1))] = 0x20


def _begins_operand(text: bytearray, position: int) -> bool:
    """Whether an operand can begin at ``position``: not after a name, a value or a statement's end."""
    before = _BEFORE.search(bytes(text[max(0, position - 200) : position]))
    if before is None:
        return False
    word = before[1]
    if word[:1].isalnum() or word[:1] == b"_":
        return word in _OPERAND_FOLLOWS
    if word == b"{":
        return _opens_initialiser(text, position)
    if word != b")":
        return word not in (b";", b"}", b"]", b">")
    closing = position - 1 - text[max(0, position - 200) : position][::-1].index(b")")
    opening = _opening(text, closing)
    return (
        opening is not None
        and _is_type_like(bytes(text[opening + 1 : closing]))
        and _begins_operand(text, opening)
    )


_BLOCK_WORDS = frozenset({b"else", b"do", b"try", b"const", b"noexcept", b"override", b"final"})


def _opens_initialiser(text: bytearray, position: int) -> bool:
    """Whether the ``{`` before ``position`` begins a list of values, not a block."""
    brace = text.rindex(b"{", 0, position)
    before = _BEFORE.search(bytes(text[max(0, brace - 200) : brace]))
    if before is None:
        return False
    word = before[1]
    if word[:1].isalnum() or word[:1] == b"_":
        return word not in _BLOCK_WORDS
    return word in (b"=", b",", b"(", b"{", b">")


def _opening(text: bytearray, closing: int) -> int | None:
    depth = 0
    for position in range(closing, -1, -1):
        if text[position] in b")]}":
            depth += 1
        elif text[position] in b"([{":
            depth -= 1
            if depth == 0:
                return position
    return None


def _is_type_like(text: bytes) -> bool:
    """Whether a parenthesised text may be a cast's type; if it is none, lowering refuses the cast."""
    return re.fullmatch(rb"[\w\s:<>,]*\w[\w\s:<>,]*[*\s]*", text) is not None
