"""Sentences about obligations: the finding's message, and the conflict at the end of a timing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..protocol.describe import (
    access_name,
    core_name,
    describe_event,
    describe_waiting,
    numbers,
    origin_name,
)
from ..protocol.evaluate import Value
from ..protocol.expr import Binary, Cast, Const, Expr, Var, walk
from ..protocol.instance import Access, Event, Kind
from ..protocol.machine import Phase
from ..protocol.program import Put, Span
from .analysis import Analysis
from .engine import Stuck
from .obligations import Obligation
from .pieces import Place
from .static import NOWHERE, cores_named


def conflict_of(analysis: Analysis, obligation: Obligation, case: int) -> list[str]:
    """What goes wrong, one sentence a line, each with its place."""
    actors = [_Actor(analysis, place) for place in obligation.actors]
    match obligation.code:
        case "overwrite" | "relaunch-overwrite":
            writer, reader, _ = actors
            reader = reader.as_case(obligation.clauses[0].first, case)
            return [
                f"{writer.core} {writer.writes()}{writer.at}",
                f"while {reader.core} may still read {reader.wanted()} from it{reader.at}",
                *writer.symbolic(),
            ]
        case "source-overwritten" | "relaunch-source-overwritten":
            writer, reader = actors
            return [
                f"{writer.core} {writer.writes()}{writer.at}",
                f"while {reader.core} may still read it{reader.at}",
            ]
        case "queue-race":
            first, second = actors
            return [
                f"{first.core} posts to rank {first.event.peer}{first.at}",
                f"while {second.core} may post to the same queue{second.at}",
            ]
        case "write-conflict" | "relaunch-write-conflict":
            first, second = actors
            return [
                f"{first.core} {first.writes()}{first.at}",
                f"while {second.core} {second.writes()}{second.at}",
            ]
        case "read-before-write":
            reader, writer = actors
            reader = reader.as_case(obligation.clauses[0].then, case)
            return [
                f"{reader.core} reads {access_name(reader.access)}{reader.at}",
                f"before the put of {writer.wanted()} by {writer.core} has landed there{writer.at}",
            ]
        case "never-written":
            reader = actors[0].as_case(obligation.clauses[0].then, case)
            return [
                f"{reader.core} reads {reader.wanted()} from {access_name(reader.access)}{reader.at}",
                "and nobody ever writes it there",
            ]
        case "foreign-data":
            reader, writer = actors[0].as_case(obligation.clauses[0].then, case), actors[1]
            other = "other data" if reader.event.launch == writer.event.launch else "data of another launch"
            return [
                f"{reader.core} needs {reader.wanted()} in {access_name(reader.access)}{reader.at}",
                f"but only {other} goes there, such as {writer.wanted()} by {writer.core}{writer.at}",
            ]
        case "request-not-complete":
            writer, reader = actors
            reader = reader.as_case(obligation.clauses[0].then, case)
            return [
                f"{writer.core} {writer.writes()}{writer.at}",
                f"{reader.core} is made to read only after it is posted, not after it is complete{reader.at}",
            ]
        case "not-complete-at-end":
            writer = actors[0]
            return [
                f"{writer.core} {writer.writes()}{writer.at}",
                "and ends without waiting for it",
            ]
        case "mode-change":
            use, earlier = actors
            return [
                f"{use.core} {describe_event(use.event, Phase.BEGIN)} in mode {use.event.mode}{use.at}",
                f"before it is done with the id in mode {earlier.event.mode}: "
                f"{describe_event(earlier.event, Phase.BEGIN)}{earlier.at}",
            ]
    counter = obligation.counter
    assert counter is not None
    holder = analysis.instance.cores[counter.core].id
    what = f"event {counter.flag} of {counter.space}" if counter.is_event else f"flag {counter.flag}"
    place = actors[0].at if actors else ""
    lines = [f"{what} of {holder} is set when it already is {obligation.cap}{place}"]
    if obligation.code == "event-hang":
        lines.append("and the core waits later until all its pipes are empty, which then never ends")
    return lines


def conflict_of_stuck(analysis: Analysis, stuck: Stuck) -> list[str]:
    """Who waits for what, equal sentences once."""
    lines: dict[tuple[str, Span], list[int]] = {}
    for core, number in stuck.waiting:
        event = analysis.instance.cores[core].events[number]
        if event.kind is not Kind.END:
            lines.setdefault((describe_waiting(event), event.span or NOWHERE), []).append(core)
    return [
        f"{cores_named(analysis.instance, cores)} {text} for ever  ({span.place})"
        for (text, span), cores in lines.items()
    ]


def message_of_stuck(analysis: Analysis, stuck: Stuck) -> tuple[str, Span]:
    """Who waits for what in one line, and the first place that something waits at."""
    waiting = [line.rsplit("  (", 1)[0] for line in conflict_of_stuck(analysis, stuck)]
    spans = (analysis.instance.cores[core].events[number].span for core, number in stuck.waiting)
    return "; ".join(waiting) or "some core never ends", next(filter(None, spans), NOWHERE)


def message_of(analysis: Analysis, obligations: Sequence[Obligation]) -> tuple[str, Span]:
    """One sentence for several violated obligations with the same code, and where to look."""
    first = obligations[0]
    actor = _Actor(analysis, first.actors[0]) if first.actors else None
    count = sum(o.width for o in obligations)
    span = actor.span if actor is not None else NOWHERE
    ranks = sorted({o.actors[0].access.rank for o in obligations if o.actors})
    where = f"on {'rank' if len(ranks) == 1 else 'ranks'} {numbers(ranks)}"
    match first.code:
        case "relaunch-overwrite":
            text = (
                f"a rank's launch can write what a reader of another launch still needs {where} "
                f"({count} pairs)"
            )
        case "relaunch-source-overwritten":
            text = f"a rank's launch can write what another launch still reads {where} ({count} pairs)"
        case "relaunch-write-conflict":
            text = f"writes of two launches to the same bytes are unordered {where} ({count} pairs)"
        case "mode-change":
            text = f"an id can change its mode before its earlier sets and waits are done ({count} pairs)"
        case "flag-merged":
            text = f"a set can find its flag unconsumed, and is then lost ({count} sets)"
        case "event-hang":
            text = f"an event can be set twice, which hangs a later wait for all pipes ({count} sets)"
        case "overwrite":
            text = f"a write can begin before a reader of the earlier data ends {where} ({count} pairs)"
        case "source-overwritten":
            text = f"bytes can be written while a put or a read still needs them {where} ({count} pairs)"
        case "write-conflict":
            text = f"two writes of the same bytes are unordered {where} ({count} pairs)"
        case "queue-race":
            text = f"two cores of a rank can post to one peer's queue at once ({count} pairs)"
        case "read-before-write":
            text = f"a reader can begin before its data has landed {where} ({count} reads)"
        case "never-written":
            text = f"a reader needs data that nobody writes {where} ({count} reads)"
        case "foreign-data":
            text = f"a reader finds data of another origin {where} ({count} reads)"
        case "request-not-complete":
            text = f"readers are ordered after a request but not after its completion ({count} pairs)"
        case "not-complete-at-end":
            text = f"a core can end before its request is complete ({count} requests)"
        case "event-set-twice":
            text = f"an event can be set again before it is awaited ({count} sets)"
        case _:
            text = f"a counter can pass its cap of {first.cap} ({count} sets)"
    return text, span


class _Actor:
    """An access of an obligation, ready to be named."""

    def __init__(self, analysis: Analysis, place: Place, core: int | None = None) -> None:
        self.analysis = analysis
        self.place = place
        number = place.core if core is None else core
        self.event: Event = analysis.instance.cores[number].events[place.event]
        self.core = core_name(analysis.instance, number, self.event)
        self.access: Access = place.access
        self.span: Span = self.event.span or NOWHERE
        self.at = f"  ({self.span.place})"

    def as_case(self, points: tuple[int, ...], case: int) -> _Actor:
        """The same access by equal core number ``case``; ``points`` are those of all equal cores."""
        core, _ = self.analysis.sync.locate(points[case % len(points)])
        return _Actor(self.analysis, self.place, core)

    def wanted(self) -> str:
        """Where the bytes of the access come from, or must come from."""
        if self.access.origin is None:
            return access_name(self.access)
        return origin_name(self.access.origin, self.access.end - self.access.begin)

    def writes(self) -> str:
        verb = "puts" if self.event.kind is Kind.PUT else "writes"
        if self.access.origin is None:
            return f"{verb} into {access_name(self.access)}"
        return f"{verb} {self.wanted()} into {access_name(self.access)}"

    def symbolic(self) -> list[str]:
        """The put's target as the source computes it."""
        operation = self.event.operation
        if not isinstance(operation, Put):
            return []
        rings = _broken_rings(operation.target.offset, self.analysis.instance.values)
        return [f"because it goes to {operation.target}", *rings]


def _broken_rings(offset: Expr, values: Mapping[str, Value]) -> list[str]:
    """What is wrong with masks ``x & (n - 1)`` in ``offset``: a ring only where n is a power of two."""
    found: dict[str, None] = {}
    for node in walk(offset):
        if isinstance(node, Binary) and node.op == "&":
            mask = _uncast(node.right)
            if isinstance(mask, Binary) and mask.op == "-" and _uncast(mask.right) == Const(1, mask.type):
                size = _uncast(mask.left)
                value = values.get(size.name) if isinstance(size, Var) else None
                if isinstance(value, int) and value & (value - 1):
                    found[f"and {node} is no ring: {size} is {value}, no power of two"] = None
    return list(found)


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr
