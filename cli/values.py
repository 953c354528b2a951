"""Parameter values as they are given: ``--tile-cnt 4``, ``--set tile_cnt=4``, ``tile_cnt=4``.

A parameter has one name, however it is given; two different values for it are an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mc2proof.hints import did_you_mean
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import Protocol

Value = int | tuple[int, ...]
Given = tuple[str, str, Value]
"""How a value was given (as messages name it), the parameter's name, the value."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]{1,40})")


def parse_setting(text: str) -> tuple[str, Value]:
    """Name and value of ``NAME=VALUE``; an array is ``NAME=1,2,3``. Raises ParameterError."""
    name, equals, written = text.partition("=")
    name, written = name.strip(), written.strip()
    if not equals or not _NAME.fullmatch(name) or not written:
        raise ParameterError("--set", None, f"{text!r} is not of the form NAME=VALUE")
    items = written.removesuffix(",").split(",")
    numbers = []
    for item in (i.strip() for i in items):
        if not _NUMBER.fullmatch(item):
            raise ParameterError("--set", None, f"{item!r} in {text!r} is not a whole number")
        numbers.append(int(item, 16) if "x" in item.lower() else int(item))
    return name, tuple(numbers) if "," in written else numbers[0]


def given_values(
    ranks: int | None,
    buffer_size: int | None,
    tile_cnt: int | None,
    blocks: int | None,
    settings: Iterable[str],
) -> dict[str, Value]:
    """The values by name of the options that commands share, None where not given, and of ``--set``."""
    named = {"ranks": ranks, "blocks": blocks, "buffer_size": buffer_size, "tile_cnt": tile_cnt}
    given: list[Given] = [
        (f"--{name.replace('_', '-')}", name, value) for name, value in named.items() if value is not None
    ]
    return merge([*given, *(("--set", *parse_setting(text)) for text in settings)])


def merge(given: Iterable[Given]) -> dict[str, Value]:
    """The values by name. Raises ParameterError where one name has two different values."""
    values: dict[str, Value] = {}
    origin: dict[str, str] = {}
    for how, name, value in given:
        if values.setdefault(name, value) != value:
            raise ParameterError(
                name,
                None,
                f"given twice, as {_shown(values[name])} ({origin[name]}) and {_shown(value)} ({how})",
            )
        origin.setdefault(name, how)
    return values


def checked_value(name: str, value: object) -> Value:
    """``value`` if it is an integer or a sequence of integers. Raises ParameterError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = tuple(value)
        if all(isinstance(i, int) and not isinstance(i, bool) for i in items):
            return items
    raise ParameterError(name, repr(value), "must be an integer, or a sequence of integers for an array")


def check_names(values: Mapping[str, Value], protocols: Sequence[Protocol]) -> None:
    """Raises ParameterError for a name that no protocol has as a parameter, with the closest one."""
    known = list(dict.fromkeys(p.name for protocol in protocols for p in protocol.parameters))
    for name, value in values.items():
        if name not in known:
            others = len(protocols) - 1
            subjects = protocols[0].name + (f" and {others} more" if others else "")
            raise ParameterError(
                name,
                _shown(value),
                f"no such parameter of {subjects}{did_you_mean(name, known)} (it has {', '.join(known)})",
            )


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else ",".join(map(str, value))
