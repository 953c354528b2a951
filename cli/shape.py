"""From ``--shape M,K,N`` to the values of parameters, by the host program's rules.

Used by `face` for ``prove --shape`` and for ``plan``; the rules themselves are in
`protocol.ascendc.host`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mc2proof.protocol.errors import ParameterError, SourceError
from mc2proof.protocol.parameters import check_values
from mc2proof.protocol.program import Assumption, Protocol
from mc2proof.values import Value

if TYPE_CHECKING:
    from mc2proof.protocol.ascendc import Facts
    from mc2proof.protocol.ascendc.host import Geometry, HostRules


_NUMBER = re.compile(r"[+-]?[0-9]{1,40}")
_SHOWN = 60
"""Characters of a text that an error repeats."""


def parse_shape(text: str) -> tuple[int, int, int]:
    """The numbers of ``M,K,N``. Raises ParameterError."""
    items = text.split(",")
    if len(items) != 3 or not all(_NUMBER.fullmatch(item.strip()) for item in items):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ParameterError("--shape", None, f"{shown!r} is not of the form M,K,N, three whole numbers")
    m, k, n = map(int, items)
    return m, k, n


def shaped(
    protocols: Sequence[Protocol],
    values: Mapping[str, Value],
    shape: tuple[int, int, int],
    facts: Facts,
) -> tuple[list[Protocol], dict[str, Value], HostRules, Geometry]:
    """``protocols`` with what the host's rules make of ``shape`` as assumptions, and all values.

    Raises SourceError where the rules do not fit the protocols, ParameterError for what the host
    rejects, and for a given value that it computes itself.
    """
    from mc2proof.protocol.ascendc.host import host_rules

    shape = checked_shape(shape)
    rules = host_rules(facts)
    _check_names(protocols, rules)
    for name, value in values.items():
        if name in rules.parameters and name not in rules.choices:
            raise ParameterError(name, value, "the host program computes it from the shape: leave one out")
    geometry = rules.geometry(shape, _ranks(protocols, values))
    complete = {**geometry.parameters, **values}
    noted = [replace(p, assumptions=(*p.assumptions, *_notes(rules, geometry, complete))) for p in protocols]
    return noted, complete, rules, geometry


def checked_shape(shape: object) -> tuple[int, int, int]:
    """``shape`` if it is three integers. Raises ParameterError."""
    if isinstance(shape, Sequence) and not isinstance(shape, str) and len(shape) == 3:
        m, k, n = shape
        if type(m) is int and type(k) is int and type(n) is int:
            return m, k, n
    raise ParameterError("shape", repr(shape), "must be three integers: M, K, N")


def one_program(protocols: Sequence[Protocol], what: str = "a plan is of") -> Protocol:
    """The protocol that all ``protocols`` are, with all their subjects. Raises ParameterError.

    ``what``: the beginning of the message, what it is that needs one.
    """
    if len({protocol.digest() for protocol in protocols}) > 1:
        names = ", ".join(protocol.name for protocol in protocols)
        raise ParameterError("entry", None, f"{what} one program, and these differ: {names} (--entry)")
    subjects = tuple(name for p in protocols for name in p.subjects or (p.name,))
    return replace(protocols[0], subjects=subjects)


def _check_names(protocols: Sequence[Protocol], rules: HostRules) -> None:
    for protocol in protocols:
        lacking = [name for name in rules.parameters if protocol.parameter(name) is None]
        if lacking:
            raise SourceError(
                f"{rules.file}: its host rules are not those of {protocol.name}, which has no parameter "
                f"{', '.join(lacking)}: give facts whose [host] table is for it (--facts FILE), or, "
                "without a shape, the parameters themselves (--set NAME=VALUE)"
            )


def _ranks(protocols: Sequence[Protocol], values: Mapping[str, Value]) -> int:
    """The one number of ranks that all ``protocols`` are meant for."""
    given: object = values.get("ranks")
    if given is None:
        defaults = {p.default for protocol in protocols for p in protocol.parameters if p.name == "ranks"}
        if len(defaults) > 1:
            shown = ", ".join(f"{p.name} {_default(p, 'ranks')}" for p in protocols)
            raise ParameterError("ranks", None, f"the defaults differ ({shown}): give one value (--ranks N)")
        (given,) = defaults
    if isinstance(given, tuple):
        raise ParameterError("ranks", ",".join(map(str, given)), "is one number, not an array")
    if not isinstance(given, int):
        raise ParameterError("ranks", None, "no value given (--ranks N): a shape is one on some ranks")
    return given


def one_setting(protocols: Sequence[Protocol], values: Mapping[str, Value]) -> None:
    """Raises ParameterError where a parameter of several protocols would have several values.

    A report has one table of parameters for all its protocols.
    """
    of_first: dict[str, tuple[Value, Protocol]] = {}
    for protocol in protocols:
        for name, value in check_values(protocol, values).items():
            first, other = of_first.setdefault(name, (value, protocol))
            if first != value:
                raise ParameterError(
                    name,
                    None,
                    f"is {first} for {other.name} and {value} for {protocol.name}: give one value "
                    f"(--set {name}=VALUE), or prove them one by one",
                )


def _default(protocol: Protocol, name: str) -> object:
    parameter = protocol.parameter(name)
    return "none" if parameter is None or parameter.default is None else parameter.default


def _notes(rules: HostRules, geometry: Geometry, values: Mapping[str, Value]) -> list[Assumption]:
    """What came from the host's rules, and what they leave out."""
    m, k, n = geometry.shape
    computed = ", ".join(f"{name} {v}" for name, v in geometry.parameters.items() if values[name] == v)
    text = (
        f"{rules.file}: {computed} are what the host program ({rules.source}) computes for M {m}, K {k}, "
        f"N {n} on {geometry.ranks} ranks"
    )
    notes = [Assumption("host-rules", text)]
    if "blocks" not in values:
        text = (
            f"{geometry.ranks} blocks are launched on each rank, as many as ranks (--blocks N): the host "
            "program launches what its own tiling says"
        )
        notes.append(Assumption("blocks-as-ranks", text))
    numbers = {name: v for name, v in values.items() if isinstance(v, int)}
    dropped = rules.dropped_rows({**numbers, "ranks": geometry.ranks})
    if dropped:
        text = f"{rules.file}: the last {dropped} of the {m} rows for each rank are in no tile, and dropped"
        notes.append(Assumption("rows-dropped", text))
    return notes
