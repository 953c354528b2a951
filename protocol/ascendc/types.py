"""Types of the sources: integers, pointers, known classes with their template arguments, and opaque ones.

Used by `lowering` for declarations, casts and sizes. A type whose declaration was not given is
opaque: it has a name, perhaps a size from facts, and fields that are found by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from ..cinteger import C_NAMES, CType, wrap
from ..errors import SourceError, UnsupportedError
from ..expr import Const, Expr, cast
from ..program import Span
from .declarations import (
    GLOBAL,
    AliasDecl,
    ClassDecl,
    ConstantDecl,
    FieldDecl,
    Index,
    Namespace,
    TemplateParameter,
    Templates,
    flatten,
    is_global,
    part_name,
)
from .facts import Facts
from .parse import SourceFile, named, text_of


@dataclass(frozen=True, slots=True)
class IntType:
    """An integer type."""

    ctype: CType

    def __str__(self) -> str:
        return self.ctype.c_name


@dataclass(frozen=True, slots=True)
class PointerType:
    """A pointer, to bytes of a region or to an object."""

    target: Type

    def __str__(self) -> str:
        return f"{self.target}*"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A fixed number of elements."""

    element: Type
    length: int

    def __str__(self) -> str:
        return f"{self.element}[{self.length}]"


@dataclass(frozen=True, slots=True)
class ClassType:
    """A class of the sources with its template arguments bound, outer ones first."""

    decl: ClassDecl
    bindings: tuple[tuple[str, Binding], ...] = ()

    def __str__(self) -> str:
        arguments = ", ".join(str(value) for _, value in self.bindings)
        return f"{self.decl.name}<{arguments}>" if arguments else self.decl.name


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type whose declaration the sources lack; ``Outer::Inner`` for a member of one."""

    name: str

    def __str__(self) -> str:
        return self.name


Type = IntType | PointerType | ArrayType | ClassType | OpaqueType
Binding = Type | Expr

VOID = OpaqueType("void")
BYTE_POINTER = PointerType(IntType(CType.U8))

BUILTIN_TYPES: Mapping[str, Type] = {
    **{name: IntType(ctype) for name, ctype in C_NAMES.items()},
    "bool": IntType(CType.BOOL),
    "event_t": IntType(CType.I32),
    "TEventID": IntType(CType.I8),
    "GM_ADDR": BYTE_POINTER,  # devkit: __gm__ uint8_t*
    "void": VOID,
}
BUILTIN_SIZES: Mapping[str, int] = {"void": 1, "float": 4, "double": 8, "half": 2}
"""Sizes in bytes of types that are not integers; arithmetic on void* counts bytes, as the compiler's."""

MAX_ALIASES = 50
"""Aliases followed for one name before it counts as circular."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a name is looked up: file, namespace, class and template arguments."""

    source: SourceFile
    namespace: Namespace = ()
    owner: ClassType | None = None
    bindings: Mapping[str, Binding] = field(default_factory=dict)


