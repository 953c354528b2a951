"""What is decided where the flags cannot be matched: what rests on barriers and programs alone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from mc2proof.checker.audit import audit, case_of
from mc2proof.checker.audit_claims import Invalid
from mc2proof.checker.audit_limits import ids_and_backlogs
from mc2proof.checker.certificate import CertificateFile, read, written
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.program import Address, Pipe, Protocol, RegionKind, Role

PART = 8
FREE = ("tile_cnt",)
ORDER = ["no-write-conflict", "barrier-match", "layout"]


def unmatched(*, ahead: int, barrier: bool = True, shared: bool = False) -> Protocol:
    """An AIV and its AIC that write tile by tile, the AIC after a flag ``ahead`` tiles later.

    ``shared``: both write the same bytes, which only the flag orders.
    """
    p = ProtocolBuilder("unmatched")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, high=1, default=1)
    tiles = p.parameter("tile_cnt", low=1, default=4)
    mine = p.region("mine", RegionKind.PRIVATE, tiles * PART)
    other = mine if shared else p.region("other", RegionKind.PRIVATE, tiles * PART)
    aiv = p.role(Role.AIV)
    with aiv.loop("tile", tiles) as tile:
        aiv.write(Pipe.MTE3, window(Address(mine, tile * PART), PART))
        aiv.set_flag(Pipe.MTE3, tile % 8)
        if barrier:
            aiv.barrier()
    aic = p.role(Role.AIC)
    with aic.loop("tile", tiles) as tile:
        aic.wait_flag(Pipe.FIX, (tile + ahead) % 8)
        aic.write(Pipe.FIX, window(Address(other, tile * PART), PART))
    return p.build()


def proved(protocol: Protocol) -> set[str]:
    report = prove_for_all([protocol], {}, FREE)
    return {row.property for row in report.results if row.verdict.value == "PROVED"}


def test_rows_that_need_no_matches_are_decided() -> None:
    assert proved(unmatched(ahead=1)) == {*ORDER}


def test_nothing_that_a_match_orders_is_proved_without_it() -> None:
    assert "no-write-conflict" in proved(unmatched(ahead=0, shared=True))
    assert "no-write-conflict" not in proved(unmatched(ahead=1, shared=True))


@pytest.mark.parametrize("name", ["deadlock-freedom", "flag-balance", "flag-range", "coverage", "completion"])
def test_what_needs_all_flags_is_never_proved(name: str) -> None:
    assert name not in proved(unmatched(ahead=1))


def test_barriers_called_unlike_leave_the_layout() -> None:
    p = ProtocolBuilder("unlike")
    ranks = p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    mine = p.region("mine", RegionKind.PRIVATE, PART * ranks)
    aiv = p.role(Role.AIV)
    aiv.write(Pipe.MTE3, window(Address(mine, p.rank * PART), PART))
    with aiv.when(p.rank.eq(0)):
        aiv.barrier()
    report = prove_for_all([p.build()], {}, ("ranks", "blocks"))
    found = {row.property: row.verdict.value for row in report.results}
    assert found["layout"] == "PROVED"
    assert found["barrier-match"] == "VIOLATED"
    assert "PROVED" not in {v for name, v in found.items() if name not in ("layout", "barrier-match")}


def absent(*, pipe: Pipe = Pipe.FIX, late: bool = False) -> Protocol:
    """An AIV that names a pipe it may lack in a wait for its AIC; ``late``: before it may write again."""
    p = ProtocolBuilder("absent")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, high=1, default=1)
    tiles = p.parameter("tile_cnt", low=1, default=4)
    mine = p.region("mine", RegionKind.PRIVATE, tiles * PART)
    aic = p.role(Role.AIC)
    with aic.loop("tile", tiles) as tile:
        aic.write(Pipe.FIX, window(Address(mine, tile * PART), PART))
        aic.set_flag(Pipe.FIX, tile % 8)
    aiv = p.role(Role.AIV)
    with aiv.loop("tile", tiles) as tile:
        aiv.wait_flag(pipe, (tile - 1 if late else tile) % 8)
        aiv.write(Pipe.MTE3, window(Address(mine, tile * PART), PART))
    return p.build()


def test_a_wait_that_compiles_to_nothing_orders_nothing() -> None:
    assert "no-write-conflict" in proved(absent(pipe=Pipe.MTE3))
    report = prove_for_all([absent()], {}, FREE)
    found = {row.property: row.verdict.value for row in report.results}
    assert found["no-write-conflict"] == "VIOLATED"
    assert found["flag-balance"] == "VIOLATED"
    assert found["flag-range"] == "VIOLATED"
    assert found["layout"] == "PROVED"


def test_no_certificate_says_that_an_absent_pipe_is_right() -> None:
    made: list[Certified] = []
    prove_for_all([absent()], {}, FREE, certified=made, properties=["layout"])
    case = case_of(made[0].certificate, absent())
    with pytest.raises(Invalid, match="no PIPE_FIX"):
        list(ids_and_backlogs(case))


def test_the_arithmetic_of_what_compiles_to_nothing_counts() -> None:
    report = prove_for_all([absent(late=True)], {}, FREE, properties=["layout"])
    assert report.results[0].verdict.value != "PROVED"


def test_they_are_certified(file_of: Callable[[Certified], CertificateFile]) -> None:
    protocol = unmatched(ahead=1)
    made: list[Certified] = []
    prove_for_all([protocol], {}, FREE, certified=made)
    (found,) = audit(read(written(file_of(made[0]))), [protocol])
    assert found.problems == []
    assert {*found.needed} == {*ORDER}


def test_a_certificate_without_its_matches_is_refused(
    ring_order: Certified, file_of: Callable[[Certified], CertificateFile]
) -> None:
    for name in ring_order.certificate.properties:
        bare = msgspec.structs.replace(ring_order.certificate, matches=[], properties=[name])
        file = msgspec.structs.replace(file_of(ring_order), programs=[bare])
        (found,) = audit(file, [ring_all_to_all()])
        assert found.problems, name
