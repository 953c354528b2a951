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
