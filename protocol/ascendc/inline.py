"""Inlining: a function of the sources is run at its call, with its parameters bound.

Used by `objects` for constructors and by `calls` for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from ..cinteger import CType
from ..expr import Expr
from ..program import Span
from .arguments import Argument
from .declarations import FunctionDecl, declared_name
from .lowering import Lowering
from .parse import named, text_of
from .places import field, symbol
from .references import bind, binds_temporaries, is_reference, same_object
from .state import Frame
from .types import VOID, ArrayType, Binding, ClassType, Context, IntType, OpaqueType, PointerType, Type
from .values import NOTHING, Opaque, Place, PlacePointer, Pointer, Poison, Record, Value


def invoke(
    lo: Lowering,
    decl: FunctionDecl,
    owner: ClassType | None,
    this: Place | None,
    arguments: list[Argument],
    node: Node,
    part: Node | None,
    prologue: Callable[[], None] | None = None,
) -> Place | Value:
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
        result_type, frame.returns_reference = _result_type(lo, decl)
        if result_type != VOID and not frame.returns_reference:
            frame.result = lo.new_place(re.sub(r"\W+", "_", f"{decl.name}_result"), result_type)
        for name, place in bound:
            frame.scopes[-1][name] = place
        if prologue is not None:
            prologue()
        lo.execute(decl.body)
    if frame.returns_reference:
        if frame.referred is None or int(frame.referred.location[0]) >= first:
            raise lo.unsupported(f"call of {decl.name}, which returns a reference to a local", node)
        lo.forget(first)
        return _seen_as(lo, decl, frame.referred, result_type, node)
    value = _result(lo, decl, frame, node)
    lo.forget(first)
    return value


def _seen_as(lo: Lowering, decl: FunctionDecl, place: Place, wanted: Type | None, node: Node) -> Place:
    """The place that a function returned by reference, as the type it declares."""
    same = same_object(lo, place, wanted, node)
    if same is None:
        raise lo.unsupported(f"call of {decl.name}, which returns a {place.type} as a {wanted}&", node)
    return same


def _result(lo: Lowering, decl: FunctionDecl, frame: Frame, node: Node) -> Value:
    if frame.result is None:
        return NOTHING
    value = lo.store.get(frame.result.location)
    if isinstance(frame.result.type, IntType | PointerType) and not _is_value(value):
        return Poison(f"{decl.name} may end without a result")
    return lo.load(frame.result, node)


def _is_value(value: Value | None) -> bool:
    return value is not None and not isinstance(value, Poison)


def _result_type(lo: Lowering, decl: FunctionDecl) -> tuple[Type | None, bool]:
    """The declared result type, None for ``auto``, whose value says it; and whether it is a reference."""
    type_node = decl.node.child_by_field_name("type")
    if type_node is None:
        return VOID, False
    context = lo.frame.context
    trailing = next((c for c in named(decl.declarator) if c.type == "trailing_return_type"), None)
    if trailing is not None:
        descriptor = named(trailing)[0]
        type_node = descriptor.child_by_field_name("type")
        declarator = descriptor.child_by_field_name("declarator")
        reference = is_reference(declarator)
        if type_node is None:
            raise lo.unsupported(f"{decl.name}, whose result type is `{text_of(trailing)}`", decl.node)
    else:
        declarator = decl.node.child_by_field_name("declarator")
        reference = is_reference(declarator)
    if type_node.type == "placeholder_type_specifier" and text_of(type_node) == "auto":
        return None, reference
    return lo.types.declared(lo.types.resolve(type_node, context), declarator, context), reference


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
        if decl.class_templates:  # the definition names the class's parameters itself
            for name, _ in own:
                bindings.pop(name, None)
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
            continue
        if text_of(parameter.type_node).split("::")[-1] in ("pipe_t", "HardEvent"):
            with lo.entered(Frame(where, lo.frame.calls), source):
                bindings[parameter.name] = OpaqueType(symbol(lo, source))
            continue
        value = lo.constant(source, inside) if where is inside else lo.integer(lo.evaluate(source), source)
        bindings[parameter.name] = lo.types.argument(parameter, value, inside, lo.span(node))
    return bindings


def _deduced(lo: Lowering, decl: FunctionDecl, name: str, arguments: list[Argument]) -> Binding | None:
    """A template type that a parameter ``T x``, ``T& x`` or ``T* x`` shows."""
    for parameter, argument in zip(decl.parameters, arguments, strict=False):
        if text_of(parameter.child_by_field_name("type")) != name:
            continue
        found = _type_of(lo, argument)
        declarator = parameter.child_by_field_name("declarator")
        if isinstance(found, ArrayType) and not is_reference(declarator):
            found = None  # it would decay to a pointer
        if declarator is not None and declarator.type == "pointer_declarator":
            found = found.target if isinstance(found, PointerType) else None
        if found is not None:
            return found
    return None


def _type_of(lo: Lowering, argument: Argument) -> Type | None:
    if isinstance(argument.outcome, Place) and argument.outcome.type is not None:
        return argument.outcome.type
    value = argument.get(lo)
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
            outcome = lo.designate(default)
            argument = Argument(default, outcome, lo.value(outcome, default))
    else:
        argument = arguments[position]
    if reference:
        temporaries = binds_temporaries(parameter, declarator)
        return name, bind(lo, name, wanted, temporaries, argument.outcome, argument.node)
    place = lo.new_place(name, wanted)
    lo.copy_into(place, argument.get(lo), argument.node)
    return name, place


def parameter_type(lo: Lowering, parameter: Node, context: Context) -> tuple[str, Type | None, bool]:
    """The name of a parameter, its type (None for ``auto``), and whether it is a reference."""
    declarator = parameter.child_by_field_name("declarator")
    reference = is_reference(declarator)
    name = text_of(declared_name(declarator)) if declarator is not None else ""
    type_node = field(parameter, "type")
    if type_node.type == "placeholder_type_specifier":
        return name, None, reference
    wanted = lo.types.declared(lo.types.resolve(type_node, context), declarator, context)
    if isinstance(wanted, ArrayType) and not reference:
        wanted = PointerType(wanted.element)
    return name, wanted, reference
