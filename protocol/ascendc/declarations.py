"""Declarations: what the index holds, and the nodes that name them.

Used by `types` and the lowering modules; `index` fills it in from syntax trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from tree_sitter import Node

from ..errors import SourceError, UnsupportedError
from ..program import Span
from .parse import SourceFile, descendants, named, text_of

Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """``typename T``, or ``bool B`` with its type node; ``default`` may be None."""

    name: str
    type_node: Node | None
    default: Node | None


Templates = tuple[TemplateParameter, ...]


@dataclass(eq=False, slots=True)
class Declaration:
    """Something with a name: where it stands, and the syntax error that surrounds it, if any."""

    name: str
    namespace: Namespace
    source: SourceFile
    node: Node
    templates: Templates = ()
    broken: Node | None = None

    @property
    def span(self) -> Span:
        """The place of the declaration."""
        return self.source.span(self.node)

    def check(self) -> None:
        """Raise SourceError if a syntax error is in the declaration or around it.

        Raises UnsupportedError for a macro in it that does not stand for an integer.
        """
        node = self.extent
        self.source.check(node)
        if self.broken is not None:
            self.source.check(self.broken)
        if self.source.prepared.uses:
            self.source.check_macros(node.start_byte, node.end_byte, self.elsewhere())

    @property
    def extent(self) -> Node:
        """What decides what the declaration means: with its template header, or the whole enum."""
        outer = self.node.parent
        if outer is not None and self.node.type == "enumerator" and outer.parent is not None:
            return outer.parent
        if outer is not None and outer.type == "template_declaration":
            return outer
        return self.node

    def elsewhere(self) -> list[tuple[int, int]]:
        """Parts of the declaration that are checked when they are used."""
        return []


@dataclass(eq=False, slots=True)
class AliasDecl(Declaration):
    """``using name = type`` or ``typedef type name``; ``declarator`` carries a typedef's ``*``."""

    type_node: Node | None = None
    declarator: Node | None = None


@dataclass(eq=False, slots=True)
class ConstantDecl(Declaration):
    """A constant or enumerator; an enumerator without value is ``offset`` after ``value``'s."""

    type_node: Node | None = None
    value: Node | None = None
    offset: int = 0
    enum: str = ""


@dataclass(eq=False, slots=True)
class FieldDecl(Declaration):
    """A non-static data member."""

    type_node: Node | None = None
    declarator: Node | None = None
    default: Node | None = None
    bits: bool = False


@dataclass(eq=False, slots=True)
class FunctionDecl(Declaration):
    """A function with a body; ``class_templates`` are the names that its own header gives the class's."""

    static: bool = False
    virtual: bool = False
    class_templates: Templates = ()
    declared: Node | None = None
    declared_in: SourceFile | None = None

    @property
    def declarator(self) -> Node:
        """The ``name(parameters)`` part."""
        found = function_declarator(self.node)
        assert found is not None
        return found

    @property
    def parameters(self) -> list[Node]:
        """The parameter declarations; ``(void)`` has none."""
        return parameters_of(self.declarator)

    def check(self) -> None:
        """As for all; also refuse default arguments of another file, whose names are looked up here."""
        Declaration.check(self)
        if self.declared is not None and self.declared_in is not self.source:
            given = [p.child_by_field_name("default_value") for p in parameters_of(self.declared)]
            if any(given):
                raise UnsupportedError(f"{self.name}: default arguments stand in another file", self.span)

    @property
    def defaults(self) -> list[Node | None]:
        """Default arguments, also those that only the declaration inside the class has."""
        own = [p.child_by_field_name("default_value") for p in self.parameters]
        if self.declared is None:
            return own
        inside = [p.child_by_field_name("default_value") for p in parameters_of(self.declared)]
        return [a or b for a, b in zip(own, inside, strict=True)]

    @property
    def body(self) -> Node:
        """The braces."""
        body = self.node.child_by_field_name("body")
        assert body is not None
        return body


@dataclass(eq=False, slots=True)
class ClassDecl(Declaration):
    """A class with its members; methods also from outside the class."""

    bases: list[Node] = field(default_factory=list)
    fields: list[FieldDecl] = field(default_factory=list)
    methods: dict[str, list[FunctionDecl]] = field(default_factory=dict)
    declared: dict[str, list[Node]] = field(default_factory=dict)
    aliases: dict[str, AliasDecl] = field(default_factory=dict)
    constants: dict[str, ConstantDecl] = field(default_factory=dict)
    specialised: bool = False
    unclear: str | None = None
    """Why the names in it cannot be told apart as C++ does; an object of it is refused."""

    def elsewhere(self) -> list[tuple[int, int]]:
        """The bodies of member functions."""
        bodies = [
            node.child_by_field_name("body")
            for node in descendants(self.node)
            if node.type == "function_definition"
        ]
        return [(body.start_byte, body.end_byte) for body in bodies if body is not None]

    @property
    def scope(self) -> Namespace:
        """The namespace of its members."""
        return (*self.namespace, self.name)


D = TypeVar("D", bound=Declaration)

GLOBAL: Namespace = ("::",)
"""As the place of a lookup: the name was written with leading colons."""


