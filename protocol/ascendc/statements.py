"""Executing C++ statements symbolically: one small function a kind, dispatched by the table at the end.

A jump (``return``, ``continue``) under a condition that only a run decides is handled by running
what follows it inside the other branch. Loops are in `loops`, merging in `flow`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from tree_sitter import Node

from ..errors import SourceError
from ..expr import Const, Expr, binary
from . import loops
from .expressions import designate
from .flow import branch
from .lowering import Lowering
from .objects import copy_into
from .operators import folded
from .parse import descendants, named, text_of
from .places import field, variable_place
from .state import Language, Scopes
from .values import Place
from .variables import declare, expect_constant


class Flow(Enum):
    """What follows a statement."""

    NEXT = "the statement after it"
    STOP = "nothing more of this function or iteration: it jumped, or the rest was run already"


@dataclass(frozen=True, slots=True)
class Rest:
    """The statements that follow in the enclosing blocks, up to the end of function or iteration."""

    nodes: tuple[Node, ...]
    scopes: Scopes
    outer: Rest | None


Handler = Callable[[Lowering, Node, "Rest | None"], Flow]


def run_body(lo: Lowering, body: Node) -> None:
    """Run a function body."""
    run(lo, tuple(named(body)), None)


def run(lo: Lowering, nodes: tuple[Node, ...], rest: Rest | None) -> Flow:
    """Run ``nodes`` in order, until one stops."""
    for position, node in enumerate(nodes):
        following = Rest(nodes[position + 1 :], lo.frame.scopes, rest)
        if statement(lo, node, following) is Flow.STOP:
            return Flow.STOP
    return Flow.NEXT


def statement(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    """Run one statement."""
    lo.step(node)
    handler = STATEMENTS.get(node.type)
    if handler is None:
        lo.frame.context.source.check(node)
        raise lo.unsupported(f"{node.type.replace('_', ' ')}", node)
    return handler(lo, node, rest)


def resume(lo: Lowering, rest: Rest | None) -> None:
    """Run all that follows in the enclosing blocks."""
    while rest is not None:
        lo.frame.scopes = [dict(scope) for scope in rest.scopes]
        if run(lo, rest.nodes, rest.outer) is Flow.STOP:
            return
        rest = rest.outer


def block(lo: Lowering, nodes: tuple[Node, ...], rest: Rest | None) -> Flow:
    """Run ``nodes`` in a scope of their own."""
    outer, context = lo.frame.scopes, lo.frame.context
    lo.frame.scopes = [*outer, {}]
    flow = run(lo, nodes, rest)
    lo.frame.scopes, lo.frame.context = outer, context
    return flow


def _compound(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    return block(lo, tuple(named(node)), rest)


def _expression(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    for child in named(node):
        lo.designate(child)
    return Flow.NEXT


def _nothing(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    return Flow.NEXT


# --- declarations -----------------------------------------------------------------------------


def _declaration(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    type_node = field(node, "type")
    words = {text_of(child) for child in named(node)}
    if "static" in words and not words & {"const", "constexpr"}:
        raise lo.unsupported("a static local variable", node)
    for declarator in node.children_by_field_name("declarator"):
        place = declare(lo, type_node, declarator, node)
        if "static" in words and "constexpr" not in words:
            expect_constant(lo, place, declarator, node)
    return Flow.NEXT


def _alias(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    """``using T = …;`` in a function, up to the end of its block."""
    name = text_of(field(node, "name"))
    context = lo.frame.context
    if lo.types.lookup([field(node, "name")], context) is not None or variable_place(lo, field(node, "name")):
        raise lo.unsupported(f"`{text_of(node)}`, which hides another {name}", node)
    bindings = {**context.bindings, name: lo.types.resolve(field(node, "type"), context)}
    lo.frame.context = replace(context, bindings=bindings)
    return Flow.NEXT


# --- branches ---------------------------------------------------------------------------------


def _if(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    outer = lo.frame.scopes
    lo.frame.scopes = [*outer, {}]
    condition = _condition(lo, field(node, "condition"))
    then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    alternative = named(other)[0] if other is not None and named(other) else None
    flow = _choose(lo, condition, then, alternative, node, rest)
    lo.frame.scopes = outer
    return flow


def _condition(lo: Lowering, clause: Node) -> Expr:
    """A condition, perhaps after an init statement."""
    if clause.type != "condition_clause":
        return folded(lo.condition(named(clause)[0] if clause.type == "parenthesized_expression" else clause))
    return folded(lo.condition(_after_initialiser(lo, clause)))


def _after_initialiser(lo: Lowering, clause: Node) -> Node:
    """The value of ``(init; value)``, after its init statement."""
    if clause.type != "condition_clause":
        return named(clause)[0]
    initialiser = clause.child_by_field_name("initializer")
    if initialiser is not None:
        for child in named(initialiser) if initialiser.type == "init_statement" else [initialiser]:
            statement(lo, child, None)
    value = field(clause, "value")
    if value.type == "declaration":
        raise lo.unsupported("a declaration as a condition", value)
    return value


def _choose(
    lo: Lowering,
    condition: Expr,
    then: Node | None,
    other: Node | None,
    node: Node,
    rest: Rest | None,
) -> Flow:
    if isinstance(condition, Const):
        chosen = then if condition.value else other
        return _side(lo, chosen, rest) if chosen is not None else Flow.NEXT
    scopes = lo.frame.scopes
    jumps = any(side is not None and _jumps(side) for side in (then, other))

    def one(side: Node | None) -> None:
        lo.frame.scopes = [dict(scope) for scope in scopes] if jumps else scopes
        flow = _side(lo, side, rest) if side is not None else Flow.NEXT
        if jumps and flow is Flow.NEXT:
            resume(lo, rest)
        lo.frame.scopes = scopes

    branch(lo, condition, lambda: one(then), lambda: one(other), lo.span(node))
    return Flow.STOP if jumps else Flow.NEXT


def _side(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    return block(lo, tuple(named(node)) if node.type == "compound_statement" else (node,), rest)


def _jumps(node: Node) -> bool:
    """Whether ``node`` may leave the function or the iteration that it is in."""
    if node.type in ("return_statement", "continue_statement"):
        return True
    if node.type == "lambda_expression":
        return False
    inner_loop = node.type in ("for_statement", "while_statement", "do_statement")
    return any(_jumps(child) and not (inner_loop and not _returns(child)) for child in node.named_children)


def _returns(node: Node) -> bool:
    return any(d.type == "return_statement" for d in descendants(node))


def _switch(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    outer = lo.frame.scopes
    lo.frame.scopes = [*outer, {}]
    value_node = _after_initialiser(lo, field(node, "condition"))
    selector = lo.integer(lo.evaluate(value_node), value_node)
    flow = _cases(lo, selector, _case_groups(lo, node), node, rest)
    lo.frame.scopes = outer
    return flow


@dataclass(frozen=True, slots=True)
class Case:
    """Case labels that share a body; ``default`` if it is among them."""

    labels: tuple[Node, ...]
    default: bool
    body: tuple[Node, ...]


def _case_groups(lo: Lowering, node: Node) -> list[Case]:
    groups: list[Case] = []
    labels: list[Node] = []
    default = False
    cases = named(field(node, "body"))
    for position, case in enumerate(cases):
        if case.type != "case_statement":
            raise lo.unsupported("a statement before the first case", case)
        label = case.child_by_field_name("value")
        body = [c for c in named(case) if label is None or c.id != label.id]
        labels += [label] if label is not None else []
        default = default or label is None
        if not body and position + 1 < len(cases):
            continue
        last = body[-1] if body else None
        if last is not None and last.type == "compound_statement" and len(body) == 1:
            body = named(last)
            last = body[-1] if body else None
        if last is not None and last.type == "break_statement":
            body = body[:-1]
        elif position + 1 < len(cases) and (last is None or last.type != "return_statement"):
            raise lo.unsupported("a case that falls through", case)
        groups.append(Case(tuple(labels), default, tuple(body)))
        labels, default = [], False
    return groups


def _cases(lo: Lowering, selector: Expr, groups: list[Case], node: Node, rest: Rest | None) -> Flow:
    """The first group that matches, the default if none does."""
    ordered = [g for g in groups if not g.default] + [g for g in groups if g.default]
    if not ordered:
        return Flow.NEXT
    first, others = ordered[0], ordered[1:]
    condition: Expr = Const(1) if first.default else _matches(lo, selector, first)
    condition = folded(condition)
    if isinstance(condition, Const):
        if condition.value:
            return block(lo, first.body, rest)
        return _cases(lo, selector, others, node, rest)
    scopes = lo.frame.scopes
    jumps = any(_jumps(n) for g in ordered for n in g.body)

    def then() -> None:
        lo.frame.scopes = [dict(scope) for scope in scopes]
        if block(lo, first.body, rest) is Flow.NEXT and jumps:
            resume(lo, rest)
        lo.frame.scopes = scopes

    def other() -> None:
        lo.frame.scopes = [dict(scope) for scope in scopes]
        if _cases(lo, selector, others, node, rest) is Flow.NEXT and jumps:
            resume(lo, rest)
        lo.frame.scopes = scopes

    branch(lo, condition, then, other, lo.span(node))
    return Flow.STOP if jumps else Flow.NEXT


def _matches(lo: Lowering, selector: Expr, case: Case) -> Expr:
    condition: Expr | None = None
    for label in case.labels:
        equal = folded(binary("==", selector, lo.integer(lo.evaluate(label), label)))
        condition = equal if condition is None else binary("||", condition, equal)
    assert condition is not None
    return condition


# --- jumps ------------------------------------------------------------------------------------


def _return(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    if lo.frame.loops:
        raise lo.unsupported("return inside a loop that only a run decides", node)
    values = named(node)
    if values and lo.frame.returns_reference:
        place = lo.designate(values[0])
        if not isinstance(place, Place) or lo.frame.referred not in (None, place):
            raise lo.unsupported(f"`{text_of(node)}`: a reference to no place, or to several", node)
        lo.frame.referred = place
    elif values and lo.frame.result is not None:
        lo.copy_into(lo.frame.result, lo.evaluate(values[0]), values[0])
    elif values:
        lo.designate(values[0])
    return Flow.STOP


def _continue(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    if not lo.frame.loops:
        raise lo.unsupported("continue here", node)
    return Flow.STOP


def _break(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    raise lo.unsupported("break inside a loop that only a run decides", node)


# --- loops ------------------------------------------------------------------------------------


def _iteration(lo: Lowering, body: Node) -> Callable[[], None]:
    """One pass through a loop body; what follows the loop is out of reach of its jumps."""

    def once() -> None:
        scopes = lo.frame.scopes
        lo.frame.loops += 1
        _side(lo, body, None)
        lo.frame.loops -= 1
        lo.frame.scopes = scopes

    return once


def _for(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    outer = lo.frame.scopes
    lo.frame.scopes = [*outer, {}]
    initialiser = node.child_by_field_name("initializer")
    if initialiser is not None:
        if initialiser.type == "declaration":
            statement(lo, initialiser, None)
        else:
            lo.designate(initialiser)
    loops.for_loop(lo, node, _iteration(lo, field(node, "body")))
    lo.frame.scopes = outer
    return Flow.NEXT


def _while(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    clause = field(node, "condition")
    loops.while_loop(lo, lambda: _condition(lo, clause), _iteration(lo, field(node, "body")), node)
    return Flow.NEXT


def _do(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    """The body once, then a while loop; ``do … while (0)`` is a plain block."""
    clause, body = field(node, "condition"), field(node, "body")
    if any(_jumps(child) or child.type == "break_statement" for child in descendants(body)):
        raise lo.unsupported("a jump inside do … while", node)
    _side(lo, body, None)
    loops.while_loop(lo, lambda: _condition(lo, clause), _iteration(lo, body), node)
    return Flow.NEXT


def _not_here(lo: Lowering, node: Node, rest: Rest | None) -> Flow:
    raise SourceError("syntax error: a function inside a function, is a } missing before it?", lo.span(node))


LANGUAGE = Language(designate, run_body, copy_into)
"""What a `Lowering` runs by."""

STATEMENTS: dict[str, Handler] = {
    "compound_statement": _compound,
    "expression_statement": _expression,
    "declaration": _declaration,
    "using_declaration": _nothing,
    "alias_declaration": _alias,
    "static_assert_declaration": _nothing,
    "if_statement": _if,
    "switch_statement": _switch,
    "for_statement": _for,
    "while_statement": _while,
    "do_statement": _do,
    "return_statement": _return,
    "continue_statement": _continue,
    "break_statement": _break,
    "function_definition": _not_here,
    "template_declaration": _not_here,
    "namespace_definition": _not_here,
}
"""How each kind of statement is run; any other kind is refused."""
