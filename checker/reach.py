"""How far the kernel goes in symmetric memory, from its addresses alone: every core and tile at once.

The exact maximum over all executed accesses, with numpy over the loops' indices and the identities.
Declines where a loop is not fixed beforehand or a value could wrap; `sweep` unrolls then.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..protocol.cinteger import CType, fits
from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var, VarKind, variables
from ..protocol.program import (
    Address,
    Assign,
    Block,
    Compute,
    For,
    If,
    Protocol,
    Put,
    Read,
    RegionKind,
    Role,
    While,
    Window,
    Write,
)
from ..protocol.setup import Setup
from .engine import Declined

Array = npt.NDArray[np.int64]
_AXES = 12
"""Identities, loops and segments that may be open at once."""


def reach(protocol: Protocol, values: Mapping[str, Value], setup: Setup) -> int:
    """The first byte behind the last one addressed in any symmetric region, 0 if none is. Raises Declined."""
    return max((_Reach(protocol, values, setup, role).run() for role in protocol.programs), default=0)


class _Reach:
    def __init__(self, protocol: Protocol, values: Mapping[str, Value], setup: Setup, role: Role) -> None:
        self.program = protocol.programs[role]
        self.values = values
        self.shared = {r.name for r in protocol.regions if r.kind is RegionKind.SHARED}
        self.axis = 0
        self.open: dict[str, Array] = {}
        self.furthest = 0
        ranks, blocks = values["ranks"], values["blocks"]
        assert isinstance(ranks, int)
        assert isinstance(blocks, int)
        subs = protocol.vectors_per_cube if role is Role.AIV else 1
        for name, count in (("rank", ranks), ("block", blocks), ("sub", subs), ("launch", setup.launches)):
            self.open[name] = self._index(range(count))

    def run(self) -> int:
        self._block(self.program, np.ones((1,) * _AXES, bool))
        return self.furthest

    def _index(self, items: range) -> Array:
        shape = [1] * _AXES
        if self.axis == _AXES:
            raise Declined("loops are nested too deeply")
        shape[self.axis] = len(items)
        self.axis += 1
        return np.array(items, np.int64).reshape(shape)

    def _block(self, block: Block, mask: npt.NDArray[np.bool_]) -> None:
        for statement in block:
            match statement:
                case For(index=index, start=start, stop=stop, step=step, body=body):
                    items = range(self._fixed(start), self._fixed(stop), step)
                    self._inside(index.name, items, body, mask)
                case If(condition=condition, then=then, orelse=orelse):
                    holds = self._value(condition) != 0
                    self._block(then, mask & holds)
                    self._block(orelse, mask & np.logical_not(holds))
                case While() | Assign():
                    raise Declined("the program computes as it runs")
                case Put(target=target, source=source, bytes=size):
                    self._access(target, size, mask)
                    self._access(source, size, mask)
                case Read(window=window) | Write(window=window):
                    self._windows((window,), mask)
                case Compute(segment=segment, segments=segments, reads=reads, writes=writes):
                    self._windows(writes, mask)
                    self._inside(segment.name, range(self._fixed(segments)), reads, mask)

    def _inside(self, name: str, items: range, body: Sequence[Any], mask: npt.NDArray[np.bool_]) -> None:
        if not items:
            return
        outer, axis = self.open.get(name), self.axis
        self.open[name] = self._index(items)
        if body and isinstance(body[0], Window):
            self._windows(body, mask)
        else:
            self._block(tuple(body), mask)
        self.axis = axis
        del self.open[name]
        if outer is not None:
            self.open[name] = outer

    def _windows(self, windows: Sequence[Window], mask: npt.NDArray[np.bool_]) -> None:
        for window in windows:
            if window.address.region in self.shared:
                self._access(window.address, window.bytes, mask & (self._value(window.guard) != 0))

    def _access(self, address: Address, size: Expr, mask: npt.NDArray[np.bool_]) -> None:
        if address.region not in self.shared:
            return
        length = self._value(size)
        ends = self._value(address.offset) + length
        touched, reached = np.broadcast_arrays(mask & (length > 0), ends)
        if reached.size and int(reached.max()) > self.furthest and touched.any():
            self.furthest = max(self.furthest, int(reached[touched].max()))

    def _fixed(self, expr: Expr) -> int:
        if any(v.kind is not VarKind.PARAMETER for v in variables(expr)):
            raise Declined("a loop's bounds are not fixed")
        return evaluate(expr, self.values)

    # --- values -------------------------------------------------------------------------------

    def _value(self, expr: Expr) -> Array | int:
        """An array over the open indices, or a number where it depends on none of them."""
        match expr:
            case Const(value=value):
                return self._small(value)
            case Var(name=name) if name in self.open:
                return self.open[name]
            case Var(name=name, kind=VarKind.PARAMETER):
                number = self.values[name]
                assert isinstance(number, int)
                return self._small(number)
            case Cast(operand=operand, type=CType.BOOL):
                return _numbers(self._value(operand) != 0)
            case Cast(operand=operand):
                return self._in_type(self._value(operand), expr.type)
            case Unary(op="!", operand=operand):
                return _numbers(self._value(operand) == 0)
            case Unary(op="-", operand=operand):
                return self._in_type(-self._value(operand), expr.type)
            case Select(condition=condition, then=then, other=other):
                return self._select(self._value(condition), self._value(then), self._value(other))
            case Binary(op=op, left=left, right=right):
                return self._in_type(_binary(op, self._value(left), self._value(right)), expr.type)
            case Call(function=function, arguments=(first, second)):
                return self._in_type(_binary(function, self._value(first), self._value(second)), expr.type)
        raise Declined("an expression that is evaluated one by one")

    @staticmethod
    def _select(condition: Array | int, then: Array | int, other: Array | int) -> Array | int:
        if isinstance(condition, int):
            return then if condition else other
        return np.where(condition != 0, then, other)

    @staticmethod
    def _small(value: int) -> int:
        if abs(value) >= _HUGE:
            raise Declined("a value beyond 62 bits")
        return value

    @staticmethod
    def _in_type(items: Array | int, ctype: CType) -> Array | int:
        for value in _ends(items):
            if abs(value) >= _HUGE or not fits(ctype, value):
                raise Declined("a value may wrap")
        return items


_HUGE = 1 << 62


def _numbers(truth: object) -> Array | int:
    """Truth values as 0 and 1."""
    return int(truth) if isinstance(truth, bool) else np.asarray(truth, np.int64)


def _ends(items: Array | int) -> tuple[int, ...]:
    """The least and the greatest of ``items``; nothing where there are none."""
    if isinstance(items, int):
        return (items,)
    return (int(items.min()), int(items.max())) if items.size else ()


def _binary(op: str, a: Array | int, b: Array | int) -> Array | int:
    if op in ("*", "+", "-"):
        x, y = (max(map(abs, _ends(items)), default=0) for items in (a, b))
        if max(x * y, x + y) >= _HUGE:
            raise Declined("a value beyond 62 bits")
    if op in ("/", "%", "ceil_div") and (min(_ends(b), default=1) <= 0 or min(_ends(a), default=0) < 0):
        raise Declined("a division of or by what is not positive")
    if op not in _PLAIN:
        raise Declined(f"the operator {op}")
    found = _PLAIN[op](a, b)
    if isinstance(a, int) and isinstance(b, int):
        return int(found)
    return np.asarray(found).astype(np.int64, copy=False)


_PLAIN: Mapping[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "min": np.minimum, "max": np.maximum,
    "ceil_div": lambda a, b: -(-a // b), "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&&": lambda a, b: (a != 0) & (b != 0), "||": lambda a, b: (a != 0) | (b != 0),
}  # fmt: skip
