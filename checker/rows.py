"""From the engines' answers and the counted faults to the rows of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ..protocol.instance import Instance
from .analysis import Analysis, analyse
from .ask import Answers
from .catalogue import source_of
from .counterexample import counted, counterexample
from .engine import Stuck
from .explain import message_of, message_of_stuck
from .flag_obligations import MERGED
from .flag_range import flag_range
from .layout import extents, layout
from .obligations import Obligation
from .properties import PROPERTIES, Method, Property
from .report import Counterexample, Finding, RegionUse, Result, Severity, Verdict
from .shrink import Within, codes_of
from .static import Fault, barrier_match, blocks_exceed_cores, coverage, flag_balance

JUDGE_DATA = frozenset(
    {"no-read-before-write", "no-overwrite-before-read", "completion", "coverage", "relaunch"}
)
"""Properties that speak of which bytes a reader finds."""


def rows(
    analysis: Analysis,
    answers: Sequence[Answers],
    subjects: list[str],
    chosen: Sequence[str],
    *,
    strict_ids: bool,
    needs_z3: bool,
    within: Within | None = None,
) -> list[Result]:
    """One row a chosen property, in report order; ``within``: which smaller cases may be shown."""
    builder = _Rows(analysis, answers, subjects, strict_ids, needs_z3, within)
    return [builder.row(PROPERTIES[name]) for name in chosen]


class _Rows:
    def __init__(
        self,
        analysis: Analysis,
        answers: Sequence[Answers],
        subjects: list[str],
        strict_ids: bool,
        needs_z3: bool,
        within: Within | None,
    ) -> None:
        self.analysis = analysis
        self.answers = answers
        self.given = [a for a in answers if a.declined is None]
        self.declined = [a for a in answers if a.declined is not None]
        self.is_lossy = any(a.lossy for a in answers)
        self.subjects = subjects
        self.needs_z3 = needs_z3
        self.strict_ids = strict_ids
        self.within = within
        self.known: tuple[frozenset[str] | None] | None = None
        self.static: Mapping[str, Callable[[Analysis], list[Fault] | None]] = {
            "deadlock-freedom": lambda a: blocks_exceed_cores(a.sync),
            "flag-balance": lambda a: flag_balance(a.sync),
            "flag-range": lambda a: flag_range(a.sync, strict_ids=strict_ids),
            "barrier-match": lambda a: barrier_match(a.sync),
            "coverage": lambda a: coverage(a.instance, a.groups),
            "layout": lambda a: layout(a.instance),
        }

    def row(self, prop: Property) -> Result:
        timed = prop.method is not Method.STATIC or prop.at_end
        if self.is_lossy and timed and prop.name != "flag-range":
            return self._without_lossy(prop)
        if prop.at_end and self.given and not self.given[0].completes:
            return self._result(prop, Verdict.VACUOUS, "no run completes", [], self._names())
        if prop.at_end and blocks_exceed_cores(self.analysis.sync):
            return self._result(prop, Verdict.VACUOUS, "no run completes", [], ["static"])
        if prop.method is Method.STATIC:
            return self._static_row(prop)
        if prop.method is Method.DEADLOCK:
            return self._deadlock_row(prop)
        result = self._order_row(prop)
        if prop.between_launches and result.verdict is Verdict.PROVED and not self._completes():
            return self._result(prop, Verdict.VACUOUS, "no run completes", result.findings, self._names())
        return result

    def _completes(self) -> bool:
        """Whether some run ends, as far as an engine said."""
        ends = not self.given or self.given[0].completes
        return ends and not blocks_exceed_cores(self.analysis.sync)

    def _without_lossy(self, prop: Property) -> Result:
        """The row by the engines that follow a lost set, if there are any."""
        reason = f"a set can be lost ({MERGED}), and only the explorer follows what happens then"
        answers = [Answers(a.engine, reason) if a.lossy else a for a in self.answers]
        following = _Rows(self.analysis, answers, self.subjects, self.strict_ids, self.needs_z3, self.within)
        return following.row(prop)

    def _known(self) -> frozenset[str] | None:
        """The codes of all errors of the instance, asked for or not; computed when first needed."""
        if self.known is None:
            self.known = (codes_of(self.analysis.instance, strict_ids=self.strict_ids),)
        return self.known[0]

    def _names(self) -> list[str]:
        return [a.engine for a in self.given]

    def _result(
        self,
        prop: Property,
        verdict: Verdict,
        reason: str | None,
        findings: list[Finding],
        engines: list[str],
    ) -> Result:
        return Result(self.subjects, prop.name, verdict, "instance", engines, None, reason, findings)

    # --- by counting --------------------------------------------------------------------------

    def _static_row(self, prop: Property) -> Result:
        if prop.at_end and not self.given and self.declined:
            return self._undecided(prop)
        faults = self.static[prop.name](self.analysis)
        if faults is None:
            return self._result(prop, Verdict.VACUOUS, _NOTHING[prop.name], [], ["static"])
        findings = self._fault_findings(prop, faults)
        verdict = _verdict(findings)
        forwarded = prop.name in JUDGE_DATA and self.analysis.forwarded is not None
        if forwarded and all(f.code == "never-delivered" for f in findings):
            return self._unsupported(prop, [])
        result = self._result(prop, verdict, None, findings, ["static"])
        if prop.name != "layout":
            return result
        uses = [RegionUse(e.region, e.needed, e.size) for e in extents(self.analysis.instance)]
        return msgspec.structs.replace(result, memory=uses)

    def _fault_findings(self, prop: Property, faults: Sequence[Fault]) -> list[Finding]:
        findings = []
        seen: set[str] = set()
        for fault in faults:
            shown = None
            if fault.severity is Severity.ERROR and fault.code not in seen:
                seen.add(fault.code)
                shown = self._smallest(prop, fault)
            findings.append(
                Finding(
                    fault.code, fault.severity, fault.message, fault.span.file, fault.span.line,
                    source_of(fault.code), shown,
                )
            )  # fmt: skip
        return findings

    def _smallest(self, prop: Property, fault: Fault) -> Counterexample:
        """The smallest parameters with the same fault; there is no timing to show."""

        def fails(instance: Instance) -> bool:
            found = self.static[prop.name](analyse(instance)) or []
            return any(f.code == fault.code for f in found)

        return counted(self.analysis.instance, fails, self._known(), self.within)

    def _unsupported(self, prop: Property, findings: list[Finding]) -> Result:
        """Bytes that are sent on have no stated origin; nothing that judges data can be PROVED."""
        assert self.analysis.forwarded is not None
        reason = f"{self.analysis.forwarded.place}: unsupported: a put that forwards bytes that are no input"
        return self._result(prop, Verdict.UNSUPPORTED, reason, findings, [])

    # --- by engines ---------------------------------------------------------------------------

    def _undecided(self, prop: Property) -> Result:
        reasons = "; ".join(f"{a.engine}: {a.declined}" for a in self.declined)
        return self._result(prop, Verdict.UNKNOWN, reasons, [], [])

    def _proved(self, prop: Property, findings: list[Finding]) -> Result:
        """PROVED, unless the engine that has to say so did not answer."""
        if not self.given:
            return self._undecided(prop)
        if self.needs_z3 and "z3" not in self._names():
            return self._undecided(prop)
        return self._result(prop, Verdict.PROVED, None, findings, self._names())

    def _deadlock_row(self, prop: Property) -> Result:
        stuck = next((a.stuck for a in self.given if a.stuck is not None), None)
        faults = blocks_exceed_cores(self.analysis.sync)
        findings = self._fault_findings(prop, faults)
        if stuck is not None:
            findings.append(self._stuck_finding(prop, stuck))
        hangs = self._violated_by_code(prop)
        findings += [self._order_finding(prop, code, found) for code, found in hangs.items()]
        if findings:
            engines = (["static"] if faults else []) + (self._names() if stuck or hangs else [])
            return self._result(prop, Verdict.VIOLATED, None, findings, engines)
        if self.given and not self.analysis.kinds.blocks_somewhere:
            return self._result(prop, Verdict.VACUOUS, "nothing ever waits", [], self._names())
        return self._proved(prop, [])

    def _stuck_finding(self, prop: Property, stuck: Stuck) -> Finding:
        text, span = message_of_stuck(self.analysis, stuck)
        return Finding(
            "deadlock",
            Severity.ERROR,
            text,
            span.file,
            span.line,
            source_of("deadlock"),
            counterexample(self.analysis.instance, prop.name, "deadlock", self._known(), self.within),
        )

    def _violated_by_code(self, prop: Property) -> dict[str, list[Obligation]]:
        """The violated obligations of ``prop``, as the first engine that answered has them."""
        by_code: dict[str, list[Obligation]] = {}
        for index in self.given[0].violated if self.given else []:
            obligation = self.analysis.obligations[index]
            if obligation.property == prop.name:
                by_code.setdefault(obligation.code, []).append(obligation)
        return by_code

    def _order_row(self, prop: Property) -> Result:
        faults = self.static[prop.name](self.analysis) if prop.method is Method.BOTH else []
        findings = self._fault_findings(prop, faults or [])
        by_code = self._violated_by_code(prop)
        if self.analysis.forwarded is not None:
            for code in ("foreign-data", "never-written"):  # what was sent on may be just that
                by_code.pop(code, None)
        for code, obligations in by_code.items():
            findings.append(self._order_finding(prop, code, obligations))
        if _verdict(findings) is Verdict.VIOLATED:
            engines = (["static"] if faults else []) + (self._names() if by_code else [])
            return self._result(prop, Verdict.VIOLATED, None, findings, engines)
        if prop.name in JUDGE_DATA and self.analysis.forwarded is not None:
            return self._unsupported(prop, findings)
        nothing = self._nothing_to_say(prop, faults)
        if nothing is not None and self.given:
            return self._result(prop, Verdict.VACUOUS, nothing, findings, self._names())
        if prop.method is Method.BOTH and not self.analysis.of(prop.name):
            return self._result(prop, Verdict.PROVED, None, findings, ["static"])
        return self._proved(prop, findings)

    def _order_finding(self, prop: Property, code: str, obligations: Sequence[Obligation]) -> Finding:
        message, span = message_of(self.analysis, obligations)
        shown = counterexample(self.analysis.instance, prop.name, code, self._known(), self.within)
        return Finding(code, Severity.ERROR, message, span.file, span.line, source_of(code), shown)

    def _nothing_to_say(self, prop: Property, faults: Sequence[Fault] | None) -> str | None:
        kinds = self.analysis.kinds
        if prop.method is Method.BOTH:
            return None if faults is not None else _NOTHING[prop.name]
        if prop.name == "completion":
            return None if kinds.requests else "no requests are posted"
        if prop.between_launches and not kinds.written:
            return "no remote writes"
        if self.analysis.of(prop.name):
            return None
        if not kinds.written:
            return "no remote writes"
        if not kinds.written & kinds.read:
            return "nobody reads a region that is written"
        if prop.name == "no-read-before-write":
            return "no reader says what it must find"
        return None


_NOTHING = {
    "flag-balance": "no flags or events are used",
    "flag-range": "no flags or events are used",
    "barrier-match": "no barrier is called",
    "coverage": "no outputs and no shared reads",
    "layout": "no memory is addressed",
}
"""Why a row is VACUOUS."""


def _verdict(findings: Sequence[Finding]) -> Verdict:
    return Verdict.VIOLATED if any(f.severity is Severity.ERROR for f in findings) else Verdict.PROVED
