"""The reference kernel as a user would check it: verdicts at the boundaries, and equal to the built-in."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import mc2proof
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Report, Verdict
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Hold
from mc2proof.protocol.program import Barrier, For, If, Protocol, Role, Statement
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

MEMORY = {"no-read-before-write", "no-overwrite-before-read", "no-write-conflict"}


@pytest.fixture(scope="module")
def kernel(reference: list[Path]) -> Protocol:
    """The kernel's protocol; its four entries are equal programs."""
    protocols = mc2proof.load(*map(str, reference))
    assert len(protocols) == 4
    assert len({p.digest() for p in protocols}) == 1
    return protocols[0]


def points() -> list[dict[str, int]]:
    """40 parameter points, corners by hand, the rest drawn with a fixed seed; then some with a tail."""
    corners = [
        {"ranks": 4, "blocks": 4, "buffer_size": 4, "tile_cnt": 9},
        {"ranks": 4, "blocks": 4, "buffer_size": 3, "tile_cnt": 9},
        {"ranks": 4, "blocks": 4, "buffer_size": 4, "tile_cnt": 0},
        {"ranks": 1, "blocks": 1, "buffer_size": 4, "tile_cnt": 5},
        {"ranks": 4, "blocks": 2, "buffer_size": 4, "tile_cnt": 5},
        {"ranks": 2, "blocks": 5, "buffer_size": 1, "tile_cnt": 17},
        {"ranks": 3, "blocks": 3, "buffer_size": 8, "tile_cnt": 4},
        {"ranks": 8, "blocks": 8, "buffer_size": 2, "tile_cnt": 3},
    ]
    random = Random(40)
    ranges = {"ranks": 6, "blocks": 6, "buffer_size": 9, "tile_cnt": 18}
    drawn = [{n: random.randint(n != "tile_cnt", high) for n, high in ranges.items()} for _ in range(32)]
    tails = [
        {"ranks": 4, "blocks": 4, "buffer_size": 4, "tile_cnt": 4, "rows": 2100},
        {"ranks": 3, "blocks": 3, "buffer_size": 2, "tile_cnt": 0, "rows": 511},
        {"ranks": 2, "blocks": 3, "buffer_size": 1, "tile_cnt": 3, "rows": 2047, "k": 96, "n": 64},
    ]
    return corners + drawn + tails


@pytest.mark.parametrize("values", points(), ids=lambda v: "-".join(map(str, v.values())))
def test_the_builtin_protocol_unrolls_to_the_same_events(kernel: Protocol, values: dict[str, int]) -> None:
    ours, theirs = unroll(ring_all_to_all(), values), unroll(kernel, values)
    for a, b in zip(ours.cores, theirs.cores, strict=True):
        assert a.id == b.id
        for x, y in itertools.zip_longest(a.events, b.events):
            assert x.plain() == y.plain(), f"{a.id}: {x} is not {y}"
    assert ours.signature() == theirs.signature()


def prove(kernel: Protocol, **options: object) -> Report:
    values = {"ranks": 4, "buffer_size": 4, "tile_cnt": 9}
    given = {k: v for k, v in options.items() if isinstance(v, int) and not isinstance(v, bool)}
    rest = {k: v for k, v in options.items() if k not in given}
    setup = Setup(**{n: rest.pop(n) for n in ("profile", "barrier_all") if n in rest})  # type: ignore[arg-type]
    return prove_protocols([kernel], values | given, setup, **rest)  # type: ignore[arg-type]


