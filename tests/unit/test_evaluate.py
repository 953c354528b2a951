"""The evaluator against the definition of C, and compiled text against the evaluator."""

import ctypes

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.evaluate import RUNTIME, Code, Compiler, Value, evaluate
from mc2proof.protocol.expr import (
    Element,
    Expr,
    Var,
    VarKind,
    as_expr,
    binary,
    both,
    call,
    cast,
    either,
    select,
    unary,
)

WIDE = {CType.I32: ctypes.c_int32, CType.U32: ctypes.c_uint32, CType.I64: ctypes.c_int64,
        CType.U64: ctypes.c_uint64}  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||")
ITEMS = (3, 0, 7, 1)


def near_limits(ctype: CType) -> st.SearchStrategy[int]:
    low, high = ctype.low, ctype.high
    edges = {low, min(high, low + 1), high - 1 if high > low else low, high, max(low, 0)}
    return st.one_of(st.sampled_from(sorted(edges)), st.integers(max(low, -20), min(high, 20)),
                     st.integers(low, high))  # fmt: skip


# --- the evaluator ----------------------------------------------------------------------------


@given(ctype=st.sampled_from(list(WIDE)), op=st.sampled_from("+-*&|^"), data=st.data())
def test_arithmetic_is_the_machine_s(ctype: CType, op: str, data: st.DataObject) -> None:
    a, b = data.draw(near_limits(ctype)), data.draw(near_limits(ctype))
    exact = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]
    expr = binary(op, Var("a", ctype, VarKind.LOCAL), Var("b", ctype, VarKind.LOCAL))
    assert evaluate(expr, {"a": a, "b": b}) == WIDE[ctype](exact).value
    assert evaluate(expr, {"a": a, "b": b}, exact=True) == exact


@given(a=near_limits(CType.I32), b=near_limits(CType.U64), op=st.sampled_from("+-*"))
def test_a_signed_operand_becomes_unsigned_before_it_is_used(a: int, b: int, op: str) -> None:
    expr = binary(op, Var("a", CType.I32, VarKind.LOCAL), Var("b", CType.U64, VarKind.LOCAL))
    converted = ctypes.c_uint64(a).value
    exact = {"+": converted + b, "-": converted - b, "*": converted * b}[op]
    assert evaluate(expr, {"a": a, "b": b}) == ctypes.c_uint64(exact).value


def test_the_classic_comparison_of_minus_one_with_an_unsigned_number() -> None:
    expr = Var("a", CType.I32, VarKind.LOCAL) < Var("b", CType.U32, VarKind.LOCAL)
    assert evaluate(expr, {"a": -1, "b": 1}) == 0
    assert evaluate(expr, {"a": -1, "b": 1}, exact=True) == 1


def test_logic_and_choice_are_lazy() -> None:
    a, b = Var("a", CType.I64, VarKind.LOCAL), Var("b", CType.I64, VarKind.LOCAL)
    bad = (a / b).eq(0)
    values = {"a": 1, "b": 0}
    assert evaluate(both(b.ne(0), bad), values) == 0
    assert evaluate(either(b.eq(0), bad), values) == 1
    assert evaluate(select(b.eq(0), 5, a / b), values) == 5
    with pytest.raises(ZeroDivisionError):
        evaluate(both(b.eq(0), bad), values)


