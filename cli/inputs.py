"""Which files a command reads, so that ``--output`` spares them. Used by `commands`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from mc2proof.output import OutputError
from mc2proof.protocol.errors import SourceError
from mc2proof.protocol.program import Protocol
from mc2proof.pyfile import split_reference


def files_read(protocols: Sequence[Protocol]) -> list[str]:
    """The files that ``protocols`` were read from: headers that they include, modules that they import."""
    modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [*(file for p in protocols for file in p.files), *(m for m in modules if isinstance(m, str))]


def spare_inputs(output: str | None, inputs: Iterable[str], facts: str | None = None) -> None:
    """Raise SourceError if ``output`` is one of ``inputs`` (files, or FILE.py:NAME) or the facts."""
    if output is None:
        return
    references = ((name, split_reference(name)) for name in inputs)
    read = [reference[0] if reference else name for name, reference in references]
    target = os.path.realpath(output)
    if target in map(os.path.realpath, [*read, *([facts] if facts is not None else [])]):
        raise SourceError(f"{output}: is read as an input, --output would overwrite it")


def spare_each_other(output: str | None, certificate: str | None) -> None:
    """Raise OutputError if both are one file, of which the second to be written would be left."""
    if output and certificate and os.path.realpath(output) == os.path.realpath(certificate):
        raise OutputError(f"{output}: --output and --certificate name the same file")
