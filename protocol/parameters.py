"""Parameters and their values: completing what a user gives, and checking it against the domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .cinteger import fits
from .errors import ParameterError, SourceError
from .evaluate import Value, evaluate
from .expr import Expr, Var, variables
from .program import Parameter, Protocol

_SIZED_RANKS = 1024
"""On so many ranks a size that depends on the rank is tried; the size of an instance is not known yet."""


def check_values(protocol: Protocol, values: Mapping[str, Value]) -> dict[str, Value]:
    """``values`` completed with defaults, in the order of the protocol's parameters.

    Raises ParameterError: for an unknown name, for a value outside its domain or type, for an array
    where one number is meant, and once for all names without a value; SourceError for a default or
    a size of a region that cannot be computed.
    """
    for name, value in values.items():
        if protocol.parameter(name) is None:
            known = ", ".join(p.name for p in protocol.parameters)
            raise ParameterError(name, value, f"{protocol.name} has no such parameter (it has {known})")
    _check_numbers(protocol, values)
    found: dict[str, Value] = {}
    waiting = list(protocol.parameters)
    while waiting:  # a default may be computed from parameters that stand behind it
        later = [p for p in waiting if not _complete(p, values, found)]
        if len(later) == len(waiting):
            missing = [p.name for p in later if p.name != "blocks" and not isinstance(p.default, Expr)]
            raise ParameterError(
                ", ".join(missing), None, f"no value given (--set {missing[0]}=VALUE, or its own option)"
            )
        waiting = later
    _check_sizes(protocol, found)
    return {p.name: found[p.name] for p in protocol.parameters}


def _check_numbers(protocol: Protocol, values: Mapping[str, Value]) -> None:
    """Refuse arrays for what an instance is made by, and what sizes and defaults are computed from."""
    arrays = {name: items for name, items in values.items() if isinstance(items, tuple)}
    if not arrays:
        return
    texts: Iterable[object] = (
        *(p.default for p in protocol.parameters),
        *(r.bytes for r in protocol.regions),
    )
    used = {v.name for e in texts if isinstance(e, Expr) for v in variables(e) if isinstance(v, Var)}
    for name, items in arrays.items():
        if name in used | {"ranks", "blocks"}:
            raise ParameterError(name, ",".join(map(str, items)), "is one number, not an array")


def _check_sizes(protocol: Protocol, values: Mapping[str, Value]) -> None:
    """Compute the size of every region once, so that nobody meets an error in it later."""
    ranks = values.get("ranks")
    for region in protocol.regions:
        if region.bytes is None:
            continue
        used = {v.name for v in variables(region.bytes) if isinstance(v, Var)}
        if not used <= {*values, "rank"}:
            continue  # a name that is no parameter is refused where the program is unrolled
        last = min(ranks, _SIZED_RANKS) if isinstance(ranks, int) and "rank" in used else 1
        for rank in range(last):
            _computed(f"the size of region {region.name}", region.bytes, {**values, "rank": rank})


def _computed(what: str, expr: Expr, values: Mapping[str, Value]) -> int:
    try:
        return evaluate(expr, values)
    except (ZeroDivisionError, ValueError) as error:
        reason = "division by zero" if isinstance(error, ZeroDivisionError) else error
        raise SourceError(f"{what}, `{expr}`, cannot be computed: {reason}") from error


def _complete(parameter: Parameter, values: Mapping[str, Value], found: dict[str, Value]) -> bool:
    """File the value of ``parameter`` in ``found``; False if it has to wait for others."""
    given = values.get(parameter.name, parameter.default)
    if isinstance(given, Expr):
        if not {v.name for v in variables(given) if isinstance(v, Var)} <= found.keys():
            return False
        given = _computed(f"the default of {parameter.name}", given, found)
    if given is None and parameter.name == "blocks":
        given = found.get("ranks")
    if given is None:
        return False
    for item in given if isinstance(given, tuple) else (given,):
        high = parameter.type.high if parameter.high is None else parameter.high
        if not parameter.low <= item <= high or not fits(parameter.type, item):
            above = parameter.high is None and item < parameter.low
            domain = f"at least {parameter.low}" if above else f"from {parameter.low} to {high}"
            raise ParameterError(parameter.name, item, f"must be {domain}")
    found[parameter.name] = given
    return True
