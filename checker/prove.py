"""`prove_protocols`: asks the engines, compares them, and writes the report.

Happens-before and Z3 decide every obligation, each on its own; a property is PROVED only with Z3's
own answer. Where they differ the tool is wrong: `EngineDisagreement`, with a saved reproducer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..protocol.errors import LimitError, ParameterError, UnsupportedError
from ..protocol.evaluate import Value
from ..protocol.parameters import check_values
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .analysis import Analysis, analyse, collection_paused
from .ask import Answers, ask, compare
from .assumptions import assumptions_of, note_on_counting
from .properties import PROPERTIES, rows_for
from .report import AssumptionNote, ProgramNote, Range, Report, Result, Tool, Verdict, run_setup
from .rows import rows
from .shrink import Within

ENGINES = ("auto", "happens-before", "z3", "explore")
"""What ``engine`` may be; auto asks happens-before and Z3."""

Progress = Callable[[str], None]


@dataclass(slots=True)
class _Run:
    """What one call of `prove_protocols` gathers."""

    results: list[Result] = field(default_factory=list)
    notes: dict[tuple[str, str], AssumptionNote] = field(default_factory=dict)
    parameters: dict[str, int | list[int] | Range] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)

    def timed(self, phase: str, since: float) -> None:
        self.timing[phase] = round(self.timing.get(phase, 0.0) + time.perf_counter() - since, 4)


def prove_protocols(
    protocols: Sequence[Protocol],
    values: Mapping[str, Value],
    setup: Setup | None = None,
    *,
    strict_ids: bool = False,
    properties: Sequence[str] = (),
    engine: str = "auto",
    cross_check: bool = False,
    limits: Limits | None = None,
    within: Within | None = None,
    progress: Progress | None = None,
) -> Report:
    """Decide ``properties`` (default: all) of ``protocols`` at the parameter ``values``.

    Protocols with equal programs are decided once. ``within``: which smaller cases a counterexample may show.
    Raises ParameterError and SourceError for bad input, EngineDisagreement if engines differ.
    """
    setup, limits = setup or Setup(), limits or Limits()
    for name in properties:
        if name not in PROPERTIES:
            raise ParameterError("property", name, f"there is {', '.join(PROPERTIES)}")
        if not rows_for(setup.launches, [name]):
            raise ParameterError("property", name, "is about several launches (--launches 2)")
    if engine not in ENGINES:
        raise ParameterError("engine", engine, f"there is {', '.join(ENGINES)}")
    chosen = rows_for(setup.launches, properties)
    run = _Run()
    groups = equal_programs(protocols)
    for members in groups:
        # every group's parameters are checked before the first long computation
        check_values(members[0], values)
    for members in groups:
        subjects = [name for p in members for name in (p.subjects or (p.name,))]
        with collection_paused():
            _prove_one(
                run, members[0], subjects, values, setup, strict_ids, chosen, engine,
            cross_check, limits, within, progress or (lambda _: None),
        )  # fmt: skip
    return Report(
        tool=Tool(tool_version(), _z3_version(run.results)),
        program=ProgramNote(groups[0][0].digest(), sorted({f for p in protocols for f in p.files})),
        parameters=run.parameters,
        profile=setup.profile.name,
        setup=run_setup(setup, strict_ids=strict_ids),
        assumptions=list(run.notes.values()),
        results=run.results,
        timing=run.timing,
    )


def equal_programs(protocols: Sequence[Protocol]) -> list[list[Protocol]]:
    """``protocols`` grouped by equal programs and defaults, in order."""
    groups: dict[tuple[str, object], list[Protocol]] = {}
    for protocol in protocols:
        defaults = tuple((p.name, p.default) for p in protocol.parameters)
        groups.setdefault((protocol.digest(), defaults), []).append(protocol)
    return list(groups.values())


def _prove_one(
    run: _Run,
    protocol: Protocol,
    subjects: list[str],
    values: Mapping[str, Value],
    setup: Setup,
    strict_ids: bool,
    chosen: Sequence[str],
    engine: str,
    cross_check: bool,
    limits: Limits,
    within: Within | None,
    progress: Progress,
) -> None:
    complete = check_values(protocol, values)
    for name, value in complete.items():
        run.parameters.setdefault(name, list(value) if isinstance(value, tuple) else value)
    started = time.perf_counter()
    progress(f"unrolling {subjects[0]}")
    try:
        instance = unroll(protocol, values, setup, limits=limits)
    except (LimitError, UnsupportedError) as error:
        verdict = Verdict.UNKNOWN if isinstance(error, LimitError) else Verdict.UNSUPPORTED
        run.results += _undecided(subjects, chosen, verdict, str(error))
        _note(run, protocol, None, setup)
        return
    analysis = analyse(instance)
    run.timed("unroll", started)
    answers = _ask_engines(run, analysis, chosen, engine, cross_check, limits, progress)
    compare(analysis, answers)
    started = time.perf_counter()
    progress("writing the report")
    table = rows(
        analysis, answers, subjects, chosen, strict_ids=strict_ids, needs_z3=engine == "auto", within=within
    )
    run.results += table
    run.timed("report", started)
    _note(run, protocol, analysis, setup)
    for note in note_on_counting(finding for row in table for finding in row.findings):
        run.notes.setdefault((note.code, note.text), note)


def _ask_engines(
    run: _Run,
    analysis: Analysis,
    chosen: Sequence[str],
    engine: str,
    cross_check: bool,
    limits: Limits,
    progress: Progress,
) -> list[Answers]:
    names: tuple[str, ...] = ("happens-before", "z3") if engine == "auto" else (engine,)
    if cross_check:
        names = ("happens-before", "z3", "explore")
    answers: list[Answers] = []
    for name in names:
        progress(f"asking {name}")
        started = time.perf_counter()
        # with the whole answer of one engine at hand, one violation of each kind confirms it
        whole = any(a.declined is None for a in answers)
        answers.append(ask(name, analysis, chosen, limits, one_each=whole and not cross_check))
        run.timed(name, started)
    return answers


def _undecided(subjects: list[str], chosen: Sequence[str], verdict: Verdict, reason: str) -> list[Result]:
    return [Result(subjects, name, verdict, "instance", [], None, reason, []) for name in chosen]


def _note(
    run: _Run,
    protocol: Protocol,
    analysis: Analysis | None,
    setup: Setup,
) -> None:
    for note in assumptions_of(protocol, analysis, setup):
        run.notes.setdefault((note.code, note.text), note)


def tool_version() -> str:
    """The version of this package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mc2proof")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _z3_version(results: Sequence[Result]) -> str | None:
    if not any("z3" in r.engines for r in results):
        return None
    import z3

    return str(z3.get_version_string())
