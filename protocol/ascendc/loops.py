"""Loops that only a run unrolls: a `For` where the source counts plainly, else a `While`.

A `For` needs an index that the loop alone changes, by a constant positive step, and a bound that
the loop does not change. Everything else keeps its variables in locals. Used by `statements`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from ..cinteger import CType, common_type
from ..expr import Const, Expr, VarKind, binary, variables
from ..program import For, While
from .declarations import declared_name
from .flow import Run, close_iteration, enter_loop, loop_changes, scratch
from .lowering import Lowering
from .operators import pure
from .parse import named, text_of
from .places import field
from .types import IntType
from .values import Location, Place, Value, convert


@dataclass(frozen=True, slots=True)
class Counted:
    """The parts of ``for (T i = start; i < bound; i += step)``."""

    index: Place
    name: str
    ctype: CType
    start: Expr
    op: str
    bound: Node
    step: Node | None
    """None: ``++i``."""


def for_loop(lo: Lowering, node: Node, once: Run) -> None:
    """Lower a for loop whose initialiser has run already."""
    counted = _counted(lo, node)
    if counted is not None and _lower_counted(lo, counted, node, once):
        return
    condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")

    def iterate() -> None:
        once()
        if update is not None:
            lo.designate(update)

    def test() -> Expr:
        return Const(1, CType.BOOL) if condition is None else lo.condition(condition)

    while_loop(lo, test, iterate, node)


def while_loop(lo: Lowering, test: Callable[[], Expr], iterate: Run, node: Node) -> None:
    """Lower a loop with ``test`` before each iteration."""
    first = pure(lo, test, node)
    if isinstance(first, Const) and not first.value:
        return
    span = lo.span(node)

    def pass_through() -> None:
        pure(lo, test, node)
        iterate()

    changed = loop_changes(lo, pass_through, span)
    phis = enter_loop(lo, changed, span)
    head = dict(lo.store)
    condition = pure(lo, test, node)
    if isinstance(condition, Const) and condition.value:
        raise lo.unsupported("a loop without end", node)
    outer, lo.out = lo.out, []
    iterate()
    close_iteration(lo, phis, span)
    body, lo.out = lo.out, outer
    lo.emit(While(condition, tuple(body), span))
    lo.store = head


# --- counted loops ----------------------------------------------------------------------------


def _counted(lo: Lowering, node: Node) -> Counted | None:
    """The parts of a plainly counting loop, or None."""
    initialiser, condition = (node.child_by_field_name(n) for n in ("initializer", "condition"))
    update = node.child_by_field_name("update")
    if initialiser is None or condition is None or update is None:
        return None
    declarators = initialiser.children_by_field_name("declarator")
    if initialiser.type != "declaration" or len(declarators) != 1:
        return None
    name = text_of(declared_name(declarators[0]))
    place = lo.frame.scopes[-1].get(name)
    plain, step = _step(update, name)
    if place is None or not isinstance(place.type, IntType) or not plain:
        return None
    start = lo.store.get(place.location)
    test = _test(condition, name)
    if not isinstance(start, Expr) or test is None:
        return None
    op, bound = test
    return Counted(place, name, place.type.ctype, start, op, bound, step)


_MIRRORED = {">": "<", ">=": "<=", "!=": "!="}


def _test(condition: Node, name: str) -> tuple[str, Node] | None:
    """``i < bound`` or ``bound > i`` as operator and bound."""
    while condition.type == "parenthesized_expression":
        condition = named(condition)[0]
    if condition.type != "binary_expression":
        return None
    op = text_of(field(condition, "operator"))
    left, right = field(condition, "left"), field(condition, "right")
    if text_of(left) == name and op in ("<", "<=", "!="):
        return op, right
    if text_of(right) == name and op in _MIRRORED:
        return _MIRRORED[op], left
    return None


def _step(update: Node, name: str) -> tuple[bool, Node | None]:
    """Whether the update adds to the index, and what; None for 1."""
    if update.type == "update_expression":
        same = text_of(field(update, "argument")) == name
        return same and text_of(field(update, "operator")) == "++", None
    if update.type != "assignment_expression" or text_of(field(update, "left")) != name:
        return False, None
    right = field(update, "right")
    if text_of(field(update, "operator")) == "=" and right.type == "binary_expression":
        left = field(right, "left")
        if text_of(left) != name or text_of(field(right, "operator")) != "+":
            return False, None
        right = field(right, "right")
    elif text_of(field(update, "operator")) != "+=":
        return False, None
    return True, right


def _constant_step(lo: Lowering, loop: Counted) -> int | None:
    """The step if it is a positive constant that neither body nor step change, and does nothing.

    To be asked at the head of the loop, where all that its body changes has an unknown value.
    """
    if loop.step is None:
        return 1
    with scratch(lo):
        before = dict(lo.store)
        value = lo.evaluate(loop.step)
        plain = not lo.out and lo.store == before
    if not plain or not isinstance(value, Const) or not 0 < value.value <= loop.ctype.high:
        return None
    return value.value


def _lower_counted(lo: Lowering, loop: Counted, node: Node, once: Run) -> bool:
    """Lower ``loop`` to a For, or do nothing and say so."""
    span = lo.span(node)
    location = loop.index.location
    with scratch(lo):
        changed = loop_changes(lo, lambda: _with_index(lo, loop, once), span)
        if location in changed:
            return False
        phis = enter_loop(lo, changed, span)
        lo.store[location] = lo.new_var(loop.name, loop.ctype, VarKind.LOOP)
        step = _constant_step(lo, loop)
        stop = _stop(lo, loop, step) if step is not None else None
        if step is None or stop is None or set(variables(stop)) & {*phis.values(), lo.store[location]}:
            return False
    if isinstance(stop, Const) and isinstance(loop.start, Const) and loop.start.value >= stop.value:
        return True
    phis = enter_loop(lo, changed, span)
    head: dict[Location, Value] = dict(lo.store)
    index = lo.new_var(loop.name, loop.ctype, VarKind.LOOP)
    lo.store[location] = index
    if isinstance(loop.start, Const):
        lo.starts[index.name] = loop.start.value
    else:
        lo.starts.pop(index.name, None)
    outer, lo.out = lo.out, []
    once()
    close_iteration(lo, phis, span)
    body, lo.out = lo.out, outer
    lo.emit(For(index, loop.start, stop, step, tuple(body), span))
    lo.store = head
    return True


def _with_index(lo: Lowering, loop: Counted, once: Run) -> None:
    """One iteration; the index counts as changed only if the body itself changes it."""
    index = lo.new_var(loop.name, loop.ctype, VarKind.LOOP)
    before = lo.store[loop.index.location]
    lo.store[loop.index.location] = index
    once()
    if lo.store.get(loop.index.location) == index:
        lo.store[loop.index.location] = before


def _stop(lo: Lowering, loop: Counted, step: int) -> Expr | None:
    """The first value that the index does not take, or None where a For would not be exact.

    C++ compares index and bound in their common type. That is the plain comparison of the index with
    the converted bound as long as the index is not negative, or the common type is signed.
    """
    bound = pure(lo, lambda: lo.integer(lo.evaluate(loop.bound), loop.bound), loop.bound)
    common = common_type(loop.ctype, bound.type)
    counts_up_from_zero = isinstance(loop.start, Const) and loop.start.value >= 0
    if loop.ctype.signed and not common.signed and not counts_up_from_zero:
        return None
    stop = convert(common, bound)
    if loop.ctype.bits < 32 and not (isinstance(stop, Const) and stop.value + step - 1 <= loop.ctype.high):
        return None  # the index would wrap before it reaches the bound
    if loop.op == "<=":
        return _after(stop)
    if loop.op == "!=" and not _reached(loop, step, stop):
        return None
    return stop


def _after(stop: Expr) -> Expr | None:
    """``stop + 1``, in a type where it does not wrap."""
    if isinstance(stop, Const) and stop.value < stop.type.high:
        return Const(stop.value + 1, stop.type)
    if stop.type.bits >= 64:
        return None
    return binary("+", convert(CType.I64, stop), Const(1, CType.I64))


def _reached(loop: Counted, step: int, stop: Expr) -> bool:
    """Whether counting by ``!=`` surely meets its bound: then it is the same as ``<``."""
    if step != 1 or not isinstance(loop.start, Const):
        return False
    if isinstance(stop, Const):
        return loop.start.value <= stop.value
    return loop.start.value == 0 and not stop.type.signed
