"""Certificates of the reference kernel and of its safe variants: `audit` accepts them, for all values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mc2proof
from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import read

Make = Callable[[str], list[Path]]

DOMAIN = ("blocks >= ranks", "tile_cnt >= 1", "ranks >= 2", "buffer_size power of 2")
ORDER = {
    "deadlock-freedom", "no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion",
    "flag-balance", "flag-range", "barrier-match", "coverage",
}  # fmt: skip


def certified(headers: list[Path], where: Path, *assume: str) -> set[str]:
    """The properties that a valid certificate proves of all kernels of ``headers``."""
    protocols = mc2proof.load(*map(str, headers))
    free = ("ranks", "blocks", "tile_cnt", "buffer_size")
    file = where / "why.json"
    mc2proof.prove(
        protocols, for_all=free, assume=(*DOMAIN, *assume), barrier_all="vec", properties=sorted(ORDER),
        certificate=file,
    )  # fmt: skip
    (found,) = audit(read(file.read_bytes()), protocols)
    assert found.problems == []
    assert found.certificate.left_out == {}
    return set(found.needed)


def test_the_reference(reference: list[Path], tmp_path: Path) -> None:
    assert certified(reference, tmp_path, "tile_cnt <= min(16, buffer_size + 14)") == ORDER


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "assume"), [("10", "buffer_size <= 8"), ("13", "tile_cnt <= min(16, buffer_size + 14)")]
)
def test_variants(number: str, assume: str, variant: Make, tmp_path: Path) -> None:
    assert certified(variant(number), tmp_path, assume) == ORDER


@pytest.mark.long
def test_the_certificate_of_one_is_none_of_another(
    reference: list[Path], variant: Make, tmp_path: Path
) -> None:
    certified(reference, tmp_path, "tile_cnt <= 4")
    file = read((tmp_path / "why.json").read_bytes())
    for found in audit(file, mc2proof.load(*map(str, variant("01")))):
        assert found.problems


@pytest.mark.parametrize(
    ("free", "assume", "values"),
    [
        ((), (), {"ranks": 4, "tile_cnt": 8, "buffer_size": 8}),
        (("tile_cnt", "buffer_size"), ("1 <= tile_cnt <= buffer_size", "buffer_size <= 8"), {"ranks": 4}),
    ],
)
def test_waits_that_never_happen(
    free: tuple[str, ...], assume: tuple[str, ...], values: dict[str, int], variant: Make, tmp_path: Path
) -> None:
    """Variant 10 with a slot for every tile: nothing waits for a slot, and ranks grow all the same."""
    protocols = mc2proof.load(*map(str, variant("10")))
    file = tmp_path / "why.json"
    power = ("buffer_size power of 2",) if free else ()
    report = mc2proof.prove(
        protocols, for_all=free, assume=(*power, *assume), barrier_all="vec", engine="parametric",
        certificate=file, settings=values,
    )  # fmt: skip
    assert {row.verdict.value for row in report.results} == {"PROVED"}
    (found,) = audit(read(file.read_bytes()), protocols)
    assert found.problems == []
    assert found.certificate.left_out == {}
    assert {*found.needed} == {*ORDER, "layout"}


def test_what_needs_no_matches(variant: Make, tmp_path: Path) -> None:
    """Variant 06 waits for flags that nobody sets; bytes, barriers and writes are not touched by that."""
    protocols = mc2proof.load(*map(str, variant("06")))
    file = tmp_path / "why.json"
    names = {"no-write-conflict", "barrier-match"}
    mc2proof.prove(
        protocols, for_all=("ranks", "blocks", "tile_cnt", "buffer_size"), assume=DOMAIN, barrier_all="vec",
        properties=(*sorted(names), "no-read-before-write"), certificate=file,
    )  # fmt: skip
    (found,) = audit(read(file.read_bytes()), protocols)
    assert found.problems == []
    assert {*found.needed} == names


def test_a_wait_that_compiles_to_nothing(variant: Make, tmp_path: Path) -> None:
    """Variant 11 names a pipe that an AIV lacks: the other rows are decided without that wait."""
    protocols = mc2proof.load(*map(str, variant("11")))
    file = tmp_path / "why.json"
    names = {"deadlock-freedom", "no-read-before-write", "no-write-conflict", "completion", "coverage"}
    report = mc2proof.prove(
        protocols, for_all=("ranks", "blocks", "tile_cnt", "buffer_size"), assume=DOMAIN, barrier_all="vec",
        properties=(*sorted(names), "flag-range"), certificate=file,
    )  # fmt: skip
    found = {row.property: row.verdict.value for row in report.results}
    assert found == {**dict.fromkeys(names, "PROVED"), "flag-range": "VIOLATED"}
    (audited,) = audit(read(file.read_bytes()), protocols)
    assert audited.problems == []
    assert {*audited.needed} == names
