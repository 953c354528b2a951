"""The program form: what a front end produces and everything else starts from.

A `Protocol` has parameters, memory regions and one program a role; a program is a tuple of
statements. Operations are data: one sentence each and the rule's source. Newcomers start here,
then read `unroll` (programs to events) and `machine` (what events do).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

from .cinteger import CType
from .expr import Const, Element, Expr, Var, grouped


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source: file, line and column (from 1), and the call sites it was inlined through."""

    file: str
    line: int
    column: int = 1
    calls: tuple[Span, ...] = ()

    @property
    def place(self) -> str:
        """``file:line``, as editors and compilers write it."""
        return f"{self.file}:{self.line}"


class Role(Enum):
    """Which kind of core runs a program."""

    AIV = "vector core"
    AIC = "cube core"


class Pipe(Enum):
    """The instruction queues of a core (hardware.md 1). S runs the program; ALL is every queue."""

    S = "PIPE_S"
    V = "PIPE_V"
    M = "PIPE_M"
    MTE1 = "PIPE_MTE1"
    MTE2 = "PIPE_MTE2"
    MTE3 = "PIPE_MTE3"
    FIX = "PIPE_FIX"
    ALL = "PIPE_ALL"


ALL_PIPES = (Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX)
"""Every queue that the scalar feeds: what PIPE_ALL stands for in a drain."""


class Mode(Enum):
    """How a write combines with what is there."""

    STORE = "store"
    ADD = "add"


class RegionKind(Enum):
    """Who can reach a memory region."""

    SHARED = "symmetric heap: the same offset names a place on every rank"
    INPUT = "a rank's own input, written by nobody"
    OUTPUT = "a rank's own output"
    PRIVATE = "a rank's own scratch memory"


@dataclass(frozen=True, slots=True)
class Address:
    """A byte offset into a region; of the running core's rank unless the operation names a peer."""

    region: str
    offset: Expr

    def __str__(self) -> str:
        if isinstance(self.offset, Const) and self.offset.value == 0:
            return self.region
        return f"{self.region} + {grouped(self.offset)}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the bytes of a window must come from: ``rank``'s input at ``address``."""

    rank: Expr
    address: Address

    def __str__(self) -> str:
        return f"{self.address} of rank {self.rank}"


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The bytes must be what compute ``contract`` wrote. Not decided yet: UNSUPPORTED by name."""

    contract: str


@dataclass(frozen=True, slots=True)
class SumOrigin:
    """The bytes must be the sum of several origins. Not decided yet: UNSUPPORTED by name."""

    parts: tuple[Origin | ResultOrigin, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """``bytes`` bytes at ``address`` while ``guard`` holds; for reads, the origin they must have."""

    address: Address
    bytes: Expr
    origin: Origin | ResultOrigin | SumOrigin | None = None
    guard: Expr = Const(1, CType.BOOL)


# --- operations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetFlag:
    """Add one to the receiving core's counter ``flag`` once ``pipe``'s earlier instructions are done.

    It takes effect at any time after them; later instructions do not wait for it
    (hardware.md 2, CrossCoreSetFlag).
    """

    mode: int
    pipe: Pipe
    flag: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class WaitFlag:
    """Take one from this core's counter ``flag``; hold ``pipe`` while the counter is 0.

    ascend950 holds only ``pipe``, atlas-a2 the whole core (hardware.md 2, CrossCoreWaitFlag).
    """

    mode: int
    pipe: Pipe
    flag: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class SetEvent:
    """Set one-bit event ``event`` between two pipes of this core, after ``source``'s earlier work."""

    source: Pipe
    target: Pipe
    event: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """Hold pipe ``target`` until event ``event`` is set, then clear it (hardware.md 1)."""

    source: Pipe
    target: Pipe
    event: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class PipeBarrier:
    """Hold ``pipe`` until its earlier instructions finish; ALL holds the scalar for every queue."""

    pipe: Pipe
    span: Span


@dataclass(frozen=True, slots=True)
class Barrier:
    """Meet all participants of ``function`` on all ranks (hardware.md 3).

    Who takes part, and whether the pipes are drained first, is the profile's barrier table.
    """

    function: str
    span: Span


