"""Computing expressions: a plain evaluator, and the compiler to Python that unrolling is fast by.

`evaluate` is the definition (exact C wrap-around). `Compiler` produces Python text for the same
value; where an interval shows that no operation can wrap, the text has no masks at all. Where one
may, it also produces the value over unbounded integers, so that a wrap that matters can be reported.
The two are tested against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .cinteger import CType, divide, fits, remainder, wrap
from .errors import ParameterError
from .expr import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    Element,
    Expr,
    Select,
    Unary,
    Var,
    VarKind,
    compute,
)

Value = int | tuple[int, ...]
Interval = tuple[int, int]


def evaluate(expr: Expr, values: Mapping[str, Value], *, exact: bool = False) -> int:
    """The value of ``expr`` with C wrap-around, or over unbounded integers if ``exact``.

    Raises KeyError for a name without a value, ZeroDivisionError, ValueError for a bad shift.
    """

    def typed(value: int, ctype: CType) -> int:
        return value if exact else wrap(ctype, value)

    def go(node: Expr) -> int:
        match node:
            case Const(value=value):
                return value
            case Var(name=name):
                scalar = values[name]
                if isinstance(scalar, tuple):
                    raise TypeError(f"{name} is an array")
                return scalar
            case Element(array=array, index=index):
                items = values[array]
                if isinstance(items, int):
                    raise TypeError(f"{array} is no array")
                return items[go(index)]
            case Unary(op="!", operand=operand):
                return int(not go(operand))
            case Unary(op=op, operand=operand, type=ctype):
                return typed(-go(operand) if op == "-" else ~go(operand), ctype)
            case Cast(operand=operand, type=CType.BOOL):
                return int(go(operand) != 0)
            case Cast(operand=operand, type=ctype):
                return typed(go(operand), ctype)
            case Binary(op="&&", left=left, right=right):
                return int(bool(go(left)) and bool(go(right)))
            case Binary(op="||", left=left, right=right):
                return int(bool(go(left)) or bool(go(right)))
            case Binary(op=op, left=left, right=right, type=ctype):
                return typed(compute(op, go(left), go(right)), ctype)
            case Select(condition=condition, then=then, other=other):
                return go(then) if go(condition) else go(other)
            case Call(function=function, arguments=(first, second), type=ctype):
                return typed(compute(function, go(first), go(second)), ctype)
        raise TypeError(f"not an expression: {node!r}")

    return go(expr)


@dataclass(frozen=True, slots=True)
class Code:
    """Python text for an expression.

    ``wrapped`` has C's value, ``exact`` the value over unbounded integers; they can differ only if
    ``may_wrap``. ``interval`` bounds the wrapped value.
    """

    wrapped: str
    exact: str
    may_wrap: bool
    interval: Interval


def _unassigned(name: str) -> int:
    raise NameError(name)


RUNTIME = {
    "_unassigned": _unassigned,
    "_div": divide,
    "_rem": remainder,
    "_compute": compute,
    "_wrap": wrap,
    "_T": CType,
}
"""Names that compiled text may use."""


class Compiler:
    """Turns expressions into Python text, given constants and intervals for the names in them."""

    def __init__(self, constants: Mapping[str, Value], intervals: Mapping[str, Interval]) -> None:
        self.constants = constants
        self.intervals = dict(intervals)
        self.loops: dict[str, str] = {}  # the Python name of every open loop's index

    def compile(self, expr: Expr) -> Code:
        """Text for ``expr``. Identities and loop indices are ``v_NAME``, locals also ``d_NAME``."""
        match expr:
            case Const(value=value):
                return Code(repr(value), repr(value), False, (value, value))
            case Var():
                return self._variable(expr)
            case Element():
                return self._element(expr)
            case Unary():
                return self._unary(expr)
            case Cast():
                return self._cast(expr)
            case Binary():
                return self._logical(expr) if expr.op in LOGICAL else self._binary(expr)
            case Select():
                return self._select(expr)
            case Call():
                first, second = expr.arguments
                return self._operation(expr.function, first, second, expr.type)
        raise TypeError(f"not an expression: {expr!r}")

    def _variable(self, var: Var) -> Code:
        constant = self.constants.get(var.name)
        if var.kind is VarKind.PARAMETER:
            if isinstance(constant, tuple):
                raise ParameterError(var.name, constant, "a number is needed, not an array")
            if constant is None:
                raise KeyError(var.name)
            value = wrap(var.type, constant)
            return Code(repr(value), repr(value), False, (value, value))
        if var.kind is VarKind.LOCAL:
            return Code(f"v_{var.name}", f"d_{var.name}", True, (var.type.low, var.type.high))
        interval = self.intervals.get(var.name, (var.type.low, var.type.high))
        text = f"v_{var.name}"
        if var.name in self.loops:
            text = self.loops[var.name]
        elif var.name not in self.intervals:
            text = f"_unassigned({var.name!r})"  # the index of a loop that is not open
        return Code(text, text, False, interval)

    def _element(self, element: Element) -> Code:
        index = self.compile(element.index)
        whole = (element.type.low, element.type.high)
        if element.kind is VarKind.PARAMETER:
            items = self.constants[element.array]
            if not isinstance(items, tuple):
                raise ParameterError(element.array, items, "an array is needed (NAME=1,2,3), not a number")
            whole = (min(items, default=0), max(items, default=0))
            text = f"_item({items!r}, {index.wrapped})"
            return Code(text, text, index.may_wrap, whole)
        return Code(f"v_{element.array}[{index.wrapped}]", f"d_{element.array}[{index.wrapped}]", True, whole)

    def _unary(self, expr: Unary) -> Code:
        inner = self.compile(expr.operand)
        low, high = inner.interval
        if expr.op == "!":
            return Code(f"(not {inner.wrapped})", f"(not {inner.exact})", inner.may_wrap, (0, 1))
        interval = (-high, -low) if expr.op == "-" else (~high, ~low)
        return _fitted(
            f"({expr.op}{inner.wrapped})",
            f"({expr.op}{inner.exact})",
            inner.may_wrap,
            interval,
            expr.type,
        )

    def _cast(self, expr: Cast) -> Code:
        inner = self.compile(expr.operand)
        if expr.operand.type is CType.BOOL and expr.type is not CType.BOOL:
            # Python's comparisons give bools, which print as words: a plus makes them numbers
            inner = Code(f"(+{inner.wrapped})", f"(+{inner.exact})", inner.may_wrap, inner.interval)
        if expr.type is CType.BOOL:
            return Code(f"({inner.wrapped} != 0)", f"({inner.exact} != 0)", inner.may_wrap, (0, 1))
        return _fitted(inner.wrapped, inner.exact, inner.may_wrap, inner.interval, expr.type)

    def _logical(self, expr: Binary) -> Code:
        left, right = self.compile(expr.left), self.compile(expr.right)
        word = "and" if expr.op == "&&" else "or"
        return Code(
            f"(bool({left.wrapped}) {word} bool({right.wrapped}))",
            f"(bool({left.exact}) {word} bool({right.exact}))",
            left.may_wrap or right.may_wrap,
            (0, 1),
        )

    def _select(self, expr: Select) -> Code:
        condition, then, other = map(self.compile, (expr.condition, expr.then, expr.other))
        return Code(
            f"({then.wrapped} if {condition.wrapped} else {other.wrapped})",
            f"({then.exact} if {condition.exact} else {other.exact})",
            condition.may_wrap or then.may_wrap or other.may_wrap,
            (min(then.interval[0], other.interval[0]), max(then.interval[1], other.interval[1])),
        )

    def _binary(self, expr: Binary) -> Code:
        return self._operation(expr.op, expr.left, expr.right, expr.type)

    def _operation(self, op: str, left: Expr, right: Expr, ctype: CType) -> Code:
        a, b = self.compile(left), self.compile(right)
        interval = _result_interval(op, a.interval, b.interval)
        fixed = a.interval[0] == a.interval[1] and b.interval[0] == b.interval[1]
        if fixed and interval is not None and interval[0] == interval[1] and fits(ctype, interval[0]):
            may_wrap = a.may_wrap or b.may_wrap
            exact = _text(op, a.exact, b.exact, safe=False) if may_wrap else repr(interval[0])
            return Code(repr(interval[0]), exact, may_wrap, interval)
        may_wrap = a.may_wrap or b.may_wrap
        wrapped = _text(op, a.wrapped, b.wrapped, safe=interval is not None)
        # the exact operands may lie outside the intervals of the wrapped ones
        exact = _text(op, a.exact, b.exact, safe=interval is not None and not may_wrap)
        return _fitted(wrapped, exact, may_wrap, interval, ctype)


def _fitted(wrapped: str, exact: str, may_wrap: bool, interval: Interval | None, ctype: CType) -> Code:
    """The code with a wrap to ``ctype`` added unless ``interval`` shows that none is needed."""
    if interval is not None and fits(ctype, interval[0]) and fits(ctype, interval[1]):
        return Code(wrapped, exact, may_wrap, interval)
    masked = f"_wrap(_T.{ctype.name}, {wrapped})" if ctype.signed else f"({wrapped} & {ctype.high})"
    return Code(masked, exact, True, (ctype.low, ctype.high))


_PYTHON = {"/": "//"}
_HELPERS = {"/": "_div", "%": "_rem"}


def _text(op: str, left: str, right: str, *, safe: bool) -> str:
    """Python text for ``left op right``; ``safe``: plain operators are right for the operands' signs."""
    if op in ("min", "max"):
        return f"{op}({left}, {right})"
    if op in ("ceil_div", "<<", ">>") and not safe:
        return f"_compute({op!r}, {left}, {right})"
    if op == "ceil_div":
        return f"(-(-{left} // {right}))"
    if op in _HELPERS and not safe:
        return f"{_HELPERS[op]}({left}, {right})"
    return f"({left} {_PYTHON.get(op, op)} {right})"


