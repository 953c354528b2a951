"""Deadlock-freedom by ranks: checks that a table of ranks grows along everything that must come before.

An event's rank is the launch, its site's phase, and ``factor * turn + offset`` for every loop within the
launch, outermost first; ranks are compared by the first of these that differs. What waits for something has
a larger rank, so nothing waits in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..protocol.instance import Kind
from .audit_claims import Case, Claim, Invalid, Statement, at, stated
from .audit_scene import Match, waits_for
from .parametric.formula import Formula, at_least, negation
from .parametric.polynomial import number
from .parametric.sites import Site


@dataclass(frozen=True, slots=True)
class RankTable:
    """``phase`` of every site by number, and an offset for each of its loops; a turn adds ``factor``.

    A site outside of all loops of a launch has one offset too.
    """

    factor: int
    phase: Mapping[int, int]
    offset: Mapping[int, tuple[int, ...]]


def grows(case: Case, table: RankTable) -> Iterator[Claim]:
    """Raises Invalid where a rank does not grow; yields what is left to prove of parameters."""
    subject = case.subject
    numbers = {site.number for site in subject.sites}
    if set(table.phase) != numbers or set(table.offset) != numbers or table.factor < 1:
        raise Invalid("the table of ranks has not one entry for every site")
    if any(len(table.offset[site.number]) != max(1, len(site.loops) - 1) for site in subject.sites):
        raise Invalid("the table of ranks has not one offset for every loop")
    for first in subject.sites:
        for then in subject.of_role(first.role):
            if _linked(first, then):
                _check_in_core(table, first, then)
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


def _check_in_core(table: RankTable, first: Site, then: Site) -> None:
    """``first`` before ``then`` in one launch: in one turn, or in an earlier turn of a loop of both."""
    stands = first is not then and _stands_before(first, then)
    shared = 0
    for loop, other in zip(first.loops[1:], then.loops[1:], strict=False):
        if loop is not other:
            break
        shared += 1
    phase, later = table.phase[first.number], table.phase[then.number]
    if shared and phase != later:
        raise Invalid(f"{then.span.place}: sites of one loop are in two phases")
    if not shared:
        flat = phase == later and len(first.loops) == len(then.loops) == 1
        if stands and not (phase < later or (flat and _grows(table, first, then, 1, 0))):
            raise Invalid(_shrinks(first, then))
        return
    # the turns of ``level - 1`` loops are the same, and then's turn of the next is later by one or more
    if not all(_grows(table, first, then, level, 1) for level in range(1, shared + 1)):
        raise Invalid(_shrinks(first, then))
    if stands and not _grows(table, first, then, shared, 0):
        raise Invalid(_shrinks(first, then))


def _grows(table: RankTable, first: Site, then: Site, levels: int, turns: int) -> bool:
    """Whether the rank grows within ``levels`` loops, the last of them at least ``turns`` turns later."""
    own, other = table.offset[first.number], table.offset[then.number]
    for place in range(levels):
        more = turns * table.factor if place == levels - 1 else 0
        if own[place] != other[place] + more:
            return own[place] < other[place] + more
    return False


def _shrinks(first: Site, then: Site) -> str:
    return f"the rank does not grow from {at(first)} to {at(then)}"


def _stands_before(first: Site, then: Site) -> bool:
    for a, b in zip(first.path, then.path, strict=False):
        if a.position != b.position:
            return a.position < b.position
    return True


def _release(table: RankTable, match: Match) -> Iterator[Claim]:
    """A set has a smaller rank than the wait that it releases."""
    first, then = match.set.number, match.wait.number
    if table.phase[first] < table.phase[then]:
        return
    if table.phase[first] > table.phase[then]:
        raise Invalid(_shrinks(match.set, match.wait))
    steps = match.shift[1:] or (number(0),)
    for place, step in enumerate(steps):
        growth = step * table.factor + (table.offset[then][place] - table.offset[first][place])
        if growth.constant is None:
            title = f"the rank grows from {at(match.set)} to {at(match.wait)}"
            yield Claim(f"rank {then}", title, (_of_parameters(negation(at_least(growth, 1))),))
            return
        if growth.constant > 0:
            return
        if growth.constant < 0:
            break
    raise Invalid(_shrinks(match.set, match.wait))
