"""Plans: what they say of a shape, and that their limits are where `prove` begins to object."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

import mc2proof
from mc2proof.checker.growth import Limit
from mc2proof.checker.limits import Bound, ScanLimits, largest, scan
from mc2proof.checker.plan import Plan, make_plan
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.quick import judge
from mc2proof.protocol.ascendc import reference_facts
from mc2proof.protocol.ascendc.facts import HostArea
from mc2proof.protocol.ascendc.host import HostRules, host_rules
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import ParameterError, SourceError
from mc2proof.protocol.expr import Const, Var, VarKind
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
    # by hand: A is M * 8192 elements, counted in an int; the heap would have room for 8064 tiles
    assert limits["host-rules"].largest == ((1 << 31) - 1) // 8192 // 512 == 511
    assert "M = 262144: the host program" in limits["host-rules"].reason
    assert "areas" not in limits
    (reach,) = (r for r in usual.reach if r.parameter == "tile_cnt")
    assert (reach.largest, reach.bound_by) == (16, ["id-out-of-range"])


def test_the_limits_of_the_ring(usual: Plan) -> None:
    limits = limits_of(usual, "buffer_size")
    ring = limits["overwrite"]
    assert ring.largest is None
    (reach,) = (r for r in usual.reach if r.parameter == "buffer_size")
    # 4 tiles: a mask is a ring where it has its two low bits, or is all low bits
    assert ring.forbidden == [b for b in reach.judged if b > 2 and (b - 1) & 3 != 3]
    assert (ring.forbidden[0], ring.condition.endswith(" (others not tried)")) == (3, True)
    assert limits["areas"].largest == ((1 << 30) - (512 << 10)) // (4 << 20) == 255
    assert limits["areas"].reason.endswith("; the kernel leaves it there")
    assert (reach.largest, reach.bound_by, reach.judged[-1]) == (64, [], 64)
    assert reach.unknown == "larger ones were not tried"
    assert [r.follows for r in usual.reach] == [["rows"], []]


def test_dropped_rows() -> None:
    plan = mc2proof.plan((2100, 8192, 3584), 4)
    assert plan.dropped_rows == 52
    assert errors(plan) == {
        ("no-read-before-write", "foreign-data"), ("no-read-before-write", "never-written"),
        ("coverage", "never-delivered"), ("coverage", "output-missing"),
    }  # fmt: skip
    assert [a.code for a in plan.assumptions][-3:] == ["host-rules", "blocks-as-ranks", "rows-dropped"]
    assert "52" in plan.assumptions[-1].text
    # rows follow the tiles, but not the depth of the ring
    assert set(limits_of(plan, "tile_cnt")) == {
        "id-reserved-elsewhere", "id-out-of-range", "id-reserved", "host-rules",
    }  # fmt: skip
    assert limits_of(plan, "buffer_size")["foreign-data"].largest is None
    assert [(r.largest, r.bound_by) for r in plan.reach] == [
        (16, ["id-out-of-range"]),
        (None, ["foreign-data"]),
    ]


@pytest.mark.parametrize("depth", [1, 4, 16, 64])
def test_no_depth_is_called_safe_that_is_not(depth: int) -> None:
    """Where rows are dropped, no depth of the ring helps."""
    report = mc2proof.prove(shape=(2100, 8192, 3584), ranks=4, buffer_size=depth, engine="happens-before")
    assert report.exit_code() == 1


def test_flag_ids_beyond_their_domain() -> None:
    plan = mc2proof.plan((16384, 4096, 3584), 2)
    assert errors(plan) == {("flag-range", "id-out-of-range"), ("flag-range", "id-reserved")}
    assert any("16-31 are outside 0-15" in f.message for f in plan.findings)
    assert limits_of(plan, "buffer_size")["id-out-of-range"].condition == "= none of those judged"
    assert [r.largest for r in plan.reach] == [16, None]
    # no depth up to 16 is in range for the barrier's id either, but deeper rings do not meet it
    tried = limits_of(plan, "buffer_size")["id-out-of-range"].forbidden
    assert {32, 64} <= set(tried)
    assert {32, 64}.isdisjoint(limits_of(plan, "buffer_size")["id-reserved"].forbidden)


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
    assert limits_of(plan, "buffer_size")["id-reserved"].condition == ">= 2 of those tried"


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
    assert limits_of(plan, "buffer_size")["out-of-bounds"].forbidden[0] == 7
    assert limits_of(plan, "buffer_size")["out-of-bounds"].largest == 6
    assert "areas" not in limits_of(plan, "buffer_size")
    assert limits_of(plan, "tile_cnt")["areas"].largest == 96
    (reach,) = (r for r in plan.reach if r.parameter == "buffer_size")
    assert (reach.largest, reach.bound_by) == (4, ["overwrite"])


@pytest.mark.parametrize("bound", [2, 3, 6, 1000])
def test_the_largest_value_that_fits(bound: int) -> None:
    assert largest(lambda value: value <= bound, 3, 1000) == Bound(bound, monotone=True)


def test_what_is_not_monotone_is_said_to_be_so() -> None:
    assert not largest(lambda value: value != 4, 1, 1 << 31).monotone
    assert not largest(lambda value: value > 5, 1, 100, tried=range(1, 10)).monotone


def test_a_scan_ends_at_its_limits() -> None:
    def at(value: int) -> dict[str, int]:
        return {"ranks": 2, "blocks": 2, "tile_cnt": value}

    whole = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=ScanLimits(last=20, judged_events=20_000))
    assert whole.tried == tuple(range(1, 21))
    assert whole.safe() == tuple(range(1, 17))
    assert [s.first.code for s in whole.seen if s.is_error] == ["id-out-of-range", "id-reserved"]
    # judged to the end, or counted only: powers of two and the largest allowed are judged all the same
    few = ScanLimits(judged_events=300, power_events=1200)
    tail = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=few)
    assert tail.tried == (*range(1, 21), 31, 32, 33, 63, 64)
    assert tail.judged[-1] == tail.safe()[-1] == 16
    assert len(tail.judged) < 10
    short = scan(ring_all_to_all(), at, "tile_cnt", Setup(), limits=ScanLimits(counted_events=2000))
    assert 3 < short.tried[-1] < 20
    assert short.safe() == short.tried
    assert "events is beyond what a plan tries" in (short.ended or "")


def test_a_scan_goes_on_beyond_forbidden_values() -> None:
    """Values that count as forbidden do not end it: larger ones may be safe."""

    def at(value: int) -> dict[str, int]:
        return {"ranks": 2, "blocks": 2, "tile_cnt": 32, "buffer_size": value}

    spare = ScanLimits(spare_events=0)
    scanned = scan(ring_all_to_all(), at, "buffer_size", Setup(), limits=spare)
    assert scanned.tried == (1, 2, 3, 4, 8, 16, 32, 64)
    assert scanned.forbidden() == set(scanned.tried)


def test_a_scan_stays_in_the_domain() -> None:
    """From the parameter's lowest value to its largest."""
    p = ProtocolBuilder("steps")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1)
    count = p.parameter("count", low=3, high=7)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("i", count) as i:
        aiv.set_flag(Pipe.MTE3, i)
    with aic.loop("i", count) as i:
        aic.wait_flag(Pipe.MTE2, i)
    scanned = scan(p.build(), lambda value: {"count": value}, "count", Setup())
    assert (scanned.low, scanned.high, scanned.tried) == (3, 7, (3, 4, 5, 6, 7))
    assert scanned.ended is None


