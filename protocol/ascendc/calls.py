"""Calls: casts, constructors, methods and functions of the sources are inlined, all others explained.

In this order a call is: of a local object, a member function, a device or library function that
`intrinsics` knows, a function of the sources, a type, or one that facts explain. Whatever is left
is refused by name. Used by `expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ..cinteger import CType
from ..expr import Expr
from ..expr import call as helper_call
from ..program import Span
from .contracts import lower_contract
from .index import FunctionDecl, declared_name, flatten, part_name
from .intrinsics import INTRINSICS, CallSite
from .lowering import Frame, Lowering
from .operators import folded
from .parse import named, parse_expression, text_of
from .places import (
    field,
    member_place,
    object_place,
    place_of,
    refuse_macro,
    target_place,
    variable_place,
)
from .types import (
    VOID,
    ArrayType,
    Binding,
    ClassType,
    Context,
    IntType,
    OpaqueType,
    PointerType,
    Type,
)
from .values import (
    NOTHING,
    InitList,
    Opaque,
    Place,
    PlacePointer,
    Pointer,
    Poison,
    Record,
    Value,
    convert,
)

CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: where it stands, and its place if it has one, else its value."""

    node: Node
    place: Place | None
    value: Value | None

    def get(self, lo: Lowering) -> Value:
        """Its value."""
        if self.value is not None:
            return self.value
        assert self.place is not None
        return lo.load(self.place, self.node)


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


def _argument_nodes(node: Node) -> list[Node]:
    return named(field(node, "arguments"))


def _arguments(lo: Lowering, node: Node) -> list[Argument]:
    found = []
    for argument in _argument_nodes(node):
        place = place_of(lo, argument)
        value = None if place is not None else lo.evaluate(argument)
        found.append(Argument(argument, place, value))
    return found


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
        decl = _overload(lo, functions, len(_argument_nodes(node)), name, node)
        return invoke(lo, decl, None, None, _arguments(lo, node), node, parts[-1])
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
    site = CallSite(node, name, _argument_nodes(node), templates)
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
        return lower_contract(lo, contract, [a.get(lo) for a in _arguments(lo, node)], node)
    raise lo.unsupported(f"call of {name}", node)


HELPERS = frozenset({"min", "max", "ceil_div"})
"""Functions of two integers that `expr.call` has; ``ceil_div`` is for facts only."""


def _helper(lo: Lowering, name: str, node: Node) -> Value:
    arguments = _argument_nodes(node)
    if len(arguments) != 2:
        raise lo.unsupported(f"{name} of {len(arguments)} arguments", node)
    return helper_call(name, *(lo.integer(lo.evaluate(a), a) for a in arguments))


def _fact_function(lo: Lowering, name: str, node: Node) -> Value:
    fact = lo.facts.functions[name]
    arguments = _arguments(lo, node)
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
    arguments, operands = named(field(function, "arguments")), _argument_nodes(node)
    if len(arguments) != 1 or len(operands) != 1:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    wanted = lo.types.resolve(arguments[0], lo.frame.context)
    return cast_to(lo, wanted, lo.evaluate(operands[0]), node)


def _functional_cast(lo: Lowering, wanted: Type, node: Node) -> Value:
    if isinstance(wanted, ClassType):
        return constructed(lo, wanted, _arguments(lo, node), node)
    operands = _argument_nodes(node)
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


# --- objects ----------------------------------------------------------------------------------


def compound_literal(lo: Lowering, node: Node) -> Value:
    """``T{a, b}``."""
    wanted = lo.types.resolve(field(node, "type"), lo.frame.context)
    value = lo.evaluate(field(node, "value"))
    assert isinstance(value, InitList)
    place = lo.new_place("temporary", wanted)
    initialise_object(lo, place, value, node)
    return lo.load(place, node)


def constructed(lo: Lowering, wanted: ClassType, arguments: list[Argument], node: Node) -> Value:
    """A new object of class ``wanted``."""
    place = lo.new_place("temporary", wanted)
    construct(lo, place, arguments, node)
    return lo.load(place, node)


def initialise_object(lo: Lowering, place: Place, values: InitList, node: Node) -> None:
    """``T x{…}``: a constructor if the class has one, else member by member."""
    wanted = place.type
    if isinstance(wanted, ClassType) and _constructors(wanted):
        construct(lo, place, [Argument(node, None, item) for item in values.items], node)
    else:
        lo.initialise(place, values, node)


