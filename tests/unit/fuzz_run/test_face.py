"""The names of `mc2proof.fuzz`: complete, documented, and loaded when asked for."""

from __future__ import annotations

import subprocess
import sys

import mc2proof.fuzz
from mc2proof.fuzz import strategies


def test_every_name_is_there_and_documented() -> None:
    for name in mc2proof.fuzz.__all__:
        assert getattr(mc2proof.fuzz, name).__doc__, name
    assert set(mc2proof.fuzz.__all__) <= set(dir(mc2proof.fuzz))
    assert not hasattr(mc2proof.fuzz, "no_such_name")


def test_strategies_are_documented() -> None:
    for name in ("dtypes", "inputs", "interleavings", "mutants", "parameters", "protocols"):
        assert getattr(strategies, name).__doc__


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, mc2proof.fuzz; "
        "print([m for m in ('numpy', 'hypothesis', 'ml_dtypes', 'z3') if m in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"
