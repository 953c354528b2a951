"""Shrinking: the smallest launches and parameters at which a fault still shows.

Used by `counterexample`. Each candidate is unrolled anew and asked for the same fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ..protocol.errors import Mc2proofError
from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Expr, Var, VarKind, variables
from ..protocol.instance import Instance, Kind
from ..protocol.parameters import check_values
from ..protocol.program import For, Protocol, statements
from ..protocol.unroll import Limits, unroll
from .pieces import distinct_cores
from .quick import judge

T = TypeVar("T")

Within = Callable[[Mapping[str, Value], int], bool]
"""Whether values, and a number of launches, may be shown: a proof for all values may assume some."""

SMALL = Limits(max_events=20_000)
"""Shrinking looks at instances up to this size only."""

TRIED_VALUES = 40
"""How many values of each parameter shrinking tries."""


@dataclass(frozen=True, slots=True)
class Smallest(Generic[T]):
    """The smallest case at which something was found; ``found`` None: nothing smaller than asked has it."""

    values: dict[str, Value]
    launches: int
    found: T | None


def shrunk(
    instance: Instance, find: Callable[[Instance], T | None], known: frozenset[str] | None = None,
    within: Within | None = None,
) -> Smallest[T]:  # fmt: skip
    """The smallest launches and parameters found at which ``find`` still finds something.

    ``known``: the codes of the errors of ``instance``; a smaller case with others is another fault's.
    ``within``: which cases may be shown.
    """
    values, found = dict(instance.values), None
    for launches in range(1, instance.setup.launches):
        if within is not None and not within(values, launches):
            continue
        setup = replace(instance.setup, launches=launches)
        fewer = _unrolled(replace(instance, setup=setup), values)
        found = None if fewer is None else find(fewer)
        if fewer is not None and found is not None and _has_no_others(fewer, known):
            instance = fewer
            break
        found = None
    stray = _names_strangers(instance)
    before = None
    while before != values:
        before = values
        for name in _shrinkable(instance.protocol, values):
            for candidate in _candidates(instance.protocol, values, name):
                if within is not None and not within(candidate, instance.setup.launches):
                    continue
                smaller = _unrolled(instance, candidate)
                if smaller is not None and not stray and _names_strangers(smaller):
                    continue
                here = None if smaller is None else find(smaller)
                if smaller is not None and here is not None and _has_no_others(smaller, known):
                    values, found = check_values(instance.protocol, candidate), here
                    break
    return Smallest(values, instance.setup.launches, found)


def _has_no_others(instance: Instance, known: frozenset[str] | None) -> bool:
    """Whether ``instance`` has no errors but those of the ``known`` codes."""
    return known is None or judge(instance).errors <= known


def codes_of(instance: Instance, *, strict_ids: bool) -> frozenset[str] | None:
    """The codes of the errors of ``instance``; None where timings share no one order."""
    judgement = judge(instance, strict_ids=strict_ids)
    return judgement.errors if judgement.open is None else None


def _names_strangers(instance: Instance) -> bool:
    """Whether some request goes to a rank that there is not: a fault that fewer ranks must not bring."""
    ranks = range(instance.ranks)
    return any(
        event.kind in (Kind.PUT, Kind.QUIET) and event.peer not in ranks
        for cores in distinct_cores(instance)
        for event in instance.cores[cores[0]].events
    )


def _shrinkable(protocol: Protocol, values: Mapping[str, Value]) -> list[str]:
    """Sizes: ranks and blocks together, blocks alone, then every parameter that bounds a loop.

    Not what a parameter with another value than its default is computed from: rows that a shape gives
    would make a fault of any number of tiles.
    """
    given = {p.name for p in protocol.parameters} - _computed(protocol, values)
    kept = {
        v.name
        for p in protocol.parameters
        if p.name in given and p.name != "blocks" and isinstance(p.default, Expr)
        for v in variables(p.default)
        if isinstance(v, Var)
    }
    bounds = {
        v.name
        for program in protocol.programs.values()
        for s in statements(program)
        if isinstance(s, For)
        for v in variables(s.stop)
        if isinstance(v, Var) and v.kind is VarKind.PARAMETER
    }
    return ["ranks", "blocks", *sorted(bounds - kept - {"ranks", "blocks"})]


def _candidates(protocol: Protocol, values: Mapping[str, Value], name: str) -> Iterator[dict[str, Value]]:
    """Smaller values of one parameter, ascending; blocks follow ranks where they were equal."""
    parameter = protocol.parameter(name)
    current = values.get(name)
    if parameter is None or not isinstance(current, int):
        return
    kept = {n: v for n, v in values.items() if n not in _computed(protocol, values)}
    for value in range(parameter.low, min(current, parameter.low + TRIED_VALUES)):
        candidate = {**kept, name: value}
        if name == "ranks" and values.get("blocks") == current:
            candidate["blocks"] = value
        yield candidate


def _computed(protocol: Protocol, values: Mapping[str, Value]) -> set[str]:
    """The parameters that have the value of their expression: they follow those that it is over."""
    return {
        p.name
        for p in protocol.parameters
        if isinstance(p.default, Expr) and values.get(p.name) == evaluate(p.default, values)
    }


def _unrolled(like: Instance, values: Mapping[str, Value]) -> Instance | None:
    try:
        return unroll(like.protocol, values, like.setup, limits=SMALL)
    except Mc2proofError:
        return None  # smaller parameters may make no sense to this program
