"""Recurrences: what a local variable is in turn number t of a loop that changes it in every turn.

Running offsets (``x += c``), wrapping counters (``(x + c) % n``, ``& (n - 1)``, ``x + 1 == n ? 0 : x + 1``),
toggles (``1 - x``, ``x ^ 1``, ``!x``) and everything else that goes round in a few states, and values that do
not depend on earlier turns. Used by `closed_forms`; what has none of these forms is None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from .cinteger import CType
from .evaluate import evaluate
from .expr import (
    Binary,
    Call,
    Cast,
    Const,
    Element,
    Expr,
    Select,
    Unary,
    Var,
    VarKind,
    binary,
    cast,
    select,
    variables,
)

TURN = Var("turn'", CType.I64, VarKind.LOCAL)
"""The number of turns before, from 0; what `closed` returns is an expression of it."""

MOST_STATES = 16
"""Of a variable that goes round in states that are all known."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Parameters by what is known of them; ``powers`` are assumed to be powers of two."""

    natural: frozenset[str]
    positive: frozenset[str]
    powers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A turn makes ``variable`` be ``after``; it is ``before`` at first.

    ``volatile``: names whose values differ from turn to turn. ``previous`` gives an expression of this turn
    as it was in the turn before number TURN.
    """

    variable: Var
    before: Expr
    after: Expr
    volatile: frozenset[str]
    previous: Callable[[Expr], Expr]
    facts: Facts

    def varies(self, expr: Expr) -> bool:
        """Whether ``expr`` may differ from turn to turn."""
        return bool(_names(expr) & (self.volatile | {self.variable.name}))


def closed(change: Change) -> Expr | None:
    """What the variable is at the beginning of turn number `TURN`, in its own type; None: not known."""
    if change.after == change.variable:
        return change.before
    for form in (_last, _sum, _remainder, _masked, _states, _reset, _either):
        found = form(change)
        if found is not None:
            return cast(change.variable.type, found)
    return None


def _names(expr: Expr) -> set[str]:
    return {v.array if isinstance(v, Element) else v.name for v in variables(expr)}


def _at_first(change: Change, later: Expr) -> Expr:
    """``later``, but in the first turn what it was before."""
    return select(TURN.eq(0), change.before, cast(change.variable.type, later))


def _last(change: Change) -> Expr | None:
    """It does not depend on what it was."""
    if change.variable.name in _names(change.after):
        return None
    return _at_first(change, change.previous(change.after))


def _sum(change: Change) -> Expr | None:
    """``x + c``: exact in any type, since C keeps the low bits of sums and products."""
    step = _step(change, change.after)
    return None if step is None else cast(CType.I64, change.before) + step * TURN


def _step(change: Change, expr: Expr) -> Expr | None:
    """The c of ``x + c``, as a 64-bit number; None where ``expr`` is no such sum."""
    if expr == change.variable:
        return Const(0)
    if expr.type is CType.BOOL or expr.type.bits < change.variable.type.bits:
        return None  # bits of the variable are lost on the way
    match expr:
        case Cast(operand=operand):
            return _step(change, operand)
        case Binary(op="+", left=left, right=right) if not change.varies(right):
            inner = _step(change, left)
            return None if inner is None else inner + cast(CType.I64, right)
        case Binary(op="+", left=left, right=right) if not change.varies(left):
            inner = _step(change, right)
            return None if inner is None else inner + cast(CType.I64, left)
        case Binary(op="-", left=left, right=right) if not change.varies(right):
            inner = _step(change, left)
            return None if inner is None else inner - cast(CType.I64, right)
    return None


def _bare(expr: Expr, ctype: CType) -> Expr:
    """``expr`` without conversions that keep all bits of ``ctype``."""
    while isinstance(expr, Cast) and expr.type is not CType.BOOL and expr.type.bits >= ctype.bits:
        expr = expr.operand
    return expr


def _remainder(change: Change) -> Expr | None:
    """``(x + c) % n``, none of them negative."""
    match _bare(change.after, change.variable.type):
        case Binary(op="%", left=left, right=size) if not change.varies(size):
            step = _natural_step(change, left)
            if step is None or not _is_natural(size, change.facts):
                return None
            return _round(change, (cast(CType.I64, change.before) + step * TURN) % cast(CType.I64, size))
    return None


def _masked(change: Change) -> Expr | None:
    """``(x + c) & (n - 1)`` for a power of two n, which is a remainder."""
    match _bare(change.after, change.variable.type):
        case Binary(op="&", left=left, right=right):
            for value, mask in ((left, right), (right, left)):
                step = _natural_step(change, value)
                if step is not None and _is_mask(mask, change.facts):
                    total = cast(CType.I64, change.before) + step * TURN
                    return _round(change, total & cast(CType.I64, mask))
    return None


def _natural_step(change: Change, expr: Expr) -> Expr | None:
    step = _step(change, expr)
    if step is None or not _is_natural(step, change.facts):
        return None
    return step if _is_natural(change.before, change.facts) else None


def _round(change: Change, whole: Expr) -> Expr:
    """``whole``, which may only be larger at first: nothing has cut it down yet."""
    return whole if change.before == Const(0, change.variable.type) else _at_first(change, whole)


def _is_mask(mask: Expr, facts: Facts) -> bool:
    match mask:
        case Const(value=value):
            return value >= 0 and value & (value + 1) == 0
        case Cast(operand=operand, type=ctype) if ctype.bits >= operand.type.bits:
            return _is_mask(operand, facts)
        case Binary(op="-", left=left, right=Const(value=1)):
            size = _bare(left, left.type)
            return isinstance(size, Var) and size.kind is VarKind.PARAMETER and size.name in facts.powers
    return False


def _states(change: Change) -> Expr | None:
    """It depends on nothing but what it was, is known at first, and comes back to that."""
    if not isinstance(change.before, Const) or _names(change.after) != {change.variable.name}:
        return None
    states = [change.before.value]
    while len(states) <= MOST_STATES:
        try:
            following = evaluate(change.after, {change.variable.name: states[-1]})
        except (ArithmeticError, ValueError, TypeError, KeyError):
            return None
        if following == states[0]:
            return _listed(states)
        states.append(following)
    return None


def _listed(states: list[int]) -> Expr:
    """The state in turn number TURN, round and round."""
    turn = TURN % len(states)
    steps = {b - a for a, b in pairwise(states)}
    if len(steps) < 2:
        return Const(states[0]) + turn * (steps.pop() if steps else 0)
    found: Expr = Const(states[-1])
    for place in range(len(states) - 2, -1, -1):
        found = select(turn.eq(place), states[place], found)
    return found


def _reset(change: Change) -> Expr | None:
    """``x + 1 == n ? 0 : x + 1`` from 0, and the same with other comparisons."""
    if change.before != Const(0, change.variable.type):
        return None
    match _bare(change.after, change.variable.type):
        case Select(condition=Binary(op=op, left=left, right=right), then=then, other=other) if op in _RESETS:
            zero, counted = (then, other) if _RESETS[op] else (other, then)
            ahead = _step(change, left)
            if ahead not in (Const(0), Const(1)) or change.varies(right):
                return None
            goes_back = _bare(zero, change.variable.type)
            if not isinstance(goes_back, Const) or goes_back.value or _step(change, counted) != Const(1):
                return None
            size = right if ahead == Const(1) else _one_more(right)
            return TURN % cast(CType.I64, size) if _is_positive(size, change.facts) else None
    return None


_RESETS = {"==": True, ">=": True, "!=": False, "<": False}
"""Comparisons of a counter with its end, and whether the counter goes back to 0 where they hold."""


def _one_more(expr: Expr) -> Expr:
    match expr:
        case Binary(op="-", left=left, right=Const(value=1)):
            return left
    return binary("+", expr, Const(1, expr.type))


def _either(change: Change) -> Expr | None:
    """A choice that is the same in every turn."""
    match change.after:
        case Select(condition=condition, then=then, other=other) if not change.varies(condition):
            sides = [closed(replace(change, after=side)) for side in (then, other)]
            if sides[0] is not None and sides[1] is not None:
                return select(condition, sides[0], sides[1])
    return None


# --- signs ------------------------------------------------------------------------------------


def _is_natural(expr: Expr, facts: Facts) -> bool:
    """Whether it is surely not negative."""
    match expr:
        case Const(value=value):
            return value >= 0
        case Var(name=name, kind=VarKind.PARAMETER):
            return name in facts.natural
        case Var(name=name, kind=VarKind.IDENTITY):
            return name in ("rank", "block", "sub")
        case Cast(operand=operand):
            return _is_natural(operand, facts)
        case Binary(op="+" | "*" | "/" | "%" | "&", left=left, right=right):
            return _is_natural(left, facts) and _is_natural(right, facts)
        case Call(arguments=(first, second)):
            return _is_natural(first, facts) and _is_natural(second, facts)
        case Unary(op="!"):
            return True
    return _is_positive(expr, facts)


def _is_positive(expr: Expr, facts: Facts) -> bool:
    """Whether it is surely at least 1."""
    match expr:
        case Const(value=value):
            return value >= 1
        case Var(name=name, kind=VarKind.PARAMETER):
            return name in facts.positive
        case Cast(operand=operand, type=ctype) if ctype.bits >= operand.type.bits:
            return _is_positive(operand, facts)
        case Binary(op="*", left=left, right=right):
            return _is_positive(left, facts) and _is_positive(right, facts)
        case Binary(op="+", left=left, right=right):
            one, other = _is_positive(left, facts), _is_positive(right, facts)
            return (one and (other or _is_natural(right, facts))) or (other and _is_natural(left, facts))
    return False
