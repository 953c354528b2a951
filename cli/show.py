"""The text of `mc2proof show`: what was read, statement by statement, so that a reader can check it.

Expressions are printed as C, with the parameters as symbols; each statement has its place in the
source at the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mc2proof.protocol.expr import Const
from mc2proof.protocol.program import (
    Block,
    Compute,
    For,
    Get,
    If,
    Parameter,
    Protocol,
    Put,
    PutSignal,
    Read,
    Region,
    Role,
    Span,
    Statement,
    While,
    Window,
    Write,
)
from mc2proof.protocol.statement_text import statement_text
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places

Row = tuple[int, str, Span | None]
"""Depth of indentation, text, place."""


def show(protocols: Sequence[Protocol]) -> list[Line]:
    """What ``protocols`` are, equal ones once."""
    groups: dict[str, list[Protocol]] = {}
    for protocol in protocols:
        groups.setdefault(protocol.digest(), []).append(protocol)
    lines: list[Line] = []
    for digest, equal in groups.items():
        lines += [*_protocol(equal, digest), BLANK]
    return lines[:-1]


def _protocol(equal: Sequence[Protocol], digest: str) -> list[Line]:
    protocol = equal[0]
    names = dict.fromkeys(name for p in equal for name in p.subjects or (p.name,))
    about = [["program", digest], ["files", ", ".join(protocol.files)]]
    lines = [heading(", ".join(names)), *indented(table(about))]
    sections = [
        ("parameters", table([_parameter(p) for p in protocol.parameters])),
        ("regions", table([_region(r) for r in protocol.regions])),
        *((_role_title(protocol, role), _program(block)) for role, block in protocol.programs.items()),
        ("assumptions", table([[a.code, a.text] for a in protocol.assumptions])),
    ]
    for title, rows in sections:
        if rows:
            lines += [BLANK, heading(title), *indented(rows)]
    return lines


def _parameter(parameter: Parameter) -> list[str | Piece]:
    high = "" if parameter.high is None else f" .. {parameter.high}"
    domain = f"{parameter.low}{high}" if high else f">= {parameter.low}"
    return [parameter.name, domain, _value(parameter), parameter.meaning]


def _value(parameter: Parameter) -> str | Piece:
    if parameter.default is not None:
        origin = "from facts" if parameter.from_facts else "by default"
        return f"{parameter.default} {origin}"
    if parameter.name == "blocks":
        return "as ranks by default"
    return Piece("no value", "yellow")


def _region(region: Region) -> list[str | Piece]:
    size = "size not known" if region.bytes is None else f"{region.bytes} bytes"
    notes = [region.kind.value]
    if region.alignment is not None:
        notes.append(f"aligned to {region.alignment}")
    if region.covered:
        notes.append("every byte is to be written once")
    return [region.name, size, "; ".join(notes)]


def _role_title(protocol: Protocol, role: Role) -> str:
    count = f", {protocol.vectors_per_cube} a cube core" if role is Role.AIV else ""
    return f"{role.name} ({role.value}{count})"


def _program(block: Block) -> list[Line]:
    rows = [(line("  " * depth + text), span.place if span else "") for depth, text, span in _rows(block, 0)]
    return with_places(rows) or [line("nothing")]


def _rows(block: Block, depth: int) -> Iterator[Row]:
    for statement in block:
        yield depth, statement_text(statement), statement.span
        yield from ((depth + 1, detail, None) for detail in _details(statement))
        match statement:
            case For(body=body) | While(body=body):
                yield from _rows(body, depth + 1)
            case If(then=then, orelse=orelse):
                yield from _rows(then, depth + 1)
                if orelse:
                    yield depth, "else", None
                    yield from _rows(orelse, depth + 1)


def _details(statement: Statement) -> list[str]:
    """What a statement moves, a line each."""
    match statement:
        case Put(target=target, source=source, bytes=size) | Get(target=target, source=source, bytes=size):
            return [f"from  {source}", f"to    {target}", f"bytes {size}"]
        case PutSignal(target=target, source=source, bytes=size, word=word, value=value):
            moved = [f"from  {source}", f"to    {target}", f"bytes {size}"]
            return [*moved, f"then  word at {word} = {value}"]
        case Read(window=window) | Write(window=window):
            return _window("at", window)
        case Compute(reads=reads, writes=writes):
            windows = [("reads", w) for w in reads] + [("writes", w) for w in writes]
            return [detail for label, window in windows for detail in _window(label, window)]
    return []


def _window(label: str, window: Window) -> list[str]:
    details = [f"{label} {window.address}, bytes {window.bytes}"]
    if not (isinstance(window.guard, Const) and window.guard.value):
        details.append(f"  if {window.guard}")
    if window.origin:
        details.append(f"  expects {window.origin}")
    return details
