"""Building and printing expressions: types, folding, and text that C reads back as the same tree."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc2proof.protocol.cinteger import CType, common_type, fits, promote
from mc2proof.protocol.evaluate import evaluate
from mc2proof.protocol.expr import (
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
    as_expr,
    binary,
    both,
    call,
    cast,
    children,
    either,
    select,
    unary,
    variables,
    walk,
)


def var(name: str, ctype: CType = CType.I64) -> Var:
    return Var(name, ctype, VarKind.LOCAL)


A, B, C = var("a"), var("b"), var("c")
ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
types = st.sampled_from(list(CType))


# --- types ------------------------------------------------------------------------------------


@given(op=st.sampled_from(ARITHMETIC), left=types, right=types)
def test_arithmetic_is_computed_in_the_common_type(op: str, left: CType, right: CType) -> None:
    expr = binary(op, var("x", left), var("y", right))
    assert isinstance(expr, Binary)
    assert expr.type is common_type(left, right)
    assert expr.left.type is expr.right.type is expr.type


@given(op=st.sampled_from(COMPARISONS), left=types, right=types)
def test_a_comparison_converts_its_operands_and_is_bool(op: str, left: CType, right: CType) -> None:
    expr = binary(op, var("x", left), var("y", right))
    assert isinstance(expr, Binary)
    assert expr.type is CType.BOOL
    assert expr.left.type is expr.right.type is common_type(left, right)


@given(op=st.sampled_from(("<<", ">>")), left=types, right=types)
def test_a_shift_has_the_promoted_type_of_its_left_operand(op: str, left: CType, right: CType) -> None:
    expr = binary(op, var("x", left), var("y", right))
    assert isinstance(expr, Binary)
    assert (expr.type, expr.right.type) == (promote(left), promote(right))


@given(op=st.sampled_from("-~"), ctype=types)
def test_unary_operators_promote(op: str, ctype: CType) -> None:
    assert unary(op, var("x", ctype)).type is promote(ctype)


def test_a_python_number_takes_the_type_of_the_other_operand() -> None:
    expr = var("x", CType.U32) - 1
    assert isinstance(expr, Binary)
    assert expr.right == Const(1, CType.U32)
    assert (1 - var("x", CType.U32)).type is CType.U32
    assert (var("x", CType.U32) + (1 << 40)).type is CType.I64


def test_a_python_number_must_fit_64_bits() -> None:
    assert as_expr((1 << 64) - 1) == Const((1 << 64) - 1, CType.U64)
    for beyond in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            as_expr(beyond)
    with pytest.raises(TypeError, match=r"1\.5"):
        as_expr(1.5)  # type: ignore[arg-type]


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="truth value"):
        bool(A < B)
    with pytest.raises(TypeError, match="truth value"):
        _ = A < B < C


def test_python_operators_build_what_they_say() -> None:
    built = [A + B, A - B, A * B, A / B, A // B, A % B, A & B, A | B, A << B, A >> B, A < B, A <= B, A > B,
             A >= B, A.eq(B), A.ne(B), both(A.eq(B), B.eq(C)), either(A.eq(B), B.eq(C))]  # fmt: skip
    ops = ["+", "-", "*", "/", "/", "%", "&", "|", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]
    assert [e.op for e in built if isinstance(e, Binary)] == ops
    assert [(e.left, e.right) for e in built[:16] if isinstance(e, Binary)] == [(A, B)] * 16
    assert Binary("-", Const(5), A, CType.I64) == 5 - A
    assert Unary("-", A, CType.I64) == -A


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\*\*"):
        binary("**", A, B)
    with pytest.raises(ValueError, match="@"):
        unary("@", A)
    with pytest.raises(ValueError, match="gcd"):
        call("gcd", A, B)
    with pytest.raises(ValueError, match="3 arguments"):
        call("min", A, B, C)


# --- folding ----------------------------------------------------------------------------------


@given(
    op=st.sampled_from((*ARITHMETIC, *COMPARISONS, "<<", ">>", "&&", "||")),
    ctypes_=st.tuples(types, types),
    data=st.data(),
)
def test_folding_never_changes_the_value(op: str, ctypes_: tuple[CType, CType], data: st.DataObject) -> None:
    """Constants in place of variables give a smaller tree with the same value and type."""
    numbers = [
        data.draw(st.one_of(st.sampled_from((t.low, t.high)), st.integers(max(t.low, -9), min(t.high, 9))))
        for t in ctypes_
    ]
    x, y = var("x", ctypes_[0]), var("y", ctypes_[1])
    p, q = (Const(n, t) for n, t in zip(numbers, ctypes_, strict=True))
    values = {"x": numbers[0], "y": numbers[1]}
    whole = binary(op, x, y)
    try:
        expected = evaluate(whole, values)
        exact = evaluate(whole, values, exact=True)
    except (ZeroDivisionError, ValueError):
        assert not isinstance(binary(op, p, q), Const)
        return
    for folded in (binary(op, p, q), binary(op, x, q), binary(op, p, y)):
        assert evaluate(folded, values) == expected
        assert evaluate(folded, values, exact=True) == exact
        assert folded.type is whole.type


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, "<<", ">>", "&&", "||"])
def test_no_constant_is_taken_for_neutral_that_is_not(op: str) -> None:
    for constant, value in itertools.product((-1, 0, 1, 2), (-3, 0, 1, 5)):
        for folded, whole in (
            (binary(op, A, constant), {"a": value, "b": constant}),
            (binary(op, constant, A), {"b": value, "a": constant}),
        ):
            try:
                expected = evaluate(binary(op, A, B), whole)
            except (ZeroDivisionError, ValueError):
                continue
            assert evaluate(folded, {"a": value}) == expected, (constant, value)


@given(function=st.sampled_from(("min", "max", "ceil_div")), data=st.data())
def test_folding_calls_never_changes_the_value(function: str, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(-20, 20)), data.draw(st.integers(-20, 20))
    expected = evaluate(call(function, A, B), {"a": a, "b": b})
    assert evaluate(call(function, a, b), {}) == expected
    assert isinstance(call(function, a, b), Const)


def test_a_fold_that_would_wrap_is_kept_to_be_reported() -> None:
    top = Const(CType.I32.high, CType.I32)
    assert binary("+", top, Const(1, CType.I32)) == Binary("+", top, Const(1, CType.I32), CType.I32)
    assert isinstance(binary("-", Const(0, CType.U64), Const(1, CType.U64)), Binary)
    assert isinstance(unary("-", Const(CType.I32.low, CType.I32)), Unary)
    assert isinstance(cast(CType.U8, Const(256, CType.I32)), Cast)


def test_neutral_operands_vanish_only_where_the_type_stays() -> None:
    assert A + 0 is A
    assert A * 1 is A
    assert 0 + A is A
    assert A - 0 is A
    narrow = var("x", CType.U8)
    assert (narrow + Const(0, CType.I32)).type is CType.I32
    assert isinstance(0 - A, Binary)
    assert isinstance(A * 0, Binary)


def test_a_decided_branch_is_chosen() -> None:
    assert select(1, A, B) is A
    assert select(0, A, B) is B
    assert both(0, A) == Const(0, CType.BOOL)
    assert either(1, A) == Const(1, CType.BOOL)
    wide = select(1, var("x", CType.I32), var("y", CType.U64))
    assert wide.type is CType.U64


def test_casts_of_constants_fold_where_they_fit() -> None:
    assert cast(CType.U8, Const(255, CType.I32)) == Const(255, CType.U8)
    assert cast(CType.BOOL, Const(7, CType.I32)) == Const(1, CType.BOOL)
    assert cast(CType.I64, A) is A
    assert all(
        fits(c.type, c.value) for c in [as_expr(5), as_expr(True), as_expr(-1)] if isinstance(c, Const)
    )


# --- walking ----------------------------------------------------------------------------------


def test_walk_visits_parents_first_and_variables_repeat() -> None:
    expr = select(A < B, Element("cnt", A, CType.I64, VarKind.PARAMETER), call("min", B, C))
    nodes = list(walk(expr))
    assert nodes[0] is expr
    assert [str(v) for v in variables(expr)] == ["a", "b", "cnt[a]", "a", "b", "c"]
    for node in nodes:
        assert all(child in nodes for child in children(node))


# --- printing ---------------------------------------------------------------------------------

TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:()\[\],])")
STRENGTH = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip


class Reader:
    """A parser of C expressions with C's precedence, to fully parenthesised text."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == text.replace(" ", ""), text
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        assert token, "the text ends too early"
        assert expected is None or token == expected, (token, expected)
        self.at += 1
        return token

    def whole(self) -> str:
        text = self.ternary()
        assert not self.peek(), self.tokens[self.at :]
        return text

    def ternary(self) -> str:
        condition = self.infix(1)
        if self.peek() != "?":
            return condition
        self.take()
        then = self.ternary()
        self.take(":")
        return f"({condition} ? {then} : {self.ternary()})"

    def infix(self, strength: int) -> str:
        left = self.prefix()
        while STRENGTH.get(self.peek(), 0) >= strength:
            op = self.take()
            left = f"({left} {op} {self.infix(STRENGTH[op] + 1)})"
        return left

    def prefix(self) -> str:
        if self.peek() in ("-", "~", "!"):
            return f"({self.take()}{self.prefix()})"
        token = self.take()
        assert token not in ("--", "++"), "an increment is not in the language"
        if token == "(":
            if self.peek().endswith("_t"):
                ctype = self.take()
                self.take(")")
                return f"(({ctype}){self.prefix()})"
            inner = self.ternary()
            self.take(")")
            return inner
        if self.peek() in ("[", "("):
            closing = {"[": "]", "(": ")"}[self.take()]
            items = [self.ternary()]
            while self.peek() == ",":
                self.take()
                items.append(self.ternary())
            self.take(closing)
            return f"{token}{closing}{items}"
        return token


