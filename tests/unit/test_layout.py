"""Layout: each fault once present and once not, with the place and numbers a reader needs."""

from collections.abc import Callable

import pytest

from mc2proof.checker.catalogue import source_of
from mc2proof.checker.layout import Extent, extents, layout
from mc2proof.checker.static import Fault
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.expr import Expr, Operand, as_expr, cast
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950
from mc2proof.protocol.program import Address, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]


def one_put(
    start: Start,
    *,
    peer: Callable[[Expr], Operand] = lambda rank: 1 - rank,
    target: Operand = 0,
    source: Operand = 0,
    size: Operand = 8,
    heap_bytes: int | None = 64,
) -> Protocol:
    p = start()
    heap = p.region("heap", RegionKind.SHARED, heap_bytes)
    a = p.region("a", RegionKind.INPUT, 64)
    p.role(Role.AIV).put(peer(p.rank), Address(heap, as_expr(target)), Address(a, as_expr(source)), size)
    return p.build()


def found(instance: Instance) -> list[tuple[str, str]]:
    faults = layout(instance)
    assert faults is not None
    return [(f.code, f.message) for f in faults]


def test_a_good_layout(start: Start, instantiate: Instantiate) -> None:
    assert layout(instantiate(one_put(start, target=56, source=56), ranks=2)) == []


def test_no_memory_no_verdict(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    assert layout(instantiate(p.build())) is None


@pytest.mark.parametrize(
    ("target", "source", "message"),
    [
        (57, 0, "heap[57..65) of rank 1 leaves heap: 1 bytes beyond its 64 bytes"),
        (-3, 0, "heap[-3..5) of rank 1 leaves heap: 3 bytes beyond its begin"),
        (0, 60, "a[60..68) of rank 0 leaves a: 4 bytes beyond its 64 bytes"),
    ],
)
def test_out_of_bounds(
    start: Start, instantiate: Instantiate, target: int, source: int, message: str
) -> None:
    instance = instantiate(one_put(start, target=target, source=source), ranks=2)
    assert found(instance) == [("out-of-bounds", message)]


def test_the_worst_access_of_a_place_is_shown(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap = p.region("heap", RegionKind.SHARED, 64)
    with p.role(Role.AIV).loop("i", 10) as i:
        p.role(Role.AIV).write(Pipe.MTE3, window(Address(heap, i * 8), 8))
    assert found(instantiate(p.build())) == [
        ("out-of-bounds", "heap[72..80) of rank 0 leaves heap: 16 bytes beyond its 64 bytes")
    ]


def test_a_region_without_a_size_has_no_end(start: Start, instantiate: Instantiate) -> None:
    assert found(instantiate(one_put(start, target=1 << 40, heap_bytes=None), ranks=2)) == []
    below = found(instantiate(one_put(start, target=-1, heap_bytes=None), ranks=2))
    assert [code for code, _ in below] == ["out-of-bounds"]


def test_a_size_may_depend_on_the_rank(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap = p.region("heap", RegionKind.SHARED, 8 + 8 * p.rank)
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(heap, as_expr(0)), 16))
    assert [m for _, m in found(instantiate(p.build(), ranks=2))] == [
        "heap[0..16) of rank 0 leaves heap: 8 bytes beyond its 8 bytes"
    ]


def test_put_to_self(start: Start, instantiate: Instantiate) -> None:
    faults = found(instantiate(one_put(start, peer=lambda rank: rank), ranks=3))
    assert faults == [("put-to-self", "ranks 0-2 put to themselves, which is not allowed")]


@pytest.mark.parametrize(
    ("by", "message"), [(1, "there is no rank 2: ranks are 0-1"), (-1, "there is no rank -1")]
)
def test_no_such_rank(start: Start, instantiate: Instantiate, by: int, message: str) -> None:
    faults = found(instantiate(one_put(start, peer=lambda rank: rank + by), ranks=2))
    assert [code for code, _ in faults] == ["no-such-rank"]
    assert message in faults[0][1]


def test_a_quiet_of_no_rank(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(p.region("m", RegionKind.PRIVATE), as_expr(0)), 8))
    p.role(Role.AIV).quiet(p.rank)  # of itself: it has no requests, and that is no fault of the layout
    p.role(Role.AIV).quiet(5)
    assert found(instantiate(p.build(), ranks=2)) == [("no-such-rank", "there is no rank 5: ranks are 0-1")]


@pytest.mark.parametrize("more", [0, 1])
def test_put_too_large(start: Start, instantiate: Instantiate, more: int) -> None:
    size = ASCEND950.put_limit + more
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED), p.region("a", RegionKind.INPUT)
    p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), size)
    codes = [code for code, _ in found(instantiate(p.build(), ranks=2))]
    assert codes == (["put-too-large"] if more else [])


def test_a_wrap_without_any_memory_is_still_reported(start: Start, instantiate: Instantiate) -> None:
    p = start()
    n = cast(CType.U32, p.parameter("n"))
    with p.role(Role.AIV).when((n - 2).ne(0)):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    instance = instantiate(p.build(), n=1)
    assert len(instance.wraps) == 0  # n - 2 is not 0 either way
    p.role(Role.AIV).set_flag(Pipe.MTE3, (n - 2) % 7)
    instance = instantiate(p.build(), n=1)
    assert len(instance.wraps) == 1
    assert layout(instance) is not None


