"""Protocols written in Python: spans at the caller's line, control flow, and errors."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from mc2proof.protocol.builder import ProtocolBuilder, element, segment_index, window
from mc2proof.protocol.errors import Mc2proofError, SourceError
from mc2proof.protocol.expr import Const, as_expr
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.program import (
    Address,
    Compute,
    For,
    If,
    Mode,
    Origin,
    Pipe,
    Put,
    Region,
    RegionKind,
    Role,
    SetFlag,
    Span,
    Statement,
    While,
)

Start = Callable[..., ProtocolBuilder]


def line() -> int:
    """The line that this is called from."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def spans_of(p: ProtocolBuilder) -> list[Span]:
    return [s.span for s in p.build().programs[Role.AIV]]


def test_every_statement_points_at_the_caller_s_line(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    heap = Address(p.region("heap", RegionKind.SHARED), as_expr(0))
    first = line() + 1
    aiv.set_flag(Pipe.MTE3, 0)
    aiv.wait_flag(Pipe.MTE3, 0)
    aiv.set_event(Pipe.MTE2, Pipe.V, 0)
    aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
    aiv.pipe_barrier()
    aiv.barrier()
    aiv.put(1, heap, heap, 8)
    aiv.quiet(1)
    aiv.read(Pipe.MTE2, window(heap, 8))
    aiv.write(Pipe.MTE3, window(heap, 8))
    aiv.let("x", 1)
    aiv.store("xs", 0, 1)
    aiv.compute("matmul", "s", 1, reads=[window(heap, 8)])
    assert [s.line for s in spans_of(p)] == list(range(first, first + 13))
    assert {Path(s.file).name for s in spans_of(p)} == {"test_builder.py"}


def test_loops_and_branches_point_at_the_line_of_their_with(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    expected = [line() + 1, line() + 3, line() + 5]
    with aiv.loop("i", 3):
        aiv.barrier()
    with aiv.loop_while(0):
        aiv.barrier()
    with aiv.when(p.rank > 0):
        aiv.barrier()
    with aiv.otherwise():
        aiv.pipe_barrier()
    assert [s.line for s in spans_of(p)] == expected


def test_a_helper_of_the_user_is_where_its_own_operations_are(start: Start) -> None:
    p = start()

    def helper() -> int:
        p.role(Role.AIV).barrier()
        return line() - 1

    expected = helper()
    assert [s.line for s in spans_of(p)] == [expected]


def test_paths_are_never_absolute(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    p = start()
    p.role(Role.AIV).barrier()
    assert not Path(spans_of(p)[0].file).is_absolute()
    monkeypatch.chdir(Path(__file__).parent)
    p.role(Role.AIV).barrier()
    assert spans_of(p)[1].file == "test_builder.py"


def kinds(block: tuple[Statement, ...]) -> list[str]:
    return [type(s).__name__ for s in block]


def test_nesting_is_kept(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    with aiv.loop("i", 4, start=1, step=2) as i:
        with aiv.when(i > 1):
            aiv.set_flag(Pipe.MTE3, i)
        with aiv.otherwise():
            aiv.barrier()
        aiv.pipe_barrier(Pipe.V)
    aiv.quiet(0)
    program = p.build().programs[Role.AIV]
    loop = program[0]
    assert isinstance(loop, For)
    assert (loop.start, loop.stop, loop.step) == (Const(1), Const(4), 2)
    assert kinds(loop.body) == ["If", "PipeBarrier"]
    branch = loop.body[0]
    assert isinstance(branch, If)
    assert (kinds(branch.then), kinds(branch.orelse)) == (["SetFlag"], ["Barrier"])
    assert kinds(program) == ["For", "Quiet"]


def test_operations_carry_their_arguments(start: Start) -> None:
    p = start()
    a = Address(p.region("a", RegionKind.INPUT, 64, alignment=8, covered=True), as_expr(4))
    aic = p.role(Role.AIC)
    aic.set_flag(Pipe.FIX, 3, mode=4)
    aic.put(1, a, a, 8, mode=Mode.ADD, staging=Pipe.S)
    aic.compute("mm", "s", 2, reads=[window(a, 8, origin=Origin(p.rank, a), guard=segment_index("s") > 0)])
    flag, put, compute = p.build().programs[Role.AIC]
    assert isinstance(flag, SetFlag)
    assert (flag.mode, flag.pipe, flag.flag) == (4, Pipe.FIX, Const(3))
    assert isinstance(put, Put)
    assert (put.mode, put.staging) == (Mode.ADD, Pipe.S)
    assert isinstance(compute, Compute)
    assert (compute.read_pipe, compute.write_pipe, compute.segments) == (Pipe.MTE2, Pipe.FIX, Const(2))
    assert str(compute.reads[0].guard) == "s > 0"
    assert p.build().regions == (Region("a", RegionKind.INPUT, Const(64), 8, True),)


def test_locals_and_arrays_run_as_written(start: Start, instantiate: Callable[..., Instance]) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    aiv.store("id", 0, 3)
    aiv.store("id", 1, 5)
    toggle = aiv.let("toggle", 0)
    with aiv.loop("i", 4):
        aiv.set_flag(Pipe.MTE3, element("id", toggle))
        aiv.let("toggle", 1 - toggle)
    events = instantiate(p.build()).cores[0].events
    assert [e.raw for e in events[:-1]] == [3, 5, 3, 5]


def test_a_while_loop_ends_when_its_condition_does(
    start: Start, instantiate: Callable[..., Instance]
) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    left = aiv.let("left", 3)
    with aiv.loop_while(left > 0):
        aiv.set_flag(Pipe.MTE3, left)
        aiv.let("left", left - 1)
    assert isinstance(p.build().programs[Role.AIV][1], While)
    assert [e.raw for e in instantiate(p.build()).cores[0].events[:-1]] == [3, 2, 1]


def test_the_role_is_created_once(start: Start) -> None:
    p = start()
    assert p.role(Role.AIV) is p.role(Role.AIV)
    assert list(p.build().programs) == [Role.AIV]


# --- errors -----------------------------------------------------------------------------------


def test_ranks_and_blocks_must_be_declared() -> None:
    p = ProtocolBuilder("no parameters")
    with pytest.raises(ValueError, match="ranks and blocks"):
        p.build()
    p.parameter("ranks")
    with pytest.raises(ValueError, match="ranks and blocks"):
        p.build()


def test_a_name_is_declared_once(start: Start) -> None:
    p = start()
    p.parameter("tiles")
    p.region("tiles", RegionKind.INPUT)
    p.parameter("ranks")
    with pytest.raises(ValueError, match=r"declared twice: ranks, tiles$"):
        p.build()


def test_otherwise_must_follow_when(start: Start) -> None:
    aiv = start().role(Role.AIV)
    with pytest.raises(ValueError, match="must follow when"), aiv.otherwise():
        pass
    aiv.barrier()
    with pytest.raises(ValueError, match="must follow when"), aiv.otherwise():
        pass
    with aiv.when(1):
        aiv.barrier()
    with aiv.otherwise():
        aiv.barrier()
    with pytest.raises(ValueError, match="must follow when"), aiv.otherwise():
        pass


@pytest.mark.parametrize("step", [0, -1])
def test_steps_are_positive(start: Start, step: int) -> None:
    aiv = start().role(Role.AIV)
    with pytest.raises(ValueError, match=f"step = {step}"), aiv.loop("i", 3, step=step):
        pass


def test_a_body_must_be_closed_before_building(start: Start) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", 3), pytest.raises(ValueError, match="still open"):
        p.build()


def test_a_failing_body_leaves_no_trace(start: Start) -> None:
    p = start()
    aiv = p.role(Role.AIV)

    def failing() -> None:
        with aiv.loop("i", 3):
            aiv.barrier()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    aiv.pipe_barrier()
    assert kinds(p.build().programs[Role.AIV]) == ["PipeBarrier"]


def test_operands_are_numbers_or_expressions(start: Start) -> None:
    with pytest.raises(TypeError, match="expression or an int"):
        start().role(Role.AIV).set_flag(Pipe.MTE3, "3")  # type: ignore[arg-type]


def test_an_undeclared_region_is_refused_with_its_place(
    start: Start, instantiate: Callable[..., Instance]
) -> None:
    p = start()
    p.region("heap", RegionKind.SHARED, 64)
    aiv = p.role(Role.AIV)
    expected = line() + 1
    aiv.put(1 - p.rank, Address("heep", as_expr(0)), Address("heap", as_expr(0)), 8)
    with pytest.raises(SourceError, match="region heep is not declared") as caught:
        instantiate(p.build(), ranks=2)
    assert caught.value.span is not None
    assert caught.value.span.line == expected


def test_a_region_has_one_size_a_rank(start: Start, instantiate: Callable[..., Instance]) -> None:
    p = start()
    p.region("heap", RegionKind.SHARED, p.block * 8)
    with pytest.raises(SourceError, match="region heap may use parameters and rank only, not block"):
        instantiate(p.build())


@pytest.mark.parametrize("name", ["two words", "a-b"])
def test_a_name_that_is_no_identifier_is_refused(
    start: Start, instantiate: Callable[..., Instance], name: str
) -> None:
    def attempt() -> None:
        p = start()
        with p.role(Role.AIV).loop(name, 3) as i:
            p.role(Role.AIV).set_flag(Pipe.MTE3, i)
        instantiate(p.build())

    with pytest.raises((ValueError, Mc2proofError), match=name):  # the builder or unrolling may refuse
        attempt()


@pytest.mark.parametrize("compare", [lambda rank: rank == 0, lambda rank: rank != 0])
def test_pythons_equality_with_a_number_is_refused(start: Start, compare: Callable[[object], object]) -> None:
    """It would be a Python bool, and what it guards would vanish without a word."""
    with pytest.raises(TypeError, match=r"use \.eq"):
        compare(start().rank)


def test_a_python_bool_is_no_condition(start: Start) -> None:
    p = start()
    with pytest.raises(TypeError, match="Python bool"), p.role(Role.AIV).when(p.rank == p.block):
        p.role(Role.AIV).barrier()
