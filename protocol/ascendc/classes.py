"""Classes and their bases: members by name, what hides what, how objects are copied.

Used by the modules that make, copy and use objects.
"""

from __future__ import annotations

from ..errors import UnsupportedError
from .declarations import FieldDecl, parameters_of
from .parse import text_of
from .types import ArrayType, ClassType, Type, Types


def derives(types: Types, derived: ClassType, base: ClassType) -> bool:
    """Whether ``base`` is a base class of ``derived``."""
    return any(
        isinstance(b, ClassType) and (b == base or derives(types, b, base)) for b in types.bases(derived)
    )


def hierarchy(types: Types, owner: ClassType) -> list[ClassType]:
    """``owner`` and all its known base classes, one that is inherited twice twice."""
    bases = [base for base in types.bases(owner) if isinstance(base, ClassType)]
    return [owner, *(c for base in bases for c in hierarchy(types, base))]


def check_members(types: Types, owner: ClassType) -> None:
    """Refuse a class that has two members of one name: they would share a place."""
    seen: dict[str, FieldDecl] = {}
    for part in hierarchy(types, owner):
        for member in part.decl.fields:
            other = seen.setdefault(member.name, member)
            if other is not member or part.decl.fields.count(member) > 1:
                raise UnsupportedError(
                    f"{owner}, whose members {member.name} of {other.span.place} and "
                    f"{member.span.place} hide each other",
                    member.span,
                )
    if len(hierarchy(types, owner)) != len({id(c.decl) for c in hierarchy(types, owner)}):
        raise UnsupportedError(f"{owner}, which inherits a class twice", owner.decl.span)


def own_copy(types: Types, owner: ClassType) -> ClassType | None:
    """The class in ``owner``, a base or a member that is not copied member by member."""
    if any("operator=" in table for table in (owner.decl.methods, owner.decl.declared)):
        return owner
    context = types.inside(owner)
    for constructor in owner.decl.methods.get(owner.decl.name, []):
        if len(constructor.parameters) != 1:
            continue
        type_node = constructor.parameters[0].child_by_field_name("type")
        assert type_node is not None
        if text_of(type_node) in {t.name for t in constructor.templates}:
            return owner
        if types.resolve(type_node, context) == owner:
            return owner
    for declarator in owner.decl.declared.get(owner.decl.name, []):
        nodes = [p.child_by_field_name("type") for p in parameters_of(declarator)]
        if len(nodes) == 1 and nodes[0] is not None and types.resolve(nodes[0], context) == owner:
            return owner
    parts: list[Type] = types.bases(owner)
    parts += [types.field_type(owner, member) for member in owner.decl.fields]
    for part in parts:
        while isinstance(part, ArrayType):
            part = part.element
        own = own_copy(types, part) if isinstance(part, ClassType) else None
        if own is not None:
            return own
    return None


def find_field(types: Types, owner: ClassType, name: str) -> tuple[ClassType, FieldDecl] | None:
    """The data member ``name`` of ``owner`` or its bases."""
    check_members(types, owner)
    return _find_field(types, owner, name)


def _find_field(types: Types, owner: ClassType, name: str) -> tuple[ClassType, FieldDecl] | None:
    for member in owner.decl.fields:
        if member.name == name:
            return owner, member
    for base in types.bases(owner):
        found = _find_field(types, base, name) if isinstance(base, ClassType) else None
        if found is not None:
            return found
    return None
