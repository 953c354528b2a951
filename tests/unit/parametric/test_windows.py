"""Symbolic windows overlap only where the condition says so."""

from __future__ import annotations

import itertools

import pytest

from mc2proof.checker.parametric.domain import satisfied
from mc2proof.checker.parametric.formula import FALSE, TRUE, equal
from mc2proof.checker.parametric.polynomial import Bounds, number, symbol
from mc2proof.checker.parametric.windows import Extent, overlap

R, T, S = symbol("ranks"), symbol("tiles"), symbol("size")
A, B, P, Q = symbol("a"), symbol("b"), symbol("i"), symbol("j")
BOUNDS = {
    "ranks": Bounds(number(1)),
    "tiles": Bounds(number(1)),
    "size": Bounds(number(1)),
    **{name: Bounds(number(0), (R - 1,)) for name in "ab"},
    **{name: Bounds(number(0), (T - 1,)) for name in "ij"},
}

CASES = [
    (Extent(P * R * S + A * S, S), Extent(Q * R * S + B * S, S), equal(P, Q), equal(A, B)),
    (Extent(A * T * 8, T * 8), Extent(B * T * 8 + Q * 8, number(8)), equal(A, B), TRUE),
    (Extent(T * R * S + A, number(1)), Extent(Q * R * S + B * S, S), FALSE, FALSE),
    (Extent(P * 4, number(4)), Extent(Q * 4 + 4, number(4)), equal(P, Q + 1), TRUE),
    (Extent(P * 3, number(4)), Extent(Q * 3, number(4)), TRUE, TRUE),
]


@pytest.mark.parametrize(("a", "b", "first", "second"), CASES)
def test_the_condition(a: Extent, b: Extent, first: object, second: object) -> None:
    text = str(overlap(a, b, BOUNDS))
    for part in (first, second):
        if part not in (TRUE,):
            assert str(part) in text or part == FALSE
    if first == FALSE:
        assert overlap(a, b, BOUNDS) == FALSE


@pytest.mark.parametrize(("a", "b", "first", "second"), CASES)
def test_without_it_no_byte_is_shared(a: Extent, b: Extent, first: object, second: object) -> None:
    condition = overlap(a, b, BOUNDS)
    for ranks, tiles, size in itertools.product((1, 2, 3), (1, 2, 3), (1, 2)):
        for x, y, i, j in itertools.product(range(ranks), range(ranks), range(tiles), range(tiles)):
            at = {"ranks": ranks, "tiles": tiles, "size": size, "a": x, "b": y, "i": i, "j": j}
            begins = [extent.offset.evaluate(at) for extent in (a, b)]
            ends = [extent.stop.evaluate(at) for extent in (a, b)]
            if max(begins) < min(ends):
                assert satisfied(condition, at)
