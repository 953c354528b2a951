"""The compiler from a role's program to a Python function that appends its events to a list.

Used by `unroll` only. Parameters become literals; spans are kept per generated line, so that an
error in the running function is reported at the source line that caused it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .cinteger import CType
from .errors import LimitError, ParameterError, UnsupportedError
from .evaluate import RUNTIME, Code, Compiler, Interval, Value
from .expr import Element, Expr, Var, VarKind, cast, variables
from .instance import Access, Event, Kind, assembly_name
from .profile import BarrierForm, Hold
from .program import (
    ALL_PIPES,
    Assign,
    Barrier,
    Block,
    Compute,
    For,
    If,
    Mode,
    Pipe,
    PipeBarrier,
    Protocol,
    Put,
    Quiet,
    Read,
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
    expressions,
    statements,
)
from .setup import Setup
from .templates import compiled


@dataclass(frozen=True, slots=True)
class Generated:
    """A compiled program.

    ``predicted`` bounds the events of one core; ``checked`` and ``operations`` are what the indices
    passed to the two notice functions mean; ``lines`` maps generated lines to source places.
    """

    function: Callable[..., None]
    filename: str
    predicted: int
    checked: Sequence[tuple[Span, str]]
    operations: Sequence[Statement]
    lines: Mapping[int, Span]


def mentions(program: Block, *names: str) -> bool:
    """Whether anything in ``program`` depends on one of these identities (block, sub, launch)."""
    return any(
        not isinstance(v, Element) and v.kind is VarKind.IDENTITY and v.name in names
        for statement in statements(program)
        for expr in expressions(statement)
        for v in variables(expr)
    )


def generate(
    protocol: Protocol,
    program: Block,
    role: Role,
    values: Mapping[str, Value],
    setup: Setup,
    barriers: Mapping[str, BarrierForm],
) -> Generated:
    """Compile ``program`` of ``role`` at the parameter ``values``."""
    writer = _Writer(protocol, role, values, setup, barriers)
    writer.declare_arrays(program)
    predicted = writer.block(program, 1)
    header = "def run(v_rank, v_block, v_sub, v_launch, _out, _chk, _absent, _limit):"
    text = "\n".join([header, "    _append = _out.append", *(writer.text or ["    pass"])])
    code, numbers = compiled(text)
    names: dict[str, Any] = {
        **RUNTIME, **numbers, "_item": _item, "_Event": Event, "_Access": Access, "_K": Kind, "_P": Pipe,
        "_ops": writer.operations, "_over": _over, "_unsupported": _unsupported, "_ALL": ALL_PIPES,
        "_assembly": assembly_name, "_forms": {form.name: form for form in barriers.values()},
        "_steps": _Steps, **{f"_K_{k.name}": k for k in Kind}, **{f"_P_{p.name}": p for p in Pipe},
    }  # fmt: skip
    exec(code, names)  # our own text: names are checked, values are ints
    return Generated(
        names["run"], code.co_filename, predicted, writer.checked, writer.operations, writer.lines
    )


def _item(items: tuple[int, ...], index: int) -> int:
    if not 0 <= index < len(items):
        raise IndexError(f"array index {index} is outside 0 .. {len(items) - 1}")
    return items[index]


def _over(limit: int) -> None:
    raise LimitError("max-events", limit, "the events of one core")


def _unsupported(operation: Statement, what: str) -> None:
    raise UnsupportedError(what, operation.span)


def _name_in_text(form: BarrierForm) -> str:
    """The name of the assembly of ``form``, as text of the generated function."""
    rank = "v_rank" if form.own_rank else "None"
    return f"_assembly(_forms[{form.name!r}], {rank})"


class _Steps:
    """Counts iterations of While loops, so that one without events ends as well."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def tick(self, limit: int) -> bool:
        self.left -= 1
        if self.left < 0:
            _over(limit)
        return True