def _result_interval(op: str, a: Interval, b: Interval) -> Interval | None:
    """Bounds of ``a op b`` over unbounded integers; None: unknown, or plain Python would be wrong."""
    (al, ah), (bl, bh) = a, b
    if op in COMPARISONS:
        if al == ah and bl == bh:
            value = compute(op, al, bl)
            return (value, value)
        return (0, 1)
    if op == "+":
        return (al + bl, ah + bh)
    if op == "-":
        return (al - bh, ah - bl)
    if op == "*":
        products = (al * bl, al * bh, ah * bl, ah * bh)
        return (min(products), max(products))
    if op == "min":
        return (min(al, bl), min(ah, bh))
    if op == "max":
        return (max(al, bl), max(ah, bh))
    if al < 0 or bl < 0:
        return None
    if op == "&":
        return (al & bl, ah & bh) if al == ah and bl == bh else (0, min(ah, bh))
    if op in ("|", "^"):
        return (0, (1 << max(ah.bit_length(), bh.bit_length())) - 1)
    if op == "<<":
        return (al << bl, ah << bh) if bh <= 64 else None
    if op == ">>":
        return (al >> bh, ah >> bl) if bh <= 64 else None
    if bl == 0:
        return None
    if op == "/":
        return (al // bh, ah // bl)
    if op == "%":
        return (al % bl, al % bl) if al == ah and bl == bh else (0, min(ah, bh - 1))
    if op == "ceil_div":
        return (-(-al // bh), -(-ah // bl))
    return None
