"""Cells: blocks, or ranks, that tell the same, so that one of each kind is enough to order and time.

A cell is a block of a rank, or a whole rank where blocks meet other than in barriers of all ranks.
Cells touch each other in such barriers only. Two cells are *alike* if their cores make the same
events but for addresses; `classes` finds that from the programs, without running them: all that an
identity (rank, block, sub) can change of control flow, flags, sizes and queues has the same value.

Lemma. Keep one cell of each class. A path of the order between two points of a kept cell that leaves
the cell runs from meeting to meeting through other cells; the kept cell of the same class has the
same path between the same meetings. So the order of the kept points, and the time at which each
happens, are those of the whole instance. What is asked of single cells (deadlock, flags, barriers,
backlog, times) is exact; rows of memory speak of addresses and need the whole. For the same reason the
reads of one opaque compute are kept as one: they follow each other on one pipe, and take no time.

Used by `sweep`; the tests compare it with whole instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..protocol.cinteger import CType
from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Element, Expr, Var, VarKind, children, variables
from ..protocol.instance import Core, Event, Instance, Kind
from ..protocol.parameters import check_values
from ..protocol.program import (
    Assign,
    Barrier,
    Block,
    Compute,
    For,
    If,
    Operation,
    Protocol,
    Put,
    Quiet,
    Read,
    Role,
    SetEvent,
    SetFlag,
    Statement,
    WaitEvent,
    WaitFlag,
    While,
    Write,
    expressions,
    statements,
)
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, Unroller

Cell = tuple[tuple[int, int], ...]
"""The (rank, block) of a cell."""

_CORE = ("rank", "block", "sub")
_Core = tuple[int, int, int]
_Named = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CellClass:
    """Cells that are alike; ``kept`` stands for all ``count`` of them."""

    kept: Cell
    count: int


class Cells:
    """Makes instances of one protocol with one cell of every class, for many values."""

    def __init__(self, protocol: Protocol, setup: Setup) -> None:
        self.protocol, self.setup = protocol, setup
        self.made: Unroller | None = None  # made at the first values: it may refuse the protocol
        self.found: dict[tuple[Value, ...], list[CellClass]] = {}
        programs = protocol.programs.values()
        told = [e for program in programs for e in (*_control(program), *_peers(program))]
        computes = [c for program in programs for c in _computes(program)]
        told += [w.guard for compute in computes for w in compute.reads]
        tainted = _tainted(protocol)
        parts = [part for e in told for part in _parts_of(e, tainted)]
        parts += [*(c.segments for c in computes), *(g for c in computes for w in c.reads for g in [w.guard])]
        used = {_name(v) for e in parts for v in variables(e)} | {"ranks", "blocks"}
        self.used = [p.name for p in protocol.parameters if p.name in used]

    def reduced(self, values: Mapping[str, Value], *, limits: Limits | None = None) -> Instance:
        """The instance with one cell of every class. Raises what `unroll` raises."""
        complete = check_values(self.protocol, values)
        keep = {place for found in self.classes(complete) for place in found.kept}
        return _with_reads_at_once(self._unroller().at(complete, limits=limits, keep=keep))

    def whole(self, values: Mapping[str, Value]) -> Instance:
        """The whole instance at complete ``values``. Raises what `unroll` raises."""
        return self._unroller().at(dict(values))

    def _unroller(self) -> Unroller:
        if self.made is None:
            self.made = Unroller(self.protocol, self.setup)
        return self.made

    def classes(self, values: Mapping[str, Value]) -> list[CellClass]:
        """`classes` at complete ``values``."""
        key = tuple(values[name] for name in self.used)
        if key not in self.found:
            self.found[key] = classes(self.protocol, values, self.setup)
        return self.found[key]


def _with_reads_at_once(instance: Instance) -> Instance:
    """``instance`` with one read for those of an opaque compute: nothing comes between them."""
    shorter: dict[int, tuple[Event, ...]] = {}
    for core in instance.cores:
        if id(core.events) not in shorter:
            shorter[id(core.events)] = _reads_at_once(core.events)
    return replace(instance, cores=tuple(Core(c.id, shorter[id(c.events)]) for c in instance.cores))


def _reads_at_once(events: Sequence[Event]) -> tuple[Event, ...]:
    kept: list[Event] = []
    now: list[int] = []  # the new number of each event
    reading: Operation | None = None  # the compute whose last read is the last of ``kept``
    for event in events:
        if event.kind is Kind.READ and event.operation is reading:
            kept[-1] = event
        else:
            reads = event.kind is Kind.READ and isinstance(event.operation, Compute)
            reading = event.operation if reads else None
            if event.after:
                event = event._replace(after=tuple(now[number] for number in event.after))
            kept.append(event)
        now.append(len(kept) - 1)
    return tuple(kept)


def classes(protocol: Protocol, values: Mapping[str, Value], setup: Setup) -> list[CellClass]:
    """The classes of cells, in order of their first; ``values`` are complete."""
    identify = _Identity(protocol, values)
    found: dict[object, list[Cell]] = {}
    for cell in _cells(protocol, values, setup, identify):
        found.setdefault(identify.of(cell), []).append(cell)
    return [CellClass(cells[0], len(cells)) for cells in found.values()]


def _cells(
    protocol: Protocol, values: Mapping[str, Value], setup: Setup, identify: _Identity
) -> Iterator[Cell]:
    ranks, blocks = _number(values, "ranks"), _number(values, "blocks")
    if _blocks_are_apart(protocol, setup) and identify.queues_are_apart():
        yield from (((rank, block),) for rank in range(ranks) for block in range(blocks))
    else:
        yield from (tuple((rank, block) for block in range(blocks)) for rank in range(ranks))


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def _blocks_are_apart(protocol: Protocol, setup: Setup) -> bool:
    """Whether blocks of a rank meet in barriers of all ranks only."""
    if setup.launches > 1:  # the cores of a rank meet between two
        return False
    for statement in _all_statements(protocol):
        if isinstance(statement, SetFlag) and statement.mode == 0:
            return False
        if isinstance(statement, Barrier):
            forms = setup.profile.barriers.get(statement.function, {})
            if any(form.own_rank for form in forms.values()):
                return False
    return True


def _all_statements(protocol: Protocol) -> Iterator[Statement]:
    for program in protocol.programs.values():
        yield from statements(program)


class _Identity:
    """What the identities of cores change at given parameters."""

    def __init__(self, protocol: Protocol, values: Mapping[str, Value]) -> None:
        self.values = values
        self.subs = {Role.AIV: protocol.vectors_per_cube, Role.AIC: 1}
        self.programs = protocol.programs
        self.tainted = _tainted(protocol)
        self.control = {role: self._parts(_control(program)) for role, program in protocol.programs.items()}
        self.computes = {role: _computes(program) for role, program in protocol.programs.items()}
        self.peers = {role: list(_peers(program)) for role, program in protocol.programs.items()}
        self.memory: dict[object, object] = {}
        self.uses: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.patterns: dict[tuple[bool, ...], int] = {}

    def of(self, cell: Cell) -> object:
        """Equal for cells that are alike."""
        cores = [
            (role, (rank, block, sub))
            for rank, block in cell
            for role in self.programs
            for sub in range(self.subs[role])
        ]
        numbers: dict[object, int] = {}  # queues by the order in which they are named
        queues = [numbers.setdefault(peer, len(numbers)) for c in cores for peer in self._queues(*c)]
        return (*(self._core(*core) for core in cores), tuple(queues))

    def queues_are_apart(self) -> bool:
        """Whether no queue is used by two blocks of a rank, so far as can be told beforehand."""
        users: dict[tuple[int, object], int] = {}
        for role, peers in self.peers.items():
            for peer in peers:
                if not _is_fixed(peer):
                    return False
                for rank in range(_number(self.values, "ranks")):
                    for block in range(_number(self.values, "blocks")):
                        for sub in range(self.subs[role]):
                            queue = (rank, self._value(peer, (rank, block, sub)))
                            if users.setdefault(queue, block) != block:
                                return False
        return True

    def _core(self, role: Role, core: _Core) -> object:
        parts = tuple(self._value(part, core) for part in self.control[role])
        return parts, tuple(self._read_segments(compute, core) for compute in self.computes[role])

    def _queues(self, role: Role, core: _Core) -> Iterator[object]:
        for peer in self.peers[role]:
            # a peer that changes on the way: nothing is known, no other core is like this one
            yield self._value(peer, core) if _is_fixed(peer) else core

    def _parts(self, found: Iterable[Expr]) -> list[Expr]:
        """The largest parts of expressions that depend on identities (and parameters) alone."""
        parts: dict[Expr, None] = {}
        for expr in found:
            for part in _parts_of(expr, self.tainted):
                parts.setdefault(part)
        return list(parts)

    def _value(self, expr: Expr, core: _Core) -> object:
        return self._remembered(expr, self._named([expr], core))

    def _named(self, found: Sequence[Expr], core: _Core) -> _Named:
        """Those identities of ``core`` that one of ``found`` uses, which stay alive as long as this does."""
        key = tuple(map(id, found))
        if key not in self.uses:
            used = {_name(v) for expr in found for v in variables(expr)}
            self.uses[key] = tuple(i for i, name in enumerate(_CORE) if name in used)
        return tuple((_CORE[i], core[i]) for i in self.uses[key])

    def _remembered(self, expr: Expr, named: _Named) -> object:
        key = (id(expr), named)
        if key not in self.memory:
            try:
                self.memory[key] = evaluate(expr, {**self.values, **dict(named)})
            except (ZeroDivisionError, ValueError, IndexError) as error:
                self.memory[key] = type(error).__name__  # not computed where the program guards it
        return self.memory[key]

    def _read_segments(self, compute: Compute, core: _Core) -> object:
        """In which segments ``compute`` reads anything; the identity where that is not known."""
        guards = [window.guard for window in compute.reads]
        inner = {compute.segment.name}
        unknown = any(not _is_known(v) and _name(v) not in inner for g in guards for v in variables(g))
        if unknown or not _is_fixed(compute.segments):
            return core if self._parts([*guards, compute.segments]) else None
        named = self._named([*guards, compute.segments], core)
        key = (id(compute), named)
        if key not in self.memory:
            self.memory[key] = self._segments(compute, guards, named)
        return self.memory[key]

    def _segments(self, compute: Compute, guards: Sequence[Expr], named: _Named) -> object:
        count = self._remembered(compute.segments, named)
        if not isinstance(count, int):
            return named
        read = tuple(
            any(self._remembered(guard, (*named, (compute.segment.name, s))) for guard in guards)
            for s in range(count)
        )
        return self.patterns.setdefault(read, len(self.patterns))


_ITSELF: tuple[Expr, ...] = tuple(Var(name, CType.I64, VarKind.IDENTITY) for name in _CORE)


def _parts_of(expr: Expr, tainted: frozenset[str]) -> Iterator[Expr]:
    """The largest parts of ``expr`` that depend on identities (and parameters) alone."""
    used = list(variables(expr))
    if any(_name(v) in tainted for v in used):
        yield from _ITSELF
    elif any(isinstance(v, Var) and _is_core(v) for v in used):
        if _is_fixed(expr):
            yield expr
        else:
            for inner in children(expr):
                yield from _parts_of(inner, tainted)


def _is_fixed(expr: Expr) -> bool:
    """Whether ``expr`` has one value throughout a core's program."""
    return all(map(_is_known, variables(expr)))


