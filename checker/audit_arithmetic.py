"""Whether conditions on integers can hold together, by case split and Fourier-Motzkin elimination.

The arithmetic of `audit`: no solver, exact integers, small enough to be read. Sound for "impossible" only:
monomials of several symbols are taken as unknown numbers, and whoever gives up says that it is possible.
A row ``(vector, constant)`` means that the sum of the vector's terms plus the constant is at least 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

from .parametric.formula import And, Compare, Formula, Opaque, Or
from .parametric.polynomial import Monomial, Poly

Vector = tuple[tuple[Monomial, int], ...]
Rows = dict[Vector, int]

MOST_ROWS = 600
MOST_STEPS = 2500
"""How many rows are kept, and how many systems are tried, until it is given up."""


def impossible(conditions: Iterable[Formula]) -> bool:
    """Whether ``conditions`` are seen not to hold together; False: not seen."""
    case = _Case()
    if not all(case.add(condition) for condition in conditions):
        return True
    return _refuted(case, [MOST_STEPS])


@dataclass(slots=True)
class _Case:
    """What holds in one case: rows, and disjunctions that are still open."""

    rows: Rows = field(default_factory=dict)
    choices: list[tuple[Formula, ...]] = field(default_factory=list)

    def copy(self) -> _Case:
        return _Case(dict(self.rows), list(self.choices))

    def add(self, formula: Formula) -> bool:
        """Add ``formula``; False where it contradicts a row outright."""
        match formula:
            case And(parts=parts):
                return all(self.add(part) for part in parts)
            case Or(parts=parts):
                self.choices.append(tuple(side for part in parts for side in _sides(part)))
                return bool(parts)
            case Opaque(name=name, negated=negated):  # a number that is positive where it is true
                mark: Vector = ((("?" + name,), -1 if negated else 1),)
                return self._row(mark, 0 if negated else -1)
            case Compare(poly=poly, op=">="):
                return self._poly(poly)
            case Compare(poly=poly, op="=="):
                return self._poly(poly) and self._poly(-poly)
            case Compare():
                self.choices.append(_sides(formula))
                return True

    def _poly(self, poly: Poly) -> bool:
        vector = tuple(term for term in poly.terms if term[0])
        return self._row(vector, poly.as_dict.get((), 0))

    def _row(self, vector: Vector, constant: int) -> bool:
        return _put(self.rows, vector, constant)


def _sides(part: Formula) -> tuple[Formula, ...]:
    """What is not equal is more or less."""
    if isinstance(part, Compare) and part.op == "!=":
        return Compare(part.poly - 1, ">="), Compare(-part.poly - 1, ">=")
    return (part,)


def _put(rows: Rows, vector: Vector, constant: int) -> bool:
    """Add a row, tightened to whole numbers; False where it contradicts another outright."""
    if not vector:
        return constant >= 0
    divisor = gcd(*(factor for _, factor in vector))
    if divisor > 1:
        vector = tuple((monomial, factor // divisor) for monomial, factor in vector)
        constant //= divisor
    if rows.get(vector, constant) >= constant:
        rows[vector] = constant
    opposite = rows.get(tuple((monomial, -factor) for monomial, factor in vector))
    return opposite is None or opposite + constant >= 0


def _refuted(case: _Case, budget: list[int]) -> bool:
    """Whether no numbers are possible in ``case``."""
    if _empty(case.rows, budget):
        return True
    while True:
        open_ones = []
        forced = None
        for choice in case.choices:
            left = [part for part in choice if _stands(case, part, budget)]
            if not left:
                return True
            if len(left) == 1:
                forced = left[0]
                case.choices.remove(choice)
                break
            open_ones.append((choice, tuple(left)))
        if forced is None:
            break
        if not case.add(forced) or _empty(case.rows, budget):
            return True
    if not open_ones or budget[0] <= 0:
        return False
    choice, left_over = min(open_ones, key=lambda item: len(item[1]))
    for part in left_over:
        inner = case.copy()
        inner.choices.remove(choice)
        if inner.add(part) and not _refuted(inner, budget):
            return False
    return True


def _stands(case: _Case, part: Formula, budget: list[int]) -> bool:
    """Whether ``part`` is not seen to contradict the rows."""
    inner = _Case(dict(case.rows))
    return inner.add(part) and not _empty(inner.rows, budget)


def _empty(rows: Rows, budget: list[int]) -> bool:
    """Whether no integers satisfy ``rows``: symbols are eliminated one by one."""
    budget[0] -= 1
    rows = dict(rows)
    while rows:
        if len(rows) > MOST_ROWS or budget[0] <= 0:
            return False
        signs: dict[Monomial, list[int]] = {}
        for vector in rows:
            for monomial, factor in vector:
                signs.setdefault(monomial, [0, 0])[factor > 0] += 1
        symbol = min(signs, key=lambda name: (signs[name][0] * signs[name][1], name))
        kept, high, low = _by_sign(rows, symbol)
        for upper, a, x in high:
            for lower, b, y in low:
                if not _put(kept, _combined(upper, b, lower, a), b * x + a * y):
                    return True
        rows = kept
    return False


Bound = tuple[Vector, int, int]


def _by_sign(rows: Rows, symbol: Monomial) -> tuple[Rows, list[Bound], list[Bound]]:
    """Rows without ``symbol``, and those that bound it from above and from below, with its factor."""
    kept: Rows = {}
    high: list[Bound] = []
    low: list[Bound] = []
    for vector, constant in rows.items():
        factor = dict(vector).get(symbol, 0)
        if factor == 0:
            kept[vector] = constant
        else:
            (low if factor > 0 else high).append((vector, abs(factor), constant))
    return kept, high, low


def _combined(one: Vector, x: int, other: Vector, y: int) -> Vector:
    """``x * one + y * other``."""
    total: dict[Monomial, int] = {monomial: factor * x for monomial, factor in one}
    for monomial, factor in other:
        total[monomial] = total.get(monomial, 0) + factor * y
    return tuple(sorted((monomial, factor) for monomial, factor in total.items() if factor))
