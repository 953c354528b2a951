"""The JSON that `prove` writes, against the published schema; and what `list` writes."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.setup import Injected

CASES: dict[str, tuple[int, tuple[object, ...]]] = {
    "proved": (0, ()),
    "cross-check": (0, ("--cross-check", "--ranks", 2, "--tile-cnt", 1, "--buffer-size", 1)),
    "violated with a trace": (1, ("--buffer-size", 3)),
    "violated by counting": (1, ("--tile-cnt", 17)),
    "deadlock": (1, ("--barrier-all", "mix")),
    "vacuous": (3, ("--ranks", 1)),
    "two launches": (
        1,
        ("--launches", 2, "--clear-flags", "--cores", 4, "--matmul-objects", 1, "--tile-cnt", 1),
    ),
    "a fault put in": (1, ("--fault", "quiet-timeout", "--strict-ids", "--ranks", 2, "--tile-cnt", 1)),
    "no tiles": (1, ("--tile-cnt", 0)),
    "too large": (3, ("--tile-cnt", 10**6)),
    "warnings": (0, ("--tile-cnt", 16)),
    "Python": (1, ("protocols.py:unsafe_exchange", "--ranks", 2)),
    "unsupported": (3, ("protocols.py:fenced", "--ranks", 2)),
    "several": (1, ("protocols.py:hand_over", "protocols.py:missing_set", "--ranks", 2)),
}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads((files("mc2proof") / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("case", CASES)
def test_report_follows_the_schema(case: str, run: Callable, protocols: Path, validator: Any) -> None:
    code, arguments = CASES[case]
    finished = run("prove", *arguments, "--format", "json")
    assert (finished.returncode, finished.stderr) == (code, "")
    report = json.loads(finished.stdout)
    errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(report)]
    assert errors == []
    assert next(iter(report)) == "schema_version"


def test_schema_refuses_what_it_should(run: Callable, validator: Any) -> None:
    report = json.loads(run("prove", "--property", "layout", "--format", "json").stdout)
    assert validator.is_valid(report)
    row = report["results"][0]
    for change in (
        {"verdict": "MAYBE"},
        {"verdict": "VIOLATED"},  # without a finding
        {"verdict": "UNKNOWN"},  # without a reason
        {"engines": ["guess"]},
        {"extra": 1},
    ):
        assert not validator.is_valid(report | {"results": [row | change]}), change
    for name in report:
        assert not validator.is_valid({k: v for k, v in report.items() if k != name}), name


def test_schema_lists_every_field_in_order() -> None:
    from mc2proof.checker import report
    from mc2proof.checker.prove import ENGINES

    schema = json.loads((files("mc2proof") / "schema.json").read_text(encoding="utf-8"))
    defined = schema["$defs"]
    for struct, fields in (
        (report.Result, defined["result"]["properties"]),
        (report.Finding, defined["finding"]["properties"]),
        (report.Counterexample, defined["counterexample"]["properties"]),
        (report.Step, defined["step"]["properties"]),
        (report.AssumptionNote, schema["properties"]["assumptions"]["items"]["properties"]),
        (report.Tool, schema["properties"]["tool"]["properties"]),
        (report.RunSetup, schema["properties"]["setup"]["properties"]),
        (report.ProgramNote, schema["properties"]["program"]["properties"]),
    ):
        assert list(struct.__struct_fields__) == list(fields), struct
    assert sorted(report.Report.__struct_fields__) == sorted(schema["properties"])
    assert schema["properties"]["schema_version"]["const"] == report.SCHEMA_VERSION
    setup = schema["properties"]["setup"]
    assert setup["required"] == list(setup["properties"])
    assert setup["properties"]["barrier_all"]["enum"] == [*(b.value for b in BarrierAll), None]
    assert setup["properties"]["faults"]["items"]["enum"] == [fault.value for fault in Injected]
    result = defined["result"]["properties"]
    assert [v.value for v in report.Verdict] == result["verdict"]["enum"]
    assert set(ENGINES) - {"auto"} < set(result["engines"]["items"]["enum"])


def test_two_runs_differ_in_timing_only(run: Callable) -> None:
    first, second = (
        json.loads(run("prove", "--buffer-size", 3, "--format", "json").stdout) for _ in range(2)
    )
    del first["timing"], second["timing"]
    assert first == second


def test_list(run: Callable) -> None:
    finished = run("list", "--format", "json")
    assert (finished.returncode, finished.stderr) == (0, "")
    content = json.loads(finished.stdout)
    from mc2proof.checker.properties import PROPERTIES
    from mc2proof.protocol.profile import PROFILES

    assert [p["name"] for p in content["properties"]] == list(PROPERTIES)
    assert [p["name"] for p in content["profiles"]] == list(PROFILES)
    [builtin] = content["protocols"]
    assert builtin["name"] == "ring-all-to-all"
    assert builtin["parameters"]["tile_cnt"] == 8
