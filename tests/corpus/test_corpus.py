"""Every protocol of the manifest gets its expected verdicts, from every engine that applies.

How to add one is in README.md. An entry without ``engines`` is decided by all three.
"""

import importlib.util
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, ask, compare
from mc2proof.checker.catalogue import CATALOGUE
from mc2proof.checker.engine import Declined, Engine
from mc2proof.checker.explorer import Explorer
from mc2proof.checker.happens_before import HappensBefore
from mc2proof.checker.properties import PROPERTIES, Method, rows_for
from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Report, Severity, Verdict
from mc2proof.checker.smt import Cuts
from mc2proof.checker.smt_times import Times
from mc2proof.protocol.profile import PROFILES, BarrierAll
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import Limits, unroll

HERE = Path(__file__).parent
ENGINES = ("happens-before", "z3", "explore")


@dataclass(frozen=True, kw_only=True)
class Known:
    """Rows that are wrong for a reason that is known."""

    rows: list[str]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One protocol at some parameters: what is expected. ``violated`` has the codes of the errors."""

    name: str
    protocol: str
    parameters: dict[str, Any]
    events: int
    arguments: dict[str, Any] = field(default_factory=dict)
    profile: str = "ascend950"
    barrier_all: str = "vec"
    profile_options: dict[str, Any] = field(default_factory=dict)
    launches: int = 1
    flags_cleared: bool = False
    faults: tuple[str, ...] = ()
    strict_ids: bool = False
    engines: tuple[str, ...] = ENGINES
    rest: str = ""
    proved: tuple[str, ...] = ()
    violated: dict[str, list[str]] = field(default_factory=dict)
    vacuous: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    warnings: dict[str, list[str]] = field(default_factory=dict)
    known_bug: dict[str, Any] | None = None

    def build(self) -> Protocol:
        module, _, function = self.protocol.partition(".")
        make: Callable[..., Protocol] = getattr(load(module), function)
        return make(**self.arguments)

    @property
    def values(self) -> dict[str, int | tuple[int, ...]]:
        return {n: tuple(v) if isinstance(v, list) else v for n, v in self.parameters.items()}

    @property
    def setup(self) -> Setup:
        return Setup(
            replace(PROFILES[self.profile], **self.profile_options),
            BarrierAll(self.barrier_all),
            self.launches,
            self.flags_cleared,
            frozenset(Injected(fault) for fault in self.faults),
        )

    @property
    def rows(self) -> list[str]:
        """The rows of its report."""
        return rows_for(self.launches)

    @property
    def named(self) -> list[str]:
        """The rows that have an expectation of their own; the others have ``rest``."""
        return [*self.proved, *self.violated, *self.vacuous, *self.unsupported]

    @property
    def refused(self) -> bool:
        """Whether no row is decided."""
        return {verdict for verdict, _ in self.expected().values()} == {"UNSUPPORTED"}

    @property
    def lossy(self) -> bool:
        """Whether a set can be lost because flags merge; then only the explorer follows what happens."""
        return "flag-merged" in self.violated.get("flag-range", ())

    def shows(self, code: str) -> bool:
        """Whether a finding ``code`` is expected."""
        return any(code in codes for table in (self.violated, self.warnings) for codes in table.values())

    @property
    def known(self) -> Known:
        return Known(**self.known_bug) if self.known_bug else Known(rows=[], reason="")

    def expected(self) -> dict[str, tuple[str, list[str]]]:
        """Verdict and error codes of every row."""
        table: dict[str, tuple[str, list[str]]] = {}
        if self.rest:
            table |= {name: (self.rest.upper(), []) for name in self.rows}
        table |= {name: ("PROVED", []) for name in self.proved}
        table |= {name: ("VACUOUS", []) for name in self.vacuous}
        table |= {name: ("UNSUPPORTED", []) for name in self.unsupported}
        return {**table, **{name: ("VIOLATED", sorted(c)) for name, c in self.violated.items()}}

    def expected_of(self, engine: str) -> dict[str, tuple[str, list[str]]]:
        """The same as ``engine`` gives it: where a set is lost, some rows are the explorer's alone."""
        table = self.expected()
        if self.lossy and engine != "explore":
            table |= {name: ("UNKNOWN", []) for name in self.rows if follows_runs(name)}
        return table

    def report(self, engine: str = "auto", **options: Any) -> Report:
        return prove_protocols(
            [self.build()],
            self.values,
            self.setup,
            strict_ids=self.strict_ids,
            engine=engine,
            **options,
        )

    def analysis(self) -> Analysis:
        return analyse(unroll(self.build(), self.values, self.setup))


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the hardware or the library, with entries of one protocol that break it and keep it.

    ``shows``: the code of the finding that the faulty ones have and the safe ones have not; or
    ``unsupported`` where the faulty ones are refused.
    """

    rule: str
    source: str
    shows: str
    faulty: list[str]
    safe: list[str]

    def broken_by(self, entry: Entry) -> bool:
        """Whether ``entry`` is expected to show it."""
        return entry.refused if self.shows == "unsupported" else entry.shows(self.shows)


@cache
def load(name: str) -> ModuleType:
    """The module ``protocols/NAME.py``."""
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", HERE / "protocols" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def follows_runs(name: str) -> bool:
    """Whether row ``name`` depends on how runs go on, so that an engine has to follow them."""
    prop = PROPERTIES[name]
    return name != "flag-range" and (prop.method is not Method.STATIC or prop.at_end)


def tables(path: Path, name: str) -> list[dict[str, Any]]:
    """The tables ``name`` of a TOML file."""
    found: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))[name]
    return found


MANIFEST = [
    Entry(**raw) for path in sorted((HERE / "manifest").glob("*.toml")) for raw in tables(path, "entry")
]
RULES = [Rule(**raw) for raw in tables(HERE / "rules.toml", "rule")]
DECIDED = [e for e in MANIFEST if not e.refused and set(e.known.rows) != set(e.rows)]
KNOWN = [
    pytest.param(e, id=e.name, marks=pytest.mark.xfail(strict=True, reason=e.known.reason))
    for e in MANIFEST
    if e.known_bug
]
named = pytest.mark.parametrize("entry", MANIFEST, ids=lambda e: e.name)
decided = pytest.mark.parametrize("entry", DECIDED, ids=lambda e: e.name)


def found(report: Report) -> dict[str, tuple[str, list[str]]]:
    """Verdict and error codes of every row of ``report``."""
    return {
        r.property: (
            r.verdict.name,
            sorted({f.code for f in r.findings if f.severity is Severity.ERROR}),
        )
        for r in report.results
    }


def but(table: dict[str, tuple[str, list[str]]], rows: list[str]) -> dict[str, tuple[str, list[str]]]:
    return {name: row for name, row in table.items() if name not in rows}


# --- the manifest itself ----------------------------------------------------------------------


@named
def test_every_row_is_expected_once(entry: Entry) -> None:
    assert len(set(entry.named)) == len(entry.named)
    assert sorted(entry.expected()) == sorted(entry.rows)
    assert entry.rest in ("", "proved", "vacuous", "unsupported")
    assert all(entry.violated.values())
    assert set(entry.engines) <= set(ENGINES)
    assert set(entry.known.rows) <= set(entry.rows)


def test_names_and_protocols_are_complete() -> None:
    names = [e.name for e in MANIFEST]
    assert len(set(names)) == len(names)
    used = {e.protocol for e in MANIFEST}
    for path in sorted((HERE / "protocols").glob("*.py")):
        functions = [
            f"{path.stem}.{n}"
            for n, f in vars(load(path.stem)).items()
            if callable(f) and getattr(f, "__module__", "") == f"corpus_{path.stem}" and n != "started"
        ]
        assert set(functions) <= used, path.stem


def test_every_property_is_violated_and_proved_by_some_entry() -> None:
    verdicts = {(name, verdict) for e in MANIFEST for name, (verdict, _) in e.expected().items()}
    assert {(name, verdict) for name in PROPERTIES for verdict in ("PROVED", "VIOLATED")} <= verdicts


def test_every_faulty_protocol_has_a_safe_form() -> None:
    faulty = {e.protocol for e in MANIFEST if e.violated}
    safe = {e.protocol for e in DECIDED if not e.violated}
    assert faulty <= safe


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.rule)
def test_every_rule_is_broken_and_kept(rule: Rule) -> None:
    entries = {e.name: e for e in MANIFEST}
    assert rule.faulty
    assert rule.safe
    assert all(rule.broken_by(entries[name]) for name in rule.faulty)
    assert not any(rule.broken_by(entries[name]) for name in rule.safe)
    protocols = {entries[name].protocol for name in rule.faulty}
    assert protocols == {entries[name].protocol for name in rule.safe}


def test_every_code_has_a_rule() -> None:
    shown = {rule.shows for rule in RULES}
    assert shown - {"unsupported"} == set(CATALOGUE)


# --- verdicts ---------------------------------------------------------------------------------


@named
def test_verdicts(entry: Entry) -> None:
    """As ``mc2proof prove`` gives them: both proof engines, compared."""
    report = entry.report()
    assert but(found(report), entry.known.rows) == but(entry.expected_of("auto"), entry.known.rows)
    warnings = {
        r.property: sorted({f.code for f in r.findings if f.severity is Severity.WARNING})
        for r in report.results
    }
    assert {name: codes for name, codes in warnings.items() if codes} == entry.warnings


if KNOWN:

    @pytest.mark.parametrize("entry", KNOWN)
    def test_known_bugs_are_still_there(entry: Entry) -> None:
        report, expected = found(entry.report()), entry.expected()
        assert {n: report[n] for n in entry.known.rows} == {n: expected[n] for n in entry.known.rows}


@pytest.mark.parametrize("engine", ENGINES)
@decided
def test_each_engine_alone(entry: Entry, engine: str) -> None:
    """Every engine that applies gives every verdict; the others say why they do not."""
    report = entry.report(engine)
    if engine in entry.engines:
        assert but(found(report), entry.known.rows) == but(entry.expected_of(engine), entry.known.rows)
    else:
        unknown = [r for r in report.results if r.verdict is Verdict.UNKNOWN]
        assert unknown
        assert all((r.reason or "").startswith(f"{engine}: ") for r in unknown)


@decided
def test_engines_agree_on_every_obligation(entry: Entry) -> None:
    """Also Z3's general form where the special one applies, and the explorer without its reduction."""
    analysis = entry.analysis()
    makers: dict[str, Callable[[], Engine]] = {
        "happens-before": lambda: HappensBefore(analysis.sync),
        "cuts": lambda: Cuts(analysis.sync),
        "times": lambda: Times(analysis.sync),
        "explore": lambda: Explorer(analysis.sync, analysis.obligations, max_states=100_000),
        "everything": lambda: Explorer(analysis.sync, analysis.obligations, max_states=6_000, reduce=False),
    }
    answers = []
    for name, make in makers.items():
        try:
            engine = make()
        except Declined:
            continue
        violated = engine.violated(analysis.obligations)
        lossy = entry.lossy and not isinstance(engine, Explorer)
        answers.append(Answers(name, None, engine.stuck(), engine.completes(), violated, lossy=lossy))
    assert {a.engine for a in answers} >= {"times", "explore"}
    compare(analysis, answers)


