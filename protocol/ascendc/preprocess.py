"""The C preprocessor, as far as a protocol needs it: conditions, includes, integer macros.

Used by `prepass` on text whose comments are already blank. Directives and inactive lines become
spaces, so that offsets and line numbers stay. A condition that the given defines do not decide is
refused where its branches differ, never guessed. Read `prepass` next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import SourceError, UnsupportedError
from ..expr import compute
from ..program import Span

Truth = int | None
"""The value of a condition; None where it is not decided."""


class Includer(Protocol):
    """Where quoted includes are looked for."""

    def resolves(self, name: str) -> bool:
        """Whether ``name`` is there to be read."""

    def read(self, name: str) -> None:
        """Read ``name``, if it is there and was not read before."""


class NoIncludes:
    """Finds nothing: every header is opaque."""

    def resolves(self, name: str) -> bool:
        """No."""
        return False

    def read(self, name: str) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Macros:
    """What is known of macro names, over all files in the order in which they are read.

    ``given`` are the user's (``None``: known to be undefined); ``defined`` those of the sources,
    with the text after the name; ``clashing`` those that the sources define in two ways.
    """

    given: Mapping[str, str | None] = field(default_factory=dict)
    defined: dict[str, str] = field(default_factory=dict)
    undefined: set[str] = field(default_factory=set)
    clashing: set[str] = field(default_factory=set)

    def text(self, name: str) -> str | None:
        """What ``name`` expands to, or None."""
        return self.defined[name] if name in self.defined else self.given.get(name)

    def is_defined(self, name: str) -> Truth:
        """1 or 0, None where nobody says."""
        if name in self.defined:
            return 1
        if name in self.given:
            return int(self.given[name] is not None)
        return 0 if name in self.undefined else None

    def define(self, name: str, text: str) -> None:
        """Take ``#define name text``."""
        if self.defined.get(name, text) != text:
            self.clashing.add(name)
        self.defined[name] = text

    def undefine(self, name: str) -> None:
        """Take ``#undef name``."""
        self.defined.pop(name, None)
        self.undefined.add(name)


@dataclass(slots=True)
class _Branch:
    """One #if … #endif: what was decided of it, and the texts of its undecided branches."""

    line: int
    condition: str
    parent: bool
    active: bool
    taken: bool
    undecided: bool = False
    texts: list[str] = field(default_factory=list)
    start: int = 0
    has_else: bool = False


_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*([a-z]+)?(.*)", re.DOTALL)
_QUOTED_INCLUDE = re.compile(r'\s*"([^"]+)"')
_DEFINE = re.compile(r"\s+([A-Za-z_]\w*)(\()?")