def test_ceil_div_by_zero_is_its_first_operand() -> None:
    a, b = Var("a", CType.I64, VarKind.LOCAL), Var("b", CType.I64, VarKind.LOCAL)
    assert evaluate(call("ceil_div", a, b), {"a": 7, "b": 0}) == 7
    assert [evaluate(call("ceil_div", a, b), {"a": n, "b": 4}) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_names_must_have_values_of_their_kind() -> None:
    a = Var("a", CType.I64, VarKind.LOCAL)
    element = Element("a", as_expr(0), CType.I64, VarKind.PARAMETER)
    with pytest.raises(KeyError, match="a"):
        evaluate(a, {})
    with pytest.raises(TypeError, match="array"):
        evaluate(a, {"a": (1, 2)})
    with pytest.raises(TypeError, match="array"):
        evaluate(element, {"a": 1})
    assert evaluate(element, {"a": (4, 5)}) == 4


# --- the compiler -----------------------------------------------------------------------------

# A name, its type and kind, its possible values; locals can hold anything.
NAMES = (
    Var("p", CType.I64, VarKind.PARAMETER),
    Var("q", CType.U32, VarKind.PARAMETER),
    Var("rank", CType.I64, VarKind.IDENTITY),
    Var("i", CType.I32, VarKind.LOOP),
    Var("j", CType.U64, VarKind.LOOP),
    Var("x", CType.I32, VarKind.LOCAL),
    Var("y", CType.U16, VarKind.LOCAL),
    Var("z", CType.U64, VarKind.LOCAL),
)


@st.composite
def environments(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Values for all names, and an interval around those that have one."""
    values = {v.name: draw(near_limits(v.type)) for v in NAMES}
    intervals = {}
    for v in NAMES:
        if v.kind in (VarKind.IDENTITY, VarKind.LOOP):
            below, above = draw(st.integers(0, 5)), draw(st.integers(0, 5))
            value = values[v.name]
            intervals[v.name] = (max(v.type.low, value - below), min(v.type.high, value + above))
    return values, intervals


def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    shift = st.integers(0, 8).map(as_expr)
    index = inner.map(lambda e: binary("%", cast(CType.U64, e), len(ITEMS)))
    return st.one_of(
        st.builds(binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(binary, st.sampled_from(("<<", ">>")), inner, shift),
        st.builds(unary, st.sampled_from("-~!"), inner),
        st.builds(cast, st.sampled_from(list(CType)), inner),
        st.builds(select, inner, inner, inner),
        st.builds(call, st.sampled_from(("min", "max", "ceil_div")), inner, inner),
        st.builds(lambda e: Element("cnt", e, CType.I64, VarKind.PARAMETER), index),
    )


expressions = st.recursive(
    st.one_of(
        st.sampled_from(NAMES),
        st.integers(-3, 9).map(as_expr),
        st.sampled_from([1 << 31, 1 << 40]).map(as_expr),
    ),
    grown,
    max_leaves=7,
)


def compiled(expr: Expr, values: dict[str, int], intervals: dict[str, tuple[int, int]]) -> Code:
    constants: dict[str, Value] = {v.name: values[v.name] for v in NAMES if v.kind is VarKind.PARAMETER}
    return Compiler({**constants, "cnt": ITEMS}, intervals).compile(expr)


def run(text: str, values: dict[str, int]) -> int:
    """The value of compiled text; locals have no wrapped history here, so both copies are equal."""
    names = {f"{prefix}_{name}": value for name, value in values.items() for prefix in "vd"}
    item = {"_item": lambda items, index: items[index]}
    return int(eval(text, {**RUNTIME, **item}, names))


@settings(max_examples=600)
@given(expr=expressions, environment=environments())
def test_compiled_text_computes_what_evaluate_does(
    expr: Expr, environment: tuple[dict[str, int], dict[str, tuple[int, int]]]
) -> None:
    values, intervals = environment
    known: dict[str, Value] = {**values, "cnt": ITEMS}
    try:
        expected = evaluate(expr, known)
    except (ZeroDivisionError, ValueError):
        assume(False)
    code = compiled(expr, values, intervals)
    assert run(code.wrapped, values) == expected
    assert code.interval[0] <= expected <= code.interval[1]
    try:
        exact = evaluate(expr, known, exact=True)
    except (ZeroDivisionError, ValueError, IndexError):
        return  # over unbounded integers it has no value: nothing to compare with
    assert run(code.exact, values) == exact
    assert code.may_wrap or exact == expected


BINARY = (*OPERATORS, "<<", ">>", "min", "max", "ceil_div")
spans = st.tuples(st.integers(-4, 9), st.integers(0, 5)).map(lambda s: (s[0], s[0] + s[1]))


@settings(max_examples=400)
@given(op=st.sampled_from(BINARY), first=spans, second=spans, ctype=st.sampled_from((CType.I32, CType.U64)))
def test_every_value_of_the_intervals_is_computed_and_bounded(
    op: str, first: tuple[int, int], second: tuple[int, int], ctype: CType
) -> None:
    """One operator over small intervals, with all values that lie in them."""
    low = ctype.low
    first, second = ((max(a, low), max(b, low)) for a, b in (first, second))
    x, y = Var("x", ctype, VarKind.LOOP), Var("y", ctype, VarKind.LOOP)
    expr = call(op, x, y) if op in ("min", "max", "ceil_div") else binary(op, x, y)
    code = Compiler({}, {"x": first, "y": second}).compile(expr)
    for a in range(first[0], first[1] + 1):
        for b in range(second[0], second[1] + 1):
            values = {"x": a, "y": b}
            try:
                expected = evaluate(expr, values)
            except (ZeroDivisionError, ValueError):
                continue
            assert run(code.wrapped, values) == expected, (a, b)
            assert run(code.exact, values) == evaluate(expr, values, exact=True), (a, b)
            assert code.interval[0] <= expected <= code.interval[1], (a, b)


@settings(max_examples=300)
@given(expr=expressions, environment=environments())
def test_a_value_that_cannot_wrap_has_no_mask(
    expr: Expr, environment: tuple[dict[str, int], dict[str, tuple[int, int]]]
) -> None:
    code = compiled(expr, *environment)
    if "_wrap" in code.wrapped:
        assert code.may_wrap


def test_intervals_decide_whether_masks_are_needed() -> None:
    i = Var("i", CType.I32, VarKind.LOOP)
    expr = (i + 1) * 1000
    assert not Compiler({}, {"i": (0, 100)}).compile(expr).may_wrap
    wide = Compiler({}, {"i": (0, 3_000_000)}).compile(expr)
    assert wide.may_wrap
    assert run(wide.wrapped, {"i": 3_000_000}) == ctypes.c_int32(3_000_001 * 1000).value
    assert run(wide.exact, {"i": 3_000_000}) == 3_000_001_000


@pytest.mark.parametrize(
    ("op", "right", "error"),
    [
        ("/", 0, ZeroDivisionError),
        ("%", 0, ZeroDivisionError),
        ("<<", -1, ValueError),
        (">>", 65, ValueError),
    ],
)
@pytest.mark.parametrize("left", [5, -5])
def test_compiled_text_fails_where_evaluate_fails(
    op: str, right: int, error: type[Exception], left: int
) -> None:
    x, z = Var("x", CType.I64, VarKind.LOOP), Var("w", CType.I64, VarKind.LOOP)
    expr = binary(op, x, z)
    values = {"x": left, "w": right}
    code = Compiler({}, {"x": (-9, 9), "w": (-1, 70)}).compile(expr)
    with pytest.raises(error):
        evaluate(expr, values)
    with pytest.raises(error):
        run(code.wrapped, values)


def test_a_product_with_zero_still_computes_its_other_operand() -> None:
    x = Var("x", CType.I64, VarKind.LOOP)
    expr = (as_expr(1) / x) * 0
    code = Compiler({}, {"x": (0, 3)}).compile(expr)
    with pytest.raises(ZeroDivisionError):
        evaluate(expr, {"x": 0})
    with pytest.raises(ZeroDivisionError):
        run(code.wrapped, {"x": 0})


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(KeyError, match="depth"):
        Compiler({}, {}).compile(Var("depth", CType.I64, VarKind.PARAMETER))