def spelled(expr: Expr) -> str:
    """The tree of ``expr`` in the form that `Reader` gives."""
    match expr:
        case Const(value=value):
            return f"(-{-value})" if value < 0 else str(value)
        case Var(name=name):
            return name
        case Element(array=array, index=index):
            return f"{array}]{[spelled(index)]}"
        case Unary(op=op, operand=operand):
            return f"({op}{spelled(operand)})"
        case Cast(implicit=True, operand=operand):
            return spelled(operand)
        case Cast(operand=operand, type=ctype):
            return f"(({ctype.c_name}){spelled(operand)})"
        case Binary(op=op, left=left, right=right):
            return f"({spelled(left)} {op} {spelled(right)})"
        case Select(condition=condition, then=then, other=other):
            return f"({spelled(condition)} ? {spelled(then)} : {spelled(other)})"
        case Call(function=function, arguments=arguments):
            return f"{function}){[spelled(a) for a in arguments]}"


def trees(*, nested_signs: bool) -> st.SearchStrategy[Expr]:
    leaves: st.SearchStrategy[Expr] = st.sampled_from([A, B, C, as_expr(3), as_expr(-2), as_expr(0)])
    wide = st.sampled_from((CType.U32, CType.I64, CType.U8))

    def signed(op: str, operand: Expr) -> Expr:
        # two signs in a row are a test of their own below
        return operand if not nested_signs and isinstance(operand, Unary | Const) else unary(op, operand)

    def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.one_of(
            st.builds(binary, st.sampled_from(sorted(STRENGTH)), inner, inner),
            st.builds(signed, st.sampled_from("-~!"), inner),
            st.builds(select, inner, inner, inner),
            st.builds(call, st.sampled_from(("min", "max", "ceil_div")), inner, inner),
            st.builds(lambda t, e: cast(t, e, implicit=False), wide, inner),
            st.builds(lambda e: Element("cnt", e, CType.I64, VarKind.LOCAL), inner),
        )

    return st.recursive(leaves, grown, max_leaves=8)


