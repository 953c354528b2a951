"""What must be ordered in memory, for all values: who delivers what a reader needs, and who may disturb it.

For every site that reads with a stated origin, the put that delivers it is found (its supplier) and proved to
cover the whole window with the right bytes. Every other write that can touch the window must be before the
supplier begins or after the reader is done. These are the obligations of `checker.obligations`, once for all
cores and turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...protocol.expr import Const
from ...protocol.instance import Kind
from ...protocol.program import Window
from .formula import FALSE, TRUE, Formula, both, differ, either, equal, less, negation, solved
from .polynomial import Poly, never_negative, number
from .program import Program
from .question import Happening, Question, same_core
from .sites import Site
from .touches import Touch, adds, read_touch, touching, writers, writes_of
from .windows import Extent, overlap


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that could not be proved: of which property, and where."""

    property: str
    text: str
    site: Site


# --- suppliers --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Supply:
    """How a reader gets its bytes: the question in which it and its supplier happen.

    ``supplier`` None: the bytes are an input of its own that nobody writes.
    """

    question: Question
    reader: Happening
    touch: Touch
    window: Window
    supplier: Happening | None


def supply_of(program: Program, site: Site, window: Window) -> Supply | None:
    """Who delivers ``window`` to ``site``, proved to be there and right for all values; None: nobody seen."""
    if not writers(program, window.address.region):
        question, reader, touch = _reading(program, site, window)
        assert touch.origin is not None
        rank, region, offset = touch.origin
        right = both(equal(rank, touch.rank), equal(offset, touch.extent.offset))
        if region == touch.region and question.implies([reader.exists, touch.guard], right):
            return Supply(question, reader, touch, window, None)
        return None
    for other in writers(program, window.address.region):
        for place in range(_PLACES if other.kind is Kind.PUT else 1):
            for told in (False, True) if len(other.loops) > 1 else (False,):
                question, reader, touch = _reading(program, site, window)
                supplier = _candidate(question, other, reader, touch, place, told=told)
                if _delivers(question, [reader.exists, touch.guard], reader, touch, supplier):
                    return Supply(question, reader, touch, window, supplier)
    return None


def _reading(program: Program, site: Site, window: Window) -> tuple[Question, Happening, Touch]:
    question = Question(program)
    reader = question.happen(site, question.core(site.role))
    return question, reader, read_touch(question, reader, window)


_PLACES = 4


def _candidate(
    question: Question, site: Site, reader: Happening, touch: Touch, place: int, *, told: bool
) -> Happening:
    """An event of ``site`` that may be the supplier: on the origin's rank, in the reader's turn.

    ``place`` chooses its block: that of the reader's rank, the first, the reader's, that of its own rank.
    ``told``: it is in the turns that its peer and its offsets tell, where they tell them.
    """
    assert touch.origin is not None
    common = min(len(site.loops), len(reader.site.loops))
    turns = reader.turns[:common] + (number(0),) * (len(site.loops) - common)
    if told:
        turns = _told(question.program, site, reader.site, touch, turns)
    if site.kind is not Kind.PUT:
        core = reader.core
        if site.role is not core.role:
            core = question.core(site.role, core.rank, core.block)
        return question.happen(site, core, turns)
    block = (touch.rank, number(0), reader.core.block, touch.origin[0])[place]
    return question.happen(site, question.core(site.role, touch.origin[0], block), turns)


def _told(
    program: Program, site: Site, reading: Site, touch: Touch, turns: tuple[Poly, ...]
) -> tuple[Poly, ...]:
    """The turns of ``site`` in which it writes what ``touch`` needs; those of ``turns`` that are not told.

    The window that is read and the one that is written have one rank and one offset, in the region and in
    the input; what follows of the turns is taken. Whether the event is the supplier is proved afterwards.
    """
    question = Question(program)
    reader = question.happen(reading, question.core(reading.role))  # the symbols of the question before
    writer = question.happen(site, question.core(site.role))
    (written, *_) = writes_of(question, writer)
    if written.origin is None or touch.origin is None:
        return turns
    bounds = question.bounds(reader, writer)
    same = both(
        equal(written.rank, touch.rank),
        equal(written.origin[0], touch.origin[0]),
        overlap(
            Extent(written.origin[2], written.extent.bytes),
            Extent(touch.origin[2], touch.extent.bytes),
            bounds,
        ),
        overlap(written.extent, touch.extent, bounds),
    )
    places = (writer.core.rank, writer.core.block, *writer.turns)
    known = solved(same, frozenset().union(*(place.symbols for place in places)))
    here = {name for place in (reader.core.rank, reader.core.block, *reader.turns) for name in place.symbols}
    here |= program.domain.free.keys()
    found = [turn.substitute(known) for turn in writer.turns]
    return tuple(new if new.symbols <= here else old for new, old in zip(found, turns, strict=True))