@dataclass(slots=True)
class Index:
    """All declarations by name, the entries, and the places where an entry was lost to an error."""

    classes: dict[str, list[ClassDecl]] = field(default_factory=dict)
    functions: dict[str, list[FunctionDecl]] = field(default_factory=dict)
    aliases: dict[str, list[AliasDecl]] = field(default_factory=dict)
    constants: dict[str, list[ConstantDecl]] = field(default_factory=dict)
    entries: list[FunctionDecl] = field(default_factory=list)
    lost: list[tuple[SourceFile, Node]] = field(default_factory=list)
    damaged: list[tuple[SourceFile, Node]] = field(default_factory=list)
    """Declarations with a syntax error inside: they may hide others that follow them."""
    usings: set[Namespace] = field(default_factory=set)
    """Namespaces that a ``using`` opens, anywhere in the sources, as written."""
    namespace_aliases: dict[str, Span] = field(default_factory=dict)

    def find(self, table: dict[str, list[D]], name: str, scope: Sequence[str], here: Namespace) -> list[D]:
        """The declarations that ``scope::name`` means in namespace ``here``; all of one namespace.

        That is the enclosing one, or one that a ``using`` opens, that has it; a name of any other
        namespace is not meant. Which of several is meant depends on where each stands and what opens
        it where, so that is refused: raises UnsupportedError.
        """
        wanted = tuple(scope)
        for part in wanted:
            if part in self.namespace_aliases:
                raise UnsupportedError(f"{part}, a namespace alias", self.namespace_aliases[part])
        if here == GLOBAL:  # `::name`
            return [d for d in table.get(name, ()) if d.namespace == wanted]
        by_base: dict[Namespace, list[D]] = {}
        for declaration in table.get(name, ()):
            base = declaration.namespace[: len(declaration.namespace) - len(wanted)]
            if (*base, *wanted) == declaration.namespace:
                by_base.setdefault(base, []).append(declaration)
        visible = [
            base
            for base in by_base
            if here[: len(base)] == base or any(base[-len(u) :] == u for u in self.usings)
        ]
        if len(visible) > 1:
            places = " and ".join(by_base[base][0].span.place for base in visible)
            raise UnsupportedError(f"{name} is ambiguous: {places}", by_base[visible[0]][0].span)
        return by_base[visible[0]] if visible else []

    def check_hidden(self, name: str) -> None:
        """Raise SourceError if a syntax error may hide the declaration of ``name``."""
        word = re.compile(rb"\b" + re.escape(name.encode()) + rb"\b")
        for source, node in self.damaged:
            if word.search(source.prepared.text, node.start_byte, node.end_byte):
                source.check(node)


def function_declarator(node: Node) -> Node | None:
    """The function declarator inside ``node``'s declarator, past ``*`` and ``&``."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "reference_declarator":
            inner = named(declarator)[0] if named(declarator) else None
        declarator = inner
    return declarator


def declared_name(node: Node | None) -> Node | None:
    """The identifier that a declarator declares."""
    while node is not None and node.type not in _NAMES:
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(iter(named(node)), None)
    return node


_NAMES = frozenset(
    {"identifier", "field_identifier", "type_identifier", "qualified_identifier", "operator_name",
     "destructor_name", "template_function"}
)  # fmt: skip


def parameters_of(declarator: Node) -> list[Node]:
    """The parameter declarations of a function declarator; ``(void)`` has none."""
    parameters = declarator.child_by_field_name("parameters")
    assert parameters is not None
    found = [p for p in named(parameters) if p.type.endswith("parameter_declaration")]
    return [] if len(found) == 1 and text_of(found[0]) == "void" else found


def flatten(node: Node | None) -> list[Node]:
    """The parts of ``A::B<T>::c``, in order; template arguments stay on their part."""
    parts: list[Node] = []
    while node is not None and node.type in ("qualified_identifier", "dependent_type", "dependent_name"):
        if node.type != "qualified_identifier":
            node = next(iter(named(node)), None)
            continue
        scope = node.child_by_field_name("scope")
        if scope is not None:
            parts.append(scope)
        node = node.child_by_field_name("name")
    if node is not None:
        parts.append(node)
    return parts


def is_global(node: Node | None) -> bool:
    """Whether a name begins with ``::``: it is looked up in the global namespace only."""
    return node is not None and node.type == "qualified_identifier" and not node.child_by_field_name("scope")


def part_name(part: Node) -> str:
    """The name of one part, without template arguments."""
    return text_of(part.child_by_field_name("name") or part)


def entry_named(index: Index, name: str | None, files: Iterable[str]) -> list[FunctionDecl]:
    """The entries to check, sorted as the sources have them.

    Raises SourceError where there is none, or none called ``name``: a syntax error if one hides it.
    """
    chosen = [e for e in index.entries if name is None or e.name == name]
    if index.lost and (not chosen or name is None):
        source, node = index.lost[0]
        source.check(node)
        raise SourceError("syntax error: a __global__ function cannot be read", source.span(node))
    if chosen:
        return chosen
    if not index.entries:
        for source, node in index.damaged:
            source.check(node)
        raise SourceError(f"no __global__ function in {', '.join(files)}")
    names = [e.name for e in index.entries]
    close = get_close_matches(name or "", names, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise SourceError(f"no __global__ function {name}; there is {', '.join(names)}{hint}")
