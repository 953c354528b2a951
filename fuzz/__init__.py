"""What can be run of a protocol: the numpy model, timings, golden results, and faults put in.

The library's face, by name: everything that a test of your own needs. `assert_matches_golden` is the
whole of it in one call. `parameters`, `interleavings`, `inputs`, `dtypes`, `protocols` and `mutants` are
Hypothesis strategies; `instance` makes an instance of a protocol with small matrices, `unroll` one at
exactly the values that are given; `run` runs it once, and what came of it is an `Outcome`. Names are
looked up at first use, so that importing the package loads nothing. Start at `assertions`, then read
`execute`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..protocol.setup import Setup as Setup
    from ..protocol.unroll import unroll as unroll
    from . import strategies as strategies
    from .assertions import assert_matches_golden as assert_matches_golden
    from .contracts import geometry_of as geometry_of
    from .execute import Outcome as Outcome
    from .execute import Runner as Runner
    from .execute import WrongOutput as WrongOutput
    from .execute import WrongRead as WrongRead
    from .execute import run as run
    from .kinds import make_inputs as make_inputs
    from .matrices import Geometry as Geometry
    from .matrices import Inputs as Inputs
    from .mutations import Mutant as Mutant
    from .numerics import Dtypes as Dtypes
    from .search import Found as Found
    from .search import runner_of as runner_of
    from .sizes import instance as instance
    from .strategies import dtypes as dtypes
    from .strategies import inputs as inputs
    from .strategies import interleavings as interleavings
    from .strategies import mutants as mutants
    from .strategies import parameters as parameters
    from .strategies import protocols as protocols
    from .timings import Pct as Pct
    from .timings import Preempt as Preempt
    from .timings import Recorded as Recorded
    from .timings import Timing as Timing
    from .timings import Uniform as Uniform

_NAMES = {
    "..protocol.setup": ("Setup",),
    "..protocol.unroll": ("unroll",),
    ".assertions": ("assert_matches_golden",),
    ".contracts": ("geometry_of",),
    ".execute": ("Outcome", "Runner", "WrongOutput", "WrongRead", "run"),
    ".kinds": ("make_inputs",),
    ".matrices": ("Geometry", "Inputs"),
    ".mutations": ("Mutant",),
    ".numerics": ("Dtypes",),
    ".search": ("Found", "runner_of"),
    ".sizes": ("instance",),
    ".strategies": ("dtypes", "inputs", "interleavings", "mutants", "parameters", "protocols"),
    ".timings": ("Pct", "Preempt", "Recorded", "Timing", "Uniform"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [*sorted(_HOME), "strategies"]

EXTRA = ("hypothesis", "ml_dtypes", "numpy")
"""What running needs besides what `mc2proof` itself needs."""


def missing(name: str | None) -> str:
    """What to say where ``name`` of `EXTRA` is not installed: how to install it."""
    return (
        f"running needs {name}: install mc2proof with its extra, pip install 'mc2proof[fuzz]' "
        "(in a checkout: make test)"
    )


if not TYPE_CHECKING:  # checkers know the names above; to them, others are errors

    def __getattr__(name: str) -> object:
        if name == "strategies":
            return import_module(".strategies", __name__)
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value: object = getattr(import_module(_HOME[name], __name__), name)
        except ModuleNotFoundError as error:
            if error.name not in EXTRA:
                raise
            raise ImportError(missing(error.name), name=error.name) from error
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
