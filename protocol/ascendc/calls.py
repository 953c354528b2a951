"""Calls: casts, constructors, methods and functions of the sources are inlined, all others explained.

In this order a call is: of a local object, a member function, a function of the sources, a type, a
device or library function that `intrinsics` knows, or one that facts explain. Whatever is left
is refused by name. Used by `expressions`.
"""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from ..cinteger import CType
from ..expr import Const, Expr
from ..expr import call as helper_call
from .arguments import Argument, argument_nodes, arguments_of, fits_count, method, overload, value_argument
from .classes import hierarchy
from .contracts import lower_contract
from .declarations import GLOBAL, FunctionDecl, flatten, function_declarator, is_global, part_name
from .inline import invoke
from .intrinsics import INTRINSICS, CallSite
from .lowering import Lowering
from .objects import constructed
from .operators import folded
from .parse import named, parse_expression, text_of
from .places import field, member_place, object_place, refuse_macro, target_place, variable_place
from .references import is_reference
from .state import Frame
from .types import ClassType, Context, IntType, OpaqueType, PointerType, Type
from .values import NOTHING, Foreign, Opaque, Outcome, Place, Pointer, Record, Value, convert

CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})


def call(lo: Lowering, node: Node) -> Outcome:
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


def _named_call(lo: Lowering, function: Node, node: Node) -> Outcome:
    parts = flatten(function)
    name = part_name(parts[-1])
    for part in parts:
        refuse_macro(lo, part)
    if name in CASTS and len(parts) == 1 and function.type == "template_function":
        return _template_cast(lo, function, node)
    if is_global(function):
        found, here = None, Context(lo.frame.context.source, GLOBAL)
    else:
        found, here = _own_call(lo, parts, function, name, node), lo.frame.context
    if found is not None:
        return found
    scope = [part_name(part) for part in parts[:-1]]
    functions = lo.index.find(lo.index.functions, name, scope, here.namespace)
    if functions:
        base = functions[0].namespace
        if name in INTRINSICS and not scope and here.namespace[: len(base)] != base:
            raise lo.unsupported(f"call of {name}, of the library or of {'::'.join(base)}", node)
        decl = overload(lo, functions, len(argument_nodes(node)), name, node)
        arguments = arguments_of(lo, node)
        _refuse_others(lo, functions, scope, arguments, node)
        return invoke(lo, decl, None, None, arguments, node, parts[-1])
    wanted = lo.types.lookup(parts, here)
    if wanted is not None:
        return _functional_cast(lo, wanted, node)
    if name in INTRINSICS and tuple(scope) in LIBRARY:
        return _intrinsic(lo, parts[-1], name, node)
    return _explained_call(lo, parts, scope, name, node)


LIBRARY = frozenset({(), ("AscendC",)})
"""Scopes in which the device and library functions of `intrinsics` are called."""
STANDARD = LIBRARY | {("std",), ("Std",), ("AscendC", "Std")}
"""Scopes in which ``min`` and ``max`` are called."""


def _refuse_others(
    lo: Lowering, found: list[FunctionDecl], scope: list[str], arguments: list[Argument], node: Node
) -> None:
    """Refuse a call that another function, of a ``using`` or of an argument's namespace, may take."""
    if scope:
        return
    opened = set(lo.index.usings)
    for argument in arguments:
        have = argument.outcome.type if isinstance(argument.outcome, Place) else None
        if isinstance(argument.value, Record):
            have = have or argument.value.type
        if isinstance(have, ClassType):
            opened.add(have.decl.namespace)
    for other in lo.index.functions.get(found[0].name, ()):
        visible = any(u and other.namespace[-len(u) :] == u for u in opened)
        if visible and other not in found and fits_count(other, len(arguments)):
            places = f"{found[0].span.place} and {other.span.place}"
            raise lo.unsupported(f"call of {other.name}, which is ambiguous: {places}", node)


def _own_call(lo: Lowering, parts: list[Node], function: Node, name: str, node: Node) -> Outcome | None:
    """A call of an object in scope, or of a member function by its unqualified or class name."""
    this = lo.frame.this
    if len(parts) == 1:
        place = variable_place(lo, function)
        if place is not None:
            return _object_call(lo, place, node)
        owner = lo.frame.context.owner
        if owner is None:
            return None
        found = _method(lo, owner, this, name, parts[-1], node)
        for outer in lo.types.enclosing(owner) if found is None else ():
            found = found if found is not None else _method(lo, outer, None, name, parts[-1], node)
        return found
    scope = lo.types.lookup(parts[:-1], lo.frame.context)
    if not isinstance(scope, ClassType):
        return None
    found = _method(lo, scope, this, name, parts[-1], node)
    if found is None:
        raise lo.unsupported(f"call of {scope}::{name}", node)
    return found


def _intrinsic(lo: Lowering, part: Node, name: str, node: Node) -> Value:
    row = INTRINSICS[name]
    arguments = part.child_by_field_name("arguments")
    templates = named(arguments) if arguments is not None else []
    site = CallSite(node, name, argument_nodes(node), templates)
    if len(site.arguments) not in row.arguments:
        raise lo.unsupported(f"{name} with {len(site.arguments)} arguments", node)
    return row.lower(lo, site)


