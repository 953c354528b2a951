"""Objects: default member initialisers, constructors, braces, copies.

`copy_into` is what every initialisation goes through; `statements` uses `initialise_from` for
declarations, `calls` uses `constructed` for temporaries. Code that a class has for making, copying
or destroying its objects is either run here or refused.
"""

from __future__ import annotations

from tree_sitter import Node

from ..errors import SourceError
from ..expr import Const
from .arguments import Argument, constructors, evaluated, method, value_argument
from .classes import check_members
from .declarations import FieldDecl, FunctionDecl, flatten, part_name
from .inline import invoke
from .lowering import Lowering
from .parse import named, text_of
from .places import field, member_place
from .state import Frame
from .types import BUILTIN_SIZES, VOID, ArrayType, ClassType, IntType, OpaqueType, PointerType
from .values import InitList, Null, Opaque, Place, Poison, Record, Value


def copy_into(lo: Lowering, place: Place, value: Value, node: Node) -> None:
    """``T x = value``, a parameter, a result, a member: convert, construct or copy."""
    wanted = place.type
    if isinstance(value, InitList) and not isinstance(wanted, IntType | PointerType):
        initialise_object(lo, place, value, node)
    elif isinstance(wanted, ClassType) and not _is_object(lo, value, wanted):
        construct(lo, place, [value_argument(node, value)], node)
    else:
        lo.assign(place, value, node)


def _is_object(lo: Lowering, value: Value, wanted: ClassType) -> bool:
    return isinstance(value, Record | Opaque) and value.type in (wanted, None)


# --- whole objects ----------------------------------------------------------------------------


def compound_literal(lo: Lowering, node: Node) -> Value:
    """``T{a, b}``."""
    wanted = lo.types.resolve(field(node, "type"), lo.frame.context)
    place = lo.new_place("temporary", wanted)
    initialise_from(lo, place, evaluated(lo, named(field(node, "value"))), True, node)
    return lo.load(place, node)


def constructed(lo: Lowering, wanted: ClassType, arguments: list[Argument], node: Node) -> Value:
    """A new object of class ``wanted``."""
    place = lo.new_place("temporary", wanted)
    initialise_from(lo, place, arguments, False, node)
    return lo.load(place, node)


def initialise_from(lo: Lowering, target: Place, arguments: list[Argument], braces: bool, node: Node) -> None:
    """``T target(arguments)`` or, with ``braces``, ``T target{arguments}``."""
    wanted = target.type
    if not arguments and not (isinstance(wanted, ClassType) and constructors(wanted)):
        zero(lo, target, node)
    elif isinstance(wanted, ClassType) and (not braces or constructors(wanted)):
        construct(lo, target, arguments, node)
    elif braces and not isinstance(wanted, IntType | PointerType):
        initialise_object(lo, target, InitList(tuple(a.get(lo) for a in arguments), lo.span(node)), node)
    elif len(arguments) == 1:
        value = arguments[0].get(lo)
        if isinstance(wanted, OpaqueType) and not isinstance(value, Record | Opaque):
            raise lo.unsupported(f"call of the constructor of {wanted}", node)
        lo.copy_into(target, value, node)
    else:
        raise lo.unsupported(f"{wanted} made of {len(arguments)} values", node)


