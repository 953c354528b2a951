"""Verdicts at many values from one proof for all of them: what `sweep` asks before it asks by instance.

Proved once for all ranks, tiles and depths that are powers of two; where the values do not belong to that, or
nothing was proved, there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...protocol.errors import Mc2proofError
from ...protocol.evaluate import Value
from ...protocol.parameters import check_values
from ...protocol.program import Protocol
from ...protocol.setup import Setup
from ..properties import rows_for
from ..report import Verdict
from .decide import Decision, decide
from .domain import Domain, domain_of, satisfied
from .forall import RLIMIT

FREE = ("ranks", "tile_cnt", "buffer_size")
ASSUMED = {"ranks": "ranks >= 2", "tile_cnt": "tile_cnt >= 1", "buffer_size": "buffer_size power of 2"}

COUNTED = frozenset({"deadlock-freedom", "flag-balance", "flag-range", "barrier-match"})
"""Properties that a sweep decides by itself on one block of each kind."""

Answers = Mapping[str, Verdict | None]


def answer(protocol: Protocol, setup: Setup) -> Callable[[Mapping[str, Value]], Answers]:
    """A function from values to the verdicts that hold for all values like them; None where there is none."""
    known: dict[tuple[object, ...], tuple[Domain, Mapping[str, Decision]] | None] = {}
    free = tuple(name for name in FREE if protocol.parameter(name) is not None)

    def at(values: Mapping[str, Value]) -> Answers:
        given = _given(protocol, values, free)
        if given is None:
            return {}
        key = tuple(given.items())
        if key not in known:
            known[key] = _decided(protocol, setup, free, given)
        found = known[key]
        return {} if found is None else _verdicts(*found, values)

    return at


def _given(protocol: Protocol, values: Mapping[str, Value], free: tuple[str, ...]) -> dict[str, Value] | None:
    """The values that are no default and not free; None where one of them follows a free one otherwise."""
    chosen = {name: values[name] for name in free}
    kept: dict[str, Value] = dict(chosen)
    for parameter in protocol.parameters:
        name = parameter.name
        if name in kept:
            continue
        try:
            usual = check_values(protocol, kept).get(name)
        except Mc2proofError:
            usual = None
        if usual != values[name]:
            if parameter.default is not None and not isinstance(parameter.default, int):
                return None  # a size that the tiles would compute, given another way
            if name == "blocks":
                return None
            kept[name] = values[name]
    return {name: value for name, value in kept.items() if name not in chosen}


def _decided(
    protocol: Protocol, setup: Setup, free: tuple[str, ...], given: Mapping[str, Value]
) -> tuple[Domain, Mapping[str, Decision]] | None:
    try:
        domain = domain_of(protocol, free, given, [ASSUMED[name] for name in free], setup.launches)
        names = [name for name in rows_for(setup.launches) if name not in COUNTED]
        found = decide(protocol, setup, domain, names, rlimit=RLIMIT)
    except Mc2proofError:
        return None
    return domain, found.decisions


def _verdicts(domain: Domain, decisions: Mapping[str, Decision], values: Mapping[str, Value]) -> Answers:
    at = {name: value for name, value in values.items() if name in domain.free and isinstance(value, int)}
    if len(at) != len(domain.free) or not domain.contains(at):
        return {}
    return {name: _verdict(decision, at) for name, decision in decisions.items()}


def _verdict(decision: Decision, at: Mapping[str, int]) -> Verdict | None:
    if decision.proved:
        return Verdict.PROVED
    if decision.nothing:
        return Verdict.VACUOUS
    if decision.condition is None:
        return None
    if satisfied(decision.condition, at):
        return Verdict.PROVED
    return Verdict.VIOLATED if decision.exact and decision.name == "layout" else None