def _explained_call(lo: Lowering, parts: list[Node], scope: list[str], name: str, node: Node) -> Value:
    from_facts = lo.frame.context.source.place is not None
    if name in HELPERS and tuple(scope) in STANDARD and (name != "ceil_div" or from_facts):
        return _helper(lo, parts[-1], scope, name, node)
    if not scope and name in lo.facts.functions:
        return _fact_function(lo, name, node)
    contract = lo.facts.contracts.get(name)
    if contract is not None:
        return lower_contract(lo, contract, [a.get(lo) for a in arguments_of(lo, node)], node)
    lo.index.check_hidden(name)
    raise lo.unsupported(f"call of {name}", node)


HELPERS = frozenset({"min", "max", "ceil_div"})
"""Functions of two integers that `expr.call` has; ``ceil_div`` is for facts only."""


def _helper(lo: Lowering, part: Node, scope: list[str], name: str, node: Node) -> Value:
    arguments = arguments_of(lo, node)
    if len(arguments) != 2:
        raise lo.unsupported(f"{name} of {len(arguments)} arguments", node)
    values = [lo.integer(a.get(lo), a.node) for a in arguments]
    given = part.child_by_field_name("arguments")
    wanted: CType | None = None
    if given is not None:
        types = [lo.types.resolve(t, lo.frame.context) for t in named(given)]
        if len(types) != 1 or not isinstance(types[0], IntType):
            raise lo.unsupported(f"`{text_of(node)}`", node)
        wanted = types[0].ctype
    elif values[0].type is values[1].type:
        wanted = values[0].type
    elif scope == ["std"]:
        raise lo.unsupported(f"std::{name} of two types: `{text_of(node)}`", node)
    if wanted is None:
        return helper_call(name, *values)
    return convert(wanted, helper_call(name, *(convert(wanted, value) for value in values)))


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


def cast_node(lo: Lowering, descriptor: Node, operand: Node, node: Node) -> Value:
    """``operand`` cast to the type that ``descriptor`` names."""
    if is_reference(descriptor.child_by_field_name("declarator")):
        raise lo.unsupported(
            f"a cast to a reference, or an operator that looks like one: `{text_of(node)}`", node
        )
    return cast_to(lo, lo.types.resolve(descriptor, lo.frame.context), lo.evaluate(operand), node)


def _template_cast(lo: Lowering, function: Node, node: Node) -> Value:
    arguments, operands = named(field(function, "arguments")), argument_nodes(node)
    if len(arguments) != 1 or len(operands) != 1:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    return cast_node(lo, arguments[0], operands[0], node)


def _functional_cast(lo: Lowering, wanted: Type, node: Node) -> Value:
    if isinstance(wanted, ClassType):
        return constructed(lo, wanted, arguments_of(lo, node), node)
    operands = argument_nodes(node)
    if not operands and isinstance(wanted, IntType):
        return Const(0, wanted.ctype)
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
            return constructed(lo, wanted, [value_argument(node, value)], node)
    if isinstance(value, Expr | Foreign):
        raise lo.unsupported(f"a cast to {wanted}", node)
    return replace(value, type=wanted) if isinstance(value, Opaque) else value


# --- members ----------------------------------------------------------------------------------


def _member_call(lo: Lowering, function: Node, node: Node) -> Outcome:
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


def _object_call(lo: Lowering, place: Place, node: Node) -> Outcome:
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
) -> Outcome | None:
    """Call member function ``name`` of ``owner`` or a base; None if there is none."""
    found = _find_methods(lo, owner, name)
    if found is None:
        return None
    holder, methods = found
    if not methods:
        lo.index.check_hidden(name)
        raise lo.unsupported(f"call of {holder}::{name}, whose body the sources lack", node)
    decl = method(lo, holder, name, len(argument_nodes(node)), node)
    if _is_virtual(lo, holder, decl):
        raise lo.unsupported(f"call of {holder}::{name}, which is virtual", node)
    target = None
    if not decl.static:
        if this is None:
            raise lo.unsupported(f"call of {holder}::{name} without an object", node)
        target = Place(this.location, holder)
    return invoke(lo, decl, holder, target, arguments_of(lo, node), node, part)


def _is_virtual(lo: Lowering, holder: ClassType, decl: FunctionDecl) -> bool:
    """Whether which function runs depends on the object: also where only a base says ``virtual``."""
    for part in hierarchy(lo.types, holder):
        defined = part.decl.methods.get(decl.name, [])
        declared = [d.parent for d in part.decl.declared.get(decl.name, [])]
        nodes = [f.node for f in defined] + [d for d in declared if d is not None]
        if any(f.virtual for f in defined) or any(_says_virtual(node) for node in nodes):
            return True
    return False


def _says_virtual(node: Node) -> bool:
    body = node.child_by_field_name("body")
    words = [child for child in node.children if body is None or child.id != body.id]
    declarator = function_declarator(node)
    words += declarator.children if declarator is not None else []
    return any(text_of(word) in ("virtual", "override", "final") for word in words)


def _find_methods(lo: Lowering, owner: ClassType, name: str) -> tuple[ClassType, list[FunctionDecl]] | None:
    if name in owner.decl.methods or name in owner.decl.declared:
        return owner, owner.decl.methods.get(name, [])
    for base in lo.types.bases(owner):
        found = _find_methods(lo, base, name) if isinstance(base, ClassType) else None
        if found is not None:
            return found
    return None
