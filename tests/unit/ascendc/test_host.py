"""The host's rules: what it rejects, what it computes, and facts that say so."""

from __future__ import annotations

import itertools

import pytest

from mc2proof.protocol.ascendc import reference_facts
from mc2proof.protocol.ascendc.facts import parse_facts
from mc2proof.protocol.ascendc.host import AreaWraps, HostRules, ShapeRefused, host_rules
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import SourceError
from mc2proof.protocol.unroll import unroll


@pytest.fixture(scope="module")
def rules() -> HostRules:
    return host_rules(reference_facts())


def test_the_shape_of_the_run_script(rules: HostRules) -> None:
    geometry = rules.geometry((2048, 8192, 3584), 4)
    assert geometry.named == {"ka": 2048, "headMSize": 512, "tailMSize": 0, "tileCnt": 4}
    assert geometry.parameters == {
        "tile_cnt": 4, "buffer_size": 4, "m": 512, "k": 2048, "n": 3584, "rows": 2048,
    }  # fmt: skip
    values = {**geometry.parameters, "ranks": 4}
    ring, scale = rules.heap_areas(values)
    # by hand: 4 ranks x 512 rows x 2048 bytes a slot; 4 ranks x 2048 rows x 64 scale bytes
    assert (ring.count, ring.bytes, ring.total) == (4, 4 << 20, 16_777_216)
    assert scale.total == 512 << 10
    assert ring.total + scale.total == 17_301_504
    assert rules.dropped_rows(values) == 0


@pytest.mark.parametrize(
    ("m", "tiles", "dropped"), [(2100, 4, 52), (16384, 32, 0), (512, 1, 0), (511, 0, 511), (1023, 1, 511)]
)
def test_rows_that_are_no_whole_number_of_tiles(rules: HostRules, m: int, tiles: int, dropped: int) -> None:
    geometry = rules.geometry((m, 8192, 3584), 4)
    assert geometry.parameters["tile_cnt"] == tiles
    assert geometry.parameters["rows"] == m
    assert rules.dropped_rows({**geometry.parameters, "ranks": 4}) == dropped


@pytest.mark.parametrize(
    ("shape", "ranks", "reason"),
    [
        ((100, 200, 64), 4, r"ceil\(50/64\) is odd"),
        ((0, 8192, 64), 4, "must be positive"),
        ((512, -8192, 64), 4, "must be positive"),
        ((512, 8192, 64), 0, "must be positive"),
        ((512, 8190, 64), 4, "K = 8190 is not divisible by 4 ranks"),
        ((512, 64, 64), 1, r"ceil\(64/64\) is odd"),
        ((1 << 18, 1 << 13, 64), 4, r"size of A, 262144 \* 8192, overflows"),
        ((64, 1 << 13, 1 << 18), 4, r"size of B, 8192 \* 262144, overflows"),
        ((1 << 16, 128, 1 << 15), 1, r"size of C, 65536 \* 32768, overflows"),
    ],
)
def test_what_the_host_rejects(
    rules: HostRules, shape: tuple[int, int, int], ranks: int, reason: str
) -> None:
    with pytest.raises(ShapeRefused, match=reason) as raised:
        rules.geometry(shape, ranks)
    what = "cannot compute it" if "overflows" in reason else "rejects it"
    assert f"all_to_all_matmul.cpp) {what} on {ranks} ranks" in str(raised.value)


@pytest.mark.parametrize("shape", [(1 << 31, 1, 1), (1, 1, -(1 << 31) - 1)])
def test_arguments_that_are_no_int(rules: HostRules, shape: tuple[int, int, int]) -> None:
    with pytest.raises(ShapeRefused, match="must fit an int"):
        rules.geometry(shape, 1)


def test_the_largest_product_that_fits(rules: HostRules) -> None:
    assert rules.geometry((1, (1 << 31) - 128, 1), 1).parameters["k"] == (1 << 31) - 128


@pytest.mark.parametrize(("ranks", "tiles", "depth"), list(itertools.product((2, 3, 4), (4, 5), (1, 2, 4))))
def test_the_areas_are_what_the_kernel_touches(rules: HostRules, ranks: int, tiles: int, depth: int) -> None:
    """Where all slots are used: the highest byte of the heap that an event touches ends the areas."""
    values = {"ranks": ranks, "tile_cnt": tiles, "buffer_size": depth, "m": 8, "k": 96, "n": 16}
    instance = unroll(ring_all_to_all(), values)
    highest = max(
        access.end
        for core in instance.cores
        for event in core.events
        for access in (*event.reads, *event.writes)
        if access.region == rules.region
    )
    assert sum(area.total for area in rules.heap_areas({**values, "rows": tiles * 8})) == highest


# --- facts ------------------------------------------------------------------------------------

