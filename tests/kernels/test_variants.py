"""Each variant of the reference kernel is VIOLATED on exactly what its head lines name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import mc2proof
from mc2proof.checker.report import Counterexample, Report, Verdict
from mc2proof.protocol.replay import replay

Make = Callable[[str], list[Path]]

RW, OW, WC = "no-read-before-write", "no-overwrite-before-read", "no-write-conflict"
FREE, FB, FR = "deadlock-freedom", "flag-balance", "flag-range"


@dataclass(frozen=True)
class Case:
    """A variant (00: unpatched) at parameters, and what must be VIOLATED; vacuous rows by name."""

    variant: str
    violated: set[str]
    options: dict[str, object] = field(default_factory=dict)
    vacuous: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        given = ",".join(f"{k}={v}" for k, v in self.options.items())
        return f"{self.variant}[{given}]"


CASES = [
    Case("01", {OW}),
    Case("02", {OW}),
    Case("03", {OW, FB}),
    Case("04", {RW, "completion", WC}),
    Case("04", {RW, "completion"}, {"tile_cnt": 4}),
    Case("05", {FB}),
    Case("06", {FREE, FB}, {}, {"completion", "coverage"}),
    Case("07", {RW}),
    Case("08", {RW, "coverage", WC}),
    Case("08", {RW, "coverage"}, {"ranks": 2}),
    Case("09", {OW}),
    Case("10", set()),
    Case("10", set(), {"tile_cnt": 40}),
    Case("10", {FR}, {"tile_cnt": 31, "buffer_size": 16}),
    Case("11", {FR, OW, FB}),
    Case("12", set()),
    Case("13", set()),
    Case("13", set(), {"barrier_all": "mix"}),
    Case("13", {OW}, {"barrier_all": "soft"}),
    Case("00", set()),
    Case("00", {FREE, "barrier-match"}, {"barrier_all": "mix"}, {"completion", "coverage"}),
    Case("00", {OW}, {"barrier_all": "soft"}),
]


def prove(headers: list[Path], options: dict[str, object]) -> Report:
    values: dict[str, object] = {"ranks": 4, "buffer_size": 4, "tile_cnt": 9, "barrier_all": "vec"}
    return mc2proof.prove([str(h) for h in headers], **(values | options))  # type: ignore[arg-type]


def names(report: Report, verdict: Verdict) -> set[str]:
    return {r.property for r in report.results if r.verdict is verdict}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_variant(case: Case, variant: Make, reference: list[Path]) -> None:
    headers = reference if case.variant == "00" else variant(case.variant)
    report = prove(headers, case.options)
    assert names(report, Verdict.VIOLATED) == case.violated
    assert names(report, Verdict.VACUOUS) == case.vacuous
    assert len(names(report, Verdict.PROVED)) == 10 - len(case.violated) - len(case.vacuous)
    assert report.exit_code() == (1 if case.violated else 0)


@pytest.mark.parametrize(
    ("launches", "tiles"), [(2, 9), (2, 5), (2, 1), (3, 4)], ids=["2x9", "2x5", "2x1", "3x4"]
)
def test_a_second_launch_of_the_unpatched_kernel(reference: list[Path], launches: int, tiles: int) -> None:
    report = prove(reference, {"launches": launches, "tile_cnt": tiles})
    assert names(report, Verdict.VIOLATED) == {"relaunch"}
    assert len(names(report, Verdict.PROVED)) == 10
    (result,) = (r for r in report.results if r.verdict is Verdict.VIOLATED)
    protocols = mc2proof.load(*map(str, reference))
    for finding in result.findings:
        assert finding.code == "relaunch-overwrite"
        shown = finding.counterexample
        assert shown is not None
        assert shown.trace is not None
        assert replay(shown.trace, protocols).reproduced
        check_conflict(shown, reference)


def check_conflict(shown: Counterexample, headers: list[Path]) -> None:
    """Launch 2 of a fast rank writes slot 0 or the scale that a reader of launch 1 still needs."""
    writer, reader, *_ = shown.conflict
    written = re.search(r"^rank (\d+) AIV block \d+, launch 2 puts .* into heap\[(\d+)\.\.", writer)
    assert written is not None, writer
    read = re.search(r"^while rank (\d+) AIC block \d+, launch 1 may still read", reader)
    assert read is not None, reader
    assert written[1] != read[1]
    values = shown.parameters
    slot = 1
    for name in ("ranks", "m", "k"):
        value = values[name]
        assert isinstance(value, int)
        slot *= value
    depth = values["buffer_size"]
    assert isinstance(depth, int)
    offset = int(written[2])
    assert offset < slot or offset >= depth * slot, "neither slot 0 nor the scale"
    for step in shown.steps:
        between = step.operation == "end launch 1, launch 2 begins"  # stands in no source
        assert between or Path(step.file).name in {h.name for h in headers}


@pytest.mark.parametrize("tiles", [1, 9, 16])
@pytest.mark.parametrize("launches", [2, 3])
def test_a_closed_launch_may_be_repeated(variant: Make, launches: int, tiles: int) -> None:
    report = prove(variant("12"), {"launches": launches, "tile_cnt": tiles})
    assert {r.verdict for r in report.results} == {Verdict.PROVED}
    assert "relaunch" in names(report, Verdict.PROVED)
    assert report.exit_code() == 0


USUAL = [case for case in CASES if case.variant not in ("00", "12") and not case.options]


@pytest.mark.parametrize("case", USUAL, ids=str)
def test_a_second_launch_of_a_variant(case: Case, variant: Make) -> None:
    report = prove(variant(case.variant), {"launches": 2})
    # where no run of the first launch ends, there is no second
    again = set() if FREE in case.violated else {"relaunch"}
    assert names(report, Verdict.VIOLATED) == case.violated | again


def test_every_variant_has_a_case(kernels: Path) -> None:
    numbers = {p.name[:2] for p in (kernels / "variants").glob("*.patch")}
    assert numbers == {case.variant for case in CASES} - {"00"}


@pytest.mark.parametrize("number", ["01", "03", "04", "06", "07", "08", "09", "11"])
def test_counterexamples_point_into_the_kernel_and_replay(number: str, variant: Make) -> None:
    headers = variant(number)
    report = prove(headers, {})
    shown = [f.counterexample for r in report.results for f in r.findings if f.counterexample is not None]
    traces = [c for c in shown if c.trace is not None]
    assert traces
    protocols = mc2proof.load(*map(str, headers))
    for counterexample in traces:
        assert counterexample.trace is not None
        assert replay(counterexample.trace, protocols).reproduced
        for step in counterexample.steps:
            assert Path(step.file).name in {h.name for h in headers}
            assert step.line > 0