def _is_known(v: Var | Element) -> bool:
    return v.kind is VarKind.PARAMETER or (isinstance(v, Var) and _is_core(v))


def _is_core(v: Var) -> bool:
    return v.kind is VarKind.IDENTITY and v.name in _CORE


def _name(v: Var | Element) -> str:
    return v.array if isinstance(v, Element) else v.name


def _control(program: Block) -> Iterator[Expr]:
    """The expressions that decide which events there are, and how long they last."""
    for statement in statements(program):
        match statement:
            case For(start=start, stop=stop):
                yield from (start, stop)
            case While(condition=condition) | If(condition=condition):
                yield condition
            case SetFlag(flag=flag) | WaitFlag(flag=flag):
                yield flag
            case SetEvent(event=event) | WaitEvent(event=event):
                yield event
            case Put(bytes=size):
                yield size
            case Read(window=window) | Write(window=window):
                yield from (window.guard, window.bytes)
            case Compute(segments=segments):
                yield segments


def _peers(program: Block) -> Iterator[Expr]:
    return (s.peer for s in statements(program) if isinstance(s, Put | Quiet))


def _computes(program: Block) -> list[Compute]:
    return [s for s in statements(program) if isinstance(s, Compute)]


def _tainted(protocol: Protocol) -> frozenset[str]:
    """Names that the programs assign what may depend on an identity."""
    tainted: set[str] = set()
    assigns = [s for s in _all_statements(protocol) if isinstance(s, Assign)]
    size = -1
    while len(tainted) > size:
        size = len(tainted)
        for statement in assigns:
            used = [v for e in expressions(statement) for v in variables(e)]
            if any((isinstance(v, Var) and _is_core(v)) or _name(v) in tainted for v in used):
                tainted.add(_name(statement.target))
    return frozenset(tainted)
