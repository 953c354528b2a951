"""Reports: verdicts and exit codes in their order of precedence, and the published JSON."""

import itertools
import json

import pytest

from mc2proof.checker.report import (
    AssumptionNote,
    Counterexample,
    Finding,
    ProgramNote,
    Report,
    Result,
    RunSetup,
    Severity,
    Step,
    Tool,
    Verdict,
)


def report(*verdicts: Verdict) -> Report:
    step = Step("core", "S", "sets flag 0", "f", 3)
    example = Counterexample({"ranks": 2}, 1, ["it breaks"], [step], "v2:x")
    finding = Finding("code", Severity.ERROR, "message", "f", 3, "doc", example)
    results = [
        Result(["s"], f"property-{n}", v, "instance", ["z3"], None, None, [finding])
        for n, v in enumerate(verdicts)
    ]
    return Report(
        Tool("0.1", None), ProgramNote("0" * 16, ["f"]), {"ranks": 2, "cnt": [1, 2]}, "ascend950",
        RunSetup(), [AssumptionNote("one-launch", "text")], results, {"z3": 0.5},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.PROVED, 0), (Verdict.VIOLATED, 1), (Verdict.UNKNOWN, 3), (Verdict.UNSUPPORTED, 3),
        (Verdict.VACUOUS, 3),
    ],
)  # fmt: skip
def test_exit_code_of_one_verdict(verdict: Verdict, code: int) -> None:
    assert report(verdict).exit_code() == code
    assert verdict.exit_code == code


def test_exit_code_of_several_verdicts() -> None:
    for some in itertools.product(Verdict, repeat=3):
        expected = 1 if Verdict.VIOLATED in some else 0 if set(some) == {Verdict.PROVED} else 3
        assert report(*some).exit_code() == expected, some


def test_verdicts_stand_in_their_order_of_precedence() -> None:
    assert [v.name for v in Verdict] == ["VIOLATED", "UNKNOWN", "UNSUPPORTED", "VACUOUS", "PROVED"]
    assert [v.value for v in Verdict] == [v.name for v in Verdict]


def test_the_json_has_the_published_keys_in_their_order() -> None:
    """design.md 7."""
    data = json.loads(report(Verdict.VIOLATED).to_json())
    assert list(data) == [
        "schema_version", "tool", "program", "parameters", "profile", "setup", "assumptions", "results",
        "timing",
    ]  # fmt: skip
    assert data["schema_version"] == 3
    assert list(data["tool"]) == ["version", "z3"]
    assert list(data["program"]) == ["digest", "files"]
    assert list(data["assumptions"][0])[:2] == ["code", "text"]
    (result,) = data["results"]
    assert list(result) == [
        "subjects", "property", "verdict", "scope", "engines", "holds_when", "reason", "findings",
        "certificate", "memory",
    ]  # fmt: skip
    (finding,) = result["findings"]
    assert list(finding) == ["code", "severity", "message", "file", "line", "source_doc", "counterexample"]
    assert list(finding["counterexample"]) == ["parameters", "launches", "conflict", "steps", "trace"]
    assert list(finding["counterexample"]["steps"][0]) == ["core", "pipe", "operation", "file", "line"]
    assert (result["verdict"], finding["severity"]) == ("VIOLATED", "error")
    assert data["parameters"] == {"ranks": 2, "cnt": [1, 2]}


def test_verdict_by_name() -> None:
    some = report(Verdict.PROVED, Verdict.UNKNOWN)
    assert some.verdict("property-1") is Verdict.UNKNOWN
    with pytest.raises(KeyError):
        some.verdict("property-2")
