"""Editing programs: places in them, and edits as data that `edited` carries out.

`checker.minimize` takes synchronisations out this way, `checker.edit_list` proposes mends. All places
are those of the protocol as it was, so edits combine in any order. (`fuzz.mutations` makes random faults.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, NamedTuple

from .expr import Element, Expr, Var, VarKind, variables
from .program import (
    Barrier,
    Block,
    Fence,
    For,
    If,
    PipeBarrier,
    Protocol,
    Quiet,
    Role,
    SetEvent,
    SetFlag,
    Statement,
    WaitEvent,
    WaitFlag,
    While,
    expressions,
)

Synchronisation = SetFlag | WaitFlag | SetEvent | WaitEvent | PipeBarrier | Barrier | Quiet | Fence
"""The operations that only order others: what may be taken out, moved and put in."""


class Step(NamedTuple):
    """One step on the way to a place: which block of the statement that it is in, and where in that."""

    branch: str
    position: int


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program of ``role``: that of a statement, or the gap before it."""

    role: Role
    path: tuple[Step, ...]

    @property
    def following(self) -> Site:
        """The next place in the same block."""
        *outer, last = self.path
        return Site(self.role, (*outer, last._replace(position=last.position + 1)))


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a statement may be put in, what it then stands in (outermost first), and its neighbours."""

    site: Site
    around: tuple[Statement, ...]
    before: Statement | None
    after: Statement | None

    def knows(self, statement: Statement) -> bool:
        """Whether the loop indices that ``statement`` names have a value here."""
        bound = {outer.index.name for outer in self.around if isinstance(outer, For)}
        return loop_indices(statement) <= bound

    def loops(self) -> list[For]:
        """The counted loops around, outermost first."""
        return [outer for outer in self.around if isinstance(outer, For)]


class EditKind(Enum):
    """What an edit does, as reports say it; those that change least come first."""

    MOVE = "move"
    INSERT = "insert"
    CHANGE = "change"
    GUARD = "guard"
    REMOVE = "remove"
    HANDSHAKE = "insert a flag"


@dataclass(frozen=True, slots=True)
class Edit:
    """Statements taken out and put in; ``near`` is the statement that a reader finds the place by."""

    kind: EditKind
    text: str
    near: Statement
    removed: tuple[Site, ...] = ()
    inserted: tuple[tuple[Site, Statement], ...] = ()


def sites(protocol: Protocol) -> Iterator[tuple[Site, Statement]]:
    """All statements with their places, outer before inner, in program order."""
    for role, program in protocol.programs.items():
        for path, statement in _walk(program, (), ""):
            yield Site(role, path), statement


def gaps(protocol: Protocol) -> Iterator[Gap]:
    """All places where a statement may be put in, the ends of blocks among them."""
    for role, program in protocol.programs.items():
        yield from _gaps(role, program, (), "", ())


def edited(protocol: Protocol, edits: Sequence[Edit]) -> Protocol:
    """``protocol`` with all ``edits`` carried out. What two edits put into one gap stands in their order."""
    removed = {site for edit in edits for site in edit.removed}
    inserted: dict[Site, list[Statement]] = {}
    for edit in edits:
        for site, statement in edit.inserted:
            inserted.setdefault(site, []).append(statement)
    touched = {site.role for site in (*removed, *inserted)}
    programs = {
        role: _rebuilt(role, program, (), "", removed, inserted) if role in touched else program
        for role, program in protocol.programs.items()
    }
    return replace(protocol, programs=programs)


def told_apart(protocol: Protocol) -> Protocol:
    """``protocol`` in which no two synchronisations are one object, so that events tell theirs."""
    found = [(site, s) for site, s in sites(protocol) if isinstance(s, Synchronisation)]
    copies = [
        Edit(EditKind.CHANGE, "", s, removed=(site,), inserted=((site, replace(s)),)) for site, s in found
    ]
    return edited(protocol, copies)


def loop_indices(statement: Statement) -> set[str]:
    """The names of the loop indices that ``statement`` itself uses."""
    return {
        v.name
        for expression in expressions(statement)
        for v in variables(expression)
        if isinstance(v, Var) and v.kind is VarKind.LOOP
    }


def substituted(expression: Expr, name: str, by: Expr) -> Expr:
    """``expression`` with ``by`` for the loop index ``name``."""
    if isinstance(expression, Var):
        return by if expression.kind is VarKind.LOOP and expression.name == name else expression
    changed: dict[str, Any] = {}
    for each in fields(expression):
        value = getattr(expression, each.name)
        if isinstance(value, Expr):
            changed[each.name] = substituted(value, name, by)
        elif isinstance(value, tuple):
            changed[each.name] = tuple(substituted(item, name, by) for item in value)
    return replace(expression, **changed) if changed else expression


def parameters_in(protocol: Protocol) -> list[Var]:
    """The parameters that conditions compare with, in the order in which they occur."""
    found: dict[str, Var] = {}
    for _, statement in sites(protocol):
        if isinstance(statement, If):
            for v in variables(statement.condition):
                if not isinstance(v, Element) and v.kind is VarKind.PARAMETER:
                    found.setdefault(v.name, v)
    return list(found.values())


# --- walking ----------------------------------------------------------------------------------


def _blocks(statement: Statement) -> list[tuple[str, Block]]:
    """The blocks that a statement holds, by the name of their field."""
    match statement:
        case For(body=body) | While(body=body):
            return [("body", body)]
        case If(then=then, orelse=orelse):
            return [("then", then), ("orelse", orelse)]
    return []


def _walk(block: Block, path: tuple[Step, ...], branch: str) -> Iterator[tuple[tuple[Step, ...], Statement]]:
    for index, statement in enumerate(block):
        here = (*path, Step(branch, index))
        yield here, statement
        for name, inner in _blocks(statement):
            yield from _walk(inner, here, name)


def _gaps(
    role: Role, block: Block, path: tuple[Step, ...], branch: str, around: tuple[Statement, ...]
) -> Iterator[Gap]:
    for index in range(len(block) + 1):
        here = (*path, Step(branch, index))
        before = block[index - 1] if index else None
        after = block[index] if index < len(block) else None
        yield Gap(Site(role, here), around, before, after)
        if after is not None:
            for name, inner in _blocks(after):
                if inner or name != "orelse":  # no branch is made that the source has not
                    yield from _gaps(role, inner, here, name, (*around, after))


def _rebuilt(
    role: Role,
    block: Block,
    path: tuple[Step, ...],
    branch: str,
    removed: set[Site],
    inserted: dict[Site, list[Statement]],
) -> Block:
    result: list[Statement] = []
    for index in range(len(block) + 1):
        here = (*path, Step(branch, index))
        site = Site(role, here)
        result += inserted.get(site, ())
        if index == len(block) or site in removed:
            continue
        statement = block[index]
        inner = {
            name: _rebuilt(role, body, here, name, removed, inserted) for name, body in _blocks(statement)
        }
        result.append(_with_blocks(statement, inner))
    return tuple(result)


def _with_blocks(statement: Statement, blocks: dict[str, Block]) -> Statement:
    match statement:
        case For() | While():
            return replace(statement, body=blocks["body"])
        case If():
            return replace(statement, then=blocks["then"], orelse=blocks["orelse"])
    return statement
