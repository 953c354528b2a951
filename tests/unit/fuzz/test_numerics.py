"""All codes of the formats, rounding to bf16, and the scales of groups."""

import math

import ml_dtypes
import numpy as np
import pytest

from mc2proof.fuzz.numerics import (
    PAIRS,
    SCALES,
    VALUES,
    Dtypes,
    dequantise,
    from_bfloat16,
    parse_dtypes,
    scale_bytes,
    to_bfloat16,
)
from mc2proof.protocol.errors import ParameterError

KINDS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
BY_HAND = {
    "e4m3": {
        0x00: 0.0, 0x01: 2**-9, 0x07: 7 * 2**-9, 0x08: 2**-6, 0x38: 1.0, 0x39: 1.125, 0x40: 2.0,
        0x7E: 448.0, 0x7F: math.nan, 0x80: -0.0, 0xB8: -1.0, 0xFE: -448.0, 0xFF: math.nan,
    },
    "e5m2": {
        0x00: 0.0, 0x01: 2**-16, 0x03: 3 * 2**-16, 0x04: 2**-14, 0x3C: 1.0, 0x3D: 1.25, 0x40: 2.0,
        0x7B: 57344.0, 0x7C: math.inf, 0x7D: math.nan, 0x7F: math.nan, 0x80: -0.0, 0xFB: -57344.0,
        0xFC: -math.inf, 0xFE: math.nan,
    },
}  # fmt: skip
FIELDS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}  # exponent bits, fraction bits, bias
ROUNDED = {
    "exact": (1.0, 0x3F80),
    "tie to even, down": (1 + 2**-8, 0x3F80),
    "tie to even, up": (1 + 3 * 2**-8, 0x3F82),
    "above the tie": (1 + 2**-8 + 2**-20, 0x3F81),
    "below the tie": (1 + 3 * 2**-8 - 2**-20, 0x3F81),
    "carries into the exponent": (2 - 2**-9, 0x4000),
    "negative tie": (-(1 + 3 * 2**-8), 0xBF82),
    "minus zero": (-0.0, 0x8000),
    "least subnormal": (2**-133, 0x0001),
    "half of it ties to zero": (2**-134, 0x0000),
    "three halves of it tie to two": (3 * 2**-134, 0x0002),
    "largest": (2**127 * (2 - 2**-7), 0x7F7F),
    "below the tie to infinity": (2**127 * (2 - 2**-8 - 2**-20), 0x7F7F),
    "tie to infinity": (2**127 * (2 - 2**-8), 0x7F80),
    "infinity": (-math.inf, 0xFF80),
}


def by_fields(code: int, dtype: str) -> float:
    """What a finite code stands for, from its definition."""
    exponent_bits, fraction_bits, bias = FIELDS[dtype]
    exponent = code >> fraction_bits & (1 << exponent_bits) - 1
    fraction = code & (1 << fraction_bits) - 1
    sign = -1.0 if code & 0x80 else 1.0
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)


@pytest.mark.parametrize("dtype", KINDS)
def test_all_codes_are_those_of_ml_dtypes(dtype: str) -> None:
    expected = np.arange(256, dtype=np.uint8).view(KINDS[dtype]).astype(np.float32)
    assert VALUES[dtype].tobytes() == expected.tobytes()  # signs of zeros too


@pytest.mark.parametrize("dtype", KINDS)
def test_all_finite_codes_by_their_fields(dtype: str) -> None:
    finite = [code for code in range(256) if math.isfinite(VALUES[dtype][code])]
    assert len(finite) == {"e4m3": 254, "e5m2": 248}[dtype]
    assert [float(VALUES[dtype][code]) for code in finite] == [by_fields(code, dtype) for code in finite]


@pytest.mark.parametrize(("dtype", "code"), [(dtype, code) for dtype in BY_HAND for code in BY_HAND[dtype]])
def test_codes_by_hand(dtype: str, code: int) -> None:
    found, expected = float(VALUES[dtype][code]), BY_HAND[dtype][code]
    assert math.isnan(found) if math.isnan(expected) else found == expected


