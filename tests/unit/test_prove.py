"""`prove_protocols`: the verdicts' rules, agreement of engines, assumptions, and determinism."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from mc2proof.checker import prove as module
from mc2proof.checker.analysis import Analysis
from mc2proof.checker.ask import Answers, EngineDisagreement, ask
from mc2proof.checker.properties import rows_for
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Report, Severity, Verdict
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.profile import ASCEND950, ATLAS_A2, BarrierAll, Hold
from mc2proof.protocol.program import Address, Fence, Origin, Pipe, Protocol, RegionKind, Role, Span
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits

Start = Callable[..., ProtocolBuilder]
RING = ring_all_to_all()
SMALL = {"ranks": 2, "buffer_size": 2, "tile_cnt": 3}
MEMORY = ("no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion")
SETUP = {f.name for f in fields(Setup)}
ROWS = tuple(rows_for(1))
DYNAMIC = ("deadlock-freedom", *MEMORY)


def prove(protocol: Protocol = RING, values: Mapping[str, Any] = SMALL, **options: Any) -> Report:
    setup = Setup(**{n: options.pop(n) for n in SETUP & options.keys()})
    return prove_protocols([protocol], values, setup, **options)


def verdicts(report: Report, *names: str) -> list[str]:
    return [report.verdict(name).name for name in names or ROWS]


def codes(report: Report, name: str) -> list[str]:
    return [f.code for r in report.results if r.property == name for f in r.findings]


# --- verdicts ---------------------------------------------------------------------------------


def test_the_built_in_protocol_is_proved() -> None:
    report = prove()
    assert verdicts(report) == ["PROVED"] * 10
    assert [r.property for r in report.results] == list(ROWS)
    assert report.exit_code() == 0
    assert all(r.engines for r in report.results)
    assert {tuple(r.engines) for r in report.results if r.property in DYNAMIC} == {("happens-before", "z3")}


@pytest.mark.parametrize("engine", ["happens-before", "z3", "explore"])
def test_one_engine_alone_answers(engine: str) -> None:
    report = prove(values={"ranks": 2, "blocks": 1, "buffer_size": 1, "tile_cnt": 2}, engine=engine)
    assert verdicts(report, "deadlock-freedom", "no-overwrite-before-read") == ["PROVED"] * 2
    assert {tuple(r.engines) for r in report.results if r.property in DYNAMIC} == {(engine,)}
    assert (report.tool.z3 is None) is (engine != "z3")


def test_a_cross_check_asks_all_three() -> None:
    report = prove(values={"ranks": 2, "blocks": 1, "buffer_size": 1, "tile_cnt": 2}, cross_check=True)
    row = next(r for r in report.results if r.property == "deadlock-freedom")
    assert row.engines == ["happens-before", "z3", "explore"]


def test_no_tiles_leave_only_the_first_request() -> None:
    report = prove(values=SMALL | {"tile_cnt": 0})
    assert codes(report, "completion") == ["not-complete-at-end"]
    assert verdicts(report, "completion") == ["VIOLATED"]
    silent = ("deadlock-freedom", "no-read-before-write", "no-overwrite-before-read", "no-write-conflict",
              "flag-balance", "flag-range", "barrier-match", "coverage")  # fmt: skip
    assert verdicts(report, *silent) == ["VACUOUS"] * len(silent)
    assert report.exit_code() == 1


def test_one_rank_has_no_remote_writes() -> None:
    report = prove(values=SMALL | {"ranks": 1})
    assert verdicts(report, *MEMORY) == ["VACUOUS"] * 4
    assert {r.reason for r in report.results if r.property in MEMORY} == {
        "no remote writes", "no requests are posted"
    }  # fmt: skip
    assert verdicts(report, "deadlock-freedom", "flag-balance", "coverage", "layout") == ["PROVED"] * 4
    assert report.exit_code() == 3


def test_rows_of_the_end_are_vacuous_where_no_run_ends(start: Start) -> None:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 8), p.region("a", RegionKind.INPUT, 8)
    aiv = p.role(Role.AIV)
    aiv.put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    aiv.wait_flag(Pipe.MTE3, 0)
    origin = Origin(1 - p.rank, Address(a, as_expr(0)))
    aiv.read(Pipe.MTE2, window(Address(heap, as_expr(0)), 8, origin=origin))
    report = prove(p.build(), {"ranks": 2, "blocks": 1})
    assert verdicts(report, "deadlock-freedom", "completion", "coverage") == [
        "VIOLATED",
        "VACUOUS",
        "VACUOUS",
    ]
    assert {r.reason for r in report.results if r.verdict is Verdict.VACUOUS} >= {"no run completes"}
    assert verdicts(report, "flag-balance", "no-read-before-write") == ["VIOLATED", "VIOLATED"]


def test_nothing_that_waits_cannot_hang(start: Start) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    row = next(r for r in prove(p.build(), {"ranks": 1}).results if r.property == "deadlock-freedom")
    assert (row.verdict, row.reason) == (Verdict.VACUOUS, "nothing ever waits")


def test_a_local_fifo_that_is_checked_is_proved(start: Start) -> None:
    p = start()
    fifo, work = p.region("fifo", RegionKind.PRIVATE, 8), p.region("work", RegionKind.INPUT, 8)
    origin = Origin(p.rank, Address(work, as_expr(0)))
    p.role(Role.AIC).write(Pipe.FIX, window(Address(fifo, as_expr(0)), 8, origin=origin))
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    p.role(Role.AIV).wait_flag(Pipe.MTE2, 0)
    p.role(Role.AIV).read(Pipe.MTE2, window(Address(fifo, as_expr(0)), 8, origin=origin))
    assert verdicts(prove(p.build(), {"ranks": 1}), "no-read-before-write") == ["PROVED"]


def test_a_reader_that_needs_nothing_proves_nothing(start: Start) -> None:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 8), p.region("a", RegionKind.INPUT, 8)
    aiv = p.role(Role.AIV)
    aiv.put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    aiv.read(Pipe.MTE2, window(Address(heap, as_expr(0)), 8))
    aiv.quiet(1 - p.rank)
    report = prove(p.build(), {"ranks": 2, "blocks": 1})
    assert verdicts(report, "no-read-before-write") != ["PROVED"]


def test_sets_towards_a_core_without_a_program_are_seen(start: Start) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", 16):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 16)
    assert verdicts(prove(p.build(), {"ranks": 1}), "flag-range") == ["VIOLATED"]


def test_warnings_do_not_violate(start: Start) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 14)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 14)
    report = prove(p.build(), {"ranks": 1})
    assert verdicts(report, "flag-range") == ["PROVED"]
    assert [f.severity for r in report.results if r.property == "flag-range" for f in r.findings] == [
        Severity.WARNING
    ] * 2
    assert verdicts(prove(p.build(), {"ranks": 1}, strict_ids=True), "flag-range") == ["VIOLATED"]


# --- undecided --------------------------------------------------------------------------------


def test_proved_needs_z3_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Z3 gives up, happens-before alone violates but does not prove."""
    real = ask

    def limited(name: str, *arguments: Any, **options: Any) -> Answers:
        if name == "z3":
            return Answers("z3", declined="z3: out of resources (raise --rlimit)")
        return real(name, *arguments, **options)

    monkeypatch.setattr(module, "ask", limited)
    report = prove()
    assert verdicts(report, *DYNAMIC) == ["UNKNOWN"] * 5
    assert {r.reason for r in report.results if r.verdict is Verdict.UNKNOWN} == {
        "z3: z3: out of resources (raise --rlimit)"
    }
    assert report.exit_code() == 3
    assert verdicts(report, "flag-balance", "layout") == ["PROVED", "PROVED"]
    broken = prove(values=SMALL | {"buffer_size": 3, "tile_cnt": 5})
    assert verdicts(broken, "no-overwrite-before-read") == ["VIOLATED"]
    assert verdicts(prove(engine="happens-before"), "deadlock-freedom") == ["PROVED"]


