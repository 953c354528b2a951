"""The reference kernel and its variants for all ranks, tiles and depths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mc2proof
from mc2proof.checker.report import Report, Verdict

Make = Callable[[str], list[Path]]

FREE = ("ranks", "blocks", "tile_cnt", "buffer_size")
DOMAIN = ("blocks >= ranks", "tile_cnt >= 1", "ranks >= 2")
POWER = "buffer_size power of 2"
BY_CONDITION = {"flag-range", "layout"}


def for_all(
    headers: list[Path], *assume: str, free: tuple[str, ...] = FREE, properties: tuple[str, ...] = ()
) -> Report:
    protocols = mc2proof.load(*map(str, headers))
    return mc2proof.prove(
        protocols, for_all=free, assume=(*DOMAIN, *assume), barrier_all="vec", properties=properties
    )


def verdicts(report: Report) -> dict[str, str]:
    return {row.property: row.verdict.value for row in report.results}


def conditions(report: Report) -> dict[str, str | None]:
    return {row.property: row.holds_when for row in report.results if row.holds_when is not None}


def test_the_reference_under_its_conditions(reference: list[Path]) -> None:
    report = for_all(reference, POWER)
    assert {name for name, verdict in verdicts(report).items() if verdict != "PROVED"} == BY_CONDITION
    found = conditions(report)
    assert found["flag-range"] == "tile_cnt <= min(16, buffer_size + 14)"
    assert verdicts(
        for_all(reference, POWER, *found["flag-range"].split(" and "), properties=("flag-range",))
    ) == {"flag-range": "PROVED"}
    assert verdicts(for_all(reference, POWER, *found["layout"].split(" and "), properties=("layout",))) == {
        "layout": "PROVED"
    }


def test_a_flag_for_each_slot(variant: Make) -> None:
    """Variant 10: any number of tiles, at depths of at most 8."""
    report = for_all(variant("10"), POWER, "buffer_size <= 8")
    failed = {name: verdict for name, verdict in verdicts(report).items() if verdict != "PROVED"}
    assert failed == {"layout": "VIOLATED"}


@pytest.mark.parametrize(("ranks", "tiles"), [(4, 1), (4, 8), (1024, 10**6)])
def test_at_values_large_and_small(ranks: int, tiles: int, variant: Make) -> None:
    """Variant 10 at depth 8: with up to 8 tiles its second wait is never there."""
    protocols = mc2proof.load(*map(str, variant("10")))
    values = {"ranks": ranks, "tile_cnt": tiles, "buffer_size": 8}
    report = mc2proof.prove(protocols, **values, engine="parametric", barrier_all="vec")
    failed = {name for name, verdict in verdicts(report).items() if verdict != "PROVED"}
    assert failed == ({"layout"} if tiles == 10**6 else set())
    if failed:
        (row,) = (row for row in report.results if row.property == "layout")
        assert (row.verdict, row.scope) == (Verdict.VIOLATED, "instance")
        messages = [finding.message for finding in row.findings]
        assert any("leaves heap: 7516192768 bytes beyond its 1073741824" in text for text in messages)


@pytest.mark.long
def test_any_number_of_launches(variant: Make) -> None:
    """Variant 12 closes each launch."""
    report = for_all(variant("12"), POWER, "tile_cnt <= 16", free=(*FREE, "launches"))
    assert {name for name, verdict in verdicts(report).items() if verdict != "PROVED"} == BY_CONDITION
    assert conditions(report)["flag-range"] == "tile_cnt <= buffer_size + 14"


def test_no_launch_of_the_reference_may_follow_another(reference: list[Path]) -> None:
    report = for_all(reference, POWER, free=(*FREE, "launches"), properties=("relaunch",))
    assert verdicts(report) == {"relaunch": "VIOLATED"}


@pytest.mark.parametrize(
    ("number", "name"),
    [
        ("01", "no-overwrite-before-read"),
        ("02", "no-overwrite-before-read"),
        ("03", "no-overwrite-before-read"),
        ("03", "flag-balance"),
        ("04", "no-read-before-write"),
        ("04", "no-write-conflict"),
        ("04", "completion"),
        ("05", "flag-balance"),
        ("06", "deadlock-freedom"),
        ("07", "no-read-before-write"),
        ("08", "no-read-before-write"),
        ("08", "coverage"),
        ("09", "no-overwrite-before-read"),
        ("11", "flag-range"),
        ("11", "no-overwrite-before-read"),
    ],
)
def test_faulty_variants_fail_on_what_they_name(number: str, name: str, variant: Make) -> None:
    (row,) = for_all(variant(number), POWER, properties=(name,)).results
    assert row.verdict is Verdict.VIOLATED
    assert any(finding.counterexample for finding in row.findings)


def test_a_mask_is_no_ring(reference: list[Path]) -> None:
    report = for_all(reference, properties=("no-overwrite-before-read",))
    (row,) = report.results
    assert row.verdict is Verdict.VIOLATED
    shown = row.findings[0].counterexample
    assert shown is not None
    assert shown.parameters["buffer_size"] == 3