def test_all_scales() -> None:
    expected = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(SCALES, expected)
    assert [float(s) for s in SCALES[:255]] == [math.ldexp(1, code - 127) for code in range(255)]
    assert math.isnan(SCALES[255])


@pytest.mark.parametrize("case", ROUNDED)
def test_rounding_to_bf16(case: str) -> None:
    number, code = ROUNDED[case]
    assert int(to_bfloat16(np.array([number], np.float32))[0]) == code


def test_every_bf16_code_survives_the_way_there_and_back() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = from_bfloat16(codes)
    assert (numbers.view(np.uint32)[~np.isnan(numbers)] >> 16 == codes[~np.isnan(numbers)]).all()
    back = to_bfloat16(numbers)
    np.testing.assert_array_equal(back[~np.isnan(numbers)], codes[~np.isnan(numbers)])
    assert np.isnan(from_bfloat16(back[np.isnan(numbers)])).all()


@pytest.mark.parametrize(("k", "size"), [(1, 2), (32, 2), (33, 2), (64, 2), (65, 4), (96, 4), (2048, 64)])
def test_scales_are_stored_in_pairs(k: int, size: int) -> None:
    assert scale_bytes(k) == size


@pytest.mark.parametrize("k", [1, 31, 32, 33, 64, 96, 100])
def test_each_group_has_its_scale_and_the_spare_one_none(k: int) -> None:
    random = np.random.default_rng(k)
    values = random.integers(0, 0x7E, size=(3, k), dtype=np.uint8)
    scales = random.integers(120, 135, size=(3, scale_bytes(k)), dtype=np.uint8)
    scales[:, -(-k // 32) :] = 255  # spare: NaN if it were used
    found = dequantise(values, scales, "e4m3")
    for row in range(3):
        for column in range(k):
            scale = math.ldexp(1, int(scales[row, column // 32]) - 127)
            assert found[row, column] == by_fields(int(values[row, column]), "e4m3") * scale


def test_dequantised_extremes() -> None:
    codes = np.array([[0x7E, 0x01, 0x00, 0x7F]], np.uint8)

    def at(scale: int) -> list[float]:
        return [float(x) for x in dequantise(codes, np.array([[scale, 0]], np.uint8), "e4m3")[0]]

    assert at(0)[:3] == [448 * 2.0**-127, 2.0**-136, 0.0]  # exact, also where subnormal
    assert at(245)[0] == 448 * 2.0**118
    assert at(246)[0] == math.ldexp(448, 119)
    assert at(247)[0] == math.inf
    assert at(254)[1:3] == [2.0**118, 0.0]
    assert all(math.isnan(x) for x in at(255))
    assert math.isnan(at(127)[3])


def test_layout_of_the_bytes_does_not_matter() -> None:
    values = np.asfortranarray(np.arange(128, dtype=np.uint8).reshape(2, 64) % 0x7E)
    scales = np.full((2, 2), 128, np.uint8)
    plain = dequantise(np.ascontiguousarray(values), scales, "e5m2")
    np.testing.assert_array_equal(dequantise(values, scales, "e5m2"), plain)


def test_names_of_formats() -> None:
    assert [str(pair) for pair in PAIRS] == ["e4m3:e4m3", "e4m3:e5m2", "e5m2:e4m3", "e5m2:e5m2"]
    assert [parse_dtypes(str(pair)) for pair in PAIRS] == list(PAIRS)
    assert parse_dtypes(" E4M3:e5m2 ") == Dtypes("e4m3", "e5m2")
    for wrong in ("", "e4m3", "e4m3:", "e4m3:e4m4", "e4m3:e5m2:e4m3"):
        with pytest.raises(ParameterError, match="must be one of e4m3:e4m3, e4m3:e5m2"):
            parse_dtypes(wrong)
    with pytest.raises(ParameterError, match="dtype = fp4"):
        Dtypes("fp4", "e4m3")
