"""`prove_for_all` on the built-in protocol and on small ones."""

from __future__ import annotations

import pytest

from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.report import Range, Report, Verdict
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import Pipe, Protocol, Role

FREE = ("ranks", "tile_cnt", "buffer_size")
RING = ("buffer_size power of 2", "tile_cnt >= 1", "ranks >= 2")


def verdicts(report: Report) -> dict[str, str]:
    return {row.property: row.verdict.value for row in report.results}


def test_the_ring_for_all_values() -> None:
    report = prove_for_all([ring_all_to_all()], {}, FREE, RING)
    expected = dict.fromkeys(rows_for(1), "PROVED") | {"flag-range": "VIOLATED", "layout": "VIOLATED"}
    assert verdicts(report) == expected
    rows = {row.property: row for row in report.results}
    assert rows["flag-range"].holds_when == "tile_cnt <= min(16, buffer_size + 14)"
    assert rows["layout"].holds_when == (
        "1048576 * buffer_size * ranks + 32768 * ranks * tile_cnt <= 1073741824 and "
        "32768 * tile_cnt <= 268435456"
    )
    assert report.parameters["ranks"] == Range(1, None)
    assert report.parameters["rows"] == Range(0, None, "512 * tile_cnt")
    for row in rows.values():
        for finding in row.findings:
            shown = finding.counterexample
            if shown is not None:
                depth = shown.parameters["buffer_size"]
                assert isinstance(depth, int)
                assert depth & (depth - 1) == 0, "the counterexample lies in the domain"


def test_conditions_that_are_assumed_prove_it() -> None:
    report = prove_for_all(
        [ring_all_to_all()], {"ranks": 4}, ("tile_cnt", "buffer_size"),
        ("buffer_size power of 2", "1 <= tile_cnt <= min(16, buffer_size + 14)", "buffer_size <= 64"),
    )  # fmt: skip
    assert set(verdicts(report).values()) == {"PROVED"}
    assert all(row.holds_when is None for row in report.results)


def test_a_mask_is_no_ring_for_every_depth() -> None:
    report = prove_for_all([ring_all_to_all()], {}, FREE, RING[1:], properties=["no-overwrite-before-read"])
    (row,) = report.results
    assert row.verdict is Verdict.VIOLATED
    shown = row.findings[0].counterexample
    assert shown is not None
    assert shown.parameters["buffer_size"] == 3


def test_impossible_assumptions_are_refused() -> None:
    with pytest.raises(ParameterError, match="no value"):
        prove_for_all([ring_all_to_all()], {}, FREE, ("tile_cnt < 3", "tile_cnt > 3"))


def test_launches_of_the_ring_meet() -> None:
    report = prove_for_all(
        [ring_all_to_all()], {}, (*FREE, "launches"), (*RING, "tile_cnt <= 4"), properties=["relaunch"]
    )
    (row,) = report.results
    assert row.verdict is Verdict.VIOLATED
    with pytest.raises(ParameterError, match="several launches"):
        prove_for_all([ring_all_to_all()], {}, FREE, properties=["relaunch"])


def handing(*, stride: int = 1, waits_ahead: int = 0, last_set: bool = True, ids: int = 8) -> Protocol:
    """An AIV that hands tiles to its AIC: set i, wait i."""
    p = ProtocolBuilder("handing")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1)
    tiles = p.parameter("tile_cnt", low=0, default=4)
    aiv = p.role(Role.AIV)
    with aiv.loop("tile", tiles * stride, step=stride) as tile:
        if last_set:
            aiv.set_flag(Pipe.MTE3, tile % ids)
        else:
            with aiv.when(tile < (tiles - 1) * stride):
                aiv.set_flag(Pipe.MTE3, tile % ids)
    aic = p.role(Role.AIC)
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.MTE2, (tile * stride + waits_ahead) % ids)
    return p.build()


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_loops_with_other_steps(stride: int) -> None:
    report = prove_for_all([handing(stride=stride)], {}, ("tile_cnt",), properties=["deadlock-freedom"])
    assert verdicts(report) == {"deadlock-freedom": "PROVED"}


@pytest.mark.parametrize("wrong", [{"waits_ahead": 1}, {"last_set": False}])
def test_waits_without_a_set_are_found(wrong: dict[str, int]) -> None:
    report = prove_for_all([handing(**wrong)], {}, ("tile_cnt",), properties=["deadlock-freedom"])
    assert verdicts(report) == {"deadlock-freedom": "VIOLATED"}


def test_a_backlog_without_bound_is_no_proof() -> None:
    report = prove_for_all([handing(ids=1)], {}, ("tile_cnt",), properties=["flag-range"])
    assert verdicts(report) == {"flag-range": "VIOLATED"}
