"""Parsing: prepared sources as syntax trees with places.

Used by `reading`, which finds the files, by `index`, which finds the declarations in the trees, and by
everything that needs the place of a node. The only module, with those that walk nodes, that knows
tree-sitter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from ..errors import SourceError, UnsupportedError
from ..program import Span
from .lexical import span_at
from .macros import Macros, MacroUse
from .prepass import Prepared, prepare


@dataclass(eq=False, slots=True)
class SourceFile:
    """A file that was read: its name as the user wrote it, its prepared text and its tree.

    An expression from facts has the ``place`` where the sources led to it.
    """

    name: str
    prepared: Prepared
    root: Node
    place: Span | None = None

    def span(self, node: Node, calls: tuple[Span, ...] = ()) -> Span:
        """The place of ``node``; columns count characters."""
        if self.place is not None:
            return self.place
        return self.span_at(node.start_byte, calls)

    def span_at(self, offset: int, calls: tuple[Span, ...] = ()) -> Span:
        """The place of the byte at ``offset``."""
        return replace(span_at(self.prepared.text, offset, self.name), calls=calls)

    def macro_at(self, node: Node) -> MacroUse | None:
        """The macro that the name at the beginning of ``node`` is there."""
        return self.prepared.uses.get(node.start_byte)

    def check(self, node: Node) -> None:
        """Raise SourceError at the first syntax error inside ``node``, if it has one.

        Where an unknown macro is what the grammar cannot read, it is an UnsupportedError.
        """
        if not node.has_error:
            return
        role = _BARE_CONDITION.search(self.prepared.text, node.start_byte, node.end_byte)
        if role is not None:
            message = f"macro {role[1].decode()}, taken as a condition without parentheses"
            raise UnsupportedError(message, self.span_at(role.start(1)))
        error = first_error(node) or node
        line = self.prepared.text.rfind(b"\n", 0, error.start_byte)
        begin = self.prepared.text.rfind(b"\n", 0, max(0, line)) + 1
        for offset, use in sorted(self.prepared.uses.items()):
            if use.number is None and begin <= offset <= error.end_byte:
                raise UnsupportedError(str(use), self.span_at(offset))
        missing = f": missing {error.type}" if error.is_missing else ""
        raise SourceError(f"syntax error{missing}", self.span(error))

    def check_macros(self, start: int, end: int, skipped: Sequence[tuple[int, int]] = ()) -> None:
        """Refuse a macro between two offsets that stands for no integer, but not in ``skipped``."""
        for offset, use in sorted(self.prepared.uses.items()):
            inside = start <= offset < end and not any(a <= offset < b for a, b in skipped)
            if inside and use.number is None:
                raise UnsupportedError(str(use), self.span_at(offset))


_BARE_CONDITION = re.compile(
    rb"\b(?:if|while|switch)\b\s*(?:constexpr\b\s*)?!?\s*(?!constexpr\b)([A-Za-z_]\w*)"
)
"""``if ASCEND_IS_AIV {``: only a macro that brings parentheses can stand there."""


@dataclass(slots=True)
class Sources:
    """All files that were read, the given ones first."""

    files: list[SourceFile] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    """Quoted includes that were not found, as written, in the order met."""


def text_of(node: Node | None) -> str:
    """The text of ``node``; "" for none."""
    return node.text.decode() if node is not None and node.text is not None else ""


def named(node: Node) -> list[Node]:
    """The named children of ``node``, without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def first_error(node: Node) -> Node | None:
    """The first ERROR or MISSING node inside ``node``."""
    if node.is_missing or node.type == "ERROR":
        return node
    for child in node.children:
        if child.has_error or child.is_missing:
            return first_error(child)
    return None


def descendants(node: Node) -> Iterator[Node]:
    """``node`` and all nodes in it, parents first."""
    yield node
    for child in node.children:
        yield from descendants(child)


def parse_expression(text: str, name: str, place: Span | None) -> tuple[SourceFile, Node]:
    """A C++ expression that stands in a facts file called ``name`` and is needed at ``place``."""
    prepared = prepare(f"auto value = ({text});".encode(), name, Macros())
    root = _parser().parse(prepared.text).root_node
    declaration = named(root)[0] if named(root) else root
    declarator = declaration.child_by_field_name("declarator")
    value = declarator.child_by_field_name("value") if declarator is not None else None
    if root.has_error or value is None:
        raise SourceError(f"{name}: cannot read the expression `{text}`")
    return SourceFile(name, prepared, root, place or Span(name, 1)), value


def parse_source(name: str, prepared: Prepared) -> SourceFile:
    """The tree of a prepared file."""
    return SourceFile(name, prepared, _parser().parse(prepared.text).root_node)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))
