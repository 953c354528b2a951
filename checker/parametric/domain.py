"""The domain of a parametric proof: which parameters are symbols, between what, and what is assumed of them.

An assumption is a comparison of expressions over parameters (``tile_cnt <= 16``, ``blocks >= 2 * ranks``),
several of them joined by ``and`` or ``or``, or the phrase ``X power of 2``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...protocol.errors import ParameterError
from ...protocol.evaluate import Value
from ...protocol.expr import Expr
from ...protocol.parameters import check_values
from ...protocol.program import Parameter, Protocol, Span
from .atoms import Atoms
from .formula import Compare, Formula, at_least, both, differ, either, equal, less
from .polynomial import Bounds, Poly, never_negative, number, symbol
from .sites import LAUNCHES
from .translate import Translator

LOWEST: Mapping[str, int] = {"ranks": 1, "blocks": 1, "buffer_size": 1, LAUNCHES: 1}

MOST_TEXT = 2000
"""Characters of an assumption: more could take any time to read."""

_POWER = re.compile(r"\s*(\w+)\s+(?:is\s+a\s+)?power\s+of\s+(?:2|two)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assumption:
    """One ``--assume``: its text, the condition, and the parameter that it calls a power of two."""

    text: str
    condition: Formula
    power: str | None = None

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether numbers satisfy it."""
        if self.power is not None:
            value = values[self.power]
            return value > 0 and value & (value - 1) == 0
        return satisfied(self.condition, values)


@dataclass(frozen=True, slots=True)
class Domain:
    """``free``: parameters that are symbols, each with its least and, perhaps, greatest value.

    ``names`` gives every parameter its polynomial: a symbol, a number, or what its default computes.
    """

    free: Mapping[str, tuple[int, int | None]]
    names: Mapping[str, Poly]
    assumptions: tuple[Assumption, ...]
    fixed: Mapping[str, Value]

    @property
    def power_names(self) -> frozenset[str]:
        """The parameters assumed to be powers of two."""
        return frozenset(a.power for a in self.assumptions if a.power is not None)

    @property
    def powers(self) -> frozenset[Poly]:
        """The same as polynomials."""
        return frozenset(map(symbol, self.power_names))

    def conditions(self) -> list[Formula]:
        """What every value of the domain satisfies."""
        found: list[Formula] = []
        for name, (low, high) in self.free.items():
            found.append(at_least(symbol(name), low))
            if high is not None:
                found.append(at_least(high, symbol(name)))
        return found + [a.condition for a in self.assumptions]

    def bounds(self) -> dict[str, Bounds]:
        """The same for `never_negative`: least values only, and what single assumptions add."""
        return {name: Bounds(number(low)) for name, (low, _) in self.free.items()}

    def contains(self, values: Mapping[str, int]) -> bool:
        """Whether numbers for the free parameters lie in the domain."""
        inside = all(
            low <= values[name] and (high is None or values[name] <= high)
            for name, (low, high) in self.free.items()
        )
        return inside and all(assumption.holds(values) for assumption in self.assumptions)


def satisfied(formula: Formula, values: Mapping[str, int]) -> bool:
    """Whether numbers satisfy a condition on parameters. Raises KeyError for a symbol without a value."""
    from .formula import And, Compare, Or

    match formula:
        case Compare(poly=poly, op=op):
            value = poly.evaluate(values)
            return {">=": value >= 0, "==": value == 0, "!=": value != 0}[op]
        case And(parts=parts):
            return all(satisfied(part, values) for part in parts)
        case Or(parts=parts):
            return any(satisfied(part, values) for part in parts)
    raise KeyError(str(formula))


def domain_of(
    protocol: Protocol,
    free: Sequence[str],
    values: Mapping[str, Value],
    assume: Sequence[str] = (),
    launches: int = 1,
    atoms: Atoms | None = None,
) -> Domain:
    """The domain in which ``free`` are symbols and all other parameters have ``values`` or defaults.

    ``blocks`` is a symbol of its own, at least ``ranks``... only where it is named free; else it follows
    ``ranks``. Raises ParameterError for unknown names, parameters without a value, and assumptions that
    cannot be read or are impossible.
    """
    for name in free:
        if name != LAUNCHES and protocol.parameter(name) is None:
            known = ", ".join([p.name for p in protocol.parameters] + [LAUNCHES])
            raise ParameterError("for-all", name, f"{protocol.name} has no such parameter (it has {known})")
        if name in values:
            raise ParameterError("for-all", name, f"is given the value {values[name]} as well")
    ranges: dict[str, tuple[int, int | None]] = {}
    names: dict[str, Poly] = {}
    for name in free:
        low, high = _range(name, protocol.parameter(name))
        ranges[name] = (low, high)
        names[name] = symbol(name)
    if LAUNCHES not in names:
        names[LAUNCHES] = number(launches)
    fixed = _complete(protocol, names, ranges, values, atoms or Atoms())
    assumptions = tuple(_read(text, names) for text in assume)
    return Domain(ranges, names, assumptions, fixed)


def _range(name: str, parameter: Parameter | None) -> tuple[int, int | None]:
    low = max(parameter.low if parameter else 1, LOWEST.get(name, 0))
    high = parameter.high if parameter else None
    return low, high


