"""Parameters and their values: completing what a user gives, and checking it against the domains."""

from __future__ import annotations

from collections.abc import Mapping

from .cinteger import fits
from .errors import ParameterError
from .evaluate import Value, evaluate
from .expr import Expr, Var, variables
from .program import Parameter, Protocol


def check_values(protocol: Protocol, values: Mapping[str, Value]) -> dict[str, Value]:
    """``values`` completed with defaults, in the order of the protocol's parameters.

    Raises ParameterError: for an unknown name, for a value outside its domain or type, and once for
    all names without a value.
    """
    for name, value in values.items():
        if protocol.parameter(name) is None:
            known = ", ".join(p.name for p in protocol.parameters)
            raise ParameterError(name, value, f"{protocol.name} has no such parameter (it has {known})")
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
    return {p.name: found[p.name] for p in protocol.parameters}


def _complete(parameter: Parameter, values: Mapping[str, Value], found: dict[str, Value]) -> bool:
    """File the value of ``parameter`` in ``found``; False if it has to wait for others."""
    given = values.get(parameter.name, parameter.default)
    if isinstance(given, Expr):
        if not {v.name for v in variables(given) if isinstance(v, Var)} <= found.keys():
            return False
        given = evaluate(given, found)
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
