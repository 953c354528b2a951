"""Unrolling: the right events, sizes predicted first, errors at their place, and what is noticed."""

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2proof.fuzz.bases import BASES
from mc2proof.protocol.builder import ProtocolBuilder, element, segment_index, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import LimitError, ParameterError, SourceError, UnsupportedError
from mc2proof.protocol.evaluate import Value, evaluate
from mc2proof.protocol.expr import Const, Element, Expr, Var, VarKind, as_expr, binary, both, cast
from mc2proof.protocol.generate import generate
from mc2proof.protocol.instance import Instance, Kind
from mc2proof.protocol.profile import ASCEND950, ATLAS_A2, BarrierAll, Profile
from mc2proof.protocol.program import (
    Address,
    Arrive,
    Assign,
    AwaitPhase,
    Block,
    Fence,
    For,
    Get,
    If,
    Load,
    Mode,
    Origin,
    Pipe,
    Protocol,
    Put,
    PutSignal,
    RegionKind,
    Reset,
    Role,
    SetFlag,
    Signal,
    Span,
    Statement,
    WaitUntil,
    While,
)
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, check_values, unroll

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]
HERE = Span("kernel.h", 212, 5)


def raw_ids(instance: Instance, core: int = 0) -> list[int]:
    return [e.raw for e in instance.cores[core].events if e.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG)]


def array_parameter(name: str, index: Expr | int) -> Expr:
    return Element(name, as_expr(index), CType.I64, VarKind.PARAMETER)


# --- against a plain interpreter --------------------------------------------------------------


def interpret(block: Block, values: dict[str, Value], into: list[int]) -> None:
    """The flag ids that ``block`` sets, statement by statement."""
    for statement in block:
        match statement:
            case For(index=index, start=start, stop=stop, step=step, body=body):
                for value in range(evaluate(start, values), evaluate(stop, values), step):
                    values[index.name] = value
                    interpret(body, values, into)
            case While(condition=condition, body=body):
                while evaluate(condition, values):
                    interpret(body, values, into)
            case If(condition=condition, then=then, orelse=orelse):
                interpret(then if evaluate(condition, values) else orelse, values, into)
            case Assign(target=Var(name=name), value=value):
                values[name] = evaluate(value, values)
            case SetFlag(flag=flag):
                into.append(evaluate(flag, values))
            case _:
                raise AssertionError(statement)


@st.composite
def programs(draw: st.DrawFn, *, locals_too: bool) -> Protocol:
    """Random nests of loops and branches around sets, over all kinds of names."""
    p = ProtocolBuilder("random")
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    n = p.parameter("n")
    aiv = p.role(Role.AIV)
    scope: list[Expr] = [n, p.rank, p.block, as_expr(2)]
    local = [aiv.let("x", draw(st.integers(0, 2)))] if locals_too else []
    fresh = iter(range(100))

    def operand(*, bounds: bool = False) -> Expr:
        names = scope if bounds else scope + local
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        return draw(st.sampled_from((a, a + b, a - b, a * 2, (a + 1) % 3)))

    def body(depth: int) -> None:
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from("sslwo" if depth < 3 else "ss"))
            if kind == "s":
                aiv.set_flag(Pipe.MTE3, operand())
                if locals_too and draw(st.booleans()):
                    aiv.let("x", (operand() + 1) % 4)
            elif kind == "l":
                step = draw(st.integers(1, 2))
                with aiv.loop(
                    f"i{next(fresh)}", operand(bounds=True), start=operand(bounds=True), step=step
                ) as i:
                    scope.append(i)
                    body(depth + 1)
                    scope.pop()
            else:
                with aiv.when(operand() > operand()):
                    body(depth + 1)
                if kind == "o":
                    with aiv.otherwise():
                        body(depth + 1)

    body(0)
    return p.build()


