"""What flag ids, counters, byte ranges and outputs need: the claims of flag-range, layout and coverage.

Bounds of bytes are products of parameters, so most is shown by signs alone (`never_negative`); a certificate
names the largest value that an offset takes (``highs``) where the assumptions have to bound it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ..protocol.instance import Kind
from ..protocol.program import Put, Quiet, Region, RegionKind, Role
from .audit_claims import (
    Case,
    Claim,
    Invalid,
    Pair,
    Stated,
    Statement,
    apart,
    at,
    balanced,
    flag,
    moved,
    stated,
)
from .audit_memory import Touch, regions_written, touching, window_touch, writes
from .audit_scene import Event, Match, Scene, earlier_in_core
from .parametric.formula import (
    FALSE,
    TRUE,
    Formula,
    at_least,
    both,
    differ,
    either,
    equal,
    less,
    negation,
)
from .parametric.polynomial import Poly, never_negative, number
from .parametric.sites import Site
from .parametric.windows import Extent, fills

# --- flags ------------------------------------------------------------------------------------


def ids_and_backlogs(case: Case) -> Iterator[Claim]:
    """Every id is one that may be used, and no counter passes its cap."""
    subject = case.subject
    sites = subject.of_kind(Kind.SET_FLAG, Kind.WAIT_FLAG)
    if not sites:
        raise Invalid("there is no flag")
    for site in subject.absent:
        raise Invalid(f"{site.span.place}: an {site.role.name} has no {site.pipe.value}")
    for site in sites:
        yield Claim(f"id {site.number}", f"the ids of {at(site)} may be used", (_allowed_id(case, site),))
    for site in subject.of_kind(Kind.SET_FLAG):
        yield from _backlog(case, site)
    for one, other in combinations(subject.of_kind(Kind.SET_FLAG), 2):
        if one.role is other.role:  # so that every counter has the sets of one site only
            title = f"{at(one)} sets no flag of {other.span.place}"
            yield Claim(
                f"apart {one.number} {other.number}", title, (apart(one, other), _small(case, one, other))
            )


def _allowed_id(case: Case, site: Site) -> Statement:
    subject = case.subject
    profile = subject.setup.profile
    holder = site.role if site.kind is Kind.WAIT_FLAG else _other(site.role)
    taken = set(range(2 * profile.matmul_objects))
    for barrier in subject.barriers():
        if barrier.barrier is not None:
            taken |= barrier.barrier.reserved_on(holder, subject.protocol.vectors_per_cube)
    allowed = set(profile.strict_ids if subject.strict_ids else profile.flag_ids) - taken

    def build(scene: Scene) -> Stated:
        event = scene.anywhere(site)
        value = flag(scene, event)
        ids = sorted(allowed)
        gaps = [equal(value, i) for i in range(ids[0], ids[-1]) if i not in allowed]
        return stated(*event.exists, either(less(value, ids[0]), less(ids[-1], value), *gaps))

    return build


def _other(role: Role) -> Role:
    return Role.AIC if role is Role.AIV else Role.AIV


def _bound(case: Case, site: Site) -> tuple[Poly, Poly, int]:
    if site.number not in case.backlogs:
        raise Invalid(f"{site.span.place}: no bound of the sets that wait is named")
    distance, bound, loop = case.backlogs[site.number]
    if not 0 <= loop < len(site.loops):
        raise Invalid(f"{site.span.place}: the bound is of no loop around it")
    if not (distance.symbols | bound.symbols) <= set(case.subject.domain.names):
        raise Invalid(f"{site.span.place}: the bound is not the same for all turns")
    return distance, bound, loop


def _backlog(case: Case, site: Site) -> Iterator[Claim]:
    """At most ``bound`` sets of one flag wait, and as many fit."""
    distance, bound, loop = _bound(case, site)
    match = next((m for m in case.subject.matches if m.set is site), None)
    times = _turns_within(case.scene(), site, loop)
    once = bound in (number(1), distance)
    if match is None or not (once or (times is not None and bound in (times, distance * times))):
        raise Invalid(f"{site.span.place}: such a bound is not certified")
    if (bound.constant or 0) < 1:  # bounds are added up, so that none may be too small
        title = f"{bound} is at least the one set at {site.span.place}"
        yield Claim(f"one {site.number}", title, (_counts(site, bound),))
    cap = case.subject.setup.profile.counter_cap
    title = f"{bound} sets of {at(site)} fit a counter"
    yield Claim(f"cap {site.number}", title, (_fitting(site, distance, bound, cap),))
    title = f"{at(site)} is waited for, or its flag is not set {distance} turns later"
    yield Claim(f"took {site.number}", title, (balanced(match), _alone(match, distance, loop)))
    if once and loop < len(site.loops) - 1:
        title = f"{at(site)} sets no flag twice in one turn of {site.loops[loop].index}"
        yield Claim(f"single {site.number}", title, (_single(match, loop),))
    if bound != distance and (times is None or bound != distance * times):
        title = f"sets of one flag at {site.span.place} are {distance} turns apart"
        yield Claim(f"spaced {site.number}", title, (_spaced(match, distance, loop),))
    for sub in range(case.subject.protocol.vectors_per_cube if match.wait.role is Role.AIV else 1):
        title = f"what {at(site)} set {distance} turns before has been taken"
        yield Claim(f"open {site.number}.{sub}", title, (_taken(match, distance, loop, sub),))


def _turns_within(scene: Scene, site: Site, loop: int) -> Poly | None:
    """How many turns the loops within ``loop`` have; None where the parameters alone do not tell."""
    event = scene.anywhere(site)
    translator = scene.translator(event.names, site)
    total = number(1)
    for inner in site.loops[loop + 1 :]:
        turns = translator.value(inner.stop) - translator.value(inner.start)
        known = inner.step == 1 and turns.symbols <= scene.subject.domain.free.keys()
        if not (known and never_negative(turns, scene.subject.domain.bounds())):
            return None
        total = total * turns
    return total


def _fitting(site: Site, distance: Poly, bound: Poly, cap: int) -> Statement:
    """At most ``cap``; no number of sets is negative, nor 0 where there is one."""

    def build(scene: Scene) -> Stated:
        event = scene.anywhere(site)
        none = both(*event.exists, less(distance, 1)) if bound != number(1) else FALSE
        return stated(either(negation(at_least(cap, bound)), less(bound, 0), none))

    return build


def _counts(site: Site, bound: Poly) -> Statement:
    """Where there is a set, the bound allows one."""
    return lambda scene: stated(*scene.anywhere(site).exists, less(bound, 1))


def _two_sets(scene: Scene, match: Match) -> tuple[Event, Event, tuple[Formula, ...]]:
    """A set and an earlier one of the same flag on its core."""
    then = scene.anywhere(match.set)
    first = scene.anywhere(match.set, then.rank, then.block)
    same = equal(flag(scene, then), flag(scene, first))
    return first, then, (*first.exists, *then.exists, earlier_in_core(first, then), same)


def _single(match: Match, loop: int) -> Statement:
    def build(scene: Scene) -> Stated:
        first, then, given = _two_sets(scene, match)
        here = zip(first.turns[: loop + 1], then.turns[: loop + 1], strict=True)
        return stated(*given, *(equal(a, b) for a, b in here))

    return build


def _spaced(match: Match, distance: Poly, loop: int) -> Statement:
    def build(scene: Scene) -> Stated:
        first, then, given = _two_sets(scene, match)
        outer = [equal(a, b) for a, b in zip(first.turns[:loop], then.turns[:loop], strict=True)]
        # those of one turn are counted, or there are none
        apart = differ(then.turns[loop], first.turns[loop])
        return stated(*given, *outer, apart, less(then.turns[loop], first.turns[loop] + distance))

    return build


def _away(first: Event, then: Event, distance: Poly, loop: int) -> Formula:
    if len(then.turns) == 1:
        return TRUE
    outer = [differ(a, b) for a, b in zip(first.turns[:loop], then.turns[:loop], strict=True)]
    return either(*outer, at_least(then.turns[loop], first.turns[loop] + distance))


def _alone(match: Match, distance: Poly, loop: int) -> Statement:
    """No two sets of one flag lie so far apart."""

    def build(scene: Scene) -> Stated:
        first, then, given = _two_sets(scene, match)
        return stated(*given, _away(first, then, distance, loop))

    return build


def _taken(match: Match, distance: Poly, loop: int, sub: int) -> Statement:
    def build(scene: Scene) -> Stated:
        first, then, given = _two_sets(scene, match)
        away = _away(first, then, distance, loop)
        wait = scene.event(match.wait, first.rank, first.block, moved(first, match, 1), sub)
        pair = Pair(wait, wait.begin, then, then.begin)
        return stated(*given, away, *wait.exists, pairs=(pair,))

    return build


def _small(case: Case, one: Site, other: Site) -> Statement:
    """Where two sites may set one counter: what both leave open fits it together."""
    total = sum(
        (_bound(case, s)[1] for s in case.subject.of_kind(Kind.SET_FLAG) if s.role is one.role), Poly()
    )
    fits = negation(at_least(case.subject.setup.profile.counter_cap, total))
    return lambda _: stated(fits)


# --- bytes ------------------------------------------------------------------------------------


def layout(case: Case) -> Iterator[Claim]:
    """Byte ranges lie within their regions, requests are not too large, areas are apart."""
    subject = case.subject
    regions = {region.name: region for region in subject.protocol.regions}
    sites = subject.of_kind(Kind.PUT, Kind.READ, Kind.WRITE)
    if not sites:
        raise Invalid("nothing is read or written")
    alignment = subject.setup.profile.base_alignment
    for region in regions.values():
        if region.kind is RegionKind.SHARED and (region.alignment or 0) % alignment:
            raise Invalid(f"{region.name} is not aligned to {alignment} bytes")
    for site in sites:
        for place in range(len(_touches(case.scene(), site)[1])):
            yield from _inside(case, site, place, regions)
        yield from _target(case, site, regions)
    for site in subject.of_kind(Kind.QUIET):
        yield Claim(f"peer {site.number}", f"{at(site)} names a rank", (_peer(site),))
    for one, other in combinations(subject.of_kind(Kind.PUT, Kind.WRITE), 2):
        for a, first in enumerate(regions_written(one)):
            for b, second in enumerate(regions_written(other)):
                if first == second and regions[first].kind is RegionKind.SHARED:
                    title = f"{at(one)} and {at(other)} fill different areas"
                    statement = _areas(one, a, other, b)
                    yield Claim(f"areas {one.number}.{a} {other.number}.{b}", title, (statement,))


def _touches(scene: Scene, site: Site) -> tuple[Event, list[Touch]]:
    event = scene.anywhere(site)
    if not isinstance(site.operation, Put):
        return event, [window_touch(scene, event, window) for window in site.windows]
    (written,) = writes(scene, event)
    assert written.origin is not None
    source = Touch(event.rank, written.origin[1], Extent(written.origin[2], written.extent.bytes), None)
    return event, [written, source]


def _inside(case: Case, site: Site, place: int, regions: Mapping[str, Region]) -> Iterator[Claim]:
    scene = case.scene()
    event, touches = _touches(scene, site)
    touch = touches[place]
    size = region_size(scene, site, regions[touch.region], touch.rank)
    bounds = scene.bounds(*event.exists)
    if not (never_negative(touch.extent.offset, bounds) and never_negative(touch.extent.bytes, bounds)):
        raise Invalid(f"{site.span.place}: an offset or a size may be negative")
    if size is not None:
        yield from _limited(case, scene, event, f"end {site.number}.{place}", touch.extent.stop, size)


def _limited(case: Case, scene: Scene, event: Event, key: str, value: Poly, limit: Poly) -> Iterator[Claim]:
    """``value`` is at most ``limit``: by signs, or by a largest value that is."""
    bounds = scene.bounds(*event.exists)
    if never_negative(limit - value, bounds):
        return
    high = case.highs.get(key)
    if high is None or not never_negative(high - value, bounds):
        raise Invalid(f"{event.site.span.place}: no largest value of {value} is named")
    denied = negation(at_least(limit, high))
    yield Claim(key, f"{high} is at most {limit} at {event.site.span.place}", (lambda _: stated(denied),))


def region_size(scene: Scene, site: Site, region: Region, rank: Poly) -> Poly | None:
    """The size of ``region`` on ``rank``; None: not known."""
    if region.bytes is None:
        return None
    return scene.translator(dict(scene.subject.domain.names) | {"rank": rank}, site).value(region.bytes)


def _target(case: Case, site: Site, regions: Mapping[str, Region]) -> Iterator[Claim]:
    if not isinstance(site.operation, Put):
        if any(regions[name].kind is RegionKind.INPUT for name in regions_written(site)):
            raise Invalid(f"{site.span.place}: an input is written")
        return
    if regions[site.operation.target.region].kind is not RegionKind.SHARED:
        raise Invalid(f"{site.span.place}: the put's target is not symmetric")
    scene = case.scene()
    event, touches = _touches(scene, site)
    limit = number(case.subject.setup.profile.put_limit)
    yield from _limited(case, scene, event, f"size {site.number}", touches[0].extent.bytes, limit)
    yield Claim(f"peer {site.number}", f"{at(site)} goes to another rank", (_peer(site),))


def _peer(site: Site) -> Statement:
    def build(scene: Scene) -> Stated:
        event = scene.anywhere(site)
        operation = site.operation
        assert isinstance(operation, Put | Quiet)
        peer = scene.value(event, operation.peer)
        own = equal(peer, event.rank) if isinstance(operation, Put) else FALSE
        ranks = scene.subject.domain.names["ranks"]
        return stated(*event.exists, either(less(peer, 0), at_least(peer, ranks), own))

    return build


def _areas(one: Site, a: int, other: Site, b: int) -> Statement:
    def build(scene: Scene) -> Stated:
        x, y = scene.anywhere(one), scene.anywhere(other)
        first, second = writes(scene, x)[a], writes(scene, y)[b]
        if first.origin is None or second.origin is None or first.origin[1] == second.origin[1]:
            return stated(FALSE)
        return stated(*x.exists, *y.exists, touching(scene, first, second, x, y))

    return build


# --- outputs ----------------------------------------------------------------------------------


def covered(case: Case) -> Iterator[Claim]:
    """Every output that is to be written whole is: turn i writes its bytes i * S to (i + 1) * S, by all.

    A turn of a loop writes what all turns of the loops within it do.
    """
    for region in case.subject.protocol.regions:
        if region.covered and region.bytes is not None:
            yield from _covered(case, region)


def _covered(case: Case, region: Region) -> Iterator[Claim]:
    sites = [s for s in case.subject.of_kind(Kind.WRITE) if region.name in regions_written(s)]
    if len(sites) != 1 or len(sites[0].windows) != 1:
        raise Invalid(f"{region.name} is not written by one statement, turn after turn")
    (site,) = sites
    scene = case.scene()
    event = scene.anywhere(site)
    touch = window_touch(scene, event, site.windows[0])
    size = region_size(scene, site, region, event.rank)
    if not _is_whole(scene, event, touch, size):
        raise Invalid(f"{region.name}: its windows are not seen to make up the whole")
    if site.guards:
        yield Claim(f"written {site.number}", f"{at(site)} is made in every turn", (_unguarded(site),))


def _is_whole(scene: Scene, event: Event, touch: Touch, size: Poly | None) -> bool:
    loops = event.site.loops[1:]
    shared = event.site.share or not loops
    if touch.guard != TRUE or size is None or not shared or any(loop.step != 1 for loop in loops):
        return False
    translator = scene.translator(event.names, event.site)
    counts = [translator.value(loop.stop) - translator.value(loop.start) for loop in loops]
    turns = list(zip(event.turns[1:], counts, strict=True))
    return fills(touch.extent, turns, size, scene.bounds(*event.exists))


def _unguarded(site: Site) -> Statement:
    """Where the loops are run, the guards hold."""

    def build(scene: Scene) -> Stated:
        bare = Site(site.number, site.role, site.kind, site.pipe, site.path, (), site.span, site.operation)
        free = scene.anywhere(bare)
        guarded = scene.event(site, free.rank, free.block, free.turns)
        return stated(*free.exists, negation(both(*guarded.exists)))

    return build
