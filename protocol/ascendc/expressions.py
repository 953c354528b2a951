"""Evaluating C++ expressions symbolically: one small function a kind of syntax node.

`evaluate` dispatches over the table at the end. Integer rules are those of `expr.binary`; what
cannot be evaluated is refused with its place. Calls are in `calls`.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from ..cinteger import CType, common_type
from ..errors import SourceError
from ..expr import Const, Expr, VarKind, binary, select, unary
from ..program import Load, Reset
from . import calls
from .declarations import flatten
from .flow import scratch
from .lowering import Lowering
from .objects import compound_literal
from .operators import combined, folded, offset, pure
from .parse import named, text_of
from .places import field, integer_literal, name_value, place_of, subscript
from .types import BUILTIN_SIZES, IntType, PointerType, Type
from .values import InitList, Null, Opaque, PlacePointer, Pointer, Value, convert


def evaluate(lo: Lowering, node: Node) -> Value:
    """The value of expression ``node``; what it does is emitted and stored."""
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


# --- memory -----------------------------------------------------------------------------------


def _read_place(lo: Lowering, node: Node) -> Value:
    place = place_of(lo, node)
    if place is not None:
        return lo.load(place, node)
    if node.type == "subscript_expression":
        pointer = lo.evaluate(field(node, "argument"))
        return _load_word(lo, offset(lo, pointer, "+", subscript(lo, node), node), node)
    return _load_word(lo, lo.evaluate(field(node, "argument")), node)


def _load_word(lo: Lowering, value: Value, node: Node) -> Value:
    """Reading memory: the word goes into a local of the program."""
    if not isinstance(value, Pointer) or not isinstance(value.target, IntType):
        raise lo.unsupported(f"reading memory: `{text_of(node)}`", node)
    word = lo.new_var("word", value.target.ctype, VarKind.LOCAL)
    lo.emit(Load(word, lo.address(value, node), lo.span(node)))
    return word


def _this(lo: Lowering, node: Node) -> Value:
    if lo.frame.this is None:
        raise SourceError("`this` outside a member function", lo.span(node))
    return PlacePointer(lo.frame.this)


def _pointer_expression(lo: Lowering, node: Node) -> Value:
    if text_of(field(node, "operator")) == "*":
        return _read_place(lo, node)
    argument = field(node, "argument")
    place = place_of(lo, argument)
    if place is not None:
        return PlacePointer(place)
    if argument.type == "subscript_expression":
        pointer = lo.evaluate(field(argument, "argument"))
        return offset(lo, pointer, "+", subscript(lo, argument), node)
    raise lo.unsupported(f"the address of `{text_of(argument)}`", node)


# --- operators --------------------------------------------------------------------------------


def _parenthesised(lo: Lowering, node: Node) -> Value:
    return lo.evaluate(named(node)[0])


def _unary(lo: Lowering, node: Node) -> Value:
    op, argument = text_of(field(node, "operator")), field(node, "argument")
    if op in ("!", "not"):
        return folded(unary("!", lo.condition(argument)))
    return folded(unary(op, lo.integer(lo.evaluate(argument), argument)))


_WORDS = {"and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}


def _binary(lo: Lowering, node: Node) -> Value:
    op = text_of(field(node, "operator"))
    op = _WORDS.get(op, op)
    left, right = field(node, "left"), field(node, "right")
    if op in ("&&", "||"):
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


def _conditional(lo: Lowering, node: Node) -> Value:
    condition = lo.condition(field(node, "condition"))
    then, other = field(node, "consequence"), field(node, "alternative")
    if isinstance(condition, Const):
        chosen, ignored = (then, other) if condition.value else (other, then)
        value = lo.evaluate(chosen)
        if not isinstance(value, Expr | Opaque):
            return value
        with scratch(lo):  # only its type counts
            unused = lo.evaluate(ignored)
        used, other_type = lo.integer(value, chosen), lo.integer(unused, ignored).type
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


def _assignment(lo: Lowering, node: Node) -> Value:
    op, left, right = text_of(field(node, "operator")), field(node, "left"), field(node, "right")
    value = lo.evaluate(right)
    place = place_of(lo, left)
    if place is None:
        return _store_word(lo, op, left, value, node)
    if op != "=":
        value = combined(lo, op.removesuffix("="), lo.load(place, left), value, node)
    lo.assign(place, value, node)
    return lo.load(place, node) if isinstance(place.type, IntType | PointerType) else value


def _store_word(lo: Lowering, op: str, left: Node, value: Value, node: Node) -> Value:
    """``*word = 0`` in memory is a Reset; other stores have no operation."""
    if left.type == "pointer_expression" or left.type == "subscript_expression":
        pointer = lo.evaluate(field(left, "argument"))
        if left.type == "subscript_expression":
            pointer = offset(lo, pointer, "+", subscript(lo, left), left)
        if op == "=" and isinstance(value, Const) and value.value == 0:
            lo.emit(Reset(lo.address(pointer, left), lo.span(node)))
            return value
    raise lo.unsupported(f"a store to memory: `{text_of(node)}`", node)


def _update(lo: Lowering, node: Node) -> Value:
    argument = field(node, "argument")
    place = place_of(lo, argument)
    if place is None:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    old = lo.load(place, argument)
    op = text_of(field(node, "operator"))[0]
    lo.assign(place, combined(lo, op, old, Const(1, CType.I32), node), node)
    prefix = node.children[0].type in ("++", "--")
    return lo.load(place, node) if prefix else old


def _comma(lo: Lowering, node: Node) -> Value:
    lo.evaluate(field(node, "left"))
    return lo.evaluate(field(node, "right"))


def _braces(lo: Lowering, node: Node) -> Value:
    items = []
    for child in named(node):
        if child.type in ("initializer_pair", "preproc_if"):
            raise lo.unsupported(f"designated initialiser `{text_of(child)}`", child)
        items.append(lo.evaluate(child))
    return InitList(tuple(items), lo.span(node))


# --- casts and sizes --------------------------------------------------------------------------


def _cast(lo: Lowering, node: Node) -> Value:
    descriptor, operand = field(node, "type"), field(node, "value")
    base = descriptor.child_by_field_name("type")
    if base is not None and base.type not in ("primitive_type", "sized_type_specifier"):
        _expect_type(lo, base, descriptor, operand)
    return calls.cast_to(lo, lo.types.resolve(descriptor, lo.frame.context), lo.evaluate(operand), node)


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
        place = place_of(lo, inner) if inner.type != "template_function" else None
        wanted = place.type if place is not None else lo.types.resolve(inner, context)
    if wanted is None:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    return Const(lo.types.size(wanted, lo.span(node)), CType.U64)


def _bool(lo: Lowering, node: Node) -> Value:
    return Const(int(node.type == "true"), CType.BOOL)


def _null(lo: Lowering, node: Node) -> Value:
    return Null()


def _type_as_value(lo: Lowering, node: Node) -> Value:
    """A template argument that the grammar took for a type: ``B`` in ``F<B>``."""
    base = node.child_by_field_name("type")
    if base is None or node.child_by_field_name("declarator") is not None:
        raise lo.unsupported(f"type {text_of(node)} as a value", node)
    return name_value(lo, base)


EXPRESSIONS: dict[str, Callable[[Lowering, Node], Value]] = {
    "number_literal": _number,
    "char_literal": _character,
    "true": _bool,
    "false": _bool,
    "null": _null,
    "nullptr": _null,
    "identifier": name_value,
    "field_identifier": name_value,
    "qualified_identifier": name_value,
    "type_descriptor": _type_as_value,
    "type_identifier": name_value,
    "parenthesized_expression": _parenthesised,
    "field_expression": _read_place,
    "subscript_expression": _read_place,
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
