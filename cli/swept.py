"""From the options of `sweep` to its grid, and its result in words, JSON, CSV and HTML.

Used by `commands`. Ranges are ``1..16``, ``1..64:4`` (every fourth) and lists of these.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mc2proof.checker.cell_rules import Rule
from mc2proof.checker.costs import MADE_UP, Costs
from mc2proof.checker.sweep import Configuration
from mc2proof.protocol.errors import ParameterError
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, size_text, table

SWEEP_SCHEMA_VERSION = 1
AXES = ("ranks", "buffer_size", "tile_cnt")
MOST = 100_000
"""Configurations of one sweep."""
STYLES = {"safe": "bold green", "violated": "bold red", "unknown": "yellow", "refused": "yellow"}
NOT_ALL = (
    "counting, flags and deadlock are judged first, memory only where they are fine: the rules named are "
    "the first that fail; prove tells all of one configuration"
)
_RANGE = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9})(?::([0-9]{1,9}))?)?")


class Sweep(msgspec.Struct, frozen=True):
    """Everything that `mc2proof sweep` says; times in microseconds."""

    subject: str
    digest: str
    profile: str
    shape: list[int] | None
    costs: dict[str, float]
    costs_made_up: bool
    axes: dict[str, list[int]]
    configurations: list[Configuration]
    schema_version: int = SWEEP_SCHEMA_VERSION

    def to_json(self) -> str:
        """The result in its published format."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        ordered = {"schema_version": plain.pop("schema_version"), **plain}
        return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode()


def parse_range(option: str, text: str) -> list[int]:
    """The values of ``text``, ascending. Raises ParameterError."""
    values: set[int] = set()
    for item in text.split(","):
        found = _RANGE.fullmatch(item.strip())
        first, last, step = (None if g is None else int(g) for g in found.groups()) if found else (None,) * 3
        if first is None or step == 0 or (last is not None and last < first):
            raise ParameterError(option, None, f"{text[:60]!r} is not of the form 4, 2,4,8, 1..16 or 1..64:4")
        span = range(first, (first if last is None else last) + 1, step or 1)
        if len(span) > MOST:
            raise ParameterError(option, None, f"{text[:60]!r} has more than {MOST} values")
        values.update(span)
    return sorted(values)


def grid_of(axes: Mapping[str, Sequence[int]], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every configuration, in the order of the axes. Raises ParameterError where there are too many."""
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST:
        raise ParameterError("sweep", None, f"{count} configurations: at most {MOST} at a time")
    return [{**dict(zip(axes, chosen, strict=True)), **fixed} for chosen in itertools.product(*axes.values())]


def costs_line(costs: Mapping[str, float], made_up: bool) -> str:
    """The costs in one line, with where they are from."""
    return ", ".join(f"{name} {value:g}" for name, value in costs.items()) + (
        f"; {MADE_UP}" if made_up else ""
    )


# --- text -------------------------------------------------------------------------------------


def render_sweep(result: Sweep) -> list[Line]:
    """A line for tiles that share a verdict, below what is the same for all."""
    rows: list[list[str | Piece]] = [
        ["ranks", "depth", "tiles", "verdict", "first rules that fail", "heap", "backlog", "time",
         "a tile, steady"],
    ]  # fmt: skip
    for found in _runs(result.configurations):
        rows.append(_row(found))
    notes = list(dict.fromkeys(c.note for c in result.configurations if c.note))
    lines = [line(Piece(result.subject, "bold")), *indented([line("costs: ", _costs(result)), line(NOT_ALL)])]
    lines += [BLANK, heading(f"{len(result.configurations)} configurations"), *indented(table(rows))]
    if notes:
        lines += [BLANK, heading("not known"), *indented([line(note) for note in notes[:8]])]
        lines += indented([line(f"and {len(notes) - 8} more (--format json)")]) if len(notes) > 8 else []
    return [*lines, BLANK, sweep_summary(result)]


def _costs(result: Sweep) -> str:
    return costs_line(result.costs, result.costs_made_up)


def sweep_summary(result: Sweep) -> Line:
    """How many configurations have which verdict."""
    counts = {name: sum(c.verdict == name for c in result.configurations) for name in STYLES}
    return line(", ".join(f"{count} {name}" for name, count in counts.items() if count))


def _runs(configurations: Iterable[Configuration]) -> list[list[Configuration]]:
    """Neighbours that differ in tiles only and share verdict and rules."""
    runs: list[list[Configuration]] = []
    for c in configurations:
        if runs and _kind(runs[-1][-1]) == _kind(c):
            runs[-1].append(c)
        else:
            runs.append([c])
    return runs


def _kind(c: Configuration) -> tuple[object, ...]:
    others = tuple((name, value) for name, value in c.values.items() if name != "tile_cnt")
    return (others, c.verdict, frozenset(c.rules), None if c.verdict == "safe" else c.note)


def _row(run: Sequence[Configuration]) -> list[str | Piece]:
    first, last = run[0], run[-1]
    tiles = [str(c.values["tile_cnt"]) for c in (first, last) if "tile_cnt" in c.values]
    return [
        str(first.values.get("ranks", "")),
        str(first.values.get("buffer_size", "")),
        "-".join(dict.fromkeys(tiles)),
        Piece(first.verdict, STYLES[first.verdict]),
        ", ".join(map(rule_text, first.rules)),
        "" if last.heap_bytes is None else size_text(last.heap_bytes),
        "" if last.backlog is None else str(max(c.backlog or 0 for c in run)),
        _between(first.time_us, last.time_us),
        time_text(first.steady_us),
    ]


def rule_text(rule: Rule) -> str:
    """The code of a rule, or its property."""
    return rule.code or rule.property


def time_text(time: float | None) -> str:
    """``841.7 us``, nothing where it is not known."""
    return "" if time is None else f"{time:,.1f} us"


def _between(a: float | None, b: float | None) -> str:
    return time_text(a) if a == b else f"{'?' if a is None else f'{a:,.1f}'}-{time_text(b) or '?'}"


# --- other formats ----------------------------------------------------------------------------


_MEASURES = ("heap_bytes", "backlog", "time_us", "steady_us", "note")


def sweep_csv(result: Sweep) -> list[Line]:
    """A line for each configuration."""
    names = list(dict.fromkeys(name for c in result.configurations for name in c.values))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [*names, "verdict", "property", "code", "heap_bytes", "backlog", "time_us", "steady_us", "note"]
    )
    for c in result.configurations:
        rule = c.rules[0] if c.rules else Rule("", "")
        writer.writerow(
            [*(c.values.get(name, "") for name in names), c.verdict, rule.property, rule.code,
             *("" if v is None else v for v in (getattr(c, name) for name in _MEASURES))]
        )  # fmt: skip
    return [line(text) for text in out.getvalue().split("\n")[:-1]]


def sweep_html(result: Sweep) -> list[Line]:
    """A page of its own: for each number of ranks a map of depths and tiles, its shade the time a tile."""
    from mc2proof.heat_map import page

    return [line(text) for text in page(result).split("\n")]


def made(
    subject: str, digest: str, profile: str, shape: Sequence[int] | None, costs: Costs, made_up: bool,
    axes: Mapping[str, Sequence[int]], found: Sequence[Configuration],
) -> Sweep:  # fmt: skip
    """The result in its published form."""
    return Sweep(
        subject, digest, profile, None if shape is None else list(shape), costs.numbers(), made_up,
        {name: list(values) for name, values in axes.items()}, list(found),
    )  # fmt: skip