class Preprocessor:
    """One pass over one file's text, blanking in place; reads an include where it stands."""

    def __init__(self, text: bytearray, file: str, macros: Macros, includer: Includer) -> None:
        self.text = text
        self.file = file
        self.includer = includer
        self.macros = macros
        self.branches: list[_Branch] = []
        self.lines = _logical_lines(text)
        self.handlers = {
            "if": self._if,
            "ifdef": self._ifdef,
            "ifndef": self._ifndef,
            "elif": self._elif,
            "else": self._else,
            "endif": self._endif,
            "include": self._include,
            "define": self._define,
            "undef": self._undef,
            "error": self._error,
        }

    def run(self) -> None:
        """Blank directives and inactive text."""
        for index, (start, end, line) in enumerate(self.lines):
            match = _DIRECTIVE.match(self.text[start:end])
            if match is not None:
                self._directive(index, line, match)
                self._blank(start, end)
            elif not self._active() and not self.branches[-1].undecided:
                self._blank(start, end)
        if self.branches:
            raise SourceError("#if without #endif", self._span(self.branches[-1].line))

    def _directive(self, index: int, line: int, match: re.Match[bytes]) -> None:
        name = (match[1] or b"").decode()
        rest = match[2].replace(b"\\\n", b"  ").decode(errors="replace")
        handler = self.handlers.get(name)
        if handler is not None:
            handler(index, line, rest)

    # --- conditions -------------------------------------------------------------------------

    def _if(self, index: int, line: int, rest: str) -> None:
        value = self._evaluate(rest, line) if self._active() else 0
        self._open(index, line, f"#if {rest.strip()}", value)

    def _ifdef(self, index: int, line: int, rest: str) -> None:
        name = rest.strip()
        self._open(index, line, f"#ifdef {name}", self.macros.is_defined(name))

    def _ifndef(self, index: int, line: int, rest: str) -> None:
        name = rest.strip()
        known = 0 if self._is_guard(index, name) else self.macros.is_defined(name)
        self._open(index, line, f"#ifndef {name}", None if known is None else 1 - known)

    def _open(self, index: int, line: int, condition: str, value: Truth) -> None:
        self._refuse_undecided(condition)
        parent = self._active()
        branch = _Branch(line, condition, parent, parent and value == 1, value == 1)
        branch.undecided = parent and value is None
        branch.start = self.lines[index][1]
        self.branches.append(branch)

    def _elif(self, index: int, line: int, rest: str) -> None:
        branch = self._current(line, "#elif")
        if branch.undecided:
            self._close_undecided_text(branch, index)
        elif branch.taken or not branch.parent:
            branch.active = False
        else:
            value = self._evaluate(rest, line)
            branch.active = branch.taken = value == 1
            branch.undecided = value is None
            branch.condition, branch.line = f"#elif {rest.strip()}", line
            branch.start = self.lines[index][1]

    def _else(self, index: int, line: int, rest: str) -> None:
        branch = self._current(line, "#else")
        branch.has_else = True
        if branch.undecided:
            self._close_undecided_text(branch, index)
        else:
            branch.active = branch.parent and not branch.taken
            branch.taken = True

    def _endif(self, index: int, line: int, rest: str) -> None:
        branch = self._current(line, "#endif")
        if branch.undecided:
            self._close_undecided_text(branch, index)
            if not branch.has_else:
                branch.texts.append("")
            if len(set(branch.texts)) > 1:
                raise UnsupportedError(
                    f"{branch.condition}: not decided by the given defines, and its branches differ",
                    self._span(branch.line),
                )
        self.branches.pop()

    def _close_undecided_text(self, branch: _Branch, index: int) -> None:
        """Note the text of an undecided branch; keep the first, for all must turn out equal."""
        end = self.lines[index][0]
        text = self.text[branch.start : end].decode(errors="replace")
        branch.texts.append(" ".join(text.split()))
        if len(branch.texts) > 1:
            self._blank(branch.start, end)
        branch.start = self.lines[index][1]

    def _current(self, line: int, what: str) -> _Branch:
        if not self.branches:
            raise SourceError(f"{what} without #if", self._span(line))
        return self.branches[-1]

    def _active(self) -> bool:
        return all(branch.active for branch in self.branches)

    def _is_guard(self, index: int, name: str) -> bool:
        """Whether the next line that is not blank defines ``name``: an include guard."""
        for start, end, _ in self.lines[index + 1 :]:
            text = self.text[start:end].strip()
            if text:
                words = text.lstrip(b"#").split()
                return words[:1] == [b"define"] and words[1:2] == [name.encode()]
        return False

    # --- other directives -------------------------------------------------------------------

    def _include(self, index: int, line: int, rest: str) -> None:
        match = _QUOTED_INCLUDE.match(rest)
        if match is None or not self.includer.resolves(match[1]):
            return  # opaque; so it changes nothing in an undecided branch either
        self._refuse_undecided("#include")
        if self._active():
            self.includer.read(match[1])

    def _define(self, index: int, line: int, rest: str) -> None:
        match = _DEFINE.match(rest)
        if match is None:
            return
        self._refuse_undecided(f"#define {match[1]}")
        if self._active():
            text = "(" if match[2] else rest[match.end() :].strip()
            self.macros.define(match[1], text)

    def _undef(self, index: int, line: int, rest: str) -> None:
        self._refuse_undecided(f"#undef {rest.strip()}")
        if self._active():
            self.macros.undefine(rest.strip())

    def _error(self, index: int, line: int, rest: str) -> None:
        if self._active():
            raise SourceError(f"#error {rest.strip()}", self._span(line))

    def _refuse_undecided(self, what: str) -> None:
        for branch in self.branches:
            if branch.undecided:
                raise UnsupportedError(
                    f"{branch.condition}: not decided by the given defines, and {what} depends on it",
                    self._span(branch.line),
                )
            if not branch.active:
                return

    # --- helpers ----------------------------------------------------------------------------

    def _evaluate(self, rest: str, line: int) -> Truth:
        return ConditionParser(rest, self.macros, self._span(line)).value()

    def _span(self, line: int) -> Span:
        return Span(self.file, line)

    def _blank(self, start: int, end: int) -> None:
        blank(self.text, start, end)


