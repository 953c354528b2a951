"""Certificates: why properties hold for all values, as data that `audit` checks without a solver.

A polynomial is a list of terms, each its factor and its symbols: ``[[1, ["i#3"]], [-1, ["buffer_size"]]]``.
A certificate names events and rules; what they mean is derived from the program, never read from here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .parametric.polynomial import Poly, number, symbol
from .report import RunSetup

FORMAT = 1

Terms = list[tuple[int, list[str]]]


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event: its site by number, its core, and a turn of every loop around it."""

    site: int
    rank: Terms
    block: Terms
    turns: list[Terms]
    sub: int = 0


class MatchEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The set whose turns are those of the wait less ``shift`` releases it."""

    set: int
    wait: int
    shift: list[Terms]


class BacklogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sets ``distance`` turns back are taken; at most ``bound`` of one flag wait.

    The turns are of loop number ``loop`` of the site; loop 0 is that of launches.
    """

    set: int
    distance: Terms
    bound: Terms
    loop: int


class RankEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every site's phase, and an offset for each of its loops; a turn of the loop adds ``factor``."""

    factor: int
    phase: dict[int, int]
    offset: dict[int, tuple[int, ...]]


class ClaimEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proof of a claim: ``way`` which of its forms, ``events`` besides its own, and what it ``uses``.

    A use names a condition: ["rule", 0, 3, "program order"] between two events, ["given", 2] and
    ["denied", 0] of the claim, ["domain", 1] and ["product", 0] of parameters, ["atom", name, 0],
    ["lemma", one, other, 2] of two remainders.
    """

    key: str
    title: str
    way: int
    events: list[Place]
    uses: list[list[str | int]]


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One program's: what it was proved of, and the proofs.

    ``left_out``: PROVED rows that it lacks, and why.
    """

    subjects: list[str]
    digest: str
    free: list[str]
    assume: list[str]
    values: dict[str, int]
    names: dict[str, str]
    profile: str
    setup: RunSetup
    properties: list[str]
    matches: list[MatchEntry]
    suppliers: dict[str, Place | None]
    backlogs: list[BacklogEntry]
    highs: dict[str, Terms]
    ranks: RankEntry | None
    claims: list[ClaimEntry]
    left_out: dict[str, str] = {}


class CertificateFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is written: a certificate for every program."""

    format: int
    version: str
    programs: list[Certificate]


def terms(poly: Poly) -> Terms:
    """``poly`` as data."""
    return [(factor, list(monomial)) for monomial, factor in poly.terms]


def poly(data: Iterable[tuple[int, list[str]]]) -> Poly:
    """Data as a polynomial."""
    total = number(0)
    for factor, names in data:
        product = number(factor)
        for name in names:
            product = product * symbol(name)
        total = total + product
    return total


def written(file: CertificateFile) -> bytes:
    """``file`` as JSON."""
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def read(data: bytes) -> CertificateFile:
    """A certificate from JSON. Raises ValueError for what is none."""
    file = msgspec.json.decode(data, type=CertificateFile)
    if file.format != FORMAT:
        raise ValueError(f"its format is {file.format}, this version reads {FORMAT}")
    return file
