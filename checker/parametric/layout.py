"""Byte ranges for all values: within their regions, apart from each other, not too large for a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...protocol.expr import Expr
from ...protocol.instance import Kind
from ...protocol.program import Put, Quiet, Region, RegionKind
from .conditions import Condition, Place, largest
from .formula import FALSE, at_least, both, either, equal, less
from .polynomial import Poly, never_negative, number
from .program import Program
from .question import Happening, Question
from .sites import Site
from .touches import Touch, put_touch, read_touch, touching, writes_of
from .windows import Extent, fills


def layout_conditions(program: Program) -> Iterator[Condition | str]:
    """Conditions under which the layout is right; a text where something could not be shown to be."""
    regions = {region.name: region for region in program.protocol.regions}
    for site in program.of_kind(Kind.PUT, Kind.READ, Kind.WRITE):
        question = Question(program)
        happening = question.happen(site, question.core(site.role))
        for touch in touches(question, happening):
            yield from _bounds(program, question, happening, touch, regions)
        if site.kind is Kind.PUT:
            yield from _put(program, site, regions)
        else:
            yield from _targets(site, regions)
    for site in program.of_kind(Kind.QUIET):
        yield from _quiet(program, site)
    yield from _areas(program, regions)
    for region in program.protocol.regions:
        if (
            region.kind is RegionKind.SHARED
            and (region.alignment or 0) % program.setup.profile.base_alignment
        ):
            yield f"{region.name} is not aligned to {program.setup.profile.base_alignment} bytes"


def touches(question: Question, happening: Happening) -> Iterator[Touch]:
    """What an event reads or writes: of a put, what it writes and then what it sends."""
    if happening.site.kind is Kind.PUT:
        put = happening.site.operation
        assert isinstance(put, Put)
        touch = put_touch(question, happening)
        yield touch
        assert touch.origin is not None
        yield Touch(
            touch.origin[0], touch.origin[1], Extent(touch.origin[2], touch.extent.bytes), None, touch.guard
        )
    for window in happening.site.windows:
        yield read_touch(question, happening, window)


def region_bytes(question: Question, site: Site, region: Region, rank: Poly) -> Poly | None:
    """The size of ``region`` on ``rank``; None: not known."""
    if region.bytes is None:
        return None
    names = dict(question.program.domain.names) | {"rank": rank}
    return question.translator_in(names, site).value(region.bytes)


def _bounds(
    program: Program, question: Question, happening: Happening, touch: Touch, regions: Mapping[str, Region]
) -> Iterator[Condition | str]:
    site, bounds = happening.site, question.bounds(happening)
    extent = touch.extent
    if not never_negative(extent.offset, bounds):
        yield f"{site.span.place}: an offset into {touch.region} may be negative"
    if not never_negative(extent.bytes, bounds):
        yield f"{site.span.place}: a size may be negative"
    size = region_bytes(question, site, regions[touch.region], touch.rank)
    if size is not None and not never_negative(size - extent.stop, bounds):
        yield _limited(program, question, happening, extent.stop, size, "out-of-bounds", touch)


def _limited(
    program: Program,
    question: Question,
    happening: Happening,
    value: Poly,
    limit: Poly,
    code: str,
    touch: Touch,
) -> Condition | str:
    """The condition that the largest ``value`` is at most ``limit``."""
    site, bounds = happening.site, question.bounds(happening)
    highs = largest(question, happening, value)
    if not highs or not limit.symbols <= program.domain.free.keys():
        return f"{site.span.place}: whether {touch.region} is left could not be told"
    high = next((h for h in highs if never_negative(h - value, bounds)), None)
    if high is None:
        return f"{site.span.place}: whether {touch.region} is left could not be told"
    exact, places = False, []
    for place, reaches in _furthest(program, site, high):
        exact = exact or reaches
        places.append(place)
    return Condition(at_least(limit, high), exact, code, site, tuple(places))


def _furthest(program: Program, site: Site, high: Poly) -> Iterator[tuple[Place, bool]]:
    """Events that may get as far as ``high``, the last turns of some cores, and whether they surely do."""
    names = program.domain.names
    for rank in (names["ranks"] - 1, number(0)):
        for block in (number(0), names["ranks"] - 1, names["blocks"] - 1):
            question = Question(program)
            core = question.core(site.role, rank, block)
            probe = question.happen(site, core)
            turns = _last_turns(question, probe)
            if turns is None or not all(turn.symbols <= program.domain.free.keys() for turn in turns):
                continue
            last = question.happen(site, core, turns)
            yield (
                Place(core.rank, core.block, turns),
                any(
                    high in (touch.extent.stop, touch.extent.bytes)
                    and question.implies((), both(last.exists, touch.guard))
                    for touch in touches(question, last)
                ),
            )


def _last_turns(question: Question, probe: Happening) -> tuple[Poly, ...] | None:
    turns: list[Poly] = []
    names = dict(probe.names)
    for loop in probe.site.loops:
        translator = question.translator_in(names, probe.site)
        if loop.step != 1:
            return None
        last = translator.value(loop.stop) - 1 - translator.value(loop.start)
        turns.append(last.substitute(dict(zip(_names(probe.turns[: len(turns)]), turns, strict=True))))
    return tuple(turns)


def _names(turns: tuple[Poly, ...]) -> list[str]:
    return [next(iter(turn.symbols)) for turn in turns]


def _put(program: Program, site: Site, regions: Mapping[str, Region]) -> Iterator[Condition | str]:
    """Its size, its peer, and what it may be sent to."""
    question = Question(program)
    happening = question.happen(site, question.core(site.role))
    put = site.operation
    assert isinstance(put, Put)
    touch = put_touch(question, happening)
    limit = number(program.setup.profile.put_limit)
    if not never_negative(limit - touch.extent.bytes, question.bounds(happening)):
        yield _limited(program, question, happening, touch.extent.bytes, limit, "put-too-large", touch)
    ranks = program.domain.names["ranks"]
    wrong = either(less(touch.rank, 0), at_least(touch.rank, ranks), equal(touch.rank, happening.core.rank))
    if not question.excludes(happening.exists, wrong):
        yield f"{site.span.place}: the put may go to its own rank, or to none"
    if regions[put.target.region].kind is not RegionKind.SHARED:
        yield f"{site.span.place}: the put's target {put.target.region} is not symmetric"


def _quiet(program: Program, site: Site) -> Iterator[str]:
    question = Question(program)
    happening = question.happen(site, question.core(site.role))
    quiet = site.operation
    assert isinstance(quiet, Quiet)
    peer = question.value(happening, quiet.peer)
    wrong = either(less(peer, 0), at_least(peer, program.domain.names["ranks"]))
    if not question.excludes(happening.exists, wrong):
        yield f"{site.span.place}: the quiet may name no rank"


def _targets(site: Site, regions: Mapping[str, Region]) -> Iterator[str]:
    if site.kind is Kind.WRITE:
        for window in site.windows:
            if regions[window.address.region].kind is RegionKind.INPUT:
                yield f"{site.span.place}: {window.address.region} is an input, which nobody writes"


def _areas(program: Program, regions: Mapping[str, Region]) -> Iterator[str]:
    """Areas of a symmetric region that are filled from different inputs do not overlap."""
    sites = program.of_kind(Kind.PUT, Kind.WRITE)
    for place, one in enumerate(sites):
        for other in sites[place + 1 :]:
            question = Question(program)
            a = question.happen(one, question.core(one.role))
            b = question.happen(other, question.core(other.role))
            for first in writes_of(question, a):
                for second in writes_of(question, b):
                    if _one_source(first, second) or regions[first.region].kind is not RegionKind.SHARED:
                        continue
                    shared = touching(question, first, second, a, b)
                    if shared != FALSE and not question.excludes(a.exists, b.exists, shared):
                        yield f"{other.span.place}: may fill what {one.span.place} fills from another input"


def _one_source(first: Touch, second: Touch) -> bool:
    return first.origin is None or second.origin is None or first.origin[1] == second.origin[1]


# --- coverage ---------------------------------------------------------------------------------


def uncovered(program: Program) -> Iterator[str]:
    """Outputs of which it could not be shown that every byte is written once."""
    for region in program.protocol.regions:
        if region.covered and region.bytes is not None:
            reason = _uncovered(program, region, region.bytes)
            if reason is not None:
                yield f"{region.name}: {reason}"


def _uncovered(program: Program, region: Region, size: Expr) -> str | None:
    """One site writes it, tile after tile: turn i the bytes from i * S to (i + 1) * S, S * turns in all.

    In loops within loops, a turn of the outer one writes what all turns of the inner one do.
    """
    sites = [
        site
        for site in program.of_kind(Kind.WRITE)
        if any(window.address.region == region.name for window in site.windows)
    ]
    if len(sites) != 1 or len(sites[0].windows) != 1:
        return "it is not written by one statement, tile after tile"
    (site,) = sites
    question = Question(program)
    happening = question.happen(site, question.core(site.role))
    (window,) = site.windows
    touch = read_touch(question, happening, window)
    whole = region_bytes(question, site, region, happening.core.rank)
    turns = _counted(question, happening)
    if whole is None or not _always_there(program, site, touch):
        return "whether it is written on every core, in every tile, could not be told"
    shared = site.share or not turns
    bounds = question.bounds(happening)
    covered = shared and turns is not None and fills(touch.extent, turns, whole, bounds)
    return None if covered else "its windows do not make up the whole, or could not be shown to"


def _counted(question: Question, happening: Happening) -> list[tuple[Poly, Poly]] | None:
    """The turn of every loop within the launch, and how many turns it has; None: not by one each."""
    translator = question.translator(happening)
    loops = happening.site.loops[1:]
    if any(loop.step != 1 for loop in loops):
        return None
    counts = [translator.value(loop.stop) - translator.value(loop.start) for loop in loops]
    return list(zip(happening.turns[1:], counts, strict=True))


def _always_there(program: Program, site: Site, touch: Touch) -> bool:
    """Whether the loops alone decide that it is written: no guard is in the way."""
    if not site.guards:
        return touch.guard == both()
    question = Question(program)
    any_turn = question.happen(replace(site, guards=()), question.core(site.role))
    guarded = question.happen(site, any_turn.core, any_turn.turns)
    return question.implies([any_turn.exists], guarded.exists) and touch.guard == both()
