"""The front end that reads a protocol from Ascend C kernel sources.

`load_sources` is its face: files (`reading`), pre-pass (`prepass`, `preprocess`), syntax trees (`parse`),
declarations (`index`), then symbolic execution of each ``__global__`` function per role (`entry`,
`lowering`).
What the sources lack comes from `Facts`; what neither has is refused with file and line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..program import Protocol
from .declarations import entry_named
from .entry import protocol_of
from .facts import Facts, load_facts, reference_facts
from .index import build_index
from .reading import read_sources

__all__ = ["Facts", "load_facts", "load_sources", "reference_facts"]


def load_sources(
    paths: Sequence[Path],
    *,
    entry: str | None = None,
    facts: Facts | None = None,
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[Path] = (),
) -> list[Protocol]:
    """One protocol for every ``__global__`` function in ``paths`` and the headers beside them.

    ``entry`` picks one by name. ``defines`` are macros as for a compiler; None for one that is known
    to be undefined. Raises SourceError for what cannot be read, UnsupportedError for what is
    understood to exist but not decided, both with file and line.
    """
    sources = read_sources(paths, defines or {}, include_dirs)
    index = build_index(sources)
    chosen = entry_named(index, entry, [file.name for file in sources.files])
    return [protocol_of(function, index, sources, facts or Facts()) for function in chosen]
