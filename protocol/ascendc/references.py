"""References: which declarators make one, and what it is bound to.

A reference to a place is that place under another name; a ``const`` one may also name a new place
that holds a converted value or a temporary. Used by `inline` and `statements`.
"""

from __future__ import annotations

from tree_sitter import Node

from ..expr import Expr
from .classes import derives
from .lowering import Lowering
from .parse import named, text_of
from .types import ClassType, IntType, Type
from .values import Memory, Opaque, Outcome, Place


def is_reference(declarator: Node | None) -> bool:
    """Whether ``& name``, ``*& name`` or ``(& name)[n]`` is declared; no other one can hold a ``&``."""
    while declarator is not None and "function_declarator" not in declarator.type:
        if "reference_declarator" in declarator.type:
            return True
        inner = declarator.child_by_field_name("declarator")
        if inner is None and "parenthesized_declarator" in declarator.type:
            inner = next(iter(named(declarator)), None)
        declarator = inner
    return False


def binds_temporaries(declaration: Node, declarator: Node | None) -> bool:
    """Whether the reference that ``declaration`` declares is one to ``const``, or a ``T&&``."""
    pointer: Node | None = None
    while declarator is not None:
        if "reference_declarator" in declarator.type and any(c.type == "&&" for c in declarator.children):
            return True
        if "pointer_declarator" in declarator.type:
            pointer = declarator
        inner = declarator.child_by_field_name("declarator")
        declarator = inner if inner is not None else next(iter(named(declarator)), None)
    return any(text_of(child) == "const" for child in named(pointer or declaration))


def bind(lo: Lowering, name: str, wanted: Type | None, temporaries: bool, to: Outcome, node: Node) -> Place:
    """The place that reference ``name`` to a ``wanted`` (None for ``auto``) names.

    Where C++ would make a temporary, it is made, if the reference accepts one.
    """
    if isinstance(to, Memory):
        raise lo.unsupported(f"{name}, a reference into memory", node)
    if isinstance(to, Place):
        same = same_object(lo, to, wanted, node)
        if same is not None:
            return same
        if not isinstance(wanted, IntType):
            raise lo.unsupported(f"{name}, a reference to {wanted}, bound to a {to.type}", node)
    while node.type == "parenthesized_expression":
        node = named(node)[0]
    if not temporaries or node.type == "conditional_expression":
        raise lo.unsupported(f"{name}, a reference to `{text_of(node)}`, which has no place", node)
    place = lo.new_place(name, wanted)
    value = lo.value(to, node)
    if wanted is None and isinstance(value, Expr):
        place = Place(place.location, IntType(value.type))
    lo.copy_into(place, value, node)
    return place


def same_object(lo: Lowering, to: Place, wanted: Type | None, node: Node) -> Place | None:
    """``to`` itself seen as a ``wanted``, or None where C++ would have to convert."""
    have = to.type
    if have is None and isinstance(wanted, IntType):
        held = lo.held(to)
        if isinstance(held, Opaque):
            have = lo.parameter_type(held, node)
        elif isinstance(held, Expr):
            have = IntType(held.type)
    if wanted is None or have == wanted:
        return Place(to.location, have)
    if have is None:
        return Place(to.location, wanted)
    if isinstance(have, ClassType) and isinstance(wanted, ClassType) and derives(lo.types, have, wanted):
        return Place(to.location, wanted)
    return None
