"""Parsing: the given sources and the includes beside them, as syntax trees with places.

Used by `index`, which finds the declarations in the trees, and by everything that needs the place
of a node. The only module, with those that walk nodes, that knows tree-sitter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from ..errors import SourceError
from ..program import Span
from .prepass import Prepared, prepare
from .preprocess import Macros


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
        text = self.prepared.text
        begin = text.rfind(b"\n", 0, offset) + 1
        column = len(text[begin:offset].decode(errors="replace")) + 1
        return Span(self.name, text.count(b"\n", 0, begin) + 1, column, calls)

    def check(self, node: Node) -> None:
        """Raise SourceError at the first syntax error inside ``node``, if it has one."""
        if node.has_error:
            error = first_error(node) or node
            missing = f": missing {error.type}" if error.is_missing else ""
            raise SourceError(f"syntax error{missing}", self.span(error))


@dataclass(slots=True)
class Sources:
    """All files that were read, the given ones first, and the macros they define."""

    files: list[SourceFile] = field(default_factory=list)
    macros: Macros = field(default_factory=Macros)


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


def read_sources(
    paths: Sequence[Path], defines: Mapping[str, str | None], include_dirs: Sequence[Path]
) -> Sources:
    """Read ``paths`` and the quoted includes that lie beside them or in ``include_dirs``."""
    reader = _Reader(defines, include_dirs, {os.path.realpath(path): str(path) for path in paths})
    for path in paths:
        reader.read(path)
    order = {str(path): index for index, path in enumerate(paths)}
    reader.sources.files.sort(key=lambda file: order.get(file.name, len(paths)))
    return reader.sources


class _Reader:
    """Reads files once each; a given one is called what the user called it."""

    def __init__(
        self,
        defines: Mapping[str, str | None],
        include_dirs: Sequence[Path],
        given: Mapping[str, str],
    ) -> None:
        self.sources = Sources(macros=Macros(given=defines))
        self.include_dirs = include_dirs
        self.given = given
        self.seen: set[str] = set()

    def read(self, path: Path) -> None:
        identity = os.path.realpath(path)
        if identity in self.seen:
            return
        self.seen.add(identity)
        name = self.given.get(identity, os.path.normpath(path))
        try:
            text = path.read_bytes()
        except OSError as error:
            raise SourceError(f"{name}: {error.strerror or error}") from error
        prepared = prepare(text, name, self.sources.macros, _Beside(self, path.parent))
        root = _parser().parse(prepared.text).root_node
        self.sources.files.append(SourceFile(name, prepared, root))


@dataclass(frozen=True, slots=True)
class _Beside:
    """Finds the includes of a file in ``folder``."""

    reader: _Reader
    folder: Path

    def resolves(self, name: str) -> bool:
        return self._find(name) is not None

    def read(self, name: str) -> None:
        found = self._find(name)
        if found is not None:
            self.reader.read(found)

    def _find(self, name: str) -> Path | None:
        candidates = (folder / name for folder in (self.folder, *self.reader.include_dirs))
        return next((path for path in candidates if path.is_file()), None)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))