def test_a_resource_limit_gives_unknown() -> None:
    report = prove(values=SMALL | {"tile_cnt": 8}, limits=Limits(rlimit=1), engine="z3")
    unknown = [r for r in report.results if r.verdict is Verdict.UNKNOWN]
    assert {r.property for r in unknown} >= {"deadlock-freedom"} or verdicts(report) == ["PROVED"] * 10
    assert all("rlimit" in (r.reason or "") for r in unknown)


def test_an_engine_that_declines_gives_unknown_with_its_reason(start: Start) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIV).set_flag(Pipe.V, 0)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    report = prove(p.build(), {"ranks": 1}, engine="happens-before")
    row = next(r for r in report.results if r.property == "deadlock-freedom")
    assert row.verdict is Verdict.UNKNOWN
    assert "set or awaited on several pipes" in (row.reason or "")
    assert verdicts(prove(p.build(), {"ranks": 1}), "deadlock-freedom") == ["PROVED"]


def test_a_size_beyond_the_limit_is_unknown_and_says_so() -> None:
    report = prove(values={"ranks": 4, "tile_cnt": 10**6})
    assert verdicts(report) == ["UNKNOWN"] * 10
    assert all("max-events = 1000000" in (r.reason or "") for r in report.results)
    assert report.exit_code() == 3


def test_what_is_not_decided_is_unsupported_with_its_place(start: Start) -> None:
    p = start()
    p.role(Role.AIV).add(Fence(as_expr(1), Span("kernel.h", 212)))
    report = prove(p.build(), {"ranks": 2})
    assert verdicts(report) == ["UNSUPPORTED"] * 10
    assert {r.reason for r in report.results} == {"kernel.h:212: unsupported: Fence"}
    assert report.exit_code() == 3


# --- choosing ---------------------------------------------------------------------------------


def test_properties_are_reported_in_their_order() -> None:
    report = prove(properties=["layout", "deadlock-freedom"])
    assert [r.property for r in report.results] == ["deadlock-freedom", "layout"]
    assert prove(properties=["layout"]).tool.z3 is None


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises((ParameterError, ValueError, KeyError)):
        prove(properties=["deadlock_freedom"])


