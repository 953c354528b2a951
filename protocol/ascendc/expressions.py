"""Evaluating C++ expressions symbolically: one small function a kind of syntax node.

`designate` dispatches over the table at the end; what has a place is read when a value is needed.
Integer rules are those of `expr.binary`; what cannot be evaluated is refused with its place. Calls
are in `calls`.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from ..cinteger import CType, common_type
from ..errors import SourceError
from ..expr import Const, Expr, binary, select, unary
from ..program import Reset
from . import calls
from .classes import own_copy
from .declarations import flatten
from .flow import scratch
from .lowering import Lowering
from .objects import compound_literal
from .operators import combined, folded, pure, refuse_own
from .parse import named, text_of
from .places import (
    dereferenced,
    element,
    field,
    integer_literal,
    member_access,
    named_outcome,
    variable_place,
)
from .types import BUILTIN_SIZES, ClassType, IntType, Type
from .values import (
    InitList,
    Memory,
    Null,
    Opaque,
    Outcome,
    Place,
    PlacePointer,
    Pointer,
    Poison,
    Value,
    convert,
)


def designate(lo: Lowering, node: Node) -> Outcome:
    """The place or value of expression ``node``; what it does is emitted and stored, once."""
    handler = EXPRESSIONS.get(node.type)
    if handler is None:
        lo.frame.context.source.check(node)
        raise lo.unsupported(f"{node.type.replace('_', ' ')} `{text_of(node)}`", node)
    return handler(lo, node)


# --- literals ---------------------------------------------------------------------------------


def _number(lo: Lowering, node: Node) -> Value:
    literal = integer_literal(text_of(node))
    if literal is None:
        raise lo.unsupported(f"number {text_of(node)}", node)
    return literal


def _character(lo: Lowering, node: Node) -> Value:
    text = text_of(node)
    if len(text) != 3:
        raise lo.unsupported(f"character {text}", node)
    return Const(ord(text[1]) & 0x7F, CType.I8)


# --- places -----------------------------------------------------------------------------------


def _this(lo: Lowering, node: Node) -> Value:
    if lo.frame.this is None:
        raise SourceError("`this` outside a member function", lo.span(node))
    return PlacePointer(lo.frame.this)


def _pointer_expression(lo: Lowering, node: Node) -> Outcome:
    argument = field(node, "argument")
    if text_of(field(node, "operator")) == "*":
        return dereferenced(lo, lo.evaluate(argument), node)
    outcome = lo.designate(argument)
    refuse_own(lo, "&", (outcome,), node)
    match outcome:
        case Place() as place:
            return PlacePointer(place)
        case Memory(pointer=pointer):
            return pointer
    raise lo.unsupported(f"the address of `{text_of(argument)}`", node)


# --- operators --------------------------------------------------------------------------------


def _parenthesised(lo: Lowering, node: Node) -> Outcome:
    return lo.designate(named(node)[0])


def _unary(lo: Lowering, node: Node) -> Value:
    op, argument = text_of(field(node, "operator")), field(node, "argument")
    refuse_own(lo, _WORDS.get(op, op), (), node)
    if op in ("!", "not"):
        return folded(unary("!", lo.condition(argument)))
    op = "~" if op == "compl" else op
    return folded(unary(op, lo.integer(lo.evaluate(argument), argument)))


_WORDS = {
    "and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!=",
    "and_eq": "&=", "or_eq": "|=", "xor_eq": "^=", "not": "!", "compl": "~",
}  # fmt: skip
"""Operators that are also words."""


def _binary(lo: Lowering, node: Node) -> Value:
    op = text_of(field(node, "operator"))
    op = _WORDS.get(op, op)
    left, right = field(node, "left"), field(node, "right")
    if op in ("&&", "||"):
        refuse_own(lo, op, (), node)
        return _lazy(lo, op, left, right)
    return combined(lo, op, lo.evaluate(left), lo.evaluate(right), node)


def _lazy(lo: Lowering, op: str, left: Node, right: Node) -> Value:
    first = lo.condition(left)
    if isinstance(first, Const) and bool(first.value) == (op == "||"):
        return first
    if isinstance(first, Const):
        return lo.condition(right)
    second = pure(lo, lambda: lo.condition(right), right)
    if isinstance(second, Const) and bool(second.value) == (op == "&&"):
        return first
    return binary(op, first, second)


def _conditional(lo: Lowering, node: Node) -> Outcome:
    condition = lo.condition(field(node, "condition"))
    then, other = field(node, "consequence"), field(node, "alternative")
    if isinstance(condition, Const):
        chosen, ignored = (then, other) if condition.value else (other, then)
        with scratch(lo):
            outer, lo.only_type = lo.only_type, True
            unchosen = lo.designate(ignored)
            unused = lo.peek(unchosen) if isinstance(unchosen, Place) else lo.value(unchosen, ignored)
            lo.only_type = outer
        outcome = lo.designate(chosen)
        if isinstance(outcome, Place) and isinstance(unchosen, Place) and outcome.type == unchosen.type:
            return outcome
        value = lo.value(outcome, chosen)
        if not isinstance(value, Expr | Opaque):
            return value
        used = lo.integer(value, chosen)
        if isinstance(unused, Poison) and isinstance(unchosen, Place) and isinstance(unchosen.type, IntType):
            other_type = unchosen.type.ctype
        else:
            other_type = lo.integer(unused, ignored).type
        return convert(used.type if used.type is other_type else common_type(used.type, other_type), used)
    values: list[Value] = []

    def side(branch: Node) -> Expr:
        values.append(lo.evaluate(branch))
        return condition

    for branch in (then, other):
        pure(lo, lambda branch=branch: side(branch), branch)  # type: ignore[misc]
    a, b = values
    if isinstance(a, Pointer) and isinstance(b, Pointer) and a.region == b.region:
        return Pointer(a.region, select(condition, a.offset, b.offset), a.target)
    if isinstance(a, Pointer) or isinstance(b, Pointer):
        raise lo.unsupported(f"a choice between different addresses: `{text_of(node)}`", node)
    return select(condition, lo.integer(a, then), lo.integer(b, other))


def _assignment(lo: Lowering, node: Node) -> Outcome:
    op, left, right = text_of(field(node, "operator")), field(node, "left"), field(node, "right")
    op = _WORDS.get(op, op)
    value = lo.evaluate(right)
    target = lo.designate(left)
    if isinstance(target, Memory):
        return _store_word(lo, op, target, value, node)
    if not isinstance(target, Place):
        raise lo.unsupported(f"an assignment to `{text_of(left)}`, which has no place", node)
    if isinstance(target.type, ClassType):
        return _assign_object(lo, op, target, value, node)
    refuse_own(lo, op, (target,), node)
    if op != "=":
        value = combined(lo, op.removesuffix("="), lo.load(target, left), value, node)
    elif isinstance(value, InitList):
        lo.copy_into(target, value, node)
        return target
    lo.assign(target, value, node)
    return target


def _assign_object(lo: Lowering, op: str, target: Place, value: Value, node: Node) -> Place:
    """``object = value``: what is no object of the class is first made one."""
    own = own_copy(lo.types, target.type) if isinstance(target.type, ClassType) else None
    if op != "=" or own is not None:
        raise lo.unsupported(f"`{op}` of {own or target.type}, an operator of its own", node)
    made = lo.new_place("temporary", target.type)
    lo.copy_into(made, value, node)
    lo.assign(target, lo.load(made, node), node)
    return target


def _store_word(lo: Lowering, op: str, target: Memory, value: Value, node: Node) -> Value:
    """``*word = 0`` in memory is a Reset; other stores have no operation."""
    if op == "=" and isinstance(value, Const) and value.value == 0:
        lo.emit(Reset(lo.address(target.pointer, node), lo.span(node)))
        return value
    raise lo.unsupported(f"a store to memory: `{text_of(node)}`", node)


def _update(lo: Lowering, node: Node) -> Outcome:
    argument = field(node, "argument")
    place = lo.designate(argument)
    if not isinstance(place, Place):
        raise lo.unsupported(f"`{text_of(node)}`", node)
    old = lo.load(place, argument)
    refuse_own(lo, text_of(field(node, "operator")), (place,), node)
    op = text_of(field(node, "operator"))[0]
    lo.assign(place, combined(lo, op, old, Const(1, CType.I32), node), node)
    prefix = node.children[0].type in ("++", "--")
    return place if prefix else old


def _comma(lo: Lowering, node: Node) -> Outcome:
    first = lo.designate(field(node, "left"))
    second = lo.designate(field(node, "right"))
    refuse_own(lo, ",", (first, second), node)
    return second


def _braces(lo: Lowering, node: Node) -> Value:
    items = []
    for child in named(node):
        if child.type in ("initializer_pair", "preproc_if"):
            raise lo.unsupported(f"designated initialiser `{text_of(child)}`", child)
        items.append(lo.evaluate(child))
    return InitList(tuple(items), lo.span(node))


# --- casts and sizes --------------------------------------------------------------------------


def _cast(lo: Lowering, node: Node) -> Outcome:
    descriptor, operand = field(node, "type"), field(node, "value")
    base = descriptor.child_by_field_name("type")
    if base is not None and base.type not in ("primitive_type", "sized_type_specifier"):
        _expect_type(lo, base, descriptor, operand)
    return calls.cast_node(lo, descriptor, operand, node)


def _expect_type(lo: Lowering, base: Node, descriptor: Node, operand: Node) -> None:
    """Refuse ``(x) + y`` that the grammar took for a cast though ``x`` may be a value."""
    name = text_of(base)
    known = lo.types.lookup(flatten(base), lo.frame.context) is not None
    sized = name in lo.facts.sizes or name in BUILTIN_SIZES
    pointer = descriptor.child_by_field_name("declarator") is not None
    is_value = any(name in scope for scope in lo.frame.scopes)
    if is_value or not (known or sized or pointer):
        raise lo.unsupported(
            f"`({name}) {text_of(operand)}`: cannot tell a cast from an operator", descriptor
        )


def _sizeof(lo: Lowering, node: Node) -> Value:
    descriptor = node.child_by_field_name("type")
    context = lo.frame.context
    if descriptor is not None:
        wanted: Type | None = lo.types.resolve(descriptor, context)
    else:
        inner = field(node, "value")
        while inner.type == "parenthesized_expression":
            inner = named(inner)[0]
        wanted = _type_of_operand(lo, inner)
    if wanted is None:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    return Const(lo.types.size(wanted, lo.span(node)), CType.U64)


def _type_of_operand(lo: Lowering, node: Node) -> Type | None:
    """The type of the operand of ``sizeof``, which is not evaluated, or that it names."""
    if node.type in ("template_function", "identifier", "qualified_identifier"):
        place = variable_place(lo, node)
        return place.type if place is not None else lo.types.resolve(node, lo.frame.context)
    with scratch(lo):
        outcome = lo.designate(node)
        value = lo.peek(outcome) if isinstance(outcome, Place) else lo.value(outcome, node)
    if isinstance(outcome, Place):
        return outcome.type
    return IntType(value.type) if isinstance(value, Expr) else None


def _bool(lo: Lowering, node: Node) -> Value:
    return Const(int(node.type == "true"), CType.BOOL)


def _null(lo: Lowering, node: Node) -> Value:
    return Null()


def _type_as_value(lo: Lowering, node: Node) -> Outcome:
    """A template argument that the grammar took for a type: ``B`` in ``F<B>``."""
    base = node.child_by_field_name("type")
    if base is None or node.child_by_field_name("declarator") is not None:
        raise lo.unsupported(f"type {text_of(node)} as a value", node)
    return named_outcome(lo, base)


EXPRESSIONS: dict[str, Callable[[Lowering, Node], Outcome]] = {
    "number_literal": _number,
    "char_literal": _character,
    "true": _bool,
    "false": _bool,
    "null": _null,
    "nullptr": _null,
    "identifier": named_outcome,
    "field_identifier": named_outcome,
    "qualified_identifier": named_outcome,
    "type_descriptor": _type_as_value,
    "type_identifier": named_outcome,
    "parenthesized_expression": _parenthesised,
    "field_expression": member_access,
    "subscript_expression": element,
    "pointer_expression": _pointer_expression,
    "this": _this,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "assignment_expression": _assignment,
    "update_expression": _update,
    "comma_expression": _comma,
    "initializer_list": _braces,
    "cast_expression": _cast,
    "sizeof_expression": _sizeof,
    "call_expression": calls.call,
    "compound_literal_expression": compound_literal,
}
"""How each kind of expression is evaluated; any other kind is refused."""
