"""From expressions of the program to polynomials and conditions, for one instance of a statement.

Arithmetic is taken over unbounded integers. Where C would differ, an unsigned difference below zero or
a negative number made unsigned, a `Demand` is noted: it has to be proved not to happen. Sums and products
that leave their type are excluded by an assumption of the report (``no-overflow``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ...protocol.cinteger import CType
from ...protocol.errors import UnsupportedError
from ...protocol.expr import Binary, Call, Cast, Const, Element, Expr, Select, Unary, Var
from ...protocol.program import Span
from .atoms import Atoms, CeilQuotient, Chosen, Quotient, Unknown
from .formula import FALSE, TRUE, Formula, at_least, both, conjunction, differ, either, equal, less, negation
from .polynomial import Poly, number


class Demand(NamedTuple):
    """``wanted`` must hold wherever ``path`` does, or C computes something else than ``text`` says."""

    path: Formula
    wanted: Formula
    text: str
    span: Span


@dataclass(slots=True)
class Translator:
    """Translates in one scope: ``names`` gives every variable its polynomial.

    ``powers``: moduli (as polynomials) that are powers of two, so that ``& (m - 1)`` is ``% m``.
    """

    names: Mapping[str, Poly]
    atoms: Atoms
    powers: frozenset[Poly]
    span: Span
    path: list[Formula] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)

    def value(self, expr: Expr) -> Poly:
        """``expr`` as a polynomial. Raises UnsupportedError for what cannot be one."""
        if expr.type is CType.BOOL:
            return self._choice(self.condition(expr), number(1), number(0))
        match expr:
            case Const(value=value):
                return number(value)
            case Var(name=name):
                if name not in self.names:
                    raise UnsupportedError(f"{name}, whose value changes while the program runs,", self.span)
                return self.names[name]
            case Element(array=array):
                raise UnsupportedError(f"array {array} for all values", self.span)
            case Cast(operand=operand):
                return self._narrowed(
                    self._fitted(self.value(operand), expr, operand.type), expr, operand.type
                )
            case Unary(op="-", operand=operand):
                return self._fitted(-self.value(operand), expr, CType.I64)
            case Unary():
                return self._unknown(expr)
            case Binary(op=op, left=left, right=right):
                return _OPERATORS.get(op, Translator._opaque)(self, expr, self.value(left), self.value(right))
            case Select(condition=condition, then=then, other=other):
                test = self.condition(condition)
                with self.under(test):
                    a = self.value(then)
                with self.under(negation(test)):
                    b = self.value(other)
                return self._choice(test, a, b)
            case Call(function=function, arguments=(first, second)):
                return self._call(function, self.value(first), self.value(second))
        raise UnsupportedError(f"{expr} for all values", self.span)

    def condition(self, expr: Expr) -> Formula:
        """``expr`` as a condition."""
        match expr:
            case Const(value=value):
                return TRUE if value else FALSE
            case Cast(operand=operand) if operand.type is not CType.BOOL:
                return differ(self.value(operand), 0)
            case Cast(operand=operand):
                return self.condition(operand)
            case Unary(op="!", operand=operand):
                return negation(self.condition(operand))
            case Binary(op="&&" | "||" as op, left=left, right=right):
                first = self.condition(left)
                with self.under(first if op == "&&" else negation(first)):
                    second = self.condition(right)
                return both(first, second) if op == "&&" else either(first, second)
            case Binary(op=op, left=left, right=right) if op in _COMPARISONS:
                return _COMPARISONS[op](self.value(left), self.value(right))
            case Select(condition=condition, then=then, other=other):
                test = self.condition(condition)
                return either(both(test, self.condition(then)), both(negation(test), self.condition(other)))
        return differ(self.value(expr), 0)

    @contextmanager
    def under(self, condition: Formula) -> Iterator[None]:
        """Within, demands are made only where ``condition`` holds."""
        self.path.append(condition)
        yield
        self.path.pop()

    # --- what C computes ----------------------------------------------------------------------

    def _fitted(self, poly: Poly, expr: Expr, source: CType) -> Poly:
        """``poly`` as a value of the type of ``expr``: negative numbers do not fit an unsigned one."""
        if not expr.type.signed and (source.signed or isinstance(expr, Unary | Binary)):
            wanted = at_least(poly, 0)
            if wanted != TRUE and any(factor < 0 for _, factor in poly.terms):
                self.demands.append(Demand(conjunction(self.path), wanted, str(expr), self.span))
        return poly

    def _narrowed(self, poly: Poly, expr: Expr, source: CType) -> Poly:
        """``poly`` in a type of 8 or 16 bits, which is no mere matter of overflow: it has to fit."""
        if expr.type.bits < min(source.bits, 32):
            wanted = both(at_least(poly, expr.type.low), at_least(expr.type.high, poly))
            if wanted != TRUE:
                self.demands.append(Demand(conjunction(self.path), wanted, str(expr), self.span))
        return poly

    def _choice(self, condition: Formula, then: Poly, other: Poly) -> Poly:
        if condition == TRUE or then == other:
            return then
        if condition == FALSE:
            return other
        return self.atoms.named(f"({condition}) ? ({then}) : ({other})", Chosen(condition, then, other))

    def _call(self, function: str, a: Poly, b: Poly) -> Poly:
        if function == "min":
            return self._choice(at_least(b, a), a, b)
        if function == "max":
            return self._choice(at_least(a, b), a, b)
        divisor = b.constant
        if a.constant is not None and divisor:
            return number(-(-a.constant // divisor))
        if divisor and all(factor % divisor == 0 for _, factor in a.terms):
            return Poly(tuple((monomial, factor // divisor) for monomial, factor in a.terms))
        return self.atoms.named(f"ceil_div({a}, {b})", CeilQuotient(a, b))

    def _subtracted(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        return self._fitted(a - b, expr, CType.I64)

    def _divided(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        divisor = b.constant
        if a.constant is not None and a.constant >= 0 and divisor and divisor > 0:
            return number(a.constant // divisor)
        if divisor and divisor > 0 and all(factor % divisor == 0 for _, factor in a.terms):
            return Poly(tuple((monomial, factor // divisor) for monomial, factor in a.terms))
        self._natural(a, expr)
        self.demands.append(Demand(conjunction(self.path), at_least(b, 1), str(expr), self.span))
        return self.atoms.named(f"({a}) / ({b})", Quotient(a, b))

    def _remainder(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        self._natural(a, expr)
        self.demands.append(Demand(conjunction(self.path), at_least(b, 1), str(expr), self.span))
        return self.atoms.ring(a, b)

    def _masked(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        for value, mask in ((a, b), (b, a)):
            size = mask + 1
            if size in self.powers or _is_power(size.constant):
                self._natural(value, expr)
                return self.atoms.ring(value, size)
        self._natural(a, expr)
        self._natural(b, expr)
        # the bits that both have: at most either of the two
        return self.atoms.named(f"({a}) & ({b})", Unknown(True, b))

    def _shifted(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        if b.constant is not None and 0 <= b.constant < 64:
            return a * (1 << b.constant)
        return self._opaque(expr, a, b)

    def _shifted_down(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        if b.constant is not None and 0 <= b.constant < 64:
            return self._divided(expr, a, number(1 << b.constant))
        return self._opaque(expr, a, b)

    def _natural(self, poly: Poly, expr: Expr) -> None:
        wanted = at_least(poly, 0)
        if wanted != TRUE:
            self.demands.append(Demand(conjunction(self.path), wanted, str(expr), self.span))

    def _opaque(self, expr: Expr, a: Poly, b: Poly) -> Poly:
        assert isinstance(expr, Binary)
        return self.atoms.named(f"({a}) {expr.op} ({b})", Unknown(False))

    def _unknown(self, expr: Expr) -> Poly:
        assert isinstance(expr, Unary)
        return self.atoms.named(f"{expr.op}({self.value(expr.operand)})", Unknown(False))


def flag_id(expr: Expr) -> Expr:
    """The id of a set or wait without the conversions around it.

    The hardware keeps the low bits of an id, so a narrower type changes no counter; an id that the type
    cuts short lies outside the domain of ids before.
    """
    while isinstance(expr, Cast) and expr.type is not CType.BOOL:
        expr = expr.operand
    return expr


def _is_power(size: int | None) -> bool:
    return size is not None and size > 0 and size & (size - 1) == 0


_OPERATORS: dict[str, Callable[[Translator, Expr, Poly, Poly], Poly]] = {
    "+": lambda t, e, a, b: t._fitted(a + b, e, CType.I64),
    "-": Translator._subtracted,
    "*": lambda t, e, a, b: t._fitted(a * b, e, CType.I64),
    "/": Translator._divided,
    "%": Translator._remainder,
    "&": Translator._masked,
    "<<": Translator._shifted,
    ">>": Translator._shifted_down,
}

_COMPARISONS: dict[str, Callable[[Poly, Poly], Formula]] = {
    "<": less,
    "<=": lambda a, b: at_least(b, a),
    ">": lambda a, b: less(b, a),
    ">=": at_least,
    "==": equal,
    "!=": differ,
}
