"""The text of `mc2proof plan`: what a shape gives, what is wrong there, and how far it may grow."""

from __future__ import annotations

from mc2proof.checker.growth import Limit, Reach
from mc2proof.checker.plan import Derived, Heap, Plan, PlanFinding
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, size_text, table, with_places

STYLES = {"error": "bold red", "warning": "yellow"}


def render_plan(plan: Plan) -> list[Line]:
    """``plan`` as lines, the largest safe values last."""
    sections = (
        ("parameters", table([_parameter(p) for p in plan.parameters])),
        ("heap of a rank", table(_heap(plan.heap))),
        ("findings at this shape", _findings(plan)),
        (_limits_title(plan.reach), table([_limit(limit) for limit in plan.limits])),
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
    return line("largest safe: ", ", ".join(f"{r.parameter} {_largest(r).text}" for r in plan.reach))


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
    size = "" if heap.size is None else f", of {heap.size:,} B"
    aligned = "" if heap.alignment is None else f", aligned to {heap.alignment} B"
    rows.append(["in use", f"{heap.used:,} B", f"as the host lays it out{size}{aligned}"])
    if heap.addressed is None:
        return [*rows, ["addressed", "not known", "the shape is not judged"]]
    more = heap.addressed - heap.used
    differs = "" if more == 0 else f": {abs(more):,} B {'more' if more > 0 else 'less'} than is laid out"
    return [*rows, ["addressed", f"{heap.addressed:,} B", f"by the kernel itself{differs}"]]


def _findings(plan: Plan) -> list[Line]:
    findings = plan.findings
    cells = table([[Piece(f.severity, STYLES[f.severity]), f.property, f.code, f.message] for f in findings])
    places = [_place(f) for f in findings]
    lines = with_places(list(zip(cells, places, strict=True)))
    if plan.judged != "all":  # the first of what is undecided is about the shape itself
        return [*lines, line(Piece(plan.undecided[0], "yellow"))]
    return lines or [line("none")]


def _place(finding: PlanFinding) -> str:
    return f"{finding.file}:{finding.line}" if finding.line else finding.file


def _limits_title(reaches: list[Reach]) -> str:
    follow = [f"{', '.join(r.follows)} following {r.parameter}" for r in reaches if r.follows]
    return "; ".join(["limits, everything else as planned", *follow])


def _limit(limit: Limit) -> list[str | Piece]:
    code = limit.code if limit.severity == "error" else f"{limit.code} (warning)"
    return [f"{limit.parameter} {limit.condition}", Piece(code, STYLES[limit.severity]), limit.reason]


def _reach(reach: Reach) -> list[str | Piece]:
    reason = f"bound by {', '.join(reach.bound_by)}" if reach.bound_by else reach.unknown or ""
    if reach.judged:
        reason += f"; judged {_ranges(reach.judged)}"
    return [f"largest safe {reach.parameter}", _largest(reach), reason]


def _largest(reach: Reach) -> Piece:
    if reach.largest is None:
        none = bool(reach.bound_by)
        return Piece("none of those judged" if none else "not known", "bold red" if none else "yellow")
    return Piece(str(reach.largest), "bold green")


def _ranges(values: list[int]) -> str:
    """``1-20, 32, 64``."""
    parts: list[list[int]] = []
    for value in values:
        if parts and parts[-1][-1] == value - 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
