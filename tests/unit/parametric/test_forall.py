"""`prove_for_all` on the built-in protocol and on small ones."""

from __future__ import annotations

import pytest

from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.report import Range, Report, Verdict
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.expr import Const, cast
from mc2proof.protocol.program import Address, Pipe, Protocol, RegionKind, Role

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


# --- values too large to unroll ---------------------------------------------------------------


def huge(**values: int) -> Report:
    """The built-in protocol at values that are all given."""
    given = {"ranks": 2, "buffer_size": 2, "tile_cnt": 2, **values}
    return prove_for_all([ring_all_to_all()], given, (), properties=["flag-range", "layout"])


def told(report: Report) -> dict[str, str]:
    """The first message of every code that is found."""
    return {f.code: f.message for row in reversed(report.results) for f in reversed(row.findings)}


def test_bytes_beyond_the_heap() -> None:
    report = huge(buffer_size=1 << 20)
    assert verdicts(report) == {"flag-range": "PROVED", "layout": "VIOLATED"}
    found = told(report)
    assert found.keys() == {"out-of-bounds"}
    # a slot has two tiles of 1 MiB, and the scales of 2 ranks and 2 tiles of 32 KiB stand behind the ring
    beyond = (1 << 20) * 2 * (1 << 20) + 4 * 32768 - (1 << 30)
    assert f"{beyond} bytes beyond its 1073741824 bytes" in found["out-of-bounds"]


def test_ids_beyond_the_last() -> None:
    report = huge(tile_cnt=1_000_000)
    assert verdicts(report) == {"flag-range": "VIOLATED", "layout": "VIOLATED"}
    found = told(report)
    assert found["id-out-of-range"].startswith("id 16 is outside 0-15: the hardware keeps the low 4 bits")
    assert found["put-too-large"] == (
        f"a put of {32768 * 1_000_000} bytes: at most 268435456 bytes a request"
    )


def test_a_size_that_wraps_around() -> None:
    p = ProtocolBuilder("narrow")
    p.parameter("ranks", low=2, default=2)
    p.parameter("blocks", low=1, default=1)
    count = p.parameter("count", low=1)
    heap, source = p.region("heap", RegionKind.SHARED, 64), p.region("source", RegionKind.INPUT)
    aiv = p.role(Role.AIV)
    size = cast(CType.I64, cast(CType.U32, count) * Const(1 << 20, CType.U32))
    aiv.put(1 - p.rank, Address(heap, Const(0)), Address(source, Const(0)), size)
    report = prove_for_all([p.build()], {"count": 1 << 12}, (), properties=["layout"])
    assert verdicts(report) == {"layout": "VIOLATED"}
    assert "wraps around: C computes 0, the exact value is 4294967296" in told(report)["wrap-around"]


@pytest.mark.parametrize("values", [{"tile_cnt": 3}, {"buffer_size": 64, "tile_cnt": 16}])
def test_what_is_within_its_limits(values: dict[str, int]) -> None:
    report = huge(**values)
    assert set(verdicts(report).values()) == {"PROVED"}
    assert {row.scope for row in report.results} == {"instance"}


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
