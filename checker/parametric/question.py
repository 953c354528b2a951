"""A question about order: some happenings of sites at symbolic cores and turns, and all that orders them.

A *happening* is one event of a site: a core, a turn of every loop, and the condition under which it exists.
From the happenings that a claim speaks of, those that synchronise with them are gathered in a few rounds:
the partner of a set or wait, the same barrier on another core, the other synchronisations of the same turn.
Each rule of `protocol.order` and `protocol.sync` then becomes a condition on the times of points, so that a
claim whose denial is impossible holds in every timing. Whoever gathers too little proves less, never more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...protocol.expr import Expr
from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER
from ...protocol.program import Put, Quiet, Role
from .atoms import Atoms
from .formula import (
    FALSE,
    TRUE,
    Formula,
    at_least,
    both,
    conjunction,
    either,
    equal,
    less,
    negation,
    solved,
    upper_bounds,
)
from .polynomial import Bounds, Poly, number, symbol
from .program import Program
from .sites import Site, comes_first, common_loops, follows_on_pipe, stands_before
from .solve import Answer
from .translate import Demand, Translator

ROUNDS = 5
MOST = 60
"""How many happenings are gathered at most."""

LASTING = frozenset({Kind.READ, Kind.WRITE, Kind.PUT, Kind.BARRIER})
"""Kinds with two points. A barrier's are its arrival and its leaving."""

SYNCHRONISING = frozenset({
    Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER, Kind.QUIET, Kind.PIPE_BARRIER, Kind.READ, Kind.WRITE,
})  # fmt: skip
"""Kinds that are gathered beside a happening: what a chain of orders can pass through."""


@dataclass(frozen=True, slots=True)
class Core:
    """A core at symbolic places."""

    role: Role
    rank: Poly
    block: Poly
    sub: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Happening:
    """One event of ``site``; ``turns`` one of each loop around it, ``names`` what its variables are."""

    number: int
    site: Site
    core: Core
    turns: tuple[Poly, ...]
    exists: Formula
    names: dict[str, Poly]

    @property
    def begin(self) -> Poly:
        """The time at which it begins."""
        return symbol(f"@{self.number}")

    @property
    def end(self) -> Poly:
        """The time at which it ends; for most kinds the same."""
        return symbol(f"@{self.number} end") if self.site.kind in LASTING else self.begin


class Rule(NamedTuple):
    """``first`` is before ``then`` wherever ``when`` holds; ``why`` names the rule."""

    when: Formula
    first: Poly
    then: Poly
    why: str
    of: tuple[int, int]

    @property
    def condition(self) -> Formula:
        """It as a condition on times."""
        return either(negation(self.when), less(self.first, self.then))