class _Writer:
    """Writes the text of one function, and bounds how many events it produces."""

    def __init__(
        self,
        protocol: Protocol,
        role: Role,
        values: Mapping[str, Value],
        setup: Setup,
        barriers: Mapping[str, BarrierForm],
    ) -> None:
        ranks, blocks = values["ranks"], values["blocks"]
        assert isinstance(ranks, int)
        assert isinstance(blocks, int)
        self.protocol, self.role, self.profile, self.barriers = protocol, role, setup.profile, barriers
        subs = protocol.vectors_per_cube if role is Role.AIV else 1
        self.compiler = Compiler(
            values,
            {
                "rank": (0, ranks - 1),
                "block": (0, blocks - 1),
                "sub": (0, subs - 1),
                "launch": (0, setup.launches - 1),
            },
        )
        self.text: list[str] = []
        self.lines: dict[int, Span] = {}
        self.checked: list[tuple[Span, str]] = []
        self.operations: list[Statement] = []
        self.shared = {r.name: r.kind is RegionKind.SHARED for r in protocol.regions}
        self.fresh = itertools.count()
        self.loose: set[str] = set()  # open loops whose bounds depend on what the program assigns

    def declare_arrays(self, program: Block) -> None:
        """Write an empty local array for every array that the program assigns to."""
        for statement in statements(program):
            if isinstance(statement, Assign) and isinstance(statement.target, Element):
                name = statement.target.array
                self.line(1, f"v_{name}, d_{name} = {{}}, {{}}", statement.span)

    # --- text ---------------------------------------------------------------------------------

    def line(self, depth: int, text: str, span: Span) -> None:
        self.text.append("    " * depth + text)
        self.lines[len(self.text) + 2] = span  # two header lines

    def value(self, expr: Expr, span: Span) -> str:
        """Text for ``expr``; where it may wrap, text that also notices a wrap that matters."""
        text = self._checked(self._compile(expr, span), expr, span)
        return f"(+{text})" if expr.type is CType.BOOL else text

    def _compile(self, expr: Expr, span: Span) -> Code:
        try:
            return self.compiler.compile(expr)
        except KeyError as error:
            raise ParameterError(str(error.args[0]), None, "has no value") from error

    def _checked(self, code: Code, expr: Expr, span: Span) -> str:
        if not code.may_wrap or code.wrapped == code.exact:
            return code.wrapped
        index = len(self.checked)
        self.checked.append((span, str(expr)))
        a, b = f"_a{next(self.fresh)}", f"_b{next(self.fresh)}"
        return f"({a} if ({a} := {code.wrapped}) == ({b} := {code.exact}) else _chk({index}, {a}, {b}))"

    # --- statements ---------------------------------------------------------------------------

    def block(self, block: Block, depth: int) -> int:
        """Write ``block``; returns a bound on the events it produces."""
        before = len(self.text)
        count = sum(self.statement(statement, depth) for statement in block)
        if len(self.text) == before:
            self.text.append("    " * depth + "pass")
        return count

    def statement(self, statement: Statement, depth: int) -> int:
        match statement:
            case For():
                return self._for(statement, depth)
            case While(condition=condition, body=body, span=span):
                steps = f"_w{next(self.fresh)}"
                self.line(depth, f"{steps} = _steps(_limit)", span)
                self.line(depth, f"while {self.value(condition, span)} and {steps}.tick(_limit):", span)
                count = self.block(body, depth + 1)
                self.line(depth + 1, "if len(_out) > _limit: _over(_limit)", span)
                return count
            case If(condition=condition, then=then, orelse=orelse, span=span):
                self.line(depth, f"if {self.value(condition, span)}:", span)
                count = self.block(then, depth + 1)
                if orelse:
                    self.line(depth, "else:", span)
                    count = max(count, self.block(orelse, depth + 1))
                return count
            case Assign(target=target, value=value, span=span):
                self._assign(target, value, depth, span)
                return 0
        return self._operation(statement, depth)

    def _for(self, loop: For, depth: int) -> int:
        start = self._compile(loop.start, loop.span)
        stop = self._compile(loop.stop, loop.span)
        first = self._checked(start, loop.start, loop.span)
        last = self._checked(stop, loop.stop, loop.span)
        loose = self._is_loose(loop.start, loop.stop)  # no useful bound is known beforehand
        steps = f"_w{next(self.fresh)}"
        if loose:
            self.line(depth, f"{steps} = _steps(_limit)", loop.span)
        interval = (start.interval[0], max(start.interval[0], stop.interval[1] - 1))
        with self._open_loop(loop.index.name, interval, loose=loose) as name:
            self.line(depth, f"for {name} in range({first}, {last}, {loop.step}):", loop.span)
            if loose:
                self.line(depth + 1, f"{steps}.tick(_limit)", loop.span)
                self.line(depth + 1, "if len(_out) > _limit: _over(_limit)", loop.span)
            count = self.block(loop.body, depth + 1)
        trips = max(0, -(-(stop.interval[1] - start.interval[0]) // loop.step))
        return count if loose else trips * max(count, 1)  # an iteration without events costs as well

    def _is_loose(self, *bounds: Expr) -> bool:
        """Whether a loop bound depends on what the program assigns while it runs."""
        return any(
            v.kind is VarKind.LOCAL or (isinstance(v, Var) and v.name in self.loose)
            for bound in bounds
            for v in variables(bound)
        )

    @contextmanager
    def _open_loop(self, name: str, interval: Interval, *, loose: bool = False) -> Iterator[str]:
        """Open a loop over ``name``; yields the Python name of its index, unlike any outer one's."""
        compiler = self.compiler
        outer = (compiler.intervals.get(name), compiler.loops.get(name), name in self.loose)
        compiler.intervals[name] = interval
        compiler.loops[name] = f"v_{name}_{next(self.fresh)}"
        (self.loose.add if loose else self.loose.discard)(name)
        yield compiler.loops[name]
        del compiler.intervals[name], compiler.loops[name]
        self.loose.discard(name)
        if outer[0] is not None and outer[1] is not None:
            compiler.intervals[name], compiler.loops[name] = outer[0], outer[1]
            if outer[2]:
                self.loose.add(name)

    def _assign(self, target: Var | Element, value: Expr, depth: int, span: Span) -> None:
        code = self._compile(cast(target.type, value), span)
        if isinstance(target, Var):
            self.line(depth, f"v_{target.name}, d_{target.name} = {code.wrapped}, {code.exact}", span)
            return
        index = self._compile(target.index, span)
        self.line(depth, f"v_{target.array}[{index.wrapped}] = {code.wrapped}", span)
        self.line(depth, f"d_{target.array}[{index.wrapped}] = {code.exact}", span)

    # --- operations ---------------------------------------------------------------------------

    def _operation(self, op: Statement, depth: int) -> int:
        match op:
            case SetFlag() | WaitFlag():
                self._flag(op, depth)
            case SetEvent() | WaitEvent():
                self._intra_core(op, depth)
            case PipeBarrier(pipe=pipe):
                drains = "_ALL" if pipe is Pipe.ALL else "()"
                held = Pipe.S if pipe is Pipe.ALL else pipe
                self._emit(op, depth, Kind.PIPE_BARRIER, held, drains=drains)
            case Barrier(function=function):
                form = self.barriers[function]
                if self.role not in form.participants:
                    return 0  # returns at once (hardware.md 3)
                drains = "_ALL" if form.drains else "()"
                self._emit(op, depth, Kind.BARRIER, Pipe.S, drains=drains, barrier=_name_in_text(form))
            case Put():
                self._put(op, depth)
            case Quiet(peer=peer, span=span):
                self._emit(op, depth, Kind.QUIET, Pipe.S, peer=self.value(peer, span))
            case Read(pipe=pipe, window=window):
                self._access(op, depth, Kind.READ, pipe, window, Mode.STORE)
            case Write(pipe=pipe, window=window, mode=mode):
                self._access(op, depth, Kind.WRITE, pipe, window, mode)
            case Compute():
                return self._compute(op, depth)
            case _:
                self._refuse(op, depth, type(op).__name__)
        return 1

    def _index(self, op: Statement) -> int:
        self.operations.append(op)
        return len(self.operations) - 1

    def _refuse(self, op: Statement, depth: int, what: str) -> None:
        self.line(depth, f"_unsupported(_ops[{self._index(op)}], {what!r})", op.span)

    def _emit(self, op: Statement, depth: int, kind: Kind, pipe: Pipe, **fields: str) -> None:
        values = "".join(f", {name}={text}" for name, text in fields.items())
        head = f"_append(_Event(_K_{kind.name}, _P_{pipe.name}, _ops[{self._index(op)}]{values}))"
        self.line(depth, head, op.span)

    def _flag(self, op: SetFlag | WaitFlag, depth: int) -> None:
        reason = self._undecided_mode(op.mode)
        if reason is not None:
            self._refuse(op, depth, f"a cross-core flag of mode {op.mode}{reason}")
            return
        waits = isinstance(op, WaitFlag)
        holds_core = waits and self.profile.wait_holds is Hold.CORE
        only_mode_4 = op.pipe is Pipe.S and not waits  # devkit CrossCoreSetFlag: no set on PIPE_S
        missing = op.pipe not in self.profile.pipes[self.role] or (only_mode_4 and op.mode != 4)
        raw = self.value(op.flag, op.span)
        if missing and not holds_core:
            self.line(depth, f"_absent({self._index(op)}, {raw})", op.span)
            return
        count = len(self.profile.ids(self.role, op.mode))
        self.line(depth, f"_f = {raw}", op.span)
        kind = Kind.WAIT_FLAG if waits else Kind.SET_FLAG
        pipe = Pipe.S if holds_core else op.pipe
        self._emit(op, depth, kind, pipe, flag=f"_f % {count}", raw="_f", mode=str(op.mode))

    def _undecided_mode(self, mode: int) -> str | None:
        """Why a flag of ``mode`` is not decided here; None if it is."""
        if mode not in (0, 1, 2, 4):
            return ", which the documents do not have"
        if mode == 1 and self.role is Role.AIC:
            return " on an AIC: it is for the AIVs of one core"
        if mode == 4 and not self.profile.single_flags:
            return f" on {self.profile.name}, which has none"
        if mode == 4 and self.protocol.vectors_per_cube != 2:
            return ", which needs two AIVs per AIC"
        return None

    def _intra_core(self, op: SetEvent | WaitEvent, depth: int) -> None:
        waits = isinstance(op, WaitEvent)
        kind, pipe = (Kind.WAIT_EVENT, op.target) if waits else (Kind.SET_EVENT, op.source)
        link = f"{op.source.name}_{op.target.name}"
        raw = self.value(op.event, op.span)
        if not {op.source, op.target} <= self.profile.pipes[self.role]:
            self.line(depth, f"_absent({self._index(op)}, {raw})", op.span)
            return
        self._emit(op, depth, kind, pipe, flag=raw, raw=raw, link=repr(link))

    def _put(self, op: Put, depth: int) -> None:
        span = op.span
        self.line(depth, f"_p, _n = {self.value(op.peer, span)}, {self.value(op.bytes, span)}", span)
        self.line(depth, f"_d = {self.value(op.target.offset, span)}", span)
        self.line(depth, f"_s = {self.value(op.source.offset, span)}", span)
        source = f"_Access(v_rank, {op.source.region!r}, _s, _s + _n)"
        origin = f"(v_rank, {op.source.region!r}, _s)"
        add = op.mode is Mode.ADD
        target = f"_Access(_p, {op.target.region!r}, _d, _d + _n, {origin}, {add})"
        self._emit(
            op, depth, Kind.PUT, Pipe.S, peer="_p", reads=f"({source},)", writes=f"({target},)",
            drains="()" if op.staging is Pipe.S else f"(_P_{op.staging.name},)",
        )  # fmt: skip

    def _window(self, window: Window, depth: int, into: str, span: Span, *, add: bool, share: bool) -> None:
        """Append the access of ``window`` to list ``into``, if its guard holds."""
        guard = self.value(window.guard, span)
        if guard not in ("1", "(+1)"):
            self.line(depth, f"if {guard}:", span)
            depth += 1
        self.line(depth, f"_d = {self.value(window.address.offset, span)}", span)
        origin = "None"
        if isinstance(window.origin, ResultOrigin | SumOrigin):
            raise UnsupportedError(f"a window of origin {type(window.origin).__name__}", span)
        if window.origin is not None:
            rank = self.value(window.origin.rank, span)
            offset = self.value(window.origin.address.offset, span)
            origin = f"({rank}, {window.origin.address.region!r}, {offset})"
        region = window.address.region
        size = self.value(window.bytes, span)
        access = f"_Access(v_rank, {region!r}, _d, _d + {size}, {origin}, {add}, {share})"
        self.line(depth, f"{into}.append({access})", span)

    def _access(
        self, op: Read | Write, depth: int, kind: Kind, pipe: Pipe, window: Window, mode: Mode
    ) -> None:
        self._check_pipe(op, depth, pipe)
        self.line(depth, "_l = []", op.span)
        self._window(window, depth, "_l", op.span, add=mode is Mode.ADD, share=False)
        field = "reads" if kind is Kind.READ else "writes"
        self._emit(op, depth, kind, pipe, **{field: "tuple(_l)"})

    def _check_pipe(self, op: Statement, depth: int, pipe: Pipe) -> None:
        if pipe not in self.profile.pipes[self.role]:
            self._refuse(op, depth, f"an access on {pipe.value}, which an {self.role.name} lacks")

    def _compute(self, op: Compute, depth: int) -> int:
        span = op.span
        for pipe, windows in ((op.read_pipe, op.reads), (op.write_pipe, op.writes)):
            if windows:
                self._check_pipe(op, depth, pipe)
        segments = self._compile(op.segments, span)
        self.line(depth, "_last = ()", span)
        count = self._checked(segments, op.segments, span)
        with self._open_loop(op.segment.name, (0, max(0, segments.interval[1] - 1))) as name:
            self.line(depth, f"for {name} in range({count}):", span)
            self.line(depth + 1, "_l = []", span)
            for window in op.reads:
                self._window(window, depth + 1, "_l", span, add=False, share=False)
        self.line(depth + 1, "if _l:", span)
        self._emit(op, depth + 2, Kind.READ, op.read_pipe, reads="tuple(_l)")
        self.line(depth + 2, "_last = (len(_out) - 1,)", span)
        self.line(depth, "_l = []", span)
        for window in op.writes:
            self._window(window, depth, "_l", span, add=False, share=True)
        self._emit(op, depth, Kind.WRITE, op.write_pipe, writes="tuple(_l)", after="_last")
        return max(0, segments.interval[1]) + 1
