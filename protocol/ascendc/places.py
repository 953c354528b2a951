"""Names and places: what an identifier means, and where an lvalue lives.

Used by `expressions` and `calls`. A name is looked up as C++ does (locals, members, template
arguments, constants of classes and namespaces), then among macros, compiler names and facts.
"""

from __future__ import annotations

from tree_sitter import Node

from ..cinteger import CType, fits, promote, wrap
from ..errors import SourceError
from ..expr import Const, Expr, binary
from ..program import Role
from .classes import find_field, hierarchy
from .declarations import GLOBAL, ConstantDecl, flatten, is_global, part_name
from .lowering import Lowering
from .operators import offset
from .parse import named, text_of
from .references import is_reference
from .state import Frame
from .types import ArrayType, ClassType, Context, IntType, OpaqueType, PointerType, Type
from .values import Memory, Null, Opaque, Outcome, Place, PlacePointer, Pointer, Record, Value


def field(node: Node, name: str) -> Node:
    """The child that the grammar requires as ``name``."""
    child = node.child_by_field_name(name)
    assert child is not None, f"{node.type} without {name}"
    return child


# --- literals ---------------------------------------------------------------------------------

_SUFFIXES = {
    "": (CType.I32, CType.I64, CType.U64),
    "u": (CType.U32, CType.U64),
    "l": (CType.I64, CType.U64),
    "ul": (CType.U64,),
}


def integer_literal(text: str) -> Const | None:
    """A C++ integer literal with the type that it has."""
    digits = text.replace("'", "").lower()
    suffix = "".join(sorted(set(digits[len(digits.rstrip("ul")) :]), reverse=True))
    digits = digits.rstrip("ul")
    try:
        if digits[:1] == "-":
            inner = integer_literal(digits[1:] + suffix)
            ctype = promote(inner.type) if inner is not None else CType.I32
            return Const(wrap(ctype, -inner.value), ctype) if inner is not None else None
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        value = int(digits, 8 if octal else 0)
    except ValueError:
        return None
    types = _SUFFIXES[suffix]
    if digits[:2] in ("0x", "0b") or octal:  # those may also take the unsigned type of a size
        types = {"": (CType.I32, CType.U32, CType.I64, CType.U64), "l": types}.get(suffix, types)
    return next((Const(value, ctype) for ctype in types if fits(ctype, value)), None)


# --- names ------------------------------------------------------------------------------------


def named_outcome(lo: Lowering, node: Node) -> Outcome:
    """The place or value that a name, perhaps a qualified one, means here."""
    parts = flatten(node)
    name = part_name(parts[-1])
    scope = [part_name(part) for part in parts[:-1]]
    macro = _macro(lo, node)
    if macro is not None:
        return macro
    place = variable_place(lo, node)
    if place is not None:
        return place
    if not scope and not is_global(node):
        bound = lo.frame.context.bindings.get(name)
        if isinstance(bound, Expr):
            return bound
    for find in (_class_constant, _free_constant, _builtin_name, _fact_constant):
        value = find(lo, parts, scope, name)
        if value is not None:
            return value
    lo.index.check_hidden(name)
    raise lo.unsupported(f"name {text_of(node)}: neither the sources nor facts have it", node)


def _leads_with_colons(parts: list[Node]) -> bool:
    outer = parts[0].parent
    while outer is not None and outer.type == "qualified_identifier" and not is_global(outer):
        outer = outer.parent
    return is_global(outer)


def _class_constant(lo: Lowering, parts: list[Node], scope: list[str], name: str) -> Value | None:
    found = _member_constant(lo, parts, name)
    return constant_value(lo, *found) if found is not None else None


def _member_constant(lo: Lowering, parts: list[Node], name: str) -> tuple[ConstantDecl, ClassType] | None:
    """The constant ``name`` of a class: of the one that is named, else of this one or one around it."""
    owner = lo.frame.context.owner
    if _leads_with_colons(parts):
        owner = None
    outer: list[ClassType] = [owner, *lo.types.enclosing(owner)] if owner is not None else []
    if len(parts) > 1:
        named_one = lo.types.lookup(parts[:-1], lo.frame.context)
        outer = [named_one] if isinstance(named_one, ClassType) else []
    for scope in outer:
        found = [(c.decl.constants[name], c) for c in hierarchy(lo.types, scope) if name in c.decl.constants]
        if len(found) > 1 and found[0][1] != scope:
            places = " and ".join(constant.span.place for constant, _ in found)
            raise lo.unsupported(f"{name} is ambiguous: {places}", parts[-1])
        if found:
            return found[0]
    return None


