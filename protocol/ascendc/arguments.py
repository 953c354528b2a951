"""Arguments of calls and constructors, and which function they select.

Used by `inline`, `objects`, `calls` and `statements`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from .declarations import FunctionDecl, parameters_of
from .flow import scratch
from .lowering import Lowering
from .parse import named, text_of
from .places import field
from .types import ClassType
from .values import Location, Memory, Outcome, Place, Value


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: where it stands, what it denotes, and its value when it was evaluated."""

    node: Node
    outcome: Outcome
    value: Value

    def get(self, lo: Lowering) -> Value:
        """Its value, to be read."""
        return lo.readable(self.value, self.node)


def value_argument(node: Node, value: Value) -> Argument:
    """An argument that is a mere value."""
    return Argument(node, value, value)


def place_argument(lo: Lowering, node: Node, place: Place) -> Argument:
    """An argument that is a place; it is not yet read."""
    return Argument(node, place, lo.peek(place))


def argument_nodes(node: Node) -> list[Node]:
    """The argument nodes of a call."""
    return named(field(node, "arguments"))


def evaluated(lo: Lowering, nodes: list[Node]) -> list[Argument]:
    """The arguments at ``nodes``, evaluated from left to right."""
    found = []
    for node in nodes:
        outcome = lo.designate(node)
        if isinstance(outcome, Memory):
            outcome = lo.value(outcome, node)
        found.append(place_argument(lo, node, outcome) if isinstance(outcome, Place) else
                     value_argument(node, outcome))  # fmt: skip
    return found


def arguments_of(lo: Lowering, node: Node) -> list[Argument]:
    """The arguments of a call. C++ leaves their order open, so it must not matter."""
    nodes = argument_nodes(node)
    start = dict(lo.store)
    found: list[Argument] = []
    acting: list[int] = []
    for position, argument in enumerate(nodes):
        before, emitted, limit = dict(lo.store), len(lo.out), lo.next_root
        found += evaluated(lo, [argument])
        old = {key: value for key, value in lo.store.items() if int(key[0]) < limit}
        if old != before or len(lo.out) != emitted:
            acting.append(position)
    for position, argument in enumerate(nodes):
        if acting in ([], [position]):
            continue
        if position in acting or _value_in(lo, start, argument) != _value_in(lo, lo.store, argument):
            raise lo.unsupported(
                f"arguments whose order of evaluation matters: `{text_of(argument)}`", argument
            )
    return found


def _value_in(lo: Lowering, store: dict[Location, Value], node: Node) -> Value:
    """The value of an argument that does nothing, as ``store`` has it."""
    with scratch(lo):
        lo.store = dict(store)
        outcome = lo.designate(node)
        return lo.peek(outcome) if isinstance(outcome, Place) else lo.value(outcome, node)


def constructors(wanted: ClassType) -> list[FunctionDecl]:
    """The constructors that the class declares and the sources define."""
    return wanted.decl.methods.get(wanted.decl.name, [])


def fits_count(function: FunctionDecl, count: int) -> bool:
    """Whether ``function`` can be called with ``count`` arguments."""
    return len([d for d in function.defaults if d is None]) <= count <= len(function.parameters)


def overload(lo: Lowering, found: list[FunctionDecl], count: int, name: str, node: Node) -> FunctionDecl:
    """The one function of ``found`` that takes ``count`` arguments."""
    fitting = [f for f in found if fits_count(f, count)]
    if not fitting:
        raise lo.unsupported(f"call of {name} with {count} arguments", node)
    if len(fitting) > 1:
        places = ", ".join(f.span.place for f in fitting)
        raise lo.unsupported(f"call of {name}, which is overloaded ({places})", node)
    return fitting[0]


def method(lo: Lowering, owner: ClassType, name: str, count: int, node: Node) -> FunctionDecl:
    """The one member function or constructor ``name`` of ``owner`` that takes ``count`` arguments."""
    defined = owner.decl.methods.get(name, [])
    bodies = [f.declared for f in defined if f.declared is not None]
    for declarator in owner.decl.declared.get(name, ()):
        parameters = parameters_of(declarator)
        least = len([p for p in parameters if p.child_by_field_name("default_value") is None])
        if least <= count <= len(parameters) and all(declarator.id != body.id for body in bodies):
            lo.index.check_hidden(name)
            what = "the constructor" if name == owner.decl.name else name
            raise lo.unsupported(f"call of {what} of {owner}, whose body the sources lack", node)
    return overload(lo, defined, count, f"{owner}::{name}" if name != owner.decl.name else str(owner), node)
