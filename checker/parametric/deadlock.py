"""Deadlock-freedom for all values: a rank for every site that grows along everything that must come before.

A rank is a tuple: the launch, the phase (which of the loops, or stretches between them, of a launch), and
``factor * turn + offset``. If it grows from each event to every event that waits for it, nothing waits in a
circle; with a set for every wait and every barrier called by all, nothing waits for ever. The table of ranks
is the certificate: `audit` checks it edge by edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER
from .formula import at_least
from .polynomial import Poly
from .program import Match, Program
from .question import Question, follows_on_pipe, stands_before
from .sites import Loop, Site


@dataclass(frozen=True, slots=True)
class Edge:
    """``first`` comes before ``then``, at least ``distance`` turns later; both in one phase."""

    first: Site
    then: Site
    distance: int
    why: str


@dataclass(frozen=True, slots=True)
class Ranks:
    """``phase`` and ``offset`` of every site by number; a turn adds ``factor``."""

    factor: int
    phase: Mapping[int, int]
    offset: Mapping[int, int]


def ranks_of(program: Program) -> Ranks | None:
    """A table of ranks that grows along every edge, or None."""
    if any(len(match.shift) > 2 for match in program.matches):
        return None  # ranks count the turns of one loop, and cannot tell those of a loop within
    phases = _phases(program)
    if phases is None:
        return None
    edges = list(edges_of(program))
    factor = 2 * len(program.sites) + 2
    offset = _offsets(program, [e for e in edges if phases[e.first.number] == phases[e.then.number]], factor)
    return None if offset is None else Ranks(factor, phases, offset)


def edges_of(program: Program) -> Iterable[Edge]:
    """What has to come before what, between sites."""
    for first in program.sites:
        for then in program.sites_of(first.role):
            lands = first.kind is Kind.PUT and then.kind is Kind.QUIET
            if not (follows_on_pipe(first, then) or then.after == first.number or lands):
                continue
            if first is not then and stands_before(first, then):
                yield Edge(first, then, 0, "program order")
            elif _turning(first) is not None and _turning(first) is _turning(then):
                yield Edge(first, then, 1, "program order")
    for match in program.matches:
        yield Edge(match.set, match.wait, _least(program, match), "the set releases the wait")


def _turning(site: Site) -> Loop | None:
    """The loop within a launch whose turns the site has."""
    return site.loops[1] if len(site.loops) > 1 else None


def _least(program: Program, match: Match) -> int:
    """How many turns later the wait is at least."""
    distance = match.shift[-1] if len(match.shift) > 1 else Poly()
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


def _offsets(program: Program, edges: list[Edge], factor: int) -> dict[int, int] | None:
    """Offsets with ``offset(first) + 1 <= offset(then) + factor * distance``, by Bellman and Ford."""
    offset = {site.number: 0 for site in program.sites}
    for _ in range(len(offset) + 1):
        changed = False
        for edge in edges:
            least = offset[edge.first.number] + 1 - factor * edge.distance
            if offset[edge.then.number] < least:
                offset[edge.then.number] = least
                changed = True
        if not changed:
            return offset
    return None
