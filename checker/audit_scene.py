"""What a certificate speaks of, derived from the program alone: events at symbolic places, and every rule.

`audit` asks a `Scene` for the condition that an entry of a certificate names, and never reads one from the
certificate. The rules are those of `protocol.order` and `protocol.sync`, written here a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from ..protocol.closed_forms import closed_forms
from ..protocol.errors import UnsupportedError
from ..protocol.expr import Expr, Var, variables
from ..protocol.instance import Kind
from ..protocol.operations import Origin
from ..protocol.profile import STREAM_ORDER
from ..protocol.program import Pipe, Protocol, Put, Quiet, Role, SetFlag, WaitFlag, Window
from ..protocol.setup import Setup
from ..protocol.unroll import barrier_forms, launched_roles
from .parametric.atoms import Atoms, Ring, ring_lemma
from .parametric.domain import Domain
from .parametric.formula import (
    FALSE,
    TRUE,
    And,
    Compare,
    Formula,
    at_least,
    both,
    comparisons,
    either,
    equal,
    less,
    negation,
    upper_bounds,
)
from .parametric.polynomial import Bounds, Poly, number, symbol
from .parametric.sites import Site, absent_of, sites_of
from .parametric.translate import Demand, Translator, flag_id

LASTING = (Kind.READ, Kind.WRITE, Kind.PUT, Kind.BARRIER)
"""Kinds that begin and end; the other kinds have one point."""

Label = tuple[str | int, ...]
"""The name of a condition: ``("rule", 0, 3, "program order")``, ``("given", 2)``, ``("atom", name, 0)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The set whose turns are those of a wait less ``shift`` releases it."""

    set: Site
    wait: Site
    shift: tuple[Poly, ...]


@dataclass(slots=True)
class Subject:
    """The program that is audited, and the matches that its certificate names.

    ``absent``: sets and waits that compile to nothing.
    """

    protocol: Protocol
    setup: Setup
    domain: Domain
    strict_ids: bool = False
    roles: tuple[Role, ...] = ()
    sites: tuple[Site, ...] = ()
    matches: list[Match] = field(default_factory=list)
    absent: tuple[Site, ...] = ()

    def of_role(self, role: Role) -> list[Site]:
        """The sites of one role, in program order."""
        return [site for site in self.sites if site.role is role]

    def of_kind(self, *kinds: Kind) -> list[Site]:
        """The sites of some kinds."""
        return [site for site in self.sites if site.kind in kinds]

    def barriers(self) -> list[Site]:
        """The barriers that the program calls."""
        return [s for s in self.of_kind(Kind.BARRIER) if s.barrier is not STREAM_ORDER]


def subject_of(protocol: Protocol, setup: Setup, domain: Domain, *, strict_ids: bool = False) -> Subject:
    """``protocol`` with its sites. Raises UnsupportedError for what no certificate speaks of."""
    forms = barrier_forms(protocol, setup)
    roles = tuple(launched_roles(protocol, forms))
    closed = closed_forms(protocol, domain.power_names)
    sites = tuple(sites_of(closed, setup, forms, roles))
    if setup.faults or setup.profile.flags_merge:
        raise UnsupportedError("an injected fault or merging flags for all values")
    absent = tuple(absent_of(closed, setup, forms, roles))
    for site in (*sites, *absent):
        if isinstance(site.operation, SetFlag | WaitFlag) and site.operation.mode != 2:
            raise UnsupportedError(f"a flag of mode {site.operation.mode} for all values", site.span)
        if protocol.vectors_per_cube > 1 and site.role is Role.AIV and not _alike(site):
            raise UnsupportedError("what differs among several AIVs a block, for all values,", site.span)
    return Subject(protocol, setup, domain, strict_ids, roles, sites, absent=absent)


def _alike(site: Site) -> bool:
    """Whether all AIVs of a block do the same at ``site``, and write nothing."""
    exprs = [*expressions(site), *(guard.condition for guard in site.guards)]
    exprs += [bound for loop in site.loops for bound in (loop.start, loop.stop)]
    exprs += [expr for window in site.windows for expr in (window.guard, *window_expressions(window))]
    differs = any(isinstance(v, Var) and v.name == "sub" for expr in exprs for v in variables(expr))
    return not differs and site.kind not in (Kind.PUT, Kind.QUIET, Kind.WRITE)


def expressions(site: Site) -> tuple[Expr, ...]:
    """The expressions of the operation at ``site``."""
    match site.operation:
        case SetFlag(flag=flag) | WaitFlag(flag=flag):
            return (flag_id(flag),)
        case Put(peer=peer, target=target, source=source, bytes=size):
            return (peer, target.offset, source.offset, size)
        case Quiet(peer=peer):
            return (peer,)
    return ()


def window_expressions(window: Window) -> tuple[Expr, ...]:
    """Those of a window, but for its guard."""
    found: tuple[Expr, ...] = (window.address.offset, window.bytes)
    if isinstance(window.origin, Origin):
        found += (window.origin.rank, window.origin.address.offset)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One event of ``site``: on a core, in one turn of every loop around it; ``exists`` when all hold."""

    number: int
    site: Site
    rank: Poly
    block: Poly
    sub: int
    turns: tuple[Poly, ...]
    exists: tuple[Formula, ...]
    names: Mapping[str, Poly]
    demands: tuple[Demand, ...]

    @property
    def begin(self) -> Poly:
        """The time at which it begins."""
        return symbol(f"@{self.number}")

    @property
    def end(self) -> Poly:
        """The time at which it ends."""
        return symbol(f"@{self.number} end") if self.site.kind in LASTING else self.begin


