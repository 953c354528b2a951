"""Arguments of the Python face: each is of the type that it is to be, or a ParameterError says so.

Used by `face`; values of parameters are checked in `values`, shapes in `shape`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from mc2proof.hints import unknown
from mc2proof.protocol.errors import ParameterError


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """``value`` if it is an integer from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ParameterError(name, repr(value), "must be an integer")
    if value < low or (high is not None and value > high):
        domain = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(name, value, f"must be {domain}")
    return value


def flag(name: str, value: object) -> bool:
    """``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(name, repr(value), "must be True or False")
    return value


def one_of(name: str, what: str, value: object, known: Iterable[str]) -> str:
    """``value`` if it is one of the words ``known``, each of which is a ``what``."""
    words = list(known)
    if not isinstance(value, str):
        raise ParameterError(name, repr(value), f"must be one of {', '.join(words)}")
    if value not in words:
        raise ParameterError(name, None, unknown(what, value, words))
    return value


def several(name: str, value: object) -> list[object]:
    """The items of a sequence; a string is none."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ParameterError(name, repr(value), "must be a sequence of names")
    return list(value)


def path(name: str, value: object) -> str:
    """``value`` as a path, if it is one."""
    if isinstance(value, str | os.PathLike):
        text: object = os.fspath(value)
        if isinstance(text, str):
            return text
    raise ParameterError(name, repr(value), "must be a path")


def mapping(name: str, value: object) -> Mapping[str, object]:
    """``value`` if it maps names to anything; None is empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ParameterError(name, repr(value), "must map names of parameters to values")
    return value


def caller(name: str, value: object) -> None:
    """Raises ParameterError unless ``value`` can be called, or is None."""
    if value is not None and not callable(value):
        raise ParameterError(name, repr(value), "must be a function of one text")


def texts(name: str, value: object) -> Sequence[str]:
    """The items of a sequence of strings."""
    items = several(name, value)
    for item in items:
        if not isinstance(item, str):
            raise ParameterError(name, repr(item), "must be text")
    return [item for item in items if isinstance(item, str)]
