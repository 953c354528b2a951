"""The text of a report: what `mc2proof prove` and `mc2proof replay` print.

One table of verdicts a group of equal subjects, then what explains them. The layout is part of
what users rely on: tests hold snapshots of it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mc2proof.checker.report import (
    Counterexample,
    Finding,
    Range,
    RegionUse,
    Report,
    Result,
    RunSetup,
    Severity,
    Step,
    Verdict,
)
from mc2proof.protocol.replay import Replay, ShownStep
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places

STYLES = {
    Verdict.VIOLATED: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.VACUOUS: "cyan",
    Verdict.PROVED: "green",
}
_SENTENCE_WITH_PLACE = re.compile(r"(?P<text>.*\S)  \((?P<place>.+:\d+)\)")
_ALWAYS_SHOWN = ("ranks", "blocks", "buffer_size", "tile_cnt")
ASK = "mc2proof explain CODE tells more about a finding"
"""Stands before the last line of a report that has findings."""


def render(report: Report, *, sources: Sequence[str] = ()) -> list[Line]:
    """``report`` as lines. ``sources``: the arguments that name them again, for the replay command."""
    groups = _groups(report.results)
    lines = [] if len(groups) == 1 else [*_setting(report), BLANK]
    for subjects, results in groups.items():
        lines.append(_subjects(subjects))
        if len(groups) == 1:
            lines += indented(_setting(report))
        lines += [BLANK, *indented(_verdicts(results)), BLANK]
        for result in results:
            if result.verdict is Verdict.VIOLATED:
                lines += [*_explanation(result, report, sources), BLANK]
    lines += _section("warnings", _warnings(report))
    lines += _section("assumptions", _assumptions(report))
    if any(result.findings for result in report.results):
        lines += [line(Piece(ASK, "dim")), BLANK]
    lines.append(summary(report))
    return lines


def _section(title: str, rows: Sequence[Line]) -> list[Line]:
    return [heading(title), *indented(rows), BLANK] if rows else []


def summary(report: Report) -> Line:
    """``10 proved, 0 violated``: the last line of every report."""
    count = Counter(result.verdict for result in report.results)
    pieces = [
        Piece(f"{count[verdict]} {verdict.value.lower()}", STYLES[verdict] if count[verdict] else "")
        for verdict in (Verdict.PROVED, Verdict.VIOLATED, *Verdict)
        if count[verdict] or verdict in (Verdict.PROVED, Verdict.VIOLATED)
    ]
    unique = list(dict.fromkeys(pieces))
    joined: list[str | Piece] = [unique[0]]
    for piece in unique[1:]:
        joined += [", ", piece]
    return line(*joined)


def parameters_text(parameters: Mapping[str, int | list[int] | Range]) -> str:
    """``ranks 4, blocks >= 4, cnt 1 2 3``."""
    return ", ".join(_parameter_text(name, value) for name, value in parameters.items())


def _parameter_text(name: str, value: int | list[int] | Range) -> str:
    match value:
        case int():
            return f"{name} {value}"
        case list():
            return f"{name} {' '.join(map(str, value))}"
        case Range(equals=str(text)):
            return f"{name} = {text}"
    return f"{name} >= {value.min}" + (f" and <= {value.max}" if value.max is not None else "")


def setup_text(setup: RunSetup) -> str:
    """``launches 2, flags cleared``: what is not as usual. What barriers are is an assumption's text."""
    said = {
        f"launches {setup.launches}": setup.launches != 1,
        "flags cleared": setup.flags_cleared,
        "flags merge": setup.flags_merge,
        "strict ids": setup.strict_ids,
        f"cores {setup.cores}": setup.cores is not None,
        f"matmul objects {setup.matmul_objects}": setup.matmul_objects != 0,
        f"fault {' '.join(setup.faults)}": bool(setup.faults),
    }
    return ", ".join(text for text, holds in said.items() if holds)


def render_replay(replay: Replay) -> list[Line]:
    """What came of replaying a trace."""
    reproduced = replay.reproduced
    word = Piece("REPRODUCED", "bold red") if reproduced else Piece("NOT REPRODUCED", "green")
    lines = [
        line(Piece(replay.protocol.name, "bold"), f" at {parameters_text(replay.parameters)}"),
        BLANK,
        *indented(steps_of(replay.steps)),
        BLANK,
        line(word, f"  {replay.property} ({replay.code})"),
    ]
    if reproduced:
        lines += indented(with_places(sentences(replay.conflict)))
    return lines


# --- parts of a report ------------------------------------------------------------------------


def _groups(results: Iterable[Result]) -> dict[tuple[str, ...], list[Result]]:
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(tuple(result.subjects), []).append(result)
    return groups


def _subjects(subjects: Sequence[str]) -> Line:
    names = Piece(", ".join(dict.fromkeys(subjects)), "bold")
    return line(names, f" ({len(subjects)} equal programs)") if len(subjects) > 1 else line(names)


