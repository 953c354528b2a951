"""Deadlock-freedom by ranks: checks that a table of ranks grows along everything that must come before.

An event's rank is the launch, its site's phase, and ``factor * turn + offset``, the turn being that of the
loop within a launch. What waits for something has a larger rank, so nothing waits in a circle. A loop within
that loop is one place there: what leads to it is below, and what follows above, all that stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..protocol.instance import Kind
from .audit_claims import Case, Claim, Invalid, Statement, at, stated
from .audit_scene import Match, Subject, waits_for
from .parametric.formula import Formula, at_least, negation
from .parametric.sites import Loop, Site


@dataclass(frozen=True, slots=True)
class RankTable:
    """``phase`` and ``offset`` of every site by number; a turn adds ``factor``."""

    factor: int
    phase: Mapping[int, int]
    offset: Mapping[int, int]


def grows(case: Case, table: RankTable) -> Iterator[Claim]:
    """Raises Invalid where a rank does not grow; yields what is left to prove of parameters."""
    subject = case.subject
    numbers = {site.number for site in subject.sites}
    if set(table.phase) != numbers or set(table.offset) != numbers or table.factor < 1:
        raise Invalid("the table of ranks has not one entry for every site")
    for first in subject.sites:
        for then in subject.of_role(first.role):
            if _linked(first, then):
                _check_in_core(subject, table, first, then)
    for match in subject.matches:
        yield from _release(table, match)


def enough_cores(case: Case) -> Iterator[Claim]:
    """All blocks run at once where barriers wait for all of them."""
    subject = case.subject
    cores = subject.setup.profile.cores
    if cores is not None and subject.barriers():
        blocks = subject.domain.names["blocks"]
        fits = negation(at_least(cores, blocks))
        yield Claim("cores", f"at most {cores} blocks, which run at once", (_of_parameters(fits),))


def _of_parameters(denied: Formula) -> Statement:
    return lambda _: stated(denied)


def _linked(first: Site, then: Site) -> bool:
    """Whether an event of ``then`` waits for earlier events of ``first`` on its core."""
    lands = first.kind is Kind.PUT and then.kind is Kind.QUIET
    return waits_for(first, then) or then.after == first.number or lands


def _check_in_core(subject: Subject, table: RankTable, first: Site, then: Site) -> None:
    """``first`` before ``then`` in one launch: in one turn, or in an earlier turn of one loop."""
    loop, other = _loop(first), _loop(then)
    stands = _stands_before(first, then)
    if loop is None or loop is not other:
        if not stands or first is then:
            return  # only in a later launch
        earlier = table.phase[first.number] < table.phase[then.number]
        flat = loop is None and other is None and table.phase[first.number] == table.phase[then.number]
        if not (earlier or (flat and table.offset[first.number] < table.offset[then.number])):
            raise Invalid(_shrinks(first, then))
        return
    if table.phase[first.number] != table.phase[then.number]:
        raise Invalid(f"{then.span.place}: sites of one loop are in two phases")
    if len(first.loops) > 2 and len(then.loops) > 2 and first.loops[2] is then.loops[2]:
        if len(first.loops) > 3 or len(then.loops) > 3:
            raise Invalid(f"{then.span.place}: loops as deep as this have no ranks")
        if stands and first is not then and table.offset[first.number] >= table.offset[then.number]:
            raise Invalid(_shrinks(first, then))
        stands = False  # in one turn of the outer loop, the inner turns tell
    high = max(table.offset[site.number] for site in _place(subject, first))
    low = min(table.offset[site.number] for site in _place(subject, then))
    if high >= low + table.factor or (stands and first is not then and high >= low):
        raise Invalid(_shrinks(first, then))


def _shrinks(first: Site, then: Site) -> str:
    return f"the rank does not grow from {at(first)} to {at(then)}"


def _loop(site: Site) -> Loop | None:
    return site.loops[1] if len(site.loops) > 1 else None


def _place(subject: Subject, site: Site) -> list[Site]:
    """The sites of the inner loop that ``site`` is in, or it alone."""
    if len(site.loops) < 3:
        return [site]
    return [s for s in subject.sites if len(s.loops) > 2 and s.loops[2] is site.loops[2]]


def _stands_before(first: Site, then: Site) -> bool:
    for a, b in zip(first.path, then.path, strict=False):
        if a.position != b.position:
            return a.position < b.position
    return True


def _release(table: RankTable, match: Match) -> Iterator[Claim]:
    """A set has a smaller rank than the wait that it releases."""
    first, then = match.set.number, match.wait.number
    if len(match.shift) > 2:
        raise Invalid(f"{match.wait.span.place}: a wait in a loop within a loop has no rank")
    if table.phase[first] < table.phase[then]:
        return
    if table.phase[first] > table.phase[then]:
        raise Invalid(_shrinks(match.set, match.wait))
    growth = table.offset[then] - table.offset[first]
    if len(match.shift) == 1:
        if growth < 1:
            raise Invalid(_shrinks(match.set, match.wait))
        return
    denied = negation(at_least(match.shift[1] * table.factor + growth, 1))
    title = f"the rank grows from {at(match.set)} to {at(match.wait)}"
    yield Claim(f"rank {then}", title, (_of_parameters(denied),))
