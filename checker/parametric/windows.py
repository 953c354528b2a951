"""Byte windows with symbolic offsets: when two of them can share a byte.

Offsets are sums of an index times a stride. If every index but one fits below a stride, two windows that
share a byte have that index in common: their offsets are numbers in a mixed radix, and digits are compared.
What cannot be told apart is taken to overlap, so that more is asked, never less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .formula import FALSE, TRUE, Formula, both, equal
from .polynomial import Bounds, Monomial, Poly, never_negative


@dataclass(frozen=True, slots=True)
class Extent:
    """``bytes`` bytes from ``offset``."""

    offset: Poly
    bytes: Poly

    @property
    def stop(self) -> Poly:
        """The first byte behind it."""
        return self.offset + self.bytes


Stride = tuple[Monomial, int]


def overlap(a: Extent, b: Extent, bounds: Mapping[str, Bounds]) -> Formula:
    """A condition without which ``a`` and ``b`` share no byte: true where nothing is known."""
    if _apart(a, b, bounds):
        return FALSE
    common = Poly(tuple(sorted(set(a.offset.terms) & set(b.offset.terms))))
    return _digits(
        Extent(a.offset - common, a.bytes), Extent(b.offset - common, b.bytes), bounds, frozenset()
    )


def fills(
    extent: Extent, turns: Sequence[tuple[Poly, Poly]], whole: Poly, bounds: Mapping[str, Bounds]
) -> bool:
    """Whether the windows of all turns are ``whole`` bytes from 0, none of them twice.

    ``turns``: of every loop around them, outermost first, the symbol of a turn and how many there are. The
    offset has to be a number in mixed radix, whose digits are the turns.
    """
    names = {name for turn, _ in turns for name in turn.symbols}
    offset, stride = Poly(), extent.bytes
    for turn, count in reversed(turns):
        # the product of two negative counts is no number of turns
        if count.symbols & names or not (len(turns) == 1 or never_negative(count, bounds)):
            return False
        offset, stride = offset + turn * stride, stride * count
    return extent.offset == offset and whole == stride


def _apart(a: Extent, b: Extent, bounds: Mapping[str, Bounds]) -> bool:
    return never_negative(b.offset - a.stop, bounds) or never_negative(a.offset - b.stop, bounds)


def _digits(a: Extent, b: Extent, bounds: Mapping[str, Bounds], done: frozenset[Stride]) -> Formula:
    for stride in _strides(a, b, done):
        (high, low), (other, rest) = a.offset.split(*stride), b.offset.split(*stride)
        inner, inside = Extent(low, a.bytes), Extent(rest, b.bytes)
        if _fits(inner, stride, bounds) and _fits(inside, stride, bounds):
            digit = equal(high, other)
            if digit == FALSE:
                return FALSE
            return both(digit, _digits(inner, inside, bounds, done | {stride}))
    return FALSE if _apart(a, b, bounds) else TRUE


def _strides(a: Extent, b: Extent, done: frozenset[Stride]) -> list[Stride]:
    """Candidates: a term of an offset or size, whole or without one of its factors, longest first."""
    found: dict[Stride, None] = {}
    for extent in (a, b):
        for monomial, factor in (*extent.offset.terms, *extent.bytes.terms):
            found[monomial, abs(factor)] = None
            for place in range(len(monomial)):
                found[monomial[:place] + monomial[place + 1 :], abs(factor)] = None
    return sorted((s for s in found if s not in done), key=lambda s: (-len(s[0]), -s[1], s[0]))


def _fits(extent: Extent, stride: Stride, bounds: Mapping[str, Bounds]) -> bool:
    """Whether the window lies between 0 and the stride."""
    size = Poly((stride,))
    return never_negative(extent.offset, bounds) and never_negative(size - extent.stop, bounds)
