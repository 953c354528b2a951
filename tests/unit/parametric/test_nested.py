"""Protocols whose flags, puts and reads stand in a loop within the loop over tiles, for all values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import CertificateFile, read, written
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
Data = dict[str, Any]

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


@pytest.fixture(scope="module")
def lagging(certified: Make) -> Certified:
    """A certificate of flags in inner loops, whose sets wait for two tiles."""
    protocol, more = RIGHT["lagging"]
    rows = ("deadlock-freedom", "flag-range")
    return certified(protocol, assumed(more), rows, free=("ranks", "tile_cnt", *more))[1]


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


def test_one_flag_for_all_chunks_of_a_tile(certified: Make, file_of: FileOf) -> None:
    protocol, free = handshakes(one_flag=True), ("ranks", "tile_cnt", "chunks")
    (row,) = prove_for_all([protocol], {}, free, properties=["flag-range"]).results
    assert (row.verdict.value, row.holds_when) == ("VIOLATED", "2 * chunks <= 15")
    report, made = certified(protocol, (row.holds_when,), ("flag-range", "deadlock-freedom"), free=free)
    assert set(verdicts(report).values()) == {"PROVED"}
    assert made.certificate.left_out == {}
    (found,) = audit(file_of(made), [protocol])
    assert found.problems == []
    values = {"ranks": 2, "blocks": 2, "tile_cnt": 4}
    assert errors_at(protocol, {**values, "chunks": 7}) == set()
    assert errors_at(protocol, {**values, "chunks": 16}) == {"flag-range"}


def _swapped(plain: Data) -> None:
    """Two ranks of the inner loop that ends with the set."""
    offset = plain["ranks"]["offset"]
    deep = [site for site in offset if len(offset[site]) > 1]
    a, b = next((a, b) for a in deep for b in deep if offset[a][:-1] == offset[b][:-1] and a != b)
    offset[a], offset[b] = offset[b], offset[a]


def _flat(plain: Data) -> None:
    """Ranks of the outer loop alone."""
    plain["ranks"]["offset"] = {site: some[:1] for site, some in plain["ranks"]["offset"].items()}


def _sooner(plain: Data) -> None:
    """Sets of the other loop are said to be taken."""
    plain["backlogs"] = [entry | {"loop": 3 - entry["loop"]} for entry in plain["backlogs"]]


def _at_once(plain: Data) -> None:
    """What was set a tile before is said to be taken."""
    plain["backlogs"] = [entry | {"distance": [[1, []]], "bound": [[1, []]]} for entry in plain["backlogs"]]


def _none(plain: Data) -> None:
    """Fewer sets are said to wait than there are."""
    plain["backlogs"] = [entry | {"distance": [], "bound": []} for entry in plain["backlogs"]]


@pytest.mark.parametrize("change", [_swapped, _flat, _sooner, _at_once, _none])
def test_another_certificate_of_inner_loops_is_rejected(
    change: Callable[[Data], None], lagging: Certified, file_of: FileOf
) -> None:
    plain = msgspec.json.decode(written(file_of(lagging)))
    change(plain["programs"][0])
    (found,) = audit(read(msgspec.json.encode(plain)), [RIGHT["lagging"][0]])
    assert found.problems != []
