"""Which conversions may change a value: those are printed as casts, the others are left out.

Used by `lowering` and `operators` for the text of a program only: what is computed is the same. The
bounds are of the plain kind, from types, indices and constants.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..cinteger import CType
from ..expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, VarKind

Bounds = tuple[int, int]
INDICES = 2**31 - 1
"""Ranks, blocks and the like are below it."""


def may_change(ctype: CType, expr: Expr, starts: Mapping[str, int]) -> bool:
    """Whether converting ``expr`` to ``ctype`` may change it; ``starts`` has the first value of indices."""
    low, high = bounds(expr, starts)
    return not ctype.low <= low <= high <= ctype.high


def bounds(expr: Expr, starts: Mapping[str, int]) -> Bounds:
    """Values between which ``expr`` lies."""
    found = _bounds(expr, starts)
    ctype = expr.type
    fitting = found is not None and ctype.low <= found[0] <= found[1] <= ctype.high
    return found if found is not None and fitting else (ctype.low, ctype.high)


def _bounds(expr: Expr, starts: Mapping[str, int]) -> Bounds | None:
    match expr:
        case Const(value=value):
            return value, value
        case Var(kind=VarKind.IDENTITY):
            return 0, INDICES
        case Var(kind=VarKind.LOOP, name=name) if name in starts:
            return starts[name], expr.type.high
        case Cast(operand=operand):
            low, high = bounds(operand, starts)
            if low >= 0 and operand.type.bits == expr.type.bits:
                return low, min(high, expr.type.high)  # a count that is kept in an int
            return low, high
        case Unary(op="-", operand=operand):
            low, high = bounds(operand, starts)
            return -high, -low
        case Binary(op=op, left=left, right=right):
            return _of_binary(op, bounds(left, starts), bounds(right, starts))
        case Select(then=then, other=other):
            return _hull(bounds(then, starts), bounds(other, starts))
        case Call(function="min" | "max" as function, arguments=arguments):
            lows, highs = zip(*(bounds(a, starts) for a in arguments), strict=True)
            return (min(lows), min(highs)) if function == "min" else (max(lows), max(highs))
    return None


def _hull(a: Bounds, b: Bounds) -> Bounds:
    return min(a[0], b[0]), max(a[1], b[1])


def _of_binary(op: str, a: Bounds, b: Bounds) -> Bounds | None:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "&" if a[0] >= 0 or b[0] >= 0:
            return 0, min(high for low, high in (a, b) if low >= 0)
        case "/" | ">>" if a[0] >= 0 and b[0] >= 0:
            return 0, a[1]
        case "%" if a[0] >= 0 and b[0] > 0:
            return 0, min(a[1], b[1] - 1)
    return None
