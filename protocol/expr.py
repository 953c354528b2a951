"""Integer and boolean expressions with C types: what guards, flag ids and addresses are made of.

Built by the front end and the builder, computed by `evaluate`, printed by `str()` as C, translated
to Z3 by `checker`. An expression is built through the functions below (`binary`, `cast`, …), which
insert the conversions that C++ would make; the node classes are plain data. Read `evaluate` next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from .cinteger import CType, common_type, divide, fits, promote, remainder, wrap


class VarKind(Enum):
    """Where the value of a variable comes from."""

    PARAMETER = "a parameter of the protocol, fixed for a run"
    IDENTITY = "rank, block or sub of the running core"
    LOOP = "the index of an enclosing For"
    LOCAL = "assigned by the program"


ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^")
SHIFTS = ("<<", ">>")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LOGICAL = ("&&", "||")
FUNCTIONS = ("min", "max", "ceil_div")


class _Operators:
    """Python operators for hand-written expressions: ``/`` and ``//`` are C division, ``==`` is identity.

    Use `Expr.eq`, `Expr.ne`, `both`, `either` where Python's own operators cannot be overloaded.
    """

    __slots__ = ()

    def __add__(self, other: Operand) -> Expr:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary("/", other, self)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return binary("/", other, self)

    def __rmod__(self, other: Operand) -> Expr:
        return binary("%", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("/", self, other)

    def __mod__(self, other: Operand) -> Expr:
        return binary("%", self, other)

    def __neg__(self) -> Expr:
        return unary("-", self)

    def __and__(self, other: Operand) -> Expr:
        return binary("&", self, other)

    def __or__(self, other: Operand) -> Expr:
        return binary("|", self, other)

    def __lshift__(self, other: Operand) -> Expr:
        return binary("<<", self, other)

    def __rshift__(self, other: Operand) -> Expr:
        return binary(">>", self, other)

    def __lt__(self, other: Operand) -> Expr:
        return binary("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return binary("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return binary(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return binary(">=", self, other)

    def eq(self, other: Operand) -> Expr:
        """``self == other`` as an expression."""
        return binary("==", self, other)

    def ne(self, other: Operand) -> Expr:
        """``self != other`` as an expression."""
        return binary("!=", self, other)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value; use If(...), select(), both() or either()")


E = TypeVar("E", bound=type)


def _no_number(cls: E) -> E:
    """Make ``expression == 3`` an error: it would be a Python bool, and a guard would vanish unseen."""
    same = cls.__dict__["__eq__"]

    def equal(self: object, other: object) -> bool:
        if isinstance(other, int):
            raise TypeError("== on an expression gives no expression: use .eq(...) or .ne(...)")
        answer = same(self, other)
        return answer if isinstance(answer, bool) else NotImplemented

    cls.__eq__ = equal  # type: ignore[assignment]
    return cls


@_no_number
@dataclass(frozen=True, slots=True)
class Const(_Operators):
    """A literal; its value is representable in its type."""

    value: int
    type: CType = CType.I64

    def __str__(self) -> str:
        return str(self.value)


@_no_number
@dataclass(frozen=True, slots=True)
class Var(_Operators):
    """A named scalar."""

    name: str
    type: CType
    kind: VarKind

    def __str__(self) -> str:
        return self.name


@_no_number
@dataclass(frozen=True, slots=True)
class Element(_Operators):
    """``array[index]``: an element of an array parameter (``cnt[g]``) or of a small local array."""

    array: str
    index: Expr
    type: CType
    kind: VarKind

    def __str__(self) -> str:
        return f"{self.array}[{self.index}]"


@_no_number
@dataclass(frozen=True, slots=True)
class Unary(_Operators):
    """``-x``, ``~x`` (after promotion) or ``!x``."""

    op: str
    operand: Expr
    type: CType

    def __str__(self) -> str:
        text = _grouped(self.operand, 12)
        return f"{self.op}({text})" if text.startswith(self.op) else f"{self.op}{text}"


@_no_number
@dataclass(frozen=True, slots=True)
class Binary(_Operators):
    """``left op right``; both operands already have the type that the operation is computed in."""

    op: str
    left: Expr
    right: Expr
    type: CType

    def __str__(self) -> str:
        strength = _PRECEDENCE[self.op]
        # a + b * c is clear without parentheses; everything with & | ^ << >> is not
        mixed = self.op in ("&", "|", "^", "<<", ">>")
        left = _grouped(self.left, 12 if mixed else strength)
        right = _grouped(self.right, 12 if mixed else strength + 1)
        return f"{left} {self.op} {right}"


@_no_number
@dataclass(frozen=True, slots=True)
class Cast(_Operators):
    """A conversion. ``implicit`` ones (C++ inserted them) are not printed."""

    operand: Expr
    type: CType
    implicit: bool = True

    def __str__(self) -> str:
        return str(self.operand) if self.implicit else f"({self.type.c_name}){_grouped(self.operand, 12)}"


@_no_number
@dataclass(frozen=True, slots=True)
class Select(_Operators):
    """``condition ? then : other``, lazy."""

    condition: Expr
    then: Expr
    other: Expr
    type: CType

    def __str__(self) -> str:
        return f"{_grouped(self.condition, 2)} ? {_grouped(self.then, 2)} : {_grouped(self.other, 1)}"


@_no_number
@dataclass(frozen=True, slots=True)
class Call(_Operators):
    """``min``, ``max`` or ``ceil_div`` of operands that share ``type``; ceil_div(a, 0) is a."""

    function: str
    arguments: tuple[Expr, ...]
    type: CType

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Expr = Const | Var | Element | Unary | Binary | Cast | Select | Call
Operand = Expr | int | _Operators

_PRECEDENCE = {
    **dict.fromkeys(("*", "/", "%"), 10),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("<", "<=", ">", ">="), 7),
    **dict.fromkeys(("==", "!="), 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
}


def _grouped(expr: Expr, strength: int) -> str:
    """``expr`` as text, in parentheses if it binds less tightly than ``strength``."""
    while isinstance(expr, Cast) and expr.implicit:
        expr = expr.operand
    text = str(expr)
    if isinstance(expr, Binary) and _PRECEDENCE[expr.op] < strength:
        return f"({text})"
    if isinstance(expr, Select) or (isinstance(expr, Const) and expr.value < 0 and strength > 9):
        return f"({text})"
    return text


def grouped(expr: Expr) -> str:
    """``expr`` as an operand of a sum is printed: in parentheses if it binds less tightly."""
    return _grouped(expr, _PRECEDENCE["+"])


def as_expr(value: Operand, like: CType = CType.I64) -> Expr:
    """``value`` as an expression; a Python int becomes a constant of type ``like``, or wider if it must.

    Raises ValueError for an int beyond 64 bits, TypeError for anything else.
    """
    if isinstance(value, Const | Var | Element | Unary | Binary | Cast | Select | Call):
        return value
    if isinstance(value, bool):
        return Const(int(value), CType.BOOL)
    if isinstance(value, int):
        for ctype in (like, CType.I64, CType.U64):
            if fits(ctype, value):
                return Const(value, ctype)
        raise ValueError(f"{value} does not fit 64 bits")
    raise TypeError(f"an expression or an int is needed, not {value!r}")


def cast(ctype: CType, operand: Operand, *, implicit: bool = True) -> Expr:
    """``operand`` converted to ``ctype``; folded where it is a constant that fits."""
    expr = as_expr(operand)
    if expr.type is ctype:
        return expr
    if isinstance(expr, Const) and (fits(ctype, expr.value) or ctype is CType.BOOL):
        return Const(wrap(ctype, expr.value), ctype)
    return Cast(expr, ctype, implicit)


def unary(op: str, operand: Operand) -> Expr:
    """``-x``, ``+x``, ``~x`` or ``!x``."""
    expr = as_expr(operand)
    if op == "!":
        condition = cast(CType.BOOL, expr)
        if isinstance(condition, Const):
            return Const(1 - condition.value, CType.BOOL)
        return Unary("!", condition, CType.BOOL)
    expr = cast(promote(expr.type), expr)
    if op == "+":
        return expr
    if op not in ("-", "~"):
        raise ValueError(f"no unary operator {op}")
    if op == "-" and isinstance(expr, Const) and fits(expr.type, -expr.value):
        return Const(-expr.value, expr.type)
    return Unary(op, expr, expr.type)


def binary(op: str, left: Operand, right: Operand) -> Expr:
    """``left op right`` with the conversions of C++; constants are folded where nothing wraps."""
    lhs = as_expr(left, right.type if isinstance(right, _Operators) else CType.I64)  # type: ignore[attr-defined]
    rhs = as_expr(right, lhs.type)
    if op in LOGICAL:
        return _logical(op, cast(CType.BOOL, lhs), cast(CType.BOOL, rhs))
    if op in SHIFTS:
        ctype = promote(lhs.type)
        lhs, rhs = cast(ctype, lhs), cast(promote(rhs.type), rhs)
        return _folded(op, lhs, rhs, ctype)
    ctype = common_type(lhs.type, rhs.type)
    lhs, rhs = cast(ctype, lhs), cast(ctype, rhs)
    if op in COMPARISONS:
        return _folded(op, lhs, rhs, CType.BOOL)
    if op not in ARITHMETIC:
        raise ValueError(f"no binary operator {op}")
    return _folded(op, lhs, rhs, ctype)


def _logical(op: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Const):
        decided = (op == "||") == bool(left.value)
        return left if decided else right
    return Binary(op, left, right, CType.BOOL)


def _folded(op: str, left: Expr, right: Expr, ctype: CType) -> Expr:
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            value = compute(op, left.value, right.value)
        except (ZeroDivisionError, ValueError):
            return Binary(op, left, right, ctype)  # reported with its place when it is computed
        if fits(ctype, value):
            return Const(value, ctype)
    if isinstance(right, Const) and (op, right.value) in _NEUTRAL_RIGHT and left.type is ctype:
        return left
    if isinstance(left, Const) and (op, left.value) in (("+", 0), ("*", 1)) and right.type is ctype:
        return right
    return Binary(op, left, right, ctype)


_NEUTRAL_RIGHT = frozenset({("+", 0), ("-", 0), ("*", 1), ("/", 1), ("<<", 0), (">>", 0), ("|", 0)})


def select(condition: Operand, then: Operand, other: Operand) -> Expr:
    """``condition ? then : other`` in the common type of the two."""
    test, a, b = cast(CType.BOOL, condition), as_expr(then), as_expr(other)
    ctype = a.type if a.type is b.type else common_type(a.type, b.type)
    a, b = cast(ctype, a), cast(ctype, b)
    if isinstance(test, Const):
        return a if test.value else b
    return Select(test, a, b, ctype)


def call(function: str, *arguments: Operand) -> Expr:
    """``min``, ``max`` or ``ceil_div`` in the arguments' common type."""
    if function not in FUNCTIONS or len(arguments) != 2:
        raise ValueError(f"no function {function} of {len(arguments)} arguments")
    a, b = as_expr(arguments[0]), as_expr(arguments[1])
    ctype = a.type if a.type is b.type else common_type(a.type, b.type)
    a, b = cast(ctype, a), cast(ctype, b)
    if isinstance(a, Const) and isinstance(b, Const):
        value = compute(function, a.value, b.value)
        if fits(ctype, value):
            return Const(value, ctype)
    return Call(function, (a, b), ctype)


