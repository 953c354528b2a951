"""C++ integer types: the one place that knows promotion, common types and wrap-around.

Used by `expr` when an expression is built and by `evaluate` when it is computed. The data model is
LP64 (int 32 bits, long 64 bits), the one of the bisheng compiler's host and device sides.
Rules: C++17 [conv.prom], [expr.arith.conv], [conv.integral].
"""

from __future__ import annotations

from enum import Enum


class CType(Enum):
    """An integer type: its C name, its width in bits and whether it is signed."""

    BOOL = ("bool", 1, False)
    I8 = ("int8_t", 8, True)
    U8 = ("uint8_t", 8, False)
    I16 = ("int16_t", 16, True)
    U16 = ("uint16_t", 16, False)
    I32 = ("int32_t", 32, True)
    U32 = ("uint32_t", 32, False)
    I64 = ("int64_t", 64, True)
    U64 = ("uint64_t", 64, False)

    def __init__(self, c_name: str, bits: int, signed: bool) -> None:
        self.c_name = c_name
        self.bits = bits
        self.signed = signed
        self.low = -(1 << (bits - 1)) if signed else 0
        self.high = (1 << (bits - signed)) - 1

    def __repr__(self) -> str:
        return f"CType.{self.name}"


C_NAMES: dict[str, CType] = {t.c_name: t for t in CType} | {
    "char": CType.I8,
    "signed char": CType.I8,
    "unsigned char": CType.U8,
    "short": CType.I16,
    "short int": CType.I16,
    "signed short": CType.I16,
    "signed short int": CType.I16,
    "unsigned short": CType.U16,
    "unsigned short int": CType.U16,
    "int": CType.I32,
    "signed": CType.I32,
    "signed int": CType.I32,
    "unsigned": CType.U32,
    "unsigned int": CType.U32,
    "long": CType.I64,
    "long int": CType.I64,
    "signed long": CType.I64,
    "signed long int": CType.I64,
    "unsigned long": CType.U64,
    "unsigned long int": CType.U64,
    "long long": CType.I64,
    "long long int": CType.I64,
    "signed long long": CType.I64,
    "signed long long int": CType.I64,
    "unsigned long long": CType.U64,
    "unsigned long long int": CType.U64,
    "size_t": CType.U64,
    "ssize_t": CType.I64,
    "ptrdiff_t": CType.I64,
    "uintptr_t": CType.U64,
    "intptr_t": CType.I64,
}
"""Every spelling of an integer type that the front end meets (char is signed, as on both targets' hosts)."""


def fits(ctype: CType, value: int) -> bool:
    """Whether ``value`` is representable in ``ctype``."""
    return ctype.low <= value <= ctype.high


def wrap(ctype: CType, value: int) -> int:
    """The value of ``value`` converted to ``ctype``: modulo 2^bits; to bool: whether it is not 0."""
    if ctype is CType.BOOL:
        return int(value != 0)
    if ctype.low <= value <= ctype.high:
        return value
    reduced = value & ((1 << ctype.bits) - 1)
    return reduced - (1 << ctype.bits) if ctype.signed and reduced > ctype.high else reduced


def promote(ctype: CType) -> CType:
    """Integral promotion: everything narrower than int becomes int."""
    return CType.I32 if ctype.bits < 32 else ctype


def common_type(left: CType, right: CType) -> CType:
    """The usual arithmetic conversions: the type both operands of ``+ < & ?:`` … are converted to."""
    left, right = promote(left), promote(right)
    if left.bits == right.bits:
        return right if left.signed else left  # unsigned wins at equal rank
    return left if left.bits > right.bits else right


def divide(left: int, right: int) -> int:
    """C division: truncates toward zero. Raises ZeroDivisionError."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    """C remainder: takes the sign of ``left``. Raises ZeroDivisionError."""
    return left - right * divide(left, right)
