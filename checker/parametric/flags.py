"""Flag ids and counters for all values: which ids are taken, and how many sets can wait to be taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.program import Role, SetFlag, WaitFlag
from .atoms import Ring
from .conditions import Condition, is_needed, largest, suffices, within
from .formula import Formula, at_least, differ, either, equal, less
from .memory import ordered
from .polynomial import Poly, never_negative, number, symbol
from .program import Match, Program
from .question import Happening, Question, before
from .sites import Site
from .translate import flag_id


@dataclass(frozen=True, slots=True)
class Backlog:
    """At most ``bound`` sets of ``site`` wait in a counter of one core at any time.

    ``distance``: sets of one id that lie so many turns of its loop number ``loop`` back have been taken.
    Loop 0 is that of launches.
    """

    site: Site
    bound: Poly
    distance: Poly
    loop: int


def flag_of(question: Question, happening: Happening) -> Poly:
    """The id of a set or wait."""
    operation = happening.site.operation
    assert isinstance(operation, SetFlag | WaitFlag)
    return question.value(happening, flag_id(operation.flag))


def taken_ids(program: Program, site: Site) -> frozenset[int]:
    """Ids that a set or wait at ``site`` may not use: a barrier or the Matmul API uses that counter."""
    holder = site.role if site.kind is Kind.WAIT_FLAG else _other(site.role)
    forms = {s.barrier.name: s.barrier for s in program.barriers() if s.barrier is not None}
    ratio = program.protocol.vectors_per_cube
    taken = {i for form in forms.values() for i in form.reserved_on(holder, ratio)}
    return frozenset(taken | set(range(2 * program.setup.profile.matmul_objects)))


def _other(role: Role) -> Role:
    return Role.AIC if role is Role.AIV else Role.AIV


def id_conditions(program: Program, *, strict_ids: bool) -> Iterator[Condition | Site]:
    """What keeps every id within its domain and away from taken ones; a site where no condition is found."""
    for site in program.of_kind(Kind.SET_FLAG, Kind.WAIT_FLAG):
        profile = program.setup.profile
        allowed = set(profile.strict_ids if strict_ids else profile.flag_ids) - taken_ids(program, site)
        question = Question(program)
        happening = question.happen(site, question.core(site.role))
        value = flag_of(question, happening)
        bad = _outside(value, sorted(allowed))
        if question.excludes(happening.exists, bad):
            continue
        first = next(i for i in range(len(profile.flag_ids) + 1) if i not in allowed)
        highs = largest(question, happening, value)
        condition = within(highs, first - 1)
        if not highs or not suffices(question, happening, condition, bad):
            yield site
            continue
        code = "id-reserved" if first in taken_ids(program, site) else "id-out-of-range"
        exact, places = is_needed(program, site, condition, number(first), flag_of)
        yield Condition(condition, exact, code, site, places)


def _outside(value: Poly, allowed: list[int]) -> Formula:
    """That ``value`` is none of ``allowed``."""
    if not allowed:
        return either(at_least(value, 0), less(value, 0))
    gaps = [i for i in range(allowed[0], allowed[-1]) if i not in allowed]
    return either(less(value, allowed[0]), less(allowed[-1], value), *(equal(value, i) for i in gaps))


def backlogs(program: Program) -> Iterator[tuple[Site, Backlog | None]]:
    """For every set, how many of its sets can wait in one counter; None: no bound found."""
    for match in program.matches:
        yield match.set, _backlog(program, match)
    matched = {match.set for match in program.matches}
    for site in program.of_kind(Kind.SET_FLAG):
        if site not in matched:  # nobody takes it: one for every turn of its loops
            once = len(site.loops) == 1 and program.domain.names["launches"] == number(1)
            yield site, Backlog(site, number(1), number(1), 0) if once else None


def _backlog(program: Program, match: Match) -> Backlog | None:
    last = len(match.set.loops) - 1
    for loop in range(last, min(last, 1) - 1, -1):
        single = loop == last or _single(program, match, loop)
        times = number(1) if single else _turns_within(program, match.set, loop)
        if times is None:
            continue
        spread = loop > 1 and _single(program, match, loop - 1)  # how far apart within it is no matter
        for distance, bound in ((number(1), number(1)),) if spread else _distances(program, match, loop):
            alone = distance == bound or _apart(program, match, distance, loop)
            if alone and _taken_before(program, match, distance, loop):
                return Backlog(match.set, bound * times, distance, loop)
    return None


def _turns_within(program: Program, site: Site, loop: int) -> Poly | None:
    """How many turns the loops within ``loop`` have; None: not known."""
    question = Question(program)
    happening = question.happen(site, question.core(site.role))
    translator = question.translator(happening)
    bounds, total = program.domain.bounds(), number(1)
    for inner in site.loops[loop + 1 :]:
        turns = translator.value(inner.stop) - translator.value(inner.start)
        known = inner.step == 1 and turns.symbols <= program.domain.free.keys()
        if not (known and never_negative(turns, bounds)):
            return None
        total = total * turns
    return total


def _distances(program: Program, match: Match, loop: int) -> Iterator[tuple[Poly, Poly]]:
    """How many turns a wait may lie before a set, and how many sets of one counter are then open."""
    yield number(1), number(1)
    question = Question(program)
    happening = question.happen(match.set, question.core(match.set.role))
    flag_of(question, happening)
    depth = program.domain.names.get("buffer_size")
    for atom in question.atoms.known.values():
        if isinstance(atom, Ring):
            yield atom.modulus, number(1)
    shifts = [match.shift[loop], *(other.shift[loop] for other in program.matches if loop < len(other.shift))]
    if loop < len(match.set.loops) - 1:  # what is awaited in the inner turn after may be taken a turn later
        shifts += [shift + 1 for shift in shifts]
    sizes = [*shifts, *([depth] if depth is not None else []), *map(symbol, program.domain.free)]
    for size in dict.fromkeys(sizes):
        if size != number(0):
            yield size, size


def _earlier(program: Program, match: Match) -> tuple[Question, Happening, Happening, list[Formula]]:
    """A set and an earlier one of the same counter, with what that means."""
    question = Question(program)
    setting = question.happen(match.set, question.core(match.set.role))
    earlier = question.happen(match.set, setting.core)
    given = [setting.exists, earlier.exists, before(earlier, setting)]
    given.append(equal(flag_of(question, setting), flag_of(question, earlier)))
    return question, setting, earlier, given


def _single(program: Program, match: Match, loop: int) -> bool:
    """Whether no id is set twice in one turn of the loops up to ``loop``."""
    question, setting, earlier, given = _earlier(program, match)
    here = zip(setting.turns[: loop + 1], earlier.turns[: loop + 1], strict=True)
    return question.excludes(*given, *(equal(a, b) for a, b in here))


def _apart(program: Program, match: Match, distance: Poly, loop: int) -> bool:
    """Whether two sets of one id are at least ``distance`` turns apart, if their outer turns are equal.

    Those of one turn are not looked at.
    """
    question, setting, earlier, given = _earlier(program, match)
    given += [equal(a, b) for a, b in zip(setting.turns[:loop], earlier.turns[:loop], strict=True)]
    given.append(less(setting.turns[loop], earlier.turns[loop] + distance))
    given.append(differ(setting.turns[loop], earlier.turns[loop]))
    return question.excludes(*given)


def _taken_before(program: Program, match: Match, distance: Poly, loop: int) -> bool:
    """Whether the wait for a set of the same id, at least ``distance`` turns earlier, is before the set."""
    question, setting, earlier, given = _earlier(program, match)
    turns = tuple(turn + step for turn, step in zip(earlier.turns, match.shift, strict=True))
    if len(setting.turns) > 1:
        outer = [differ(a, b) for a, b in zip(earlier.turns[:loop], setting.turns[:loop], strict=True)]
        given.append(either(*outer, at_least(setting.turns[loop], earlier.turns[loop] + distance)))
    if question.excludes(*given):
        return True
    for core in question.others(setting.core):
        waiting = question.happen(match.wait, core, turns)
        points = ((waiting, waiting.begin), (setting, setting.begin))
        if not ordered(question, [*given, waiting.exists], *points, "flag-range"):
            return False
        if not match.balanced:
            return False
    return True
