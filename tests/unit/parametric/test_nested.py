"""Protocols whose flags, puts and reads stand in a loop within the loop over tiles, for all values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import CertificateFile
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Report, Severity
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

from .nested import chunks, handshakes, peers

Make = Callable[..., tuple[Report, Certified]]
FileOf = Callable[[Certified], CertificateFile]

RIGHT: Mapping[str, tuple[Protocol, tuple[str, ...]]] = {
    "peers": (peers(), ("buffer_size",)),
    "quiets behind": (peers(quiet="behind"), ("buffer_size",)),
    "chunks": (chunks(), ("buffer_size", "chunks")),
    "handshakes": (handshakes(), ("chunks",)),
    "lagging": (handshakes(slots=2), ("chunks",)),
}
"""Protocols that are right, and what is a symbol besides ranks and tiles."""


def verdicts(report: Report) -> dict[str, str]:
    return {row.property: row.verdict.value for row in report.results}


def assumed(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name} <= 8" for name in names)


def errors_at(protocol: Protocol, values: Mapping[str, int]) -> set[str]:
    judgement = judge(unroll(protocol, values, Setup()))
    assert judgement.open is None
    return {found.property for found in judgement.found if found.severity is Severity.ERROR}


@pytest.mark.parametrize("name", RIGHT)
def test_loops_in_loops(name: str, certified: Make, file_of: FileOf) -> None:
    protocol, more = RIGHT[name]
    report, made = certified(protocol, assumed(more), free=("ranks", "tile_cnt", *more))
    assert verdicts(report) == dict.fromkeys(rows_for(1), "PROVED")
    assert made.certificate.left_out == {}
    (found,) = audit(file_of(made), [protocol])
    assert found.problems == []
    assert list(found.needed) == list(rows_for(1))


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_at_small_values(name: str) -> None:
    protocol, more = RIGHT[name]
    for ranks, tiles, *sizes in itertools.product((2, 3), (1, 2, 5), *[(1, 2, 3)] * len(more)):
        values = {"ranks": ranks, "blocks": ranks, "tile_cnt": tiles, **dict(zip(more, sizes, strict=True))}
        assert errors_at(protocol, values) == set()


WRONG: Mapping[str, tuple[Protocol, tuple[str, ...], set[str]]] = {
    "no quiet": (
        peers(quiet="missing"),
        ("buffer_size",),
        {"no-read-before-write", "completion", "no-write-conflict"},
    ),
    "early": (chunks(early=True), ("buffer_size", "chunks"), {"no-read-before-write"}),
    "not released": (handshakes(released=False), ("chunks",), {"no-overwrite-before-read", "flag-range"}),
    "released too late": (handshakes(lag=2), ("chunks",), {"no-overwrite-before-read"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_loops_in_loops(name: str) -> None:
    protocol, more, broken = WRONG[name]
    report = prove_for_all([protocol], {}, ("ranks", "tile_cnt", *more), assumed(more))
    assert {row for row, verdict in verdicts(report).items() if verdict == "VIOLATED"} == broken
    assert {verdicts(report)[row] for row in ("deadlock-freedom", "flag-balance", "layout")} == {"PROVED"}
