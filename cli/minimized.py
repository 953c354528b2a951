"""The text of `mc2proof minimize`: what each synchronisation is needed for, and what would mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mc2proof.checker.minimize import NEEDED, NOT_NEEDED, Broken, Mend, Minimized, Need
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places

STYLES = {
    NEEDED: "green", NOT_NEEDED: "bold yellow", "open": "yellow",
    "PROVED": "bold green", "VIOLATED": "bold red", "UNKNOWN": "yellow",
}  # fmt: skip


def render_minimized(answer: Minimized) -> list[Line]:
    """``answer`` as lines, the outcome last."""
    singles = [need for need in answer.needs if len(need.numbers) == 1]
    together = [need for need in answer.needs if len(need.numbers) > 1]
    sections = (
        ("violated as it stands", _violations(answer.violated)),
        ("each taken out alone", _alone(answer, singles)),
        ("taken out together", [row for need in together for row in _together(need)]),
        (_sets_title(answer), _sets(answer)),
        ("PROVED with one of", [row for n, mend in enumerate(answer.mends) for row in _mend(n + 1, mend)]),
        ("judged beside the given values", _beside(answer)),
        ("warnings", [line(Piece(f"{a.code}: {a.text}", "yellow")) for a in answer.assumptions if a.warning]),
    )
    lines = [line(Piece(answer.subject, "bold")), *indented(table(_head(answer))), BLANK]
    for title, rows in sections:
        if rows:
            lines += [heading(title), *indented(rows), BLANK]
    return [*lines, minimized_summary(answer)]


def minimized_summary(answer: Minimized) -> Line:
    """The outcome in one line."""
    if answer.verdict == "VIOLATED":
        tried = f"{answer.tried.edits} edits" + (
            f" and {answer.tried.pairs} pairs" * bool(answer.tried.pairs)
        )
        more = f", {answer.tried.pairs_left} pairs are left" if answer.tried.pairs_left else ""
        found = f"{len(answer.mends)} told" if answer.mends else "none"
        return line(f"mends: {found}, of {tried} tried{more}")
    singles = [need.verdict for need in answer.needs if len(need.numbers) == 1]
    counts = [f"{singles.count(v)} {v}" for v in (NEEDED, NOT_NEEDED, "open") if v in singles]
    total = "1 synchronisation" if len(singles) == 1 else f"{len(singles)} synchronisations"
    return line(f"{total}: {', '.join(counts)}" if counts else "no synchronisation", ", at these values")


def _head(answer: Minimized) -> list[list[str | Piece]]:
    return [
        ["program", answer.digest],
        ["values", _values(answer.parameters)],
        ["profile", answer.profile],
        ["as it stands", Piece(answer.verdict, STYLES[answer.verdict])],
    ]


def _violations(broken: Sequence[Broken]) -> list[Line]:
    cells = table([[Piece(b.property, "red"), b.code, b.message] for b in broken])
    return with_places([(row, _place(b.file, b.line)) for row, b in zip(cells, broken, strict=True)])


def _alone(answer: Minimized, needs: Sequence[Need]) -> list[Line]:
    rows: list[list[str | Piece]] = []
    places: list[str] = []
    for need in needs:
        sync = answer.synchronisations[need.numbers[0]]
        called = f" called at {sync.called_from}" if sync.called_from else ""
        rows.append([str(sync.number), sync.role, sync.statement, Piece(need.verdict, STYLES[need.verdict])])
        places.append(_place(sync.file, sync.line) + called)
    heads = with_places(list(zip(table(rows), places, strict=True)))
    return [row for head, need in zip(heads, needs, strict=True) for row in (head, *indented(_why(need), 4))]


def _together(need: Need) -> list[Line]:
    named = " and ".join(map(str, need.numbers)) if len(need.numbers) < 3 else _numbers(need.numbers)
    return [line(f"{named}  ", Piece(need.verdict, STYLES[need.verdict])), *indented(_why(need), 4)]


def _why(need: Need) -> list[Line]:
    """What taking out violates, by property and code; or why that is not known."""
    if need.reason is not None:
        return [line(Piece(need.reason, "dim"))]
    at = f"at {_values(need.at)}" if need.at else ""
    return table([[b.property, b.code, at] for b in need.violates])


def _sets_title(answer: Minimized) -> str:
    return "minimal safe set" if len(answer.safe_sets) == 1 else "minimal safe sets, each enough"


def _sets(answer: Minimized) -> list[Line]:
    rows = [
        line(f"{_numbers(s.kept) or 'none'}", f"  without {_numbers(s.left_out)}" if s.left_out else "  all")
        for s in answer.safe_sets
    ]
    return [*rows, *([line(f"and {answer.safe_sets_left} more")] if answer.safe_sets_left else [])]


def _mend(number: int, mend: Mend) -> list[Line]:
    cells = [line(Piece(change.kind, "bold green"), f" {change.text}") for change in mend.changes]
    rows = with_places([(c, _place(m.file, m.line)) for c, m in zip(cells, mend.changes, strict=True)])
    fails = [line(Piece(f"but not at {_values(changed)}", "yellow")) for changed in mend.fails_at]
    first, others = rows[0], [*rows[1:], *fails]
    return [line(f"{number}  ", *first), *indented(others, 3)]


def _beside(answer: Minimized) -> list[Line]:
    rows = [[_values(b.changed), b.reason or ""] for b in answer.judged]
    return table(rows)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _values(values: Mapping[str, int | list[int]]) -> str:
    shown = {n: v if isinstance(v, int) else ",".join(map(str, v)) for n, v in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _place(file: str, number: int) -> str:
    return f"{file}:{number}" if number else file