@dataclass(slots=True)
class Scene:
    """Events that one claim speaks of, and the conditions that hold of them."""

    subject: Subject
    atoms: Atoms = field(default_factory=Atoms)
    events: list[Event] = field(default_factory=list)
    fresh: int = 0

    # --- events ---------------------------------------------------------------------------------

    def new(self, name: str) -> Poly:
        """A new symbol."""
        self.fresh += 1
        return symbol(f"{name}#{self.fresh}")

    def anywhere(self, site: Site, rank: Poly | None = None, block: Poly | None = None) -> Event:
        """Any event of ``site``; on any core unless ``rank`` or ``block`` are given."""
        rank = self.new("rank") if rank is None else rank
        block = self.new("block") if block is None else block
        return self.event(site, rank, block, tuple(self.new(loop.index) for loop in site.loops))

    def event(self, site: Site, rank: Poly, block: Poly, turns: tuple[Poly, ...], sub: int = 0) -> Event:
        """The event of ``site`` at one place, in one turn of every loop."""
        names = dict(self.subject.domain.names)
        exists: list[Formula] = []
        for place, count in ((rank, names["ranks"]), (block, names["blocks"])):
            exists += [at_least(place, 0), less(place, count)]
        names |= {"rank": rank, "block": block, "sub": number(sub)}
        translator = self.translator(names, site)
        translator.path = exists
        for depth, (loop, turn) in enumerate(zip(site.loops, turns, strict=True), 1):
            index = translator.value(loop.start) + turn * loop.step
            exists += [at_least(turn, 0), less(index, translator.value(loop.stop))]
            names[loop.index] = index
            for guard in (g for g in site.guards if g.depth == depth):
                condition = translator.condition(guard.condition)
                exists += parts_of(condition if guard.wanted else negation(condition))
        if site.kind is Kind.READ:
            exists += parts_of(either(*(translator.condition(window.guard) for window in site.windows)))
        found = Event(
            len(self.events), site, rank, block, sub, turns, tuple(e for e in exists if e != TRUE), names,
            tuple(translator.demands),
        )  # fmt: skip
        self.events.append(found)
        return found

    def translator(self, names: Mapping[str, Poly], site: Site) -> Translator:
        """What reads the expressions at ``site`` where its variables are ``names``."""
        return Translator(names, self.atoms, self.subject.domain.powers, site.span)

    def value(self, event: Event, expr: Expr) -> Poly:
        """``expr`` where ``event`` is."""
        return self.translator(event.names, event.site).value(expr)

    def bounds(self, *given: Formula) -> dict[str, Bounds]:
        """What symbols lie between where ``given`` hold, for `never_negative`.

        Only what is not below zero by its meaning: parameters, places and turns, and the atoms.
        """
        found = self.subject.domain.bounds() | self.atoms.bounds()
        for name in {name for part in given for name in _nonnegative(part)}:
            found.setdefault(name, Bounds(number(0)))
        highs: dict[str, list[Poly]] = {}
        for part in given:
            for name, high in upper_bounds(part):
                if "#" in name and name in found:
                    highs.setdefault(name, []).append(high)
        for name, some in highs.items():
            found[name] = Bounds(found[name].low, (*found[name].highs, *dict.fromkeys(some)))
        return found

    # --- conditions by name ---------------------------------------------------------------------

    def domain_facts(self) -> list[Formula]:
        """What is assumed of the parameters."""
        return [part for whole in self.subject.domain.conditions() for part in parts_of(whole)]

    def products(self, *conditions: Formula) -> list[Formula]:
        """The least that products of parameters can be, of those in ``conditions`` and the domain."""
        lows = {name: low for name, (low, _) in self.subject.domain.free.items() if low >= 0}
        mentioned = {
            monomial
            for condition in (*conditions, *self.domain_facts())
            for compare in comparisons(condition)
            for monomial, _ in compare.poly.terms
            if len(monomial) > 1 and lows.keys() >= set(monomial)
        }
        return [
            at_least(Poly(((monomial, 1),)), prod(lows[name] for name in monomial))
            for monomial in sorted(mentioned)
        ]

    def atom_facts(self, name: str) -> list[Formula]:
        """What is known of one atom."""
        atom = self.atoms.known[name]
        return [part for fact in atom.facts(name) for part in parts_of(fact)]

    def lemmas(self, one: str, other: str) -> list[Formula]:
        """What is known of two remainders by one modulus."""
        a, b = self.atoms.known[one], self.atoms.known[other]
        if not (isinstance(a, Ring) and isinstance(b, Ring)) or a.modulus != b.modulus:
            return []
        return list(ring_lemma(one, a, other, b))

    def rules(self, first: Event, then: Event) -> Iterator[tuple[str, Formula]]:
        """Every rule by which ``first`` comes before ``then``, with the condition that it makes of times."""
        if first is then:
            if first.site.kind in LASTING:
                yield BEGINS, _rule(first.exists, first.begin, first.end)
            return
        here = (*first.exists, *then.exists)
        place = (equal(first.rank, then.rank), equal(first.block, then.block))
        if first.site.role is then.site.role and first.sub == then.sub:
            yield from self._in_core(first, then, (*here, *place))
        if first.site.barrier is not None and then.site.barrier is not None:
            yield from self._meeting(first, then, here)
        for match in self.subject.matches:
            if match.set is first.site and match.wait is then.site:
                turns = (
                    equal(s + step, w)
                    for s, w, step in zip(first.turns, then.turns, match.shift, strict=True)
                )
                yield RELEASE, _rule((*here, *place, *turns), first.begin, then.begin)

    def _in_core(self, first: Event, then: Event, same: tuple[Formula, ...]) -> Iterator[tuple[str, Formula]]:
        earlier = earlier_in_core(first, then)
        if earlier == FALSE:
            return
        if waits_for(first.site, then.site):
            chained = first.begin if first.site.kind is Kind.PUT else first.end
            yield ORDER, _rule((*same, earlier), chained, then.begin)
        elif then.site.after == first.site.number:
            turns = tuple(equal(a, b) for a, b in zip(first.turns, then.turns, strict=False))
            yield READS, _rule((*same, earlier, *turns), first.end, then.begin)
        if isinstance(first.site.operation, Put) and isinstance(then.site.operation, Quiet):
            peers = equal(
                self.value(first, first.site.operation.peer), self.value(then, then.site.operation.peer)
            )
            yield QUIET, _rule((*same, earlier, peers), first.end, then.begin)

    def _meeting(self, first: Event, then: Event, here: tuple[Formula, ...]) -> Iterator[tuple[str, Formula]]:
        stream = first.site.barrier is STREAM_ORDER and then.site.barrier is STREAM_ORDER
        if first.site is not then.site and not stream:
            return
        parts = [equal(x, y) for x, y in zip(first.turns, then.turns, strict=True)]
        if first.site.barrier is not None and first.site.barrier.own_rank:
            parts.append(equal(first.rank, then.rank))
        yield MEET, _rule((*here, *parts), first.begin, then.end)


