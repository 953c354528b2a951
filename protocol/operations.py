"""Operations: what a core can do, as data; and what they speak of: pipes, addresses, windows, spans.

Each operation is one sentence and the source of its rule. Used by `program`, which arranges them
into protocols and offers all of these names too; read that next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .cinteger import CType
from .expr import Const, Expr, Var, grouped


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

    __hash__ = object.__hash__  # Enum's own is slow, and dictionaries of many events use it


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

    __hash__ = object.__hash__  # Enum's own is slow, and dictionaries of many events use it


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
