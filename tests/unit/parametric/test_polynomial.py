"""Polynomials, and seeing that one is never negative."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc2proof.checker.parametric.polynomial import Bounds, Poly, never_negative, number, symbol

X, Y, N = symbol("x"), symbol("y"), symbol("n")
NAMES = ("n", "x", "y")

monomials = st.lists(st.sampled_from(NAMES), max_size=2).map(lambda names: tuple(sorted(names)))


@st.composite
def polys(draw: st.DrawFn) -> Poly:
    total = Poly()
    for monomial, factor in draw(st.lists(st.tuples(monomials, st.integers(-4, 4)), max_size=4)):
        term = number(factor)
        for name in monomial:
            term = term * symbol(name)
        total = total + term
    return total


@given(polys(), polys(), st.tuples(*[st.integers(-3, 5)] * 3))
def test_arithmetic_is_that_of_numbers(a: Poly, b: Poly, values: tuple[int, ...]) -> None:
    at = dict(zip(NAMES, values, strict=True))
    assert (a + b).evaluate(at) == a.evaluate(at) + b.evaluate(at)
    assert (a - b).evaluate(at) == a.evaluate(at) - b.evaluate(at)
    assert (a * b).evaluate(at) == a.evaluate(at) * b.evaluate(at)
    assert a.substitute({"x": b}).evaluate(at) == a.evaluate({**at, "x": b.evaluate(at)})


@given(polys(), monomials, st.integers(1, 3))
def test_a_quotient_and_its_remainder_make_the_whole(
    poly: Poly, stride: tuple[str, ...], factor: int
) -> None:
    quotient, remainder = poly.split(stride, factor)
    assert quotient * Poly(((stride, factor),)) + remainder == poly


INDEX = {"n": Bounds(number(1)), "x": Bounds(number(0), (N - 1,)), "y": Bounds(number(0), (X,))}


@given(polys())
def test_what_is_never_negative_is_not(poly: Poly) -> None:
    if never_negative(poly, INDEX):
        for n, x, y in itertools.product(range(1, 6), range(6), range(6)):
            if x <= n - 1 and y <= x:
                assert poly.evaluate({"n": n, "x": x, "y": y}) >= 0


@pytest.mark.parametrize(
    ("poly", "seen"),
    [
        (N - 1 - X, True),
        (N - X, True),
        (N - 2 - X, False),
        (N * N - X * N - N, True),
        (X - Y, True),
        (N - 1 - Y, True),
        (Y - X, False),
        (number(-1), False),
        (Poly(), True),
    ],
)
def test_never_negative(poly: Poly, seen: bool) -> None:
    assert never_negative(poly, INDEX) is seen


def test_a_symbol_without_bounds_may_be_anything() -> None:
    assert not never_negative(symbol("z"), INDEX)
    assert never_negative(symbol("z") - symbol("z") + 1, INDEX)


@pytest.mark.parametrize(
    ("poly", "text"),
    [(Poly(), "0"), (N + 14, "n + 14"), (N - X, "n - x"), (-X, "-x"), (2 * N * X - 1, "2 * n * x - 1")],
)
def test_text(poly: Poly, text: str) -> None:
    assert str(poly) == text
