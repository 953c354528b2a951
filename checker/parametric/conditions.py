"""Conditions on parameters under which ids and bytes stay within their limits, and how they are written.

A limit that an index can pass gives a condition: the largest value that the index takes is within it. It is
proved to suffice, and, by an event that passes the limit where it does not hold, to be needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .atoms import Ring
from .formula import (
    And,
    Compare,
    Formula,
    Or,
    at_least,
    both,
    conjunction,
    either,
    equal,
    negation,
    upper_bounds,
)
from .polynomial import Poly, never_negative, number, symbol
from .program import Program
from .question import Happening, Question
from .sites import Site


@dataclass(frozen=True, slots=True)
class Place:
    """One event of a site, told by parameters alone: its core, and its turn of every loop."""

    rank: Poly
    block: Poly
    turns: tuple[Poly, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """``formula`` on parameters; ``exact``: where it does not hold, some event passes the limit.

    ``places``: events of ``site`` that may be the ones; `witness` tries them at given values.
    """

    formula: Formula
    exact: bool
    code: str
    site: Site
    places: tuple[Place, ...] = ()


def largest(question: Question, happening: Happening, poly: Poly) -> list[Poly]:
    """Polynomials over parameters, the least of which is the largest value that ``poly`` takes; [] unknown.

    Symbols of the event are replaced by their highest values, innermost first.
    """
    results = [poly]
    highs: dict[str, list[Poly]] = {}
    for name, high in upper_bounds(happening.exists):
        highs.setdefault(name, []).append(high)
    bounds = question.bounds(happening)
    for name, known in bounds.items():
        if known.highs:
            highs.setdefault(name, []).extend(known.highs)
    for name, atom in question.atoms.known.items():
        if isinstance(atom, Ring):
            highs.setdefault(name, []).append(atom.value)  # a remainder is at most the value
    free = set(question.program.domain.free)
    for _ in range(12):
        following: list[Poly] = []
        for result in results:
            inner = [name for name in sorted(result.symbols) if name not in free and name in highs]
            if not inner:
                following.append(result)
                continue
            name = inner[0]
            if any(factor < 0 for monomial, factor in result.terms if name in monomial):
                return []
            following += [result.substitute({name: high}) for high in dict.fromkeys(highs[name])]
        if following == results:
            break
        results = list(dict.fromkeys(following))
    if any(not result.symbols <= free for result in results):
        return []
    return _undominated(results, question)


def _undominated(results: Sequence[Poly], question: Question) -> list[Poly]:
    """Those that are not always at least another one."""
    bounds = question.program.domain.bounds()
    kept: list[Poly] = []
    for place, one in enumerate(results):
        others = [*kept, *results[place + 1 :]]
        if not any(other != one and never_negative(one - other, bounds) for other in others):
            kept.append(one)
    return list(dict.fromkeys(kept))


def within(highs: Iterable[Poly], limit: Poly | int) -> Formula:
    """That the least of ``highs`` is at most ``limit``."""
    return either(*(at_least(limit, high) for high in highs))


def suffices(question: Question, happening: Happening, condition: Formula, bad: Formula) -> bool:
    """Whether no event passes the limit where ``condition`` holds."""
    return question.excludes(happening.exists, condition, bad)


def is_needed(
    program: Program, site: Site, condition: Formula, bad: Poly, id_of: object
) -> tuple[bool, tuple[Place, ...]]:
    """Whether, where ``condition`` does not hold, an event of ``site`` has the id ``bad``; and which.

    The event whose turn equals the id is tried: ids that are an index, less a constant or a parameter.
    """
    question = Question(program)
    core = question.core(site.role, number(0), number(0))
    probe = question.happen(site, core)
    assert callable(id_of)
    value: Poly = id_of(question, probe)
    turn = next(iter(probe.turns[-1].symbols), "")
    atom = next((question.atoms.known[s] for s in value.symbols if s in question.atoms.known), None)
    base = value.substitute({turn: number(0)}) if atom is None else _base(atom, turn)
    if base is None:
        return False, ()
    turns = (*(number(0) for _ in probe.turns[:-1]), bad - base)
    witness = question.happen(site, core, turns)
    same = equal(id_of(question, witness), bad)
    place = Place(core.rank, core.block, turns)
    return question.implies([negation(condition)], both(witness.exists, same)), (place,)


def _base(atom: object, turn: str) -> Poly | None:
    return atom.value.substitute({turn: number(0)}) if isinstance(atom, Ring) else None


# --- text -------------------------------------------------------------------------------------


def text_of(formula: Formula, order: Sequence[str] = ("tile_cnt", "buffer_size", "ranks", "blocks")) -> str:
    """A condition as users write it: ``tile_cnt <= min(16, buffer_size + 14)``."""
    parts = formula.parts if isinstance(formula, And) else (formula,)
    rows: list[str] = []
    limits: dict[str, list[Poly]] = {}
    for part in parts:
        side = _upper_side(part, order)
        if side is None:
            rows.append(_plain(part, order))
        else:
            limits.setdefault(side[0], []).append(side[1])
    bounds = [_limit_text(name, some) for name, some in limits.items()]
    return " and ".join([*bounds, *rows]) or "always"


def _upper_side(part: Formula, order: Sequence[str]) -> tuple[str, Poly] | None:
    """``name <= poly``, for the first of ``order`` that stands alone with factor -1."""
    if not isinstance(part, Compare) or part.op != ">=":
        return None
    for name in order:
        factor = part.poly.as_dict.get((name,), 0)
        rest = part.poly + symbol(name)
        if factor == -1 and name not in rest.symbols:
            return name, rest
    return None


def _limit_text(name: str, limits: list[Poly]) -> str:
    ordered = sorted(dict.fromkeys(limits), key=lambda poly: (poly.constant is None, str(poly)))
    if len(ordered) == 1:
        return f"{name} <= {ordered[0]}"
    return f"{name} <= min({', '.join(map(str, ordered))})"


def _plain(part: Formula, order: Sequence[str]) -> str:
    if isinstance(part, Or):
        return "(" + " or ".join(text_of(inner, order) for inner in part.parts) + ")"
    if isinstance(part, Compare):
        positive = Poly(tuple(term for term in part.poly.terms if term[1] > 0))
        negative = positive - part.poly
        op = {">=": "<=", "==": "==", "!=": "!="}[part.op]
        return f"{negative} {op} {positive}"
    return str(part)


def simplified(program: Program, conditions: Sequence[Formula]) -> Formula:
    """Their conjunction without those that the domain or the others imply, and none twice."""
    kept = list(dict.fromkeys(conditions))
    question = Question(program)
    assumed = [
        part
        for whole in program.domain.conditions()
        for part in (whole.parts if isinstance(whole, And) else (whole,))
    ]
    for condition in list(kept):
        rest = [other for other in kept if other is not condition]
        implied = any(_implies(other, condition, question) for other in (*rest, *assumed))
        if implied or question.implies(rest, condition):
            kept = rest
    return conjunction(kept)


def _implies(one: Formula, other: Formula, question: Question) -> bool:
    """Whether ``one`` implies ``other`` because what it compares is never larger."""
    if not (isinstance(one, Compare) and isinstance(other, Compare) and one.op == other.op == ">="):
        return False
    return never_negative(other.poly - one.poly, question.program.domain.bounds())