@settings(max_examples=150)
@given(data=st.data(), n=st.integers(0, 4), ranks=st.integers(1, 2), blocks=st.integers(1, 2))
def test_unrolling_executes_the_program(data: st.DataObject, n: int, ranks: int, blocks: int) -> None:
    protocol = data.draw(programs(locals_too=data.draw(st.booleans())))
    values = {"ranks": ranks, "blocks": blocks, "n": n}
    instance = unroll(protocol, values)
    for core in instance.cores:
        if core.id.role is Role.AIC:  # has no program, but flags are set towards it
            assert len(core.events) == 1
            continue
        expected: list[int] = []
        names: dict[str, Value] = {**values, "rank": core.id.rank, "block": core.id.block}
        interpret(protocol.programs[Role.AIV], names, expected)
        assert [e.raw for e in core.events[:-1]] == expected
        assert [e.flag for e in core.events[:-1]] == [r & 15 for r in expected]
        assert core.events[-1].kind is Kind.END


def predicted(protocol: Protocol, values: Mapping[str, Value]) -> int:
    """The bound on an instance's events, END not counted."""
    complete = check_values(protocol, values)
    barriers = {name: forms[BarrierAll.VEC] for name, forms in ASCEND950.barriers.items()}
    ranks, blocks = complete["ranks"], complete["blocks"]
    assert isinstance(ranks, int)
    assert isinstance(blocks, int)
    return sum(
        generate(protocol, program, role, complete, Setup(), barriers).predicted
        * ranks * blocks * (protocol.vectors_per_cube if role is Role.AIV else 1)
        for role, program in protocol.programs.items()
    )  # fmt: skip


@settings(max_examples=100)
@given(data=st.data(), n=st.integers(0, 4), ranks=st.integers(1, 2), blocks=st.integers(1, 2))
def test_the_predicted_size_is_a_bound(data: st.DataObject, n: int, ranks: int, blocks: int) -> None:
    protocol = data.draw(programs(locals_too=False))
    values = {"ranks": ranks, "blocks": blocks, "n": n}
    instance = unroll(protocol, values)
    assert predicted(protocol, values) >= instance.event_count() - len(instance.cores)


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(BASES)), ranks=st.integers(1, 4), blocks=st.integers(1, 3),
    buffer_size=st.integers(1, 5), tile_cnt=st.integers(0, 9),
)  # fmt: skip
def test_the_predicted_size_of_the_bases_is_close(name: str, **values: int) -> None:
    protocol = BASES[name]
    instance = unroll(protocol, values)
    real = instance.event_count() - len(instance.cores)
    assert real <= predicted(protocol, values) <= 3 * real + 20 * len(instance.cores)
    with pytest.raises(LimitError, match="max-events"):
        unroll(protocol, values, limits=Limits(max_events=max(real - 1, -1)))


# --- limits -----------------------------------------------------------------------------------


def test_a_hopeless_size_is_refused_before_it_is_unrolled() -> None:
    started = time.process_time()
    with pytest.raises(LimitError, match="predicted size") as caught:
        unroll(ring_all_to_all(), {"tile_cnt": 1_000_000})
    assert time.process_time() - started < 1
    assert (caught.value.limit, caught.value.bound) == ("max-events", Limits().max_events)
    assert caught.value.exit_code == 3


def test_many_cores_that_do_nothing_are_refused_as_well(start: Start) -> None:
    p = start()
    p.role(Role.AIV)
    with pytest.raises(LimitError, match="max-events"):
        unroll(p.build(), {"ranks": 40, "blocks": 40}, limits=Limits(max_events=100))


@pytest.mark.parametrize("with_events", [True, False], ids=["sets", "nothing"])
def test_a_loop_without_end_meets_the_limit(start: Start, with_events: bool) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    forever = aiv.let("forever", 1)
    with aiv.loop_while(forever > 0):
        if with_events:
            aiv.set_flag(Pipe.MTE3, 0)
    with pytest.raises(LimitError, match="events of one core exceeds max-events = 5000"):
        unroll(p.build(), {"ranks": 1}, limits=Limits(max_events=5_000))


