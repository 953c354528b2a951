"""C integer types against ctypes and the tables of the C++ standard."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc2proof.protocol.cinteger import (
    C_NAMES,
    CType,
    common_type,
    divide,
    fits,
    promote,
    remainder,
    wrap,
)

MACHINE = {
    CType.I8: ctypes.c_int8,
    CType.U8: ctypes.c_uint8,
    CType.I16: ctypes.c_int16,
    CType.U16: ctypes.c_uint16,
    CType.I32: ctypes.c_int32,
    CType.U32: ctypes.c_uint32,
    CType.I64: ctypes.c_int64,
    CType.U64: ctypes.c_uint64,
}
NARROW = (CType.BOOL, CType.I8, CType.U8, CType.I16, CType.U16)
AROUND_LIMITS = [
    edge + step for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64) for edge in (1 << bits, -(1 << bits))
    for step in (-1, 0, 1)
]  # fmt: skip
numbers = st.one_of(st.sampled_from(AROUND_LIMITS), st.integers(-300, 300), st.integers(-(1 << 66), 1 << 66))
nonzero = numbers.filter(bool)


@pytest.mark.parametrize("ctype", MACHINE, ids=str)
def test_limits_are_the_machine_s(ctype: CType) -> None:
    assert ctype.bits == 8 * ctypes.sizeof(MACHINE[ctype])
    assert MACHINE[ctype](ctype.high).value == ctype.high
    assert MACHINE[ctype](ctype.low).value == ctype.low
    assert MACHINE[ctype](ctype.high + 1).value == ctype.low


@given(ctype=st.sampled_from(list(MACHINE)), value=numbers)
def test_wrap_is_what_the_machine_stores(ctype: CType, value: int) -> None:
    assert wrap(ctype, value) == MACHINE[ctype](value).value
    assert fits(ctype, value) == (wrap(ctype, value) == value)


@given(value=numbers)
def test_conversion_to_bool_asks_for_zero(value: int) -> None:
    assert wrap(CType.BOOL, value) == int(bool(ctypes.c_bool(value).value) if value >= -(1 << 63) else 1)
    assert fits(CType.BOOL, value) == (value in (0, 1))


@pytest.mark.parametrize("ctype", list(CType), ids=str)
def test_promotion_turns_everything_narrow_into_int(ctype: CType) -> None:
    assert promote(ctype) is (CType.I32 if ctype in NARROW else ctype)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        # C++17 [expr.arith.conv]: equal signedness: the wider one
        (CType.I32, CType.I64, CType.I64),
        (CType.U32, CType.U64, CType.U64),
        # the unsigned one has no lower rank: it wins
        (CType.I32, CType.U32, CType.U32),
        (CType.I64, CType.U64, CType.U64),
        (CType.I32, CType.U64, CType.U64),
        # the signed one holds every value of the other: it wins
        (CType.I64, CType.U32, CType.I64),
        # promoted first
        (CType.U16, CType.U8, CType.I32),
        (CType.BOOL, CType.BOOL, CType.I32),
        (CType.U16, CType.U32, CType.U32),
        (CType.I8, CType.U64, CType.U64),
    ],
)
def test_common_type(left: CType, right: CType, expected: CType) -> None:
    assert common_type(left, right) is expected
    assert common_type(right, left) is expected


@given(left=numbers, right=nonzero)
def test_division_truncates_and_remainder_has_the_sign_of_the_left(left: int, right: int) -> None:
    quotient, rest = divide(left, right), remainder(left, right)
    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
    assert rest == 0 or (rest < 0) == (left < 0)


@pytest.mark.parametrize(
    ("left", "right", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (-1, 2, 0, -1), (0, -5, 0, 0)],
)
def test_division_as_the_standard_shows_it(left: int, right: int, quotient: int, rest: int) -> None:
    assert (divide(left, right), remainder(left, right)) == (quotient, rest)


def test_division_by_zero_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    with pytest.raises(ZeroDivisionError):
        remainder(1, 0)


def test_spellings_name_types_of_the_lp64_model() -> None:
    assert {C_NAMES[n] for n in ("long", "long long", "ptrdiff_t", "int64_t")} == {CType.I64}
    assert {C_NAMES[n] for n in ("unsigned long", "size_t", "uintptr_t")} == {CType.U64}
    assert C_NAMES["unsigned"] is C_NAMES["unsigned int"] is CType.U32
    assert C_NAMES["short"] is CType.I16
    assert C_NAMES["bool"] is CType.BOOL
