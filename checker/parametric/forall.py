"""`prove_for_all`: the report on a protocol for all values of some parameters.

PROVED is the parametric engine's answer, by Z3. What it cannot prove is VIOLATED where values are found at
which it fails, with the whole counterexample of `prove` at these values; else it is UNKNOWN.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import ParameterError, UnsupportedError
from ...protocol.evaluate import Value
from ...protocol.program import Protocol
from ...protocol.setup import Setup
from ...protocol.unroll import Limits
from ..assumptions import assumptions_of
from ..catalogue import source_of
from ..properties import PROPERTIES, rows_for
from ..prove import equal_programs, prove_protocols, tool_version
from ..report import (
    AssumptionNote,
    Counterexample,
    Finding,
    ProgramNote,
    Range,
    Report,
    Result,
    Tool,
    Verdict,
    run_setup,
)
from .concrete import Case, failing, few, outside
from .decide import Decided, Decision, decide
from .domain import Domain, domain_of
from .formula import Formula, either, equal
from .sites import LAUNCHES
from .solve import Second, z3_version
from .witness import Beyond, beyond

if TYPE_CHECKING:
    from .certify import Certified

SCOPE = "all"
"""The scope of a row that speaks of every value of the domain."""

CONDITIONED = frozenset({"flag-range", "layout"})
"""Properties that hold on a part of a domain, told by a condition."""

FEW, MANY = 12, 200
"""How many values are tried before the proof, and after it."""

RLIMIT = 10_000_000
"""Z3's resource limit a question, unless one is given: what is proved takes less than a tenth of it."""

STRICT = "the condition may be stricter than needed"

ENGINE = "parametric"
"""The name of the engine in reports."""

NO_OVERFLOW = AssumptionNote(
    "no-overflow",
    "sums and products of parameters and indices stay within their C types (differences below zero are "
    "proved not to happen)",
)


def prove_for_all(
    protocols: Sequence[Protocol],
    values: Mapping[str, Value],
    free: Sequence[str],
    assume: Sequence[str] = (),
    setup: Setup | None = None,
    *,
    strict_ids: bool = False,
    properties: Sequence[str] = (),
    limits: Limits | None = None,
    progress: Callable[[str], None] | None = None,
    certified: list[Certified] | None = None,
    second: Second | None = None,
) -> Report:
    """Decide ``properties`` for all values of the parameters ``free``; the others have ``values``.

    ``assume``: conditions on the values (see `domain`). ``launches`` may be among ``free``. ``certified``
    is given a certificate for every program; ``second`` is another solver that is asked what Z3 calls
    impossible.
    Raises ParameterError for names, values and assumptions that make no sense.
    """
    setup, limits = setup or Setup(), limits or Limits()
    several = 2 if LAUNCHES in free else setup.launches
    for name in properties:
        if name not in PROPERTIES:
            raise ParameterError("property", name, f"there is {', '.join(PROPERTIES)}")
        if not rows_for(several, [name]):
            raise ParameterError("property", name, "is about several launches (--for-all launches)")
    chosen = rows_for(several, properties)
    started = time.perf_counter()
    results: list[Result] = []
    notes: dict[tuple[str, str], AssumptionNote] = {}
    groups = equal_programs(protocols)
    domain = None
    for members in groups:
        subjects = [name for p in members for name in (p.subjects or (p.name,))]
        domain = domain_of(members[0], free, values, assume, setup.launches)
        check_possible(domain)
        run = _Run(members[0], setup, domain, values, strict_ids, limits, progress)
        run.certified, run.second = certified, second
        results += run.rows(subjects, chosen)
        for note in (
            *assumptions_of(members[0], None, setup, any_launches=LAUNCHES in free),
            NO_OVERFLOW,
            *_assumed(domain),
        ):
            notes.setdefault((note.code, note.text), note)
    assert domain is not None
    return Report(
        tool=Tool(tool_version(), z3_version()),
        program=ProgramNote(groups[0][0].digest(), sorted({f for p in protocols for f in p.files})),
        parameters=_parameters(groups[0][0], domain),
        profile=setup.profile.name,
        setup=run_setup(setup, strict_ids=strict_ids),
        assumptions=list(notes.values()),
        results=results,
        timing={ENGINE: round(time.perf_counter() - started, 4)},
    )


