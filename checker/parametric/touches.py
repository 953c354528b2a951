"""What events read and write: windows as polynomials, and a condition without which two share no byte.

`memory` and `layout` ask it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.operations import Origin
from ...protocol.program import Mode, Put, Window, Write
from .formula import FALSE, TRUE, Formula, both, equal
from .polynomial import Poly
from .program import Program
from .question import Happening, Question
from .sites import Site
from .windows import Extent, overlap


@dataclass(frozen=True, slots=True)
class Touch:
    """A window of an event on ``rank``: its region and extent, and where its bytes are from."""

    rank: Poly
    region: str
    extent: Extent
    origin: tuple[Poly, str, Poly] | None
    guard: Formula


def read_touch(question: Question, happening: Happening, window: Window) -> Touch:
    """What a read, or a write that is no put, touches."""
    translator = question.translator(happening)
    extent = Extent(translator.value(window.address.offset), translator.value(window.bytes))
    origin = None
    if isinstance(window.origin, Origin):
        source = window.origin
        origin = (
            translator.value(source.rank), source.address.region, translator.value(source.address.offset),
        )  # fmt: skip
    guard = translator.condition(window.guard)
    question.demands += translator.demands
    return Touch(happening.core.rank, window.address.region, extent, origin, guard)


def put_touch(question: Question, happening: Happening) -> Touch:
    """What a put writes."""
    put = happening.site.operation
    assert isinstance(put, Put)
    translator = question.translator(happening)
    size = translator.value(put.bytes)
    origin = (happening.core.rank, put.source.region, translator.value(put.source.offset))
    extent = Extent(translator.value(put.target.offset), size)
    peer = translator.value(put.peer)
    question.demands += translator.demands
    return Touch(peer, put.target.region, extent, origin, TRUE)


def writes_of(question: Question, happening: Happening) -> list[Touch]:
    """What an event writes."""
    if happening.site.kind is Kind.PUT:
        return [put_touch(question, happening)]
    if happening.site.kind is Kind.WRITE:
        return [read_touch(question, happening, window) for window in happening.site.windows]
    return []


def touching(question: Question, a: Touch, b: Touch, *happenings: Happening) -> Formula:
    """A condition without which the two share no byte."""
    if a.region != b.region:
        return FALSE
    bounds = question.bounds(*happenings)
    return both(equal(a.rank, b.rank), a.guard, b.guard, overlap(a.extent, b.extent, bounds))


def readers(program: Program) -> Iterator[tuple[Site, Window]]:
    """Every window that is read with a stated origin."""
    for site in program.of_kind(Kind.READ):
        for window in site.windows:
            if window.origin is not None:
                yield site, window


def writers(program: Program, region: str) -> list[Site]:
    """The sites that write into ``region`` on some rank."""
    found = []
    for site in program.of_kind(Kind.PUT, Kind.WRITE):
        if isinstance(site.operation, Put):
            regions = {site.operation.target.region}
        else:
            regions = {window.address.region for window in site.windows}
        if region in regions:
            found.append(site)
    return found


def adds(site: Site) -> bool:
    """Whether it adds to what is there."""
    return isinstance(site.operation, Put | Write) and site.operation.mode is Mode.ADD
