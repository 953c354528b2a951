"""`mc2proof minimize`, as a user runs it."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jsonschema

SMALL = ("--ranks", 2, "--buffer-size", 2, "--tile-cnt", 4, "--barrier-all", "vec")


def test_the_ring(run: Callable, snapshot: Callable) -> None:
    finished = run("minimize", "--barrier-all", "vec")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("minimize-builtin", finished.stdout)


def test_a_mend(run: Callable, protocols: Path, snapshot: Callable) -> None:
    finished = run("minimize", "protocols.py:unsafe_exchange", "--ranks", 2, "--barrier-all", "vec")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("minimize-no-quiet", finished.stdout)


def test_help(run: Callable, snapshot: Callable) -> None:
    finished = run("minimize", "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("help-minimize", finished.stdout)


def test_json_follows_the_schema(run: Callable, protocols: Path, tmp_path: Path) -> None:
    schema = json.loads((files("mc2proof") / "minimize_schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for source in ((), ("protocols.py:unsafe_exchange",)):
        given = SMALL if not source else ("--ranks", 2)
        finished = run("minimize", *source, *given, "--format", "json", "--output", "answer.json")
        assert (finished.returncode, finished.stderr) == (0, "")
        assert finished.stdout.endswith("; written to answer.json\n")
        answer = json.loads((tmp_path / "answer.json").read_text())
        assert [e.message for e in validator.iter_errors(answer)] == []
        assert not validator.is_valid(answer | {"needs": None})


def test_refusals(fails: Callable) -> None:
    assert "tile_cnt" in fails(2, "minimize", "--tile-cnt", -1)
    assert "no such file" in fails(2, "minimize", "missing.h")
    assert "max-events" in fails(3, "minimize", "--max-events", 10)