@given(expr=trees(nested_signs=False))
def test_printed_text_reads_back_as_the_same_tree(expr: Expr) -> None:
    assert Reader(str(expr)).whole() == spelled(expr), str(expr)


def test_two_signs_in_a_row_are_no_decrement() -> None:
    expr = unary("-", unary("-", A))
    assert Reader(str(expr)).whole() == spelled(expr), str(expr)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((A + B) * C, "(a + b) * c"),
        (A + B * C, "a + b * c"),
        (A - (B - C), "a - (b - c)"),
        (A - B - C, "a - b - c"),
        (A & (B - 1), "a & (b - 1)"),
        ((A & B).eq(0), "(a & b) == 0"),
        (A << (B + 1), "a << (b + 1)"),
        (both(A < B, either(B < C, C.eq(0))), "a < b && (b < c || c == 0)"),
        (select(A < B, A, B) + 1, "(a < b ? a : b) + 1"),
        (A * -1, "a * (-1)"),
        (cast(CType.U32, A + B, implicit=False), "(uint32_t)(a + b)"),
        (cast(CType.U32, A) + var("x", CType.U32), "a + x"),
        (unary("!", A < B), "!(a < b)"),
        (call("ceil_div", A + 1, B), "ceil_div(a + 1, b)"),
        (Element("cnt", A + 1, CType.I64, VarKind.PARAMETER), "cnt[a + 1]"),
    ],
)
def test_printed_text(expr: Expr, text: str) -> None:
    assert str(expr) == text
