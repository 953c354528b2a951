"""`mc2proof why` as users run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

RING = ("--barrier-all", "vec", "--assume", "buffer_size power of 2", "--assume", "tile_cnt >= 1")


@pytest.mark.parametrize("name", ["no-overwrite-before-read", "deadlock-freedom"])
def test_the_ring(name: str, run: Callable, snapshot: Callable) -> None:
    finished = run("why", name, *RING)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot(f"why-{name}", finished.stdout)


def test_what_does_not_hold(run: Callable, snapshot: Callable) -> None:
    finished = run("why", "flag-range", *RING)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("why-not", finished.stdout)


def test_of_some_values(run: Callable) -> None:
    finished = run("why", "completion", "--ranks", 2, "--buffer-size", 2, "--for-all", "tile_cnt")
    assert finished.returncode == 0
    assert "for all  tile_cnt >= 0\n" in finished.stdout


def test_into_a_file(run: Callable, tmp_path: Path) -> None:
    finished = run("why", "barrier-match", *RING, "--output", "why.txt")
    assert finished.stdout == "barrier-match holds for all values; written to why.txt\n"
    assert (tmp_path / "why.txt").read_text().startswith("barrier-match holds for all values\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed",), "speed"),
        (("relaunch",), "several launches"),
        (("layout", "--ranks", 2, "--tile-cnt", 2, "--buffer-size", 2), "no value"),
        (("layout", "--for-all", "tiles"), "no such parameter"),
        (("layout", "--assume", "ranks < 1", "--assume", "ranks > 1"), "no value"),
        (("layout", "missing.h"), "no such file"),
    ],
)
def test_errors_are_one_line(arguments: tuple[object, ...], message: str, fails: Callable) -> None:
    assert message in fails(2, "why", *arguments)
