"""Polynomials with integer coefficients over named symbols, and a way to see that one is never negative.

What sizes, offsets and indices are made of when ranks, tiles and depth are no numbers. Used by all of
`parametric`, and by `audit`, so nothing here needs Z3. Read `formula` next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

Monomial = tuple[str, ...]
"""Symbols in alphabetical order, each as often as it is a factor; () is the constant 1."""


@dataclass(frozen=True)
class Poly:
    """A sum of monomials; ``terms`` in a fixed order, without zero coefficients: equal ones are equal."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @cached_property
    def as_dict(self) -> dict[Monomial, int]:
        """The coefficient of every monomial."""
        return dict(self.terms)

    @property
    def constant(self) -> int | None:
        """The number that it is, or None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def symbols(self) -> frozenset[str]:
        """Every symbol that it mentions."""
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    def __add__(self, other: Poly | int) -> Poly:
        return _summed([(self, 1), (as_poly(other), 1)])

    def __sub__(self, other: Poly | int) -> Poly:
        return _summed([(self, 1), (as_poly(other), -1)])

    def __rsub__(self, other: int) -> Poly:
        return as_poly(other) - self

    def __neg__(self) -> Poly:
        return Poly(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __mul__(self, other: Poly | int) -> Poly:
        found: dict[Monomial, int] = {}
        for (a, x), (b, y) in itertools.product(self.terms, as_poly(other).terms):
            monomial = tuple(sorted(a + b))
            found[monomial] = found.get(monomial, 0) + x * y
        return _made(found)

    __radd__ = __add__
    __rmul__ = __mul__

    def substitute(self, values: Mapping[str, Poly]) -> Poly:
        """It with polynomials in place of some symbols."""
        if not self.symbols & values.keys():
            return self
        result = Poly()
        for monomial, factor in self.terms:
            product = number(factor)
            for name in monomial:
                product = product * values.get(name, symbol(name))
            result = result + product
        return result

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Its value. Raises KeyError for a symbol without one."""
        total = 0
        for monomial, factor in self.terms:
            for name in monomial:
                factor *= values[name]
            total += factor
        return total

    def split(self, stride: Monomial, factor: int = 1) -> tuple[Poly, Poly]:
        """Quotient and remainder by one term: ``self == quotient * factor * stride + remainder``."""
        quotient: dict[Monomial, int] = {}
        remainder: dict[Monomial, int] = {}
        for monomial, own in self.terms:
            rest = _without(monomial, stride)
            if rest is None or own % factor:
                remainder[monomial] = own
            else:
                quotient[rest] = quotient.get(rest, 0) + own // factor
        return _made(quotient), _made(remainder)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        rising = sorted(self.terms, key=lambda term: (term[1] < 0, -len(term[0]), term[0]))
        text = " + ".join(_term_text(monomial, factor) for monomial, factor in rising)
        return text.replace("+ -", "- ")


def number(value: int) -> Poly:
    """The constant ``value``."""
    return Poly((((), value),)) if value else Poly()


def symbol(name: str) -> Poly:
    """The symbol ``name``."""
    return Poly((((name,), 1),))


def as_poly(value: Poly | int) -> Poly:
    """``value`` as a polynomial."""
    return value if isinstance(value, Poly) else number(value)


def _made(terms: Mapping[Monomial, int]) -> Poly:
    return Poly(tuple(sorted((monomial, factor) for monomial, factor in terms.items() if factor)))


def _summed(parts: Iterable[tuple[Poly, int]]) -> Poly:
    found: dict[Monomial, int] = {}
    for poly, sign in parts:
        for monomial, factor in poly.terms:
            found[monomial] = found.get(monomial, 0) + sign * factor
    return _made(found)


def _without(monomial: Monomial, stride: Monomial) -> Monomial | None:
    rest = list(monomial)
    for name in stride:
        if name not in rest:
            return None
        rest.remove(name)
    return tuple(rest)


def _term_text(monomial: Monomial, factor: int) -> str:
    names = " * ".join(monomial)
    if not names:
        return str(factor)
    return {1: names, -1: f"-{names}"}.get(factor, f"{factor} * {names}")


# --- never negative ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a symbol lies between; ``low`` and ``highs`` speak of symbols that are bounded themselves."""

    low: Poly
    highs: tuple[Poly, ...] = ()


MOST_TRIES = 4096


def never_negative(poly: Poly, bounds: Mapping[str, Bounds]) -> bool:
    """Whether ``poly`` is >= 0 for all values within ``bounds``; False: not seen to be.

    Every symbol x is written as low + x' or high - x' with x' >= 0, innermost first; if no negative
    coefficient is left, nothing can make the sum negative. All choices of sides are tried.
    """
    return any(_all_positive(result) for result in _shifted(poly, bounds, [MOST_TRIES]))


def _all_positive(poly: Poly) -> bool:
    return all(factor >= 0 for _, factor in poly.terms)


def _shifted(poly: Poly, bounds: Mapping[str, Bounds], budget: list[int]) -> Iterator[Poly]:
    if _all_positive(poly):
        # what is left are symbols with low >= 0 at the least: checked below one by one
        names = [name for name in poly.symbols if not name.endswith("'")]
        if not names:
            yield poly
            return
    name = _innermost(poly, bounds)
    if name is None or budget[0] <= 0:
        return
    budget[0] -= 1
    fresh = symbol(name + "'")
    known = bounds[name]
    for value in (known.low + fresh, *(high - fresh for high in known.highs)):
        yield from _shifted(poly.substitute({name: value}), bounds, budget)


def _innermost(poly: Poly, bounds: Mapping[str, Bounds]) -> str | None:
    """A symbol of ``poly`` that no other symbol's bounds speak of, of those still to be replaced.

    None where one of them has no bounds.
    """
    names = sorted(name for name in poly.symbols if not name.endswith("'"))
    if any(name not in bounds for name in names):
        return None
    reach = {name: _reach(name, bounds) for name in names}
    return next((n for n in names if not any(n in reach[m] for m in names if m != n)), None)


def _reach(name: str, bounds: Mapping[str, Bounds]) -> frozenset[str]:
    """Symbols that the bounds of ``name`` speak of, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        known = bounds.get(waiting.pop())
        for poly in (known.low, *known.highs) if known else ():
            new = poly.symbols - found
            found |= new
            waiting += new
    return frozenset(found - {name})
