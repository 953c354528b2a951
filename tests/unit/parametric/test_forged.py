"""Certificates of what does not hold, written by somebody who knows `audit` well."""

from __future__ import annotations

from collections.abc import Sequence

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import FORMAT, Certificate, CertificateFile
from mc2proof.checker.parametric import certify
from mc2proof.checker.parametric.deadlock import Ranks, ranks_of
from mc2proof.checker.parametric.decide import Decided, decide
from mc2proof.checker.parametric.domain import domain_of
from mc2proof.checker.parametric.flags import Backlog
from mc2proof.checker.parametric.polynomial import number
from mc2proof.checker.parametric.program import Match
from mc2proof.checker.properties import rows_for
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import Const, both
from mc2proof.protocol.instance import Kind
from mc2proof.protocol.program import Address, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup

PART = 8


def started() -> ProtocolBuilder:
    p = ProtocolBuilder("forged")
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    return p


def decided(protocol: Protocol, ranks: int) -> Decided:
    domain = domain_of(protocol, ("blocks",), {"ranks": ranks}, ("blocks == 1",))
    return decide(protocol, Setup(), domain, rows_for(1))


def certified(found: Decided, ranks: int, properties: Sequence[str]) -> Certificate:
    """A certificate of ``properties``, whatever was found of them."""
    return certify.certify(found, ["forged"], {"ranks": ranks}, properties, strict_ids=False).certificate


def valid(protocol: Protocol, certificate: Certificate) -> bool:
    (seen,) = audit(CertificateFile(FORMAT, "0", [certificate]), [protocol])
    return seen.valid


def in_a_circle() -> Protocol:
    """Both roles write the same bytes, then each waits for the other's flag before it sets its own."""
    p = started()
    c = p.region("c", RegionKind.OUTPUT, PART)
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    for role, pipe, own, other in ((aiv, Pipe.MTE3, 1, 0), (aic, Pipe.FIX, 0, 1)):
        role.write(pipe, window(Address(c, Const(0)), PART))
        role.wait_flag(pipe, other)
        role.set_flag(pipe, own)
    return p.build()


def test_everything_follows_from_a_circle() -> None:
    protocol = in_a_circle()
    made = certified(decided(protocol, 1), 1, rows_for(1))
    assert set(made.properties) == {"flag-balance", "layout"}
    assert valid(protocol, made)
    said = "events may wait in a circle"
    assert said in made.left_out["no-write-conflict"]
    assert said in made.left_out["flag-range"]


def test_no_table_of_ranks_fits_a_circle() -> None:
    protocol = in_a_circle()
    found = decided(protocol, 1)
    sites = [site.number for site in found.program.sites]
    depth = {site.number: max(1, len(site.loops) - 1) for site in found.program.sites}
    for sign in (0, 1, -1):
        table = {n: (sign * n,) * depth[n] for n in sites}
        found.ranks = Ranks(100, dict.fromkeys(sites, 0), table)
        assert "no-write-conflict" not in certified(found, 1, ["no-write-conflict"]).properties


def test_bounds_that_take_from_each_other() -> None:
    """16 sets of one flag wait at once; bounds below zero would make their sum fit the counter."""
    p = started()
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    for _ in range(16):
        aiv.set_flag(Pipe.MTE3, 3)
    for _ in range(16):
        aic.wait_flag(Pipe.FIX, 3)
    protocol = p.build()
    found = decided(protocol, 1)
    sets, waits = found.program.of_kind(Kind.SET_FLAG), found.program.of_kind(Kind.WAIT_FLAG)
    found.program.matches[:] = [Match(s, w, (number(0),), True) for s, w in zip(sets, waits, strict=True)]
    found.ranks = ranks_of(found.program)
    for bound in (-1, 0, 1):
        found.backlogs[:] = [Backlog(site, number(bound), number(bound), 0) for site in sets]
        made = certified(found, 1, ["flag-balance", "flag-range"])
        assert made.properties == ["flag-balance"]
        assert valid(protocol, made)


def test_an_input_that_a_put_reads_is_written() -> None:
    p = started()
    a, heap = p.region("a", RegionKind.INPUT, PART), p.region("heap", RegionKind.SHARED, PART)
    aiv = p.role(Role.AIV)
    with aiv.when(both(p.rank.eq(0), p.block.eq(0))):
        aiv.put(1, Address(heap, Const(0)), Address(a, Const(0)), PART)
        aiv.write(Pipe.V, window(Address(a, Const(0)), PART))
        aiv.quiet(1)
    made = certified(decided(p.build(), 2), 2, rows_for(1))
    assert "is written as well" in made.left_out["no-overwrite-before-read"]
