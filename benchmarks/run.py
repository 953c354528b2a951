"""The project's figures: every claim about speed comes from here, measured side by side in one run.

``make bench`` prints medians over several runs and, for each group, the ratio to its first row.
Whole-process rows include the interpreter's start; engine rows are what the report's own timing says.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import mc2proof
from mc2proof.checker.costs import DEFAULT
from mc2proof.checker.critical_path import launch_time, timed
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Verdict
from mc2proof.checker.sweep import Job, sweep
from mc2proof.fuzz.search import runner_of, search, sized
from mc2proof.fuzz.timings import Pct
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.machine import Machine
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import BarrierAll, Setup
from mc2proof.protocol.sync import synchronise
from mc2proof.protocol.unroll import unroll


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to measure: seconds a run."""

    group: str
    name: str
    measure: Callable[[], float]


def process(*arguments: str) -> Callable[[], float]:
    """Seconds that ``mc2proof ARGUMENTS`` takes as a process."""

    def measure() -> float:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "mc2proof", *arguments],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - started

    return measure


def engine(name: str, phases: Sequence[str], **parameters: int) -> Callable[[], float]:
    """Seconds that ``phases`` of a proof with engine ``name`` take, all properties."""

    def measure() -> float:
        report = prove_protocols([ring_all_to_all()], parameters, engine=name)
        return sum(report.timing[phase] for phase in phases)

    return measure


def timings(run: Callable[[Instance], Callable[[int], object]]) -> Callable[[], float]:
    """Seconds for 100 random timings of the built-in protocol on 2 ranks, after one to warm up."""
    protocol = ring_all_to_all()
    once = run(unroll(protocol, sized(protocol, {"ranks": 2, "tile_cnt": 8})))

    def measure() -> float:
        once(0)
        started = time.perf_counter()
        for seed in range(1, TIMINGS + 1):
            once(seed)
        return time.perf_counter() - started

    return measure


def by_machine(instance: Instance) -> Callable[[int], object]:
    """One timing on the Machine, without bytes."""
    machine = Machine(instance)

    def once(seed: int) -> None:
        random, state = Random(seed), machine.initial()
        while actions := machine.enabled(state):
            state = machine.step(state, random.choice(actions))

    return once


def by_model(instance: Instance) -> Callable[[int], object]:
    """One timing on the numpy model, by priorities."""
    runner = runner_of(instance)
    return lambda seed: runner.run(Pct(seed, 2))


def fuzzing() -> float:
    """Seconds for 100 examples of `mc2proof fuzz`, with what Hypothesis takes."""
    return TIMINGS / search(ring_all_to_all(), {"ranks": 2, "tile_cnt": 8}, examples=500).rate


def swept(judged: Callable[[Sequence[dict[str, int]]], object]) -> Callable[[], float]:
    """Seconds for 24 configurations of the built-in protocol on 4 ranks."""
    grid = [
        {"ranks": 4, "buffer_size": depth, "tile_cnt": tiles}
        for depth in (1, 3, 4, 8)
        for tiles in range(4, 64, 10)
    ]

    def measure() -> float:
        started = time.perf_counter()
        judged(grid)
        return time.perf_counter() - started

    return measure


def by_sweep(grid: Sequence[dict[str, int]]) -> object:
    """All of ``grid`` in one process, with times."""
    return sweep(Job(ring_all_to_all(), Setup(), DEFAULT), grid)


def by_instance(grid: Sequence[dict[str, int]]) -> object:
    """The same, each unrolled, judged and timed as a whole."""
    instances = [unroll(ring_all_to_all(), values) for values in grid]
    return [(judge(one), launch_time(timed(synchronise(one), DEFAULT))) for one in instances]


KERNELS = Path(__file__).parents[2] / "shared" / "kernels"


@cache
def flag_per_slot() -> tuple[str, Protocol]:
    """The reference kernel with a flag for each slot (variant 10) where it is here, else the built-in one."""
    patches = list((KERNELS / "variants").glob("10-*.patch"))
    if not patches:
        return "built-in", ring_all_to_all()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "include" / "kernel"
        shutil.copytree(KERNELS / "all_to_all_matmul" / "include" / "kernel", copy)
        subprocess.run(["git", "apply", str(patches[0])], cwd=folder, check=True)
        names = ("all_to_all_comm_udma.h", "all_to_all_matmul_impl.h")
        return "variant 10", mc2proof.load(*(str(copy / name) for name in names))[0]