def _rlimit(limits: Limits) -> int:
    """Z3's limit a question: the default is for the many questions of an instance, and far too much here."""
    return RLIMIT if limits.rlimit == Limits().rlimit else limits.rlimit


def check_possible(domain: Domain) -> None:
    """Refuse assumptions that no value satisfies: everything would be proved of nothing."""
    from .solve import Answer, Solver

    conditions = domain.conditions()
    impossible = Solver(0).ask(conditions) is Answer.IMPOSSIBLE
    for power in domain.powers:  # each alone: the solver does not know what a power of two is
        sizes = either(*(equal(power, 1 << exponent) for exponent in range(64)))
        impossible = impossible or Solver(0).ask([*conditions, sizes]) is Answer.IMPOSSIBLE
    if impossible:
        texts = ", ".join(a.text for a in domain.assumptions)
        raise ParameterError("assume", repr(texts), "no value satisfies it")


def _assumed(domain: Domain) -> list[AssumptionNote]:
    return [AssumptionNote("assumed", assumption.text) for assumption in domain.assumptions]


def _parameters(protocol: Protocol, domain: Domain) -> dict[str, int | list[int] | Range]:
    found: dict[str, int | list[int] | Range] = {}
    for parameter in protocol.parameters:
        name = parameter.name
        if name in domain.free:
            found[name] = Range(*domain.free[name])
        elif domain.names[name].constant is not None:
            found[name] = domain.names[name].constant or 0
        else:
            found[name] = Range(parameter.low, parameter.high, str(domain.names[name]))
    if LAUNCHES in domain.free:
        found[LAUNCHES] = Range(*domain.free[LAUNCHES])
    return found