def _free_constant(lo: Lowering, parts: list[Node], scope: list[str], name: str) -> Value | None:
    here = GLOBAL if _leads_with_colons(parts) else lo.frame.context.namespace
    found = lo.index.find(lo.index.constants, name, scope, here)
    if len(found) > 1:
        places = " and ".join(d.span.place for d in found)
        raise lo.unsupported(f"{name} is ambiguous: {places}", parts[-1])
    return constant_value(lo, found[0], None) if found else None


def constant_value(lo: Lowering, decl: ConstantDecl, owner: ClassType | None) -> Value:
    """The value of a constant or enumerator, evaluated where it is declared."""
    decl.check()
    context = Context(decl.source, decl.namespace)
    if owner is not None:
        context = lo.types.inside(owner)
    calls_ = lo.frame.calls
    if decl.value is None and not decl.enum and decl.node.type != "enumerator":
        raise lo.unsupported(f"{decl.name}, a constant without value", decl.node)
    with lo.entered(Frame(context, calls_), decl.node):
        value: Value = Const(0, CType.I32) if decl.value is None else lo.evaluate(decl.value)
        if decl.offset:
            value = binary("+", lo.integer(value, decl.node), decl.offset)
        if decl.type_node is None or decl.type_node.type == "placeholder_type_specifier":
            return value
        return lo.converted(value, lo.types.resolve(decl.type_node, context), decl.node)


def _macro(lo: Lowering, node: Node) -> Value | None:
    """The number that a macro stands for; the preprocessor comes before all other meanings."""
    use = lo.frame.context.source.macro_at(node)
    if use is None:
        return None
    literal = integer_literal(use.number) if use.number is not None else None
    if literal is None or node.type == "qualified_identifier":
        raise lo.unsupported(str(use), node)
    return literal


def refuse_macro(lo: Lowering, node: Node) -> None:
    """Refuse a function, member or part of a name that is a macro."""
    use = lo.frame.context.source.macro_at(node)
    if use is not None:
        raise lo.unsupported(str(use), node)


_EVENT_IDS = {f"EVENT_ID{n}": Const(n, CType.I32) for n in range(8)}


def _builtin_name(lo: Lowering, parts: list[Node], scope: list[str], name: str) -> Value | None:
    """Names of the compiler and of the AscendC library."""
    role = {"ASC_IS_AIV": Role.AIV, "ASC_IS_AIC": Role.AIC}.get(name)
    if role is not None:
        return Const(int(lo.role is role), CType.BOOL)
    # devkit: g_coreType == AscendC::AIV is what ASCEND_IS_AIV expands to
    core = {"g_coreType": lo.role, "AIC": Role.AIC, "AIV": Role.AIV}.get(name)
    if core is not None:
        return Const(list(Role).index(core), CType.I32)
    return _EVENT_IDS.get(name)


def _fact_constant(lo: Lowering, parts: list[Node], scope: list[str], name: str) -> Value | None:
    written = "::".join([*scope, name])
    fact = lo.facts.constants.get(written)
    if fact is None:
        return None
    lo.usage.facts["constant", written] = f"{written} = {fact.value} ({fact.type})"
    return lo.converted(Const(fact.value), lo.named_type(fact.type), parts[-1])


def symbol(lo: Lowering, node: Node) -> str:
    """``MTE2_V`` of ``AscendC::HardEvent::MTE2_V``; what a constant or template parameter stands for."""
    base = node.child_by_field_name("type") if node.type == "type_descriptor" else None
    parts = flatten(base or node)
    name = part_name(parts[-1])
    bound = lo.frame.context.bindings.get(name) if len(parts) == 1 else None
    if isinstance(bound, OpaqueType):
        return bound.name
    scope = [part_name(part) for part in parts[:-1]]
    own = _member_constant(lo, parts, name)
    here = GLOBAL if _leads_with_colons(parts) else lo.frame.context.namespace
    found = lo.index.find(lo.index.constants, name, scope, here)
    constant = own[0] if own is not None else found[0] if len(found) == 1 else None
    if constant is None or constant.enum or constant.value is None:
        return name
    constant.check()
    context = Context(constant.source, constant.namespace)
    if own is not None:
        context = lo.types.inside(own[1])
    with lo.entered(Frame(context, lo.frame.calls), node):
        return symbol(lo, constant.value)


# --- places -----------------------------------------------------------------------------------


def variable_place(lo: Lowering, node: Node) -> Place | None:
    """The place of the local variable or member that an unqualified name means."""
    if node.type not in ("identifier", "field_identifier", "type_identifier"):
        return None
    if lo.frame.context.source.macro_at(node) is not None:
        return None
    name = text_of(node)
    for scope in reversed(lo.frame.scopes):
        if name in scope:
            return scope[name]
    this = lo.frame.this
    return member_place(lo, this, name) if this is not None else None


