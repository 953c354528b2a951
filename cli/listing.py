"""What `mc2proof list` prints: the names that other commands take, as text or JSON."""

from __future__ import annotations

import json

from mc2proof.checker.properties import PROPERTIES
from mc2proof.checker.report import SCHEMA_VERSION
from mc2proof.protocol.builtin import BUILTIN
from mc2proof.protocol.profile import PROFILES
from mc2proof.text import BLANK, Line, heading, indented, line, table


def list_json() -> list[Line]:
    """Protocols, profiles and properties as JSON, in the order in which reports print them."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "protocols": [
            {"name": name, "meaning": meaning, "parameters": parameters}
            for name, meaning, parameters in _protocols()
        ],
        "profiles": [{"name": p.name, "title": p.title, "source": p.source} for p in PROFILES.values()],
        "properties": [{"name": p.name, "question": p.question} for p in PROPERTIES.values()],
    }
    return [line(json.dumps(content, indent=2))]


def list_text() -> list[Line]:
    """The same as text."""
    protocols = [
        [name, meaning, ", ".join(f"{n} {v}" for n, v in parameters.items())]
        for name, meaning, parameters in _protocols()
    ]
    sections = (
        ("protocols", protocols),
        ("profiles", [[p.name, p.title, p.source] for p in PROFILES.values()]),
        ("properties", [[p.name, p.question] for p in PROPERTIES.values()]),
    )
    lines: list[Line] = []
    for title, rows in sections:
        lines += [heading(title), *indented(table(rows)), BLANK]
    return lines[:-1]


def _protocols() -> list[tuple[str, str, dict[str, int]]]:
    """Name, first line of the documentation, and default parameters of each shipped protocol."""
    found = []
    for name, make in BUILTIN.items():
        meaning = (make.__doc__ or "").strip().splitlines()[0]
        found.append(
            (name, meaning, {p.name: p.default for p in make().parameters if isinstance(p.default, int)})
        )
    return found