@decided
def test_what_was_chosen_alone_is_answered_alike(entry: Entry) -> None:
    analysis = entry.analysis()
    whole = ask("happens-before", analysis, entry.rows, Limits())
    if whole.declined is None:
        for name in entry.rows:
            part = ask("happens-before", analysis, [name], Limits())
            assert part.violated == [i for i in whole.violated if analysis.obligations[i].property == name]


@decided
def test_size(entry: Entry) -> None:
    assert entry.analysis().instance.event_count() == entry.events


@pytest.mark.parametrize("entry", [e for e in DECIDED if e.violated], ids=lambda e: e.name)
def test_counterexamples_replay(entry: Entry) -> None:
    protocol, shown = entry.build(), 0
    for result in entry.report().results:
        codes = {f.code for f in result.findings if f.severity is Severity.ERROR}
        examples = {f.code: f.counterexample for f in result.findings if f.counterexample is not None}
        assert set(examples) == codes
        for code, example in examples.items():
            if example.trace is not None:
                shown += 1
                again = replay(example.trace, [protocol])
                assert (again.reproduced, again.property, again.code) == (True, result.property, code)
    timed = {"deadlock", "overwrite", "read-before-write", "source-overwritten", "write-conflict"}
    assert shown or not timed & {c for codes in entry.violated.values() for c in codes}


@decided
def test_findings_have_a_place(entry: Entry) -> None:
    # a counter that is not matched once for all timings has no single set to point at
    places = [(f.file, f.line) for r in entry.report().results for f in r.findings]
    if entry.engines == ENGINES:
        assert all(file.endswith(".py") and line > 0 for file, line in places)
