"""What `mc2proof explain` prints: an entry of the catalogue of findings, or the list of all codes."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping

from mc2proof.checker.catalogue import CATALOGUE, VOCABULARY
from mc2proof.checker.catalogue_entry import Entry, Run
from mc2proof.checker.report import SCHEMA_VERSION
from mc2proof.hints import did_you_mean
from mc2proof.protocol.errors import ParameterError
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table

WIDTH = 100
"""Paragraphs are broken here, whatever the terminal: the text is compared with snapshots."""


def entry_of(code: str) -> Entry:
    """The entry of ``code``. Raises ParameterError with the closest code, or those of a property."""
    if code in CATALOGUE:
        return CATALOGUE[code]
    codes = [entry.code for entry in CATALOGUE.values() if entry.property == code]
    if codes:
        raise ParameterError("code", None, f"{code} is a property; its codes are {', '.join(codes)}")
    near = did_you_mean(code, CATALOGUE)
    raise ParameterError("code", None, f"no code {code!r}{near} (mc2proof explain lists them)")


def explain_text(code: str) -> list[Line]:
    """The entry of ``code`` as text. Raises ParameterError."""
    entry = entry_of(code)
    example = entry.example
    facts = [["property", entry.property], ["severity", _severity(entry)], ["rule", entry.source_doc]]
    return [
        line(Piece(entry.code, "bold"), f"  {entry.title}"),
        *indented(table(facts)),
        BLANK,
        *indented([line(text) for text in textwrap.wrap(entry.text, WIDTH - 2, break_on_hyphens=False)]),
        BLANK,
        *_shown("faulty", example.faulty, example.at, example.in_facts),
        BLANK,
        *_shown("mended", example.mended, example.mended_at, example.in_facts),
        *_names(entry),
    ]


def explain_json(code: str) -> list[Line]:
    """The entry of ``code`` as JSON. Raises ParameterError."""
    entry = entry_of(code)
    example = entry.example
    content = {
        "schema_version": SCHEMA_VERSION,
        **_head(entry),
        "severity_strict_ids": (entry.strict or entry.severity).value,
        "source_doc": entry.source_doc,
        "text": entry.text,
        "language": "TOML" if example.in_facts else "C++",
        "faulty": _run_json(example.faulty, example.at),
        "mended": _run_json(example.mended, example.mended_at),
    }
    return [line(json.dumps(content, indent=2))]


def list_codes_text() -> list[Line]:
    """Every code with its title, by property."""
    lines: list[Line] = []
    for name, entries in _by_property().items():
        rows = [[entry.code, entry.title] for entry in entries]
        lines += [heading(name), *indented(table(rows)), BLANK]
    return lines[:-1]


def list_codes_json() -> list[Line]:
    """The same as JSON."""
    codes = [_head(entry) for entry in CATALOGUE.values()]
    return [line(json.dumps({"schema_version": SCHEMA_VERSION, "codes": codes}, indent=2))]


def _by_property() -> Mapping[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in CATALOGUE.values():
        groups.setdefault(entry.property, []).append(entry)
    return groups


def _head(entry: Entry) -> dict[str, str]:
    return {
        "code": entry.code,
        "property": entry.property,
        "severity": entry.severity.value,
        "title": entry.title,
    }


def _severity(entry: Entry) -> str:
    strict = f", {entry.strict.value} with --strict-ids" if entry.strict is not None else ""
    return entry.severity.value + strict


def _shown(title: str, text: str, run: Run, in_facts: bool) -> list[Line]:
    kind = ", in a facts file" if in_facts else ""
    where = ", ".join(f"{name} {value}" for name, value in run.parameters.items())
    options = "".join(f" {option}" for option in _options(run))
    head = line(Piece(title, "bold"), f"{kind}, at {where}{options}")
    return [head, *indented([line(row) for row in text.splitlines()])]


def _options(run: Run) -> list[str]:
    """The options of `mc2proof prove` that ``run`` asks for."""
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
        for name, value in run.options.items()
    ]


def _run_json(text: str, run: Run) -> dict[str, object]:
    return {"text": text, "parameters": run.parameters, "options": _options(run)}


def _names(entry: Entry) -> list[Line]:
    """What the names in the examples stand for that are neither Ascend C nor SHMEM."""
    if entry.example.in_facts:
        return []
    words = set(re.findall(r"\w+", re.sub(r"//.*", "", entry.example.faulty + entry.example.mended)))
    rows = [[name, meaning] for name, meaning in VOCABULARY.items() if name.partition("(")[0] in words]
    return [BLANK, heading("names"), *indented(table(rows))] if rows else []