def _constructors(wanted: ClassType) -> list[FunctionDecl]:
    name = wanted.decl.name
    if name in wanted.decl.declared and name not in wanted.decl.methods:
        return []
    return wanted.decl.methods.get(name, [])


def construct(lo: Lowering, place: Place, arguments: list[Argument], node: Node) -> None:
    """Default member initialisers, bases and members, then the constructor that fits."""
    wanted = place.type
    if isinstance(wanted, ArrayType) and not arguments:
        if isinstance(wanted.element, ArrayType | ClassType):
            for position in range(wanted.length):
                construct(lo, place.member(f"[{position}]", wanted.element), [], node)
        return
    if not isinstance(wanted, ClassType):
        if arguments:
            raise lo.unsupported(f"{wanted} made of {len(arguments)} values", node)
        return
    wanted.decl.check()
    _refuse_destructor(lo, wanted, node)
    first = arguments[0].get(lo) if len(arguments) == 1 else None
    if isinstance(first, Record | Opaque) and first.type == wanted:
        lo.assign(place, first, node)
        return
    constructors = _constructors(wanted)
    if not constructors:
        if arguments or wanted.decl.name in wanted.decl.declared:
            raise lo.unsupported(f"call of the constructor of {wanted}", node)
        _default_members(lo, place, wanted, frozenset(), node)
        return
    decl = _overload(lo, constructors, len(arguments), str(wanted), node)
    initialisers = [
        item for child in named(decl.node) if child.type == "field_initializer_list" for item in named(child)
    ]
    named_members = frozenset(part_name(flatten(named(item)[0])[-1]) for item in initialisers)

    def prologue() -> None:
        _default_members(lo, place, wanted, named_members, node)
        for item in initialisers:
            _member_initialiser(lo, place, wanted, item)

    invoke(lo, decl, wanted, place, arguments, node, None, prologue)


def _refuse_destructor(lo: Lowering, wanted: ClassType, node: Node) -> None:
    """Destructors are not run, so one that does something must not be there."""
    name = f"~{wanted.decl.name}"
    bodies = [named(method.body) for method in wanted.decl.methods.get(name, [])]
    if any(bodies) or (name in wanted.decl.declared and not bodies):
        raise lo.unsupported(f"{wanted}, whose destructor does something", node)


def _default_members(
    lo: Lowering, place: Place, wanted: ClassType, skipped: frozenset[str], node: Node
) -> None:
    for base in lo.types.bases(wanted):
        if isinstance(base, ClassType) and base.decl.name not in skipped:
            construct(lo, Place(place.location, base), [], node)
    for member in wanted.decl.fields:
        if member.name in skipped:
            continue
        target = member_place(lo, place, member.name)
        assert target is not None
        if member.default is not None:
            lo.default_member(target, wanted, member)
        elif isinstance(target.type, ArrayType | ClassType):
            construct(lo, target, [], node)


def _member_initialiser(lo: Lowering, place: Place, wanted: ClassType, item: Node) -> None:
    """``member(values)`` or ``member{values}`` in a constructor's list; also of a base class."""
    name_node, values = named(item)[0], named(item)[1]
    name = part_name(flatten(name_node)[-1])
    target = member_place(lo, place, name)
    if target is None:
        for base in lo.types.bases(wanted):
            if isinstance(base, ClassType) and base.decl.name == name:
                target = Place(place.location, base)
    if target is None:
        raise lo.unsupported(f"initialiser of {name}", item)
    arguments = [
        Argument(n, p, None if p is not None else lo.evaluate(n))
        for n in named(values)
        for p in (place_of(lo, n),)
    ]
    initialise_from(lo, target, arguments, values.type == "initializer_list", item)