def for_all(*free: str, **fixed: int) -> Callable[[], float]:
    """Seconds to prove order and deadlock-freedom for all depths and all values of ``free``."""
    name, protocol = flag_per_slot()
    domain = {"ranks": "ranks >= 2", "blocks": "blocks >= ranks", "tile_cnt": "tile_cnt >= 1"}
    assume = ("buffer_size power of 2", "buffer_size <= 8", *(domain[one] for one in free))

    def measure() -> float:
        started = time.perf_counter()
        report = prove_for_all(
            [protocol], fixed, ("buffer_size", *free), assume, Setup(barrier_all=BarrierAll.VEC),
            properties=ORDER,
        )  # fmt: skip
        taken = time.perf_counter() - started
        open_ones = [row.property for row in report.results if row.verdict is not Verdict.PROVED]
        if open_ones:
            raise SystemExit(f"{name}: {', '.join(open_ones)} not proved: there is nothing to compare")
        return taken

    return measure


TIMINGS = 100
ORDER = (
    "deadlock-freedom", "no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion",
    "flag-balance", "barrier-match",
)  # fmt: skip
PARAMETRIC = "parametric, order and deadlock"
WITHIN: Mapping[str, float] = {PARAMETRIC: 2.0}
"""Groups whose slowest row may take so many times as long as the fastest."""
LARGE = {"ranks": 8, "blocks": 8, "tile_cnt": 32}

ROWS = (
    Row("8 ranks x 8 blocks x 32 tiles", "happens-before",
        engine("happens-before", ["happens-before"], **LARGE)),
    Row("8 ranks x 8 blocks x 32 tiles", "happens-before, unrolling included",
        engine("happens-before", ["unroll", "happens-before"], **LARGE)),
    Row("8 ranks x 8 blocks x 32 tiles", "z3", engine("z3", ["z3"], **LARGE)),
    Row("4 ranks x 8 tiles", "happens-before", engine("happens-before", ["happens-before"])),
    Row("4 ranks x 8 tiles", "z3", engine("z3", ["z3"])),
    Row("100 timings, 2 ranks x 8 tiles", "the Machine", timings(by_machine)),
    Row("100 timings, 2 ranks x 8 tiles", "the numpy model", timings(by_model)),
    Row("100 timings, 2 ranks x 8 tiles", "mc2proof fuzz", fuzzing),
    Row("24 configurations of 4 ranks", "sweep", swept(by_sweep)),
    Row("24 configurations of 4 ranks", "instance by instance", swept(by_instance)),
    Row("3,072 configurations", "mc2proof sweep, all processors",
        process("sweep", "--ranks", "2,4,8", "--buffer-size", "1..16", "--tile-cnt", "1..64")),
    Row(PARAMETRIC, "4 ranks x 8 tiles", for_all(ranks=4, blocks=4, tile_cnt=8)),
    Row(PARAMETRIC, "1,024 ranks x 1,000,000 tiles",
        for_all(ranks=1024, blocks=1024, tile_cnt=1_000_000)),
    Row(PARAMETRIC, "all ranks, blocks and tiles", for_all("ranks", "blocks", "tile_cnt")),
    Row("whole process", "mc2proof --help", process("--help")),
    Row("whole process", "mc2proof prove (4 ranks x 8 tiles)", process("prove")),
)  # fmt: skip


def main() -> None:
    """Measure every row in turn, several times round, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds, after one to warm up")
    parser.add_argument("group", nargs="?", default="", help="measure the groups with this in their name")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.group in row.group]
    if not rows:
        parser.error(f"no group has {options.group!r} in its name: {', '.join({r.group: 0 for r in ROWS})}")
    seconds: dict[Row, list[float]] = {row: [] for row in rows}
    for round_number in range(options.runs + 1):
        for row in rows:
            taken = row.measure()
            if round_number:
                seconds[row].append(taken)
    middles = {row: statistics.median(seconds[row]) for row in rows}
    first: dict[str, float] = {}
    for row, middle in middles.items():
        base = first.setdefault(row.group, middle)
        spread = f"{min(seconds[row]):.3f}-{max(seconds[row]):.3f}"
        print(f"{row.group:32} {row.name:38} {middle:8.3f} s  ({spread})  {middle / base:6.2f} x")
    for group, most in WITHIN.items():
        taken = [middle for row, middle in middles.items() if row.group == group]
        if taken:
            ratio = max(taken) / min(taken)
            print(f"{group:32} slowest to fastest: {ratio:.2f} x, at most {most:g} x wanted")
            if ratio > most:
                sys.exit(1)


if __name__ == "__main__":
    main()
