"""Sites: the operations of a program where they stand, with the loops and guards around them.

A site stands for all events that it makes on all cores, in all iterations. Order inside a core is known
from where two sites stand and from their iterations alone. What the parametric engine cannot follow,
assignments, unbounded loops, operations without a meaning yet, is refused here with its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...protocol.cinteger import CType
from ...protocol.errors import UnsupportedError
from ...protocol.expr import Const, Expr, Var, VarKind, binary
from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER, BarrierForm, Hold
from ...protocol.program import (
    ALL_PIPES,
    Barrier,
    Block,
    Compute,
    For,
    If,
    Operation,
    Pipe,
    PipeBarrier,
    Protocol,
    Put,
    Quiet,
    Read,
    Role,
    SetFlag,
    Span,
    Statement,
    WaitFlag,
    Window,
    Write,
)
from ...protocol.setup import Setup
from .formula import FALSE, TRUE, Formula, both, either, equal, less
from .polynomial import Poly

_ABSENT_MODE = 2
"""The mode of flags that are followed for all values."""

LAUNCHES = "launches"
"""The name of the number of launches where it is a symbol, and of nothing in a program."""


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop; its index is ``start + step * turn`` for turns from 0. Compared by identity."""

    index: str
    start: Expr
    stop: Expr
    step: int
    span: Span


@dataclass(frozen=True, slots=True)
class Guard:
    """``condition`` must be ``wanted``; it stands within the first ``depth`` loops of its site."""

    condition: Expr
    wanted: bool
    depth: int
    span: Span