def initialise_from(lo: Lowering, target: Place, arguments: list[Argument], braces: bool, node: Node) -> None:
    """``T target(arguments)`` or, with ``braces``, ``T target{arguments}``."""
    if braces:
        items = InitList(tuple(a.get(lo) for a in arguments), lo.span(node))
        if isinstance(target.type, IntType | PointerType):
            lo.assign(target, items, node)
        else:
            initialise_object(lo, target, items, node)
    elif isinstance(target.type, ClassType):
        construct(lo, target, arguments, node)
    elif len(arguments) == 1:
        value = arguments[0].get(lo)
        if isinstance(target.type, OpaqueType) and not isinstance(value, Record | Opaque):
            raise lo.unsupported(f"call of the constructor of {target.type}", node)
        lo.assign(target, value, node)
    elif not arguments:
        lo.initialise(target, InitList((), lo.span(node)), node)
    else:
        raise lo.unsupported(f"{target.type} made of {len(arguments)} values", node)


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
            return lower_contract(lo, contract, [a.get(lo) for a in _arguments(lo, node)], node)
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
            return lower_contract(lo, contract, [a.get(lo) for a in _arguments(lo, node)], node)
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
        raise lo.unsupported(f"call of {holder}::{name}, whose body the sources lack", node)
    decl = _overload(lo, methods, len(_argument_nodes(node)), name, node)
    if decl.virtual:
        raise lo.unsupported(f"call of {holder}::{name}, which is virtual", node)
    target = None
    if not decl.static:
        if this is None:
            raise lo.unsupported(f"call of {holder}::{name} without an object", node)
        target = Place(this.location, holder)
    return invoke(lo, decl, holder, target, _arguments(lo, node), node, part)


def _find_methods(lo: Lowering, owner: ClassType, name: str) -> tuple[ClassType, list[FunctionDecl]] | None:
    if name in owner.decl.methods or name in owner.decl.declared:
        return owner, owner.decl.methods.get(name, [])
    for base in lo.types.bases(owner):
        found = _find_methods(lo, base, name) if isinstance(base, ClassType) else None
        if found is not None:
            return found
    return None


# --- inlining ---------------------------------------------------------------------------------


def _overload(lo: Lowering, found: list[FunctionDecl], count: int, name: str, node: Node) -> FunctionDecl:
    fitting = [f for f in found if len([d for d in f.defaults if d is None]) <= count <= len(f.parameters)]
    if not fitting:
        raise lo.unsupported(f"call of {name} with {count} arguments", node)
    if len(fitting) > 1:
        places = ", ".join(f.span.place for f in fitting)
        raise lo.unsupported(f"call of {name}, which is overloaded ({places})", node)
    return fitting[0]


def invoke(
    lo: Lowering,
    decl: FunctionDecl,
    owner: ClassType | None,
    this: Place | None,
    arguments: list[Argument],
    node: Node,
    part: Node | None,
    prologue: Callable[[], None] | None = None,
) -> Value:
    """Inline a call: bind template and ordinary parameters, run the body, give back its result."""
    decl.check()
    if any(frame.function is decl for frame in lo.frames):
        raise lo.unsupported(f"recursion: call of {decl.name}", node)
    here = lo.span(node)
    site = Span(here.file, here.line, here.column)
    context = Context(decl.source, decl.namespace, owner, _bindings(lo, decl, owner, arguments, node, part))
    frame = Frame(context, (*lo.frame.calls, site), this, function=decl)
    bound = [_bound(lo, decl, i, arguments, frame, node) for i in range(len(decl.parameters))]
    with lo.entered(frame, node):
        result_type = _result_type(lo, decl)
        if result_type != VOID:
            frame.result = lo.new_place(f"result of {decl.name}", result_type)
        for name, place in bound:
            frame.scopes[-1][name] = place
        if prologue is not None:
            prologue()
        lo.execute(decl.body)
    if frame.result is None or prologue is not None:
        return NOTHING
    value = lo.store.get(frame.result.location)
    if isinstance(frame.result.type, IntType | PointerType) and not _is_value(value):
        return Poison(f"{decl.name} may end without a result")
    return lo.load(frame.result, node)


def _is_value(value: Value | None) -> bool:
    return value is not None and not isinstance(value, Poison)


def _result_type(lo: Lowering, decl: FunctionDecl) -> Type | None:
    """The declared result type; None for ``auto``, whose value says it."""
    type_node = decl.node.child_by_field_name("type")
    if type_node is None:
        return VOID
    if type_node.type == "placeholder_type_specifier":
        return None
    context = lo.frame.context
    declarator = decl.node.child_by_field_name("declarator")
    pointer = declarator if declarator is not decl.declarator else None
    return lo.types.declared(lo.types.resolve(type_node, context), pointer, context)


