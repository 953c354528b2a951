"""Operators on values: integers by C++'s rules, addresses by region and byte offset.

Used by `expressions` and `statements`.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from ..cinteger import CType, common_type, promote
from ..errors import SourceError
from ..evaluate import evaluate as compute_value
from ..expr import COMPARISONS, Binary, Cast, Const, Expr, Unary, binary, walk
from .classes import hierarchy
from .declarations import FunctionDecl
from .lowering import Lowering
from .narrowing import may_change
from .parse import text_of
from .types import ClassType, Context, IntType, Type
from .values import Null, Outcome, Place, PlacePointer, Pointer, Record, Value, convert, moved


def pure(lo: Lowering, run: Callable[[], Expr], node: Node) -> Expr:
    """The result of ``run``, which must not do anything: it may not be evaluated in a run."""
    before, count, root = dict(lo.store), len(lo.out), lo.next_root
    result = run()
    changed = any(lo.store.get(key) != value for key, value in before.items()) or any(
        key not in before and int(key[0]) < root for key in lo.store
    )
    if len(lo.out) != count or changed:
        raise lo.unsupported(f"side effects that depend on a condition: `{text_of(node)}`", node)
    return result


def combined(lo: Lowering, op: str, left: Value, right: Value, node: Node) -> Value:
    """``left op right``, of integers or addresses."""
    refuse_own(lo, op, (left, right), node)
    if op in ("==", "!=") and _is_address(left) and _is_address(right):
        return _same_address(lo, op, left, right, node)
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return _pointer_pair(lo, op, left, right, node)
    if isinstance(left, Pointer | Null) and op in ("+", "-"):
        return offset(lo, left, op, lo.integer(right, node), node)
    if isinstance(right, Pointer) and op == "+":
        return offset(lo, right, op, lo.integer(left, node), node)
    for value in (left, right):
        if isinstance(value, Pointer):
            raise lo.unsupported(f"`{op}` of an address: `{text_of(node)}`", node)
    if op == "<=>":
        raise lo.unsupported(f"`{text_of(node)}`", node)
    first, second = lo.integer(left, node), lo.integer(right, node)
    if op in ("<<", ">>") and isinstance(second, Const) and not lo.only_type:
        bits = promote(first.type).bits
        if not 0 <= second.value < bits:
            raise SourceError(f"a shift of {bits} bits by {second.value}: `{text_of(node)}`", lo.span(node))
    if op in COMPARISONS:
        common = common_type(first.type, second.type)
        first, second = (
            convert(common, e, implicit=not may_change(common, e, lo.starts)) for e in (first, second)
        )
    return folded(binary(op, first, second))


def refuse_own(lo: Lowering, op: str, outcomes: tuple[Outcome, ...], node: Node) -> None:
    """Refuse an operator that the sources define for one of the classes here, or for an enumeration.

    An enumeration is a plain integer to us, so no use of an operator that one has is known to be plain.
    """
    name = f"operator{op}"
    for outcome in outcomes:
        owner = outcome.type if isinstance(outcome, Place | Record) else None
        if isinstance(owner, ClassType) and any(
            name in table for c in hierarchy(lo.types, owner) for table in (c.decl.methods, c.decl.declared)
        ):
            raise lo.unsupported(f"`{op}` of {owner}, an operator of its own", node)
    for known, functions in lo.index.functions.items():
        if known.startswith("operator") and "".join(known.split()) == name:
            for function in functions:
                if not any(_is_class(lo, function, parameter) for parameter in function.parameters):
                    place = function.span.place
                    raise lo.unsupported(f"`{op}`, which {place} defines for an enumeration", node)


def _is_class(lo: Lowering, function: FunctionDecl, parameter: Node) -> bool:
    type_node = parameter.child_by_field_name("type")
    assert type_node is not None
    context = Context(function.source, function.namespace)
    return not isinstance(lo.types.resolve(type_node, context), IntType)


def _is_address(value: Value) -> bool:
    return isinstance(value, Pointer | PlacePointer | Null)


def _same_address(lo: Lowering, op: str, left: Value, right: Value, node: Node) -> Value:
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return _pointer_pair(lo, op, left, right, node)
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Pointer | PlacePointer) and isinstance(other, Null):
            lo.assume_not_null(value)
        if isinstance(value, Pointer) and isinstance(other, PlacePointer):
            raise lo.unsupported(f"`{text_of(node)}`: an address compared with one of an object", node)
    same = left == right
    if isinstance(left, PlacePointer) and isinstance(right, PlacePointer):
        same = left.place.location == right.place.location
    return Const(int(same == (op == "==")), CType.BOOL)


def _pointer_pair(lo: Lowering, op: str, left: Pointer, right: Pointer, node: Node) -> Value:
    if left.region != right.region or op not in (*COMPARISONS, "-"):
        raise lo.unsupported(f"`{op}` of addresses in {left.region} and {right.region}", node)
    if op in COMPARISONS:
        return folded(binary(op, left.offset, right.offset))
    size = stride(lo, left.target, node)
    distance = convert(CType.I64, binary("-", left.offset, right.offset))
    return folded(binary("/", distance, Const(size, CType.I64)))


def offset(lo: Lowering, pointer: Value, op: str, count: Expr, node: Node) -> Pointer:
    """``pointer + count`` or ``pointer - count``."""
    if not isinstance(pointer, Pointer):
        lo.address(pointer, node)
    assert isinstance(pointer, Pointer)
    return moved(pointer, op, count, stride(lo, pointer.target, node))


def stride(lo: Lowering, target: Type | None, node: Node) -> int:
    return 1 if target is None else lo.types.size(target, lo.span(node))


def folded(expr: Expr) -> Expr:
    """A constant for an expression of constants, with its wrap-around, and for a product with 0."""
    if isinstance(expr, Binary) and expr.op == "*":
        for zero, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(zero, Const) and zero.value == 0 and _cannot_fail(other):
                return Const(0, expr.type)
    operands = (
        (expr.left, expr.right) if isinstance(expr, Binary)
        else (expr.operand,) if isinstance(expr, Unary | Cast)
        else None
    )  # fmt: skip
    if operands is None or not all(isinstance(operand, Const) for operand in operands):
        return expr
    try:
        return Const(compute_value(expr, {}), expr.type)
    except (ZeroDivisionError, ValueError):
        return expr  # reported with its place where it is computed


def _cannot_fail(expr: Expr) -> bool:
    """Whether computing ``expr`` cannot divide by 0 or shift too far."""
    return not any(isinstance(e, Binary) and e.op in ("/", "%", "<<", ">>") for e in walk(expr))
