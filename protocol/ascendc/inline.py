"""Inlining: a function of the sources is run at its call, with its parameters bound.

Used by `objects` for constructors and by `calls` for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ..cinteger import CType
from ..expr import Expr
from ..program import Span
from .declarations import FunctionDecl, declared_name
from .lowering import Frame, Lowering
from .parse import named, text_of
from .places import field, place_of
from .types import VOID, ArrayType, Binding, ClassType, Context, IntType, PointerType, Type
from .values import NOTHING, InitList, Opaque, Place, PlacePointer, Pointer, Poison, Record, Value


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


def argument_nodes(node: Node) -> list[Node]:
    """The argument nodes of a call."""
    return named(field(node, "arguments"))


def arguments_of(lo: Lowering, node: Node) -> list[Argument]:
    """The arguments of a call, evaluated."""
    found = []
    for argument in argument_nodes(node):
        place = place_of(lo, argument)
        value = None if place is not None else lo.evaluate(argument)
        found.append(Argument(argument, place, value))
    return found


def constructors(wanted: ClassType) -> list[FunctionDecl]:
    """The constructors that the class declares."""
    name = wanted.decl.name
    if name in wanted.decl.declared and name not in wanted.decl.methods:
        return []
    return wanted.decl.methods.get(name, [])


def overload(lo: Lowering, found: list[FunctionDecl], count: int, name: str, node: Node) -> FunctionDecl:
    """The one function of ``found`` that takes ``count`` arguments."""
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
    first = lo.next_root
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
    value = _result(lo, decl, frame, node)
    lo.forget(first)
    return value


def _result(lo: Lowering, decl: FunctionDecl, frame: Frame, node: Node) -> Value:
    if frame.result is None:
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
    if isinstance(value, InitList) and isinstance(wanted, ClassType) and constructors(wanted):
        raise lo.unsupported(f"braces that construct a {wanted} as an argument", source)
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
