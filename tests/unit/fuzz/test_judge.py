"""The acceptance test: elements, and whole output folders, whose verdicts the reference's script gave too.

``FOLDERS`` was compared once with that script and torch 2.13: the same ranks pass, the same exit status.
"""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mc2proof.fuzz.acceptance import accepted, tolerance
from mc2proof.fuzz.judge import judge_rank, wrong_tiles

ROWS, N, RANKS = 6, 4, 2
Edit = Callable[[Path, np.ndarray], None]


def bf16(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)


def right() -> np.ndarray:
    """A result of ordinary values."""
    return bf16(*(np.arange(ROWS * N) - 7.5) * 3.25)


def value(found: float, golden: float) -> Edit:
    """One element of rank 1 is ``found`` where ``golden`` is expected."""

    def edit(folder: Path, result: np.ndarray) -> None:
        expected = result.copy()
        result[9], expected[9] = bf16(found)[0], bf16(golden)[0]
        result.tofile(folder / "1" / "npu_out.bin")
        expected.tofile(folder / "1" / "cpu_output.bin")

    return edit


def code(found: int, golden: int) -> Edit:
    """The same by codes."""

    def edit(folder: Path, result: np.ndarray) -> None:
        expected = result.copy()
        result[9], expected[9] = found, golden
        result.tofile(folder / "1" / "npu_out.bin")
        expected.tofile(folder / "1" / "cpu_output.bin")

    return edit


def content(file: str, data: Callable[[bytes], bytes]) -> Edit:
    """A file of rank 0 has other bytes."""

    def edit(folder: Path, result: np.ndarray) -> None:
        path = folder / "0" / file
        path.write_bytes(data(path.read_bytes()))

    return edit


def remove(*names: str) -> Edit:
    def edit(folder: Path, result: np.ndarray) -> None:
        for name in names:
            (folder / name).unlink()

    return edit


def as_folder(folder: Path, result: np.ndarray) -> None:
    (folder / "1" / "npu_out.bin").unlink()
    (folder / "1" / "npu_out.bin").mkdir()


def no_rank(folder: Path, result: np.ndarray) -> None:
    remove("1/npu_out.bin", "1/cpu_output.bin")(folder, result)
    (folder / "1").rmdir()


def exchanged(folder: Path, result: np.ndarray) -> None:
    (-result.view(ml_dtypes.bfloat16)).tofile(folder / "0" / "npu_out.bin")


INF, NAN = float("inf"), float("nan")
OUT, GOLDEN = "npu_out.bin", "cpu_output.bin"
FOLDERS: dict[str, tuple[Edit, tuple[bool, bool]]] = {  # what is done, which ranks pass
    "right": (lambda folder, result: None, (True, True)),
    "within the relative tolerance": (value(100.5, 100), (True, True)),
    "at the relative tolerance": (value(101, 100), (True, True)),
    "beyond the relative tolerance": (value(101.5, 100), (True, False)),
    "relative to the result, not to the golden": (value(99, 100), (True, True)),
    "below by more": (value(98.5, 100), (True, False)),
    "at the absolute tolerance": (value(0.01, 0), (True, True)),
    "beyond the absolute tolerance": (value(0.0103, 0), (True, False)),
    "below zero within": (value(-0.0099, 0), (True, True)),
    "the last code within the absolute tolerance": (code(0x3C26, 0), (True, True)),
    "the first code beyond it": (code(0x3C27, 0), (True, False)),
    "the sign of zero": (value(-0.0, 0.0), (True, True)),
    "the sign of a value": (value(-50, 50), (True, False)),
    "subnormal for zero": (code(0x0001, 0x0000), (True, True)),
    "neighbours of large magnitude": (code(0x7F00, 0x7F01), (True, True)),
    "largest for its neighbour but one": (code(0x7F7F, 0x7F7D), (True, True)),
    "largest for the third below it": (code(0x7F7F, 0x7F7C), (True, False)),
    "overflowing difference": (code(0x7F7F, 0xFF7F), (True, False)),
    "NaN for NaN": (value(NAN, NAN), (True, True)),
    "another NaN": (code(0xFFC1, 0x7FC0), (True, True)),
    "NaN for a number": (value(NAN, 1), (True, False)),
    "a number for NaN": (value(1, NAN), (True, False)),
    "infinity for infinity": (value(INF, INF), (True, True)),
    "the other infinity": (value(-INF, INF), (True, False)),
    "infinity for the largest": (code(0x7F80, 0x7F7F), (True, False)),
    "the largest for infinity": (code(0x7F7F, 0x7F80), (True, False)),
    "all of the other sign": (exchanged, (False, True)),
    "result too short": (content(OUT, lambda data: data[:-2]), (False, True)),
    "result too long": (content(OUT, lambda data: data + b"\0\0"), (False, True)),
    "a spare byte": (content(OUT, lambda data: data + b"\0"), (True, True)),
    "half a value missing": (content(OUT, lambda data: data[:-1]), (False, True)),
    "empty result": (content(OUT, lambda data: b""), (False, True)),
    "golden too short": (content(GOLDEN, lambda data: data[:8]), (False, True)),
    "golden in float32": (content(GOLDEN, lambda data: data * 2), (False, True)),
    "no result": (remove("0/npu_out.bin"), (False, True)),
    "no golden": (remove("1/cpu_output.bin"), (True, False)),
    "neither of any rank": (remove("0/npu_out.bin", "1/npu_out.bin"), (False, False)),
    "a folder in its place": (as_folder, (True, False)),
    "no folder of a rank": (no_rank, (True, False)),
}


