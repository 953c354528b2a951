"""Reading: the given sources and the includes beside them, as a compiler would read them.

Each given file that no other one includes is a translation unit of its own, with its own macros. A
file that two units (or two places) include must read the same both times. Used by the package's
`load_sources`; `prepass` prepares one file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SourceError, UnsupportedError
from ..program import Span
from .macros import Macros, MacroUse, names_in
from .parse import SourceFile, Sources, parse_source
from .prepass import prepare
from .preprocess import Protection

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def read_sources(
    paths: Sequence[Path], defines: Mapping[str, str | None], include_dirs: Sequence[Path]
) -> Sources:
    """Read ``paths`` and the quoted includes that lie beside them or in ``include_dirs``.

    Raises SourceError for a file that cannot be read, UnsupportedError for one that reads in two ways.
    """
    reader = _Reader(defines, include_dirs, {os.path.realpath(path): str(path) for path in paths})
    for path in _units(paths, reader):
        reader.unit(path)
    for path in paths:
        if os.path.realpath(path) not in reader.files:
            reader.unit(path)  # included, but only where the text is not active
    reader.note_foreign_macros()
    order = {str(path): index for index, path in enumerate(paths)}
    files = sorted(reader.files.values(), key=lambda file: order.get(file.name, len(paths)))
    return Sources(files, tuple(reader.missing))


@dataclass(slots=True)
class _Unit:
    """One translation unit: the state of its macros, what it has read, and what is open."""

    macros: Macros
    visited: dict[str, Protection] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)


class _Reader:
    """Reads files; a given one is called what the user called it."""

    def __init__(
        self,
        defines: Mapping[str, str | None],
        include_dirs: Sequence[Path],
        given: Mapping[str, str],
    ) -> None:
        self.defines = defines
        self.include_dirs = include_dirs
        self.given = given
        self.files: dict[str, SourceFile] = {}
        self.units: list[_Unit] = []
        self.missing: dict[str, None] = {}

    def unit(self, path: Path) -> None:
        """Read a translation unit."""
        self.units.append(_Unit(Macros(given=self.defines)))
        self.read(path, None)

    def read(self, path: Path, include: Span | None) -> None:
        """Read a file, unless it protects itself and was read in this unit."""
        unit = self.units[-1]
        identity = os.path.realpath(path)
        known = unit.visited.get(identity)
        if known is not None and (known.once or (known.guard and unit.macros.is_defined(known.guard) == 1)):
            return
        name = self.name(path)
        if identity in unit.stack:
            raise UnsupportedError(f"{name} includes itself, without include guard", include)
        protection = unit.visited[identity] = Protection()
        text = self.text(path)
        unit.stack.append(identity)
        prepared = prepare(text, name, unit.macros, _Beside(self, path.parent), protection)
        unit.stack.pop()
        first = self.files.get(identity)
        if first is None:
            self.files[identity] = parse_source(name, prepared)
        elif first.prepared != prepared:
            raise UnsupportedError(
                f"{name} reads differently where it is included again: other macros are defined",
                include or Span(name, 1),
            )

    def name(self, path: Path) -> str:
        """What messages call ``path``."""
        return self.given.get(os.path.realpath(path), os.path.normpath(path))

    def text(self, path: Path) -> bytes:
        """The bytes of a file."""
        try:
            return path.read_bytes()
        except OSError as error:
            raise SourceError(f"{self.name(path)}: {error.strerror or error}") from error

    def find(self, name: str, folder: Path) -> Path | None:
        """The file that ``#include "name"`` in ``folder`` means."""
        candidates = (place / name for place in (folder, *self.include_dirs))
        return next((path for path in candidates if path.is_file()), None)

    def note_foreign_macros(self) -> None:
        """Mark names that are macros only in units that do not include the file.

        Whether they hold there, because a header that is not given includes both, nobody says.
        """
        for identity, file in self.files.items():
            places: dict[str, str] = {}
            for unit in self.units:
                if identity not in unit.visited:
                    places.update(unit.macros.seen)
            for unit in self.units:
                if identity in unit.visited:
                    places = {name: place for name, place in places.items() if name not in unit.macros.seen}
            text = file.prepared.text
            for offset, name in names_in(text, 0, len(text)) if places else ():
                if name in places:
                    file.prepared.uses.setdefault(
                        offset, MacroUse(name, None, f" of {places[name]}, which this file does not include")
                    )


@dataclass(frozen=True, slots=True)
class _Beside:
    """Finds the includes of a file in ``folder``."""

    reader: _Reader
    folder: Path

    def resolves(self, name: str) -> bool:
        found = self.reader.find(name, self.folder)
        if found is None:
            self.reader.missing.setdefault(name)
        return found is not None

    def read(self, name: str, place: Span) -> None:
        found = self.reader.find(name, self.folder)
        if found is not None:
            self.reader.read(found, place)


# --- translation units --------------------------------------------------------------------------


def _units(paths: Sequence[Path], reader: _Reader) -> list[Path]:
    """The given files that no other given file includes; of two that include each other the first."""
    reach = {path: _reached(path, reader) for path in paths}
    identity = {path: os.path.realpath(path) for path in paths}
    units: list[Path] = []
    for position, path in enumerate(paths):
        others = [other for other in paths if identity[other] != identity[path]]
        above = [o for o in others if identity[path] in reach[o]]
        if all(identity[o] in reach[path] and paths.index(o) > position for o in above):
            units.append(path)
    return [p for i, p in enumerate(units) if identity[p] not in {identity[q] for q in units[:i]}]


def _reached(path: Path, reader: _Reader) -> set[str]:
    """All files that ``path`` may include, whatever the conditions around its includes are."""
    found: set[str] = set()
    pending = [path]
    while pending:
        current = pending.pop()
        for match in _INCLUDE.finditer(reader.text(current)):
            included = reader.find(match[1].decode(errors="replace"), current.parent)
            if included is not None and os.path.realpath(included) not in found:
                found.add(os.path.realpath(included))
                pending.append(included)
    return found
