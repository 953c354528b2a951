"""The last pass over a lowered program: what nobody reads goes, and every variable gets its name.

While lowering, variables carry names that cannot clash (``count#3``, ``tiling.commTiling.tileCnt``).
Here parameters become ``tile_cnt`` and locals keep the source's name where it is free. Used by
`entry`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..errors import SourceError
from ..expr import Expr, Var, VarKind, variables
from ..program import Assign, Block, Compute, For, If, Statement, While, expressions, statements
from ..rewrite import renamed

IDENTITIES = frozenset({"ranks", "blocks", "rank", "block", "sub"})
"""Names that every program has; nothing else may be called so."""


def snake_case(name: str) -> str:
    """``tileCnt`` as ``tile_cnt``; ``axisM_`` as ``axis_m``, ``scaleKL1`` as ``scale_kl1``."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip("_"))
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def substitute(expr: Expr, values: Mapping[Var, Var]) -> Expr:
    """``expr`` with variables replaced by others of their type."""
    return renamed(expr, lambda var: values.get(var, var))


# --- what nobody reads ------------------------------------------------------------------------


def pruned(block: Block) -> Block:
    """``block`` without assignments to locals that reach no operation, and without empty branches."""
    while True:
        smaller = _pruned_once(block)
        if smaller == block:
            return block
        block = smaller


def _pruned_once(block: Block) -> Block:
    needed: set[str] = set()
    assigns: list[Assign] = []
    for statement in statements(block):
        if isinstance(statement, Assign):
            assigns.append(statement)
        else:
            needed |= _read(statement)
    while True:
        more = {
            name
            for a in assigns
            if isinstance(a.target, Var) and a.target.name in needed
            for name in _names(a.value)
        }
        if more <= needed:
            break
        needed |= more
    return _without(block, needed)


def _without(block: Block, needed: set[str]) -> Block:
    kept: list[Statement] = []
    for statement in block:
        match statement:
            case Assign(target=Var(name=name)) if name not in needed:
                continue
            case For(body=body):
                inner = _without(body, needed)
                if inner:
                    kept.append(replace(statement, body=inner))
            case If(then=then, orelse=orelse):
                one, two = _without(then, needed), _without(orelse, needed)
                if one or two:
                    kept.append(replace(statement, then=one, orelse=two))
            case While(body=body):
                kept.append(replace(statement, body=_without(body, needed)))
            case _:
                kept.append(statement)
    return tuple(kept)


def _names(expr: Expr) -> set[str]:
    return {v.name for v in variables(expr) if isinstance(v, Var)}


def _read(statement: Statement) -> set[str]:
    return {name for expr in expressions(statement) for name in _names(expr)}


def _variables(block: Block) -> Iterable[Var]:
    """All variables in order of appearance, assigned ones and indices included."""
    for statement in statements(block):
        if isinstance(statement, For):
            yield statement.index
        if isinstance(statement, Compute):
            yield statement.segment
        for expr in expressions(statement):
            for var in variables(expr):
                if isinstance(var, Var):
                    yield var


# --- names ------------------------------------------------------------------------------------


def mentioned_parameters(nodes: Iterable[object]) -> list[str]:
    """The paths of the parameters that ``nodes`` (blocks, expressions) mention, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        variables_of = _variables(node) if isinstance(node, tuple) else _plain_variables(node)
        for var in variables_of:
            if var.kind is VarKind.PARAMETER and var.name not in IDENTITIES:
                found.setdefault(var.name)
    return list(found)


def _plain_variables(node: object) -> Iterable[Var]:
    for expr in expressions(node):
        for var in variables(expr):
            if isinstance(var, Var):
                yield var


def parameter_names(paths: Iterable[str]) -> dict[str, str]:
    """The parameter name of every path. Raises SourceError for two paths of one name."""
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for path in paths:
        name = snake_case(path.rsplit(".", 1)[-1].replace("[", "_").replace("]", ""))
        if name in IDENTITIES:
            name += "_"
        if name in taken:
            raise SourceError(f"two parameters would be called {name}: {taken[name]} and {path}")
        taken[name] = path
        names[path] = name
    return names


def final_names(block: Block, parameters: Mapping[str, str]) -> Block:
    """``block`` with parameters called by ``parameters``, locals by their source names."""
    taken = set(IDENTITIES) | set(parameters.values())
    names: dict[str, str] = {}

    def rename(var: Var) -> Var:
        if var.kind is VarKind.IDENTITY or var.name in IDENTITIES:
            return var
        if var.kind is VarKind.PARAMETER:
            return replace(var, name=parameters[var.name])
        if var.name not in names:
            names[var.name] = _free(var.name.split("#")[0], taken)
            taken.add(names[var.name])
        return replace(var, name=names[var.name])

    for var in _variables(block):
        rename(var)
    return renamed(block, rename)


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
