"""Macros: what is known of them where the preprocessor stands, and what their uses stand for.

Used by `preprocess`, which asks here for every name of the active text, and by `conditions`. A use
that stands for an integer is looked up by its offset later; any other is refused where it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .lexical import NAME, words

Truth = int | None
"""The value of a condition; None where it is not decided."""


@dataclass(frozen=True, slots=True)
class Macro:
    """``#define name text``, or ``name(…)`` if it has ``arguments``; ``place`` is where."""

    text: str
    arguments: bool = False
    place: str = "the command line"


@dataclass(frozen=True, slots=True)
class MacroUse:
    """A name in the text that is a macro there: the integer it stands for, or why it stands for none."""

    name: str
    number: str | None
    reason: str = ""

    def __str__(self) -> str:
        return f"macro {self.name}{self.reason}"


@dataclass(slots=True)
class Macros:
    """What is known of macro names at one position; each translation unit begins with a fresh one.

    ``given`` are the user's (``None``: known to be undefined); ``defined`` those of the sources
    (``None``: undefined by them); ``clashing`` those that are redefined without an ``#undef``.
    """

    given: Mapping[str, str | None] = field(default_factory=dict)
    defined: dict[str, Macro | None] = field(default_factory=dict)
    clashing: set[str] = field(default_factory=set)
    seen: dict[str, str] = field(default_factory=dict)
    """Every name that was defined so far, with its first place, also where it is undefined now."""

    def find(self, name: str) -> Macro | None:
        """The macro ``name``, or None."""
        if name in self.defined:
            return self.defined[name]
        text = self.given.get(name)
        return Macro(text) if text is not None else None

    def text(self, name: str) -> str | None:
        """What ``name`` expands to, or None."""
        macro = self.find(name)
        return macro.text if macro is not None else None

    def is_defined(self, name: str) -> Truth:
        """1 or 0, None where nobody says."""
        known = name in self.defined or name in self.given
        return int(self.find(name) is not None) if known else None

    def define(self, name: str, macro: Macro) -> None:
        """Take a ``#define``."""
        old = self.find(name)
        if old is not None and (old.text, old.arguments) != (macro.text, macro.arguments):
            self.clashing.add(name)
        self.defined[name] = macro
        self.seen.setdefault(name, macro.place)

    def undefine(self, name: str) -> None:
        """Take ``#undef name``."""
        self.defined[name] = None
        self.clashing.discard(name)

    # --- uses -------------------------------------------------------------------------------

    def use(self, name: str) -> MacroUse:
        """What macro ``name`` stands for here."""
        if name in self.clashing:
            return MacroUse(name, None, ", which is defined in several ways")
        return MacroUse(name, self._number(name, set()))

    def _number(self, name: str, hidden: set[str]) -> str | None:
        macro = self.find(name)
        if macro is None or macro.arguments or name in hidden | self.clashing:
            return None
        inner = macro.text.strip()
        while inner.startswith("(") and inner.endswith(")"):
            inner = inner[1:-1].strip()
        if _INTEGER.fullmatch(inner):
            return inner
        return self._number(inner, hidden | {name}) if inner.isidentifier() else None

    def expansion(self, name: str) -> str:
        """All text that ``name`` may bring in, through other macros too."""
        found: dict[str, str] = {}
        pending = [name]
        while pending:
            macro = self.find(pending.pop())
            if macro is None or macro.text in found:
                continue
            found[macro.text] = macro.text
            pending += re.findall(r"[^\W\d]\w*", macro.text)
        return " ".join(found)


_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)[uUlL]*")
_TOKEN = re.compile(rb"\.?\d(?:[eEpP][+-]|[\w.'])*|(" + NAME + rb")")


def names_in(shape: bytes | bytearray, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The names in ``shape[start:end]`` with their offsets; numbers with letters are none."""
    for match in _TOKEN.finditer(shape, start, end):
        if match[1] is not None:
            yield match.start(), match[1].decode()


# --- names that must not be macros --------------------------------------------------------------

KEYWORDS = words(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield
    decltype default defined delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq final override
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ssize_t ptrdiff_t intptr_t
    uintptr_t half bfloat16_t GM_ADDR event_t TEventID"""
)
"""The language's words and the types that the front end knows: a macro of that name changes all."""
