"""Programs without assignments: every local variable is replaced by what it is worth there.

A loop gives a variable that it changes its closed form (`recurrence`), in the loop's index. What has none
keeps its name, so that whoever reads it is refused with its line; nothing is left out silently. Used by
the proofs for all values and by `audit`; instances are unrolled from the program as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from .cinteger import CType
from .expr import Const, Element, Expr, Var, VarKind, binary, call, cast, select, variables, walk
from .program import Assign, Block, For, If, Load, Protocol, Statement, While, statements
from .recurrence import TURN, Change, Facts, closed
from .rewrite import renamed

MOST_NODES = 400
"""A value that is larger is not followed."""

Values = dict[str, Expr | None]
"""What locals are worth; None: not known."""


def closed_forms(protocol: Protocol, powers: Iterable[str] = ()) -> Protocol:
    """``protocol`` whose operations, guards and bounds name no local that has a closed form.

    ``powers``: parameters that are assumed to be powers of two, so that a mask of one is a remainder.
    """
    facts = Facts(
        frozenset(p.name for p in protocol.parameters if p.low >= 0),
        frozenset(p.name for p in protocol.parameters if p.low >= 1),
        frozenset(powers),
    )
    programs = {role: _Rewriter(facts).block(block, {}) for role, block in protocol.programs.items()}
    return replace(protocol, programs=programs)


T = TypeVar("T")


def _substituted(node: T, values: Values) -> T:
    """``node`` (an expression, a statement, an address) with the locals that are known."""

    def value(var: Var) -> Expr:
        known = values.get(var.name) if var.kind is VarKind.LOCAL else None
        return var if known is None else known

    return renamed(node, value)


def _is_known(expr: Expr, values: Values) -> bool:
    """Whether ``expr`` is made of what is known, and of a size that can be followed."""
    unknown = any(
        v.kind is VarKind.LOCAL and (isinstance(v, Element) or (v.name in values and values[v.name] is None))
        for v in variables(expr)
    )
    return not unknown and sum(1 for _ in walk(expr)) <= MOST_NODES


def _assigned(block: Block) -> dict[str, Var]:
    """The scalars that ``block`` assigns, by name."""
    found: dict[str, Var] = {}
    for statement in statements(block):
        if isinstance(statement, Assign | Load) and isinstance(statement.target, Var):
            found.setdefault(statement.target.name, statement.target)
    return found


@dataclass(slots=True)
class _Rewriter:
    facts: Facts
    fresh: int = field(default=0)

    def block(self, block: Block, values: Values) -> Block:
        """``block`` rewritten; ``values`` become what they are behind it."""
        return tuple(made for statement in block for made in self.statement(statement, values))

    def statement(self, statement: Statement, values: Values) -> list[Statement]:
        match statement:
            case Assign(target=Var(name=name, type=ctype), value=value):
                found = cast(ctype, _substituted(value, values))
                values[name] = found if _is_known(found, values) else None
                return []
            case If():
                return self.choice(statement, values)
            case For():
                return self.loop(statement, values)
            case While(body=body):
                values.update(dict.fromkeys(_assigned(body)))
                return [self.replaced(replace(statement, body=self.block(body, dict(values))), values)]
            case Load(target=target):
                made = self.replaced(statement, values)
                values[target.name] = None
                return [made]
        return [self.replaced(statement, values)]

    def replaced(self, statement: Statement, values: Values) -> Statement:
        match statement:
            case While(condition=condition):
                return replace(statement, condition=_substituted(condition, values))
            case Load(word=word):
                return replace(statement, word=_substituted(word, values))
        return _substituted(statement, values)

    # --- branches -------------------------------------------------------------------------------

    def choice(self, branch: If, values: Values) -> list[Statement]:
        condition = _substituted(branch.condition, values)
        one, other = dict(values), dict(values)
        then, orelse = self.block(branch.then, one), self.block(branch.orelse, other)
        follow = _is_known(condition, values)
        for name in (*one, *(name for name in other if name not in one)):
            values[name] = _joined(condition if follow else None, one.get(name), other.get(name))
        if not then and not orelse:
            return []
        return [replace(branch, condition=condition, then=then, orelse=orelse)]

    # --- loops ----------------------------------------------------------------------------------

    def loop(self, loop: For, values: Values) -> list[Statement]:
        start, stop = _substituted(loop.start, values), _substituted(loop.stop, values)
        for name, value in values.items():  # another variable of that name is meant within
            if value is not None and _mentions(value, loop.index):
                values[name] = None
        changed = _assigned(loop.body)
        heads = self.heads(loop, start, changed, values)
        turn = _turns(loop.index, start, loop.step)
        within: Values = {name: _at(head, turn) for name, head in heads.items()}
        body = self.block(loop.body, {**values, **within})
        count = call("max", 0, call("ceil_div", _wide(stop) - _wide(start), loop.step))
        known = _is_known(start, values) and _is_known(stop, values)
        values.update({name: _at(head, count) if known else None for name, head in heads.items()})
        if not body:
            return []
        return [replace(loop, start=start, stop=stop, body=body)]

    def heads(self, loop: For, start: Expr, changed: dict[str, Var], values: Values) -> Values:
        """What every changed variable is at the beginning of turn number `TURN`."""
        self.fresh += 1
        marks = {name: Var(f"{name}'{self.fresh}", var.type, VarKind.LOCAL) for name, var in changed.items()}
        after: Values = {**values, **marks}
        self.block(loop.body, after)
        turn = _turns(loop.index, start, loop.step)
        found: Values = {}
        settled: Values = {}  # by the names of marks, in the index
        while True:
            progress = False
            for name, mark in marks.items():
                if name in found or after[name] is None or values.get(name) is None:
                    continue
                change = self.change(loop, start, mark, values[name], _in_terms(after[name], settled))
                unsettled = {m.name for m in marks.values() if m != mark} - settled.keys()
                if change is None or _names(change.after) & unsettled:
                    continue
                head = closed(replace(change, volatile=frozenset({loop.index.name})))
                progress = True
                found[name] = head
                if head is not None:
                    settled[mark.name] = _at(head, turn)
            if not progress:
                return {name: found.get(name) for name in changed}

    def change(
        self, loop: For, start: Expr, mark: Var, before: Expr | None, after: Expr | None
    ) -> Change | None:
        if before is None or after is None or not _is_known(after, {}):
            return None

        def previous(expr: Expr) -> Expr:
            index = cast(loop.index.type, _wide(start) + (TURN - 1) * loop.step)
            return renamed(expr, lambda var: index if _is(var, loop.index) else var)

        return Change(mark, before, after, frozenset(), previous, self.facts)


def _joined(condition: Expr | None, one: Expr | None, other: Expr | None) -> Expr | None:
    """What a variable is behind a branch."""
    if one == other:
        return one
    if condition is None or one is None or other is None or one.type is not other.type:
        return None
    found = select(condition, one, other)
    return found if _is_known(found, {}) else None


def _names(expr: Expr) -> set[str]:
    return {v.name for v in variables(expr) if isinstance(v, Var)}


def _is(var: Var, index: Var) -> bool:
    return var.kind is VarKind.LOOP and var.name == index.name


def _mentions(expr: Expr, index: Var) -> bool:
    return any(isinstance(v, Var) and _is(v, index) for v in variables(expr))


def _wide(expr: Expr) -> Expr:
    return cast(CType.I64, expr)


def _turns(index: Var, start: Expr, step: int) -> Expr:
    """The number of turns before the one with ``index``."""
    return binary("/", _wide(index) - _wide(start), Const(step))


def _at(head: Expr | None, turn: Expr) -> Expr | None:
    """``head`` in one turn."""
    return None if head is None else renamed(head, lambda var: turn if var == TURN else var)


def _in_terms(expr: Expr | None, settled: Values) -> Expr | None:
    return None if expr is None else _substituted(expr, settled)
