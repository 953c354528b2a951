"""Calls: casts, constructors, methods and functions of the sources are inlined, all others explained.

In this order a call is: of a local object, a member function, a device or library function that
`intrinsics` knows, a function of the sources, a type, or one that facts explain. Whatever is left
is refused by name. Used by `expressions`.
"""

from __future__ import annotations

from tree_sitter import Node

from ..expr import Expr
from ..expr import call as helper_call
from .contracts import lower_contract
from .declarations import FunctionDecl, flatten, part_name
from .inline import Argument, argument_nodes, arguments_of, invoke, overload
from .intrinsics import INTRINSICS, CallSite
from .lowering import Frame, Lowering
from .objects import constructed
from .operators import folded
from .parse import named, parse_expression, text_of
from .places import field, member_place, object_place, refuse_macro, target_place, variable_place
from .types import ClassType, Context, IntType, OpaqueType, PointerType, Type
from .values import NOTHING, Place, Pointer, Value, convert

CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})


def call(lo: Lowering, node: Node) -> Value:
    """Lower a call expression."""
    function = field(node, "function")
    match function.type:
        case "primitive_type" | "sized_type_specifier":
            return _functional_cast(lo, lo.types.resolve(function, lo.frame.context), node)
        case "field_expression":
            return _member_call(lo, function, node)
        case "identifier" | "qualified_identifier" | "template_function" | "type_identifier":
            return _named_call(lo, function, node)
        case "parenthesized_expression":
            raise lo.unsupported(f"`{text_of(node)}`: a C-style cast or a call through parentheses", node)
    lo.frame.context.source.check(node)
    raise lo.unsupported(f"call of `{text_of(function)}`", node)


# --- calls by name ----------------------------------------------------------------------------


def _named_call(lo: Lowering, function: Node, node: Node) -> Value:
    parts = flatten(function)
    name = part_name(parts[-1])
    refuse_macro(lo, name, node)
    if name in CASTS and len(parts) == 1 and function.type == "template_function":
        return _template_cast(lo, function, node)
    found = _own_call(lo, parts, function, name, node)
    if found is not None:
        return found
    scope = [part_name(part) for part in parts[:-1]]
    row = INTRINSICS.get(name)
    if row is not None:
        return _intrinsic(lo, parts[-1], name, node)
    functions = lo.index.find(lo.index.functions, name, scope, lo.frame.context.namespace)
    if functions:
        decl = overload(lo, functions, len(argument_nodes(node)), name, node)
        return invoke(lo, decl, None, None, arguments_of(lo, node), node, parts[-1])
    wanted = lo.types.lookup(parts, lo.frame.context)
    if wanted is not None:
        return _functional_cast(lo, wanted, node)
    return _explained_call(lo, name, node)


def _own_call(lo: Lowering, parts: list[Node], function: Node, name: str, node: Node) -> Value | None:
    """A call of an object in scope, or of a member function by its unqualified or class name."""
    this = lo.frame.this
    if len(parts) == 1:
        place = variable_place(lo, function)
        if place is not None:
            return _object_call(lo, place, node)
        owner = lo.frame.context.owner
        if owner is None:
            return None
        return _method(lo, owner, this, name, parts[-1], node)
    outer = lo.types.lookup(parts[:-1], lo.frame.context)
    if not isinstance(outer, ClassType):
        return None
    found = _method(lo, outer, this, name, parts[-1], node)
    if found is None:
        raise lo.unsupported(f"call of {outer}::{name}", node)
    return found


def _intrinsic(lo: Lowering, part: Node, name: str, node: Node) -> Value:
    row = INTRINSICS[name]
    arguments = part.child_by_field_name("arguments")
    templates = named(arguments) if arguments is not None else []
    site = CallSite(node, name, argument_nodes(node), templates)
    if len(site.arguments) not in row.arguments:
        raise lo.unsupported(f"{name} with {len(site.arguments)} arguments", node)
    return row.lower(lo, site)


def _explained_call(lo: Lowering, name: str, node: Node) -> Value:
    if name in HELPERS and (name != "ceil_div" or lo.frame.context.source.place is not None):
        return _helper(lo, name, node)
    fact = lo.facts.functions.get(name)
    if fact is not None:
        return _fact_function(lo, name, node)
    contract = lo.facts.contracts.get(name)
    if contract is not None:
        return lower_contract(lo, contract, [a.get(lo) for a in arguments_of(lo, node)], node)
    lo.index.check_hidden(name)
    raise lo.unsupported(f"call of {name}", node)


HELPERS = frozenset({"min", "max", "ceil_div"})
"""Functions of two integers that `expr.call` has; ``ceil_div`` is for facts only."""


def _helper(lo: Lowering, name: str, node: Node) -> Value:
    arguments = argument_nodes(node)
    if len(arguments) != 2:
        raise lo.unsupported(f"{name} of {len(arguments)} arguments", node)
    return helper_call(name, *(lo.integer(lo.evaluate(a), a) for a in arguments))