@dataclass(slots=True)
class Types:
    """Resolves type nodes. ``constant`` computes a template argument, ``used_size`` notes a fact."""

    index: Index
    facts: Facts
    constant: Callable[[Node, Context], Expr]
    used_size: Callable[[str, int], None]
    calls: Callable[[], tuple[Span, ...]]

    # --- resolving --------------------------------------------------------------------------

    def resolve(self, node: Node, context: Context, depth: int = 0) -> Type:
        """The type that ``node`` names in ``context``; never fails for a mere unknown name."""
        if depth > MAX_ALIASES:
            raise UnsupportedError(f"circular alias {text_of(node)}", self._span(node, context))
        match node.type:
            case "type_descriptor":
                base = node.child_by_field_name("type")
                assert base is not None
                declarator = node.child_by_field_name("declarator")
                return self.declared(self.resolve(base, context, depth), declarator, context)
            case "primitive_type" | "sized_type_specifier":
                return self._builtin(node, context)
            case "class_specifier" | "struct_specifier" | "enum_specifier":
                name = node.child_by_field_name("name")
                if node.type == "enum_specifier" or name is None:
                    return IntType(CType.I32)
                return self.resolve(name, context, depth)
            case "placeholder_type_specifier" | "decltype":
                raise UnsupportedError(f"type {text_of(node)} here", self._span(node, context))
        for part in flatten(node):
            use = context.source.macro_at(part)
            if use is not None:
                raise UnsupportedError(f"{use} as a type", self._span(part, context))
        if is_global(node) and not any(p.child_by_field_name("arguments") for p in flatten(node)):
            context = Context(context.source, GLOBAL)
        found = self.lookup(flatten(node), context, depth)
        return found if found is not None else OpaqueType(part_name(flatten(node)[-1]))

    def declared(self, base: Type, declarator: Node | None, context: Context) -> Type:
        """``base`` with the ``*``, ``&`` and ``[n]`` of ``declarator``."""
        while declarator is not None:
            kind = declarator.type.removeprefix("abstract_")
            if kind == "pointer_declarator":
                base = PointerType(base)
            elif kind == "array_declarator":
                size = declarator.child_by_field_name("size")
                base = self._array(base, size, declarator, context)
            elif kind == "function_declarator" and declarator.type.startswith("abstract_"):
                raise UnsupportedError("a function type, or a cast that looks like one",
                                       self._span(declarator, context))  # fmt: skip
            inner = declarator.child_by_field_name("declarator")
            if inner is None and kind in ("reference_declarator", "parenthesized_declarator"):
                inner = next(iter(named(declarator)), None)
            declarator = inner
        return base

    def lookup(self, parts: list[Node], context: Context, depth: int = 0) -> Type | None:
        """The type that ``A::B<T>::C`` names, or None where the sources and builtins know none."""
        names = [part_name(part) for part in parts]
        plain = [part.child_by_field_name("arguments") is None for part in parts]
        for last in range(len(parts) - 1, -1, -1):
            if not all(plain[:last]):
                continue
            found = self._one(parts[last], names[:last], context, depth)
            if found is None:
                continue
            for part in parts[last + 1 :]:
                found = self.member(found, part, context, depth)
            return found
        return None

    def _one(self, part: Node, scope: list[str], context: Context, depth: int) -> Type | None:
        name = part_name(part)
        if not scope:
            bound = context.bindings.get(name)
            if bound is not None:
                return None if isinstance(bound, Expr) else bound
            own = self._own_alias(context.owner, name, depth)
            if own is not None:
                return own
            outer = self._outer_alias(context.owner, name, depth)
            if outer is not None:
                return outer
            if context.owner is not None and name == context.owner.decl.name and part.type != "template_type":
                return context.owner
        here = context.namespace
        if context.owner is not None:
            here = context.owner.decl.scope
        classes = self.index.find(self.index.classes, name, scope, here)
        if classes:
            return self._class(classes, part, context)
        aliases = self.index.find(self.index.aliases, name, scope, here)
        if aliases:
            return self._alias(aliases[0], None, part, context, depth)
        enum = self._enum(name, scope, here, context)
        if enum is not None:
            return enum
        standard = scope == ["std"] and name.endswith("_t")
        return BUILTIN_TYPES.get(name) if not scope or standard else None

    def _enum(self, name: str, scope: list[str], here: Namespace, context: Context) -> Type | None:
        """The integer type that an enumeration has: the one it names, else int."""
        table: dict[str, list[ConstantDecl]] = {name: []}
        owner = context.owner if not scope else None
        for constants in (
            *self.index.constants.values(),
            list(owner.decl.constants.values()) if owner else [],
        ):
            for constant in constants:
                if constant.enum == name and name:
                    outer = constant.namespace[: -1 if constant.namespace[-1:] == (name,) else None]
                    table[name].append(replace(constant, namespace=outer))
        found = self.index.find(table, name, scope, here)
        if not found:
            return None
        if len({constant.node.parent.id if constant.node.parent else 0 for constant in found}) > 1:
            places = " and ".join(sorted({constant.span.place for constant in found}))
            raise UnsupportedError(f"{name} is ambiguous: {places}", found[0].span)
        base = found[0].type_node
        inside = Context(found[0].source, found[0].namespace)
        resolved = IntType(CType.I32) if base is None else self.resolve(base, inside)
        return resolved if isinstance(resolved, IntType) else None

    def member(self, outer: Type, part: Node, context: Context, depth: int = 0) -> Type:
        """The type ``outer::part``."""
        name = part_name(part)
        if isinstance(outer, OpaqueType):
            return OpaqueType(f"{outer.name}::{name}")
        if not isinstance(outer, ClassType):
            raise UnsupportedError(f"{outer}::{name}", self._span(part, context))
        found = self._own_alias(outer, name, depth)
        if found is not None:
            return found
        nested = self.index.find(self.index.classes, name, outer.decl.scope, ())
        if nested:
            return self._class(nested, part, context, outer)
        raise UnsupportedError(f"type {outer}::{name}", self._span(part, context))

    def _own_alias(self, owner: ClassType | None, name: str, depth: int) -> Type | None:
        if owner is None:
            return None
        alias = owner.decl.aliases.get(name)
        if alias is not None:
            return self._alias(alias, owner, None, None, depth)
        for base in self.bases(owner):
            if isinstance(base, ClassType):
                found = self._own_alias(base, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _outer_alias(self, owner: ClassType | None, name: str, depth: int) -> Type | None:
        """An alias of a class that encloses ``owner``."""
        for outer in self.enclosing(owner) if owner is not None else ():
            if name in outer.decl.aliases:
                return self._own_alias(outer, name, depth + 1)
        return None

    def enclosing(self, owner: ClassType) -> list[ClassType]:
        """The classes that ``owner`` is declared in, innermost first."""
        bindings = owner.bindings[: len(owner.bindings) - len(owner.decl.templates)]
        scope, found = owner.decl.namespace, []
        while scope:
            for decl in self.index.classes.get(scope[-1], ()):
                if decl.namespace == scope[:-1]:
                    found.append(ClassType(decl, bindings))
                    bindings = bindings[: len(bindings) - len(decl.templates)]
            scope = scope[:-1]
        return found

    def _alias(
        self,
        alias: AliasDecl,
        owner: ClassType | None,
        part: Node | None,
        context: Context | None,
        depth: int,
    ) -> Type:
        alias.check()
        assert alias.type_node is not None
        inside = Context(alias.source, alias.namespace, owner, dict(owner.bindings) if owner else {})
        if alias.templates and part is not None and context is not None:
            bound = self.bind(alias.templates, part, context, inside)
            inside = Context(alias.source, alias.namespace, owner, {**inside.bindings, **dict(bound)})
        return self.declared(self.resolve(alias.type_node, inside, depth + 1), alias.declarator, inside)

    def _class(
        self, found: list[ClassDecl], part: Node, context: Context, outer: ClassType | None = None
    ) -> ClassType:
        decl = found[0]
        if len(found) > 1 or decl.specialised:
            places = " and ".join(d.span.place for d in found)
            raise UnsupportedError(
                f"{decl.name} is declared more than once or specialised ({places})",
                self._span(part, context),
            )
        if decl.unclear is not None:
            raise UnsupportedError(f"class {decl.name}: {decl.unclear}", self._span(part, context))
        decl.check()
        inside = Context(decl.source, decl.namespace, outer, dict(outer.bindings) if outer else {})
        bound = self.bind(decl.templates, part, context, inside)
        return ClassType(decl, (*(outer.bindings if outer else ()), *bound))

    def bind(
        self, templates: Templates, part: Node, context: Context, inside: Context
    ) -> tuple[tuple[str, Binding], ...]:
        """Template parameters bound to the arguments that ``part`` gives, else to their defaults."""
        arguments = part.child_by_field_name("arguments")
        given = named(arguments) if arguments is not None else []
        if len(given) > len(templates):
            raise SourceError(
                f"{part_name(part)} has {len(templates)} template parameters, {len(given)} given",
                self._span(part, context),
            )
        bound: dict[str, Binding] = dict(inside.bindings)
        result = []
        for position, parameter in enumerate(templates):
            where = Context(inside.source, inside.namespace, inside.owner, bound)
            node: Node | None = parameter.default
            if position < len(given):
                node, where = given[position], context
            if node is None:
                raise UnsupportedError(
                    f"{part_name(part)} without template argument {parameter.name}",
                    self._span(part, context),
                )
            is_type = parameter.type_node is None
            inner = Context(inside.source, inside.namespace, inside.owner, dict(bound))
            value = (
                self.resolve(node, where)
                if is_type
                else self.argument(parameter, self.constant(node, where), inner, self._span(part, context))
            )
            bound[parameter.name] = value
            result.append((parameter.name, value))
        return tuple(result)

    def argument(self, parameter: TemplateParameter, value: Expr, inside: Context, span: Span) -> Expr:
        """``value`` converted to the type that non-type template ``parameter`` declares."""
        assert parameter.type_node is not None
        if parameter.type_node.type == "placeholder_type_specifier":
            return value
        wanted = self.resolve(parameter.type_node, inside)
        if not isinstance(wanted, IntType):
            raise UnsupportedError(f"template parameter {parameter.name} of type {wanted}", span)
        if isinstance(value, Const):
            return Const(wrap(wanted.ctype, value.value), wanted.ctype)
        return cast(wanted.ctype, value)

    # --- members and sizes ------------------------------------------------------------------

    def inside(self, owner: ClassType) -> Context:
        """The context of ``owner``'s members."""
        return Context(owner.decl.source, owner.decl.scope, owner, dict(owner.bindings))

    def bases(self, owner: ClassType) -> list[Type]:
        """The base classes, known or opaque."""
        context = Context(owner.decl.source, owner.decl.namespace, None, dict(owner.bindings))
        return [self.resolve(base, context) for base in owner.decl.bases]

    def field_type(self, owner: ClassType, member: FieldDecl) -> Type:
        """The type of data member ``member`` of ``owner``."""
        assert member.type_node is not None
        if member.bits:
            raise UnsupportedError(f"{owner}::{member.name}, a bit field", member.span)
        context = self.inside(owner)
        return self.declared(self.resolve(member.type_node, context), member.declarator, context)

    def size(self, wanted: Type, span: Span) -> int:
        """``sizeof``; opaque types have one only in facts."""
        match wanted:
            case IntType(ctype=ctype):
                return max(1, ctype.bits // 8)
            case PointerType():
                return 8
            case ArrayType(element=element, length=length):
                return length * self.size(element, span)
            case OpaqueType(name=name):
                if name in self.facts.sizes:
                    self.used_size(name, self.facts.sizes[name])
                    return self.facts.sizes[name]
                if name in BUILTIN_SIZES:
                    return BUILTIN_SIZES[name]
        raise UnsupportedError(f"sizeof({wanted}): give its size in facts", span)

    # --- helpers ----------------------------------------------------------------------------

    def _builtin(self, node: Node, context: Context) -> Type:
        name = " ".join(text_of(node).split())
        if name in BUILTIN_TYPES:
            return BUILTIN_TYPES[name]
        words = sorted(name.split())
        for spelling, ctype in C_NAMES.items():  # the words of a type stand in any order
            if sorted(spelling.split()) == words:
                return IntType(ctype)
        return OpaqueType(name)

    def _array(self, base: Type, size: Node | None, node: Node, context: Context) -> Type:
        length = self.constant(size, context) if size is not None else None
        if not isinstance(length, Const):
            raise UnsupportedError("an array without constant length", self._span(node, context))
        return ArrayType(base, length.value)

    def _span(self, node: Node, context: Context) -> Span:
        return context.source.span(node, self.calls())