def both(left: Operand, right: Operand) -> Expr:
    """``left && right``, lazy."""
    return binary("&&", left, right)


def either(left: Operand, right: Operand) -> Expr:
    """``left || right``, lazy."""
    return binary("||", left, right)


def compute(op: str, left: int, right: int) -> int:
    """``left op right`` over unbounded integers.

    Raises ZeroDivisionError, and ValueError for a shift by a negative amount or by more than 64.
    """
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return divide(left, right)
        case "%":
            return remainder(left, right)
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case "<<" | ">>":
            if not 0 <= right <= 64:
                raise ValueError(f"shift by {right}")
            return left << right if op == "<<" else left >> right
        case "<":
            return int(left < right)
        case "<=":
            return int(left <= right)
        case ">":
            return int(left > right)
        case ">=":
            return int(left >= right)
        case "==":
            return int(left == right)
        case "!=":
            return int(left != right)
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case "ceil_div":
            return left if right == 0 else divide(left + right - 1, right)
    raise ValueError(f"no operator {op}")


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of ``expr``, in evaluation order."""
    match expr:
        case Const() | Var():
            return ()
        case Element(index=index):
            return (index,)
        case Unary(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Select(condition=condition, then=then, other=other):
            return (condition, then, other)
        case Call(arguments=arguments):
            return arguments


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all expressions in it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def variables(expr: Expr) -> Iterator[Var | Element]:
    """Every variable and array element that ``expr`` reads, with repetitions."""
    for node in walk(expr):
        if isinstance(node, Var | Element):
            yield node