@dataclass(slots=True)
class Question:
    """Happenings and what is known of them."""

    program: Program
    atoms: Atoms = field(default_factory=Atoms)
    happenings: list[Happening] = field(default_factory=list)
    cores: list[Core] = field(default_factory=list)
    places: list[Formula] = field(default_factory=list)
    given: dict[Core, Formula] = field(default_factory=dict)
    fresh: int = 0
    ahead: dict[Happening, None] = field(default_factory=dict)
    behind: dict[Happening, None] = field(default_factory=dict)
    gone: tuple[int, int] = (0, 0)
    rounds: int = 0
    demands: list[Demand] = field(default_factory=list)

    # --- making ---------------------------------------------------------------------------------

    def number(self, name: str) -> Poly:
        """A new symbol."""
        self.fresh += 1
        return symbol(f"{name}#{self.fresh}")

    def core(self, role: Role, rank: Poly | None = None, block: Poly | None = None, sub: int = 0) -> Core:
        """A core of ``role``; any rank and block unless given.

        Whether there is a core at a given place is not known: its happenings exist only where there is.
        """
        known = {place for core in self.cores for place in (core.rank, core.block)}
        free = [rank is None, block is None]
        rank = self.number("rank") if rank is None else rank
        block = self.number("block") if block is None else block
        found = Core(role, rank, block, sub)
        if found not in self.cores:
            conditions: list[Formula] = []
            for place, count, chosen in zip((rank, block), ("ranks", "blocks"), free, strict=True):
                within = [at_least(place, 0), less(place, self.program.domain.names[count])]
                if chosen:
                    self.places += within
                elif not (place in known and set(within) <= set(self.places)):
                    conditions += within
            self.given[found] = conjunction(conditions)
            self.cores.append(found)
        return found

    def happen(self, site: Site, core: Core, turns: tuple[Poly, ...] | None = None) -> Happening:
        """An event of ``site`` on ``core``; in any turn unless given. Equal ones are one."""
        if turns is None:
            turns = tuple(self.number(loop.index) for loop in site.loops)
        for other in self.happenings:
            if other.site is site and other.core == core and other.turns == turns:
                return other
        exists, names = self._existence(site, core, turns)
        found = Happening(len(self.happenings), site, core, turns, exists, names)
        self.happenings.append(found)
        return found

    def translator(self, happening: Happening) -> Translator:
        """What translates the expressions of an operation where ``happening`` is."""
        return self.translator_in(happening.names, happening.site)

    def value(self, happening: Happening, expr: Expr) -> Poly:
        """``expr`` where ``happening`` is."""
        return self.translator(happening).value(expr)

    def translator_in(self, names: dict[str, Poly], site: Site) -> Translator:
        """What translates expressions at ``site`` where its variables are ``names``."""
        return Translator(names, self.atoms, self.program.domain.powers, site.span)

    def _existence(self, site: Site, core: Core, turns: tuple[Poly, ...]) -> tuple[Formula, dict[str, Poly]]:
        names = dict(self.program.domain.names)
        names |= {"rank": core.rank, "block": core.block, "sub": number(core.sub)}
        translator = self.translator_in(names, site)
        parts = translator.path
        parts.append(self.given.get(core, TRUE))
        for depth, (loop, turn) in enumerate(zip(site.loops, turns, strict=True), 1):
            start = translator.value(loop.start)
            parts += [at_least(turn, 0), less(start + turn * loop.step, translator.value(loop.stop))]
            names[loop.index] = start + turn * loop.step
            for guard in site.guards:
                if guard.depth == depth:
                    condition = translator.condition(guard.condition)
                    parts.append(condition if guard.wanted else negation(condition))
        if site.kind is Kind.READ:  # a segment of which nothing is read makes no event
            parts.append(either(*(translator.condition(window.guard) for window in site.windows)))
        self.demands += translator.demands
        return conjunction(parts), names

    def bounds(self, *happenings: Happening) -> dict[str, Bounds]:
        """What symbols lie between, for `never_negative`, given that ``happenings`` exist."""
        return self.bounds_where(*(happening.exists for happening in happenings))

    def bounds_where(self, *given: Formula) -> dict[str, Bounds]:
        """The same where some conditions hold."""
        found = self.program.domain.bounds() | self.atoms.bounds()
        names = self.program.domain.names
        highs: dict[str, list[Poly]] = {}
        for core in self.cores:
            for place, count in ((core.rank, names["ranks"]), (core.block, names["blocks"])):
                if at_least(place, 0) in self.places and len(place.terms) == 1:
                    (name,) = place.symbols
                    if place == symbol(name) and less(place, count) in self.places:
                        highs.setdefault(name, []).append(count - 1)
        for condition in given:
            for name, high in upper_bounds(condition):
                highs.setdefault(name, []).append(high)
        for name, some in highs.items():
            if "#" in name:
                found[name] = Bounds(number(0), tuple(dict.fromkeys(some)))
        return found

    # --- gathering ------------------------------------------------------------------------------

    def seek(self, first: Happening, then: Happening) -> None:
        """Look for what lies between ``first`` and ``then``: `gather` goes on from both."""
        self.ahead.setdefault(first)
        self.behind.setdefault(then)

    def gather(self) -> bool:
        """Go one step ahead of every claim's first and behind every claim's then; False: nothing is left."""
        ahead, behind = list(self.ahead)[self.gone[0] :], list(self.behind)[self.gone[1] :]
        self.gone = (len(self.ahead), len(self.behind))
        if not (ahead or behind) or len(self.happenings) > MOST or self.rounds == ROUNDS:
            return False
        self.rounds += 1
        for happening in ahead:
            self.ahead |= dict.fromkeys(
                (*self._beside(happening, 1), *self._partners(happening, Kind.SET_FLAG))
            )
        for happening in behind:
            self.behind |= dict.fromkeys(
                (*self._beside(happening, -1), *self._partners(happening, Kind.WAIT_FLAG))
            )
        seeds = {happening.core for happening in (*self.ahead, *self.behind)}
        for side in (self.ahead, self.behind):
            for happening in list(side):
                if happening.site.barrier is not None:
                    side |= dict.fromkeys(self._same_barrier(happening, seeds))
        return True

    def _beside(self, happening: Happening, sign: int) -> Iterator[Happening]:
        """The next synchronisations of the core (``sign`` 1), or the last ones before (-1), of every site."""
        for site in self.program.sites_of(happening.core.role):
            if site.kind not in SYNCHRONISING or not _linked(happening.site, site, sign):
                continue
            common = common_loops(site, happening.site)
            turns = happening.turns[:common]
            if stands_before(site, happening.site) == (sign > 0):
                if len(turns) < 2:  # the launch before or after is another matter
                    continue
                turns = (*turns[:-1], turns[-1] + sign)
            yield self.happen(site, happening.core, self._turns_within(site, happening, turns))

    def _turns_within(self, site: Site, happening: Happening, turns: tuple[Poly, ...]) -> tuple[Poly, ...]:
        """``turns``, and the first of further loops; that in which a quiet waits for the put."""
        further = [self.number(loop.index) for loop in site.loops[len(turns) :]]
        known: dict[str, Poly] = {}
        if further and isinstance(happening.site.operation, Put) and isinstance(site.operation, Quiet):
            _, names = self._existence(site, happening.core, (*turns, *further))
            peer = self.translator_in(names, site).value(site.operation.peer)
            own = frozenset().union(*(turn.symbols for turn in further))
            known = solved(equal(peer, self._peer(happening)), own)
        first = {name: number(0) for turn in further for name in turn.symbols}
        return (*turns, *(turn.substitute(known).substitute(first) for turn in further))

    def _partners(self, happening: Happening, kind: Kind) -> Iterator[Happening]:
        """The waits that a set releases (``kind`` SET_FLAG), or the sets that release a wait."""
        sets = kind is Kind.SET_FLAG
        for match in self.program.matches:
            if happening.site is not (match.set if sets else match.wait):
                continue
            sign = 1 if sets else -1
            turns = tuple(turn + step * sign for turn, step in zip(happening.turns, match.shift, strict=True))
            for core in self.others(happening.core):
                yield self.happen(match.wait if sets else match.set, core, turns)

    def others(self, core: Core) -> list[Core]:
        """The cores of the other role in the same block."""
        role = Role.AIC if core.role is Role.AIV else Role.AIV
        subs = self.program.protocol.vectors_per_cube if role is Role.AIV else 1
        return [self.core(role, core.rank, core.block, sub) for sub in range(subs)]

    def _same_barrier(self, happening: Happening, cores: set[Core]) -> Iterator[Happening]:
        """The barrier on the other ``cores`` that take part."""
        form = happening.site.barrier
        for core in sorted(cores, key=self.cores.index):
            if core.role is happening.core.role:
                if form is not None and (not form.own_rank or core.rank == happening.core.rank):
                    yield self.happen(happening.site, core, happening.turns)
            elif form is STREAM_ORDER and core.rank == happening.core.rank:
                (site,) = (s for s in self.program.sites_of(core.role) if s.barrier is STREAM_ORDER)
                yield self.happen(site, core, happening.turns)

    # --- rules ----------------------------------------------------------------------------------

    def rules(self) -> Iterator[Rule]:
        """Everything that orders two points."""
        for first in self.happenings:
            if first.site.kind in LASTING:
                yield Rule(first.exists, first.begin, first.end, "begins before it ends", (first.number,) * 2)
            for then in self.happenings:
                if first is not then:
                    yield from self._between(first, then)

    def _between(self, first: Happening, then: Happening) -> Iterator[Rule]:
        here = both(first.exists, then.exists)
        if here == FALSE:
            return
        of = (first.number, then.number)
        if first.core.role is then.core.role and first.core.sub == then.core.sub:
            same = both(same_core(first.core, then.core), here)
            earlier = before(first, then)
            if same != FALSE and earlier != FALSE:
                when = both(same, earlier)
                if follows_on_pipe(first.site, then.site):
                    chained = first.begin if first.site.kind is Kind.PUT else first.end
                    yield Rule(when, chained, then.begin, "program order", of)
                elif then.site.after == first.site.number:
                    turns = both(*(equal(a, b) for a, b in zip(first.turns, then.turns, strict=False)))
                    yield Rule(both(same, turns), first.end, then.begin, "it reads before it writes", of)
                if first.site.kind is Kind.PUT and then.site.kind is Kind.QUIET:
                    peers = equal(self._peer(first), self._peer(then))
                    yield Rule(both(when, peers), first.end, then.begin, "the quiet waits for it", of)
        if first.site.barrier is not None and then.site.barrier is not None:
            yield from self._meeting(first, then, here, of)
        if first.site.kind is Kind.SET_FLAG and then.site.kind is Kind.WAIT_FLAG:
            yield from self._release(first, then, here, of)

    def _peer(self, happening: Happening) -> Poly:
        operation = happening.site.operation
        assert isinstance(operation, Put | Quiet)
        return self.value(happening, operation.peer)

    def _meeting(
        self, first: Happening, then: Happening, here: Formula, of: tuple[int, int]
    ) -> Iterator[Rule]:
        a, b = first.site, then.site
        if a is not b and not (a.barrier is STREAM_ORDER and b.barrier is STREAM_ORDER):
            return
        parts = [equal(x, y) for x, y in zip(first.turns, then.turns, strict=True)]
        if a.barrier is not None and a.barrier.own_rank:
            parts.append(equal(first.core.rank, then.core.rank))
        when = both(here, *parts)
        if when != FALSE:
            yield Rule(when, first.begin, then.end, "all meet in the barrier", of)

    def _release(
        self, first: Happening, then: Happening, here: Formula, of: tuple[int, int]
    ) -> Iterator[Rule]:
        for match in self.program.matches:
            if match.set is first.site and match.wait is then.site:
                parts = [
                    equal(s + shift, w)
                    for s, w, shift in zip(first.turns, then.turns, match.shift, strict=True)
                ]
                when = both(here, same_core(first.core, then.core), *parts)
                if when != FALSE:
                    yield Rule(when, first.begin, then.begin, "the set releases the wait", of)

    def excludes(self, *conditions: Formula, title: str = "") -> bool:
        """Whether ``conditions`` cannot hold together with what is known."""
        return self.program.solver.ask([*self.facts(), *conditions], title) is Answer.IMPOSSIBLE

    def implies(self, given: Sequence[Formula], wanted: Formula) -> bool:
        """Whether ``wanted`` holds wherever ``given`` and what is known do."""
        return self.excludes(*given, negation(wanted))

    def facts(self) -> list[Formula]:
        """What is known besides the rules: the domain, the places of cores, and the atoms."""
        return [*self.program.domain.conditions(), *self.places, *self.atoms.facts()]


def same_core(a: Core, b: Core) -> Formula:
    """Whether rank and block are the same."""
    return both(equal(a.rank, b.rank), equal(a.block, b.block))


def before(first: Happening, then: Happening) -> Formula:
    """Whether ``first`` stands before ``then`` in the program order of one core."""
    return comes_first(first.site.path, then.site.path, first.turns, then.turns)


def _linked(here: Site, there: Site, sign: int) -> bool:
    """Whether an event of ``there`` can directly follow (``sign`` 1) or precede (-1) one of ``here``."""
    first, then = (here, there) if sign > 0 else (there, here)
    lands = first.kind is Kind.PUT and then.kind is Kind.QUIET
    return follows_on_pipe(first, then) or then.after == first.number or lands
