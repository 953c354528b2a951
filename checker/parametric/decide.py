"""The properties, one after the other, for all values of a domain.

`decide` answers what can be proved; what cannot is left open with a reason, and `concrete` looks for values
at which it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...protocol.instance import Kind
from ...protocol.program import Protocol, Put, RegionKind, Window
from ...protocol.setup import Setup
from .conditions import Condition, simplified, text_of
from .deadlock import Ranks, ranks_of
from .domain import Domain
from .flags import Backlog, backlogs, id_conditions
from .formula import FALSE, TRUE, And, Formula, at_least
from .layout import layout_conditions, uncovered
from .memory import (
    Supply,
    conflicts,
    delivered_twice,
    disturbers,
    incomplete,
    read_before_write,
    supply_of,
    unique_queues,
)
from .polynomial import Poly, number
from .program import Program, read_program
from .question import Question
from .sites import Site
from .solve import Second
from .study import STEPS, Declined, may_share, study
from .touches import readers, writers


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found of one property.

    ``proved``: for all values that satisfy ``condition`` (None: for all). ``exact``: the condition is also
    needed. ``reason``: why it is not proved. ``nothing``: there is nothing that the property speaks of.
    ``limits``: what the condition is made of.
    """

    name: str
    proved: bool
    condition: Formula | None = None
    exact: bool = False
    reason: str | None = None
    nothing: bool = False
    limits: tuple[Condition, ...] = ()

    @property
    def holds_when(self) -> str | None:
        """The condition as text; None where there is none, or none that any value satisfies."""
        return None if self.condition in (None, FALSE) else text_of(self.condition)


@dataclass(slots=True)
class Decided:
    """The decisions, with what was found on the way."""

    program: Program
    decisions: dict[str, Decision] = field(default_factory=dict)
    ranks: Ranks | None = None
    backlogs: list[Backlog] = field(default_factory=list)
    declined: Declined | None = None


_BY_BARRIERS = ("no-read-before-write", "no-overwrite-before-read", "no-write-conflict")

RESTS_ON: Mapping[str, frozenset[str]] = {
    "layout": frozenset({"arithmetic"}),
    **dict.fromkeys(("barrier-match", *_BY_BARRIERS), frozenset({"arithmetic", "barriers"})),
}
"""The steps of `study` that a property rests on; the others rest on all of them.

Without matches, order is by programs, quiets and barriers alone: less is proved then. What speaks of the end
of a run needs all that lets runs end.
"""


def decide(
    protocol: Protocol, setup: Setup, domain: Domain, properties: Sequence[str], *,
    strict_ids: bool = False, rlimit: int = 0, progress: Callable[[str], None] | None = None,
    second: Second | None = None, keep: bool = False,
) -> Decided:  # fmt: skip
    """Decide ``properties`` of ``protocol`` over ``domain``.

    ``second`` is asked what Z3 calls impossible; ``keep``: the solver keeps every question as text.
    Raises UnsupportedError for what the parametric engine does not follow.
    """
    program = read_program(protocol, setup, domain, rlimit)
    program.solver.second, program.solver.keep = second, keep
    found = Decided(program)
    studied = study(program)
    found.declined = studied.declined
    decider = _Decider(program, found, strict_ids)
    for name in properties:
        if progress is not None:
            progress(f"deciding {name} for all values")
        if studied.declined is not None and not RESTS_ON.get(name, STEPS.keys()) <= studied.steps:
            found.decisions[name] = _open(name, str(studied.declined))
            continue
        program.solver.about = name
        decision = decider.decision(name)
        if (
            studied.declined is not None
            and name in _BY_BARRIERS
            and not (decision.proved or decision.nothing)
        ):
            decision = _open(name, str(studied.declined))  # with matches there might be more to say
        found.decisions[name] = decision
    return found


NO_RANKS = "no ranks that grow along every edge were found"


def _open(name: str, reason: str) -> Decision:
    return Decision(name, False, reason=reason)


def _proved(name: str) -> Decision:
    return Decision(name, True)


