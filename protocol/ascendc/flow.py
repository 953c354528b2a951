"""Merging what differs: after a branch, and at the head of a loop.

A variable that two paths leave with different values becomes a select where nothing was emitted,
else a local of the program, assigned on each path. Such a local is assigned at the ends of paths
only, so that a value that was substituted forward never goes stale. Used by `statements`, `loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..expr import Expr, Var, VarKind, select, variables, walk
from ..program import Assign, If, Span, Statement
from .lowering import Lowering
from .naming import substitute
from .values import Location, Opaque, Place, Pointer, Poison, Value

MAX_SELECT = 60
"""Nodes of an expression that may still be put into a select; a larger one gets a local."""

Run = Callable[[], None]


def branch(lo: Lowering, condition: Expr, then: Run, other: Run, span: Span) -> None:
    """Run both sides of a condition that only a run decides, and merge what they leave."""
    before, limit = dict(lo.store), lo.next_root
    out_then, store_then = _side(lo, then)
    lo.store = dict(before)
    out_other, store_other = _side(lo, other)
    merged: dict[Location, Value] = {}
    pure = not out_then and not out_other
    for location in _older(store_then, store_other, limit):
        a, b = store_then.get(location), store_other.get(location)
        if a == b:
            if a is not None:
                merged[location] = a
            continue
        if pure:
            merged[location] = _selected(lo, location, condition, a, b)
        if not pure or _too_large(merged[location]):
            start = before.get(location)
            merged[location] = _joined(lo, location, (a, b, start), (out_then, out_other), span)
    lo.store = merged
    if out_then or out_other:
        lo.emit(If(condition, tuple(out_then), tuple(out_other), span))


def _side(lo: Lowering, run: Run) -> tuple[list[Statement], dict[Location, Value]]:
    outer, lo.out = lo.out, []
    run()
    out, lo.out = lo.out, outer
    return out, lo.store


def _older(a: dict[Location, Value], b: dict[Location, Value], limit: int) -> Iterator[Location]:
    """The locations of both stores that belong to variables from before."""
    for location in dict.fromkeys((*a, *b)):
        root = location[0]
        assert isinstance(root, int)
        if root < limit:
            yield location


def _unassigned(lo: Lowering, location: Location) -> Poison:
    if isinstance(lo.inherited(Place(location, None)), Opaque):
        return Poison(f"{lo.hint(location)}, a kernel argument that is assigned here and there", True)
    return Poison(f"{lo.hint(location)} may be read before it is assigned")


def _selected(lo: Lowering, location: Location, condition: Expr, a: Value | None, b: Value | None) -> Value:
    if isinstance(a, Expr) and isinstance(b, Expr):
        return select(condition, a, b)
    if isinstance(a, Pointer) and isinstance(b, Pointer) and a.region == b.region:
        return replace(a, offset=select(condition, a.offset, b.offset))
    return _unlike(lo, location, a, b)


def _unlike(lo: Lowering, location: Location, a: Value | None, b: Value | None) -> Poison:
    for value in (a, b):
        if isinstance(value, Poison):
            return value
    if a is None or b is None:
        return _unassigned(lo, location)
    return Poison(f"{lo.hint(location)}, which is set to different objects", True)


def _too_large(value: Value) -> bool:
    expr = value.offset if isinstance(value, Pointer) else value
    return isinstance(expr, Expr) and sum(1 for _ in walk(expr)) > MAX_SELECT


def _joined(
    lo: Lowering,
    location: Location,
    values: tuple[Value | None, Value | None, Value | None],
    outs: tuple[list[Statement], list[Statement]],
    span: Span,
) -> Value:
    """A local that each side assigns; the value from before is assigned once, before the branch."""
    a, b, start = (_integer_part(value) for value in values)
    first, second = values[0], values[1]
    if a is None or b is None or a.type is not b.type or _region(first) != _region(second):
        return _unlike(lo, location, first, second)
    local = lo.new_var(lo.hint(location), a.type, VarKind.LOCAL)
    if start in (a, b) and start is not None:
        lo.emit(Assign(local, start, span))
    for value, out in zip((a, b), outs, strict=True):
        if value != start:
            out.append(Assign(local, value, span))
    return replace(first, offset=local) if isinstance(first, Pointer) else local


def _integer_part(value: Value | None) -> Expr | None:
    return value.offset if isinstance(value, Pointer) else value if isinstance(value, Expr) else None


def _region(value: Value | None) -> str | None:
    return value.region if isinstance(value, Pointer) else None


# --- loops ------------------------------------------------------------------------------------

Changed = dict[Location, Poison | None]
"""Variables that a loop changes; with a Poison where no local can hold their value at its head."""


@contextmanager
def scratch(lo: Lowering) -> Iterator[None]:
    """Run something to see what it does; afterwards nothing has happened."""
    saved = dict(lo.store), lo.out, lo.next_root, lo.next_local, [dict(s) for s in lo.frame.scopes]
    lo.out = []
    try:
        yield
    finally:
        lo.store, lo.out, lo.next_root, lo.next_local, lo.frame.scopes = saved


def loop_changes(lo: Lowering, iterate: Run, span: Span) -> Changed:
    """The variables from before that one iteration changes, whatever the earlier ones did."""
    changed: Changed = {}
    while True:
        with scratch(lo):
            limit = lo.next_root
            enter_loop(lo, changed, span)
            head = dict(lo.store)
            iterate()
            found = dict(changed)
            for location in _older(head, lo.store, limit):
                now = lo.store.get(location)
                if now != head.get(location):
                    found[location] = _widened(lo, location, found.get(location), now, head.get(location))
        if found == changed:
            return changed
        changed = found


def _widened(
    lo: Lowering, location: Location, known: Poison | None, now: Value | None, start: Value | None
) -> Poison | None:
    """Whether a local can hold a variable that is ``start`` at the head and ``now`` an iteration later."""
    if known is not None:
        return known
    if isinstance(start, Poison) or start is None or now is None:
        return _unassigned(lo, location)
    a, b = _integer_part(start), _integer_part(now)
    if a is None or b is None or a.type is not b.type or _region(start) != _region(now):
        return Poison(f"{lo.hint(location)}, which the loop sets to different objects", True)
    return None


def enter_loop(lo: Lowering, changed: Changed, span: Span) -> dict[Location, Var]:
    """Give every changed variable a local that holds its value at the loop's head."""
    phis: dict[Location, Var] = {}
    for location, kind in changed.items():
        value = lo.store.get(location)
        start = _integer_part(value)
        if kind is not None or start is None:
            lo.store[location] = kind or _unassigned(lo, location)
            continue
        local = lo.new_var(lo.hint(location), start.type, VarKind.LOCAL)
        phis[location] = local
        lo.emit(Assign(local, start, span))
        lo.store[location] = replace(value, offset=local) if isinstance(value, Pointer) else local
    return phis


def close_iteration(lo: Lowering, phis: dict[Location, Var], span: Span) -> None:
    """Assign the locals for the next iteration, as if all at once."""
    pending: dict[Var, Expr] = {}
    for location, local in phis.items():
        value = _integer_part(lo.store.get(location))
        assert value is not None
        if value != local:
            pending[local] = value
    while pending:
        read = {local: _readers(pending, local) for local in pending}
        free = next((local for local in pending if not read[local]), None)
        if free is None:  # a cycle, as in a swap: save one value first
            local = next(iter(pending))
            saved = lo.new_var(local.name.split("#")[0], local.type, VarKind.LOCAL)
            lo.emit(Assign(saved, local, span))
            for other in read[local]:
                pending[other] = substitute(pending[other], {local: saved})
            continue
        lo.emit(Assign(free, pending.pop(free), span))


def _readers(pending: dict[Var, Expr], local: Var) -> list[Var]:
    return [v for v, expr in pending.items() if v != local and local in set(variables(expr))]
