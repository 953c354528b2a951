"""What must be true for each property to hold for all values: the claims that a certificate has to prove.

`audit` derives them from the program, so that none can be left out; `parametric.certify` looks for their
proofs. A claim says that its given conditions are impossible, or that in every timing one of its pairs of
points is in order. Here are those that all order rests on; `audit_memory`, `audit_ranks` and `audit_limits`
have the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from ..protocol.instance import Kind
from ..protocol.program import SetFlag, WaitFlag
from .audit_scene import (
    Event,
    Match,
    Scene,
    Subject,
    earlier_in_core,
    expressions,
    parts_of,
    window_expressions,
)
from .parametric.formula import (
    TRUE,
    Compare,
    Formula,
    both,
    either,
    equal,
    less,
    negation,
)
from .parametric.polynomial import Poly, never_negative, number
from .parametric.sites import Site
from .parametric.translate import Demand, flag_id


class Invalid(Exception):
    """Something that a certificate needs is not so; the text says what."""


class Pair(NamedTuple):
    """The point ``before`` of ``first`` is before the point ``after`` of ``then``."""

    first: Event
    before: Poly
    then: Event
    after: Poly


@dataclass(frozen=True, slots=True)
class Stated:
    """``given`` is impossible, or one of ``pairs`` is in its order."""

    given: tuple[Formula, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def denied(self) -> tuple[Formula, ...]:
        """That none of the pairs is in its order."""
        return tuple(negation(less(pair.before, pair.after)) for pair in self.pairs)


Statement = Callable[[Scene], Stated]


@dataclass(frozen=True, slots=True)
class Claim:
    """One of ``ways`` has to be proved; ``key`` names it, ``title`` says it."""

    key: str
    title: str
    ways: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Supplier:
    """Where the event is that delivers what a reader needs, in the reader's symbols."""

    site: Site
    rank: Poly
    block: Poly
    turns: tuple[Poly, ...]


@dataclass(slots=True)
class Case:
    """A program and the choices of its certificate that claims are about."""

    subject: Subject
    suppliers: Mapping[str, Supplier | None] = field(default_factory=dict)
    backlogs: Mapping[int, tuple[Poly, Poly, int]] = field(default_factory=dict)
    highs: Mapping[str, Poly] = field(default_factory=dict)

    def scene(self) -> Scene:
        """A scene without events."""
        return Scene(self.subject)


def stated(*given: Formula, pairs: tuple[Pair, ...] = ()) -> Stated:
    """A statement whose conditions are taken apart."""
    return Stated(tuple(p for whole in given for p in parts_of(whole) if p != TRUE), pairs)


def at(site: Site) -> str:
    """A site in a title."""
    return f"{site.kind.value} at {site.span.place}"


# --- what all order rests on ------------------------------------------------------------------


def arithmetic(case: Case) -> Iterator[Claim]:
    """That C computes what the program says."""
    for site in (*case.subject.sites, *case.subject.absent):
        yield from _arithmetic(case, site)


def barriers(case: Case) -> Iterator[Claim]:
    """That barriers are called alike."""
    _check_callers(case.subject)
    for site in case.subject.barriers():
        yield Claim(f"uniform {site.number}", f"{at(site)} is called by all", (_uniform(site),))


def matching(case: Case) -> Iterator[Claim]:
    """That the matches hold, and that there is one for every wait."""
    subject = case.subject
    if len(subject.matches) != len(subject.of_kind(Kind.WAIT_FLAG)):
        raise Invalid("there is not one match for every wait")
    for wait in subject.of_kind(Kind.WAIT_FLAG):
        yield Claim(f"match {wait.number}", f"{at(wait)} has its set", (_released(_match(subject, wait)),))
    yield from _counters(subject)


