"""Values of symbolic execution: integers are `Expr`; here are pointers, places and objects.

Used by `lowering` and all modules that evaluate. A place is where a variable or member lives; the
store (`lowering.Lowering.store`) maps its location to a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..cinteger import CType, wrap
from ..expr import Cast, Const, Expr, binary, cast
from ..program import Span
from .types import Type

Location = tuple[int | str, ...]
"""The number of a variable, then the names of members within it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is stored, and its declared type if there is one."""

    location: Location
    type: Type | None

    def member(self, name: str, member_type: Type | None) -> Place:
        """The place of member ``name`` within this one."""
        return Place((*self.location, name), member_type)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A byte of a region; ``target`` None: the address was cast to an integer."""

    region: str
    offset: Expr
    target: Type | None


@dataclass(frozen=True, slots=True)
class Null:
    """``nullptr``."""


@dataclass(frozen=True, slots=True)
class PlacePointer:
    """The address of a variable or member."""

    place: Place


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a kernel argument whose type the sources lack: its fields become parameters.

    ``pointee``: it is what a pointer among those fields points to, which may not be written.
    """

    path: str
    type: Type | None
    pointee: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A number in a type that is no integer type, or whose declaration is missing: it is only stored."""

    type: str


@dataclass(frozen=True, slots=True)
class Record:
    """A whole object as a value: what its members hold, by their location within it."""

    type: Type | None
    members: Mapping[Location, Value]


@dataclass(frozen=True, slots=True)
class InitList:
    """``{a, b}`` before it is known what it initialises."""

    items: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Poison:
    """Nothing that may be read: why, and whether that is an error of the source or a limit of ours."""

    reason: str
    unsupported: bool = False


Value = Expr | Pointer | Null | PlacePointer | Opaque | Foreign | Record | InitList | Poison


@dataclass(frozen=True, slots=True)
class Memory:
    """What a pointer into a region points to, as something to read, write or take the address of."""

    pointer: Pointer


Outcome = Place | Memory | Value
"""What an expression denotes: a place, a word in memory, or a mere value."""

NOTHING = Poison("a void value is used")
ZERO = Const(0, CType.U64)


def convert(ctype: CType, expr: Expr, *, implicit: bool = True) -> Expr:
    """``expr`` converted to ``ctype``, without detours that change nothing.

    A conversion to ``ctype`` keeps the low bits; one to a type at least as wide before it does too.
    """
    while (
        isinstance(expr, Cast)
        and ctype is not CType.BOOL
        and expr.type is not CType.BOOL
        and expr.type.bits >= ctype.bits
    ):
        expr = expr.operand
    if isinstance(expr, Const):
        return Const(wrap(ctype, expr.value), ctype)
    return cast(ctype, expr, implicit=implicit)


def without_casts(expr: Expr) -> Expr:
    """``expr`` without outer conversions that keep at least 32 bits: for comparing with an identity."""
    while isinstance(expr, Cast) and expr.type.bits >= 32:
        expr = expr.operand
    return expr


def moved(pointer: Pointer, op: str, count: Expr, size: int) -> Pointer:
    """``pointer + count`` or ``pointer - count`` elements of ``size`` bytes."""
    distance = binary("*", convert(CType.U64, count), Const(size, CType.U64))
    return Pointer(pointer.region, binary(op, pointer.offset, distance), pointer.target)
