"""What the catalogue of findings says about one code. Plain data; the table is in `catalogue`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import cleandoc
from types import MappingProxyType

from .report import Severity


@dataclass(frozen=True, slots=True)
class Run:
    """Where an example is checked: values of parameters, and arguments of `mc2proof.prove`.

    ``ranks`` and ``blocks`` are 2 and 1 unless given.
    """

    values: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def parameters(self) -> dict[str, int]:
        """Every value, the usual ones included."""
        return {"ranks": 2, "blocks": 1, **self.values}


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty and a mended body of a small kernel, or (``in_facts``) two tables of a facts file.

    ``mended_at`` is where the mended one is checked, if not at ``at`` as well.
    """

    faulty: str
    mended: str
    at: Run
    mended_at: Run
    in_facts: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One code: the property it belongs to, what it weighs, its document, and what it means.

    ``strict``: what it weighs under ``--strict-ids``, where that differs. ``text`` is one paragraph:
    what goes wrong on the machine, in which timing, and the mend.
    """

    code: str
    property: str
    title: str
    source_doc: str
    text: str
    example: Example
    severity: Severity = Severity.ERROR
    strict: Severity | None = None


def at(*, options: Mapping[str, object] | None = None, **values: int) -> Run:
    """A `Run`; ``options`` are arguments of `mc2proof.prove` that are no parameters."""
    return Run(MappingProxyType(values), MappingProxyType(dict(options or {})))


def example(
    faulty: str, mended: str, run: Run | None = None, *, mended_at: Run | None = None, in_facts: bool = False
) -> Example:
    """An `Example` from indented texts."""
    usual = run or at()
    return Example(cleandoc(faulty), cleandoc(mended), usual, mended_at or usual, in_facts)


def paragraph(text: str) -> str:
    """``text`` without the line ends of the source."""
    return " ".join(text.split())
