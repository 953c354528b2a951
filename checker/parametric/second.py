"""A second solver: cvc5 is asked every question that Z3 finds impossible (``--second-solver``).

cvc5 is no dependency: the extra ``mc2proof[cvc5]`` installs it. What it leaves open is no disagreement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import ParameterError
from ..ask import EngineDisagreement

RLIMIT = 1_000_000
"""cvc5's own resource limit a question."""


@dataclass(slots=True)
class SecondSolver:
    """Called with every impossible question. ``confirmed`` and ``open`` count what was said of them."""

    name: str
    answer: Callable[[str], str]
    confirmed: int = 0
    open: int = 0

    def __call__(self, title: str, text: str) -> None:
        """Raises EngineDisagreement where the second solver finds the question possible."""
        said = self.answer(text)
        if said == "sat":
            message = f"Z3 finds a question of {title} impossible, {self.name} finds it possible"
            raise EngineDisagreement(message, _saved(text))
        self.confirmed += said == "unsat"
        self.open += said != "unsat"

    def said(self) -> str:
        """How many of Z3's answers it confirms."""
        asked = self.confirmed + self.open
        left = f", and leaves {self.open} open, for which Z3 alone stands" if self.open else ""
        return f"{self.name} confirms {self.confirmed} of {asked} questions that Z3 finds impossible{left}"


def second_solver() -> SecondSolver:
    """cvc5. Raises ParameterError where it is not installed."""
    try:
        import cvc5
    except ImportError as error:
        raise ParameterError(
            "second-solver", None, "needs cvc5: install mc2proof with its extra, pip install 'mc2proof[cvc5]'"
        ) from error
    return SecondSolver("cvc5", lambda text: _ask(cvc5, text))


def _ask(cvc5: Any, text: str) -> str:
    """What cvc5 says of a question in SMT-LIB: sat, unsat or unknown."""
    solver = cvc5.Solver()
    solver.setOption("rlimit", str(RLIMIT))
    solver.setLogic("QF_NIA" if "(* " in text else "QF_LIA")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, parser.getSymbolManager())
    words = said.split()
    return words[-1] if words and words[-1] in ("sat", "unsat") else "unknown"


def _saved(text: str) -> str | None:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="mc2proof-disagreement-", suffix=".smt2", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
            return file.name
    except OSError:
        return None  # nowhere to write: the message still says what disagrees