@pytest.mark.parametrize("high", [3, 1])
def test_wrap_around(start: Start, instantiate: Instantiate, high: int) -> None:
    p = start()
    n = cast(CType.U32, p.parameter("n"))
    heap = p.region("heap", RegionKind.SHARED)
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(heap, n * (1 << 31)), 8))
    faults = found(instantiate(p.build(), n=high))
    if high == 1:
        assert faults == []
    else:
        assert [code for code, _ in faults] == ["wrap-around"]
        assert "C computes 2147483648, the exact value is 6442450944 (rank 0 AIV block 0)" in faults[0][1]


@pytest.mark.parametrize(
    ("second", "clash"),
    [
        (8, None),
        (7, "heap[7..8)"),
        (0, "heap[0..8)"),
        (-16, None),
        (-4, "heap[0..4)"),
    ],
)
def test_areas_overlap(start: Start, instantiate: Instantiate, second: int, clash: str | None) -> None:
    p = start()
    heap = p.region("heap", RegionKind.SHARED)
    data, scale = (p.region(n, RegionKind.INPUT) for n in ("data", "scale"))
    p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(0)), Address(data, as_expr(0)), 8)
    p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(second)), Address(scale, as_expr(0)), 8)
    faults = [m for code, m in found(instantiate(p.build(), ranks=2)) if code == "areas-overlap"]
    assert len(faults) == (clash is not None)
    if clash is not None:
        assert faults[0] == f"{clash} of rank 0 is filled from both data and scale: their areas overlap"


def test_a_slot_may_be_filled_again_from_the_same_input(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 8), p.region("a", RegionKind.INPUT, 64)
    with p.role(Role.AIV).loop("tile", 4) as tile:
        p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(0)), Address(a, tile * 8), 8)
    assert found(instantiate(p.build(), ranks=2)) == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (RegionKind.SHARED, []),
        (RegionKind.PRIVATE, ["target-not-shared"]),
        (RegionKind.OUTPUT, ["target-not-shared"]),
        (RegionKind.INPUT, ["target-not-shared", "input-written"]),
    ],
)
def test_the_target_of_a_put_is_symmetric_memory(
    start: Start, instantiate: Instantiate, kind: RegionKind, expected: list[str]
) -> None:
    p = start()
    target, a = p.region("target", kind, 64), p.region("a", RegionKind.INPUT, 64)
    p.role(Role.AIV).put(1 - p.rank, Address(target, as_expr(0)), Address(a, as_expr(0)), 8)
    assert [code for code, _ in found(instantiate(p.build(), ranks=2))] == expected


def test_an_input_is_written_by_nobody(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a = p.region("a", RegionKind.INPUT, 64)
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(a, as_expr(0)), 8))
    assert found(instantiate(p.build())) == [
        ("input-written", "a[0..8) of rank 0 is written, but it is an input, which nobody writes")
    ]


def test_a_size_below_zero(start: Start, instantiate: Instantiate) -> None:
    faults = found(instantiate(one_put(start, target=8, source=8, size=as_expr(0) - 4), ranks=2))
    assert {code for code, _ in faults} == {"negative-size"}


@pytest.mark.parametrize(
    ("alignment", "misaligned"), [(None, False), (512, False), (1024, False), (256, True), (768, True)]
)
@pytest.mark.parametrize("put", [True, False])
def test_the_base_of_what_requests_go_to(
    start: Start, instantiate: Instantiate, alignment: int | None, misaligned: bool, put: bool
) -> None:
    p = start()
    heap = p.region("heap", RegionKind.SHARED, 64, alignment=alignment)
    a = p.region("a", RegionKind.INPUT, 64, alignment=4)  # nothing is put to it
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(heap, as_expr(0)), 8))
    if put:
        p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    faults = [m for code, m in found(instantiate(p.build(), ranks=2)) if code == "base-misaligned"]
    expected = f"heap is aligned to {alignment} bytes: requests need a base on 512"
    assert faults == ([expected] if misaligned and put else [])


def test_the_smallest_size_that_suffices(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap = p.region("heap", RegionKind.SHARED, 64 + 8 * p.rank)
    ring = p.region("ring", RegionKind.SHARED)
    p.region("idle", RegionKind.SHARED, 64)
    a = p.region("a", RegionKind.INPUT, 64)
    vector = p.role(Role.AIV)
    vector.put(1 - p.rank, Address(heap, p.rank * 16), Address(a, as_expr(0)), 8)
    vector.put(1 - p.rank, Address(heap, as_expr(60)), Address(a, as_expr(0)), 0)  # touches nothing
    vector.read(Pipe.MTE2, window(Address(ring, as_expr(4)), 6, origin=None))
    assert extents(instantiate(p.build(), ranks=2)) == [Extent("heap", 24, 64), Extent("ring", 10, None)]


def test_a_region_that_is_too_small_needs_more_than_it_has(start: Start, instantiate: Instantiate) -> None:
    (extent,) = extents(instantiate(one_put(start, target=60), ranks=2))
    assert extent == Extent("heap", 68, 64)


def test_later_launches_need_no_more(start: Start) -> None:
    instance = unroll(one_put(start, target=8), {"ranks": 2, "blocks": 1}, Setup(launches=3))
    assert extents(instance) == [Extent("heap", 16, 64)]


def test_every_fault_cites_its_rule_and_place(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)
    aiv = p.role(Role.AIV)
    aiv.put(p.rank, Address(heap, as_expr(60)), Address(a, as_expr(0)), ASCEND950.put_limit + 1)
    aiv.put(9, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    faults: list[Fault] = layout(instantiate(p.build(), ranks=2)) or []
    assert {f.code for f in faults} == {"out-of-bounds", "put-to-self", "no-such-rank", "put-too-large"}
    for fault in faults:
        assert source_of(fault.code)
        assert fault.span.file.endswith("test_layout.py")
        assert fault.span.line > 0
