"""The expression of an ``#if``: macros expanded token by token, then evaluated with three values.

Used by `preprocess`.
"""

from __future__ import annotations

import re

from ..errors import SourceError, UnsupportedError
from ..expr import compute
from ..program import Span
from .macros import Macros, Truth

_TOKEN = re.compile(
    r"\s*(?:((?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b)|([^\W\d]\w*)"
    r"|(&&|\|\||[<>=!]=|<<|>>|[-+*/%<>!~&|^?:()]))"
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
_MAXIMUM = 2**63
_MAX_TOKENS = 10_000


def evaluate_condition(text: str, macros: Macros, span: Span) -> Truth:
    """The value of ``#if text``: 1, 0, or None where the known macros do not decide it."""
    return _Parser(_expanded(_tokens(text, span), macros, span, frozenset()), macros, span).value()


def _tokens(text: str, span: Span, macro: str = "") -> list[str]:
    tokens = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            if macro:
                raise UnsupportedError(f"macro {macro} in an #if", span)
            raise SourceError(f"#if: cannot read `{text[position:]}`", span)
        tokens.append(next(group for group in match.groups() if group))
        position = match.end()
    return tokens


def _expanded(tokens: list[str], macros: Macros, span: Span, hidden: frozenset[str]) -> list[str]:
    """``tokens`` with macros replaced as text, as C does; operands of ``defined`` stay."""
    result: list[str] = []
    for position, token in enumerate(tokens):
        operand = result[-1:] == ["defined"] or result[-2:] == ["defined", "("]
        macro = macros.find(token) if not operand and token not in hidden else None
        if macro is None:
            result.append(token)
        elif macro.arguments:
            if tokens[position + 1 : position + 2] == ["("]:
                raise UnsupportedError(f"macro {token} in an #if", span)
            result.append(token)
        else:
            if token in macros.clashing:
                raise UnsupportedError(f"macro {token}, which is defined in several ways", span)
            result += _expanded(_tokens(macro.text, span, token), macros, span, hidden | {token})
        if len(result) > _MAX_TOKENS:
            raise UnsupportedError(f"an #if of more than {_MAX_TOKENS} tokens", span)
    return result


class _Parser:
    """Evaluates tokens; three-valued, so that ``0 && X`` needs no X."""

    def __init__(self, tokens: list[str], macros: Macros, span: Span) -> None:
        self.tokens = tokens
        self.macros = macros
        self.span = span
        self.unsigned = any(t[0].isdigit() and "u" in t.lower() for t in tokens)

    def value(self) -> Truth:
        """The value of the whole text."""
        result = self._ternary()
        if self.tokens:
            raise SourceError(f"#if: cannot read `{' '.join(self.tokens)}`", self.span)
        return result if result is None else int(result != 0)

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
        if op in ("<<", ">>") and not 0 <= right < 64:
            raise SourceError(f"#if: a shift by {right}", self.span)
        try:
            return self._checked(compute(op, left, right))
        except (ZeroDivisionError, ValueError) as error:
            raise SourceError(f"#if: {error}", self.span) from error

    def _checked(self, value: int) -> int:
        """``value``, which must be the same in signed and, if a ``u`` is there, unsigned arithmetic."""
        if not -_MAXIMUM <= value < _MAXIMUM or (self.unsigned and value < 0):
            raise UnsupportedError("an #if that leaves the range of its integers", self.span)
        return value

    def _unary(self) -> Truth:
        if self._accept("!"):
            value = self._unary()
            return None if value is None else int(not value)
        for op in ("-", "+", "~"):
            if self._accept(op):
                value = self._unary()
                if value is None:
                    return None
                return self._checked({"-": -value, "+": value, "~": ~value}[op])
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
            if not name.isidentifier():
                raise SourceError(f"#if: cannot read `defined {name}`", self.span)
            if parenthesised:
                self._expect(")")
            return self.macros.is_defined(name)
        if token[:1].isdigit():
            digits = token.rstrip("uUlL")
            octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
            try:
                return self._checked(int(digits, 8 if octal else 0))
            except ValueError as error:
                raise SourceError(f"#if: cannot read `{token}`", self.span) from error
        if not token.isidentifier():
            raise SourceError(f"#if: cannot read `{token}`", self.span)
        return self._name(token)

    def _name(self, name: str) -> Truth:
        """A name that is no macro: 0, as C says, if that is known."""
        if name in ("true", "false"):
            return int(name == "true")
        known = self.macros.find(name) is not None or self.macros.is_defined(name) == 0
        return 0 if known else None

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