def test_a_long_loop_over_nothing_is_refused_too(start: Start) -> None:
    p = start()
    n = p.parameter("n")
    aiv = p.role(Role.AIV)
    with aiv.loop("i", n) as i, aiv.when(i < 0):
        aiv.barrier()
    with pytest.raises(LimitError):
        unroll(p.build(), {"ranks": 1, "n": 10**12})


@pytest.mark.parametrize("bound", [3, 10**15])
def test_a_loop_bounded_by_a_local_is_counted_while_it_runs(start: Start, bound: int) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    n = aiv.let("n", bound)
    with aiv.loop("i", n) as i:
        aiv.set_flag(Pipe.MTE3, i)
    if bound == 3:
        assert raw_ids(unroll(p.build(), {"ranks": 1})) == [0, 1, 2]
    else:
        with pytest.raises(LimitError, match="max-events"):
            unroll(p.build(), {"ranks": 1}, limits=Limits(max_events=5_000))


def test_a_loop_inside_one_bounded_by_a_local_runs(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    n = aiv.let("n", 3)
    with aiv.loop("i", n) as i, aiv.loop("j", i) as j:
        aiv.set_flag(Pipe.MTE3, j)
    assert raw_ids(unroll(p.build(), {"ranks": 1})) == [0, 0, 1]


def test_a_loop_bounded_by_an_array_parameter_runs(start: Start) -> None:
    p = start()
    p.parameter("cnt")
    aiv = p.role(Role.AIV)
    with aiv.loop("g", 3) as g, aiv.loop("t", array_parameter("cnt", g)):
        aiv.set_flag(Pipe.MTE3, g)
    assert raw_ids(unroll(p.build(), {"ranks": 1, "cnt": (1, 0, 2)})) == [0, 2, 2]


# --- parameters -------------------------------------------------------------------------------


def with_parameters(start: Start) -> Protocol:
    p = start()
    p.parameter("tiles", low=1, high=9)
    p.parameter("depth")
    p.parameter("m", default=4)
    return p.build()


def test_one_error_names_every_missing_parameter(start: Start) -> None:
    with pytest.raises(ParameterError, match=r"^ranks, tiles, depth: ") as caught:
        unroll(with_parameters(start), {})
    assert "m" not in caught.value.name.split(", ")
    assert caught.value.exit_code == 2


def test_an_unknown_parameter_is_refused_with_the_known_ones(start: Start) -> None:
    with pytest.raises(
        ParameterError, match=r"tile = 3: .* no such parameter .*ranks, blocks, tiles, depth, m"
    ):
        unroll(with_parameters(start), {"tile": 3})


@pytest.mark.parametrize(("name", "value"), [("tiles", 0), ("tiles", 10), ("ranks", 0), ("depth", 1 << 63)])
def test_a_value_outside_its_domain_is_refused(start: Start, name: str, value: int) -> None:
    values = {"ranks": 1, "tiles": 1, "depth": 1} | {name: value}
    with pytest.raises(ParameterError, match=f"{name} = {value}: must be "):
        unroll(with_parameters(start), values)


def test_every_item_of_an_array_is_checked(start: Start) -> None:
    with pytest.raises(ParameterError, match="tiles = 12"):
        unroll(with_parameters(start), {"ranks": 1, "tiles": (1, 12), "depth": 1})


def test_blocks_are_as_many_as_ranks_unless_given(start: Start) -> None:
    complete = check_values(with_parameters(start), {"ranks": 3, "tiles": 1, "depth": 2})
    assert complete == {"ranks": 3, "blocks": 3, "tiles": 1, "depth": 2, "m": 4}
    assert list(complete) == ["ranks", "blocks", "tiles", "depth", "m"]
    assert (
        check_values(with_parameters(start), {"ranks": 3, "blocks": 1, "tiles": 1, "depth": 2})["blocks"] == 1
    )


def test_an_array_where_a_number_is_needed_is_refused(start: Start) -> None:
    p = start()
    n = p.parameter("n")
    p.role(Role.AIV).set_flag(Pipe.MTE3, n)
    with pytest.raises(ParameterError, match="n"):
        unroll(p.build(), {"ranks": 1, "n": (1, 2)})


def test_a_number_where_an_array_is_needed_is_refused(start: Start) -> None:
    p = start()
    p.parameter("cnt")
    p.role(Role.AIV).set_flag(Pipe.MTE3, array_parameter("cnt", 0))
    with pytest.raises(ParameterError, match="cnt"):
        unroll(p.build(), {"ranks": 1, "cnt": 4})


def test_array_parameters_are_read(start: Start) -> None:
    p = start()
    p.parameter("cnt")
    aiv = p.role(Role.AIV)
    with aiv.loop("g", 3) as g, aiv.when(array_parameter("cnt", g) > 0):
        aiv.set_flag(Pipe.MTE3, array_parameter("cnt", g))
    assert raw_ids(unroll(p.build(), {"ranks": 1, "cnt": (4, 0, 5)})) == [4, 5]


# --- errors of the program --------------------------------------------------------------------


def test_nonsense_points_at_its_line(start: Start) -> None:
    def body(bad: Callable[[Expr], Expr]) -> Protocol:
        p = start()
        aiv = p.role(Role.AIV)
        with aiv.loop("i", 3) as i:
            aiv.add(SetFlag(2, Pipe.MTE3, as_expr(0), Span("kernel.h", 1)))
            aiv.add(SetFlag(2, Pipe.MTE3, bad(i), HERE))
        return p.build()

    for bad, message in (
        (lambda i: binary("/", 4, i - 2), "division by zero"),
        (lambda i: binary("%", 4, i - 2), "division by zero"),
        (lambda i: as_expr(1) << (i - 1), "shift by -1"),
    ):
        with pytest.raises(SourceError, match=rf"^kernel\.h:212: {message}") as caught:
            unroll(body(bad), {"ranks": 1})
        assert caught.value.span == HERE


def test_an_index_outside_its_array_points_at_its_line(start: Start) -> None:
    p = start()
    p.parameter("cnt")
    aiv = p.role(Role.AIV)
    with aiv.loop("i", 4) as i:
        aiv.add(SetFlag(2, Pipe.MTE3, array_parameter("cnt", i), HERE))
    with pytest.raises(SourceError, match=r"kernel\.h:212: array index 3 is outside 0 \.\. 2"):
        unroll(p.build(), {"ranks": 1, "cnt": (4, 5, 6)})


def test_an_array_element_needs_a_value(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    aiv.store("id", 0, 1)
    aiv.add(SetFlag(2, Pipe.MTE3, element("id", 1), HERE))
    with pytest.raises(SourceError, match=r"kernel\.h:212: array element 1 is read before it is assigned"):
        unroll(p.build(), {"ranks": 1})


@pytest.mark.parametrize("kind", ["scalar", "array", "index after its loop"])
def test_a_local_needs_a_value(start: Start, kind: str) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    if kind == "scalar":
        with aiv.when(p.rank > 0):
            flag = aiv.let("x", 1)
    elif kind == "array":
        flag = element("never_assigned", 0)
    else:
        with aiv.loop("i", p.rank) as flag:
            aiv.barrier()
    aiv.add(SetFlag(2, Pipe.MTE3, flag, HERE))
    with pytest.raises(SourceError, match=r"kernel\.h:212"):
        unroll(p.build(), {"ranks": 1})


def test_an_inner_loop_shadows_an_outer_one(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    with aiv.loop("i", 2) as outer:
        with aiv.loop("i", 4):
            aiv.pipe_barrier(Pipe.V)
        aiv.set_flag(Pipe.MTE3, outer)
    assert raw_ids(unroll(p.build(), {"ranks": 1})) == [0, 1]


def test_a_segment_shadows_an_outer_loop(start: Start) -> None:
    p = start()
    a = p.region("a", RegionKind.INPUT, 64)
    aic = p.role(Role.AIC)
    with aic.loop("s", 2) as outer:
        aic.compute("matmul", "s", 4, reads=[window(Address(a, segment_index("s")), 1)])
        aic.set_flag(Pipe.FIX, outer)
    assert raw_ids(unroll(p.build(), {"ranks": 1}), core=1) == [0, 1]


# --- wraps ------------------------------------------------------------------------------------


def guarded(start: Start, condition: Callable[[Expr, Expr], Expr]) -> Protocol:
    """A loop over int i with a uint64 n: what real kernels write, and where it wraps."""
    p = start()
    n = cast(CType.U64, p.parameter("n"))
    aiv = p.role(Role.AIV)
    with aiv.loop("i", 4) as i:
        guard = condition(cast(CType.I32, i), n)
        aiv.add(If(guard, (SetFlag(2, Pipe.MTE3, i, HERE),), (), HERE))
    return p.build()


def test_a_wrap_that_changes_a_guard_is_noticed(start: Start, instantiate: Instantiate) -> None:
    instance = instantiate(guarded(start, lambda i, n: i < n - 2), n=1)
    assert raw_ids(instance) == [0, 1, 2, 3]  # n - 2 is 2^64 - 1
    assert len(instance.wraps) == 1
    wrap = instance.wraps[0]
    assert (wrap.span, wrap.text, wrap.value, wrap.exact) == (HERE, "i < n - 2", 1, 0)


def test_a_wrap_that_comes_back_is_not_noticed(start: Start, instantiate: Instantiate) -> None:
    instance = instantiate(guarded(start, lambda i, n: i < n - 2 + 2), n=1)
    assert raw_ids(instance) == [0]
    assert instance.wraps == ()


def test_no_wrap_is_noticed_where_the_numbers_stay_in_range(start: Start, instantiate: Instantiate) -> None:
    instance = instantiate(guarded(start, lambda i, n: i < n - 2), n=4)
    assert (raw_ids(instance), instance.wraps) == ([0, 1], ())


def test_a_negative_int_in_unsigned_arithmetic_is_noticed(start: Start, instantiate: Instantiate) -> None:
    instance = instantiate(guarded(start, lambda i, n: both(n > 0, i - Const(2, CType.I32) < n)), n=1)
    assert raw_ids(instance) == [2]  # -2 and -1 are converted to huge numbers
    assert {(w.text, w.value, w.exact) for w in instance.wraps} == {("n > 0 && i - 2 < n", 0, 1)}


def test_a_wrap_in_a_local_is_noticed_where_it_is_used(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    narrow = Var("narrow", CType.U8, VarKind.LOCAL)
    aiv.add(Assign(narrow, as_expr(257), Span("kernel.h", 1)))
    aiv.add(SetFlag(2, Pipe.MTE3, narrow, HERE))
    instance = instantiate(p.build())
    assert raw_ids(instance) == [1]
    assert [(w.span, w.value, w.exact) for w in instance.wraps] == [(HERE, 1, 257)]


def test_a_wrap_is_noticed_once_a_place_and_core(start: Start) -> None:
    instance = unroll(guarded(start, lambda i, n: i < n - 2), {"ranks": 2, "n": 1})
    # the program does not mention the block: the cores of a rank share their events
    assert [w.core.rank for w in instance.wraps] == [0, 1]


# --- cores and sharing ------------------------------------------------------------------------


def test_cores_come_in_order_and_each_ends(instantiate: Instantiate) -> None:
    instance = instantiate(ring_all_to_all(), ranks=2, blocks=2, tile_cnt=1)
    assert [str(c.id) for c in instance.cores] == [
        f"rank {r} {role} block {b}" for r in (0, 1) for b in (0, 1) for role in ("AIV", "AIC")
    ]
    assert all(c.events[-1].kind is Kind.END for c in instance.cores)
    assert all(e.kind is not Kind.END for c in instance.cores for e in c.events[:-1])


def test_cores_share_their_events_where_nothing_depends_on_the_block(instantiate: Instantiate) -> None:
    cores = instantiate(ring_all_to_all(), ranks=2, blocks=3, tile_cnt=2).cores
    lists = {(c.id.rank, c.id.role, c.id.block): c.events for c in cores}
    assert lists[0, Role.AIC, 0] is lists[0, Role.AIC, 2]
    assert lists[0, Role.AIC, 0] is not lists[1, Role.AIC, 0]
    assert lists[0, Role.AIV, 0] is not lists[0, Role.AIV, 1]


def test_a_mention_of_sub_is_one_of_the_block(start: Start) -> None:
    p = start(vectors_per_cube=2)
    p.role(Role.AIV).write(Pipe.MTE3, window(Address(p.region("m", RegionKind.PRIVATE), p.sub * 8), 8))
    instance = unroll(p.build(), {"ranks": 1})
    assert [str(c.id) for c in instance.cores] == ["rank 0 AIV block 0", "rank 0 AIV block 0.1"]
    assert [c.events[0].writes[0].begin for c in instance.cores] == [0, 8]


def test_the_signature_sees_events_and_not_spans(instantiate: Instantiate) -> None:
    at = {"ranks": 2, "tile_cnt": 3}
    first, second = instantiate(ring_all_to_all(), **at), instantiate(ring_all_to_all(), **at)
    assert first.signature() == second.signature()
    assert first.signature() != instantiate(ring_all_to_all(), ranks=2, tile_cnt=3, buffer_size=2).signature()


# --- operations -------------------------------------------------------------------------------


def test_a_compute_reads_segment_by_segment_then_writes(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a, c = p.region("a", RegionKind.INPUT, 64), p.region("c", RegionKind.OUTPUT, 64)
    s = segment_index("s")
    aic = p.role(Role.AIC)
    aic.compute(
        "matmul", "s", 3,
        reads=[window(Address(a, s * 4), 4, origin=Origin(p.rank, Address(a, s * 4)), guard=s.ne(1)),
               window(Address(a, s * 4 + 32), 2)],
        writes=[window(Address(c, as_expr(0)), 64)],
    )  # fmt: skip
    reads, write = instantiate(p.build()).cores[0].events[:3], instantiate(p.build()).cores[0].events[3]
    assert [[(x.begin, x.end) for x in e.reads] for e in reads] == [
        [(0, 4), (32, 34)], [(36, 38)], [(8, 12), (40, 42)]
    ]  # fmt: skip
    assert {(e.kind, e.pipe) for e in reads} == {(Kind.READ, Pipe.MTE2)}
    assert (write.kind, write.pipe, write.after) == (Kind.WRITE, Pipe.FIX, (2,))
    assert [(w.begin, w.end, w.share) for w in write.writes] == [(0, 64, True)]
    assert reads[2].reads[0].origin == (0, "a", 8)


def test_a_segment_that_reads_nothing_is_no_event(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a = p.region("a", RegionKind.INPUT, 64)
    p.role(Role.AIC).compute(
        "matmul", "s", 4, reads=[window(Address(a, as_expr(0)), 4, guard=segment_index("s") > 2)]
    )
    assert [e.kind for e in instantiate(p.build()).cores[0].events] == [Kind.READ, Kind.WRITE, Kind.END]


def test_a_put_reads_here_and_writes_there(start: Start, instantiate: Instantiate) -> None:
    p = start()
    h, a = p.region("h", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)
    aiv = p.role(Role.AIV)
    aiv.put(1 - p.rank, Address(h, p.rank * 8), Address(a, as_expr(16)), 8)
    aiv.put(1 - p.rank, Address(h, p.rank * 8), Address(a, as_expr(16)), 8, mode=Mode.ADD, staging=Pipe.S)
    first, second = instantiate(p.build(), ranks=2).cores[1].events[:2]
    assert (first.kind, first.pipe, first.peer) == (Kind.PUT, Pipe.S, 0)
    assert first.reads[0][:4] == (1, "a", 16, 24)
    assert first.writes[0] == (0, "h", 8, 16, (1, "a", 16), False, False)
    assert second.writes[0].add
    assert (first.drains, second.drains) == ((Pipe.MTE3,), ())


def test_barriers_take_the_form_of_their_reading(start: Start, instantiate: Instantiate) -> None:
    p = start()
    for role in Role:
        p.role(role).barrier()
    kinds = {}
    for reading in BarrierAll:
        cores = instantiate(p.build(), barrier_all=reading).cores
        kinds[reading] = [(len(c.events), bool(c.events[0].drains)) for c in cores]
    assert kinds == {
        BarrierAll.VEC: [(2, True), (1, True)],  # the cube's call returns at once
        BarrierAll.MIX: [(2, True), (2, True)],
        BarrierAll.SOFT: [(2, False), (1, True)],
    }


def test_pipe_barriers_hold_their_pipe_or_the_scalar(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).pipe_barrier(Pipe.MTE2)
    p.role(Role.AIV).pipe_barrier()
    one, whole, _ = instantiate(p.build()).cores[0].events
    assert (one.pipe, one.drains) == (Pipe.MTE2, ())
    assert whole.pipe is Pipe.S
    assert {Pipe.V, Pipe.MTE2, Pipe.MTE3} <= set(whole.drains)


def test_numbers_in_events_are_numbers(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).quiet(cast(CType.I64, p.rank.eq(0)))
    peer = instantiate(p.build(), ranks=2).cores[0].events[0].peer
    assert peer == 1


def test_numbers_in_events_print_as_numbers(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).quiet(cast(CType.I64, p.rank.eq(0)))
    assert str(instantiate(p.build(), ranks=2).cores[0].events[0].peer) == "1"


# --- pipes that a core lacks ------------------------------------------------------------------

ABSENT_ON_950 = [
    (Role.AIV, "set", Pipe.FIX), (Role.AIV, "set", Pipe.M), (Role.AIV, "wait", Pipe.MTE1),
    (Role.AIC, "set", Pipe.MTE3), (Role.AIC, "wait", Pipe.V), (Role.AIV, "set", Pipe.S),
    (Role.AIC, "set", Pipe.ALL),
]  # fmt: skip


@pytest.mark.parametrize(("role", "what", "pipe"), ABSENT_ON_950)
def test_a_flag_on_a_pipe_that_the_core_lacks_is_nothing(
    start: Start, instantiate: Instantiate, role: Role, what: str, pipe: Pipe
) -> None:
    p = start()
    getattr(p.role(role), f"{what}_flag")(pipe, 3)
    instance = instantiate(p.build())
    assert {e.kind for core in instance.cores for e in core.events} == {Kind.END}
    operations = [(a.operation, a.raw, a.core.role) for a in instance.absent]
    assert [(getattr(o, "pipe", None), raw, r) for o, raw, r in operations] == [(pipe, 3, role)]


def test_a_wait_may_name_the_scalar(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).wait_flag(Pipe.S, 3)
    instance = instantiate(p.build())
    assert (instance.cores[0].events[0].pipe, instance.absent) == (Pipe.S, ())


@pytest.mark.parametrize("pipe", [Pipe.MTE2, Pipe.V, Pipe.FIX])
def test_a_wait_of_the_a2_holds_the_core_whatever_it_names(
    start: Start, instantiate: Instantiate, pipe: Pipe
) -> None:
    p = start()
    p.role(Role.AIV).wait_flag(pipe, 3)
    instance = instantiate(p.build(), profile=ATLAS_A2)
    assert (instance.cores[0].events[0].pipe, instance.absent) == (Pipe.S, ())


# --- what is not decided ----------------------------------------------------------------------

WORD, DATA = Address("h", as_expr(0)), Address("h", as_expr(8))
UNDECIDED: list[tuple[str, Statement]] = [
    ("PutSignal", PutSignal(as_expr(1), DATA, DATA, as_expr(8), WORD, as_expr(1), Mode.ADD, HERE)),
    ("Signal", Signal(as_expr(1), WORD, as_expr(1), Mode.STORE, HERE)),
    ("WaitUntil", WaitUntil(WORD, "==", as_expr(1), HERE)),
    ("Get", Get(as_expr(1), DATA, DATA, as_expr(8), HERE)),
    ("Fence", Fence(as_expr(1), HERE)),
    ("Arrive", Arrive("phase", HERE)),
    ("AwaitPhase", AwaitPhase("phase", as_expr(0), HERE)),
    ("Reset", Reset(WORD, HERE)),
    ("Load", Load(Var("x", CType.I64, VarKind.LOCAL), WORD, HERE)),
    *((f"mode {mode}", SetFlag(mode, Pipe.MTE3, as_expr(0), HERE)) for mode in (3, 4)),
]


@pytest.mark.parametrize(("name", "statement"), UNDECIDED, ids=[name for name, _ in UNDECIDED])
def test_what_is_not_decided_is_refused_by_name_and_place(
    start: Start, name: str, statement: Statement
) -> None:
    p = start()
    p.region("h", RegionKind.SHARED, 64)
    p.role(Role.AIV).add(statement)
    with pytest.raises(UnsupportedError, match=rf"^kernel\.h:212: unsupported: .*{name}") as caught:
        unroll(p.build(), {"ranks": 2})
    assert (caught.value.span, caught.value.exit_code) == (HERE, 3)


@pytest.mark.parametrize(("name", "statement"), UNDECIDED, ids=[name for name, _ in UNDECIDED])
def test_what_is_never_executed_is_not_refused(start: Start, name: str, statement: Statement) -> None:
    p = start()
    p.region("h", RegionKind.SHARED, 64)
    with p.role(Role.AIV).when(p.rank > 7):
        p.role(Role.AIV).add(statement)
    instance = unroll(p.build(), {"ranks": 2})
    assert {e.kind for core in instance.cores for e in core.events} == {Kind.END}


@pytest.mark.parametrize(
    ("mode", "role", "ratio", "profile", "reason"),
    [
        (1, Role.AIC, 1, ASCEND950, "for the AIVs of one core"),
        (4, Role.AIV, 1, ASCEND950, "two AIVs per AIC"),
        (4, Role.AIV, 2, ATLAS_A2, "atlas-a2, which has none"),
    ],
)
def test_modes_that_a_core_does_not_have_are_refused(
    start: Start, mode: int, role: Role, ratio: int, profile: Profile, reason: str
) -> None:
    p = start(vectors_per_cube=ratio)
    p.role(role).add(SetFlag(mode, Pipe.V if role is Role.AIV else Pipe.FIX, as_expr(0), HERE))
    with pytest.raises(UnsupportedError, match=rf"kernel\.h:212: .*mode {mode}.*{reason}"):
        unroll(p.build(), {"ranks": 1}, Setup(profile))


def test_a_barrier_that_the_profile_does_not_know_is_refused(start: Start) -> None:
    p = start()
    p.role(Role.AIV).barrier("shmem_team_sync")
    with pytest.raises(UnsupportedError, match=r"test_unroll\.py:\d+: unsupported: barrier shmem_team_sync"):
        unroll(p.build(), {"ranks": 1})


def test_a_put_is_an_operation_like_any_other() -> None:
    put = Put(as_expr(1), DATA, DATA, as_expr(8), HERE)
    assert put.span is HERE