def _fact_function(lo: Lowering, name: str, node: Node) -> Value:
    fact = lo.facts.functions[name]
    arguments = arguments_of(lo, node)
    if len(arguments) != len(fact.parameters):
        raise lo.unsupported(f"{name} of {len(arguments)} arguments, not as facts have it", node)
    values = [a.get(lo) for a in arguments]
    lo.usage.facts["function", name] = f"{name}({', '.join(fact.parameters)}) = {fact.value}"
    source, expression = parse_expression(fact.value, lo.facts.file, lo.span(node))
    with lo.entered(Frame(Context(source), lo.frame.calls), node):
        for declared, value in zip(fact.parameters, values, strict=True):
            words = declared.split()
            place = lo.declare(words[-1], lo.named_type(words[0]) if len(words) > 1 else None)
            lo.assign(place, value, node)
        return lo.converted(lo.evaluate(expression), lo.named_type(fact.result), node)


# --- casts ------------------------------------------------------------------------------------


def _template_cast(lo: Lowering, function: Node, node: Node) -> Value:
    arguments, operands = named(field(function, "arguments")), argument_nodes(node)
    if len(arguments) != 1 or len(operands) != 1:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    wanted = lo.types.resolve(arguments[0], lo.frame.context)
    return cast_to(lo, wanted, lo.evaluate(operands[0]), node)


def _functional_cast(lo: Lowering, wanted: Type, node: Node) -> Value:
    if isinstance(wanted, ClassType):
        return constructed(lo, wanted, arguments_of(lo, node), node)
    operands = argument_nodes(node)
    if len(operands) != 1:
        raise lo.unsupported(f"`{text_of(node)}`: {wanted} of {len(operands)} values", node)
    return cast_to(lo, wanted, lo.evaluate(operands[0]), node)


def cast_to(lo: Lowering, wanted: Type, value: Value, node: Node) -> Value:
    """``value`` cast to ``wanted``; addresses may pass through a 64-bit integer."""
    match wanted:
        case IntType(ctype=ctype):
            if isinstance(value, Pointer) and ctype.bits == 64:
                return Pointer(value.region, value.offset, None)
            return folded(convert(ctype, lo.integer(value, node, ctype), implicit=False))
        case PointerType(target=target):
            return lo.as_pointer(value, target, node)
        case OpaqueType(name="void"):
            return NOTHING
        case ClassType():
            return constructed(lo, wanted, [Argument(node, None, value)], node)
    if isinstance(value, Expr):
        raise lo.unsupported(f"a cast to {wanted}", node)
    return value


# --- members ----------------------------------------------------------------------------------


def _member_call(lo: Lowering, function: Node, node: Node) -> Value:
    argument = field(function, "argument")
    part = flatten(field(function, "field"))[-1]
    name = part_name(part)
    if text_of(field(function, "operator")) == "->":
        place = target_place(lo, lo.evaluate(argument), node)
        if place is None:
            raise lo.unsupported(f"call of {name} of an object in memory", node)
    else:
        place = object_place(lo, argument)
    if isinstance(place.type, ClassType):
        found = _method(lo, place.type, place, name, part, node)
        if found is not None:
            return found
        member = member_place(lo, place, name)
        if member is not None:
            return _object_call(lo, member, node)
    if isinstance(place.type, OpaqueType):
        contract = lo.facts.contracts.get(f"{place.type}::{name}")
        if contract is not None:
            return lower_contract(lo, contract, [a.get(lo) for a in arguments_of(lo, node)], node)
        lo.index.check_hidden(place.type.name)
        raise lo.unsupported(f"call of {place.type}::{name}", node)
    raise lo.unsupported(f"call of {name}", node)


def _object_call(lo: Lowering, place: Place, node: Node) -> Value:
    """``object(arguments)``."""
    if isinstance(place.type, ClassType):
        found = _method(lo, place.type, place, "operator()", None, node)
        if found is not None:
            return found
    if isinstance(place.type, OpaqueType):
        contract = lo.facts.contracts.get(place.type.name)
        if contract is not None:
            return lower_contract(lo, contract, [a.get(lo) for a in arguments_of(lo, node)], node)
        lo.index.check_hidden(place.type.name)
    name = lo.hint(place.location)
    kind = f", a {place.type}" if place.type is not None else ""
    raise lo.unsupported(f"call of {name}{kind}", node)


def _method(
    lo: Lowering, owner: ClassType, this: Place | None, name: str, part: Node | None, node: Node
) -> Value | None:
    """Call member function ``name`` of ``owner`` or a base; None if there is none."""
    found = _find_methods(lo, owner, name)
    if found is None:
        return None
    holder, methods = found
    if not methods:
        lo.index.check_hidden(name)
        raise lo.unsupported(f"call of {holder}::{name}, whose body the sources lack", node)
    decl = overload(lo, methods, len(argument_nodes(node)), name, node)
    if decl.virtual:
        raise lo.unsupported(f"call of {holder}::{name}, which is virtual", node)
    target = None
    if not decl.static:
        if this is None:
            raise lo.unsupported(f"call of {holder}::{name} without an object", node)
        target = Place(this.location, holder)
    return invoke(lo, decl, holder, target, arguments_of(lo, node), node, part)


def _find_methods(lo: Lowering, owner: ClassType, name: str) -> tuple[ClassType, list[FunctionDecl]] | None:
    if name in owner.decl.methods or name in owner.decl.declared:
        return owner, owner.decl.methods.get(name, [])
    for base in lo.types.bases(owner):
        found = _find_methods(lo, base, name) if isinstance(base, ClassType) else None
        if found is not None:
            return found
    return None
