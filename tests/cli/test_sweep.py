"""`mc2proof sweep`, as a user runs it."""

import csv
import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

GRID = ("--ranks", "1,2", "--buffer-size", "2..4", "--tile-cnt", "1..17:4", "--jobs", 1)


def test_sweep(run: Callable, snapshot: Callable) -> None:
    finished = run("sweep", *GRID)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("sweep", finished.stdout)


def test_help(run: Callable, snapshot: Callable) -> None:
    finished = run("sweep", "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("help-sweep", finished.stdout)


def test_json_follows_the_schema(run: Callable, tmp_path: Path) -> None:
    schema = json.loads((files("mc2proof") / "sweep_schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    finished = run("sweep", *GRID, "--format", "json", "--output", "sweep.json")
    assert finished.stdout == "21 safe, 9 violated; written to sweep.json\n"
    result = json.loads((tmp_path / "sweep.json").read_text())
    assert [e.message for e in validator.iter_errors(result)] == []
    assert len(result["configurations"]) == 30
    assert result["costs_made_up"] is True
    assert not validator.is_valid(result | {"axes": None})


def test_csv_has_a_line_for_each(run: Callable) -> None:
    rows = list(csv.DictReader(io.StringIO(run("sweep", *GRID, "--format", "csv").stdout)))
    assert len(rows) == 30
    assert rows[0] | {"verdict": "safe", "tile_cnt": "1"} == rows[0]
    assert {row["code"] for row in rows if row["buffer_size"] == "3"} >= {"overwrite"}


def test_html_stands_alone(run: Callable) -> None:
    page = run("sweep", *GRID, "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<td style=") == 30
    assert "http" not in page
    assert "<script" not in page


def test_a_shape(run: Callable) -> None:
    told = run(
        "sweep", "--shape", "2048,8192,3584", "--ranks", "2,4", "--buffer-size", "3,4", "--format", "csv"
    )
    rows = list(csv.DictReader(io.StringIO(told.stdout)))
    assert [(r["tile_cnt"], r["verdict"]) for r in rows] == [("4", "violated"), ("4", "safe")] * 2


def test_costs_of_a_file(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "costs.toml").write_text("matmul_tile_us = 1000\n")
    told = run("sweep", "--tile-cnt", "8", "--costs", "costs.toml", "--jobs", 1).stdout
    assert "matmul_tile_us 1000" in told
    assert "made up" not in told
    assert "1,000.0 us" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ranks", "4..2"), "'4..2' is not of the form"),
        (("--tile-cnt", "1..999999999"), "more than 100000 values"),
        (("--ranks", "1..1000", "--tile-cnt", "1..1000"), "1000000 configurations"),
        (("--ranks", "2", "--set", "ranks=3"), "is swept, and given a value as well"),
        (("--costs", "none.toml"), "cannot be read"),
        (("--jobs", "0"), "jobs"),
    ],
)
def test_what_is_refused(fails: Callable, arguments: tuple[str, ...], said: str) -> None:
    assert said in fails(2, "sweep", *arguments)


def test_an_interrupted_sweep_goes_on(run: Callable, tmp_path: Path, command: SimpleNamespace) -> None:
    arguments = ("sweep", "--ranks", "2,4", "--buffer-size", "1..8", "--tile-cnt", "1..32")
    kept = tmp_path / "kept"
    process = subprocess.Popen(
        [command.path, *arguments, "--jobs", "2", "--cache", str(kept)],
        env=command.environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list(kept.rglob("*.json"))) < 20 and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the processes of the pool get it too
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "mc2proof: interrupted\n")
    assert 20 <= len(list(kept.rglob("*.json"))) < 512
    resumed = run(*arguments, "--jobs", 2, "--cache", kept)
    assert resumed.returncode == 0
    assert resumed.stdout == run(*arguments, "--jobs", 2).stdout
    assert len(list(kept.rglob("*.json"))) == 512
