"""Which sizes a run takes where nobody gives them: small matrices, in which all tagged inputs still fit.

`sized` completes the values of a protocol that multiplies matrices; any other keeps its own defaults.
`instance` makes an instance of them. Used by `search`, `strategies` and tests of one's own.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from ..protocol.errors import Mc2proofError, ParameterError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance
from ..protocol.parameters import check_values
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import unroll
from .contracts import multiplies
from .tagged import LEVELS

SMALL_SIZES: Mapping[str, int] = {"m": 2, "k": 64, "n": 2}
"""Rows of a tile, columns of A on a rank, columns of the result; the least that is taken of each."""


def checked_values(values: Mapping[str, object]) -> dict[str, Value]:
    """``values`` as Python's integers, arrays as tuples of them. Raises ParameterError."""
    if not isinstance(values, Mapping):
        raise ParameterError("values", repr(values), "must map names of parameters to values")
    return {_name(name): _number(name, value) for name, value in values.items()}


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ParameterError("values", repr(name), "must be the name of a parameter")
    return name


def _number(name: str, value: object) -> Value:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_whole(name, item) for item in value)
    return _whole(name, value)


def _whole(name: str, value: object) -> int:
    """``value`` as an int: those of numpy are integers too."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return operator.index(value)
    raise ParameterError(name, repr(value), "must be an integer, or a sequence of integers for an array")


def sized(protocol: Protocol, values: Mapping[str, object]) -> dict[str, Value]:
    """``values``, with small sizes for the matrices where none are given.

    Small is 2 rows a tile, 64 columns of A and 2 of the result, but at least one column of the result a
    block, as a block without one shows nothing, and as many as tags of all segments need (`tagged`).
    """
    small = checked_values(values)
    if not multiplies(protocol):
        return small
    free = [name for name in SMALL_SIZES if name not in small]
    for name in free:
        small[name] = _within(protocol, name, SMALL_SIZES[name])
    blocks = small.get("blocks", small.get("ranks", _default(protocol, "ranks")))
    least = {"n": blocks if isinstance(blocks, int) else 1}
    digits = _digits(_segments(protocol, small))
    if _takes(small, free, digits):
        least = {"n": max(least["n"], digits), "k": 2 * digits}
    for name, size in least.items():
        if name in free:
            small[name] = _within(protocol, name, max(size, SMALL_SIZES[name]))
    return small


def _digits(segments: int) -> int:
    """The fewest digits in which all ``segments`` can be numbered (see `tagged`)."""
    digits = 1
    while LEVELS[-1] ** digits < segments:
        digits += 1
    return digits


def _takes(small: Mapping[str, Value], free: Sequence[str], digits: int) -> bool:
    """Whether sizes that are not ``free`` leave room for tags of so many ``digits``."""
    needs = {"n": digits, "k": 2 * digits}
    return all(name in free or _at_least(small[name], need) for name, need in needs.items())


def _at_least(value: Value, least: int) -> bool:
    return isinstance(value, int) and value >= least


def _within(protocol: Protocol, name: str, size: int) -> int:
    """``size``, or the end of the domain of the parameter that is nearest to it."""
    parameter = protocol.parameter(name)
    assert parameter is not None  # of a product
    size = max(size, parameter.low)
    return size if parameter.high is None else min(size, parameter.high)


def _default(protocol: Protocol, name: str) -> object:
    parameter = protocol.parameter(name)
    return None if parameter is None else parameter.default


def _segments(protocol: Protocol, values: Mapping[str, Value]) -> int:
    """How many segments tags are to tell apart; 1 where values are wrong, as `unroll` is to say."""
    try:
        complete = check_values(protocol, values)
    except Mc2proofError:
        return 1
    numbers = {name: value for name, value in complete.items() if isinstance(value, int)}
    rows = numbers.get("rows", numbers["m"] * numbers.get("tile_cnt", 1))
    tiles = -(-rows // numbers["m"]) if numbers["m"] else 1
    return numbers["ranks"] ** 2 * max(tiles, 1)


def instance(
    protocol: Protocol, values: Mapping[str, object] | None = None, setup: Setup | None = None
) -> Instance:
    """An instance of ``protocol`` at ``values``, with small matrices where their sizes are not given.

    ``setup``: the hardware and the build, `Setup`'s defaults if None. Raises ParameterError.
    """
    checked_protocol(protocol)
    checked_setup(setup)
    return unroll(protocol, sized(protocol, values or {}), setup)


def checked_protocol(protocol: object, name: str = "protocol") -> None:
    """Raises ParameterError unless ``protocol`` is one; of a list, it says which to take."""
    if isinstance(protocol, Protocol):
        return
    if isinstance(protocol, Sequence) and protocol and isinstance(protocol[0], Protocol):
        found = f"must be one Protocol, not {len(protocol)} of them: mc2proof.load(...)[0] is the first"
        raise ParameterError(name, None, found)
    raise ParameterError(name, _short(protocol), "must be a Protocol, such as mc2proof.load(...)[0]")


def checked_setup(setup: object) -> None:
    """Raises ParameterError unless ``setup`` is a Setup or None."""
    if setup is not None and not isinstance(setup, Setup):
        raise ParameterError("setup", _short(setup), "must be a Setup, as mc2proof.fuzz.Setup(launches=2)")


def checked_whole(name: str, value: object, low: int) -> None:
    """Raises ParameterError unless ``value`` is an integer from ``low``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ParameterError(name, repr(value), f"must be an integer from {low}")


def _short(value: object, most: int = 60) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]}..."
