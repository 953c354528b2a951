"""Counterexamples: as small as the fault allows, with sentences and lines a reader can act on."""

from collections.abc import Callable
from typing import Any

import pytest

from mc2proof.checker.counterexample import counterexample
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Counterexample, Finding
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import Pipe, Protocol, Role
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

Start = Callable[..., ProtocolBuilder]


def first_finding(protocol: Protocol, name: str, **values: Any) -> Finding:
    report = prove_protocols([protocol], values, properties=[name])
    (result,) = report.results
    return result.findings[0]


def first_example(protocol: Protocol, name: str, **values: Any) -> Counterexample:
    example = first_finding(protocol, name, **values).counterexample
    assert example is not None
    return example


def test_a_ring_that_is_no_ring_shrinks_to_two_ranks() -> None:
    example = first_example(ring_all_to_all(), "no-overwrite-before-read", ranks=4, buffer_size=3, tile_cnt=9)
    assert (example.parameters["ranks"], example.parameters["tile_cnt"]) == (2, 2)
    assert example.parameters["buffer_size"] == 3  # not a size: it is what makes the fault
    assert len(example.steps) <= 25
    assert "while rank" in example.conflict[1]
    assert "may still read" in example.conflict[1]
    assert example.conflict[2].startswith("because it goes to heap + ")
    assert "& (buffer_size - 1)" in example.conflict[2]


def test_blocks_shrink_with_ranks() -> None:
    example = first_example(
        ring_all_to_all(), "no-read-before-write", ranks=4, blocks=2, buffer_size=4, tile_cnt=4
    )
    assert [example.parameters[n] for n in ("ranks", "blocks", "tile_cnt")] == [2, 1, 1]
    assert example.steps[-1].operation.startswith("begins reading heap")
    assert any("nobody ever writes it there" in line for line in example.conflict)


def stuck(start: Start) -> Protocol:
    p = start()
    n = p.parameter("n", low=1)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("i", n) as i, aiv.when(i.ne(2)):
        aiv.set_flag(Pipe.MTE3, i)
    with aic.loop("i", n) as i:
        aic.wait_flag(Pipe.MTE2, i)
    return p.build()


def test_a_deadlock_shows_who_waits_for_what(start: Start) -> None:
    example = first_example(stuck(start), "deadlock-freedom", ranks=3, n=8)
    assert example.parameters == {"ranks": 1, "blocks": 1, "n": 3}
    (line,) = example.conflict
    assert line.startswith("AIC of rank 0 waits for flag 2 for ever  (")
    assert ".py:" in line


@pytest.mark.parametrize("n", [15, 20])
def test_a_counter_that_passes_its_cap_is_shown_at_the_sixteenth_set(start: Start, n: int) -> None:
    p = start()
    count = p.parameter("n", low=1)
    with p.role(Role.AIV).loop("i", count):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    with p.role(Role.AIC).loop("i", count):
        p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    report = prove_protocols([p.build()], {"ranks": 1, "n": n}, properties=["flag-range"])
    findings = report.results[0].findings
    assert [f.code for f in findings] == (["counter-cap"] if n == 20 else [])
    if findings:
        example = findings[0].counterexample
        assert example is not None
        assert example.parameters["n"] == 16
        assert [s.operation for s in example.steps] == ["sets flag 0"] * 16
        assert example.trace is not None
        assert replay(example.trace, [p.build()]).reproduced


def test_a_counted_fault_has_the_smallest_parameters_and_no_timing(start: Start) -> None:
    example = first_example(stuck(start), "flag-balance", ranks=4, n=9)
    assert example.parameters == {"ranks": 1, "blocks": 1, "n": 3}
    assert (example.steps, example.trace) == ([], None)


def test_the_finding_points_at_the_statement(start: Start) -> None:
    protocol = stuck(start)
    finding = first_finding(protocol, "deadlock-freedom", ranks=1, n=3)
    loop = protocol.programs[Role.AIC][0]
    assert finding.file.endswith("test_counterexample.py")
    assert finding.line == loop.span.line + 1
    assert finding.source_doc


def test_a_backlog_without_a_fixed_matching_has_a_place(start: Start) -> None:
    p = start()
    p.role(Role.AIC).pipe_barrier()
    with p.role(Role.AIV).loop("i", 8):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
        p.role(Role.AIV).set_flag(Pipe.V, 0)
    finding = first_finding(p.build(), "flag-range", ranks=1)
    assert finding.code == "counter-cap"
    assert finding.line > 0


def test_a_deadlock_that_the_explorer_finds_has_a_place(start: Start) -> None:
    report = prove_protocols(
        [stuck(start)],
        {"ranks": 1, "n": 3},
        properties=["deadlock-freedom"],
        engine="explore",
    )
    (finding,) = report.results[0].findings
    assert finding.line > 0


@pytest.mark.parametrize(
    ("depth", "reading", "named"), [(3, BarrierAll.VEC, True), (4, BarrierAll.SOFT, False)]
)
def test_a_mask_is_blamed_only_where_it_is_no_ring(depth: int, reading: BarrierAll, named: bool) -> None:
    values = {"ranks": 2, "buffer_size": depth, "tile_cnt": 5}
    instance = unroll(ring_all_to_all(), values, Setup(barrier_all=reading))
    shown = counterexample(instance, "no-overwrite-before-read", "overwrite")
    assert shown is not None
    assert any("no power of two" in line for line in shown.conflict) == named


def test_tiles_that_a_given_number_of_rows_depends_on_are_not_shrunk() -> None:
    """With the rows of a shape, no tiles at all would drop rows as well, and say nothing."""
    values = {"ranks": 4, "tile_cnt": 2, "buffer_size": 2, "m": 2, "rows": 5}
    report = prove_protocols([ring_all_to_all()], values, properties=["coverage"])
    shown = [f.counterexample for f in report.results[0].findings if f.counterexample is not None]
    assert shown
    assert {(example.parameters["tile_cnt"], example.parameters["rows"]) for example in shown} == {(2, 5)}
    assert min(example.parameters["ranks"] for example in shown) == 1
