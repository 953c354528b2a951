"""What memory needs: who delivers what a reader reads, and that nothing disturbs it; claims of `audit`.

These are the obligations of `checker.obligations`, once for all cores and turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

from ..protocol.instance import Kind
from ..protocol.operations import Origin
from ..protocol.program import Mode, Put, Quiet, RegionKind, Window, Write
from .audit_claims import Case, Claim, Invalid, Pair, Stated, Statement, at, stated
from .audit_scene import Event, Scene, Subject
from .parametric.formula import FALSE, TRUE, Formula, both, differ, either, equal, less, negation, solved
from .parametric.polynomial import Poly, never_negative
from .parametric.sites import Site
from .parametric.windows import Extent, overlap


@dataclass(frozen=True, slots=True)
class Touch:
    """The bytes of a region of ``rank`` that an event reads or writes, and where they are from."""

    rank: Poly
    region: str
    extent: Extent
    origin: tuple[Poly, str, Poly] | None
    guard: Formula = TRUE


def window_touch(scene: Scene, event: Event, window: Window) -> Touch:
    """What is read or written through ``window``."""
    translator = scene.translator(event.names, event.site)
    extent = Extent(translator.value(window.address.offset), translator.value(window.bytes))
    origin = None
    if isinstance(window.origin, Origin):
        source = window.origin
        origin = (
            translator.value(source.rank),
            source.address.region,
            translator.value(source.address.offset),
        )
    return Touch(event.rank, window.address.region, extent, origin, translator.condition(window.guard))


def writes(scene: Scene, event: Event) -> list[Touch]:
    """What an event writes."""
    put = event.site.operation
    if isinstance(put, Put):
        value = scene.translator(event.names, event.site).value
        extent = Extent(value(put.target.offset), value(put.bytes))
        origin = (event.rank, put.source.region, value(put.source.offset))
        return [Touch(value(put.peer), put.target.region, extent, origin)]
    if event.site.kind is Kind.WRITE:
        return [window_touch(scene, event, window) for window in event.site.windows]
    return []


def regions_written(site: Site) -> list[str]:
    """The regions of the windows that ``site`` writes, in their order."""
    if isinstance(site.operation, Put):
        return [site.operation.target.region]
    return [window.address.region for window in site.windows] if site.kind is Kind.WRITE else []


def writing(subject: Subject, region: str) -> Iterator[tuple[Site, int]]:
    """Every window that is written in ``region``: the site and the window's place there."""
    for site in subject.of_kind(Kind.PUT, Kind.WRITE):
        yield from ((site, place) for place, name in enumerate(regions_written(site)) if name == region)


def adds(site: Site) -> bool:
    """Whether it adds to what is there."""
    return isinstance(site.operation, Put | Write) and site.operation.mode is Mode.ADD


def touching(scene: Scene, a: Touch, b: Touch, *events: Event) -> Formula:
    """A condition without which the two share no byte, where ``events`` exist."""
    bounds = scene.bounds(*(part for event in events for part in event.exists))
    return both(equal(a.rank, b.rank), a.guard, b.guard, overlap(a.extent, b.extent, bounds))


def reading(subject: Subject) -> Iterator[tuple[str, Site, Window]]:
    """Every window that is read, by name. Raises Invalid where its origin is not stated."""
    for site in subject.of_kind(Kind.READ):
        for place, window in enumerate(site.windows):
            if window.origin is None:
                raise Invalid(f"{site.span.place}: a read without a stated origin is not certified")
            yield f"{site.number}.{place}", site, window


def delivered(case: Case, *, written: bool = False) -> Iterator[Claim]:
    """What every row of memory rests on: one queue a peer, and a supplier for every reader.

    ``written``: only for readers of what somebody writes.
    """
    subject = case.subject
    kinds = {region.name: region.kind for region in subject.protocol.regions}
    for site in subject.of_kind(Kind.PUT):
        assert isinstance(site.operation, Put)
        if kinds[site.operation.source.region] is not RegionKind.INPUT:
            raise Invalid(f"{site.span.place}: what is sent on has no stated origin")
        if any(writing(subject, site.operation.source.region)):
            raise Invalid(f"{site.span.place}: what it sends is written as well")
    yield from queues(subject)
    for key, site, window in reading(subject):
        if written and not any(writing(subject, window.address.region)):
            continue
        title = f"{at(site)} reads from {window.address} what is delivered there"
        yield Claim(f"supply {key}", title, (_supplied(case, key, site, window),))


def queues(subject: Subject) -> Iterator[Claim]:
    """No two cores of a rank post to one peer, or wait for what another posted there."""
    for one, other in combinations_with_replacement(subject.of_kind(Kind.PUT, Kind.QUIET), 2):
        key, title = f"queue {one.number} {other.number}", f"{at(one)} and {at(other)}: one core a peer"
        yield Claim(key, title, (_one_queue(one, other),))


