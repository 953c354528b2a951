"""The values that `minimize` and `mend` judge a changed protocol at: those given, and some beside them.

A synchronisation that is idle at the given values may be needed at the next: one tile more than the
ring has slots, one rank more. `outcome` judges by happens-before, and by Z3 where that declines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..protocol.errors import LimitError, Mc2proofError, ParameterError, SourceError, UnsupportedError
from ..protocol.evaluate import Value
from ..protocol.expr import Expr, Var, variables
from ..protocol.parameters import check_values
from ..protocol.program import For, Protocol, statements
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .properties import PROPERTIES, Method
from .prove import prove_protocols
from .quick import Found, judge
from .report import Report, Severity, Verdict

TILES, DEPTH, RANKS = "tile_cnt", "buffer_size", "ranks"
_REFUSALS: tuple[type[Mc2proofError], ...] = (LimitError, ParameterError, SourceError, UnsupportedError)


@dataclass(frozen=True, slots=True)
class Question:
    """On what hardware, and under which bounds, protocols are judged."""

    setup: Setup
    strict_ids: bool
    limits: Limits


@dataclass(frozen=True, slots=True)
class Outcome:
    """The errors of a protocol at some values; ``open``: why it is not said that there are no others."""

    errors: tuple[Found, ...] = ()
    open: str | None = None
    events: int = 0

    @property
    def codes(self) -> frozenset[tuple[str, str]]:
        """Property and code of each error."""
        return frozenset((found.property, found.code) for found in self.errors)

    @property
    def clean(self) -> bool:
        """Whether there is certainly no error."""
        return not self.errors and self.open is None


@dataclass(frozen=True, slots=True)
class Case:
    """Values to judge at; ``changed``: how they differ from those given. ``base``: the unchanged protocol."""

    values: Mapping[str, Value]
    changed: Mapping[str, int]
    base: Outcome

    @property
    def text(self) -> str:
        """``tile_cnt 5, ranks 2``."""
        return ", ".join(f"{name} {value}" for name, value in self.changed.items())


def outcome(
    protocol: Protocol, values: Mapping[str, Value], question: Question, *, quick: bool = False
) -> Outcome:
    """What is wrong with ``protocol`` at ``values``; what cannot be run is open.

    ``quick``: what happens-before does not decide is open too, instead of a question to Z3.
    """
    try:
        instance = unroll(protocol, values, question.setup, limits=question.limits)
    except _REFUSALS as error:
        return Outcome(open=str(error))
    judgement = judge(instance, strict_ids=question.strict_ids)
    errors = tuple(found for found in judgement.found if found.severity is Severity.ERROR)
    events = instance.event_count()
    if quick or judgement.open is None or errors:
        return Outcome(errors, judgement.open, events)
    return _by_proof(proof(protocol, values, question), events)


def proof(protocol: Protocol, values: Mapping[str, Value], question: Question) -> Report:
    """What `prove` says of ``protocol``, Z3 included."""
    return prove_protocols(
        [protocol], values, question.setup, strict_ids=question.strict_ids, limits=question.limits
    )


def holds(report: Report, before: Report) -> bool:
    """Whether everything is PROVED, or has nothing left to speak of that is not itself synchronisation."""
    empty = {r.property for r in before.results if r.verdict is Verdict.VACUOUS}
    empty |= {name for name, prop in PROPERTIES.items() if prop.method is not Method.ORDER}
    return all(
        r.verdict is Verdict.PROVED or (r.verdict is Verdict.VACUOUS and r.property in empty)
        for r in report.results
    )


def _by_proof(report: Report, events: int) -> Outcome:
    errors = tuple(
        Found(row.property, f.code, f.severity, f.message, f.file, f.line)
        for row in report.results
        for f in row.findings
        if f.severity is Severity.ERROR
    )
    undecided = (Verdict.UNKNOWN, Verdict.UNSUPPORTED)
    reasons = [row.reason or row.property for row in report.results if row.verdict in undecided]
    return Outcome(errors, reasons[0] if reasons else None, events)


# --- neighbours -------------------------------------------------------------------------------


def cases(protocol: Protocol, values: Mapping[str, Value], question: Question) -> list[Case]:
    """The case of ``values``, then those beside it at which the protocol can be run.

    Raises what `unroll` raises for ``values`` themselves.
    """
    unroll(protocol, values, question.setup, limits=question.limits)
    complete = check_values(protocol, values)
    found = [Case(values, {}, outcome(protocol, values, question))]
    seen = [complete]
    for changed in _changes(protocol, complete):
        beside = {**_kept(protocol, values, changed), **changed}
        try:
            whole = check_values(protocol, beside)
        except _REFUSALS:
            continue
        if whole not in seen:
            seen.append(whole)
            found.append(Case(beside, changed, outcome(protocol, beside, question)))
    return found


def _changes(protocol: Protocol, values: Mapping[str, Value]) -> Iterator[dict[str, int]]:
    """The neighbours: tiles around the ring's depth and its multiples, two smaller rings, few ranks."""
    tiles, depth = _number(values, TILES), _number(values, DEPTH)
    short: dict[str, int] = {}
    if tiles is not None and depth is not None:
        for count in (depth - 1, depth, depth + 1, 2 * depth, 2 * depth + 1):
            yield {TILES: count}
        for small in (1, 2):
            yield {DEPTH: small, TILES: 2 * small + 1}
        short = {TILES: min(tiles, 2 * depth + 1)}
    for name in _bounds(protocol):
        value = _number(values, name)
        if value is not None and not (name == TILES and depth is not None):
            yield {name: value - 1}
            yield {name: value + 1}
    for ranks in (2, 3):
        yield {RANKS: ranks, **short}


def _bounds(protocol: Protocol) -> list[str]:
    """The parameters that loops count up to, but for the ranks and blocks."""
    names: dict[str, None] = {}
    for program in protocol.programs.values():
        for statement in statements(program):
            if isinstance(statement, For):
                names |= {v.name: None for v in variables(statement.stop) if isinstance(v, Var)}
    known = {p.name for p in protocol.parameters} - {RANKS, "blocks", DEPTH}
    return [name for name in names if name in known]


def _kept(protocol: Protocol, values: Mapping[str, Value], changed: Mapping[str, int]) -> dict[str, Value]:
    """``values`` without those that follow from a changed one by default."""
    follows = {
        p.name
        for p in protocol.parameters
        if isinstance(p.default, Expr)
        and any(isinstance(v, Var) and v.name in changed for v in variables(p.default))
    }
    if RANKS in changed and values.get("blocks") == values.get(RANKS):
        follows.add("blocks")
    return {name: value for name, value in values.items() if name not in follows}


def _number(values: Mapping[str, Value], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None
