"""Whether a result passes: the acceptance test of the reference kernel, without torch.

It is ``torch.allclose(golden, found, rtol=0.01, atol=0.01, equal_nan=True)`` on bf16 tensors
(hardware.md 5). Torch's steps each round to bf16, and its two constants are not rounded alike: 0.01 is
a float32 where it multiplies, and a bf16 where it is added. Compared with torch 2.13 for the AVX-512,
AVX2 and plain code paths: all 65536 tolerances and 6 million random pairs agree. Used by `devicefiles`,
`forensics` and the executable model's reports.
"""

from __future__ import annotations

import numpy as np

from .numerics import Codes, Floats, Mask, from_bfloat16, round_to_bfloat16

TOLERANCE = 1e-2
RELATIVE: np.float32 = np.float32(TOLERANCE)
ABSOLUTE: np.float32 = round_to_bfloat16(np.array([TOLERANCE], np.float32))[0]


def accepted(golden: Codes, found: Codes) -> Mask:
    """Which elements of ``found`` pass, given bf16 codes: |golden - found| <= 0.01 + 0.01 * |found|.

    Equal values pass, equal infinities too, and a NaN passes where a NaN is expected.
    """
    expected, result = from_bfloat16(golden), from_bfloat16(found)
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs fail by the rule itself
        error = difference(expected, result)
        near = np.isfinite(error) & (error <= tolerance(result))
    both_nan = np.isnan(expected) & np.isnan(result)
    passes: Mask = near | (expected == result) | both_nan
    return passes


def difference(expected: Floats, result: Floats) -> Floats:
    """|expected - result|, rounded to bf16."""
    error: Floats = np.abs(round_to_bfloat16(expected - result))
    return error


def tolerance(result: Floats) -> Floats:
    """The error that is allowed beside a ``result`` of bf16 values: relative to it, and absolute."""
    return round_to_bfloat16(ABSOLUTE + np.abs(round_to_bfloat16(result * RELATIVE)))
