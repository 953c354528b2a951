"""gen-data and verify: files for a device, what is made of its results, and arguments that make no sense."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mc2proof.fuzz.devicefiles import read_inputs
from mc2proof.fuzz.golden import accumulate, segment_product
from mc2proof.fuzz.matrices import Inputs
from mc2proof.fuzz.numerics import Dtypes
from mc2proof.fuzz.substitutions import Launches, Segment, Substitution

M, K, N, RANKS = 1536, 256, 16, 2
SIZES = {  # bytes by the host program's own formulas
    "input_a.bin": M * K,
    "input_b.bin": K * N,
    "input_scaleA.bin": M * -(-K // 64) * 2,
    "input_scaleB.bin": N * -(-K // 64) * 2,
}
FAULTS = {  # rank, tile, and what its readers find
    (0, 2): [(Segment(1, 0, 2), Segment(1, 0, 0))],
    (1, 0): [(Segment(0, 1, 0), Segment(0, 1, 2))],
}


@pytest.fixture
def generated(run: Callable, tmp_path: Path) -> Callable[..., Inputs]:
    """Files of three tiles on two ranks, the device's results being right; returns the inputs."""

    def generate(*options: str) -> Inputs:
        finished = run("gen-data", M, K, N, RANKS, *options)
        assert finished.returncode == 0, finished.stderr
        for rank in range(RANKS):
            folder = tmp_path / "output" / str(rank)
            (folder / "npu_out.bin").write_bytes((folder / "cpu_output.bin").read_bytes())
        return inputs_in(tmp_path)

    return generate


def inputs_in(folder: Path, dtypes: Dtypes | None = None) -> Inputs:
    kinds = dtypes or Dtypes()
    return read_inputs(folder / "input", ranks=RANKS, rows=M, n=N, tile_rows=512, dtypes=kinds)


def inject(folder: Path, inputs: Inputs) -> None:
    """The results of a device whose readers found something else in ``FAULTS``."""
    rows = np.arange(512)
    for (rank, tile), faults in FAULTS.items():
        wrong = {own.source: Substitution(own, other) for own, other in faults}
        result = accumulate(
            segment_product(
                *(wrong[s].found(Launches(inputs), rows) if s in wrong else inputs.a_segment(s, rank, tile)),
                *inputs.b_segment(rank, s),
                inputs.geometry.dtypes,
            )
            for s in range(RANKS)
        )
        path = folder / "output" / str(rank) / "npu_out.bin"
        whole = np.fromfile(path, np.uint16).reshape(M, N)
        whole[tile * 512 : (tile + 1) * 512] = result
        whole.tofile(path)


def test_files_have_the_sizes_that_the_host_program_reads(generated: Callable, tmp_path: Path) -> None:
    generated()
    for rank in range(RANKS):
        inputs, output = (tmp_path / folder / str(rank) for folder in ("input", "output"))
        assert {path.name: path.stat().st_size for path in inputs.iterdir()} == SIZES
        assert (output / "cpu_output.bin").stat().st_size == M * N * 2


@pytest.mark.parametrize("options", [(), ("--tagged",), ("--kind", "special"), ("--dtype", "e5m2:e4m3")])
def test_right_results_pass(options: tuple[str, ...], generated: Callable, run: Callable) -> None:
    generated(*options)
    finished = run("verify", M, N, RANKS)
    assert finished.returncode == 0
    assert finished.stdout.splitlines()[-1] == "PASS  2 of 2 ranks pass"


