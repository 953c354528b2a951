"""Declarations of local variables: initialisers, references, ``auto``, static constants.

Used by `statements`.
"""

from __future__ import annotations

from tree_sitter import Node

from ..errors import UnsupportedError
from ..expr import Const, Expr
from .arguments import Argument, evaluated, place_argument
from .declarations import declared_name, parameters_of
from .lowering import Lowering
from .objects import construct, initialise_from
from .parse import named, text_of
from .places import field, variable_place
from .references import bind, binds_temporaries, is_reference
from .types import ArrayType, IntType, Type
from .values import InitList, Opaque, Place, Record, Value


def declare(lo: Lowering, type_node: Node, declarator: Node, node: Node) -> Place:
    """Declare and initialise one variable; its name is in scope in its own initialiser."""
    value, inner = None, declarator
    if declarator.type == "init_declarator":
        value, inner = declarator.child_by_field_name("value"), field(declarator, "declarator")
    if any(child.type == "structured_binding_declarator" for child in (inner, *named(inner))):
        raise lo.unsupported(f"`{text_of(node)}`", node)
    name = text_of(declared_name(inner))
    wanted = _declared_type(lo, type_node, inner, node)
    if inner.type == "function_declarator":
        arguments = _arguments_like_parameters(lo, inner, node)
        place = lo.declare(name, wanted)
        initialise_from(lo, place, arguments, False, node)
        return place
    if is_reference(inner):
        if value is not None and value.type in ("argument_list", "initializer_list"):
            value = named(value)[0] if len(named(value)) == 1 else None
        if value is None:
            raise lo.unsupported(f"`{text_of(node)}`: a reference to nothing", node)
        place = bind(lo, name, wanted, binds_temporaries(node, inner), lo.designate(value), value)
        lo.frame.scopes[-1][name] = place
        return place
    place = lo.declare(name, wanted)
    if value is None:
        construct(lo, place, [], node)
    elif value.type in ("argument_list", "initializer_list"):
        arguments = evaluated(lo, named(value))
        if wanted is None and len(arguments) == 1:
            place = _deduced(lo, name, place, arguments[0].get(lo), value)
        else:
            initialise_from(lo, place, arguments, value.type == "initializer_list", node)
    elif wanted is None:
        place = _deduced(lo, name, place, lo.evaluate(value), value)
    else:
        lo.copy_into(place, lo.evaluate(value), value)
    return place


def _deduced(lo: Lowering, name: str, place: Place, value: Value, node: Node) -> Place:
    """An ``auto`` variable: its type is that of its value."""
    if isinstance(value, InitList):
        raise lo.unsupported(f"auto from braces: `{text_of(node)}`", node)
    if isinstance(value, Expr):
        place = Place(place.location, IntType(value.type))
    elif isinstance(value, Record | Opaque):
        place = Place(place.location, value.type)
    if isinstance(place.type, ArrayType):
        raise lo.unsupported(f"an array as a pointer: `{text_of(node)}`", node)
    lo.frame.scopes[-1][name] = place
    lo.copy_into(place, value, node)
    return place


def _arguments_like_parameters(lo: Lowering, inner: Node, node: Node) -> list[Argument]:
    """``T x(a, b)`` reads as a function's declaration; it is a variable if a and b are variables."""
    arguments = []
    for parameter in parameters_of(inner):
        name = parameter.child_by_field_name("type")
        place = variable_place(lo, name) if name is not None and len(named(parameter)) == 1 else None
        if place is None:
            break
        arguments.append(place_argument(lo, parameter, place))
    if not arguments or len(arguments) != len(parameters_of(inner)):
        raise lo.unsupported(f"`{text_of(node)}`: a function, or a variable that looks like one", node)
    return arguments


def _declared_type(lo: Lowering, type_node: Node, inner: Node, node: Node) -> Type | None:
    if type_node.type == "placeholder_type_specifier" and text_of(type_node) == "auto":
        return None
    name = text_of(type_node)
    if type_node.type == "type_identifier" and any(name in scope for scope in lo.frame.scopes):
        raise lo.unsupported(f"`{text_of(node)}`: cannot tell a declaration from an expression", node)
    base = lo.types.resolve(type_node, lo.frame.context)
    return lo.types.declared(base, inner, lo.frame.context)


def expect_constant(lo: Lowering, place: Place, declarator: Node, node: Node) -> None:
    """A static variable keeps the value of the first call, so it must be the same in every one."""
    value = declarator.child_by_field_name("value")
    try:
        known = lo.constant(value, lo.frame.context) if value is not None else None
    except UnsupportedError:
        known = None
    if not isinstance(known, Const) or not isinstance(lo.peek(place), Const):
        raise lo.unsupported("a static local variable whose value is no constant", node)