def _delivers(
    question: Question, given: list[Formula], reader: Happening, touch: Touch, supplier: Happening
) -> bool:
    """Whether ``supplier`` is there whenever the reader is, and writes all of its bytes, the right ones."""
    if adds(supplier.site):
        return False
    (written, *more) = writes_of(question, supplier)
    if more or written.origin is None or touch.origin is None or written.region != touch.region:
        return False
    bounds = question.bounds(reader)
    covers = never_negative(touch.extent.offset - written.extent.offset, bounds) and never_negative(
        written.extent.stop - touch.extent.stop, bounds
    )
    delta = (touch.origin[2] - touch.extent.offset) - (written.origin[2] - written.extent.offset)
    if not covers or written.origin[1] != touch.origin[1]:
        return False
    right = both(
        supplier.exists,
        equal(written.rank, touch.rank),
        equal(written.origin[0], touch.origin[0]),
        equal(delta, 0),
    )
    return question.implies(given, right)


# --- order ------------------------------------------------------------------------------------


Point = tuple[Happening, Poly]


def ordered(question: Question, given: list[Formula], first: Point, then: Point, title: str = "") -> bool:
    """Whether the point ``first`` comes before ``then`` in every timing, where ``given`` holds."""
    return excluded(question, given, [(first, then)], title)


def excluded(
    question: Question, given: list[Formula], pairs: list[tuple[Point, Point]], title: str = ""
) -> bool:
    """Whether in every timing one of ``pairs`` is in its order, where ``given`` holds."""
    denied = [negation(less(first, then)) for (_, first), (_, then) in pairs]
    (first, _), (then, _) = pairs[0]  # the others are in program order, or the first seen from elsewhere
    question.seek(first, then)
    further = True
    while further:
        rules = [rule.condition for rule in question.rules()]
        if question.excludes(*given, *rules, *denied, title=title):
            return True
        further = question.gather()
    return False


def unique_queues(program: Program) -> Finding | None:
    """Two cores of one rank that post to one peer: their requests race, and quiets wait for either's."""
    sites = program.of_kind(Kind.PUT, Kind.QUIET)
    for place, one in enumerate(sites):
        for other in sites[place:]:
            question = Question(program)
            core = question.core(one.role)
            a = question.happen(one, core)
            b = question.happen(other, question.core(other.role, core.rank))
            turns = [equal(x, y) for x, y in zip(a.turns[:1], b.turns[:1], strict=True)]
            apart = TRUE if one.role is not other.role else differ(a.core.block, b.core.block)
            peers = equal(_peer(question, a), _peer(question, b))
            given = [a.exists, b.exists, apart, peers, *turns]
            if not question.excludes(*given):
                return Finding("no-write-conflict", "two cores may post to one peer", other)
    return None


def _peer(question: Question, happening: Happening) -> Poly:
    peer = getattr(happening.site.operation, "peer", Const(0))
    return question.value(happening, peer)


def read_before_write(supply: Supply) -> bool:
    """Whether the supplier has ended before the reader begins."""
    if supply.supplier is None:
        return True
    given = [supply.reader.exists, supply.touch.guard]
    return ordered(
        supply.question,
        given,
        (supply.supplier, supply.supplier.end),
        (supply.reader, supply.reader.begin),
        "no-read-before-write",
    )


def disturbers(program: Program, site: Site, window: Window, *, across: bool) -> Iterator[Site]:
    """Sites that write where ``window`` is read, and may do so before the reader is done.

    ``across``: events of another launch than the reader's, else those of its own.
    """
    for other in writers(program, window.address.region):
        supply = supply_of(program, site, window)
        if supply is None or supply.supplier is None or not _cannot_disturb(supply, other, across):
            yield other


def launches_apart(a: Happening, b: Happening, *, across: bool) -> Formula:
    """That two events are of different launches (``across``), or of one."""
    return differ(a.turns[0], b.turns[0]) if across else equal(a.turns[0], b.turns[0])