HOST = """
[host]
source = "launch.cpp"
region = "heap"
areas = [{ name = "all", bytes = "ranks * size" }]
values = [
    { name = "part", type = "uint8_t", value = "M * 2" },
    { name = "twice", type = "uint32_t", value = "part - 1" },
]
rejects = [{ when = "N > part", reason = "N = {N} is more than {part}" }]
[host.parameters]
size = "twice"
"""


def rules_of(written: str = "", instead: str = "") -> HostRules:
    assert written in HOST
    return host_rules(parse_facts(HOST.replace(written, instead), "f.toml"))


def test_values_and_areas_are_computed() -> None:
    rules = rules_of()
    assert rules.geometry((100, 1, 1), 2).named == {"part": 200, "twice": 199}
    with pytest.raises(ShapeRefused, match=r"launch\.cpp\) rejects it on 2 ranks: N = 201 is more than 200"):
        rules.geometry((100, 1, 201), 2)
    assert [(a.name, a.total) for a in rules.heap_areas({"ranks": 3, "size": 5})] == [("all", 15)]
    assert rules.dropped_rows({"ranks": 3, "size": 5}) == 0


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((130, 1, 1), "part wraps around: C computes 4, the exact value is 260"),
        ((0, 1, 0), f"twice wraps around: C computes {(1 << 32) - 1}, the exact value is -1"),
    ],
)
def test_values_that_wrap_are_refused(shape: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ShapeRefused, match=message):
        rules_of().geometry(shape, 2)


def test_a_shape_that_the_host_does_not_look_at_and_cannot_compute() -> None:
    rules = rules_of(
        "[host.parameters]", 'undefined = [{ when = "K > N", reason = "{K} overflows" }]\n[host.parameters]'
    )
    with pytest.raises(ShapeRefused, match=r"launch\.cpp\) cannot compute it on 2 ranks: 7 overflows"):
        rules.geometry((100, 7, 5), 2)


def test_areas_that_make_no_sense() -> None:
    with pytest.raises(AreaWraps, match=r"the size of area all, .* wraps around"):
        rules_of().heap_areas({"ranks": 1 << 31, "size": 1 << 40})
    with pytest.raises(SourceError, match=r"the size of area all, .* is negative: -2"):
        rules_of("ranks * size", "ranks - size").heap_areas({"ranks": 3, "size": 5})
    with pytest.raises(SourceError, match="division by zero"):
        rules_of("ranks * size", "size / (ranks - 3)").heap_areas({"ranks": 3, "size": 5})
    negative = rules_of("[host.parameters]", 'dropped = "ranks - size"\n[host.parameters]')
    with pytest.raises(SourceError, match=r"the number of dropped rows, .* is negative: -2"):
        negative.dropped_rows({"ranks": 3, "size": 5})


def test_facts_without_a_host() -> None:
    with pytest.raises(SourceError, match=r"f\.toml: has no \[host\] table"):
        host_rules(parse_facts("[sizes]\na = 1\n", "f.toml"))


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("uint8_t", "byte_t", r"host\.values\.part: no integer type byte_t"),
        ("{part}", "{parts}", r"host\.rejects: no value \{parts\}"),
        ("part - 1", "part - ", r"cannot read the expression"),
        ('"M * 2"', '"later"', r"f\.toml: host: `later`: name later: neither"),
        ("M * 2", "M) * (2", r"f\.toml: cannot read the expression `M\) \* \(2`"),
        ("part - 1", "part << 40", r"f\.toml: `part << 40`: a shift of 32 bits by 40"),
        ("part - 1", "part * twice", r"name twice: neither"),
        (
            'name = "twice"',
            'name = "part"',
            r"host\.values\.part: is the name of an argument or of an earlier",
        ),
        ('name = "part"', 'name = "ranks"', r"host\.values\.ranks: is the name of an argument"),
        ('name = "part"', 'name = "a b"', r"host\.values\.a b: is no name"),
        ("launch.cpp", " ", r"host\.source: is empty"),
        ("N = {N} is more than {part}", "", r"no reason for `N > part`"),
        ('areas = [{ name = "all", bytes = "ranks * size" }]', "areas = []", r"host\.areas: is empty"),
        ('region = "heap"', 'region = "heap"\nchoices = ["depth"]', r"depth is none of host\.parameters"),
        ('region = "heap"', 'region = "heap"\nchoices = ["size"]', r"size is computed from the shape, `"),
        ('size = "twice"', 'ranks = "2"', r"host\.parameters\.ranks: is given to the host"),
        ("[host.parameters]", "[host.parameter]", r"unknown field `parameter`|missing required field"),
    ],
)
def test_what_is_wrong_with_a_host_table(written: str, instead: str, message: str) -> None:
    assert written in HOST
    with pytest.raises(SourceError, match=message):
        host_rules(parse_facts(HOST.replace(written, instead), "f.toml"))


def test_a_rule_that_cannot_be_computed() -> None:
    with pytest.raises(SourceError, match=r"f\.toml: host: .* cannot be computed: division by zero"):
        rules_of("part - 1", "K / N").geometry((100, 1, 0), 2)
