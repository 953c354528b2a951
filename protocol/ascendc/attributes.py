"""Attribute words of the device compiler: blanked where they say nothing about the protocol.

``__global__`` and the core ratios are noted. A word, attribute or ratio that is not known stays or is
refused: nothing is taken to be harmless because of its spelling. Used by `prepass` and, for macros
that stand for attributes, by `preprocess`.
"""

from __future__ import annotations

import re

from ..errors import UnsupportedError
from .lexical import blank, span_at, words
from .macros import Macros, MacroUse

Ratios = list[tuple[int, tuple[int, int]]]

PLAIN = words(
    """__aicore__ __host_aicore__ __host__ __device__ __gm__ __ubuf__ __cbuf__ __ca__ __cb__ __cc__ __fbuf__
    __biasbuf__ __ssbuf__ __local_mem__ __kfc_workspace__ __inline__ __inline __forceinline__ __forceinline
    __noinline__ __restrict__ __restrict __extension__ __simd_vf__ __simd_callee__ __simt_vf__
    __simt_callee__ __no_simd_vf_fusion__ __sync_alias__ __sync_noalias__ __check_sync_alias__
    __sync_in__ __sync_out__"""
)
"""Words that say where a thing lives or how it is compiled, not what it does."""

WITH_ARGUMENTS = words("__schedmode__ __launch_bounds__ __aligned__ __in_pipe__ __out_pipe__ __inout_pipe__")
"""The same with arguments."""

FORCED_RATIOS = {"__cube__": (1, 0), "__vector__": (0, 1)}
"""Attribute words that say which cores run an entry, as ``core_ratio`` does."""

MEANINGFUL = frozenset({"__global__", "__mix__", "__attribute__", "core_ratio", *FORCED_RATIOS})
"""Words that the front end reads; no macro may bring them in unnoticed."""

ENTRY_WORDS = MEANINGFUL - {"__attribute__"}

HARMLESS = words(
    """aicore always_inline noinline unused used maybe_unused nodiscard noreturn deprecated fallthrough likely
    unlikely visibility section cold hot flatten nothrow pure const aligned packed optnone gnu_inline
    no_unique_address warn_unused_result may_alias artificial format"""
)
"""Names in ``[[…]]`` and ``__attribute__((…))`` that do not change what the code does."""

