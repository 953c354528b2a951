"""The page of `sweep --format html`: self-contained, no scripts, nothing fetched.

A cell's colour is its verdict, its shade the predicted time a tile; the rest is in its tooltip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

if TYPE_CHECKING:
    from mc2proof.checker.sweep import Configuration
    from mc2proof.swept import Sweep

_HUES = {"safe": 140, "violated": 5, "unknown": 45, "refused": 0}
_MARKS = {"safe": "", "violated": "x", "unknown": "?", "refused": "-"}

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>mc2proof sweep: {{ result.subject }}</title>
<style>
body { font-family: system-ui, sans-serif; margin: 2rem; color: #222; }
table { border-collapse: collapse; margin-bottom: 2rem; }
td, th { padding: 0; font-size: 11px; font-weight: normal; text-align: center; min-width: 1.4rem; }
td { height: 1.4rem; border: 1px solid #fff; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
</style>
</head>
<body>
<h1>{{ result.subject }}</h1>
<p>{{ costs }}</p>
<p>{{ scope }}</p>
<p>Green: safe. Red, x: violated. Yellow, ?: unknown. Grey, -: refused. The darker, the more time a tile.</p>
{% for ranks, depths, tiles, cells in maps %}
<table>
<caption>ranks {{ ranks }}: buffer_size down, tile_cnt across</caption>
<tr><th></th>{% for tile in tiles %}<th>{{ tile }}</th>{% endfor %}</tr>
{% for depth in depths %}<tr><th>{{ depth }}</th>
{%- for tile in tiles %}{% set cell = cells[(depth, tile)] %}
{%- if cell %}<td style="background:{{ cell.colour }}" title="{{ cell.title }}">{{ cell.mark }}</td>
{%- else %}<td></td>{% endif %}
{%- endfor %}</tr>
{% endfor %}</table>
{% endfor %}
</body>
</html>"""


def page(result: Sweep) -> str:
    """The page of ``result``."""
    from mc2proof.swept import NOT_ALL, costs_line

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(_TEMPLATE).render(
        result=result,
        costs=f"costs: {costs_line(result.costs, result.costs_made_up)}",
        scope=NOT_ALL,
        maps=_maps(result),
    )


def _maps(result: Sweep) -> list[tuple[object, list[object], list[object], dict[object, object]]]:
    slowest = max((_per_tile(c) or 0 for c in result.configurations), default=0)
    maps: list[tuple[object, list[object], list[object], dict[object, object]]] = []
    for ranks in dict.fromkeys(c.values.get("ranks") for c in result.configurations):
        of_ranks = [c for c in result.configurations if c.values.get("ranks") == ranks]
        depths = list(dict.fromkeys(c.values.get("buffer_size") for c in of_ranks))
        tiles = sorted({c.values.get("tile_cnt", 0) for c in of_ranks})
        cells: dict[object, object] = {(d, t): None for d in depths for t in tiles}
        for c in of_ranks:
            cells[c.values.get("buffer_size"), c.values.get("tile_cnt", 0)] = _cell(c, slowest)
        maps.append((ranks, list[object](depths), list[object](tiles), cells))
    return maps


def _per_tile(c: Configuration) -> float | None:
    tiles = c.values.get("tile_cnt")
    return c.time_us / tiles if c.time_us is not None and tiles else c.time_us


def _cell(c: Configuration, slowest: float) -> dict[str, str]:
    from mc2proof.swept import rule_text, time_text

    share = (_per_tile(c) or 0) / slowest if slowest else 0
    light = 85 - round(45 * share)
    saturation = 0 if c.verdict == "refused" else 60
    facts = [
        ", ".join(f"{name} {value}" for name, value in c.values.items()),
        ": ".join(filter(None, [c.verdict, ", ".join(map(rule_text, c.rules))])),
        "" if c.heap_bytes is None else f"heap {c.heap_bytes:,} B",
        "" if c.backlog is None else f"backlog {c.backlog}",
        time_text(c.time_us),
        f"{time_text(c.steady_us)} a tile, steady" if c.steady_us is not None else "",
        c.note or "",
    ]
    return {
        "colour": f"hsl({_HUES[c.verdict]} {saturation}% {light}%)",
        "mark": _MARKS[c.verdict],
        "title": "; ".join(filter(None, facts)),
    }
