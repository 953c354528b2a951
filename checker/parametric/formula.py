"""Conditions on symbols: comparisons of polynomials with 0, and their combinations.

Guards, loop bounds and assumptions become these; `solve` gives them to Z3, `audit` reads them without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .polynomial import Poly, as_poly, symbol


@dataclass(frozen=True, slots=True)
class Compare:
    """``poly`` compared with 0 by ``op``: one of >=, ==, !=."""

    poly: Poly
    op: str

    def __str__(self) -> str:
        return f"{self.poly} {self.op} 0"


@dataclass(frozen=True, slots=True)
class And:
    """All of ``parts``; of none: true."""

    parts: tuple[Formula, ...] = ()

    def __str__(self) -> str:
        return " && ".join(map(_grouped, self.parts)) or "true"


@dataclass(frozen=True, slots=True)
class Or:
    """Any of ``parts``; of none: false."""

    parts: tuple[Formula, ...] = ()

    def __str__(self) -> str:
        return " || ".join(map(_grouped, self.parts)) or "false"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition that nothing is known of, by name; equal names are equal conditions."""

    name: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' * self.negated}({self.name})"


Formula = Compare | And | Or | Opaque

TRUE = And()
FALSE = Or()


def _grouped(part: Formula) -> str:
    return f"({part})" if isinstance(part, And | Or) else str(part)


def at_least(left: Poly | int, right: Poly | int) -> Formula:
    """``left >= right``."""
    return _decided(Compare(as_poly(left) - as_poly(right), ">="))


def less(left: Poly | int, right: Poly | int) -> Formula:
    """``left < right``."""
    return at_least(as_poly(right) - 1, left)


def equal(left: Poly | int, right: Poly | int) -> Formula:
    """``left == right``."""
    return _decided(Compare(as_poly(left) - as_poly(right), "=="))


def differ(left: Poly | int, right: Poly | int) -> Formula:
    """``left != right``."""
    return _decided(Compare(as_poly(left) - as_poly(right), "!="))


def _decided(compare: Compare) -> Formula:
    value = compare.poly.constant
    if value is None:
        return compare
    return TRUE if {">=": value >= 0, "==": value == 0, "!=": value != 0}[compare.op] else FALSE


def both(*parts: Formula) -> Formula:
    """All of ``parts``."""
    return conjunction(parts)


def either(*parts: Formula) -> Formula:
    """Any of ``parts``."""
    kept: list[Formula] = []
    for part in parts:
        if part == TRUE:
            return TRUE
        kept += part.parts if isinstance(part, Or) else [part]
    found = tuple(dict.fromkeys(kept))
    return found[0] if len(found) == 1 else Or(found)


def conjunction(parts: Iterable[Formula]) -> Formula:
    """All of ``parts``."""
    kept: list[Formula] = []
    for part in parts:
        if part == FALSE:
            return FALSE
        kept += part.parts if isinstance(part, And) else [part]
    found = tuple(dict.fromkeys(kept))
    return found[0] if len(found) == 1 else And(found)


def negation(formula: Formula) -> Formula:
    """Not ``formula``."""
    match formula:
        case Compare(poly=poly, op=">="):
            return at_least(-poly, 1)
        case Compare(poly=poly, op=op):
            return Compare(poly, "!=" if op == "==" else "==")
        case And(parts=parts):
            return either(*(negation(part) for part in parts))
        case Or(parts=parts):
            return conjunction(negation(part) for part in parts)
        case Opaque(name=name, negated=negated):
            return Opaque(name, not negated)


def substitute(formula: Formula, values: Mapping[str, Poly]) -> Formula:
    """``formula`` with polynomials in place of some symbols."""
    match formula:
        case Compare(poly=poly, op=op):
            return _decided(Compare(poly.substitute(values), op))
        case And(parts=parts):
            return conjunction(substitute(part, values) for part in parts)
        case Or(parts=parts):
            return either(*(substitute(part, values) for part in parts))
        case Opaque():
            return formula


def comparisons(formula: Formula) -> Iterable[Compare]:
    """Every comparison in ``formula``."""
    match formula:
        case Compare():
            yield formula
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from comparisons(part)


def solved(formula: Formula, only: Collection[str] | None = None) -> dict[str, Poly]:
    """What single symbols are equal to where ``formula`` holds, as far as it says so outright.

    ``only``: of which symbols; any unless given.
    """
    found: dict[str, Poly] = {}
    for part in formula.parts if isinstance(formula, And) else (formula,):
        if not isinstance(part, Compare) or part.op != "==":
            continue
        poly = part.poly.substitute(found)
        for monomial, factor in poly.terms:
            if len(monomial) == 1 and factor in (1, -1):
                (name,) = monomial
                rest = Poly((((name,), factor),)) - poly
                value = rest if factor == 1 else -rest
                if name not in value.symbols and (only is None or name in only):
                    found = {n: v.substitute({name: value}) for n, v in found.items()} | {name: value}
                    break
    return found


def upper_bounds(formula: Formula) -> Iterator[tuple[str, Poly]]:
    """Upper bounds of single symbols that ``formula`` states outright."""
    for part in formula.parts if isinstance(formula, And) else (formula,):
        if isinstance(part, Compare) and part.op == ">=":
            for monomial, factor in part.poly.terms:
                if len(monomial) == 1 and factor == -1:
                    (name,) = monomial
                    rest = part.poly + symbol(name)
                    if name not in rest.symbols:
                        yield name, rest


def lower_bounds(formula: Formula, name: str) -> Iterator[Poly]:
    """Lower bounds of the symbol ``name`` that ``formula`` states outright."""
    for part in formula.parts if isinstance(formula, And) else (formula,):
        if isinstance(part, Compare) and part.op == ">=" and part.poly.as_dict.get((name,)) == 1:
            rest = symbol(name) - part.poly
            if name not in rest.symbols:
                yield rest