@dataclass(frozen=True, slots=True)
class Step:
    """One level of a path: the place among its neighbours, and the loop that it is, if it is one."""

    position: int
    loop: Loop | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Where events of one kind are made. Compared by identity.

    ``windows`` are what a read or write touches (a put's are in its operation), ``share`` says that blocks
    share them; ``barrier`` is the form of a barrier, ``after`` the site that a write comes after.
    """

    number: int
    role: Role
    kind: Kind
    pipe: Pipe
    path: tuple[Step, ...]
    guards: tuple[Guard, ...]
    span: Span
    operation: Operation | None = None
    drains: tuple[Pipe, ...] = ()
    windows: tuple[Window, ...] = ()
    barrier: BarrierForm | None = None
    share: bool = False
    after: int | None = None

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around it, outermost first."""
        return tuple(step.loop for step in self.path if step.loop is not None)

    def __str__(self) -> str:
        return f"{self.kind.value} at {self.span.place}"


@dataclass(slots=True)
class _Walk:
    """Collects the sites of one role."""

    protocol: Protocol
    setup: Setup
    role: Role
    forms: Mapping[str, BarrierForm]
    sites: list[Site]
    path: list[Step] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    absent: list[Site] = field(default_factory=list)

    def block(self, block: Block, first: int = 0) -> int:
        """Walk ``block``, whose statements get places from ``first``; returns the next free place."""
        for position, statement in enumerate(block, first):
            self.statement(statement, position)
        return first + len(block)

    def statement(self, statement: Statement, position: int) -> None:
        match statement:
            case For(index=index, start=start, stop=stop, step=step, body=body, span=span):
                self.path.append(Step(position, Loop(index.name, start, stop, step, span)))
                self.block(body)
                self.path.pop()
            case If(condition=condition, then=then, orelse=orelse, span=span):
                self.path.append(Step(position))
                depth = sum(step.loop is not None for step in self.path)
                self.guards.append(Guard(condition, True, depth, span))
                following = self.block(then)
                self.guards[-1] = Guard(condition, False, depth, span)
                self.block(orelse, following)
                self.guards.pop()
                self.path.pop()
            case _:
                self.operation(statement, position)

    def operation(self, op: Statement, position: int) -> None:
        pipes = self.setup.profile.pipes[self.role]
        match op:
            case SetFlag(pipe=pipe) | WaitFlag(pipe=pipe):
                waits = isinstance(op, WaitFlag)
                holds_core = waits and self.setup.profile.wait_holds is Hold.CORE
                if pipe not in pipes and not holds_core and op.mode == _ABSENT_MODE:
                    self.leave_out(op, position)
                    return
                if pipe not in pipes or pipe is Pipe.S:
                    raise UnsupportedError(
                        f"a flag on {pipe.value} of an {self.role.name}, for all values,", op.span
                    )
                kind = Kind.WAIT_FLAG if waits else Kind.SET_FLAG
                self.add(kind, Pipe.S if holds_core else pipe, op, position)
            case PipeBarrier(pipe=pipe):
                drains: tuple[Pipe, ...] = ALL_PIPES if pipe is Pipe.ALL else ()
                held = Pipe.S if pipe is Pipe.ALL else pipe
                self.add(Kind.PIPE_BARRIER, held, op, position, drains=drains)
            case Barrier(function=function):
                form = self.forms[function]
                if self.role in form.participants:
                    drains = ALL_PIPES if form.drains else ()
                    self.add(Kind.BARRIER, Pipe.S, op, position, drains=drains, barrier=form)
            case Put(staging=staging):
                drains = () if staging is Pipe.S else (staging,)
                self.add(Kind.PUT, Pipe.S, op, position, drains=drains)
            case Quiet():
                self.add(Kind.QUIET, Pipe.S, op, position)
            case Read(pipe=pipe, window=window):
                self.add(Kind.READ, pipe, op, position, windows=(window,))
            case Write(pipe=pipe, window=window):
                self.add(Kind.WRITE, pipe, op, position, windows=(window,))
            case Compute():
                self.compute(op, position)
            case _:
                raise UnsupportedError(f"{_name(op)} for all values", op.span)

    def leave_out(self, op: SetFlag | WaitFlag, position: int) -> None:
        """A set or wait that compiles to nothing, as the core lacks its pipe."""
        kind = Kind.WAIT_FLAG if isinstance(op, WaitFlag) else Kind.SET_FLAG
        path = (*self.path, Step(position))
        self.absent.append(
            Site(len(self.absent), self.role, kind, op.pipe, path, tuple(self.guards), op.span, op)
        )

    def compute(self, op: Compute, position: int) -> None:
        """All reads segment by segment, then the write."""
        self.path.append(Step(position))
        segments = Loop(op.segment.name, Const(0, op.segments.type), op.segments, 1, op.span)
        self.path.append(Step(0, segments))
        self.add(Kind.READ, op.read_pipe, op, 0, windows=op.reads)
        self.path.pop()
        self.add(Kind.WRITE, op.write_pipe, op, 1, windows=op.writes, share=True, after=len(self.sites) - 1)
        self.path.pop()

    def add(
        self, kind: Kind, pipe: Pipe, op: Operation | None, position: int, *,
        span: Span | None = None, drains: tuple[Pipe, ...] = (), windows: tuple[Window, ...] = (),
        barrier: BarrierForm | None = None, share: bool = False, after: int | None = None,
    ) -> None:  # fmt: skip
        place = op.span if op is not None else span
        assert place is not None
        self.sites.append(
            Site(
                len(self.sites),
                self.role,
                kind,
                pipe,
                (*self.path, Step(position)),
                tuple(self.guards),
                place,
                op,
                drains,
                windows,
                barrier,
                share,
                after,
            )
        )


def _name(op: object) -> str:
    return type(op).__name__


def sites_of(
    protocol: Protocol,
    setup: Setup,
    forms: Mapping[str, BarrierForm],
    roles: Iterator[Role] | tuple[Role, ...],
) -> list[Site]:
    """The sites of ``protocol``, role by role in program order, without `absent_of`.

    Every launch is one turn of an outermost loop: the program, its end, and the meeting of the rank's
    cores before the next launch. Raises UnsupportedError for what cannot be followed for all values.
    """
    return _walked(protocol, setup, forms, roles)[0]


def absent_of(
    protocol: Protocol, setup: Setup, forms: Mapping[str, BarrierForm], roles: tuple[Role, ...]
) -> list[Site]:
    """Sets and waits that compile to nothing: their core lacks the pipe. Numbered behind the sites.

    C computes their guards and ids all the same.
    """
    sites, absent = _walked(protocol, setup, forms, roles)
    return [replace(site, number=len(sites) + place) for place, site in enumerate(absent)]


def _walked(
    protocol: Protocol, setup: Setup, forms: Mapping[str, BarrierForm],
    roles: Iterator[Role] | tuple[Role, ...],
) -> tuple[list[Site], list[Site]]:  # fmt: skip
    """The sites, and what compiles to nothing."""
    sites: list[Site] = []
    absent: list[Site] = []
    nowhere = Span("<launch>", 0)
    count = Var(LAUNCHES, CType.I64, VarKind.PARAMETER)
    launch = Var("launch", CType.I64, VarKind.IDENTITY)
    for role in roles:
        walk = _Walk(protocol, setup, role, forms, sites)
        walk.path.append(Step(0, Loop("launch", Const(0), count, 1, nowhere)))
        last = walk.block(protocol.programs.get(role, ()))
        walk.add(Kind.END, Pipe.S, None, last, span=nowhere, drains=ALL_PIPES)
        walk.guards.append(Guard(binary("<", launch, count - 1), True, 1, nowhere))
        walk.add(Kind.BARRIER, Pipe.S, None, last + 1, span=nowhere, barrier=STREAM_ORDER)
        absent += walk.absent
    return sites, absent


def common_loops(a: Site, b: Site) -> int:
    """How many loops, from the outermost, both are in."""
    count = 0
    for x, y in zip(a.loops, b.loops, strict=False):
        if x is not y:
            break
        count += 1
    return count


def comes_first(
    a: tuple[Step, ...], b: tuple[Step, ...], turns: tuple[Poly, ...], others: tuple[Poly, ...]
) -> Formula:
    """Whether an event at path ``a`` in ``turns`` is before one at ``b`` in ``others``, on one core."""
    if not a or not b:
        return FALSE
    here, there = a[0], b[0]
    if here.position != there.position:
        return TRUE if here.position < there.position else FALSE
    if here.loop is None:
        return comes_first(a[1:], b[1:], turns, others)
    inner = comes_first(a[1:], b[1:], turns[1:], others[1:])
    return either(less(turns[0], others[0]), both(equal(turns[0], others[0]), inner))


def stands_before(a: Site, b: Site) -> bool:
    """Whether, in one turn of the loops that both are in, ``a`` stands before ``b``, or is ``b``."""
    for x, y in zip(a.path, b.path, strict=False):
        if x.position != y.position:
            return x.position < y.position
        if x.loop is not y.loop:
            break
    return True


def follows_on_pipe(first: Site, then: Site) -> bool:
    """Whether, of two events of one core in program order, the second waits for the first.

    `protocol.order`: nothing of the core waits for a set to take effect; the scalar is before all that it
    issues; a scalar event waits for the pipes that it drains.
    """
    if first.kind is Kind.SET_FLAG:
        return False
    if first.pipe in (then.pipe, Pipe.S):
        return True
    return then.pipe is Pipe.S and first.pipe in then.drains
