"""The names of `mc2proof.fuzz`: complete, documented, and loaded when asked for."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from inspect import Parameter, signature

import pytest

import mc2proof.fuzz
from mc2proof.fuzz import strategies


def test_every_name_is_there_and_documented() -> None:
    for name in mc2proof.fuzz.__all__:
        assert getattr(mc2proof.fuzz, name).__doc__, name
    assert set(mc2proof.fuzz.__all__) <= set(dir(mc2proof.fuzz))
    assert not hasattr(mc2proof.fuzz, "no_such_name")


STRATEGIES = ("dtypes", "inputs", "interleavings", "mutants", "parameters", "protocols")


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_are_there_by_name_and_take_keywords_only(name: str) -> None:
    strategy = getattr(mc2proof.fuzz, name)
    assert strategy is getattr(strategies, name)
    assert strategy.__doc__
    kinds = {p.kind for p in signature(strategy).parameters.values()}
    assert kinds <= {Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD}


def test_run_has_the_promised_form() -> None:
    assert str(signature(mc2proof.fuzz.run)).startswith(
        "(instance: 'Instance', inputs: 'Inputs | Sequence[Inputs] | None', timing: 'Timing', *,"
    )
    assert signature(mc2proof.fuzz.run).return_annotation == "Outcome"


def test_no_module_hides_an_exported_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(mc2proof.fuzz.__path__)}
    assert modules & set(mc2proof.fuzz.__all__) == {"strategies"}


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, mc2proof.fuzz; "
        "print([m for m in ('numpy', 'hypothesis', 'ml_dtypes', 'z3') if m in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"
