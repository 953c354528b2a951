"""What has to be proved of a program before order can be asked about: arithmetic, barriers, matching.

*Barriers.* If a guard or bound of a barrier could differ between two members, the k-th calls would be
different statements; where none can, the k-th calls are the same statement in the same turns.

*Matching.* A counter has one site that sets it and one that waits for it. If the event of the set ``shift``
turns before a wait exists, has the same id, and this relation misses no set in between, it pairs the k-th
set with the k-th wait of every counter, because a shift keeps order. The k-th set releases the k-th wait
(`protocol.sync`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.program import Role, SetFlag, WaitFlag
from .atoms import Ring
from .formula import Compare, Formula, both, either, equal, lower_bounds, negation
from .polynomial import Poly, never_negative, number, symbol
from .program import Match, Program, numbers_in, numbers_of
from .question import Happening, Question, before
from .sites import Site
from .translate import Demand, flag_id


class Declined(Exception):
    """Nothing can be proved of the program for all values; the text says why."""


@dataclass(frozen=True, slots=True)
class Studied:
    """The steps that were proved, and why the next one was not, if it was not."""

    steps: frozenset[str]
    declined: Declined | None = None


def study(program: Program) -> Studied:
    """Prove what order rests on, step by step, and find the matches; none are kept unless all are found."""
    done: set[str] = set()
    for step, prove in STEPS.items():
        try:
            prove(program)
        except Declined as error:
            program.matches.clear()
            return Studied(frozenset(done), error)
        done.add(step)
    return Studied(frozenset(done))


def _check_arithmetic(program: Program) -> None:
    """C computes what the expressions say: no unsigned difference is negative, nothing divides by zero.

    Every expression of every site is translated at any core and turn; what its translation rests on is
    proved there.
    """
    for site in (*program.sites, *program.absent):
        question = Question(program)
        happening = question.happen(site, question.core(site.role))
        translator = question.translator(happening)
        translator.path.append(happening.exists)
        for expr in numbers_of(site):
            translator.value(expr)
        for window in site.windows:
            condition = translator.condition(window.guard)
            with translator.under(condition):
                for expr in numbers_in(window):
                    translator.value(expr)
        for demand in (*question.demands, *translator.demands):
            if not _met(question, demand):
                raise Declined(f"{demand.span.place}: {demand.text} may wrap around or divide by zero")


def _met(question: Question, demand: Demand) -> bool:
    # by what holds before it is computed: the guard that it is part of may rest on it
    bounds = question.bounds_where(demand.path)
    if isinstance(demand.wanted, Compare) and never_negative(demand.wanted.poly, bounds):
        return demand.wanted.op == ">="
    return question.implies([demand.path], demand.wanted)


def _check_barriers(program: Program) -> None:
    """Every member calls every barrier in the same turns, and one role calls all calls of a form."""
    forms: dict[str, set[Role]] = {}
    for site in program.barriers():
        assert site.barrier is not None
        forms.setdefault(site.barrier.name, set()).add(site.role)
        _check_uniform(program, site)
    for site in program.barriers():
        assert site.barrier is not None
        absent = site.barrier.participants - forms[site.barrier.name]
        if absent:
            names = " and ".join(sorted(role.name for role in absent))
            raise Declined(f"{site.span.place}: the {names} take part in this barrier and never call it")
        if len(forms[site.barrier.name]) > 1:
            raise Declined(
                f"{site.span.place}: both roles call this barrier, which is not decided for all values"
            )


def _check_uniform(program: Program, site: Site) -> None:
    question = Question(program)
    assert site.barrier is not None
    first = question.happen(site, question.core(site.role))
    rank = first.core.rank if site.barrier.own_rank else None
    then = question.happen(site, question.core(site.role, rank), first.turns)
    if not question.implies([first.exists], then.exists):
        raise Declined(f"{site.span.place}: whether this barrier is called may differ from core to core")


# --- matching ---------------------------------------------------------------------------------


def _find_matches(program: Program) -> None:
    for wait in program.of_kind(Kind.WAIT_FLAG):
        program.matches.append(_match_of(program, wait))
    _check_counters(program)


def _match_of(program: Program, wait: Site) -> Match:
    for site in program.of_kind(Kind.SET_FLAG):
        if site.role is wait.role or len(site.loops) != len(wait.loops):
            continue
        for shift in _shifts(program, site, wait):
            if _releases(program, site, wait, shift):
                balanced = _misses_none(program, site, wait, shift)
                if balanced or _misses_only_last(program, site, wait, shift):
                    return Match(site, wait, shift, balanced)
    raise Declined(f"{wait.span.place}: no set could be matched to this wait for all values")


def _flag(question: Question, happening: Happening) -> Poly:
    operation = happening.site.operation
    assert isinstance(operation, SetFlag | WaitFlag)
    return question.value(happening, flag_id(operation.flag))


def _shifts(program: Program, site: Site, wait: Site) -> Iterator[tuple[Poly, ...]]:
    """How many turns a set may be before its wait, by loop; the outermost, launches, is the same.

    Of loops in loops one is tried after the other, innermost first, the others at the same turn.
    """
    still = number(0)
    none = (still,) * len(wait.loops)
    if len(wait.loops) == 1:
        yield none
        return
    never = _never_there(program, wait)  # any will do: ranks are easier found where its set is turns before
    tried: dict[tuple[Poly, ...], None] = {}
    for place in reversed(range(1, len(wait.loops))):
        for distance in _distances(program, site, wait, place):
            tried.setdefault((*none[:place], distance, *none[place + 1 :]))
    yield from sorted(tried, key=lambda shift: shift == none) if never else tried


def _never_there(program: Program, site: Site) -> bool:
    """Whether ``site`` makes no event at all: the ring, say, is deeper than there are turns."""
    question = Question(program)
    return question.excludes(question.happen(site, question.core(site.role)).exists)


def _distances(program: Program, site: Site, wait: Site, place: int) -> list[Poly]:
    """Distances in one loop at which the ids agree, then likely ones: 0, the depths of rings, 1."""
    question = Question(program)
    core = question.core(wait.role)
    waiting = question.happen(wait, core)
    setting = question.happen(site, question.core(site.role, core.rank, core.block), waiting.turns)
    gap = _flag(question, setting) - _flag(question, waiting)
    found: list[Poly] = []
    (turn,) = waiting.turns[place].symbols or {""}
    if turn not in gap.symbols and not any("%" in name for name in gap.symbols):
        factor = _flag(question, setting).as_dict.get((turn,), 0)
        if factor in (1, -1):
            found.append(gap * factor)
    moduli = [atom.modulus for atom in question.atoms.known.values() if isinstance(atom, Ring)]
    sizes = [symbol(name) for name in program.domain.free]
    named = program.domain.names.get("buffer_size")
    found += [number(0), *moduli, *([named] if named is not None else []), *sizes, number(1)]
    found += lower_bounds(waiting.exists, turn)
    parameters = set(program.domain.free)
    return [distance for distance in dict.fromkeys(found) if distance.symbols <= parameters]


def _pair(
    program: Program, site: Site, wait: Site, shift: tuple[Poly, ...], *, from_set: bool
) -> tuple[Question, Happening, Happening]:
    """An event of one, and the event of the other that the shift gives."""
    question = Question(program)
    known, other = (site, wait) if from_set else (wait, site)
    start = question.happen(known, question.core(known.role))
    sign = 1 if from_set else -1
    turns = tuple(turn + step * sign for turn, step in zip(start.turns, shift, strict=True))
    partner = question.happen(other, question.core(other.role, start.core.rank, start.core.block), turns)
    return question, start, partner


def _releases(program: Program, site: Site, wait: Site, shift: tuple[Poly, ...]) -> bool:
    question, waiting, setting = _pair(program, site, wait, shift, from_set=False)
    same = equal(_flag(question, waiting), _flag(question, setting))
    return question.implies([waiting.exists], both(setting.exists, same))


def _misses_none(program: Program, site: Site, wait: Site, shift: tuple[Poly, ...]) -> bool:
    question, setting, waiting = _pair(program, site, wait, shift, from_set=True)
    return question.implies([setting.exists], waiting.exists)


def _misses_only_last(program: Program, site: Site, wait: Site, shift: tuple[Poly, ...]) -> bool:
    """Of one launch: whether a set that releases nothing has no set behind it that releases a wait."""
    if program.domain.names["launches"] != number(1):
        return False
    question, setting, waiting = _pair(program, site, wait, shift, from_set=True)
    later = question.happen(site, setting.core)
    turns = tuple(turn + step for turn, step in zip(later.turns, shift, strict=True))
    released = question.happen(wait, waiting.core, turns)
    given = [setting.exists, negation(waiting.exists), later.exists, released.exists, before(setting, later)]
    return question.excludes(*given)


def _check_counters(program: Program) -> None:
    """Where several sites set one counter, the order of their sets is that of the waits they release.

    Then the matches together pair the k-th set with the k-th wait as well. It takes sets on one pipe, waits
    on one pipe, and none left over; sites that never mean the same counter are no matter.
    """
    matched = {match.set for match in program.matches}
    for place, one in enumerate(program.matches):
        for other in program.matches[place + 1 :]:
            if one.wait.role is other.wait.role and not _in_one_order(program, one, other):
                raise Declined(
                    f"{other.set.span.place}: the flag set here may be that set at {one.set.span.place}, and "
                    "which wait it releases is not decided for all values"
                )
    for site in program.of_kind(Kind.SET_FLAG):
        for match in program.matches:
            if site not in matched and site.role is match.set.role and may_share(program, site, match.set):
                raise Declined(f"{site.span.place}: no wait could be matched to this set for all values")


def may_share(program: Program, one: Site, other: Site) -> bool:
    """Whether two sites of one role may mean the same counter of one core: ids equal after truncation."""
    question = Question(program)
    core = question.core(one.role)
    a, b = question.happen(one, core), question.happen(other, core)
    return not question.excludes(a.exists, b.exists, _congruent(program, question, a, b))


def _congruent(program: Program, question: Question, a: Happening, b: Happening) -> Formula:
    count = number(len(program.setup.profile.flag_ids))
    return equal(_flag(question, a) - _flag(question, b), question.number("turns") * count)


def _in_one_order(program: Program, one: Match, other: Match) -> bool:
    """Whether, of two events that set one counter, the first releases the first of their two waits."""
    if one.set is other.set or one.wait is other.wait:
        return False
    if not may_share(program, one.set, other.set):
        return True
    if one.set.pipe is not other.set.pipe or one.wait.pipe is not other.wait.pipe:
        return False
    if not (one.balanced and other.balanced):
        return False
    question = Question(program)
    core = question.core(one.set.role)
    a, b = question.happen(one.set, core), question.happen(other.set, core)
    receiver = question.core(one.wait.role, core.rank, core.block)
    first, then = (
        question.happen(match.wait, receiver, tuple(t + s for t, s in zip(h.turns, match.shift, strict=True)))
        for match, h in ((one, a), (other, b))
    )
    crossed = either(
        both(before(a, b), negation(before(first, then))), both(before(first, then), negation(before(a, b)))
    )
    given = [a.exists, b.exists, first.exists, then.exists, _congruent(program, question, a, b)]
    return question.excludes(*given, crossed)


STEPS: Mapping[str, Callable[[Program], None]] = {
    "arithmetic": _check_arithmetic,
    "barriers": _check_barriers,
    "matching": _find_matches,
}
"""What is proved first, in order."""
