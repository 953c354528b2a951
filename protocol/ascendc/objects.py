"""Objects: default member initialisers, constructors, braces.

Used by `statements` for declarations and by `calls` for temporaries.
"""

from __future__ import annotations

from tree_sitter import Node

from .declarations import flatten, part_name
from .inline import Argument, constructors, invoke, overload
from .lowering import Lowering
from .parse import named
from .places import field, member_place, place_of
from .types import ArrayType, ClassType, IntType, OpaqueType, PointerType
from .values import InitList, Opaque, Place, Record, Value


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
    if isinstance(wanted, ClassType) and constructors(wanted):
        construct(lo, place, [Argument(node, None, item) for item in values.items], node)
    else:
        lo.initialise(place, values, node)


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
    declared = constructors(wanted)
    if not declared:
        if arguments or wanted.decl.name in wanted.decl.declared:
            raise lo.unsupported(f"call of the constructor of {wanted}", node)
        _default_members(lo, place, wanted, frozenset(), node)
        return
    decl = overload(lo, declared, len(arguments), str(wanted), node)
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
