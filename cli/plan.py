"""The text of `mc2proof plan`: what a shape gives, what is wrong there, and how far it may grow."""

from __future__ import annotations

from mc2proof.checker.plan import Derived, Heap, Limit, Plan, PlanFinding, Reach
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places

STYLES = {"error": "bold red", "warning": "yellow"}
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def render_plan(plan: Plan) -> list[Line]:
    """``plan`` as lines, the largest safe values last."""
    sections = (
        ("parameters", table([_parameter(p) for p in plan.parameters])),
        ("heap of a rank", table(_heap(plan.heap))),
        ("findings at this shape", _findings(plan.findings) or [line("none")]),
        ("limits, everything else as planned", table([_limit(limit) for limit in plan.limits])),
        ("not known", [line(text) for text in plan.undecided]),
        ("warnings", [line(Piece(f"{a.code}: {a.text}", "yellow")) for a in plan.assumptions if a.warning]),
        ("assumptions", table([[a.code, a.text] for a in plan.assumptions if not a.warning])),
    )
    lines = [line(Piece(plan.subject, "bold")), *indented(table(_head(plan))), BLANK]
    for title, rows in sections:
        if rows:
            lines += [heading(title), *indented(rows), BLANK]
    return [*lines, *table([_reach(reach) for reach in plan.reach])]


def plan_summary(plan: Plan) -> Line:
    """The largest safe values in one line."""
    shown = (f"{r.parameter} {'none' if r.largest is None else r.largest}" for r in plan.reach)
    return line("largest safe: ", ", ".join(shown))


def size_text(count: int) -> str:
    """``4 MiB`` where that is exact, else ``17,301,504 B``."""
    for unit, name in _UNITS:
        if count and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count:,} B"


def _head(plan: Plan) -> list[list[str]]:
    m, k, n = plan.shape
    named = ", ".join(f"{name} {value}" for name, value in plan.named.items())
    return [
        ["shape", f"M {m}, K {k}, N {n} on {plan.ranks} ranks"],
        ["host rules", f"{plan.facts}, of {plan.source}"],
        ["host values", named],
        ["dropped", f"{plan.dropped_rows} of {m} rows for each rank"],
        ["profile", plan.profile],
    ]


def _parameter(parameter: Derived) -> list[str]:
    return [parameter.name, str(parameter.value), parameter.meaning]


def _heap(heap: Heap) -> list[list[str]]:
    rows = []
    for area in heap.areas:
        pieces = f"{area.count} x {size_text(area.bytes)}" if area.count != 1 else size_text(area.bytes)
        rows.append([area.name, pieces, f"{area.count * area.bytes:,} B"])
    size = "" if heap.size is None else f"of {heap.size:,} B"
    aligned = "" if heap.alignment is None else f", aligned to {heap.alignment} B"
    return [*rows, ["in use", f"{heap.used:,} B", f"{size}{aligned}".strip(", ")]]


def _findings(findings: list[PlanFinding]) -> list[Line]:
    cells = table([[Piece(f.severity, STYLES[f.severity]), f.property, f.code, f.message] for f in findings])
    places = [f"{f.file}:{f.line}" if f.file else "" for f in findings]
    return with_places(list(zip(cells, places, strict=True)))


def _limit(limit: Limit) -> list[str | Piece]:
    code = limit.code if limit.severity == "error" else f"{limit.code} (warning)"
    return [f"{limit.parameter} {limit.condition}", Piece(code, STYLES[limit.severity]), limit.reason]


def _reach(reach: Reach) -> list[str | Piece]:
    title = f"largest safe {reach.parameter}"
    if reach.largest is None and not reach.bound_by:
        return [title, Piece("not known", "yellow")]
    if reach.largest is None:
        return [title, Piece(f"none of 1-{reach.tried}", "bold red"), f"bound by {', '.join(reach.bound_by)}"]
    if not reach.bound_by:
        return [title, Piece(f">= {reach.largest}", "bold green"), "larger ones were not tried"]
    return [title, Piece(str(reach.largest), "bold green"), f"bound by {', '.join(reach.bound_by)}"]
