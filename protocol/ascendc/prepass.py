"""The pre-pass: what tree-sitter's C++ grammar cannot read, replaced by text of the same length.

Byte offsets and line numbers stay exactly, so that a span found in the tree is a span of the user's
file. Used by `parse`. `lexical` reads comments and strings, `preprocess` directives and macros,
`attributes` the device compiler's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .attributes import blank_attributes, closing_bracket
from .lexical import blank, check_brackets, decoded, read_lexemes
from .macros import Macros, MacroUse
from .preprocess import Includer, NoIncludes, Preprocessor, Protection

ROLE_MACROS = {b"ASCEND_IS_AIV": b"ASC_IS_AIV", b"ASCEND_IS_AIC": b"ASC_IS_AIC"}
"""The role tests, used as ``if ASCEND_IS_AIV {``, and the shorter names that leave room for ( )."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One file after the pre-pass.

    ``entries`` are the offsets of ``__global__``; ``ratios`` those of core ratios with their
    (cubes, vectors); ``uses`` the macros that are left in the text, by offset.
    """

    text: bytes
    entries: tuple[int, ...]
    ratios: tuple[tuple[int, tuple[int, int]], ...]
    uses: dict[int, MacroUse]


def prepare(
    source: bytes,
    file: str,
    macros: Macros,
    includer: Includer | None = None,
    protection: Protection | None = None,
) -> Prepared:
    """``source`` made readable for the grammar; ``macros`` takes what it and its includes define.

    ``protection`` takes what keeps the file from being read twice. Raises UnsupportedError for what is
    not decided, an ``#if`` for one, and SourceError for what is no text or has no end.
    """
    source = decoded(source, file)
    text = bytearray(source)
    lexemes = read_lexemes(text, file)
    preprocessor = Preprocessor(
        text, lexemes, file, macros, includer or NoIncludes(), protection or Protection()
    )
    preprocessor.run()
    check_brackets(preprocessor.shape, file)
    for match in re.finditer(rb"\\\s*\n", bytes(preprocessor.shape)):
        blank(text, match.start(), match.end())
    uses = preprocessor.uses
    for start, end in lexemes.literals:
        _neutralise_string(text, start, end)
    entries, ratios = blank_attributes(text, file, uses)
    _rewrite_expectations(text, uses)
    _blank_launches(text)
    _parenthesise_roles(text, uses)
    _rewrite_casts(text)
    assert len(text) == len(source), "a rewrite changed the length"
    return Prepared(bytes(text), tuple(entries), tuple(ratios), uses)


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

_EXPECT = re.compile(rb"\b__builtin_expect\s*(?=\()")
_CONSTANT = re.compile(rb"\s*(?:[+-]\s*)?(?:\w+|!!?\s*\w+)\s*")


def _rewrite_expectations(text: bytearray, uses: Mapping[int, MacroUse]) -> None:
    """``__builtin_expect(c, 1)`` becomes ``int64_t (c)``: its type is long, its value that of c."""
    for match in _EXPECT.finditer(bytes(text)):
        closing = closing_bracket(text, match.end())
        comma = _last_comma(text, match.end(), closing) if closing is not None else None
        if closing is None or comma is None or match.start() in uses:
            continue
        if _CONSTANT.fullmatch(text, comma + 1, closing):
            text[match.start() : match.end()] = b"int64_t".ljust(match.end() - match.start())
            blank(text, comma, closing)


def _last_comma(text: bytearray, opening: int, closing: int) -> int | None:
    """The one comma between two brackets that is in no inner one."""
    depth = 0
    commas = []
    for position in range(opening + 1, closing):
        depth += text[position] in b"([{"
        depth -= text[position] in b")]}"
        if text[position] == 0x2C and depth == 0:
            commas.append(position)
    return commas[0] if len(commas) == 1 else None


def _blank_launches(text: bytearray) -> None:
    """``kernel<<<blocks, l2, stream>>>(x)`` becomes ``kernel(x)``."""
    start = text.find(b"<<<")
    while start >= 0:
        end = text.find(b">>>", start)
        if end < 0:
            return
        blank(text, start, end + 3)
        start = text.find(b"<<<", end)


def _parenthesise_roles(text: bytearray, uses: Mapping[int, MacroUse]) -> None:
    """``if ASCEND_IS_AIV {`` becomes ``if (ASC_IS_AIV ) {`` in the same room."""
    for macro, name in ROLE_MACROS.items():
        replacement = (b"(" + name).ljust(len(macro) - 1) + b")"
        for match in list(re.finditer(rb"\b" + macro + rb"\b", bytes(text))):
            if match.start() not in uses:
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
        closing = closing_bracket(text, match.end())
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
