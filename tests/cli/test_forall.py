"""`mc2proof prove --for-all` as users run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files

import jsonschema
import pytest

RING = ("--assume", "buffer_size power of 2", "--assume", "tile_cnt >= 1", "--assume", "ranks >= 2")
ALL = ("prove", "--for-all", "ranks,tile_cnt,buffer_size", "--barrier-all", "vec", *RING)


def test_the_ring(run: Callable, snapshot: Callable) -> None:
    finished = run(*ALL)
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("for-all", finished.stdout)


def test_json_follows_the_schema(run: Callable) -> None:
    finished = run(*ALL, "--format", "json", "--property", "deadlock-freedom", "--property", "flag-range")
    assert finished.returncode == 1
    report = json.loads(finished.stdout)
    schema = json.loads((files("mc2proof") / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(report)
    rows = {row["property"]: row for row in report["results"]}
    assert rows["deadlock-freedom"]["scope"] == "all"
    assert rows["deadlock-freedom"]["engines"] == ["parametric"]
    assert rows["flag-range"]["holds_when"] == "tile_cnt <= min(16, buffer_size + 14)"
    assert report["parameters"]["ranks"] == {"min": 1, "max": None, "equals": None}


def test_what_is_assumed_proves_it(run: Callable) -> None:
    finished = run(*ALL, "--assume", "tile_cnt <= 4", "--property", "flag-range", "--property", "completion")
    assert finished.returncode == 0
    assert "tile_cnt <= 4" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--for-all", "tiles"), "no such parameter"),
        (("--for-all", "tile_cnt", "--tile-cnt", 3), "as well"),
        (("--for-all", "tile_cnt", "--assume", "tile_cnt"), "no comparison"),
        (("--for-all", "tile_cnt", "--assume", "tile_cnt < 1", "--assume", "tile_cnt > 1"), "no value"),
        (("--for-all", "tile_cnt", "--property", "relaunch"), "several launches"),
        (("--for-all", "tile_cnt", "--property", "speed"), "speed"),
    ],
)
def test_errors_are_one_line(arguments: tuple[object, ...], message: str, run: Callable) -> None:
    finished = run("prove", *arguments)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1
