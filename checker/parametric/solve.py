"""The only module of `parametric` that knows Z3: whether conditions can hold together.

Monomials of more than one symbol become numbers of which nothing is known: more is possible then, so
what is still impossible is proved. Every question has a fresh solver and a resource limit, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import z3

from .formula import And, Compare, Formula, Opaque, Or
from .polynomial import Monomial, Poly


class Answer(Enum):
    """What the solver says of conditions."""

    IMPOSSIBLE = "they cannot hold together"
    POSSIBLE = "they can, as far as was asked"
    OPEN = "the resource limit was reached"


@dataclass(slots=True)
class Solver:
    """Asks Z3; ``asked`` counts the questions, ``texts`` keeps them where ``keep`` is set."""

    rlimit: int
    asked: int = 0
    keep: bool = False
    texts: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, conditions: Iterable[Formula], title: str = "") -> Answer:
        """Whether ``conditions`` can hold together."""
        self.asked += 1
        solver = z3.Solver()
        if self.rlimit:
            solver.set("rlimit", self.rlimit)
        names = _Names()
        for condition in conditions:
            solver.add(names.formula(condition))
        if self.keep:
            self.texts.append((title, solver.to_smt2()))
        found = solver.check()
        if found == z3.unsat:
            return Answer.IMPOSSIBLE
        return Answer.POSSIBLE if found == z3.sat else Answer.OPEN

    def core(self, fixed: Sequence[Formula], named: Sequence[Formula]) -> list[int] | None:
        """Which of ``named`` are needed to make ``fixed`` impossible; None where it is not."""
        self.asked += 1
        solver = z3.Solver()
        if self.rlimit:
            solver.set("rlimit", self.rlimit)
        solver.set("core.minimize", True)
        names = _Names()
        for condition in fixed:
            solver.add(names.formula(condition))
        marks = [z3.Bool(f"mark {number}") for number in range(len(named))]
        for mark, condition in zip(marks, named, strict=True):
            solver.add(z3.Implies(mark, names.formula(condition)))
        if solver.check(*marks) != z3.unsat:
            return None
        kept = {str(mark) for mark in solver.unsat_core()}
        return [number for number, mark in enumerate(marks) if str(mark) in kept]


class _Names:
    """Z3's constants by monomial; one each for a question."""

    def __init__(self) -> None:
        self.numbers: dict[Monomial, z3.ArithRef] = {}

    def poly(self, poly: Poly) -> z3.ArithRef:
        parts = [
            z3.IntVal(factor) if not monomial else factor * self._number(monomial)
            for monomial, factor in poly.terms
        ]
        return z3.Sum(parts) if parts else z3.IntVal(0)

    def _number(self, monomial: Monomial) -> z3.ArithRef:
        if monomial not in self.numbers:
            self.numbers[monomial] = z3.Int(" * ".join(monomial))
        return self.numbers[monomial]

    def formula(self, formula: Formula) -> z3.BoolRef:
        match formula:
            case Compare(poly=poly, op=op):
                value = self.poly(poly)
                return {">=": value >= 0, "==": value == 0, "!=": value != 0}[op]
            case And(parts=parts):
                return z3.And([self.formula(part) for part in parts])
            case Or(parts=parts):
                return z3.Or([self.formula(part) for part in parts])
            case Opaque(name=name, negated=negated):
                mark = z3.Bool(name)
                return z3.Not(mark) if negated else mark


def z3_version() -> str:
    """Which Z3 answered."""
    return str(z3.get_version_string())
