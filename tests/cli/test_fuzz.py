"""`mc2proof fuzz` and `mc2proof replay --with-data` as users run them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

SMALL = ("--ranks", 2, "--tile-cnt", 5)


def settled(text: str) -> str:
    """``text`` without what differs between two runs: how fast it was."""
    return re.sub(r"\d+ a second", "N a second", text)


def test_no_failure(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", *SMALL, "--examples", 40)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("fuzz-right", settled(finished.stdout))


def test_a_failure_is_shown_small_and_replays(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", *SMALL, "--buffer-size", 3, "--dtype", "e4m3:e5m2", "--seed", 1)
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("fuzz-depth-3", settled(finished.stdout))
    (trace,) = re.findall(r"mc2proof replay (\S+)", finished.stdout)
    again = run("replay", trace, "--with-data")
    assert (again.returncode, again.stderr) == (1, "")
    snapshot("replay-with-data", again.stdout)


def test_a_hang_in_python(run: Callable, snapshot: Callable, protocols: Path) -> None:
    finished = run("fuzz", "protocols.py:missing_set", "--ranks", 2, "--timing", "preempt")
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("fuzz-python-deadlock", settled(finished.stdout))


def test_a_proofs_trace_replays_with_data(run: Callable) -> None:
    proved = run("prove", *SMALL, "--buffer-size", 3, "--set", "m=2", "--set", "k=64", "--set", "n=2")
    (trace,) = re.findall(r"mc2proof replay (\S+)", proved.stdout)[:1]
    finished = run("replay", trace, "--with-data")
    assert finished.returncode == 1
    assert "changes while it is read" in finished.stdout or "is wrong" in finished.stdout


def test_shapes_and_sizes_are_taken(run: Callable) -> None:
    finished = run("fuzz", "--ranks", 2, "--shape", "1024,256,4", "--examples", 3)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "m 512, k 128, n 4" in finished.stdout
    finished = run("fuzz", *SMALL, "--set", "k=96", "--set", "m=3", "--set", "n=5", "--examples", 3)
    assert finished.returncode == 0
    assert "m 3, k 96, n 5" in finished.stdout


def test_help(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("help-fuzz", finished.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--examples", 0), "examples"),
        (("--seed", -1), "seed"),
        (("--dtype", "fp4:e4m3"), "fp4"),
        (("--timing", "random"), "pct"),
        (("--set", "ring=3"), "no such parameter"),
        (("--ranks", 0), "ranks"),
        (("--tile-cnt", 0), "rows"),
    ],
)
def test_errors_are_one_line(arguments: tuple[object, ...], message: str, run: Callable) -> None:
    finished = run("fuzz", *arguments)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1


OWN_TEST = """\
import mc2proof
from hypothesis import given, settings
from mc2proof.fuzz import Timing, assert_matches_golden, runner_of, strategies
from mc2proof.protocol.unroll import unroll

PROTOCOL = mc2proof.load()[0]


def test_right():
    assert_matches_golden(PROTOCOL, examples=50)


def test_wrong():
    assert_matches_golden(PROTOCOL, values={"buffer_size": 3})


@settings(max_examples=20, deadline=None)
@given(timing=strategies.interleavings())
def test_mine(timing: Timing):
    values = {"ranks": 2, "tile_cnt": 3, "m": 2, "k": 64, "n": 2}
    assert not runner_of(unroll(PROTOCOL, values)).run(timing).failed
"""


def test_in_a_pytest_run_of_ones_own(tmp_path: Path, snapshot: Callable, command: SimpleNamespace) -> None:
    (tmp_path / "test_kernel.py").write_text(OWN_TEST, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "test_kernel.py"],
        cwd=tmp_path,
        env=command.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "1 failed, 2 passed" in finished.stdout, finished.stdout
    told = [row.removeprefix("E") for row in finished.stdout.splitlines() if row.startswith("E  ")]
    snapshot("assert-matches-golden", "\n".join(row.strip() for row in told) + "\n")
