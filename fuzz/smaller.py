"""Which sizes are tried to make a failing case smaller: what may shrink, and to what.

Used by `search`, which runs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Expr, Var, VarKind, variables
from ..protocol.program import Assign, Block, For, Protocol, While, statements


def shrinkable(protocol: Protocol) -> list[str]:
    """Ranks, then blocks where they are not one for each rank, then every parameter that bounds a loop.

    A kernel whose blocks each serve one rank has other faults with fewer blocks than ranks.
    """
    bounds = {name for program in protocol.programs.values() for name in _bounds(program)}
    return ["ranks", "blocks", *sorted(bounds - {"ranks", "blocks"}, reverse=True), "buffer_size"]


def _bounds(program: Block) -> set[str]:
    """The parameters that a loop of ``program`` is bounded by, itself or through locals."""
    made_of: dict[str, set[Var]] = {}
    waiting: set[Var] = set()
    for statement in statements(program):
        if isinstance(statement, For):
            waiting |= _scalars(statement.stop)
        elif isinstance(statement, While):
            waiting |= _scalars(statement.condition)
        elif isinstance(statement, Assign) and isinstance(statement.target, Var):
            made_of.setdefault(statement.target.name, set()).update(_scalars(statement.value))
    met: set[Var] = set()
    while waiting:
        met |= waiting
        waiting = {v for local in waiting for v in made_of.get(local.name, ())} - met
    return {v.name for v in met if v.kind is VarKind.PARAMETER}


def _scalars(expr: Expr) -> set[Var]:
    return {v for v in variables(expr) if isinstance(v, Var)}


def candidates(protocol: Protocol, values: Mapping[str, Value], name: str) -> Iterator[dict[str, Value]]:
    """Smaller values of one parameter, ascending; what is computed from others follows them."""
    parameter, current = protocol.parameter(name), values.get(name)
    if parameter is None or not isinstance(current, int):
        return
    if name == "blocks" and current == values.get("ranks"):
        return
    computed = {
        p.name
        for p in protocol.parameters
        if isinstance(p.default, Expr) and values.get(p.name) == evaluate(p.default, values)
    }
    kept = {n: v for n, v in values.items() if n not in computed}
    for value in range(parameter.low, current):
        candidate = {**kept, name: value}
        if name == "ranks" and values.get("blocks") == current:
            candidate["blocks"] = value
        yield candidate