def test_a_shape_too_large_to_judge_is_said_to_be_so() -> None:
    plan = mc2proof.plan((512 * 200, 64 * 2 * 64, 64), 64)
    assert (plan.judged, plan.findings, plan.heap.addressed) == ("areas", [], None)
    assert "max-events" in plan.undecided[0]
    assert [r.largest for r in plan.reach] == [None, None]
    assert all("beyond what a plan tries" in (r.unknown or "") for r in plan.reach)


def test_a_shape_too_large_to_judge_is_judged_by_its_areas() -> None:
    plan = mc2proof.plan((512 * 200, 64 * 2 * 64, 64), 64, buffer_size=300)
    assert [(f.property, f.code) for f in plan.findings] == [("layout", "areas")]
    assert "by the areas alone" in plan.findings[0].message
    assert limits_of(plan, "buffer_size")["areas"].reason.endswith("by the areas alone")


def test_a_heap_that_nobody_uses() -> None:
    """On one rank nothing is put: areas that are too large do no harm."""
    plan = mc2proof.plan((512, 8192, 3584), 1)
    assert (plan.heap.used, plan.heap.addressed) == ((16 << 20) + (128 << 10), 0)
    limit = limits_of(plan, "buffer_size")["areas"]
    assert (limit.severity, limit.largest) == ("warning", 255)
    assert limit.reason.endswith("the kernel itself needs 0 B there")