def violated(report: Report) -> set[str]:
    return {r.property for r in report.results if r.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(
    "options",
    [
        *({"tile_cnt": t} for t in (1, 4, 5, 16)),
        *({"ranks": r} for r in (2, 8)),
        *({"buffer_size": b} for b in (1, 2, 8)),
    ],
    ids=str,
)
def test_proved(kernel: Protocol, options: dict[str, int]) -> None:
    report = prove(kernel, **options)
    assert {r.verdict for r in report.results} == {Verdict.PROVED}
    assert report.exit_code() == 0


def test_each_engine_on_its_own(kernel: Protocol) -> None:
    report = prove(kernel, cross_check=True)
    assert {r.verdict for r in report.results} == {Verdict.PROVED}
    engines = {tuple(r.engines) for r in report.results if r.engines != ["static"]}
    assert engines == {("happens-before", "z3")}


def test_no_tiles(kernel: Protocol) -> None:
    report = prove(kernel, tile_cnt=0)
    assert violated(report) == {"completion"}
    # only what is addressed can be judged: the scale request itself
    assert {r.property for r in report.results if r.verdict is Verdict.PROVED} <= {"layout"}


def test_one_rank(kernel: Protocol) -> None:
    report = prove(kernel, ranks=1)
    vacuous = {r.property for r in report.results if r.verdict is Verdict.VACUOUS}
    assert vacuous >= MEMORY
    assert not violated(report)
    assert report.exit_code() == 3


@pytest.mark.parametrize("depth", [3, 6])
def test_a_mask_is_no_ring(kernel: Protocol, depth: int) -> None:
    report = prove(kernel, buffer_size=depth)
    assert violated(report) == {"no-overwrite-before-read"}
    (finding,) = next(r for r in report.results if r.verdict is Verdict.VIOLATED).findings
    shown = finding.counterexample
    assert shown is not None
    assert shown.parameters["ranks"] == 2
    assert shown.parameters["buffer_size"] == depth
    assert len(shown.steps) <= 25
    assert {Path(s.file).suffix for s in shown.steps} == {".h"}


@pytest.mark.parametrize(
    ("options", "id_named"),
    [({"tile_cnt": 17}, "16"), ({"buffer_size": 1, "tile_cnt": 16}, "14")],
)
def test_ids_beyond_their_range(kernel: Protocol, options: dict[str, int], id_named: str) -> None:
    report = prove(kernel, **options)
    assert violated(report) == {"flag-range"}
    errors = [f for r in report.results for f in r.findings if f.severity.value == "error"]
    assert any(f"id {id_named}" in f.message for f in errors)


def test_a_soft_barrier_needs_waits_that_hold_the_core(kernel: Protocol) -> None:
    assert violated(prove(kernel, barrier_all=BarrierAll.SOFT)) == {"no-overwrite-before-read"}
    whole_core = replace(ASCEND950, name="holds-core", wait_holds=Hold.CORE)
    report = prove(kernel, barrier_all=BarrierAll.SOFT, profile=whole_core)
    assert {r.verdict for r in report.results} == {Verdict.PROVED}


def test_fewer_blocks_than_ranks(kernel: Protocol) -> None:
    report = prove(kernel, blocks=2)
    assert violated(report) == {"coverage", "no-read-before-write"}
    for result in report.results:
        if result.verdict is Verdict.VIOLATED:
            assert "ranks 2, 3" in result.findings[0].message


# --- ids --------------------------------------------------------------------------------------


def id_codes(report: Report) -> tuple[set[str], set[str]]:
    """Codes of errors, and of warnings, in the row flag-range."""
    findings = [f for r in report.results if r.property == "flag-range" for f in r.findings]
    errors = {f.code for f in findings if f.severity.value == "error"}
    return errors, {f.code for f in findings} - errors


ELSEWHERE = "id-reserved-elsewhere"
IDS = [
    # options, codes of errors, of warnings
    ({"tile_cnt": 14}, set(), set()),
    ({"tile_cnt": 15}, set(), {ELSEWHERE}),
    ({"tile_cnt": 16}, set(), {ELSEWHERE}),
    ({"tile_cnt": 17}, {"id-out-of-range"}, {ELSEWHERE}),
    ({"tile_cnt": 18}, {"id-out-of-range"}, {ELSEWHERE}),
    ({"tile_cnt": 19}, {"id-out-of-range", "id-reserved"}, {ELSEWHERE}),
    ({"tile_cnt": 14, "buffer_size": 1}, set(), set()),
    ({"tile_cnt": 15, "buffer_size": 1}, set(), {ELSEWHERE}),
    ({"tile_cnt": 16, "buffer_size": 1}, {"id-reserved"}, {ELSEWHERE}),
    ({"tile_cnt": 11, "strict_ids": True}, set(), set()),
    ({"tile_cnt": 12, "strict_ids": True}, {"id-not-for-users"}, set()),
]


@pytest.mark.parametrize(("options", "errors", "warnings"), IDS, ids=[str(case[0]) for case in IDS])
def test_which_ids_a_number_of_tiles_needs(
    kernel: Protocol, options: dict[str, object], errors: set[str], warnings: set[str]
) -> None:
    report = prove(kernel, barrier_all=BarrierAll.VEC, **options)
    assert violated(report) == ({"flag-range"} if errors else set())
    assert {r.verdict for r in report.results} <= {Verdict.PROVED, Verdict.VIOLATED}
    assert id_codes(report) == (errors, warnings)


def with_calling_cubes(protocol: Protocol) -> Protocol:
    """The kernel with AICs that call the barrier as often as the AIVs: twice a tile, once in the first."""
    (tiles,) = (s for s in protocol.programs[Role.AIV] if isinstance(s, For))
    calls: list[Statement] = []
    for statement in tiles.body:
        match statement:
            case Barrier():
                calls.append(statement)
            case If(then=then):
                inner = tuple(s for s in then if isinstance(s, Barrier))
                if inner:
                    calls.append(replace(statement, then=inner))
    assert [type(call) for call in calls] == [If, Barrier]
    (loop,) = protocol.programs[Role.AIC]
    assert isinstance(loop, For)
    assert str(loop.index) == str(tiles.index)
    cubes = (replace(loop, body=(*calls, *loop.body)),)
    return replace(protocol, programs={**protocol.programs, Role.AIC: cubes})


@pytest.mark.parametrize("depth", [4, 1])
@pytest.mark.parametrize(("tiles", "errors"), [(11, set()), (12, {"id-reserved"})])
def test_ids_under_mix_with_cubes_that_call_the_barrier(
    kernel: Protocol, tiles: int, errors: set[str], depth: int
) -> None:
    report = prove(with_calling_cubes(kernel), tile_cnt=tiles, buffer_size=depth, barrier_all=BarrierAll.MIX)
    assert violated(report) == ({"flag-range"} if errors else set())
    assert id_codes(report)[0] == errors
    assert {r.verdict for r in report.results} <= {Verdict.PROVED, Verdict.VIOLATED}
    named = [f.message for r in report.results for f in r.findings if f.severity.value == "error"]
    assert all("id 11: the mix barrier itself uses that counter on the AIC" in text for text in named)