_BRACKETS = re.compile(rb"\[\[(?P<body>[^\[\]]*)\]\]")
_ATTRIBUTE = re.compile(
    rb"\b__attribute(?:__)?\s*\(\s*\((?P<body>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*\)"
)
_WORD = re.compile(rb"\b__[a-z][a-z0-9_]*\b")
_PAIR = re.compile(rb"\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_ITEM = re.compile(rb"\s*(?:using\s+\w+\s*:)?\s*(?:(\w+)\s*::\s*)?(\w+)?\s*(\(.*\))?\s*", re.DOTALL)
_LEFT_OVER = re.compile(rb"\bcore_ratio\b|\b__attribute(?:__)?\b")


def blank_attributes(text: bytearray, file: str, uses: dict[int, MacroUse]) -> tuple[list[int], Ratios]:
    """Blank all known attributes; the offsets of ``__global__``, and the core ratios.

    Raises UnsupportedError for an attribute or core ratio that is not understood.
    """
    entries: list[int] = []
    ratios: Ratios = []

    def ratio(start: int, pair: re.Match[bytes] | None) -> None:
        cubes, vectors = (_number(pair, group, uses) for group in (1, 2))
        if cubes is None or vectors is None:
            raise UnsupportedError("a core ratio that is not two integers", span_at(text, start, file))
        ratios.append((start, (cubes, vectors)))

    for match in [*_BRACKETS.finditer(bytes(text)), *_ATTRIBUTE.finditer(bytes(text))]:
        for name, offset in _items(match, file, text):
            if name == "core_ratio":
                ratio(match.start(), _PAIR.match(text, offset))
        for offset, use in uses.items():
            if match.start() <= offset < match.end() and use.number is None:
                raise UnsupportedError(f"{use} in an attribute", span_at(text, offset, file))
        _blank_use(text, *match.span(), uses)
    for match in _WORD.finditer(bytes(text)):
        word, start, end = match[0].decode(), match.start(), match.end()
        if start in uses:
            continue
        if word == "__global__":
            entries.append(start)
        elif word == "__mix__":
            ratio(start, _PAIR.match(text, end))
        elif word in FORCED_RATIOS:
            ratios.append((start, FORCED_RATIOS[word]))
        elif word not in PLAIN and word not in WITH_ARGUMENTS:
            continue
        if word == "__mix__" or word in WITH_ARGUMENTS:
            end = after_parentheses(text, end)
        _blank_use(text, start, end, uses)
    left = _LEFT_OVER.search(text)
    if left is not None:
        raise UnsupportedError(f"{left[0].decode()} in this form", span_at(text, left.start(), file))
    return entries, sorted(ratios)


def _blank_use(text: bytearray, start: int, end: int, uses: dict[int, MacroUse]) -> None:
    for offset in [offset for offset in uses if start <= offset < end]:
        del uses[offset]
    blank(text, start, end)


def _items(match: re.Match[bytes], file: str, text: bytearray) -> list[tuple[str, int]]:
    """The names of the attributes in one bracket, each with the offset after it."""
    found = []
    begin = match.start("body")
    for item in _split(match["body"]):
        read = _ITEM.fullmatch(item)
        name = read[2].decode() if read is not None and read[2] is not None else ""
        space = read[1].decode() if read is not None and read[1] is not None else ""
        known = name.strip("_") in HARMLESS or (name == "core_ratio" and match[0].startswith(b"[["))
        if item.strip() and (not known or space not in ("", "bisheng", "gnu", "clang", "cce")):
            shown = " ".join(item.decode().split())
            raise UnsupportedError(f"attribute {shown}", span_at(text, match.start(), file))
        if read is not None and name:
            found.append((name, begin + read.end(2)))
        begin += len(item) + 1
    return found


def _split(body: bytes) -> list[bytes]:
    """``body`` cut at its commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for position, byte in enumerate(body):
        depth += (byte == 0x28) - (byte == 0x29)
        if byte == 0x2C and depth == 0:
            parts.append(body[start:position])
            start = position + 1
    return [*parts, body[start:]]


def _number(pair: re.Match[bytes] | None, group: int, uses: dict[int, MacroUse]) -> int | None:
    """A literal or a macro that stands for one."""
    if pair is None:
        return None
    use = uses.get(pair.start(group))
    text = pair[group].decode() if use is None else use.number or ""
    digits = text.rstrip("uUlL")
    return int(digits) if digits.isdigit() and (digits == "0" or digits[0] != "0") else None


def stands_for_nothing(text: str, macros: Macros, hidden: frozenset[str] = frozenset()) -> bool:
    """Whether the body of a macro consists of attribute words that change nothing."""
    rest = text
    for match in list(_ATTRIBUTE.finditer(text.encode())):
        try:
            _items(match, "", bytearray())
        except UnsupportedError:
            return False
        rest = rest.replace(match[0].decode(), " ")
    for word in rest.split():
        macro = macros.find(word) if word not in hidden else None
        if macro is not None:
            if macro.arguments or not stands_for_nothing(macro.text, macros, hidden | {word}):
                return False
        elif word not in PLAIN and word != "inline":
            return False
    return True


def after_parentheses(text: bytes | bytearray, start: int) -> int:
    """The offset after the parenthesised group that follows ``start``, or ``start``."""
    position = start
    while text[position : position + 1].isspace():
        position += 1
    if text[position : position + 1] != b"(":
        return start
    closing = closing_bracket(text, position)
    return start if closing is None else closing + 1


def closing_bracket(text: bytearray | bytes, opening: int) -> int | None:
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