@dataclass(slots=True)
class _Decider:
    program: Program
    found: Decided
    strict_ids: bool
    supplies: list[tuple[Site, Window, Supply | None]] | None = None
    known: dict[str, Decision] = field(default_factory=dict)
    raced: tuple[str | None] | None = None
    ranked: bool = False

    def decision(self, name: str) -> Decision:
        """What is found of property ``name``, asked for or needed by another; once."""
        if name not in self.known:
            self.known[name] = _DECIDERS[name](self)
        return self.known[name]

    # --- what is read and written ---------------------------------------------------------------

    def all_supplies(self) -> list[tuple[Site, Window, Supply | None]]:
        """Every reader with its supplier."""
        if self.supplies is None:
            self.supplies = [(s, w, supply_of(self.program, s, w)) for s, w in readers(self.program)]
        return self.supplies

    def obstacle(self) -> str | None:
        """Why rows of memory cannot be decided at all."""
        kinds = {region.name: region.kind for region in self.program.protocol.regions}
        for site in self.program.of_kind(Kind.PUT):
            put = site.operation
            assert isinstance(put, Put)
            if kinds[put.source.region] is not RegionKind.INPUT:
                return f"{site.span.place}: what is sent on from {put.source.region} has no stated origin"
        for site in self.program.of_kind(Kind.READ):
            for window in site.windows:
                if window.origin is None:
                    return f"{site.span.place}: a read without a stated origin is not decided for all values"
        for name in (name for name, kind in kinds.items() if kind is RegionKind.INPUT):
            for site in writers(self.program, name):
                return f"{site.span.place}: {name} is an input and is written, perhaps while a put reads it"
        return self.race()

    def race(self) -> str | None:
        """Which cores may post to one peer, if any may; asked once."""
        if self.raced is None:
            found = unique_queues(self.program)
            self.raced = (None if found is None else f"{found.site.span.place}: {found.text}",)
        return self.raced[0]

    def ranks(self) -> Ranks | None:
        """Ranks that grow along every edge, asked for once."""
        if not self.ranked:
            self.found.ranks, self.ranked = ranks_of(self.program), True
        return self.found.ranks

    def circle(self) -> str | None:
        """Why no order is proved: from events that wait in a circle any order would follow."""
        return None if self.ranks() is not None else f"{NO_RANKS}: events may wait in a circle"

    def moves(self) -> bool:
        """Whether anything is sent."""
        return bool(self.program.of_kind(Kind.PUT))

    # --- properties -----------------------------------------------------------------------------

    def deadlock(self) -> Decision:
        name = "deadlock-freedom"
        if self.ranks() is None:
            return _open(name, NO_RANKS)
        cores = self.program.setup.profile.cores
        blocks = self.program.domain.names["blocks"]
        if cores is not None and self.program.barriers() and not self.follows(at_least(cores, blocks)):
            return _open(
                name, f"there may be more blocks than the {cores} cores, and a barrier waits for all"
            )
        return _proved(name)

    def follows(self, wanted: Formula) -> bool:
        """Whether the domain implies ``wanted``."""
        return Question(self.program).implies((), wanted)

    def read_write(self) -> Decision:
        name = "no-read-before-write"
        reason = self.obstacle()
        if reason is not None:
            return _open(name, reason)
        supplies = self.all_supplies()
        if not supplies and not self.moves():
            return Decision(name, False, nothing=True)
        circle = self.circle()
        if circle is not None:
            return _open(name, circle)
        for site, window, supply in supplies:
            if supply is None:
                return _open(
                    name, f"{site.span.place}: nothing seen delivers what is read from {window.address}"
                )
            if delivered_twice(supply):  # the reader needs the later of the two as well
                return _open(name, f"{site.span.place}: {window.address} may be delivered twice")
            if not read_before_write(supply):
                return _open(name, f"{site.span.place}: may read {window.address} before it has arrived")
        return _proved(name)

    def overwrite(self) -> Decision:
        return self._disturbed("no-overwrite-before-read", across=False)

    def relaunch(self) -> Decision:
        decision = self._disturbed("relaunch", across=True)
        if not decision.proved:
            return decision
        return self._conflict("relaunch", across=True)

    def _disturbed(self, name: str, *, across: bool) -> Decision:
        reason = self.obstacle()
        if reason is not None:
            return _open(name, reason)
        supplies = self.all_supplies()
        if not supplies and not self.moves():
            return Decision(name, False, nothing=True)
        circle = self.circle()
        if circle is not None:
            return _open(name, circle)
        for site, window, supply in supplies:
            if supply is not None and supply.supplier is None:
                continue
            for other in disturbers(self.program, site, window, across=across):
                return _open(name, f"{other.span.place}: may write what {site.span.place} still reads")
        return _proved(name)

    def conflict(self) -> Decision:
        return self._conflict("no-write-conflict", across=False)

    def _conflict(self, name: str, *, across: bool) -> Decision:
        reason = self.race() or self.circle()
        if reason is not None:
            return _open(name, reason)
        for one, other in conflicts(self.program, across=across):
            return _open(name, f"{other.span.place}: may write the same bytes as {one.span.place} meanwhile")
        return _proved(name)

    def completion(self) -> Decision:
        name = "completion"
        if not self.moves():
            return Decision(name, False, nothing=True)
        reason = self.obstacle() or self.circle()
        if reason is not None:
            return _open(name, reason)
        for site in incomplete(self.program):
            return _open(name, f"{site.span.place}: may not be complete when its core ends")
        before = self.decision("no-read-before-write")
        return _proved(name) if before.proved or before.nothing else _open(name, before.reason or "")

    def balance(self) -> Decision:
        name = "flag-balance"
        sets, waits = self.program.of_kind(Kind.SET_FLAG), self.program.of_kind(Kind.WAIT_FLAG)
        if not sets and not waits:
            return Decision(name, False, nothing=True)
        matched = {match.set for match in self.program.matches if match.balanced}
        for site in sets:
            if site not in matched:
                return _open(name, f"{site.span.place}: not every set is seen to be waited for")
        return _proved(name)

    def ids(self) -> Decision:
        name = "flag-range"
        for site in self.program.absent:
            text = f"{site.pipe.value}, which an {site.role.name} lacks: this compiles to nothing"
            return _open(name, f"{site.span.place}: names {text}")
        if not self.program.of_kind(Kind.SET_FLAG, Kind.WAIT_FLAG):
            return Decision(name, False, nothing=True)
        circle = self.circle()
        if circle is not None:
            return _open(name, circle)
        conditions: list[Condition] = []
        for item in id_conditions(self.program, strict_ids=self.strict_ids):
            if isinstance(item, Site):
                return _open(name, f"{item.span.place}: no bound of the flag ids was found")
            conditions.append(item)
        self.found.backlogs.clear()
        for site, backlog in backlogs(self.program):
            if backlog is None:
                return _open(name, f"{site.span.place}: no bound of the sets that wait was found")
            self.found.backlogs.append(backlog)
        extra: list[Formula] = []
        for backlog in self.found.backlogs:
            fits = at_least(self.program.setup.profile.counter_cap, self.open_sets(backlog))
            if not self.follows(fits):
                extra.append(fits)
        return self._when(name, conditions, extra)

    def open_sets(self, backlog: Backlog) -> Poly:
        """How many sets wait at most in a counter that ``backlog`` speaks of, those of other sites too."""
        total = number(0)
        for other in self.found.backlogs:
            same = other.site.role is backlog.site.role
            if other is backlog or (same and may_share(self.program, backlog.site, other.site)):
                total = total + other.bound
        return total

    def _when(self, name: str, conditions: Sequence[Condition], extra: Sequence[Formula] = ()) -> Decision:
        """Proved under the conditions that the domain does not imply."""
        whole = simplified(self.program, [*(c.formula for c in conditions), *extra])
        if whole == TRUE:
            return _proved(name)
        if whole == FALSE:
            reason = "no values were found for which it holds"
            return Decision(name, False, whole, reason=reason, limits=tuple(conditions))
        kept = whole.parts if isinstance(whole, And) else (whole,)
        exact = all(any(c.exact for c in conditions if c.formula == part) for part in kept)
        reason = "no values at which it fails were found"
        return Decision(name, False, whole, exact, reason, limits=tuple(conditions))

    def barriers(self) -> Decision:
        name = "barrier-match"
        return _proved(name) if self.program.barriers() else Decision(name, False, nothing=True)

    def coverage(self) -> Decision:
        name = "coverage"
        reason = self.obstacle()
        if reason is not None:
            return _open(name, reason)
        for site, window, supply in self.all_supplies():
            if supply is None:
                return _open(
                    name, f"{site.span.place}: nothing seen delivers what is read from {window.address}"
                )
            if delivered_twice(supply):
                return _open(name, f"{site.span.place}: may be delivered twice")
        for text in uncovered(self.program):
            return _open(name, text)
        ended = self.decision("deadlock-freedom")
        return _proved(name) if ended.proved else _open(name, ended.reason or "")

    def layout(self) -> Decision:
        name = "layout"
        if not self.program.of_kind(Kind.PUT, Kind.READ, Kind.WRITE):
            return Decision(name, False, nothing=True)
        conditions: list[Condition] = []
        for item in layout_conditions(self.program):
            if isinstance(item, str):
                return _open(name, item)
            conditions.append(item)
        return self._when(name, conditions)


_DECIDERS: Mapping[str, Callable[[_Decider], Decision]] = {
    "deadlock-freedom": _Decider.deadlock,
    "no-read-before-write": _Decider.read_write,
    "no-overwrite-before-read": _Decider.overwrite,
    "no-write-conflict": _Decider.conflict,
    "completion": _Decider.completion,
    "flag-balance": _Decider.balance,
    "flag-range": _Decider.ids,
    "barrier-match": _Decider.barriers,
    "coverage": _Decider.coverage,
    "layout": _Decider.layout,
    "relaunch": _Decider.relaunch,
}
