"""From ``--shape M,K,N`` to the values of parameters, by the host program's rules.

Used by `face` for ``prove --shape`` and for ``plan``; the rules themselves are in
`protocol.ascendc.host`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mc2proof.protocol.errors import ParameterError, SourceError
from mc2proof.protocol.program import Assumption, Protocol
from mc2proof.values import Value

if TYPE_CHECKING:
    from mc2proof.protocol.ascendc import Facts
    from mc2proof.protocol.ascendc.host import Geometry, HostRules


def parse_shape(text: str) -> tuple[int, int, int]:
    """The numbers of ``M,K,N``. Raises ParameterError."""
    items = text.split(",")
    if len(items) != 3 or not all(item.strip().removeprefix("-").isdecimal() for item in items):
        raise ParameterError("--shape", None, f"{text!r} is not of the form M,K,N, three whole numbers")
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

    if len(shape) != 3 or not all(type(size) is int for size in shape):
        raise ParameterError("shape", repr(shape), "must be three integers: M, K, N")
    rules = host_rules(facts)
    _check_names(protocols, rules)
    for name, value in values.items():
        if name in rules.parameters and name not in rules.choices:
            raise ParameterError(name, value, "the host program computes it from the shape: leave one out")
    geometry = rules.geometry(shape, _ranks(protocols, values))
    complete = {**geometry.parameters, **values}
    noted = [replace(p, assumptions=(*p.assumptions, *_notes(rules, geometry, complete))) for p in protocols]
    return noted, complete, rules, geometry


def one_program(protocols: Sequence[Protocol]) -> Protocol:
    """The protocol that all ``protocols`` are, with all their subjects. Raises ParameterError."""
    if len({protocol.digest() for protocol in protocols}) > 1:
        names = ", ".join(protocol.name for protocol in protocols)
        raise ParameterError("entry", None, f"a plan is of one program, and these differ: {names} (--entry)")
    subjects = tuple(name for p in protocols for name in p.subjects or (p.name,))
    return replace(protocols[0], subjects=subjects)


def _check_names(protocols: Sequence[Protocol], rules: HostRules) -> None:
    for protocol in protocols:
        lacking = [name for name in rules.parameters if protocol.parameter(name) is None]
        if lacking:
            raise SourceError(
                f"{rules.file}: its host rules are not those of {protocol.name}, which has no parameter "
                f"{', '.join(lacking)}: give facts that fit (--facts), or the parameters themselves"
            )


def _ranks(protocols: Sequence[Protocol], values: Mapping[str, Value]) -> int:
    parameter = protocols[0].parameter("ranks")
    ranks = values.get("ranks", parameter.default if parameter is not None else None)
    if not isinstance(ranks, int):
        raise ParameterError("ranks", None, "no value given (--ranks N): a shape is one on some ranks")
    return ranks


def _notes(rules: HostRules, geometry: Geometry, values: Mapping[str, Value]) -> list[Assumption]:
    """What came from the host's rules, and what they leave out."""
    m, k, n = geometry.shape
    computed = ", ".join(f"{name} {v}" for name, v in geometry.parameters.items() if values[name] == v)
    text = (
        f"{rules.file}: {computed} are what the host program ({rules.source}) computes for M {m}, K {k}, "
        f"N {n} on {geometry.ranks} ranks"
    )
    notes = [Assumption("host-rules", text)]
    numbers = {name: v for name, v in values.items() if isinstance(v, int)}
    dropped = rules.dropped_rows({**numbers, "ranks": geometry.ranks})
    if dropped:
        text = f"{rules.file}: the last {dropped} of the {m} rows for each rank are in no tile, and dropped"
        notes.append(Assumption("rows-dropped", text))
    return notes