def make_folder(folder: Path, edit: Edit) -> None:
    """An output folder with right results, edited."""
    for rank in range(RANKS):
        (folder / str(rank)).mkdir(parents=True)
        for file in (OUT, GOLDEN):
            right().tofile(folder / str(rank) / file)
    edit(folder, right())


@pytest.mark.parametrize("case", FOLDERS)
def test_folders_pass_as_with_the_reference(case: str, tmp_path: Path) -> None:
    edit, passing = FOLDERS[case]
    make_folder(tmp_path, edit)
    verdicts = [judge_rank(tmp_path, rank, ROWS, N, 2) for rank in range(RANKS)]
    assert tuple(verdict.passed for verdict in verdicts) == passing
    for verdict in verdicts:
        assert verdict.passed != bool(verdict.tiles or verdict.unreadable)


def test_why_a_file_cannot_be_compared(tmp_path: Path) -> None:
    make_folder(tmp_path, remove("0/npu_out.bin"))
    path = tmp_path / "0" / "npu_out.bin"
    assert judge_rank(tmp_path, 0, ROWS, N).unreadable == f"{path}: cannot be read: No such file or directory"
    right()[:-1].tofile(path)
    assert judge_rank(tmp_path, 0, ROWS, N).unreadable == f"{path}: holds 23 values, not 6 x 4 = 24"
    path.write_bytes(right().tobytes() + b"x")
    assert judge_rank(tmp_path, 0, ROWS, N).notes == (f"{path}: the last byte is half a value, and ignored",)


def test_where_the_errors_are() -> None:
    golden = right().reshape(ROWS, N)
    found = golden.copy()
    found[1, 2] = bf16(9)[0]
    found[4, 0], found[5, 1], found[5, 3] = bf16(0, NAN, 1e30)
    first, last = wrong_tiles(golden, found, 2)
    assert (first.tile, first.first_row, first.last_row, first.wrong, first.elements) == (0, 0, 1, 1, 8)
    assert (first.row, first.column, first.found, first.golden) == (1, 2, 9.0, -4.875)
    assert (last.tile, last.wrong, last.row, last.column) == (2, 3, 5, 1)
    assert np.isnan(last.found)
    (short,) = wrong_tiles(golden, found, 4)[1:]
    assert (short.first_row, short.last_row, short.elements) == (4, 5, 8)


def test_each_step_of_the_tolerance_rounds_to_bf16() -> None:
    results = np.array([0, 1, 100, -100, 3e38, np.inf], np.float32)
    expected = [0x3C24, 0x3CA4, 0x3F81, 0x3F81, 0x7C10, 0x7F80]
    found = tolerance(results).astype(ml_dtypes.bfloat16).view(np.uint16)
    assert [hex(int(x)) for x in found] == [hex(x) for x in expected]


def test_a_code_always_passes_for_itself() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    assert accepted(codes, codes).all()
    assert not accepted(codes, codes ^ 0x8000)[bf16(1)[0] : 0x7F81].any()
