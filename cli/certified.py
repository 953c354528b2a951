"""Certificates: writing one with a proof for all values, and checking one against the sources.

`audit` loads neither Z3 nor the engines. The work is done in `checker.parametric.certify` and
`checker.audit`; here files are read and written, and results become text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mc2proof import checks
from mc2proof.face import Source, check_file, chosen_protocols
from mc2proof.output import writer
from mc2proof.protocol.errors import SourceError
from mc2proof.protocol.program import Protocol
from mc2proof.text import BLANK, Line, Piece, indented, line, table

if TYPE_CHECKING:
    from mc2proof.checker.audit import Audited
    from mc2proof.checker.certificate import CertificateFile
    from mc2proof.checker.parametric.certify import Certified
    from mc2proof.checker.report import Report, RunSetup


def prove_certified(
    protocols: Sequence[Protocol], *arguments: Any, certificate: str | None, second_solver: bool, **named: Any
) -> Report:
    """`prove_for_all`, with a certificate in the file ``certificate`` if that is not None."""
    from mc2proof.checker.parametric.forall import prove_for_all
    from mc2proof.checker.report import AssumptionNote

    second = None
    if second_solver:
        from mc2proof.checker.parametric.second import second_solver as installed

        second = installed()
    write = None if certificate is None else writer(certificate)
    made: list[Certified] = []
    collected = None if certificate is None else made
    report = prove_for_all(protocols, *arguments, second=second, certified=collected, **named)
    if second is not None:
        note = AssumptionNote("second-solver", second.said())
        report = msgspec.structs.replace(report, assumptions=[*report.assumptions, note])
    if write is None:
        return report
    from mc2proof.checker.certificate import FORMAT, CertificateFile, written

    file = CertificateFile(FORMAT, report.tool.version, [item.certificate for item in made])
    write([line(written(file).decode().rstrip())])
    return report


def read_certificate(path: str) -> CertificateFile:
    """The certificate in file ``path``. Raises SourceError."""
    from mc2proof.checker.certificate import read

    check_file(path)
    try:
        return read(Path(path).read_bytes())
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SourceError(f"{path}: is no certificate: {error}") from error


def audit(
    certificate: Source, protocols: Protocol | Source | Sequence[Protocol | Source] = (), *,
    facts: Source | None = None,
) -> list[Audited]:  # fmt: skip
    """Whether the file ``certificate`` proves what it says of ``protocols`` (or of sources for these).

    Returns what was found of every program in it: its certificate, how many claims each of its properties
    needs, and the ``problems``, of which a `valid` one has none.
    Raises Mc2proofError for bad input.
    """
    from mc2proof.checker.audit import audit as check

    chosen = chosen_protocols(protocols, facts, shaped=False)
    return check(read_certificate(checks.path("certificate", certificate)), chosen)


def render_audit(results: Sequence[Audited]) -> list[Line]:
    """What `audit` found, as lines; the last one says whether the certificate is valid."""
    lines: list[Line] = []
    for result in results:
        given = result.certificate
        lines.append(line(Piece(", ".join(given.subjects), "bold")))
        lines += indented(_setting(result))
        rows = [["property", "claims"], *([name, str(n)] for name, n in result.needed.items())]
        lines += [BLANK, *indented(table(rows)), BLANK]
        left = [f"{name}: {reason}" for name, reason in given.left_out.items()]
        lines += [line(Piece("not certified  ", "yellow"), text) for text in left]
        lines += [
            line(Piece("invalid  ", "bold red"), f"{problem.entry}: {problem.text}")
            for problem in result.problems
        ]
        if left or result.problems:
            lines.append(BLANK)
    return [*map(_printable, lines), _summary(results)]


def _printable(pieces: Line) -> Line:
    """A line with what would move the cursor or end the line, escaped: its text is the certificate's."""
    return tuple(
        Piece("".join(c if c.isprintable() else ascii(c)[1:-1] for c in piece.text), piece.style)
        for piece in pieces
    )


def _setting(result: Audited) -> list[Line]:
    given = result.certificate
    values = ", ".join(f"{name} {value}" for name, value in given.names.items() if name not in given.free)
    rows: list[list[str | Piece]] = [
        ["program", given.digest],
        ["for all", ", ".join(given.free)],
        ["assumed", ", ".join(given.assume) or "nothing"],
        ["values", values or "none"],
        ["profile", f"{given.profile}, barrier-all {given.setup.barrier_all or 'vec (not said)'}"],
        ["setup", "; ".join(_setup(given.setup))],
        ["as well", "sums and products stay within their C types (no-overflow)"],
    ]
    return table(rows)


def _setup(setup: RunSetup) -> Iterator[str]:
    """What the run was taken to be, the usual included: a proof of a weaker setting looks like any other."""
    yield (
        "flags cleared before each launch" if setup.flags_cleared else "flags cleared before the first launch"
    )
    yield "every block has a core" if setup.cores is None else f"{setup.cores} cores"
    yield f"ids of {setup.matmul_objects} matmul objects taken"
    yield "ids of users only" if setup.strict_ids else "any id"


def _summary(results: Sequence[Audited]) -> Line:
    problems = sum(len(result.problems) for result in results)
    if not results:
        return line(Piece("invalid", "bold red"), ": it is of no program")
    if problems:
        return line(Piece("invalid", "bold red"), f": {problems} of its entries do not hold")
    properties = sum(len(result.needed) for result in results)
    claims = sum(len(result.certificate.claims) for result in results)
    return line(Piece("valid", "bold green"), f": {properties} properties proved, by {claims} claims")


def is_valid(results: Sequence[Audited]) -> bool:
    """Whether every program of the certificate was found proved."""
    return bool(results) and all(result.valid for result in results)