def _setting(report: Report) -> list[Line]:
    rows = [["parameters", parameters_text(report.parameters)], ["profile", report.profile]]
    chosen = setup_text(report.setup)
    return table([*rows, ["setup", chosen]] if chosen else rows)


def _verdicts(results: Sequence[Result]) -> list[Line]:
    rows: list[list[str | Piece]] = [
        [Piece(title, "bold") for title in ("property", "verdict", "engines", "note")]
    ]
    for result in results:
        verdict = Piece(result.verdict.value, STYLES[result.verdict])
        rows.append([result.property, verdict, ", ".join(result.engines) or "-", _note(result)])
    return table(rows)


def _note(result: Result) -> str:
    parts = [result.reason] if result.reason else []
    if result.holds_when:
        parts.append(f"holds when {result.holds_when}")
    if result.scope == "all" and result.verdict is Verdict.PROVED:
        parts.append("for all values")
    errors = [f.code for f in result.findings if f.severity is Severity.ERROR]
    parts += dict.fromkeys(errors)
    warnings = len(result.findings) - len(errors)
    if warnings:
        parts.append(f"{warnings} warning{'s' if warnings > 1 else ''}")
    parts += [f"{use.region} needs {use.needed:,}{_of_size(use)} bytes" for use in result.memory]
    return "; ".join(parts)


def _of_size(use: RegionUse) -> str:
    return "" if use.bytes is None else f" of {use.bytes:,}"


def _explanation(result: Result, report: Report, sources: Sequence[str]) -> list[Line]:
    """Everything about one VIOLATED row; findings with the same code share a counterexample."""
    by_code: dict[str, list[Finding]] = {}
    for finding in result.findings:
        if finding.severity is Severity.ERROR:
            by_code.setdefault(finding.code, []).append(finding)
    lines: list[Line] = []
    for findings in by_code.values():
        example = next((f.counterexample for f in findings if f.counterexample), None)
        title = [Piece("VIOLATED", STYLES[Verdict.VIOLATED]), Piece(f"  {result.property}", "bold")]
        if example:
            smallest = parameters_text(_telling(example.parameters, report.parameters))
            smallest += f", launches {example.launches}" if example.launches > 1 else ""
            title.append(Piece(f"   smallest failing: {smallest}"))
        lines += [BLANK] if lines else []
        lines += [tuple(title), *indented(_findings(findings, example, sources))]
    return lines


def _telling(
    smallest: Mapping[str, int | list[int]], asked: Mapping[str, int | list[int] | Range]
) -> dict[str, int | list[int] | Range]:
    """The parameters of a counterexample without the sizes that it shares with the run."""
    return {n: v for n, v in smallest.items() if n in _ALWAYS_SHOWN or asked.get(n) != v}


def _findings(
    findings: Sequence[Finding], example: Counterexample | None, sources: Sequence[str]
) -> list[Line]:
    found = [(line(f.message), _place(f.file, f.line)) for f in findings]
    told = sentences(example.conflict) if example else []
    lines = with_places(told or found)
    if example is not None and example.steps:
        lines += [heading("steps"), *indented(steps_of(example.steps))]
    closing = [["overall", f.message] for f in findings] if told else []
    closing += [["rule", doc] for doc in dict.fromkeys(f.source_doc for f in findings) if doc]
    if example is not None and example.trace:
        closing.append(["replay", shlex.join(["mc2proof", "replay", example.trace, *sources])])
    return lines + table([[Piece(label, "bold"), text] for label, text in closing])


def sentences(sentences: Iterable[str]) -> list[tuple[Line, str]]:
    """Sentences of a conflict, with the place that one may end with apart."""
    rows = []
    for sentence in sentences:
        match = _SENTENCE_WITH_PLACE.fullmatch(sentence)
        rows.append((line(match["text"]), match["place"]) if match else (line(sentence), ""))
    return rows


def steps_of(steps: Sequence[Step | ShownStep]) -> list[Line]:
    """The steps of a timing, numbered, with their places."""
    digits = len(str(len(steps)))
    cells = table([[f"{i:{digits}}", s.core, s.pipe, s.operation] for i, s in enumerate(steps, 1)])
    return with_places([(cell, _place(s.file, s.line)) for cell, s in zip(cells, steps, strict=True)])


def _warnings(report: Report) -> list[Line]:
    """Assumptions that were nobody's choice, and findings that do not decide a verdict."""
    assumed = [(f"{a.code}: {a.text}", "") for a in report.assumptions if a.warning]
    found = [
        (f"{finding.code}: {finding.message}", _place(finding.file, finding.line))
        for result in report.results
        for finding in result.findings
        if finding.severity is Severity.WARNING
    ]
    return with_places(
        [(line(Piece(text, "yellow")), place) for text, place in dict.fromkeys(assumed + found)]
    )


def _assumptions(report: Report) -> list[Line]:
    return table([[a.code, a.text] for a in report.assumptions if not a.warning])


def _place(file: str, number: int) -> str:
    return f"{file}:{number}" if file else ""
