"""`sweep`: verdicts against single judgements, the cache, processes, and answers for all values."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mc2proof.checker.ask import EngineDisagreement
from mc2proof.checker.cell_rules import alike
from mc2proof.checker.cells import Cells
from mc2proof.checker.costs import DEFAULT, Costs
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Verdict
from mc2proof.checker.sweep import Job, sweep
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.evaluate import Value
from mc2proof.protocol.instance import Core, Instance, Kind
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

GRID = [
    {"ranks": ranks, "buffer_size": depth, "tile_cnt": tiles}
    for ranks in (1, 2)
    for depth in (1, 3, 4)
    for tiles in (0, 1, 2, 15, 16, 17)
]
FULL = [values for values in GRID if values["tile_cnt"]]
"""Without tiles a request for scales is never completed."""
MEMORY = ("no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion")


def job(**changes: object) -> Job:
    return Job(ring_all_to_all(), Setup(), DEFAULT, **changes)  # type: ignore[arg-type]


def test_verdicts_are_those_of_single_judgements() -> None:
    for found, values in zip(sweep(job(), GRID), GRID, strict=True):
        errors = judge(unroll(ring_all_to_all(), values)).errors
        assert found.verdict == ("violated" if errors else "safe"), values
        assert {rule.code for rule in found.rules} <= errors
        assert found.values == values


def test_what_is_judged_before_changes_nothing() -> None:
    """Other numbers of ranks are judged from what is remembered, and every one on its own."""
    grid = [{**values, "ranks": ranks} for values in GRID[:12] for ranks in (1, 2, 3)]
    assert sweep(job(), grid) == [sweep(job(), [values])[0] for values in grid]


def test_instances_are_alike_but_for_addresses_and_sizes() -> None:
    cells = Cells(ring_all_to_all(), Setup())

    def at(**values: int) -> Instance:
        return cells.reduced({"ranks": 3, "buffer_size": 2, "tile_cnt": 6, **values})

    first = at()
    assert alike(first, at(ranks=4))
    assert alike(first, at(m=256))
    assert not alike(first, at(tile_cnt=7))
    assert not alike(first, at(buffer_size=3))
    assert not alike(first, Cells(ring_all_to_all(), Setup(launches=2)).reduced(first.values))
    for number, event in enumerate(first.cores[0].events):
        if event.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG):
            events = (*first.cores[0].events[:number], event._replace(raw=event.raw + 16),
                      *first.cores[0].events[number + 1 :])  # fmt: skip
            changed = replace(first, cores=(Core(first.cores[0].id, events), *first.cores[1:]))
            assert not alike(first, changed)


def test_processes_and_the_cache_change_nothing(tmp_path: Path) -> None:
    plain = sweep(job(), GRID)
    cached = job(cache=str(tmp_path / "cache"))
    assert sweep(cached, GRID[:7]) == plain[:7]  # interrupted there
    kept = sorted((tmp_path / "cache").rglob("*.json"))
    assert len(kept) == 7
    kept[0].write_bytes(b"{ cut o")
    assert sweep(cached, GRID, jobs=2) == plain
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_the_cache_is_by_content(tmp_path: Path) -> None:
    one = job(cache=str(tmp_path))
    others = [
        Job(ring_all_to_all(), Setup(), Costs(flag_us=DEFAULT.put_latency_us), cache=str(tmp_path)),
        Job(ring_all_to_all(), Setup(launches=2), DEFAULT, cache=str(tmp_path)),
        job(strict_ids=True, cache=str(tmp_path)),
        job(version="2", cache=str(tmp_path)),
    ]
    assert len({j.content() for j in (one, *others)}) == 5
    assert sweep(one, GRID[-2:])[0].time_us != sweep(others[0], GRID[-2:])[0].time_us


def proved(protocol: Protocol, setup: Setup) -> Callable[[Mapping[str, Value]], dict[str, Verdict | None]]:
    """Says that memory is right wherever the depth is a power of two, and nothing else."""

    def at(values: Mapping[str, Value]) -> dict[str, Verdict | None]:
        depth = values["buffer_size"]
        assert isinstance(depth, int)
        return dict.fromkeys(MEMORY, None if depth & (depth - 1) else Verdict.PROVED)

    return at


def wrong(protocol: Protocol, setup: Setup) -> Callable[[Mapping[str, Value]], dict[str, Verdict | None]]:
    """Says that nothing is ever overwritten."""
    return lambda values: {"no-overwrite-before-read": Verdict.PROVED}


def test_answers_for_all_values() -> None:
    assert [c.verdict for c in sweep(job(answer=proved), FULL)] == [c.verdict for c in sweep(job(), FULL)]
    asked = sweep(job(answer=proved, cross_check=True), FULL)
    assert all(c.parametric == (list(MEMORY) if c.values["buffer_size"] != 3 else []) for c in asked)
    with pytest.raises(EngineDisagreement, match="no-overwrite-before-read"):
        sweep(job(answer=wrong, cross_check=True), FULL)


def test_what_the_protocol_refuses_or_is_too_large_is_said() -> None:
    grid = [{"ranks": 0}, {"ranks": 100, "tile_cnt": 2}]
    refused, unknown = sweep(job(), grid)
    assert (refused.verdict, unknown.verdict) == ("refused", "unknown")
    assert "at least 1" in (refused.note or "")
    assert "predicted size" in (unknown.note or "")
    assert unknown.heap_bytes is not None
    assert unknown.time_us is not None