def _cannot_disturb(supply: Supply, other: Site, across: bool) -> bool:
    question, reader, supplier = supply.question, supply.reader, supply.supplier
    assert supplier is not None
    writer = question.happen(other, question.core(other.role))
    for written in writes_of(question, writer):
        shared = touching(question, supply.touch, written, reader, writer)
        if shared == FALSE:
            continue
        given = [reader.exists, writer.exists, shared, launches_apart(reader, writer, across=across)]
        if writer.site is supplier.site:
            given.append(another(writer, supplier))
        pairs = [
            ((reader, reader.end), (writer, writer.begin)),
            ((writer, writer.begin), (supplier, supplier.begin)),
        ]
        if not excluded(question, given, pairs, "no-overwrite-before-read"):
            return False
    return True


def conflicts(program: Program, *, across: bool) -> Iterator[tuple[Site, Site]]:
    """Pairs of sites whose writes may meet in the same bytes without an order.

    ``across``: those of two launches, else of one.
    """
    sites = program.of_kind(Kind.PUT, Kind.WRITE)
    for place, one in enumerate(sites):
        for other in sites[place:]:
            if not (adds(one) and adds(other)) and not _in_order(program, one, other, across):
                yield one, other


def _in_order(program: Program, one: Site, other: Site, across: bool) -> bool:
    question = Question(program)
    a = question.happen(one, question.core(one.role))
    b = question.happen(other, question.core(other.role))
    for first in writes_of(question, a):
        for second in writes_of(question, b):
            shared = touching(question, first, second, a, b)
            given = [a.exists, b.exists, shared, launches_apart(a, b, across=across)]
            if one is other:
                given.append(not_after(a, b))  # either is as good as the other
                if one.share:  # the shares of different blocks of one window are disjoint
                    same = solved(shared)  # so that products of turns and parameters are seen to be equal
                    moved = (
                        differ((first.extent.offset - second.extent.offset).substitute(same), 0),
                        differ((first.extent.bytes - second.extent.bytes).substitute(same), 0),
                    )
                    given.append(either(same_core(a.core, b.core), *moved))
                given.append(another(a, b))
            if question.excludes(*given):
                continue
            pairs = [((a, a.end), (b, b.begin)), ((b, b.end), (a, a.begin))]
            if one is not other:
                question.seek(b, a)
            if not excluded(question, given, pairs, "no-write-conflict"):
                return False
    return True


def another(a: Happening, b: Happening) -> Formula:
    """That two events of one site are not the same: another core, or another turn."""
    turns = [differ(x, y) for x, y in zip(a.turns, b.turns, strict=True)]
    return either(negation(same_core(a.core, b.core)), *turns)


def not_after(a: Happening, b: Happening) -> Formula:
    """Whether the turns of ``a`` are not later than those of ``b``, of one site."""
    result: Formula = TRUE
    for x, y in reversed(list(zip(a.turns, b.turns, strict=True))):
        result = either(less(x, y), both(equal(x, y), result))
    return result


def delivered_twice(supply: Supply) -> bool:
    """Whether a second event may write the same right bytes in the reader's launch."""
    program, question, supplier = supply.question.program, supply.question, supply.supplier
    if supplier is None:
        return False
    for other in writers(program, supply.touch.region):
        writer = question.happen(other, question.core(other.role))
        for written in writes_of(question, writer):
            if written.origin is None or supply.touch.origin is None or adds(other):
                continue
            if written.origin[1] != supply.touch.origin[1]:
                continue
            shared = touching(question, supply.touch, written, supply.reader, writer)
            delta = (supply.touch.origin[2] - supply.touch.extent.offset) - (
                written.origin[2] - written.extent.offset
            )
            same = both(shared, equal(written.origin[0], supply.touch.origin[0]), writer.exists)
            sources = overlap(  # digit by digit, which tells more than the difference of two products
                Extent(supply.touch.origin[2], supply.touch.extent.bytes),
                Extent(written.origin[2], written.extent.bytes),
                question.bounds(supply.reader, writer),
            )
            right = both(same, sources, equal(delta.substitute(solved(same)), 0))
            given = [
                supply.reader.exists,
                writer.exists,
                shared,
                right,
                equal(writer.turns[0], supplier.turns[0]),
            ]
            if other is supplier.site:
                given.append(another(writer, supplier))
            if not question.excludes(*given):
                return True
    return False


def incomplete(program: Program) -> Iterator[Site]:
    """Puts that may not be complete when their core ends the launch."""
    for site in program.of_kind(Kind.PUT):
        question = Question(program)
        put = question.happen(site, question.core(site.role))
        (end,) = (s for s in program.sites_of(site.role) if s.kind is Kind.END)
        last = question.happen(end, put.core, put.turns[:1])
        if not ordered(question, [put.exists, last.exists], (put, put.end), (last, last.begin), "completion"):
            yield site
