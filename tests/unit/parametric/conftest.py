"""A certificate of the built-in protocol, made once: all ten properties of one launch, all depths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mc2proof.checker.certificate import FORMAT, CertificateFile
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.report import Report
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.program import Protocol

FREE = ("ranks", "tile_cnt", "buffer_size")
RING = ("buffer_size power of 2", "tile_cnt >= 1", "ranks >= 2")
SMALL = (
    "tile_cnt <= min(16, buffer_size + 14)",
    "1048576 * buffer_size * ranks + 32768 * ranks * tile_cnt <= 1073741824",
)


def _certified(
    protocol: Protocol, assume: Sequence[str] = (), properties: Sequence[str] = (), free: Sequence[str] = FREE
) -> tuple[Report, Certified]:
    """The report on a protocol for all values, and its certificate."""
    made: list[Certified] = []
    report = prove_for_all([protocol], {}, free, assume, properties=properties, certified=made)
    return report, made[0]


@pytest.fixture(scope="session")
def certified() -> Callable[..., tuple[Report, Certified]]:
    """A function: the report on a protocol for all values, and its certificate."""
    return _certified


@pytest.fixture(scope="session")
def file_of() -> Callable[[Certified], CertificateFile]:
    """A function: what is written of a certificate."""
    return lambda made: CertificateFile(FORMAT, "0", [made.certificate])


@pytest.fixture(scope="session")
def ring() -> tuple[Report, Certified]:
    """The built-in protocol under assumptions that imply all of its properties."""
    return _certified(ring_all_to_all(), (*RING, *SMALL))


@pytest.fixture(scope="session")
def ring_order() -> Certified:
    """The same under fewer assumptions, for deadlock-freedom and the order of reads and writes."""
    names = ("deadlock-freedom", "no-overwrite-before-read", "flag-balance")
    return _certified(ring_all_to_all(), RING, names)[1]