def _arithmetic(case: Case, site: Site) -> Iterator[Claim]:
    """Every difference that must not be negative, every divisor, at any event of ``site``."""
    count = len(_demands(case.scene(), site))
    for place in range(count):

        def build(scene: Scene, place: int = place) -> Stated:
            demand = _demands(scene, site)[place]
            return stated(demand.path, negation(demand.wanted))

        scene = case.scene()
        demand = _demands(scene, site)[place]
        bounds = scene.bounds(*parts_of(demand.path))
        wanted = demand.wanted
        if isinstance(wanted, Compare) and wanted.op == ">=" and never_negative(wanted.poly, bounds):
            continue
        title = f"{demand.text} does not wrap around at {demand.span.place}"
        yield Claim(f"arithmetic {site.number} {place}", title, (build,))


def _demands(scene: Scene, site: Site) -> list[Demand]:
    event = scene.anywhere(site)
    translator = scene.translator(event.names, site)
    translator.path = list(event.exists)
    for expr in expressions(site):
        translator.value(expr)
    for window in site.windows:
        with translator.under(translator.condition(window.guard)):
            for expr in window_expressions(window):
                translator.value(expr)
    return list(dict.fromkeys((*event.demands, *translator.demands)))


def _check_callers(subject: Subject) -> None:
    """Who takes part in a barrier calls it, and only one role does."""
    for site in subject.barriers():
        assert site.barrier is not None
        form = site.barrier
        callers = {
            s.role for s in subject.barriers() if s.barrier is not None and s.barrier.name == form.name
        }
        if form.participants != callers or len(callers) > 1:
            raise Invalid(
                f"{site.span.place}: not all who take part in this barrier call it, or two roles do"
            )


def _uniform(site: Site) -> Statement:
    def build(scene: Scene) -> Stated:
        assert site.barrier is not None
        first = scene.anywhere(site)
        rank = first.rank if site.barrier.own_rank else scene.new("rank")
        then = scene.event(site, rank, scene.new("block"), first.turns)
        there, called = then.exists[:4], then.exists[4:]
        return stated(*first.exists, *there, negation(both(*called)))

    return build


def _match(subject: Subject, wait: Site) -> Match:
    found = [match for match in subject.matches if match.wait is wait]
    if len(found) != 1:
        raise Invalid(f"{wait.span.place}: {len(found)} sets are named for this wait")
    (match,) = found
    parameters = set(subject.domain.names)
    lengths = {len(match.shift), len(match.set.loops), len(wait.loops)}
    if match.set.role is wait.role or len(lengths) != 1:
        raise Invalid(f"{wait.span.place}: the set at {match.set.span.place} cannot release this wait")
    if any(not step.symbols <= parameters for step in match.shift):
        raise Invalid(f"{wait.span.place}: the shift is not the same for all turns")
    if match.set.kind is not Kind.SET_FLAG or match.shift[0] != number(0):
        raise Invalid(f"{wait.span.place}: the set is of another launch, or none")
    return match


def flag(scene: Scene, event: Event) -> Poly:
    """The id of a set or wait."""
    operation = event.site.operation
    assert isinstance(operation, SetFlag | WaitFlag)
    return scene.value(event, flag_id(operation.flag))


def moved(event: Event, match: Match, sign: int) -> tuple[Poly, ...]:
    """The turns of the wait that a set releases (``sign`` 1), or of the set that releases a wait (-1)."""
    return tuple(turn + step * sign for turn, step in zip(event.turns, match.shift, strict=True))


def _released(match: Match) -> Statement:
    def build(scene: Scene) -> Stated:
        wait = scene.anywhere(match.wait)
        setting = scene.event(match.set, wait.rank, wait.block, moved(wait, match, -1))
        same = equal(flag(scene, wait), flag(scene, setting))
        return stated(*wait.exists, negation(both(*setting.exists, same)))

    return build


def balanced(match: Match) -> Statement:
    """Every set releases a wait."""

    def build(scene: Scene) -> Stated:
        setting = scene.anywhere(match.set)
        wait = scene.event(match.wait, setting.rank, setting.block, moved(setting, match, 1))
        return stated(*setting.exists, negation(both(*wait.exists)))

    return build