def rules_with(areas: str = "", region: str = "") -> HostRules:
    """The shipped rules with other areas, or another region."""
    facts = reference_facts()
    assert facts.host is not None
    host = facts.host
    if areas:
        host = msgspec.structs.replace(host, areas=(HostArea(name="all", bytes=areas),))
    if region:
        host = msgspec.structs.replace(host, region=region)
    return host_rules(msgspec.structs.replace(facts, host=host))


def plan_by(rules: HostRules, protocol: Protocol | None = None, **given: int) -> Plan:
    geometry = rules.geometry((2048, 8192, 3584), 4)
    return make_plan(protocol or ring_all_to_all(), rules, geometry, {"ranks": 4, **given}, Setup())


def test_areas_that_are_not_monotone() -> None:
    plan = plan_by(rules_with(areas="buffer_size == 3 ? 2147483648 : 64"))
    assert "areas" not in limits_of(plan, "buffer_size")
    assert any("larger values fit where some do not" in text for text in plan.undecided)
    assert (plan.heap.used, plan.heap.addressed) == (64, 17_301_504)


def test_a_kernel_that_goes_beyond_its_areas() -> None:
    """Areas of half of what the kernel addresses."""
    plan = plan_by(rules_with(areas="buffer_size * (2 << 20)"))
    assert (plan.heap.used, plan.heap.addressed) == (8 << 20, 17_301_504)
    limit = limits_of(plan, "buffer_size")["areas"]
    assert (limit.largest, limit.severity) == (512, "error")
    assert limit.reason.endswith("the kernel leaves it at 512 already")


def test_areas_so_large_that_their_size_wraps() -> None:
    plan = plan_by(rules_with(areas="buffer_size * 4611686018427387904"), buffer_size=1)
    assert limits_of(plan, "buffer_size")["areas"].largest is None
    with pytest.raises(SourceError, match="wraps around"):
        plan_by(rules_with(areas="buffer_size * 4611686018427387904"))


@pytest.mark.parametrize(("region", "message"), [("a", "no shared region"), ("hepa", "no region hepa")])
def test_a_region_that_is_no_heap(region: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        plan_by(rules_with(region=region))


def test_a_parameter_ends_where_its_domain_does() -> None:
    protocol = ring_all_to_all()
    bounded = replace(
        protocol,
        parameters=tuple(replace(p, high=8) if p.name == "buffer_size" else p for p in protocol.parameters),
    )
    plan = plan_by(host_rules(reference_facts()), bounded)
    (reach,) = (r for r in plan.reach if r.parameter == "buffer_size")
    assert (reach.largest, reach.bound_by) == (8, ["domain"])
    assert "areas" not in limits_of(plan, "buffer_size")


def test_a_heap_that_grows_with_its_ring() -> None:
    """The size of the region is that at each value."""
    protocol = ring_all_to_all()
    heap = next(r for r in protocol.regions if r.name == "heap")
    depth = Var("buffer_size", CType.I64, VarKind.PARAMETER)
    grown = replace(heap, bytes=(depth + 1) * (4 << 20))
    regions = tuple(grown if r.name == "heap" else r for r in protocol.regions)
    plan = plan_by(host_rules(reference_facts()), replace(protocol, regions=regions))
    assert {"areas", "out-of-bounds"}.isdisjoint(limits_of(plan, "buffer_size"))


def test_json_is_in_order(usual: Plan) -> None:
    text = usual.to_json()
    assert text.index('"schema_version"') < text.index('"subject"')


def test_what_was_not_judged_is_not_claimed() -> None:
    """8 ranks: few depths are judged, and the limit of the ring names only these."""
    plan = mc2proof.plan((2048, 8192, 3584), 8)
    ring = limits_of(plan, "buffer_size")["overwrite"]
    judged = next(r.judged for r in plan.reach if r.parameter == "buffer_size")
    assert ring.condition == "= 1, 2, 4, 8, 16, 32, 64 (others not tried)"
    assert {1, 2, 4, 8, 16, 32, 64} <= set(judged) < set(range(1, 65))
    assert set(ring.forbidden) == set(judged) - {1, 2, 4, 8, 16, 32, 64}
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
    scanned = scan(
        p.build(), lambda value: {"count": value}, "count", Setup(), limits=ScanLimits(dense=3, last=3)
    )
    assert (scanned.tried, scanned.judged, scanned.safe()) == ((1, 2, 3), (), ())
    assert scanned.open == judgement.open
    # what counting finds is found all the same
    assert [(s.first.code, s.at, s.among) for s in scanned.seen] == [("wait-without-set", (2, 3), (1, 2, 3))]