def construct(lo: Lowering, place: Place, arguments: list[Argument], node: Node) -> None:
    """Bases and members in their order, then the body of the constructor that fits."""
    wanted = place.type
    if isinstance(wanted, ArrayType) and not arguments:
        if isinstance(wanted.element, ArrayType | ClassType | OpaqueType):
            for position in range(wanted.length):
                construct(lo, place.member(f"[{position}]", wanted.element), [], node)
        return
    if isinstance(wanted, OpaqueType) and not arguments:
        expect_plain(lo, wanted, node)
        return
    if not isinstance(wanted, ClassType):
        if arguments:
            raise lo.unsupported(f"{wanted} made of {len(arguments)} values", node)
        return
    _check_class(lo, wanted, node)
    if len(arguments) == 1 and _is_object(lo, arguments[0].value, wanted):
        lo.assign(place, arguments[0].get(lo), node)
        return
    if not constructors(wanted):
        if arguments or wanted.decl.name in wanted.decl.declared:
            raise lo.unsupported(f"call of the constructor of {wanted}", node)
        _members(lo, place, wanted, {}, node)
        return
    decl = method(lo, wanted, wanted.decl.name, len(arguments), node)
    if "initializer_list" in text_of(decl.declarator):
        raise lo.unsupported(f"call of the constructor of {wanted}, which takes a list", node)
    initialisers = _initialisers(lo, decl)
    invoke(
        lo, decl, wanted, place, arguments, node, None,
        lambda: _members(lo, place, wanted, initialisers, node),
    )  # fmt: skip


def _check_class(lo: Lowering, wanted: ClassType, node: Node) -> None:
    """Refuse classes whose objects we could not make: hidden members, destructors that do something."""
    wanted.decl.check()
    check_members(lo.types, wanted)
    name = f"~{wanted.decl.name}"
    bodies = [named(destructor.body) for destructor in wanted.decl.methods.get(name, [])]
    if any(bodies) or (name in wanted.decl.declared and not bodies):
        raise lo.unsupported(f"{wanted}, whose destructor does something", node)


def expect_plain(lo: Lowering, wanted: OpaqueType, node: Node) -> None:
    """Refuse to make an object of an unknown type, which may do something, unless facts say it does not."""
    name = wanted.name
    if name in lo.facts.plain_types:
        lo.usage.plain_types.add(name)
        types = ", ".join(sorted(lo.usage.plain_types))
        lo.usage.facts["plain", ""] = f"making and destroying objects does nothing: {types}"
    elif wanted != VOID and name not in BUILTIN_SIZES and name not in lo.facts.sizes:
        lo.index.check_hidden(name.split("::")[0])
        missing = lo.shared.sources.missing
        where = f"; not found: {', '.join(missing)}, see -I" if missing else ""
        raise lo.unsupported(
            f"an object of type {name}, not declared{where} (if it does nothing: facts, plain_types)",
            node,
        )


# --- members ----------------------------------------------------------------------------------


def _initialisers(lo: Lowering, decl: FunctionDecl) -> dict[str, Node]:
    """The items of a constructor's initialiser list, by the member or base that they name."""
    found: dict[str, Node] = {}
    for child in named(decl.node):
        for item in named(child) if child.type == "field_initializer_list" else ():
            found[part_name(flatten(named(item)[0])[-1])] = item
    return found


def _members(
    lo: Lowering, place: Place, wanted: ClassType, initialisers: dict[str, Node], node: Node
) -> None:
    """Bases and members in the order of their declaration, whatever the order of the initialisers."""
    known = {member.name for member in wanted.decl.fields}
    for base in lo.types.bases(wanted):
        if isinstance(base, OpaqueType):
            expect_plain(lo, base, node)
        if not isinstance(base, ClassType):
            continue
        known.add(base.decl.name)
        item = initialisers.get(base.decl.name)
        if item is not None:
            _member_initialiser(lo, Place(place.location, base), item)
        else:
            construct(lo, Place(place.location, base), [], node)
    for name, item in initialisers.items():
        if name not in known:
            raise lo.unsupported(f"initialiser of {name}", item)
    for member in wanted.decl.fields:
        target = member_place(lo, place, member.name)
        assert target is not None
        item = initialisers.get(member.name)
        if item is not None:
            _member_initialiser(lo, target, item)
        elif member.default is not None:
            default_member(lo, target, wanted, member)
        else:
            construct(lo, target, [], node)


def _member_initialiser(lo: Lowering, target: Place, item: Node) -> None:
    """``member(values)`` or ``member{values}`` in a constructor's list; also of a base class."""
    values = named(item)[1]
    initialise_from(lo, target, evaluated(lo, named(values)), values.type == "initializer_list", item)