BEGINS = "begins before it ends"
ORDER = "program order"
READS = "it reads before it writes"
QUIET = "the quiet waits for it"
MEET = "all meet in the barrier"
RELEASE = "the set releases the wait"


def _rule(when: tuple[Formula, ...], first: Poly, then: Poly) -> Formula:
    return either(negation(both(*when)), less(first, then))


def waits_for(first: Site, then: Site) -> bool:
    """Whether, of two events of one core in program order, the second begins after the first.

    Nothing of the core waits for a set to take effect. What is on one pipe is in order; the scalar is before
    all that it issues; a scalar event waits for the pipes that it drains.
    """
    if first.kind is Kind.SET_FLAG:
        return False
    drained = then.pipe is Pipe.S and first.pipe in then.drains
    return first.pipe is then.pipe or first.pipe is Pipe.S or drained


def earlier_in_core(first: Event, then: Event) -> Formula:
    """Whether ``first`` stands before ``then`` in the program order of one core."""
    turns, others = list(first.turns), list(then.turns)
    same: list[Formula] = []
    cases: list[Formula] = []
    for a, b in zip(first.site.path, then.site.path, strict=False):
        if a.position != b.position:
            if a.position < b.position:
                cases.append(both(*same))
            break
        if a.loop is not None:
            x, y = turns.pop(0), others.pop(0)
            cases.append(both(*same, less(x, y)))
            same.append(equal(x, y))
    return either(*cases)


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The conditions that ``formula`` is the conjunction of."""
    return formula.parts if isinstance(formula, And) else (formula,)


def _nonnegative(part: Formula) -> Iterator[str]:
    """A symbol that ``part`` says is not negative, outright."""
    if isinstance(part, Compare) and part.op == ">=" and len(part.poly.symbols) == 1:
        (name,) = part.poly.symbols
        if part.poly == symbol(name):
            yield name
