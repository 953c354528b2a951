"""Writing a protocol in Python: a `ProtocolBuilder`, and a `RoleBuilder` per kind of core.

Statements are recorded in the order of the calls; loops and branches are ``with`` blocks. Spans
point at the caller's line. See `builtin` for a whole protocol written this way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .cinteger import CType
from .expr import Const, Element, Expr, Operand, Var, VarKind, as_expr, cast
from .program import (
    Address,
    Assign,
    Assumption,
    Barrier,
    Block,
    Compute,
    For,
    If,
    Mode,
    Operation,
    Origin,
    Parameter,
    Pipe,
    PipeBarrier,
    Protocol,
    Put,
    Quiet,
    Read,
    Region,
    RegionKind,
    ResultOrigin,
    Role,
    SetEvent,
    SetFlag,
    Span,
    Statement,
    SumOrigin,
    WaitEvent,
    WaitFlag,
    While,
    Window,
    Write,
)

_HERE = __file__


def _caller() -> Span:
    """The place of the nearest frame outside this module (and outside contextlib)."""
    frame = sys._getframe(1)
    skipped = (_HERE, contextmanager.__code__.co_filename)
    while frame.f_code.co_filename in skipped and frame.f_back is not None:
        frame = frame.f_back
    return Span(_shown(frame.f_code.co_filename), frame.f_lineno)


def _shown(filename: str) -> str:
    """``filename`` relative to the working directory where it lies below it, else its last two parts."""
    path = Path(filename)
    if path.parent == Path(__file__).parent:
        return f"mc2proof/protocol/{path.name}"  # wherever the package is installed
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(Path(*path.parts[-2:]))


def _condition(value: Operand) -> Expr:
    """``value`` as a condition. Raises TypeError for a Python bool: a comparison that was lost."""
    if isinstance(value, bool):
        raise TypeError(
            f"{value} is a Python bool, not a condition: use .eq(...), .ne(...), both(), either()"
        )
    return cast(CType.BOOL, value)


def window(
    address: Address,
    size: Operand,
    *,
    origin: Origin | ResultOrigin | SumOrigin | None = None,
    guard: Operand = Const(1, CType.BOOL),
) -> Window:
    """A window of ``size`` bytes, present where ``guard`` holds."""
    return Window(address, as_expr(size), origin, _condition(guard))


class ProtocolBuilder:
    """Collects parameters, regions and programs; `build` returns the immutable Protocol."""

    def __init__(self, name: str, *, vectors_per_cube: int = 1) -> None:
        self.name = name
        self.vectors_per_cube = vectors_per_cube
        self.rank: Expr = Var("rank", CType.I64, VarKind.IDENTITY)
        self.block: Expr = Var("block", CType.I64, VarKind.IDENTITY)
        self.sub: Expr = Var("sub", CType.I64, VarKind.IDENTITY)
        self.launch: Expr = Var("launch", CType.I64, VarKind.IDENTITY)
        self._parameters: list[Parameter] = []
        self._regions: list[Region] = []
        self._roles: dict[Role, RoleBuilder] = {}
        self._assumptions: list[Assumption] = []
        self._file = _caller().file

    def parameter(
        self,
        name: str,
        *,
        low: int = 0,
        high: int | None = None,
        default: Operand | None = None,
        meaning: str = "",
    ) -> Expr:
        """Declare a parameter and return its variable; ``ranks`` and ``blocks`` must be declared."""
        plain = default if default is None or isinstance(default, int) else as_expr(default)
        self._parameters.append(Parameter(name, low, high, plain, CType.I64, meaning))
        return Var(name, CType.I64, VarKind.PARAMETER)

    def region(
        self,
        name: str,
        kind: RegionKind,
        size: Operand | None = None,
        *,
        alignment: int | None = None,
        covered: bool = False,
    ) -> str:
        """Declare a memory region of ``size`` bytes on every rank; returns its name."""
        extent = None if size is None else as_expr(size)
        self._regions.append(Region(name, kind, extent, alignment, covered))
        return name

    def assume(self, code: str, text: str) -> None:
        """State something that every verdict rests on."""
        self._assumptions.append(Assumption(code, text))

    def role(self, role: Role) -> RoleBuilder:
        """The program of ``role``; created empty at the first call."""
        return self._roles.setdefault(role, RoleBuilder())

    def build(self) -> Protocol:
        """The protocol. Raises ValueError if ranks or blocks is not declared, or a name is twice."""
        names = [p.name for p in self._parameters] + [r.name for r in self._regions]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"declared twice: {', '.join(twice)}")
        if not {"ranks", "blocks"} <= set(names):
            raise ValueError("a protocol needs the parameters ranks and blocks")
        return Protocol(
            self.name,
            tuple(self._parameters),
            tuple(self._regions),
            {role: self._roles[role].block() for role in Role if role in self._roles},
            self.vectors_per_cube,
            tuple(self._assumptions),
            (self._file,),
            (self.name,),
        )


class RoleBuilder:
    """Records the statements of one role's program."""

    def __init__(self) -> None:
        self._open: list[list[Statement]] = [[]]

    def block(self) -> Block:
        """Everything recorded so far."""
        if len(self._open) != 1:
            raise ValueError("a loop or branch is still open")
        return tuple(self._open[0])

    def add(self, operation: Statement) -> None:
        """Record a statement made by hand."""
        self._open[-1].append(operation)

    def _add(self, operation: Operation) -> None:
        self._open[-1].append(operation)

    @contextmanager
    def _body(self) -> Iterator[list[Statement]]:
        body: list[Statement] = []
        self._open.append(body)
        try:
            yield body
        finally:
            self._open.pop()

    @contextmanager
    def loop(self, name: str, stop: Operand, *, start: Operand = 0, step: int = 1) -> Iterator[Expr]:
        """``for name in range(start, stop, step)``; yields the index."""
        if step < 1:
            raise ValueError(f"step = {step}: must be positive")
        span = _caller()
        index = Var(name, CType.I64, VarKind.LOOP)
        with self._body() as body:
            yield index
        self.add(For(index, as_expr(start), as_expr(stop), step, tuple(body), span))

    @contextmanager
    def loop_while(self, condition: Operand) -> Iterator[None]:
        """Repeat while ``condition`` holds."""
        span = _caller()
        with self._body() as body:
            yield
        self.add(While(_condition(condition), tuple(body), span))

    @contextmanager
    def when(self, condition: Operand) -> Iterator[None]:
        """Run the body if ``condition`` holds."""
        span = _caller()
        with self._body() as body:
            yield
        self.add(If(_condition(condition), tuple(body), (), span))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else branch of the `when` just before. Raises ValueError if there is none."""
        before = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(before, If) or before.orelse:
            raise ValueError("otherwise() must follow when()")
        with self._body() as body:
            yield
        self._open[-1][-1] = If(before.condition, before.then, tuple(body), before.span)

    def let(self, name: str, value: Operand) -> Expr:
        """Assign a local scalar and return its variable."""
        target = Var(name, CType.I64, VarKind.LOCAL)
        self.add(Assign(target, as_expr(value), _caller()))
        return target

    def store(self, array: str, index: Operand, value: Operand) -> None:
        """Assign an element of a small local array; read it with ``element``."""
        target = Element(array, as_expr(index), CType.I64, VarKind.LOCAL)
        self.add(Assign(target, as_expr(value), _caller()))

    def set_flag(self, pipe: Pipe, flag: Operand, *, mode: int = 2) -> None:
        """CrossCoreSetFlag."""
        self._add(SetFlag(mode, pipe, as_expr(flag), _caller()))

    def wait_flag(self, pipe: Pipe, flag: Operand, *, mode: int = 2) -> None:
        """CrossCoreWaitFlag."""
        self._add(WaitFlag(mode, pipe, as_expr(flag), _caller()))

    def set_event(self, source: Pipe, target: Pipe, event: Operand) -> None:
        """SetFlag<HardEvent::source_target>."""
        self._add(SetEvent(source, target, as_expr(event), _caller()))

    def wait_event(self, source: Pipe, target: Pipe, event: Operand) -> None:
        """WaitFlag<HardEvent::source_target>."""
        self._add(WaitEvent(source, target, as_expr(event), _caller()))

    def pipe_barrier(self, pipe: Pipe = Pipe.ALL) -> None:
        """PipeBarrier."""
        self._add(PipeBarrier(pipe, _caller()))

    def barrier(self, function: str = "aclshmem_barrier_all") -> None:
        """A barrier over all ranks."""
        self._add(Barrier(function, _caller()))

    def put(
        self,
        peer: Operand,
        target: Address,
        source: Address,
        size: Operand,
        *,
        mode: Mode = Mode.STORE,
        staging: Pipe = Pipe.MTE3,
    ) -> None:
        """A non-blocking put of ``size`` bytes to ``peer``."""
        self._add(Put(as_expr(peer), target, source, as_expr(size), _caller(), mode, staging))

    def quiet(self, peer: Operand) -> None:
        """Wait for all of this rank's requests to ``peer``."""
        self._add(Quiet(as_expr(peer), _caller()))

    def read(self, pipe: Pipe, what: Window) -> None:
        """Read a window on ``pipe``."""
        self._add(Read(pipe, what, _caller()))

    def write(self, pipe: Pipe, what: Window, *, mode: Mode = Mode.STORE) -> None:
        """Write a window on ``pipe``."""
        self._add(Write(pipe, what, _caller(), mode))

    def compute(
        self,
        contract: str,
        segment: str,
        segments: Operand,
        *,
        reads: Sequence[Window],
        writes: Sequence[Window] = (),
        read_pipe: Pipe = Pipe.MTE2,
        write_pipe: Pipe = Pipe.FIX,
    ) -> None:
        """An opaque call; windows use `segment_index(segment)` for the index of the segment."""
        self._add(
            Compute(
                contract, _segment(segment), as_expr(segments), tuple(reads), tuple(writes),
                read_pipe, write_pipe, _caller(),
            )
        )  # fmt: skip


def _segment(name: str) -> Var:
    return Var(name, CType.I64, VarKind.LOOP)


def segment_index(name: str) -> Expr:
    """The variable that a Compute's windows use for the index of the segment."""
    return _segment(name)


def element(array: str, index: Operand) -> Expr:
    """``array[index]`` of a small local array."""
    return Element(array, as_expr(index), CType.I64, VarKind.LOCAL)
