"""The text that users read, against snapshots, and the exit codes that go with it."""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

VEC = ("--barrier-all", "vec")
CASES = {
    "builtin-proved": (0, ()),
    "builtin-depth-3": (1, ("--buffer-size", 3)),
    "builtin-17-tiles": (1, ("--tile-cnt", 17)),
    "builtin-mix": (1, ("--barrier-all", "mix")),
    "builtin-2-launches": (1, ("--launches", 2, "--ranks", 2, "--tile-cnt", 2)),
    "builtin-setup": (
        1,
        ("--clear-flags", "--cores", 1, "--matmul-objects", 1, "--strict-ids", "--ranks", 2, "--tile-cnt", 2),
    ),
    "builtin-quiet-timeout": (1, ("--fault", "quiet-timeout", "--ranks", 2, "--tile-cnt", 1)),
    "builtin-1-rank": (3, ("--ranks", 1)),
    "builtin-too-large": (3, ("--tile-cnt", 1_000_000)),
    "builtin-one-property": (0, ("--property", "layout", "--engine", "happens-before")),
    "python-vacuous": (3, ("protocols.py:hand_over", "--ranks", 2)),
    "python-deadlock": (1, ("protocols.py:missing_set", "--ranks", 2)),
    "python-no-quiet": (1, ("protocols.py:unsafe_exchange", "--ranks", 2, *VEC)),
    "python-unsupported": (3, ("protocols.py:fenced", "--ranks", 2)),
    "python-equal-programs": (
        3,
        ("protocols.py:hand_over", "protocols.py:ready", "protocols.py:safe_exchange", "--ranks", 2, *VEC),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_prove(name: str, run: Callable, snapshot: Callable, protocols: Path) -> None:
    code, arguments = CASES[name]
    finished = run("prove", *arguments)
    assert finished.stderr == ""
    assert finished.returncode == code
    snapshot(f"prove-{name}", finished.stdout)


def test_show_builtin(run: Callable, snapshot: Callable) -> None:
    finished = run("show")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("show-builtin", finished.stdout)


def test_show_prints_equal_programs_once(run: Callable, snapshot: Callable, protocols: Path) -> None:
    names = ("hand_over", "ready", "unsafe_exchange")
    finished = run("show", *(f"protocols.py:{name}" for name in names))
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("show-python", finished.stdout)


def test_list(run: Callable, snapshot: Callable) -> None:
    finished = run("list")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("list", finished.stdout)


@pytest.mark.parametrize("name", ["", "prove", "replay", "list", "show", "explain", "audit", "why", "export"])
def test_help(name: str, run: Callable, snapshot: Callable) -> None:
    finished = run(*name.split(), "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot(f"help-{name or 'group'}", finished.stdout)


def test_help_prints_the_default_that_holds(run: Callable) -> None:
    """It is written out in `options`, which must not import the limits for ``--help``."""
    from mc2proof.protocol.unroll import Limits

    assert f"[default: {Limits().rlimit}]" in " ".join(run("prove", "--help").stdout.split())


def test_version(run: Callable) -> None:
    finished = run("--version")
    assert (finished.returncode, finished.stdout) == (0, f"mc2proof {version('mc2proof')}\n")


def replay_command(report: str) -> list[str]:
    """The arguments of the replay line that a report prints."""
    [line] = [line for line in report.splitlines() if line.strip().startswith("replay ")]
    words = line.split()
    assert words[1] == "mc2proof"
    return words[2:]


def test_printed_replay_command_reproduces(run: Callable, snapshot: Callable, protocols: Path) -> None:
    asked = ("--property", "no-read-before-write", "--ranks", 2)
    report = run("prove", "protocols.py:unsafe_exchange", *asked)
    finished = run(*replay_command(report.stdout))
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("replay", finished.stdout)


def test_replay_on_another_program_is_an_input_error(run: Callable, fails: Callable, protocols: Path) -> None:
    report = run("prove", "protocols.py:missing_set", "--ranks", 2)
    trace = replay_command(report.stdout)[1]
    assert "not of hand-over" in fails(2, "replay", trace, "protocols.py:hand_over")


def test_parameters_by_option_and_by_name_are_the_same(run: Callable) -> None:
    by_option = run("prove", "--tile-cnt", 3, "--ranks", 2)
    by_name = run("prove", "--set", "tile_cnt=3", "--set", "ranks=0x2", "--ranks", 2)
    assert by_option.stdout == by_name.stdout
    assert by_option.returncode == 0


def test_running_as_a_module_is_the_same(run: Callable, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "mc2proof", "list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert finished.stdout == run("list").stdout