class _Run:
    """Decides one program and writes its rows."""

    def __init__(
        self, protocol: Protocol, setup: Setup, domain: Domain, values: Mapping[str, Value], strict_ids: bool,
        limits: Limits, progress: Callable[[str], None] | None,
    ) -> None:  # fmt: skip
        self.protocol, self.setup, self.domain, self.values = protocol, setup, domain, values
        self.strict_ids, self.limits, self.progress = strict_ids, limits, progress
        self.found: Decided | None = None
        self.certified: list[Certified] | None = None
        self.second: Second | None = None

    def rows(self, subjects: list[str], chosen: Sequence[str]) -> list[Result]:
        # what fails at small values need not be asked for all: the conditions of these are of no use
        timed = {name: None for name in chosen if name not in CONDITIONED}
        cases = self._failing(timed, FEW)
        decisions = self._decisions([name for name in chosen if name not in cases])
        open_ones = [d for d in decisions.values() if not d.proved and not d.nothing]
        # bytes pass their limits where there is much to unroll; ids soon do, and counting says more of them
        shown = {d.name: row for d in open_ones if d.name == "layout" for row in self._beyond(d)}
        cases |= self._failing({d.name: d.condition for d in open_ones if d.name not in shown}, MANY)
        decisions |= {name: Decision(name, False) for name in cases if name not in decisions}
        shown |= self._shown(cases)
        shown |= {d.name: row for d in open_ones if d.name not in shown for row in self._beyond(d)}
        notes = self._certify(subjects, [name for name in chosen if decisions[name].proved])
        rows = [self._row(subjects, decisions[name], shown.get(name)) for name in chosen]
        return [msgspec.structs.replace(row, certificate=notes.get(row.property)) for row in rows]

    def _certify(self, subjects: list[str], proved: list[str]) -> dict[str, str]:
        """Make the certificate where one is wanted; returns what it has of each row."""
        if self.certified is None or self.found is None or not proved:
            return {}
        from .certify import certify

        made = certify(
            self.found, subjects, self.values, proved, strict_ids=self.strict_ids, progress=self.progress
        )
        self.certified.append(made)
        notes = {name: f"not certified: {reason}" for name, reason in made.certificate.left_out.items()}
        return notes | {name: f"{len(keys)} claims" for name, keys in made.by_property.items()}

    def _failing(self, wanted: Mapping[str, Formula | None], most: int) -> dict[str, Case]:
        return failing(
            self.protocol, self.setup, self.domain, self.values, wanted, most,
            strict_ids=self.strict_ids, progress=self.progress,
        )  # fmt: skip

    def _decisions(self, chosen: Sequence[str]) -> dict[str, Decision]:
        try:
            found: Decided = decide(
                self.protocol, self.setup, self.domain, chosen, strict_ids=self.strict_ids,
                rlimit=_rlimit(self.limits), progress=self.progress, second=self.second,
            )  # fmt: skip
            self.found = found
        except UnsupportedError as error:
            return {name: Decision(name, False, reason=str(error)) for name in chosen}
        return found.decisions

    def _shown(self, cases: Mapping[str, Case]) -> dict[str, Result]:
        """The rows of `prove` at the values found, each with its counterexample."""
        by_case: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for name, case in cases.items():
            by_case.setdefault(tuple(case.items()), []).append(name)
        found: dict[str, Result] = {}
        for key, names in by_case.items():
            at = dict(key)
            values = {**self.values, **{name: value for name, value in at.items() if name != LAUNCHES}}
            setup = replace(self.setup, launches=at.get(LAUNCHES, self.setup.launches))
            report = prove_protocols(
                [self.protocol], values, setup, strict_ids=self.strict_ids, properties=names,
                within=self._within, limits=self.limits, progress=self.progress,
            )  # fmt: skip
            found |= {row.property: row for row in report.results if row.verdict is Verdict.VIOLATED}
        return found

    def _beyond(self, decision: Decision) -> Iterator[Result]:
        """A row with events that pass the limits of ``decision``, at values that are not unrolled."""
        if decision.condition is None or self.found is None:
            return
        cases = list(few(outside(self.domain, decision.condition)))
        for case in sorted(cases, key=lambda case: (case.get("ranks", 0), sum(case.values()))):
            found = beyond(self.found.program, self.values, case, decision.limits)
            if found is not None:
                yield self._row_beyond(decision, found)
                return

    def _row_beyond(self, decision: Decision, found: Beyond) -> Result:
        values = {name: v if isinstance(v, int) else list(v) for name, v in found.values.items()}
        shown = Counterexample(values, found.launches, [], [], None)
        findings = [
            Finding(
                fault.code, fault.severity, fault.message, fault.span.file, fault.span.line,
                source_of(fault.code), shown,
            )
            for fault in found.faults
        ]  # fmt: skip
        return Result([], decision.name, Verdict.VIOLATED, SCOPE, [ENGINE], None, None, findings)

    def _within(self, values: Mapping[str, Value], launches: int) -> bool:
        """Whether a smaller case lies in the domain."""
        given = {**values, LAUNCHES: launches}
        free = {name: given[name] for name in self.domain.free}
        numbers = {name: value for name, value in free.items() if isinstance(value, int)}
        return len(numbers) == len(free) and self.domain.contains(numbers)

    def _row(self, subjects: list[str], decision: Decision, shown: Result | None) -> Result:
        scope = SCOPE if self.domain.free else "instance"
        plain = Result(subjects, decision.name, Verdict.PROVED, scope, [ENGINE], None, None, [])
        if decision.proved:
            return plain
        if decision.nothing:
            return msgspec.structs.replace(plain, verdict=Verdict.VACUOUS, engines=[])
        when = decision.holds_when
        if shown is not None:
            return msgspec.structs.replace(
                plain, verdict=Verdict.VIOLATED, engines=shown.engines, holds_when=when,
                reason=None if when is None or decision.exact else STRICT,
                findings=shown.findings,
            )  # fmt: skip
        return msgspec.structs.replace(
            plain, verdict=Verdict.UNKNOWN, engines=[], holds_when=when, reason=decision.reason
        )
