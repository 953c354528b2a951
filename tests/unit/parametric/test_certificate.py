"""What certificates hold, and that they come back from JSON as they were."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from mc2proof.checker.certificate import CertificateFile, poly, read, terms, written
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.polynomial import number, symbol
from mc2proof.checker.parametric.why import reasons, unneeded
from mc2proof.checker.properties import rows_for
from mc2proof.checker.report import Report
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.program import Pipe, Protocol, Role

Ring = tuple[Report, Certified]
FileOf = Callable[[Certified], CertificateFile]
Make = Callable[..., Ring]
RING = ("buffer_size power of 2", "tile_cnt >= 1", "ranks >= 2")


def test_every_row_is_certified(ring: Ring) -> None:
    report, made = ring
    assert made.certificate.properties == rows_for(1)
    assert made.certificate.left_out == {}
    for row in report.results:
        assert row.certificate == f"{len(made.by_property[row.property])} claims"


def test_it_comes_back_from_json(ring: Ring, file_of: FileOf) -> None:
    file = file_of(ring[1])
    assert read(written(file)) == file
    assert written(read(written(file))) == written(file)


def test_polynomials_as_data() -> None:
    value = symbol("a") * symbol("b") * 3 - symbol("a") + number(7)
    assert poly(terms(value)) == value
    assert poly([(1, ["a"]), (-1, ["a"])]) == number(0)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"format": 1}', b"\xff"])
def test_what_is_no_certificate(data: bytes) -> None:
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        read(data)


def test_a_format_of_another_version(ring: Ring, file_of: FileOf) -> None:
    file = msgspec.structs.replace(file_of(ring[1]), format=99)
    with pytest.raises(ValueError, match="format is 99"):
        read(written(file))


def test_no_certificate_of_what_is_not_proved(certified: Make) -> None:
    report, made = certified(ring_all_to_all(), RING, ("deadlock-freedom", "layout"))
    assert made.certificate.properties == ["deadlock-freedom"]
    assert report.results[1].certificate is None


def test_the_ring_needs_all_of_its_synchronisations(ring: Ring) -> None:
    assert unneeded(ring[1]) == []


def test_the_chain_of_the_ring(ring_order: Certified) -> None:
    first = reasons(ring_order, "no-overwrite-before-read")[0]
    chain = [(link.text, link.rule) for link in first.chains[0]]
    assert chain == [
        ("matmul reads of tile i, source j on rank r", ""),
        ("matmul done of tile i on rank r", "it reads before it writes"),
        ("flag set of tile i on rank r", "program order"),
        ("flag awaited of tile buffer_size + i on rank r", "the set releases the wait"),
        ("barrier of tile l on rank r", "all meet in it"),
        ("put of tile l on rank q", "program order"),
    ]
    assert first.facts == (
        "i and l have one remainder by buffer_size only if they are equal or buffer_size apart",
    )


def test_a_barrier_too_many_is_in_no_proof(certified: Make) -> None:
    made = certified(doubled(), ("tile_cnt >= 1",), free=("ranks", "tile_cnt"))[1]
    assert [site.kind.value for site in unneeded(made)] == ["pipe barrier"]


def doubled() -> Protocol:
    """Tiles handed from the AIV to the AIC, with a pipe barrier that orders nothing."""
    p = ProtocolBuilder("doubled")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1)
    tiles = p.parameter("tile_cnt")
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    with aiv.loop("i", tiles) as i:
        aiv.pipe_barrier(Pipe.V)
        aiv.set_flag(Pipe.MTE3, i % 8)
        aiv.wait_flag(Pipe.MTE3, i % 8)
    with aic.loop("i", tiles) as i:
        aic.wait_flag(Pipe.MTE2, i % 8)
        aic.pipe_barrier()
        aic.set_flag(Pipe.MTE2, i % 8)
    return p.build()
