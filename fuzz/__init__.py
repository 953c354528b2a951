"""What can be run of a protocol: the numpy model, timings, golden results, and faults put in.

The library's face, by name: everything that a test of your own needs. Names are looked up at first
use, so that importing the package loads nothing. Hypothesis strategies are in `strategies`. Start at
`assertions`, then read `execute`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import strategies as strategies
    from .assertions import assert_matches_golden as assert_matches_golden
    from .contracts import geometry_of as geometry_of
    from .execute import Outcome as Outcome
    from .execute import Runner as Runner
    from .execute import WrongOutput as WrongOutput
    from .execute import WrongRead as WrongRead
    from .execute import run as run
    from .inputs import Geometry as Geometry
    from .inputs import Inputs as Inputs
    from .kinds import make_inputs as make_inputs
    from .mutants import Mutant as Mutant
    from .numerics import Dtypes as Dtypes
    from .search import Found as Found
    from .search import runner_of as runner_of
    from .timings import Pct as Pct
    from .timings import Preempt as Preempt
    from .timings import Recorded as Recorded
    from .timings import Timing as Timing
    from .timings import Uniform as Uniform

_NAMES = {
    "assertions": ("assert_matches_golden",),
    "contracts": ("geometry_of",),
    "execute": ("Outcome", "Runner", "WrongOutput", "WrongRead", "run"),
    "inputs": ("Geometry", "Inputs"),
    "kinds": ("make_inputs",),
    "mutants": ("Mutant",),
    "numerics": ("Dtypes",),
    "search": ("Found", "runner_of"),
    "timings": ("Pct", "Preempt", "Recorded", "Timing", "Uniform"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [*sorted(_HOME), "strategies"]


if not TYPE_CHECKING:  # checkers know the names above; to them, others are errors

    def __getattr__(name: str) -> object:
        if name == "strategies":
            return import_module(".strategies", __name__)
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