def _only_last(match: Match) -> Statement:
    """Behind a set that releases nothing stands none that releases something; of one launch."""

    def build(scene: Scene) -> Stated:
        if scene.subject.domain.names["launches"] != number(1):
            return stated(TRUE)
        setting = scene.anywhere(match.set)
        wait = scene.event(match.wait, setting.rank, setting.block, moved(setting, match, 1))
        later = scene.anywhere(match.set, setting.rank, setting.block)
        released = scene.event(match.wait, setting.rank, setting.block, moved(later, match, 1))
        given = (*setting.exists, *later.exists, *released.exists, earlier_in_core(setting, later))
        return stated(*given, negation(both(*wait.exists)))

    return build


def _counters(subject: Subject) -> Iterator[Claim]:
    """The matches pair the k-th set of every counter with its k-th wait."""
    for match in subject.matches:
        key, title = (
            f"all {match.set.number}",
            f"the sets that release nothing at {match.set.span.place} are last",
        )
        yield Claim(key, title, (balanced(match), _only_last(match)))
    for one, other in combinations(subject.matches, 2):
        if one.wait.role is other.wait.role:
            if one.set is other.set:
                raise Invalid(f"{one.set.span.place}: this set is named for two waits")
            ways: tuple[Statement, ...] = (apart(one.set, other.set),)
            if one.set.pipe is other.set.pipe and one.wait.pipe is other.wait.pipe:
                ways += (_in_one_order(one, other),)
            key = f"counter {one.set.number} {other.set.number}"
            yield Claim(key, f"{at(one.set)} and {other.set.span.place}: waits in the order of sets", ways)
    matched = {match.set for match in subject.matches}
    for site in subject.of_kind(Kind.SET_FLAG):
        for match in subject.matches:
            if site not in matched and site.role is match.set.role:
                key = f"counter {site.number} {match.set.number}"
                yield Claim(
                    key, f"{at(site)} sets no flag of {match.set.span.place}", (apart(site, match.set),)
                )


def apart(one: Site, other: Site) -> Statement:
    """Two sites never mean one counter of a core."""

    def build(scene: Scene) -> Stated:
        a = scene.anywhere(one)
        b = scene.anywhere(other, a.rank, a.block)
        return stated(*a.exists, *b.exists, _congruent(scene, a, b))

    return build


def _congruent(scene: Scene, a: Event, b: Event) -> Formula:
    count = len(scene.subject.setup.profile.flag_ids)
    return equal(flag(scene, a) - flag(scene, b), scene.new("turns") * count)


def _in_one_order(one: Match, other: Match) -> Statement:
    """Of two sets of one counter the first releases the first of their waits, and none is left over."""

    def build(scene: Scene) -> Stated:
        a = scene.anywhere(one.set)
        b = scene.anywhere(other.set, a.rank, a.block)
        first = scene.event(one.wait, a.rank, a.block, moved(a, one, 1))
        then = scene.event(other.wait, a.rank, a.block, moved(b, other, 1))
        sets, waits = earlier_in_core(a, b), earlier_in_core(first, then)
        crossed = either(both(sets, negation(waits)), both(waits, negation(sets)))
        left = negation(both(*first.exists, *then.exists))
        return stated(*a.exists, *b.exists, _congruent(scene, a, b), either(left, crossed))

    return build


def awaited(case: Case) -> Iterator[Claim]:
    """Every set is taken by a wait."""
    for site in case.subject.of_kind(Kind.SET_FLAG):
        found = [match for match in case.subject.matches if match.set is site]
        if len(found) != 1:
            raise Invalid(f"{site.span.place}: not every set is seen to be waited for")
        yield Claim(f"taken {site.number}", f"{at(site)} is waited for", (balanced(found[0]),))