def default_member(lo: Lowering, target: Place, owner: ClassType, member: FieldDecl) -> None:
    """Run the default initialiser of a data member."""
    assert member.default is not None
    this = Place(target.location[:-1], owner)
    frame = Frame(lo.types.inside(owner), lo.frame.calls, this)
    with lo.entered(frame, member.default):
        lo.copy_into(target, lo.evaluate(member.default), member.default)


# --- braces -----------------------------------------------------------------------------------


def initialise_object(lo: Lowering, place: Place, values: InitList, node: Node) -> None:
    """Fill ``place`` from ``{…}``: a constructor if its class has one, else member by member."""
    match place.type:
        case ArrayType(element=element, length=length):
            _expect_count(lo, values, length, place, node)
            for position in range(length):
                item = values.items[position] if position < len(values.items) else None
                _initialise_member(lo, place.member(f"[{position}]", element), item, node)
        case ClassType() as owner:
            _initialise_class(lo, place, owner, values, node)
        case OpaqueType() as opaque:
            _initialise_opaque(lo, place, opaque, values, node)
        case None:
            lo.store[place.location] = Poison("members of an object of unknown type", True)
        case _:
            _expect_count(lo, values, 1, place, node)
            item = values.items[0] if values.items else None
            _initialise_member(lo, place, item, node)


def zero(lo: Lowering, place: Place, node: Node) -> None:
    """``T x{}`` or ``T()``."""
    match place.type:
        case IntType(ctype=ctype):
            lo.store[place.location] = Const(0, ctype)
        case PointerType():
            lo.store[place.location] = Null()
        case _:
            initialise_object(lo, place, InitList((), lo.span(node)), node)


def _initialise_member(lo: Lowering, place: Place, item: Value | None, node: Node) -> None:
    if item is not None:
        lo.copy_into(place, item, node)
    else:
        zero(lo, place, node)


def _initialise_class(lo: Lowering, place: Place, owner: ClassType, values: InitList, node: Node) -> None:
    _check_class(lo, owner, node)
    if constructors(owner) or owner.decl.name in owner.decl.declared:
        construct(lo, place, [value_argument(node, item) for item in values.items], node)
        return
    if len(values.items) == 1 and _is_object(lo, values.items[0], owner):
        lo.assign(place, values.items[0], node)
        return
    if owner.decl.bases:
        if values.items:
            raise lo.unsupported(f"braces for {owner}, which has a base class", node)
        _members(lo, place, owner, {}, node)
        return
    _expect_count(lo, values, len(owner.decl.fields), place, node)
    for position, member in enumerate(owner.decl.fields):
        target = place.member(member.name, lo.types.field_type(owner, member))
        if position < len(values.items):
            lo.copy_into(target, values.items[position], node)
        elif member.default is not None:
            default_member(lo, target, owner, member)
        else:
            _initialise_member(lo, target, None, node)


def _initialise_opaque(lo: Lowering, place: Place, opaque: OpaqueType, values: InitList, node: Node) -> None:
    expect_plain(lo, opaque, node)
    if not values.items:
        return
    order = lo.facts.field_order.get(opaque.name)
    if order is None or len(order) < len(values.items):
        lo.store[place.location] = Poison(
            f"the order of the members of {opaque.name} (give it in facts, field_order)", True
        )
        return
    lo.usage.facts["field_order", opaque.name] = f"the members of {opaque.name} are {', '.join(order)}"
    for declared, item in zip(order, values.items, strict=False):
        words = declared.split()
        member_type = lo.named_type(words[0]) if len(words) > 1 else None
        lo.copy_into(place.member(words[-1], member_type), item, node)


def _expect_count(lo: Lowering, values: InitList, most: int, place: Place, node: Node) -> None:
    if len(values.items) > most:
        raise SourceError(f"{len(values.items)} values for {place.type}, which holds {most}", lo.span(node))