def member_place(lo: Lowering, outer: Place, name: str) -> Place | None:
    """The place of data member ``name``, or None if a known class has no such member."""
    if isinstance(outer.type, ClassType):
        found = find_field(lo.types, outer.type, name)
        if found is None:
            return None
        if is_reference(found[1].declarator):
            raise lo.unsupported(f"{name}, a member that is a reference", found[1].node)
        return outer.member(name, lo.types.field_type(*found))
    if isinstance(outer.type, IntType | PointerType | ArrayType):
        return None
    return outer.member(name, _fact_type(lo, outer.type, name))


def _fact_type(lo: Lowering, outer: Type | None, name: str) -> Type | None:
    """The type that facts give a member of an opaque class, if they do."""
    for declared in lo.facts.field_order.get(outer.name, ()) if isinstance(outer, OpaqueType) else ():
        words = declared.split()
        if words[-1] == name and len(words) > 1:
            return lo.named_type(words[0])
    return None


def object_place(lo: Lowering, node: Node) -> Place:
    """The place of the object that ``node`` denotes; a value is put into a temporary."""
    outcome = lo.designate(node)
    if isinstance(outcome, Place):
        return outcome
    if isinstance(outcome, Memory):
        raise lo.unsupported(f"an object in memory: `{text_of(node)}`", node)
    return temporary(lo, outcome, node)


def temporary(lo: Lowering, value: Value, node: Node) -> Place:
    """A new place that holds ``value``."""
    place_type = value.type if isinstance(value, Record | Opaque) else None
    place = lo.new_place("temporary", place_type)
    if isinstance(value, Opaque):
        lo.store[place.location] = value
    elif isinstance(value, Record):
        for key, member in value.members.items():  # no copy: the value itself
            lo.store[(*place.location, *key)] = member
    else:
        lo.assign(place, value, node)
    return place


def target_place(lo: Lowering, value: Value, node: Node) -> Place | None:
    """What a pointer to an object points to; None for a pointer into a region."""
    match value:
        case PlacePointer(place=place):
            return place
        case Null():
            raise SourceError("a null pointer is dereferenced", lo.span(node))
        case Opaque(path=path, type=PointerType(target=target)):
            return temporary(lo, Opaque(path, target, True), node)
        case Opaque(path=path, type=declared):
            return temporary(lo, Opaque(path, declared, True), node)
    return None


def dereferenced(lo: Lowering, value: Value, node: Node) -> Outcome:
    """``*value``: an object, or a word in memory."""
    place = target_place(lo, value, node)
    if place is not None:
        return place
    if not isinstance(value, Pointer):
        lo.address(value, node)
    assert isinstance(value, Pointer)
    return Memory(value)


def member_access(lo: Lowering, node: Node) -> Outcome:
    """``object.member`` or ``pointer->member``."""
    argument, member = field(node, "argument"), field(node, "field")
    if text_of(field(node, "operator")) == "->":
        outer = target_place(lo, lo.evaluate(argument), node)
        if outer is None:
            raise lo.unsupported(f"member access in memory: `{text_of(node)}`", node)
    else:
        outer = object_place(lo, argument)
    place = member_place(lo, outer, text_of(member))
    if place is None:
        raise lo.unsupported(f"{outer.type} has no member {text_of(member)}", node)
    return place


def element(lo: Lowering, node: Node) -> Outcome:
    """``array[index]``: an element of a local array, or a word in memory."""
    outer = lo.designate(field(node, "argument"))
    is_array = isinstance(outer, Place) and not isinstance(outer.type, PointerType)
    if not isinstance(outer, Place) or not is_array or isinstance(lo.store.get(outer.location), Pointer):
        pointer = lo.value(outer, node)
        return Memory(offset(lo, pointer, "+", subscript(lo, node), node))
    if isinstance(outer.type, ClassType | IntType):
        raise lo.unsupported(f"a subscript of a {outer.type}: `{text_of(node)}`", node)
    inner = outer.type.element if isinstance(outer.type, ArrayType) else None
    index = subscript(lo, node)
    if not isinstance(index, Const):
        raise lo.unsupported(f"an element whose index only a run decides: `{text_of(node)}`", node)
    if isinstance(outer.type, ArrayType) and not 0 <= index.value < outer.type.length:
        raise SourceError(f"index {index.value} of {outer.type}", lo.span(node))
    return outer.member(f"[{index.value}]", inner)


def subscript(lo: Lowering, node: Node) -> Expr:
    indices = named(field(node, "indices"))
    if len(indices) != 1:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    return lo.integer(lo.evaluate(indices[0]), indices[0])