def _one_queue(one: Site, other: Site) -> Statement:
    def build(scene: Scene) -> Stated:
        a = scene.anywhere(one)
        b = scene.anywhere(other, a.rank)
        away = TRUE if one.role is not other.role else differ(a.block, b.block)
        peers = []
        for event in (a, b):
            assert isinstance(event.site.operation, Put | Quiet)
            peers.append(scene.value(event, event.site.operation.peer))
        return stated(*a.exists, *b.exists, away, equal(*peers), equal(a.turns[0], b.turns[0]))

    return build


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader and its supplier (None: an input that nobody writes) in one scene."""

    event: Event
    touch: Touch
    supplier: Event | None

    @property
    def given(self) -> tuple[Formula, ...]:
        """That it reads."""
        return (*self.event.exists, self.touch.guard)


def reader(case: Case, scene: Scene, key: str, site: Site, window: Window) -> Reader:
    """Any event that reads ``window``, and the event that its certificate calls the supplier."""
    event = scene.anywhere(site)
    touch = window_touch(scene, event, window)
    if key not in case.suppliers:
        raise Invalid(f"{site.span.place}: no supplier is named for what is read from {window.address}")
    chosen = case.suppliers[key]
    if chosen is None:
        return Reader(event, touch, None)
    if len(chosen.turns) != len(chosen.site.loops):
        raise Invalid(f"{site.span.place}: the supplier has not one turn for every loop")
    return Reader(event, touch, scene.event(chosen.site, chosen.rank, chosen.block, chosen.turns))


def _supplied(case: Case, key: str, site: Site, window: Window) -> Statement:
    def build(scene: Scene) -> Stated:
        read = reader(case, scene, key, site, window)
        right = _right(case.subject, scene, read)
        return stated(*read.given, negation(right))

    return build


def _right(subject: Subject, scene: Scene, read: Reader) -> Formula:
    """That the supplier is there and writes all bytes of the window, from where they are to be."""
    touch = read.touch
    assert touch.origin is not None
    rank, region, offset = touch.origin
    if read.supplier is None:
        own = region == touch.region and not list(writing(subject, touch.region))
        return both(equal(rank, touch.rank), equal(offset, touch.extent.offset)) if own else FALSE
    written = writes(scene, read.supplier)
    partly = adds(read.supplier.site) or read.supplier.site.share
    if len(written) != 1 or partly or written[0].origin is None:
        return FALSE
    (write,) = written
    assert write.origin is not None
    bounds = scene.bounds(*read.event.exists)
    inside = never_negative(touch.extent.offset - write.extent.offset, bounds) and never_negative(
        write.extent.stop - touch.extent.stop, bounds
    )
    if not inside or write.region != touch.region or write.origin[1] != region or write.guard != TRUE:
        return FALSE
    delta = (offset - touch.extent.offset) - (write.origin[2] - write.extent.offset)
    launch = equal(read.supplier.turns[0], read.event.turns[0])  # inputs may change from one to the next
    return both(
        *read.supplier.exists, launch, equal(write.rank, touch.rank), equal(write.origin[0], rank),
        equal(delta, 0),
    )  # fmt: skip


def delivered_once(case: Case) -> Iterator[Claim]:
    """No second event delivers the same right bytes: the reader would need the later of the two."""
    for key, site, window in reading(case.subject):
        if case.suppliers.get(key) is None:
            continue
        for other, place in writing(case.subject, window.address.region):
            if not adds(other):
                statement = _delivers_too(case, key, site, window, other, place)
                title = f"{at(other)} delivers nothing that {at(site)} has from elsewhere"
                yield Claim(f"once {key} {other.number}.{place}", title, (statement,))


def _delivers_too(case: Case, key: str, site: Site, window: Window, other: Site, place: int) -> Statement:
    def build(scene: Scene) -> Stated:
        read = reader(case, scene, key, site, window)
        writer = scene.anywhere(other)
        written = writes(scene, writer)[place]
        assert read.supplier is not None
        assert read.touch.origin is not None
        if written.origin is None or written.origin[1] != read.touch.origin[1]:
            return stated(FALSE)
        shared = both(*writer.exists, touching(scene, read.touch, written, read.event, writer))
        from_one = equal(written.origin[0], read.touch.origin[0])
        bounds = scene.bounds(*read.event.exists, *writer.exists)
        sources = overlap(
            Extent(read.touch.origin[2], read.touch.extent.bytes),
            Extent(written.origin[2], written.extent.bytes),
            bounds,
        )
        delta = (read.touch.origin[2] - read.touch.extent.offset) - (
            written.origin[2] - written.extent.offset
        )
        right = equal(delta.substitute(solved(both(shared, from_one))), 0)
        here = equal(writer.turns[0], read.supplier.turns[0])
        return stated(*read.given, shared, from_one, sources, right, here, another(writer, read.supplier))

    return build


def another(a: Event, b: Event) -> Formula:
    """That ``a`` is not ``b``."""
    if a.site is not b.site:
        return TRUE
    places = (differ(a.rank, b.rank), differ(a.block, b.block))
    return either(*places, *(differ(x, y) for x, y in zip(a.turns, b.turns, strict=True)))


# --- order ------------------------------------------------------------------------------------


def arrivals(case: Case) -> Iterator[Claim]:
    """What a reader needs has arrived when it begins."""
    for key, site, window in reading(case.subject):
        chosen = case.suppliers.get(key)
        if chosen is not None:
            title = f"{at(chosen.site)} has landed before {at(site)}"
            yield Claim(f"arrives {key}", title, (_arrives(case, key, site, window),))


def _arrives(case: Case, key: str, site: Site, window: Window) -> Statement:
    def build(scene: Scene) -> Stated:
        read = reader(case, scene, key, site, window)
        assert read.supplier is not None
        pair = Pair(read.supplier, read.supplier.end, read.event, read.event.begin)
        return stated(*read.given, pairs=(pair,))

    return build


def undisturbed(case: Case, *, across: bool) -> Iterator[Claim]:
    """Nothing else writes what a reader needs, from its delivery to its reading.

    ``across``: what is written in another launch, else what is in the same.
    """
    for key, site, window in reading(case.subject):
        if case.suppliers.get(key) is None:
            continue
        for other, place in writing(case.subject, window.address.region):
            statement = _kept(case, key, site, window, other, place, across)
            launch = " of another launch" if across else ""
            title = f"{at(site)} is done before {at(other)}{launch} writes there"
            yield Claim(f"keeps {key} {other.number}.{place}{' across' * across}", title, (statement,))


def _kept(
    case: Case, key: str, site: Site, window: Window, other: Site, place: int, across: bool
) -> Statement:
    def build(scene: Scene) -> Stated:
        read = reader(case, scene, key, site, window)
        assert read.supplier is not None
        writer = scene.anywhere(other)
        shared = touching(scene, read.touch, writes(scene, writer)[place], read.event, writer)
        launches = _launches(read.event, writer, across=across)
        pairs = (
            Pair(read.event, read.event.end, writer, writer.begin),
            Pair(writer, writer.begin, read.supplier, read.supplier.begin),
        )
        return stated(
            *read.given, *writer.exists, shared, launches, another(writer, read.supplier), pairs=pairs
        )

    return build


def _launches(a: Event, b: Event, *, across: bool) -> Formula:
    return differ(a.turns[0], b.turns[0]) if across else equal(a.turns[0], b.turns[0])


def ordered_writes(case: Case, *, across: bool) -> Iterator[Claim]:
    """Of two writes of the same bytes one is done before the other begins."""
    sites = case.subject.of_kind(Kind.PUT, Kind.WRITE)
    for one, other in combinations_with_replacement(sites, 2):
        if adds(one) and adds(other):
            continue
        for a, first in enumerate(regions_written(one)):
            for b, second in enumerate(regions_written(other)):
                if first == second:
                    key = f"writes {one.number}.{a} {other.number}.{b}{' across' * across}"
                    title = f"{at(one)} and {at(other)} do not write the same bytes at a time"
                    yield Claim(key, title, (_ordered_writes(one, a, other, b, across),))


def _ordered_writes(one: Site, a: int, other: Site, b: int, across: bool) -> Statement:
    def build(scene: Scene) -> Stated:
        x, y = scene.anywhere(one), scene.anywhere(other)
        first, second = writes(scene, x)[a], writes(scene, y)[b]
        shared = touching(scene, first, second, x, y)
        given = [*x.exists, *y.exists, shared, _launches(x, y, across=across)]
        if one is other:
            given.append(another(x, y))
            if a == b:  # either may be called the first
                given.append(_not_after(x, y))
            if one.share:  # blocks share the bytes of one window, none twice
                own = (equal(x.rank, y.rank), equal(x.block, y.block))
                same = solved(shared)  # so that products of turns and parameters are seen to be equal
                moved = (
                    differ((first.extent.offset - second.extent.offset).substitute(same), 0),
                    differ((first.extent.bytes - second.extent.bytes).substitute(same), 0),
                )
                given.append(either(both(*own), *moved))
        pairs = (Pair(x, x.end, y, y.begin), Pair(y, y.end, x, x.begin))
        return stated(*given, pairs=pairs)

    return build


def _not_after(a: Event, b: Event) -> Formula:
    result: Formula = TRUE
    for x, y in reversed(list(zip(a.turns, b.turns, strict=True))):
        result = either(less(x, y), both(equal(x, y), result))
    return result


def completed(case: Case) -> Iterator[Claim]:
    """Every put has landed when its core ends the launch."""
    for site in case.subject.of_kind(Kind.PUT):
        yield Claim(f"lands {site.number}", f"{at(site)} has landed when its core ends", (_lands(site),))


def _lands(site: Site) -> Statement:
    def build(scene: Scene) -> Stated:
        put = scene.anywhere(site)
        (end,) = (s for s in scene.subject.of_role(site.role) if s.kind is Kind.END)
        last = scene.event(end, put.rank, put.block, put.turns[:1])
        return stated(*put.exists, *last.exists, pairs=(Pair(put, put.end, last, last.begin),))

    return build
