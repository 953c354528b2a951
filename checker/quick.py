"""What is wrong with one instance, by counting and happens-before alone: no Z3, no counterexamples.

`plan` and `limits` ask it of many instances. It finds what `prove` finds wherever all timings share
one order; where they do not, the rows that depend on timing are left open, and it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..protocol.instance import Instance
from .analysis import Analysis, analyse, collection_paused
from .engine import Declined
from .explain import conflict_of_stuck, message_of
from .flag_range import flag_range
from .happens_before import HappensBefore
from .layout import layout
from .obligations import Obligation
from .report import Severity
from .static import NOWHERE, Fault, barrier_match, coverage, flag_balance


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
    """All faults found; ``open`` says why timing was not judged, if it was not."""

    found: tuple[Found, ...]
    open: str | None = None


_COUNTED: Mapping[str, Callable[[Analysis, bool], list[Fault] | None]] = {
    "flag-balance": lambda a, strict: flag_balance(a.sync),
    "flag-range": lambda a, strict: flag_range(a.sync, strict_ids=strict),
    "barrier-match": lambda a, strict: barrier_match(a.sync),
    "coverage": lambda a, strict: coverage(a.instance, a.groups),
    "layout": lambda a, strict: layout(a.instance),
}
_NOT_OF_FORWARDED = frozenset({"foreign-data", "never-written", "never-delivered"})
"""What nothing can be said about where bytes are sent on that are no input."""
_AT_END = frozenset({"coverage", "completion"})


def judge(instance: Instance, *, strict_ids: bool = False) -> Judgement:
    """The faults of ``instance``, those of timing first."""
    with collection_paused():
        analysis = analyse(instance)
        found: list[Found] = []
        reason = None
        try:
            found += _in_time(analysis)
        except Declined as declined:
            reason = declined.reason
        for name, count in _COUNTED.items():
            found += [_of_fault(name, fault) for fault in count(analysis, strict_ids) or ()]
    if any(f.code == "deadlock" for f in found):  # no run reaches its end
        found = [f for f in found if f.property not in _AT_END]
    if analysis.forwarded is not None:
        found = [f for f in found if f.code not in _NOT_OF_FORWARDED]
    return Judgement(tuple(found), reason)


def _of_fault(name: str, fault: Fault) -> Found:
    return Found(name, fault.code, fault.severity, fault.message, fault.span.file, fault.span.line)


def _in_time(analysis: Analysis) -> list[Found]:
    engine = HappensBefore(analysis.sync)
    found = []
    stuck = engine.stuck()
    if stuck is not None:
        core, event = stuck.waiting[0]
        span = analysis.instance.cores[core].events[event].span or NOWHERE
        text = "; ".join(line.rsplit("  (", 1)[0] for line in conflict_of_stuck(analysis, stuck))
        found.append(
            Found("deadlock-freedom", "deadlock", Severity.ERROR, text or "some core never ends",
                  span.file, span.line)
        )  # fmt: skip
    by_code: dict[tuple[str, str], list[Obligation]] = {}
    for index in engine.violated(analysis.obligations):
        obligation = analysis.obligations[index]
        by_code.setdefault((obligation.property, obligation.code), []).append(obligation)
    for (name, code), obligations in by_code.items():
        message, span = message_of(analysis, obligations)
        found.append(Found(name, code, Severity.ERROR, message, span.file, span.line))
    return found