def test_the_same_seed_gives_the_same_files(run: Callable, tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        assert run("gen-data", 512, 128, 8, 1, folder, "--seed", seed).returncode == 0
    contents = {
        folder: [path.read_bytes() for path in sorted((tmp_path / folder).rglob("*.bin"))]
        for folder in ("one", "same", "other")
    }
    assert contents["one"] == contents["same"] != contents["other"]


@pytest.mark.parametrize("options", [("--tagged",), ("--seed", "5")])
def test_faults_of_a_run_are_named(
    options: tuple[str, ...], generated: Callable, run: Callable, tmp_path: Path
) -> None:
    inject(tmp_path, generated(*options))
    finished = run("verify", M, N, RANKS, "output", "--input", "input")
    assert finished.returncode == 1
    assert re.findall(r"rank \d, tile \d: .*", finished.stdout) == [
        "rank 0, tile 2: segment of rank 1 is that of tile 0  "
        "violates no-read-before-write, completion or coverage",
        "rank 1, tile 0: segment of rank 0 is that of tile 2  "
        "violates no-overwrite-before-read or no-read-before-write",
    ]


def test_text_of_a_failing_run(
    generated: Callable, run: Callable, tmp_path: Path, snapshot: Callable
) -> None:
    inject(tmp_path, generated("--tagged"))
    (tmp_path / "output" / "1" / "npu_out.bin").unlink()
    finished = run("verify", M, N, RANKS, "output", "--input", "input")
    assert finished.returncode == 1
    snapshot("verify-failing", finished.stdout)


def test_equal_tiles_would_hide_a_fault(generated: Callable, run: Callable, tmp_path: Path) -> None:
    """Inputs whose tiles are all zero: whatever goes wrong, nobody can see it."""
    generated()
    for rank in range(RANKS):
        for path, size in ((tmp_path / "input" / str(rank) / name, SIZES[name]) for name in SIZES):
            path.write_bytes(bytes(size))
        for name in ("cpu_output.bin", "npu_out.bin"):
            (tmp_path / "output" / str(rank) / name).write_bytes(bytes(M * N * 2))
    finished = run("verify", M, N, RANKS, "--input", "input")
    assert finished.returncode == 0
    assert "with these inputs 27 stale, torn or missing segments would pass unseen" in finished.stdout


def test_dropped_rows_are_told(run: Callable) -> None:
    finished = run("gen-data", 520, 128, 8, 1)
    assert finished.returncode == 0
    assert "the kernel drops the last 8 of the 520 rows of each rank" in finished.stdout


REFUSED = {
    "host rejects": (("gen-data", 512, 200, 64, 4), "ceil(50/64) is odd"),
    "scales do not fit": (("gen-data", 512, 384, 64, 4), "K = 384: is 96 for each of 4 ranks, no multiple"),
    "formats": (("gen-data", 512, 512, 64, 4, "--dtype", "e4m3"), "dtype = 'e4m3': must be one of e4m3:e4m3"),
    "kind": (("gen-data", 512, 512, 64, 4, "--kind", "taged"), "did you mean tagged?"),
    "seed": (("gen-data", 512, 512, 64, 4, "--seed", -1), "seed = -1: must be a whole number from 0"),
    "too few columns": (("gen-data", 4096, 512, 1, 4, "--tagged"), "cannot tell 128 segments apart"),
    "no folder": (("gen-data", 512, 512, 64, 4, "/dev/null/x"), "cannot be written: Not a directory"),
    "inputs of one launch": (("verify", 4, 64, 2, "--after", "x"), "is needed too where --before or --after"),
    "tile rows": (("verify", 4, 64, 2, "--tile-rows", 0), "tile_rows = 0: must be at least 1"),
    "no inputs": (("verify", 4, 64, 2, "--input", "no"), "no/0/input_a.bin: cannot be read: No such file"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_names_the_mend(case: str, fails: Callable) -> None:
    arguments, message = REFUSED[case]
    assert message in fails(2, *arguments)


def test_inputs_that_are_not_those_of_the_result(generated: Callable, fails: Callable) -> None:
    generated("--dtype", "e5m2:e5m2")
    text = fails(2, "verify", M, N, RANKS, "--input", "input")
    assert "cpu_output.bin: is not the result of the inputs in input: give those" in text
    assert "bytes are no whole number of 2 x 1000 rows of A" in fails(
        2, "verify", 1000, N, RANKS, "--input", "input"
    )
    assert "input_b.bin: has 4096 bytes, not 8 rows of 256" in fails(
        2, "verify", M, 8, RANKS, "--input", "input"
    )


STATUS = {  # as with the reference's script, whose int() and range() decide
    "no ranks": ((4, 4, 0), 0),
    "fewer than none": ((4, 4, -1), 0),
    "more arguments": ((4, 4, 0, "output", "more"), 0),
    "nothing": ((), 1),
    "too few": ((4, 4), 1),
    "no number": (("x", 4, 2), 1),
    "half a number": ((4, 4.5, 2), 1),
    "no files": ((4, 4, 1), 1),
    "negative sizes": ((-1, -4, 1), 1),
    "an option that is none": ((4, 4, 1, "--inptu", "x"), 1),
}  # fmt: skip


@pytest.mark.parametrize("case", STATUS)
def test_exit_status_is_the_scripts(case: str, run: Callable) -> None:
    arguments, status = STATUS[case]
    finished = run("verify", *arguments)
    assert finished.returncode == status
    assert finished.stderr.count("\n") == (not finished.stdout)


def test_no_rows_are_right(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "output" / "0").mkdir(parents=True)
    for name in ("npu_out.bin", "cpu_output.bin"):
        (tmp_path / "output" / "0" / name).touch()
    assert run("verify", 0, 4, 1).returncode == 0
    assert run("verify", 0, -4, 1).returncode == 1


def test_json_says_the_same(generated: Callable, run: Callable, tmp_path: Path) -> None:
    inject(tmp_path, generated("--tagged"))
    finished = run("verify", M, N, RANKS, "--input", "input", "--format", "json")
    assert finished.returncode == 1
    found = json.loads(finished.stdout)
    assert (found["schema_version"], found["passed"]) == (1, False)
    first = found["ranks"][0]
    assert set(first) == {"rank", "passed", "unreadable", "notes", "tiles", "explanations", "unseen"}
    (told,) = first["explanations"]
    assert told == {
        "tile": 2,
        "text": "rank 0, tile 2: segment of rank 1 is that of tile 0",
        "explained": True,
        "exact": True,
        "violates_one_of": [["no-read-before-write", "completion", "coverage"]],
        "shares": [{"rows": None, "columns": None, "stories": [[["segment of rank 1 is that of tile 0"]]]}],
    }


@pytest.mark.parametrize(
    ("shape", "ranks", "dtype"),
    [((1024, 100, 12), 1, "e4m3:e5m2"), ((1024, 254, 24), 2, "e5m2:e4m3"), ((1024, 384, 48), 3, "e5m2:e5m2")],
)
def test_shapes_and_formats(
    shape: tuple[int, int, int], ranks: int, dtype: str, run: Callable, tmp_path: Path
) -> None:
    """Groups that K does not fill, where the host's files hold all scales; and what happens twice."""
    assert run("gen-data", *shape, ranks, "--tagged", "--dtype", dtype).returncode == 0
    folder = tmp_path / "output" / str(ranks - 1)
    result = np.fromfile(folder / "cpu_output.bin", np.uint16).reshape(shape[0], shape[2])
    result[512:] = result[:512]
    result.tofile(folder / "npu_out.bin")
    for rank in range(ranks - 1):
        other = tmp_path / "output" / str(rank)
        (other / "npu_out.bin").write_bytes((other / "cpu_output.bin").read_bytes())
    finished = run("verify", shape[0], shape[2], ranks, "--input", "input", "--dtype", dtype)
    assert finished.returncode == 1
    assert f"rank {ranks - 1}, tile 1: its result is that of tile 0" in finished.stdout


@pytest.mark.parametrize("arguments", [("gen-data", 512, 128, 8, 1), ("verify", 4, 4, 1)])
@pytest.mark.parametrize("missing", ["ml_dtypes", "numpy", "hypothesis"])
def test_what_is_not_installed(arguments: tuple, missing: str, run: Callable, tmp_path: Path) -> None:
    """Only what is needed is asked for."""
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / f"{missing}.py").write_text(f"raise ModuleNotFoundError('none', name='{missing}')\n")
    finished = run(*arguments, PYTHONPATH=str(hiding))
    if missing == "hypothesis":
        assert "hypothesis" not in finished.stderr
        assert finished.returncode == (arguments[0] == "verify")
    else:
        assert finished.returncode == 2
        assert finished.stderr.count("\n") == 1
        assert (
            f"needs {missing}: install mc2proof with its extra, pip install 'mc2proof[fuzz]'"
            in finished.stderr
        )


@pytest.mark.parametrize("name", ["gen-data", "verify"])
def test_help(name: str, run: Callable, snapshot: Callable) -> None:
    finished = run(name, "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot(f"help-{name}", finished.stdout)


def test_too_large_a_case_is_refused(run: Callable) -> None:
    finished = run("gen-data", 100_000, 8192, 7168, 8, "big")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "too many to compute here" in finished.stderr


def test_two_kinds_are_refused(run: Callable) -> None:
    finished = run("gen-data", 512, 128, 4, 1, "twice", "--tagged", "--kind", "special")
    assert finished.returncode == 2
    assert "give one" in finished.stderr


def test_results_of_an_earlier_run_and_rough_sums_are_told(run: Callable, tmp_path: Path) -> None:
    assert "earlier run" not in run("gen-data", 512, 128, 4, 1, "again").stdout
    (tmp_path / "again" / "output" / "0" / "npu_out.bin").write_bytes(b"")
    finished = run("gen-data", 512, 128, 4, 1, "again", "--kind", "extreme")
    assert finished.returncode == 0
    assert "npu_out.bin of an earlier run" in finished.stdout
    assert "another order" in finished.stdout
