"""Atoms: symbols that stand for what is no polynomial, with what is known of them.

``x % B`` becomes a symbol with the lemma of the ring: two indices with equal remainders are equal or at
least B apart. What is known is stated as conditions; whoever forgets an atom proves less, never more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .formula import Formula, at_least, both, differ, either, equal, less, negation
from .polynomial import Bounds, Poly, number, symbol


@dataclass(frozen=True, slots=True)
class Ring:
    """``value % modulus`` for a value that is not negative."""

    value: Poly
    modulus: Poly

    def facts(self, name: str) -> Iterator[Formula]:
        """Between 0 and the modulus, and the value itself below it."""
        atom = symbol(name)
        usual = both(
            at_least(atom, 0),
            less(atom, self.modulus),
            at_least(self.value, atom),
            either(at_least(self.value, self.modulus), equal(atom, self.value)),
        )
        yield either(less(self.value, 0), less(self.modulus, 1), usual)
        if self.modulus.constant is not None:
            turns = symbol(name + " turns")
            yield either(less(self.value, 0), equal(self.value, turns * self.modulus + atom))


@dataclass(frozen=True, slots=True)
class Quotient:
    """``value / divisor`` for a value that is not negative and a positive divisor."""

    value: Poly
    divisor: Poly

    def facts(self, name: str) -> Iterator[Formula]:
        """Exact where the divisor is a number."""
        atom = symbol(name)
        if (self.divisor.constant or 0) > 0:
            rest = self.value - atom * self.divisor
            yield either(less(self.value, 0), both(at_least(rest, 0), less(rest, self.divisor)))
        usual = both(at_least(atom, 0), at_least(self.value, atom))
        yield either(less(self.value, 0), less(self.divisor, 1), usual)


@dataclass(frozen=True, slots=True)
class CeilQuotient:
    """``ceil_div(value, divisor)`` for a value that is not negative and a positive divisor."""

    value: Poly
    divisor: Poly

    def facts(self, name: str) -> Iterator[Formula]:
        """Exact where the divisor is a number; positive for a positive value."""
        atom = symbol(name)
        if (self.divisor.constant or 0) > 0:
            rest = atom * self.divisor - self.value
            yield either(less(self.value, 0), both(at_least(rest, 0), less(rest, self.divisor)))
        usual = both(
            at_least(atom, 0), at_least(self.value, atom), either(less(self.value, 1), at_least(atom, 1))
        )
        yield either(less(self.value, 0), less(self.divisor, 1), usual)


@dataclass(frozen=True, slots=True)
class Chosen:
    """``then`` where ``condition`` holds, else ``other``: also what min and max become."""

    condition: Formula
    then: Poly
    other: Poly

    def facts(self, name: str) -> Iterator[Formula]:
        """Its definition."""
        atom = symbol(name)
        yield either(negation(self.condition), equal(atom, self.then))
        yield either(self.condition, equal(atom, self.other))


@dataclass(frozen=True, slots=True)
class Unknown:
    """A number of which nothing is known but, perhaps, that it is not negative and not above ``high``."""

    natural: bool
    high: Poly | None = None

    def facts(self, name: str) -> Iterator[Formula]:
        """Its bounds."""
        if self.natural:
            yield at_least(symbol(name), 0)
        if self.high is not None:
            yield at_least(self.high, symbol(name))


Atom = Ring | Quotient | CeilQuotient | Chosen | Unknown


@dataclass(slots=True)
class Atoms:
    """The atoms that a question mentions, by name; equal ones have one name."""

    known: dict[str, Atom] = field(default_factory=dict)

    def ring(self, value: Poly, modulus: Poly) -> Poly:
        """``value % modulus``."""
        if value.constant is not None and (modulus.constant or 0) > 0 and value.constant >= 0:
            return number(value.constant % (modulus.constant or 1))
        return self.named(f"({value}) % ({modulus})", Ring(value, modulus))

    def named(self, name: str, atom: Atom) -> Poly:
        """``atom`` as a symbol."""
        self.known.setdefault(name, atom)
        return symbol(name)

    def facts(self) -> Iterator[Formula]:
        """What is known of all of them."""
        for name, atom in self.known.items():
            yield from atom.facts(name)
        rings = [(name, atom) for name, atom in self.known.items() if isinstance(atom, Ring)]
        for place, (a, first) in enumerate(rings):
            for b, second in rings[place + 1 :]:
                if first.modulus == second.modulus:
                    yield from ring_lemma(a, first, b, second)

    def bounds(self) -> dict[str, Bounds]:
        """What each lies between, for `never_negative`; only what holds without conditions."""
        found: dict[str, Bounds] = {}
        for name, atom in self.known.items():
            match atom:
                case Ring(modulus=modulus):
                    found[name] = Bounds(number(0), (modulus - 1,))
                case Unknown(natural=True, high=high):
                    found[name] = Bounds(number(0), () if high is None else (high,))
                case CeilQuotient() | Quotient():
                    found[name] = Bounds(number(0))
        return found


def ring_lemma(a: str, first: Ring, b: str, second: Ring) -> Iterator[Formula]:
    """Equal remainders: equal values, or values at least a turn apart; a whole turn apart: equal ones."""
    x, y, turn = first.value, second.value, first.modulus
    outside = (less(x, 0), less(y, 0), less(turn, 1))
    same = equal(symbol(a), symbol(b))
    yield either(
        *outside, differ(symbol(a), symbol(b)), equal(x, y), at_least(y, x + turn), at_least(x, y + turn)
    )
    for distance in (number(0), turn, -turn):
        yield either(*outside, differ(y, x + distance), same)
