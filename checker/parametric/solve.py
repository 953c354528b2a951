"""The only module of `parametric` that knows Z3: whether conditions can hold together.

Monomials of more than one symbol become numbers of which nothing is known: more is possible then, so
what is still impossible is proved. Every question has a fresh solver and a resource limit, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import z3

from .formula import And, Compare, Formula, Opaque, Or
from .polynomial import Monomial, Poly


class Answer(Enum):
    """What the solver says of conditions."""

    IMPOSSIBLE = "they cannot hold together"
    POSSIBLE = "they can, as far as was asked"
    OPEN = "the resource limit was reached"


Second = Callable[[str, str], None]
"""Asks another solver a question, given by title and in SMT-LIB; raises where it finds it possible."""


class Asked(NamedTuple):
    """A question as it was put, in SMT-LIB, and what Z3 said."""

    title: str
    text: str
    answer: Answer


_ANSWERS = {"unsat": Answer.IMPOSSIBLE, "sat": Answer.POSSIBLE, "unknown": Answer.OPEN}


@dataclass(slots=True)
class Solver:
    """Asks Z3; ``asked`` counts the questions, ``texts`` keeps them where ``keep`` is set.

    ``about`` is what questions without a title are about; ``second`` is asked what Z3 calls impossible.
    """

    rlimit: int
    asked: int = 0
    keep: bool = False
    texts: list[Asked] = field(default_factory=list)
    about: str = "arithmetic, barriers and matching"
    second: Second | None = None
    terms: _Terms = field(default_factory=lambda: _Terms())

    def ask(self, conditions: Iterable[Formula], title: str = "") -> Answer:
        """Whether ``conditions`` can hold together."""
        self.asked += 1
        solver = z3.Solver()
        if self.rlimit:
            solver.set("rlimit", self.rlimit)
        for condition in conditions:
            solver.add(self.terms.formula(condition))
        found = _ANSWERS[str(solver.check())]
        if self.keep:
            self.texts.append(Asked(title or self.about, solver.to_smt2(), found))
        if self.second is not None and found is Answer.IMPOSSIBLE:
            self.second(title or self.about, solver.to_smt2())
        return found

    def core(self, fixed: Sequence[Formula], named: Sequence[Formula]) -> list[int] | None:
        """Which of ``named`` are needed to make ``fixed`` impossible; None where it is not."""
        self.asked += 1
        solver = z3.Solver()
        if self.rlimit:
            solver.set("rlimit", self.rlimit)
        solver.set("core.minimize", True)
        for condition in fixed:
            solver.add(self.terms.formula(condition))
        marks = [z3.Bool(f"mark {number}") for number in range(len(named))]
        for mark, condition in zip(marks, named, strict=True):
            solver.add(z3.Implies(mark, self.terms.formula(condition)))
        if solver.check(*marks) != z3.unsat:
            return None
        kept = {str(mark) for mark in solver.unsat_core()}
        return [number for number, mark in enumerate(marks) if str(mark) in kept]


class _Terms:
    """Z3's terms of conditions. Each is made once: making them takes longer than the answers."""

    def __init__(self) -> None:
        self.numbers: dict[Monomial, z3.ArithRef] = {}
        self.comparisons: dict[Compare, z3.BoolRef] = {}

    def poly(self, poly: Poly) -> z3.ArithRef:
        parts = [
            z3.IntVal(factor) if not monomial else factor * self._number(monomial)
            for monomial, factor in poly.terms
        ]
        if len(parts) < 2:
            return parts[0] if parts else z3.IntVal(0)
        return z3.Sum(parts)

    def _number(self, monomial: Monomial) -> z3.ArithRef:
        if monomial not in self.numbers:
            self.numbers[monomial] = z3.Int(" * ".join(monomial).replace("@", "time "))  # reserved
        return self.numbers[monomial]

    def formula(self, formula: Formula) -> z3.BoolRef:
        match formula:
            case Compare():
                if formula not in self.comparisons:
                    self.comparisons[formula] = _COMPARE[formula.op](self.poly(formula.poly))
                return self.comparisons[formula]
            case And(parts=parts):
                return _joined(z3.And, [self.formula(part) for part in parts], empty=True)
            case Or(parts=parts):
                return _joined(z3.Or, [self.formula(part) for part in parts], empty=False)
            case Opaque(name=name, negated=negated):
                mark = z3.Bool(name)
                return z3.Not(mark) if negated else mark


_COMPARE: dict[str, Callable[[z3.ArithRef], z3.BoolRef]] = {
    ">=": lambda value: value >= 0,
    "==": lambda value: value == 0,
    "!=": lambda value: value != 0,
}


def _joined(
    join: Callable[[list[z3.BoolRef]], z3.BoolRef], parts: list[z3.BoolRef], *, empty: bool
) -> z3.BoolRef:
    """``parts`` joined; SMT-LIB has no conjunction of fewer than two."""
    if len(parts) < 2:
        return parts[0] if parts else z3.BoolVal(empty)
    return join(parts)


def z3_version() -> str:
    """Which Z3 answered."""
    return str(z3.get_version_string())