def _complete(
    protocol: Protocol,
    names: dict[str, Poly],
    ranges: Mapping[str, tuple[int, int | None]],
    values: Mapping[str, Value],
    atoms: Atoms,
) -> dict[str, Value]:
    """Give every other parameter its number, or what its default computes; returns what was given."""
    samples = {name: low for name, (low, _) in ranges.items() if name != LAUNCHES}
    check_values(protocol, {**values, **samples})  # names, types and domains of what is given
    waiting = [p for p in protocol.parameters if p.name not in names]
    while waiting:
        later = [p for p in waiting if not _given(p, names, ranges, values, atoms)]
        if len(later) == len(waiting):
            raise ParameterError(later[0].name, None, "no value given")
        waiting = later
    return dict(values)


def _given(
    parameter: Parameter, names: dict[str, Poly], ranges: Mapping[str, tuple[int, int | None]],
    values: Mapping[str, Value], atoms: Atoms,
) -> bool:  # fmt: skip
    name = parameter.name
    if name in values:
        value = values[name]
        if isinstance(value, tuple):
            raise ParameterError(name, ",".join(map(str, value)), "is an array, which --for-all cannot take")
        names[name] = number(value)
    elif isinstance(parameter.default, int):
        names[name] = number(parameter.default)
    elif isinstance(parameter.default, Expr):
        from ...protocol.expr import Var, variables

        used = {v.name for v in variables(parameter.default) if isinstance(v, Var)}
        if not used <= names.keys():
            return False
        nowhere = Span(f"<default of {name}>", 0)
        translator = Translator(names, atoms, frozenset(), nowhere)
        names[name] = translator.value(parameter.default)
        lows = {free: Bounds(number(low)) for free, (low, _) in ranges.items()}
        for demand in translator.demands:  # C would compute something else
            wanted = demand.wanted
            if not (isinstance(wanted, Compare) and wanted.op == ">=" and never_negative(wanted.poly, lows)):
                raise ParameterError(name, None, f"its default {demand.text} may wrap around: give a value")
    elif name == "blocks" and "ranks" in names:
        names[name] = names["ranks"]
    else:
        return False
    return True


# --- assumptions ------------------------------------------------------------------------------


def _read(text: str, names: Mapping[str, Poly]) -> Assumption:
    power = _POWER.fullmatch(text)
    if power is not None:
        name = power[1]
        value = names.get(name)
        if value is None:
            raise ParameterError("assume", repr(text), f"there is no parameter {name}")
        if value != symbol(name):
            raise ParameterError("assume", repr(text), f"{name} is no symbol here (name it in --for-all)")
        return Assumption(text, at_least(symbol(name), 1), name)
    if len(text) > MOST_TEXT:
        raise ParameterError("assume", repr(text[:40] + "..."), f"has more than {MOST_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return Assumption(text, _condition(tree, names, text))
    except (SyntaxError, RecursionError, MemoryError) as error:  # the latter two: nested too deeply
        raise ParameterError("assume", repr(text), "is no comparison like tile_cnt <= 16") from error


def _condition(node: ast.expr, names: Mapping[str, Poly], text: str) -> Formula:
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_condition(value, names, text) for value in values]
            return both(*parts) if isinstance(op, ast.And) else either(*parts)
        case ast.Compare(left=left, ops=ops, comparators=right):
            terms = [_terms(side, names, text) for side in (left, *right)]
            found = [
                _compared(type(op), a, b, text) for op, a, b in zip(ops, terms[:-1], terms[1:], strict=True)
            ]
            return both(*found)
    raise ParameterError("assume", repr(text), "is no comparison like tile_cnt <= 16")


_COMPARED: Mapping[type[ast.cmpop], Callable[[Poly, Poly], Formula]] = {
    ast.Lt: less,
    ast.LtE: lambda a, b: at_least(b, a),
    ast.Gt: lambda a, b: less(b, a),
    ast.GtE: at_least,
    ast.Eq: equal,
    ast.NotEq: differ,
}


def _compared(op: type[ast.cmpop], a: _Side, b: _Side, text: str) -> Formula:
    compare = _COMPARED.get(op)
    if compare is None:
        raise ParameterError("assume", repr(text), "has a comparison that is not one of < <= > >= == !=")
    if op in (ast.Eq, ast.NotEq) and len(a.values) * len(b.values) > 1:
        raise ParameterError("assume", repr(text), "compares min or max by == (give both bounds)")
    smaller = op in (ast.Lt, ast.LtE)
    # x <= min(a, b) is both; x <= max(a, b) is either; and the other way round on the left
    rows = [
        _joined([compare(x, y) for y in b.values], all_of=(b.least == smaller) or len(b.values) == 1)
        for x in a.values
    ]
    return _joined(rows, all_of=(a.least != smaller) or len(a.values) == 1)


def _joined(parts: Iterable[Formula], *, all_of: bool) -> Formula:
    return both(*parts) if all_of else either(*parts)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: a number, or the least or greatest of several."""

    values: tuple[Poly, ...]
    least: bool = True


def _terms(node: ast.expr, names: Mapping[str, Poly], text: str) -> _Side:
    match node:
        case ast.Call(func=ast.Name(id="min" | "max" as which), args=args) if len(args) > 1:
            return _Side(tuple(_poly(arg, names, text) for arg in args), which == "min")
    return _Side((_poly(node, names, text),))


def _poly(node: ast.expr, names: Mapping[str, Poly], text: str) -> Poly:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(node.value, bool):
            return number(value)
        case ast.Name(id=name):
            if name not in names:
                raise ParameterError("assume", repr(text), f"there is no parameter {name}")
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_poly(operand, names, text)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            a, b = _poly(left, names, text), _poly(right, names, text)
            return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
    raise ParameterError("assume", repr(text), "may use numbers, parameters, + - *, min and max")
