"""What is wrong with one instance, by counting and happens-before alone: no Z3, no counterexamples.

`plan` and `limits` ask it of many instances. `judge` finds what `prove` finds wherever all timings
share one order; where they do not, the rows that depend on timing are left open, and it says so.
`count` is the part that needs no order: it is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.instance import Instance
from ..protocol.sync import Sync, synchronise
from ..protocol.unroll import Limits
from .analysis import Analysis, analyse, collection_paused
from .ask import Answers, ask
from .explain import message_of, message_of_stuck
from .flag_range import flag_range
from .layout import layout
from .obligations import Obligation
from .properties import PROPERTIES
from .report import Severity
from .static import Fault, barrier_match, blocks_exceed_cores, coverage, flag_balance


@dataclass(frozen=True, slots=True)
class Found:
    """A fault of a property, without a timing that shows it."""

    property: str
    code: str
    severity: Severity
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """The faults that `count` finds, and the others; ``open``: why timing was not judged, if it was not."""

    counted: tuple[Found, ...]
    others: tuple[Found, ...]
    open: str | None = None

    @property
    def found(self) -> tuple[Found, ...]:
        """All faults."""
        return self.others + self.counted

    @property
    def errors(self) -> frozenset[str]:
        """The codes of those that are no warnings."""
        return frozenset(found.code for found in self.found if found.severity is Severity.ERROR)


_NOT_OF_FORWARDED = frozenset({"foreign-data", "never-written", "never-delivered"})
"""What nothing can be said about where bytes are sent on that are no input."""


def count(instance: Instance, *, strict_ids: bool = False) -> tuple[Found, ...]:
    """The faults of ``instance`` that flags, barriers and byte ranges show by themselves."""
    with collection_paused():
        return _counted(synchronise(instance), strict_ids)


def judge(instance: Instance, *, strict_ids: bool = False) -> Judgement:
    """All faults of ``instance``."""
    with collection_paused():
        analysis = analyse(instance)
        counted = _counted(analysis.sync, strict_ids)
        answers = ask("happens-before", analysis, list(PROPERTIES), Limits())
        others = [] if answers.declined is not None else _in_time(analysis, answers)
        ends = answers.declined is None and answers.completes and not blocks_exceed_cores(analysis.sync)
        if ends:
            others += _found("coverage", coverage(instance, analysis.groups))
    reason = answers.declined
    if answers.lossy:
        reason = "a set can be lost"
        others = [f for f in others if f.property == "flag-range"]
    at_end = {name for name, prop in PROPERTIES.items() if prop.at_end}
    others = [f for f in others if ends or f.property not in at_end]
    if analysis.forwarded is not None:
        others = [f for f in others if f.code not in _NOT_OF_FORWARDED]
    return Judgement(counted, tuple(others), reason)


def _counted(sync: Sync, strict_ids: bool) -> tuple[Found, ...]:
    faults = {
        "deadlock-freedom": blocks_exceed_cores(sync),
        "flag-balance": flag_balance(sync),
        "flag-range": flag_range(sync, strict_ids=strict_ids),
        "barrier-match": barrier_match(sync),
        "layout": layout(sync.instance),
    }
    return tuple(found for name, some in faults.items() for found in _found(name, some))


def _found(name: str, faults: list[Fault] | None) -> list[Found]:
    return [Found(name, f.code, f.severity, f.message, f.span.file, f.span.line) for f in faults or ()]


def _in_time(analysis: Analysis, answers: Answers) -> list[Found]:
    found = []
    if answers.stuck is not None:
        text, span = message_of_stuck(analysis, answers.stuck)
        found.append(Found("deadlock-freedom", "deadlock", Severity.ERROR, text, span.file, span.line))
    by_code: dict[tuple[str, str], list[Obligation]] = {}
    for index in answers.violated:
        obligation = analysis.obligations[index]
        by_code.setdefault((obligation.property, obligation.code), []).append(obligation)
    for (name, code), obligations in by_code.items():
        message, span = message_of(analysis, obligations)
        found.append(Found(name, code, Severity.ERROR, message, span.file, span.line))
    return found
