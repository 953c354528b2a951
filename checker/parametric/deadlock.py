"""Deadlock-freedom for all values: a rank for every site that grows along everything that must come before.

A rank is a tuple: the launch, the phase (which of the loops, or stretches between them, of a launch), and
``factor * turn + offset`` for every loop within the launch, outermost first. If it grows from each event to
every event that waits for it, nothing waits in a circle; with a set for every wait and every barrier called
by all, nothing waits for ever. The table of ranks is the certificate: `audit` checks it edge by edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER
from .formula import at_least
from .polynomial import Poly, number
from .program import Match, Program
from .question import Question
from .sites import Loop, Site, common_loops, follows_on_pipe, stands_before


@dataclass(frozen=True, slots=True)
class Edge:
    """``then`` comes after ``first``: at least ``distance`` turns of loop ``level`` later.

    Their turns of the loops outside it are the same. Loops are counted from 0, without launches; where a
    site is in none, all of the launch is one turn of loop 0.
    """

    first: Site
    then: Site
    level: int
    distance: int


@dataclass(frozen=True, slots=True)
class Ranks:
    """``phase`` of every site by number, and an offset for each of its loops; a turn adds ``factor``."""

    factor: int
    phase: Mapping[int, int]
    offset: Mapping[int, tuple[int, ...]]


def ranks_of(program: Program) -> Ranks | None:
    """A table of ranks that grows along every edge, or None."""
    phases = _phases(program)
    if phases is None:
        return None
    within = [e for e in edges_of(program) if phases[e.first.number] == phases[e.then.number]]
    factor = 2 * len(program.sites) + 2
    offset: dict[int, tuple[int, ...]] = {site.number: () for site in program.sites}
    for level in range(max(map(_depth, program.sites))):
        found = _offsets(program, within, level, factor)
        if found is None:
            return None
        for site in program.sites:
            if level < _depth(site):
                offset[site.number] += (found[site.number],)
        within = [e for e in within if e.level > level and found[e.first.number] == found[e.then.number]]
    return Ranks(factor, phases, offset)


def _depth(site: Site) -> int:
    """How many offsets it has: one for each loop within the launch, or one where it is in none."""
    return max(1, len(site.loops) - 1)


def edges_of(program: Program) -> Iterable[Edge]:
    """What has to come before what, between sites.

    Of two sites in one loop, each turn of the first that is before one of the second; it is enough that the
    rank grows from one to the nearest: later ones are larger.
    """
    for first in program.sites:
        for then in program.sites_of(first.role):
            lands = first.kind is Kind.PUT and then.kind is Kind.QUIET
            if not (follows_on_pipe(first, then) or then.after == first.number or lands):
                continue
            level = common_loops(first, then) - 2
            if first is not then and stands_before(first, then):
                yield Edge(first, then, max(0, level), 0)
            elif level >= 0:
                yield Edge(first, then, level, 1)
    for match in program.matches:
        yield _release(program, match)


def _release(program: Program, match: Match) -> Edge:
    """The set releases the wait: told by the first loop in which they are not in the same turn."""
    steps = match.shift[1:] or (number(0),)
    level = next((place for place, step in enumerate(steps) if step != number(0)), len(steps) - 1)
    return Edge(match.set, match.wait, level, _least(program, steps[level]))


def _turning(site: Site) -> Loop | None:
    """The loop within a launch whose turns the site has."""
    return site.loops[1] if len(site.loops) > 1 else None


def _least(program: Program, distance: Poly) -> int:
    """How many turns later the wait is at least."""
    question = Question(program)
    for least in (1, 0, -1, -2):
        if question.implies((), at_least(distance, least)):
            return least
    return -(len(program.sites) ** 2)  # no table will bear it


# --- phases -----------------------------------------------------------------------------------


def _phases(program: Program) -> dict[int, int] | None:
    """A phase for every site: sites that flags tie to each other, or that share a loop, have one."""
    stretch = {site.number: _stretch(site) for site in program.sites}
    parent = {key: key for key in stretch.values()}

    def find(key: tuple[object, ...]) -> tuple[object, ...]:
        while parent[key] != key:
            key = parent[key]
        return key

    for match in program.matches:
        parent[find(stretch[match.set.number])] = find(stretch[match.wait.number])
    meetings = [site for site in program.sites if site.barrier is STREAM_ORDER]
    for site in meetings[1:]:
        parent[find(stretch[site.number])] = find(stretch[meetings[0].number])
    follows: dict[tuple[object, ...], set[tuple[object, ...]]] = {find(key): set() for key in parent}
    for role in program.roles:
        order = list(dict.fromkeys(find(stretch[site.number]) for site in program.sites_of(role)))
        for place, key in enumerate(order[1:], 1):
            follows[key].add(order[place - 1])
        seen = [find(stretch[site.number]) for site in program.sites_of(role)]
        if any(key in seen[:place] and seen[place - 1] != key for place, key in enumerate(seen) if place):
            return None  # a phase that is left and entered again
    level: dict[tuple[object, ...], int] = {}
    while len(level) < len(follows):
        ready = [key for key, before in follows.items() if key not in level and before <= level.keys()]
        if not ready:
            return None
        level |= {key: max((level[b] for b in follows[key]), default=-1) + 1 for key in ready}
    for role in program.roles:
        mine = {stretch[site.number]: _turning(site) for site in program.sites_of(role)}
        for key, loop in mine.items():
            if loop is not None and any(other != key and find(other) == find(key) for other in mine):
                return None  # turns of a loop say nothing of what stands behind the loop
    return {number: level[find(key)] for number, key in stretch.items()}


def _stretch(site: Site) -> tuple[object, ...]:
    """The loop of a site, or the stretch between two loops in which it stands."""
    loop = _turning(site)
    if loop is not None:
        return (site.role.name, id(loop))
    return (site.role.name, "at", site.path[1].position)


# --- offsets ----------------------------------------------------------------------------------


def _offsets(program: Program, edges: list[Edge], level: int, factor: int) -> dict[int, int] | None:
    """The offsets of one level, by Bellman and Ford: the least that let the rank grow along its edges.

    Along edges of inner loops it must not shrink; where it does not grow either, the inner loops tell.
    """
    offset = {site.number: 0 for site in program.sites}
    for _ in range(len(offset) + 1):
        changed = False
        for edge in edges:
            growth = 1 - factor * edge.distance if edge.level == level else 0
            least = offset[edge.first.number] + growth
            if offset[edge.then.number] < least:
                offset[edge.then.number] = least
                changed = True
        if not changed:
            return offset
    return None