def _bindings(
    lo: Lowering,
    decl: FunctionDecl,
    owner: ClassType | None,
    arguments: list[Argument],
    node: Node,
    part: Node | None,
) -> Mapping[str, Binding]:
    bindings: dict[str, Binding] = {}
    if owner is not None:
        bindings = dict(owner.bindings)
        own = owner.bindings[len(owner.bindings) - len(owner.decl.templates) :]
        for parameter, (_, value) in zip(decl.class_templates, own, strict=False):
            bindings[parameter.name] = value
    given = part.child_by_field_name("arguments") if part is not None else None
    explicit = named(given) if given is not None else []
    inside = Context(decl.source, decl.namespace, owner, bindings)
    for position, parameter in enumerate(decl.templates):
        where, source = lo.frame.context, explicit[position] if position < len(explicit) else None
        if source is None:
            deduced = _deduced(lo, decl, parameter.name, arguments)
            if deduced is not None:
                bindings[parameter.name] = deduced
                continue
            where, source = inside, parameter.default
        if source is None:
            raise lo.unsupported(
                f"call of {decl.name}: template argument {parameter.name} is not deduced", node
            )
        if parameter.type_node is None:
            bindings[parameter.name] = lo.types.resolve(source, where)
        elif where is inside:
            bindings[parameter.name] = lo.constant(source, inside)
        else:
            bindings[parameter.name] = lo.integer(lo.evaluate(source), source)
    return bindings


def _deduced(lo: Lowering, decl: FunctionDecl, name: str, arguments: list[Argument]) -> Binding | None:
    """A template type that a parameter ``T x``, ``T& x`` or ``T* x`` shows."""
    for parameter, argument in zip(decl.parameters, arguments, strict=False):
        if text_of(parameter.child_by_field_name("type")) != name:
            continue
        found = _type_of(argument.get(lo))
        declarator = parameter.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "pointer_declarator":
            found = found.target if isinstance(found, PointerType) else None
        if found is not None:
            return found
    return None


def _type_of(value: Value) -> Type | None:
    match value:
        case Pointer(target=target):
            return PointerType(target) if target is not None else IntType(CType.U64)
        case PlacePointer(place=place):
            return PointerType(place.type) if place.type is not None else None
        case Record(type=found) | Opaque(type=found):
            return found
    return IntType(value.type) if isinstance(value, Expr) else None


def _bound(
    lo: Lowering,
    decl: FunctionDecl,
    position: int,
    arguments: list[Argument],
    frame: Frame,
    node: Node,
) -> tuple[str, Place]:
    """Name and place of one parameter: the argument's own place for a reference."""
    parameter = decl.parameters[position]
    declarator = parameter.child_by_field_name("declarator")
    name, wanted, reference = parameter_type(lo, parameter, frame.context)
    if position >= len(arguments):
        default = decl.defaults[position]
        assert default is not None
        with lo.entered(frame, default):
            argument = Argument(default, None, lo.evaluate(default))
    else:
        argument = arguments[position]
    if reference and argument.place is not None and _same(argument.place.type, wanted):
        return name, Place(argument.place.location, argument.place.type or wanted)
    place = lo.new_place(name, wanted)
    value = argument.get(lo)
    source = argument.node if declarator is None or position < len(arguments) else node
    if isinstance(value, InitList) and isinstance(wanted, ClassType):
        initialise_object(lo, place, value, source)
    else:
        lo.assign(place, value, source)
    return name, place


def _same(have: Type | None, wanted: Type | None) -> bool:
    """Whether a reference can bind to the object itself, without a conversion."""
    return have is None or wanted is None or have == wanted or not isinstance(wanted, IntType)


def parameter_type(lo: Lowering, parameter: Node, context: Context) -> tuple[str, Type | None, bool]:
    """The name of a parameter, its type (None for ``auto``), and whether it is a reference."""
    declarator = parameter.child_by_field_name("declarator")
    reference = "reference_declarator" in (declarator.type if declarator is not None else "")
    name = text_of(declared_name(declarator)) if declarator is not None else ""
    type_node = field(parameter, "type")
    if type_node.type == "placeholder_type_specifier":
        return name, None, reference
    wanted = lo.types.declared(lo.types.resolve(type_node, context), declarator, context)
    if isinstance(wanted, ArrayType) and not reference:
        wanted = PointerType(wanted.element)
    return name, wanted, reference
