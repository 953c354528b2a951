"""`minimize` on the reference kernel and its variants."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import mc2proof
from mc2proof.checker.minimize import Minimized

OW, RW = "no-overwrite-before-read", "no-read-before-write"
FREE, FB = "deadlock-freedom", "flag-balance"


def minimize(headers: list[Path], tiles: int) -> Minimized:
    names = [str(header) for header in headers]
    return mc2proof.minimize(names, ranks=4, buffer_size=4, tile_cnt=tiles, barrier_all="vec")


def test_everything_in_the_reference_is_needed(reference: list[Path]) -> None:
    answer = minimize(reference, 8)
    assert answer.verdict == "PROVED"
    assert {need.verdict for need in answer.needs} == {"needed"}
    assert [(s.role, s.statement.split()[0]) for s in answer.synchronisations] == [
        ("AIV", "wait"), ("AIV", "barrier"), ("AIV", "quiet"), ("AIV", "barrier"), ("AIV", "set"),
        ("AIC", "wait"), ("AIC", "set"),
    ]  # fmt: skip
    assert {tuple(n.numbers): {b.property for b in n.violates} for n in answer.needs} == {
        (0,): {OW, FB},
        (1,): {OW},
        (2,): {RW, "completion", "no-write-conflict"},
        (3,): {RW},
        (4,): {FREE, FB},
        (5,): {RW, FB},
        (6,): {FREE, FB},
        (4, 5): {RW},
        (0, 6): {OW},
        (1, 3): {OW, RW},
    }
    assert all(need.at == {} for need in answer.needs)


def test_a_doubled_barrier_is_named(reference: list[Path], tmp_path: Path) -> None:
    copies = []
    for header in reference:
        copies.append(tmp_path / header.name)
        shutil.copyfile(header, copies[-1])
        copies[-1].chmod(0o644)
    text = copies[1].read_text(encoding="utf-8")
    call = "allToAllComm_.BarrierAll();\n"
    assert text.count(call) == 1
    copies[1].write_text(text.replace(call, call + call), encoding="utf-8")
    line = text[: text.index(call)].count("\n") + 1
    answer = minimize(copies, 8)
    spare = [need.numbers for need in answer.needs if need.verdict == "not needed"]
    called = [answer.synchronisations[n].called_from for (n,) in spare]
    assert called == [f"{copies[1]}:{line}", f"{copies[1]}:{line + 1}"]
    assert [s.left_out for s in answer.safe_sets] == spare


MENDS = {
    "01": ("move", "barrier aclshmem_barrier_all to after wait for flag mLoopIdx - buffer_size on MTE3"),
    "02": ("insert", "barrier aclshmem_barrier_all after wait for flag mLoopIdx - buffer_size on MTE3"),
    "03": ("insert", "wait for flag mLoopIdx - buffer_size on MTE3 (mode 2) before barrier"),
    "04": ("insert", "quiet to rank block after put to rank block"),
    "07": ("move", "set flag mLoopIdx on MTE3 (mode 2) to after barrier aclshmem_barrier_all"),
}


@pytest.mark.parametrize("number", MENDS)
def test_a_variant_is_mended(number: str, variant: Callable[[str], list[Path]]) -> None:
    answer = minimize(variant(number), 9)
    assert answer.verdict == "VIOLATED"
    kind, text = MENDS[number]
    (change,) = answer.mends[0].changes
    assert change.kind == kind
    assert change.text.startswith(text)
    assert answer.mends[0].fails_at == []