@dataclass(frozen=True, slots=True)
class Arrive:
    """Arrive at split-phase barrier ``name`` without waiting."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class AwaitPhase:
    """Wait until split-phase barrier ``name`` has left the phase of parity ``parity``."""

    name: str
    parity: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Put:
    """Copy ``bytes`` bytes from ``source`` here to ``target`` on ``peer``, asynchronously.

    Reads the source and writes the target from issue until complete, no later than a `Quiet`.
    ``staging`` is the pipe whose earlier instructions the scalar waits for before it posts:
    MTE3 by default, S for none (hardware.md 4).
    """

    peer: Expr
    target: Address
    source: Address
    bytes: Expr
    span: Span
    mode: Mode = Mode.STORE
    staging: Pipe = Pipe.MTE3


@dataclass(frozen=True, slots=True)
class Get:
    """Copy ``bytes`` bytes from ``source`` on ``peer`` to ``target`` here, asynchronously."""

    peer: Expr
    target: Address
    source: Address
    bytes: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class PutSignal:
    """A `Put` that also writes a 64-bit word at the peer, with the payload (hardware.md 4)."""

    peer: Expr
    target: Address
    source: Address
    bytes: Expr
    word: Address
    value: Expr
    mode: Mode
    span: Span


@dataclass(frozen=True, slots=True)
class Quiet:
    """Wait until all requests this rank ever posted to ``peer`` have arrived (hardware.md 4)."""

    peer: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Fence:
    """Order this rank's requests to ``peer``: later ones land after earlier ones."""

    peer: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Signal:
    """Set, or atomically add to, a word at ``peer`` (hardware.md 4, signal_op)."""

    peer: Expr
    word: Address
    value: Expr
    mode: Mode
    span: Span


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Spin until the word compares (``==``, ``!=``, ``>=``) with ``value``; EQ can miss a passing value."""

    word: Address
    comparison: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Reset:
    """Store 0 into a word of this rank."""

    word: Address
    span: Span


@dataclass(frozen=True, slots=True)
class Read:
    """Read a window, over a stretch of time, on ``pipe``."""

    pipe: Pipe
    window: Window
    span: Span


@dataclass(frozen=True, slots=True)
class Write:
    """Write a window, over a stretch of time, on ``pipe``."""

    pipe: Pipe
    window: Window
    span: Span
    mode: Mode = Mode.STORE


@dataclass(frozen=True, slots=True)
class Compute:
    """An opaque kernel call: reads segment by segment on one pipe, then writes on another.

    For ``segment`` = 0 .. ``segments`` - 1 all of ``reads`` (their windows may use ``segment``),
    then ``writes``; each block writes its own share of a written window, the shares are disjoint
    and together the whole. What it reads and computes is its contract (a fact, so an assumption).
    """

    contract: str
    segment: Var
    segments: Expr
    reads: tuple[Window, ...]
    writes: tuple[Window, ...]
    read_pipe: Pipe
    write_pipe: Pipe
    span: Span


Operation = (
    SetFlag | WaitFlag | SetEvent | WaitEvent | PipeBarrier | Barrier | Arrive | AwaitPhase
    | Put | Get | PutSignal | Quiet | Fence | Signal | WaitUntil | Reset | Read | Write | Compute
)  # fmt: skip


# --- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class For:
    """``for (index = start; index < stop; index += step)``: bounds are computed once, before.

    ``step`` is positive. The index has its own type; the bounds are computed in theirs.
    """

    index: Var
    start: Expr
    stop: Expr
    step: int
    body: Block
    span: Span


@dataclass(frozen=True, slots=True)
class While:
    """Repeat ``body`` while ``condition`` holds."""

    condition: Expr
    body: Block
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    """Run ``then`` or ``orelse``."""

    condition: Expr
    then: Block
    orelse: Block
    span: Span


@dataclass(frozen=True, slots=True)
class Assign:
    """Store ``value``, converted to the target's type, into a local scalar or array element."""

    target: Var | Element
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Load:
    """Read a word of memory into a local; branching on it makes a program not straight-line."""

    target: Var
    word: Address
    span: Span


Statement = For | While | If | Assign | Load | Operation
Block = tuple[Statement, ...]


# --- protocols --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a run fixes: its domain, and the value used when none is given."""

    name: str
    low: int = 0
    high: int | None = None
    default: int | None = None
    type: CType = CType.I64
    meaning: str = ""
    from_facts: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """A memory region of every rank; ``bytes`` None: its size is not known and not checked.

    ``covered``: an output whose every byte must be written exactly once.
    """

    name: str
    kind: RegionKind
    bytes: Expr | None = None
    alignment: int = 1
    covered: bool = False


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something a verdict rests on that the sources do not say: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is checked: parameters, regions, and a program for each role.

    Every protocol has the parameters ``ranks`` and ``blocks``; programs may use the identities
    ``rank``, ``block`` and ``sub``. ``vectors_per_cube`` is the core ratio (1 or 2).
    """

    name: str
    parameters: tuple[Parameter, ...]
    regions: tuple[Region, ...]
    programs: dict[Role, Block]
    vectors_per_cube: int = 1
    assumptions: tuple[Assumption, ...] = ()
    files: tuple[str, ...] = ()
    subjects: tuple[str, ...] = field(default=())

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called ``name``, if there is one."""
        return next((p for p in self.parameters if p.name == name), None)

    def digest(self) -> str:
        """16 hexadecimal digits that identify what is checked: everything but spans, names and texts."""
        parts = [repr((p.name, p.low, p.high, p.type.name)) for p in self.parameters]
        parts += [_plain(region) for region in self.regions]
        parts += [f"{role.name}:{_plain(self.programs[role])}" for role in Role if role in self.programs]
        parts.append(str(self.vectors_per_cube))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _plain(node: object) -> str:
    """``node`` as text without its spans."""
    if isinstance(node, tuple):
        return "(" + ",".join(_plain(item) for item in node) + ")"
    if isinstance(node, Enum):
        return node.name
    if is_dataclass(node) and not isinstance(node, type):
        inner = [_plain(getattr(node, f.name)) for f in fields(node) if f.name != "span"]
        return f"{type(node).__name__}({','.join(inner)})"
    return repr(node)


def statements(block: Block) -> Iterator[Statement]:
    """All statements of ``block``, outer before inner, in program order."""
    for statement in block:
        yield statement
        match statement:
            case For(body=body) | While(body=body):
                yield from statements(body)
            case If(then=then, orelse=orelse):
                yield from statements(then)
                yield from statements(orelse)


def expressions(node: object) -> Iterator[Expr]:
    """All expressions that a statement, window or address holds directly (not those of inner statements)."""
    if isinstance(node, Expr):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            if not isinstance(item, Statement):
                yield from expressions(item)
    elif is_dataclass(node) and not isinstance(node, type) and not isinstance(node, Span):
        for f in fields(node):
            yield from expressions(getattr(node, f.name))


def addresses(node: object) -> Iterator[Address]:
    """All addresses that a statement holds directly, those of windows and origins included."""
    if isinstance(node, Address):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            if not isinstance(item, Statement):
                yield from addresses(item)
    elif is_dataclass(node) and not isinstance(node, type | Span | Expr):
        for f in fields(node):
            yield from addresses(getattr(node, f.name))