def blank(text: bytearray, start: int, end: int) -> None:
    """Replace ``text[start:end]`` by spaces; line ends stay."""
    for index in range(start, end):
        if text[index] != 0x0A:
            text[index] = 0x20


def _logical_lines(text: bytearray) -> list[tuple[int, int, int]]:
    """Start, end (without the line end) and number of each line; a final ``\\`` joins the next."""
    lines = []
    start, number = 0, 1
    while start < len(text):
        end, first = start, number
        while True:
            found = text.find(b"\n", end)
            stop = len(text) if found < 0 else found
            number += 1
            if found < 0 or not text[start:stop].rstrip(b"\r").endswith(b"\\"):
                break
            end = found + 1
        lines.append((start, stop, first))
        start = stop + 1
    return lines


_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|([A-Za-z_]\w*)|(&&|\|\||[<>=!]=|<<|>>|[-+*/%<>!~&|^?:()]))"
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


class ConditionParser:
    """Evaluates the expression of an ``#if``; three-valued, so that ``0 && X`` needs no X."""

    def __init__(self, text: str, macros: Macros, span: Span, depth: int = 0) -> None:
        self.macros = macros
        self.span = span
        self.depth = depth
        self.tokens: list[str] = []
        position = 0
        text = text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise SourceError(f"#if: cannot read `{text[position:]}`", span)
            self.tokens.append(next(group for group in match.groups() if group))
            position = match.end()

    def value(self) -> Truth:
        """The value of the whole text."""
        result = self._ternary()
        if self.tokens:
            raise SourceError(f"#if: cannot read `{' '.join(self.tokens)}`", self.span)
        return result if result is None or self.depth else int(result != 0)

    def _ternary(self) -> Truth:
        condition = self._level(0)
        if not self._accept("?"):
            return condition
        then = self._ternary()
        self._expect(":")
        other = self._ternary()
        if condition is None:
            return then if then == other else None
        return then if condition else other

    def _level(self, level: int) -> Truth:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self.tokens and self.tokens[0] in _LEVELS[level]:
            op = self.tokens.pop(0)
            left = self._apply(op, left, self._level(level + 1))
        return left

    def _apply(self, op: str, left: Truth, right: Truth) -> Truth:
        if op in ("&&", "||"):
            decisive = int(op == "||")
            if decisive in (_truth(left), _truth(right)):
                return decisive
            return None if left is None or right is None else 1 - decisive
        if left is None or right is None:
            return None
        try:
            return compute(op, left, right)
        except (ZeroDivisionError, ValueError) as error:
            raise SourceError(f"#if: {error}", self.span) from error

    def _unary(self) -> Truth:
        if self._accept("!"):
            value = self._unary()
            return None if value is None else int(not value)
        for op in ("-", "+", "~"):
            if self._accept(op):
                value = self._unary()
                if value is None:
                    return None
                return {"-": -value, "+": value, "~": ~value}[op]
        return self._primary()

    def _primary(self) -> Truth:
        if self._accept("("):
            value = self._ternary()
            self._expect(")")
            return value
        token = self.tokens.pop(0) if self.tokens else ""
        if token == "defined":
            parenthesised = self._accept("(")
            name = self.tokens.pop(0) if self.tokens else ""
            if parenthesised:
                self._expect(")")
            return self.macros.is_defined(name)
        if token[:1].isdigit():
            return int(token, 16 if token[:2] in ("0x", "0X") else 8 if _is_octal(token) else 10)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise SourceError(f"#if: cannot read `{token}`", self.span)
        return self._name(token)

    def _name(self, name: str) -> Truth:
        """A macro's value; a name that is known to be undefined counts as 0, as C says."""
        text = self.macros.text(name)
        if text is None:
            return 0 if self.macros.is_defined(name) == 0 else None
        if not text or text == "(" or self.depth > 20:
            return None
        return ConditionParser(text, self.macros, self.span, self.depth + 1).value()

    def _accept(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise SourceError(f"#if: expected `{token}`", self.span)


def _truth(value: Truth) -> Truth:
    return None if value is None else int(value != 0)


def _is_octal(token: str) -> bool:
    return len(token) > 1 and token[0] == "0"
