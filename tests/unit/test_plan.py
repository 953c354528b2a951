"""Plans: what they say of a shape, and that their limits are where `prove` begins to object."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mc2proof
from mc2proof.checker.limits import ScanLimits, largest, scan
from mc2proof.checker.plan import Limit, Plan, make_plan
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Severity
from mc2proof.protocol.ascendc import reference_facts
from mc2proof.protocol.ascendc.host import host_rules
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.expr import Const
from mc2proof.protocol.program import Pipe, Protocol, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll


@pytest.fixture(scope="module")
def usual() -> Plan:
    return mc2proof.plan((2048, 8192, 3584), 4)


def limits_of(plan: Plan, parameter: str) -> dict[str, Limit]:
    return {limit.code: limit for limit in plan.limits if limit.parameter == parameter}


def errors(plan: Plan) -> set[tuple[str, str]]:
    return {(f.property, f.code) for f in plan.findings if f.severity == "error"}


def test_the_heap_by_hand(usual: Plan) -> None:
    assert {p.name: p.value for p in usual.parameters} == {
        "ranks": 4, "blocks": 4, "buffer_size": 4, "tile_cnt": 4,
        "m": 512, "k": 2048, "n": 3584, "rows": 2048,
    }  # fmt: skip
    assert {p.name for p in usual.parameters if not p.host} == {"ranks", "blocks"}
    assert [(a.name, a.count, a.bytes) for a in usual.heap.areas] == [
        ("ring", 4, 4 << 20),
        ("scale", 1, 512 << 10),
    ]
    assert (usual.heap.used, usual.heap.size, usual.heap.alignment) == (17_301_504, 1 << 30, 512)
    assert (usual.dropped_rows, usual.findings, usual.undecided) == (0, [], [])


def test_the_limits_of_tiles(usual: Plan) -> None:
    limits = limits_of(usual, "tile_cnt")
    assert limits["id-out-of-range"].largest == 16
    assert limits["id-reserved"].largest == 4 + 14  # buffer_size + 14, hardware.md 2
    assert limits["id-reserved-elsewhere"].largest == 14
    assert limits["id-reserved-elsewhere"].severity == "warning"
    # by hand: 16 MiB of ring and 128 KiB of scale a tile in 1 GiB
    assert limits["out-of-bounds"].largest == ((1 << 30) - (16 << 20)) // (128 << 10) == 8064
    (reach,) = (r for r in usual.reach if r.parameter == "tile_cnt")
    assert (reach.largest, reach.bound_by) == (16, ["id-out-of-range"])


def test_the_limits_of_the_ring(usual: Plan) -> None:
    limits = limits_of(usual, "buffer_size")
    ring = limits["overwrite"]
    assert ring.largest is None
    # 4 tiles: a mask is a ring where it has its two low bits, or is all low bits
    assert ring.forbidden == [b for b in range(1, 65) if b > 2 and (b - 1) & 3 != 3]
    assert limits["out-of-bounds"].largest == ((1 << 30) - (512 << 10)) // (4 << 20) == 255
    (reach,) = (r for r in usual.reach if r.parameter == "buffer_size")
    assert (reach.largest, reach.bound_by, reach.tried) == (64, [], 64)


def test_dropped_rows() -> None:
    plan = mc2proof.plan((2100, 8192, 3584), 4)
    assert plan.dropped_rows == 52
    assert errors(plan) == {
        ("no-read-before-write", "foreign-data"), ("no-read-before-write", "never-written"),
        ("coverage", "never-delivered"), ("coverage", "output-missing"),
    }  # fmt: skip
    assert [a.code for a in plan.assumptions][-2:] == ["host-rules", "rows-dropped"]
    assert "52" in plan.assumptions[-1].text
    # limits are about whole tiles
    assert set(limits_of(plan, "tile_cnt")) == {
        "id-reserved-elsewhere", "id-out-of-range", "id-reserved", "out-of-bounds",
    }  # fmt: skip


def test_flag_ids_beyond_their_domain() -> None:
    plan = mc2proof.plan((16384, 4096, 3584), 2)
    assert errors(plan) == {("flag-range", "id-out-of-range"), ("flag-range", "id-reserved")}
    assert any("16-31 are outside 0-15" in f.message for f in plan.findings)
    assert limits_of(plan, "buffer_size")["id-out-of-range"].condition == "> 8, if any"
    assert [r.largest for r in plan.reach] == [16, None]


def test_a_scale_buffer_that_is_too_small() -> None:
    plan = mc2proof.plan((512, 384, 64), 4)
    assert errors(plan) == {("layout", "out-of-bounds")}
    assert "scale_a: 2048 bytes beyond its 6144 bytes" in plan.findings[0].message
    assert [r.largest for r in plan.reach] == [None, None]


def test_the_host_rejects() -> None:
    with pytest.raises(ParameterError, match=r"ceil\(50/64\) is odd"):
        mc2proof.plan((100, 200, 64), 4)


def test_a_ring_of_ones_own() -> None:
    plan = mc2proof.plan((8192, 4096, 3584), 2, buffer_size=1)
    assert {p.name: p.value for p in plan.parameters if not p.host} == {
        "ranks": 2,
        "blocks": 2,
        "buffer_size": 1,
    }
    assert plan.heap.used == (2 << 20) + 2 * 8192 * 64
    assert errors(plan) == {("flag-range", "id-reserved")}
    assert limits_of(plan, "buffer_size")["id-reserved"].condition == ">= 2"


# --- against what decides ---------------------------------------------------------------------

POINTS = [
    {"tile_cnt": 4}, {"tile_cnt": 17}, {"tile_cnt": 19}, {"buffer_size": 3}, {"rows": 5000}, {"tile_cnt": 0},
    {"k": 96}, {"blocks": 2}, {"ranks": 1}, {"tile_cnt": 3, "rows": 1600, "buffer_size": 1},
]  # fmt: skip


@pytest.mark.parametrize("values", POINTS, ids=str)
@pytest.mark.parametrize("strict", [False, True])
def test_the_quick_judgement_is_the_whole_one(values: dict[str, int], strict: bool) -> None:
    """Every finding of a proof, and no other."""
    report = prove_protocols([ring_all_to_all()], values, engine="happens-before", strict_ids=strict)
    whole = {(r.property, f.code, f.severity, f.message) for r in report.results for f in r.findings}
    quick = judge(unroll(ring_all_to_all(), values), strict_ids=strict)
    assert quick.open is None
    assert {(f.property, f.code, f.severity, f.message) for f in quick.found} == whole


def small_heap(size: int) -> Protocol:
    protocol = ring_all_to_all()
    regions = tuple(replace(r, bytes=Const(size)) if r.name == "heap" else r for r in protocol.regions)
    return replace(protocol, regions=regions)


def test_the_heap_by_its_areas_is_the_heap_by_its_events() -> None:
    """A heap so small that the scan meets its end: the areas alone say the same."""
    rules = host_rules(reference_facts())
    geometry = rules.geometry((2048, 8192, 3584), 4)
    protocol = small_heap(28 << 20)
    plan = make_plan(protocol, rules, geometry, {"ranks": 4}, Setup())
    # 4 MiB a slot beside 512 KiB of scale: 6 slots; 12 MiB beyond a ring of 4 slots: 96 tiles
    assert limits_of(plan, "buffer_size")["out-of-bounds"].forbidden == list(range(7, 7 + 8))
    assert limits_of(plan, "buffer_size")["out-of-bounds"].largest == 6
    assert limits_of(plan, "tile_cnt")["out-of-bounds"].largest == 96
    (reach,) = (r for r in plan.reach if r.parameter == "buffer_size")
    assert (reach.largest, reach.bound_by) == (4, ["overwrite"])


@pytest.mark.parametrize("bound", [0, 1, 6, 1000])
def test_the_largest_value_that_fits(bound: int) -> None:
    assert largest(lambda value: value <= bound) == bound


def test_a_scan_ends_at_its_limits() -> None:
    def at(value: int) -> dict[str, int]:
        return {"ranks": 2, "blocks": 2, "tile_cnt": value}

    whole = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=ScanLimits(values=20))
    assert whole.tried == 20
    assert whole.safe() == tuple(range(1, 17))
    assert [s.first.code for s in whole.seen if s.is_error] == ["id-out-of-range", "id-reserved"]
    # judged to the end, or counted only, up to what counting forbids: the largest allowed is judged then
    tail = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=ScanLimits(judged_events=300))
    assert tail.tried == 17
    assert tail.judged[-1] == tail.safe()[-1] == 16
    assert len(tail.judged) < 10
    short = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=ScanLimits(counted_events=2000))
    assert 3 < short.tried < 20
    assert short.safe() == tuple(range(1, short.tried + 1))


def test_a_shape_too_large_to_judge_is_said_to_be_so() -> None:
    plan = mc2proof.plan((512 * 200, 64 * 2 * 64, 64), 64)
    assert plan.findings == []
    assert "max-events" in plan.undecided[0]
    assert all(f.severity in {s.value for s in Severity} for f in plan.findings)


def test_json_is_in_order(usual: Plan) -> None:
    text = usual.to_json()
    assert text.index('"schema_version"') < text.index('"subject"')


def test_what_was_not_judged_is_not_claimed() -> None:
    """8 ranks: few depths are judged, and the limit of the ring names only these."""
    plan = mc2proof.plan((2048, 8192, 3584), 8)
    ring = limits_of(plan, "buffer_size")["overwrite"]
    assert ring.condition == "= 1, 2, 4, 8, 12, 64 (others not tried)"
    assert ring.largest is None
    assert [(r.largest, r.bound_by) for r in plan.reach] == [(16, ["id-out-of-range"]), (64, [])]


def test_timing_that_is_not_judged_makes_no_value_safe() -> None:
    p = ProtocolBuilder("two-pipes")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1)
    count = p.parameter("count", default=1)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    aiv.set_flag(Pipe.MTE3, 0)
    aiv.set_flag(Pipe.V, 0)
    aic.wait_flag(Pipe.MTE2, 0)
    with aic.loop("i", count) as i:
        aic.wait_flag(Pipe.MTE2, i)
    judgement = judge(unroll(p.build(), {}))
    assert judgement.open is not None
    assert judgement.found == ()
    scanned = scan(p.build(), lambda value: {"count": value}, "count", Setup(), limits=ScanLimits(values=3))
    assert (scanned.tried, scanned.judged, scanned.safe()) == (3, (), ())
    assert scanned.open == judgement.open
    # what counting finds is found all the same
    assert [(s.first.code, s.at, s.among) for s in scanned.seen] == [("wait-without-set", (2, 3), (1, 2, 3))]
