"""The program form: what a front end produces and everything else starts from.

A `Protocol` has parameters, memory regions and one program a role; a program is a tuple of
statements, among them `operations`. Newcomers start here, then read `unroll` (programs to events)
and `machine` (what events do).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

from .cinteger import CType
from .expr import Element, Expr, Var
from .operations import (
    ALL_PIPES,
    Address,
    Arrive,
    AwaitPhase,
    Barrier,
    Compute,
    Fence,
    Get,
    Mode,
    Operation,
    Origin,
    Pipe,
    PipeBarrier,
    Put,
    PutSignal,
    Quiet,
    Read,
    RegionKind,
    Reset,
    ResultOrigin,
    Role,
    SetEvent,
    SetFlag,
    Signal,
    Span,
    SumOrigin,
    WaitEvent,
    WaitFlag,
    WaitUntil,
    Window,
    Write,
)

__all__ = [
    "ALL_PIPES",
    "Address",
    "Arrive",
    "Assign",
    "Assumption",
    "AwaitPhase",
    "Barrier",
    "Block",
    "Compute",
    "Fence",
    "For",
    "Get",
    "If",
    "Load",
    "Mode",
    "Operation",
    "Origin",
    "Parameter",
    "Pipe",
    "PipeBarrier",
    "Protocol",
    "Put",
    "PutSignal",
    "Quiet",
    "Read",
    "Region",
    "RegionKind",
    "Reset",
    "ResultOrigin",
    "Role",
    "SetEvent",
    "SetFlag",
    "Signal",
    "Span",
    "Statement",
    "SumOrigin",
    "WaitEvent",
    "WaitFlag",
    "WaitUntil",
    "While",
    "Window",
    "Write",
    "addresses",
    "expressions",
    "statements",
]

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
    """A number that a run fixes: its domain, and the value used when none is given.

    A default may be an expression over other parameters. ``blocks`` follows ``ranks`` without one.
    """

    name: str
    low: int = 0
    high: int | None = None
    default: int | Expr | None = None
    type: CType = CType.I64
    meaning: str = ""
    from_facts: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """A memory region of every rank; ``bytes`` None: its size is not known and not checked.

    ``alignment`` of its base in bytes, None: not known. ``covered``: an output whose every byte must
    be written exactly once.
    """

    name: str
    kind: RegionKind
    bytes: Expr | None = None
    alignment: int | None = None
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
    ``rank``, ``block``, ``sub`` and ``launch``. ``vectors_per_cube`` is the core ratio (1 or 2).
    """

    name: str
    parameters: tuple[Parameter, ...]
    regions: tuple[Region, ...]
    programs: dict[Role, Block]
    vectors_per_cube: int = 1
    assumptions: tuple[Assumption, ...] = ()
    files: tuple[str, ...] = ()
    subjects: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        """Its name and digest: the whole program would fill pages of a failing test."""
        return f"<Protocol {self.name} {self.digest()}>"

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called ``name``, if there is one."""
        return next((p for p in self.parameters if p.name == name), None)

    def digest(self) -> str:
        """16 hexadecimal digits that identify what is checked: everything but spans, names and texts."""
        parts = [repr((p.name, p.low, p.high, p.type.name)) for p in self.parameters]
        parts += [plain_text(region) for region in self.regions]
        parts += [f"{role.name}:{plain_text(self.programs[role])}" for role in Role if role in self.programs]
        parts.append(str(self.vectors_per_cube))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def plain_text(node: object) -> str:
    """``node`` as text without its spans."""
    if isinstance(node, tuple):
        return "(" + ",".join(plain_text(item) for item in node) + ")"
    if isinstance(node, Enum):
        return node.name
    if is_dataclass(node) and not isinstance(node, type):
        inner = [plain_text(getattr(node, f.name)) for f in fields(node) if f.name != "span"]
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