@pytest.mark.parametrize("engine", ["spin", "HB"])
def test_an_unknown_engine_is_refused(engine: str) -> None:
    with pytest.raises((ParameterError, ValueError), match=engine):
        prove(engine=engine)


def test_equal_programs_are_decided_once() -> None:
    twin = replace(RING, name="twin", subjects=("twin",))
    report = prove_protocols([RING, twin], SMALL)
    assert len(report.results) == 10
    assert report.results[0].subjects == ["ring-all-to-all", "twin"]


def test_different_programs_have_rows_of_their_own(start: Start) -> None:
    p = start("other")
    p.role(Role.AIV).barrier()
    report = prove_protocols([RING, p.build()], {"ranks": 2}, properties=["barrier-match"])
    assert [r.subjects for r in report.results] == [["ring-all-to-all"], ["other"]]


def test_parameters_of_every_program_are_checked_first(start: Start) -> None:
    p = start("other")
    p.parameter("depth")
    with pytest.raises(ParameterError, match="depth"):
        prove_protocols([RING, p.build()], {"ranks": 2})


# --- agreement --------------------------------------------------------------------------------


def test_an_engine_that_lies_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = ask
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def lying(name: str, analysis: Analysis, *arguments: Any, **options: Any) -> Answers:
        answers = real(name, analysis, *arguments, **options)
        if name == "z3":
            answers.violated = [*answers.violated, analysis.of("no-overwrite-before-read")[0]]
        return answers

    monkeypatch.setattr(module, "ask", lying)
    with pytest.raises(EngineDisagreement, match="happens-before and z3 disagree on no-overwrite") as caught:
        prove(values=SMALL | {"tile_cnt": 5})
    assert caught.value.path is not None
    content = json.loads(Path(caught.value.path).read_text(encoding="utf-8"))
    assert content["program"] == RING.digest()
    assert content["parameters"]["tile_cnt"] == 5
    assert content["happens-before"]["violated"] != content["z3"]["violated"]


# --- assumptions ------------------------------------------------------------------------------


def notes(report: Report) -> dict[str, str]:
    return {a.code: a.text for a in report.assumptions}


def test_the_default_reading_of_barriers_is_a_warning() -> None:
    (note,) = [a for a in prove().assumptions if a.code == "barrier-all"]
    assert note.warning
    assert "vec" in note.text
    assert "by default" in note.text
    (note,) = [a for a in prove(barrier_all=BarrierAll.SOFT).assumptions if a.code == "barrier-all"]
    assert not note.warning
    assert "soft" in note.text


def test_what_every_verdict_rests_on() -> None:
    always = {"barrier-all", "flags-cleared", "contract", "every-block-has-output"}
    assert always | {"one-launch", "blocks-resident"} == set(notes(prove()))
    assert always | {"launches", "blocks-resident"} == set(notes(prove(launches=2, flags_cleared=True)))
    assert "flags-carried" in notes(prove(launches=2))
    cores = replace(ASCEND950, cores=8)
    assert "blocks-resident" not in notes(prove(profile=cores))
    assert "puts-emulated" in notes(prove(profile=ATLAS_A2))


def test_a_flag_that_meets_the_barrier_s_is_an_assumption_of_the_rest(start: Start) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIC).set_flag(Pipe.FIX, 14)
    p.role(Role.AIV).wait_flag(Pipe.MTE3, 14)
    report = prove(p.build(), {"ranks": 1})
    assert verdicts(report, "flag-range") == ["VIOLATED"]
    assert "barrier-undisturbed" in notes(report)
    assert "barrier-undisturbed" not in notes(prove())


# --- readings and profiles --------------------------------------------------------------------


def test_a_soft_barrier_does_not_drain_and_a_wait_that_holds_the_core_helps() -> None:
    values = SMALL | {"tile_cnt": 5}
    assert verdicts(prove(values=values, barrier_all=BarrierAll.SOFT), "no-overwrite-before-read") == [
        "VIOLATED"
    ]
    whole = replace(ASCEND950, name="whole", wait_holds=Hold.CORE)
    report = prove(values=values, barrier_all=BarrierAll.SOFT, profile=whole)
    assert verdicts(report, "no-overwrite-before-read") == ["PROVED"]


def test_under_mix_the_cubes_never_come() -> None:
    report = prove(barrier_all=BarrierAll.MIX)
    assert verdicts(report, "deadlock-freedom", "barrier-match") == ["VIOLATED", "VIOLATED"]


# --- determinism ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [SMALL, SMALL | {"buffer_size": 3, "tile_cnt": 5}, SMALL | {"tile_cnt": 0}]
)
def test_the_same_report_twice(values: dict[str, int]) -> None:
    first, second = prove(values=values), prove(values=values)
    assert _without_times(first) == _without_times(second)
    assert list(first.timing) == list(second.timing)


def _without_times(report: Report) -> str:
    data = json.loads(report.to_json())
    del data["timing"]
    return json.dumps(data)


def test_progress_is_told() -> None:
    said: list[str] = []
    prove(progress=said.append)
    assert said == ["unrolling ring-all-to-all", "asking happens-before", "asking z3", "writing the report"]
