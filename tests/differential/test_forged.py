"""Certificates that are made whatever the engine says: none that `audit` accepts is of what fails.

Every faulty protocol of the corpus, and random ones with faults, for all values and at their own. All rows
are certified as if they were proved, so that only the auditor stands between a fault and "valid". A few of
them; all of the corpus and 60 random ones with ``-m long``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import FORMAT, CertificateFile, read, written
from mc2proof.checker.parametric import question
from mc2proof.checker.parametric.certify import certify
from mc2proof.checker.parametric.decide import decide
from mc2proof.checker.parametric.domain import domain_of
from mc2proof.checker.properties import rows_for
from mc2proof.protocol.errors import Mc2proofError
from mc2proof.protocol.evaluate import Value
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup

TESTS = Path(__file__).parents[1]
RLIMIT = 5_000_000
CASES = 12
"""Values at which each random protocol is judged."""
OVERFLOW = "an offset that 32 bits do not hold"
"""The entry whose fault is an overflow, which proofs for all values assume away (``no-overflow``)."""


def neighbour(path: str) -> ModuleType:
    """Another module of the tests."""
    name = f"forged_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


CORPUS = neighbour("corpus/test_corpus.py")
PARAMETRIC = neighbour("differential/test_parametric.py")
FAULTY = [entry for entry in CORPUS.MANIFEST if entry.violated and entry.name != OVERFLOW]


@pytest.fixture(autouse=True)
def _gathering_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer happenings: fewer proofs are found, in a fraction of the time."""
    monkeypatch.setattr(question, "MOST", 30)


def forged(
    protocol: Protocol, free: Sequence[str], values: Mapping[str, Value], assume: Sequence[str], setup: Setup,
    *, strict_ids: bool = False,
) -> set[str]:  # fmt: skip
    """The properties that `audit` calls proved, of all that a proof was found for. Raises Mc2proofError."""
    names = rows_for(2 if "launches" in free else setup.launches)
    domain = domain_of(protocol, free, values, assume, setup.launches)
    found = decide(protocol, setup, domain, names, strict_ids=strict_ids, rlimit=RLIMIT)
    made = certify(found, [protocol.name], values, names, strict_ids=strict_ids).certificate
    file = read(written(CertificateFile(FORMAT, "0", [made])))
    (seen,) = audit(file, [protocol])
    assert seen.valid == bool(made.properties), seen.problems
    return set(made.properties)


def compared(entry: Any, *, for_all: bool) -> Counter[str]:
    """What is certified of a faulty protocol, at its own values or for all values of its numbers."""
    protocol = entry.build()
    numbers = [name for name, value in entry.values.items() if isinstance(value, int)]
    free = tuple(numbers) if for_all else ()
    values = {name: value for name, value in entry.values.items() if name not in free}
    try:
        held = forged(protocol, free, values, (), entry.setup, strict_ids=entry.strict_ids)
    except Mc2proofError:
        return Counter(["refused"])
    assert not held & set(entry.violated), entry.name
    return Counter({"certified": len(held), "protocols": 1})


def in_corpus(step: int) -> Counter[str]:
    tally = Counter[str]()
    for place, entry in enumerate(FAULTY[::step]):
        tally += compared(entry, for_all=place % 2 == 0)
        if step == 1:
            tally += compared(entry, for_all=place % 2 == 1)
    return tally


def at_random(count: int, seed: int) -> Counter[str]:
    random, tally = Random(seed), Counter[str]()
    while tally["protocols"] < count:
        one = PARAMETRIC.drawn(random)
        try:
            held = forged(one.protocol, one.free, {}, one.assume, Setup())
            domain = domain_of(one.protocol, one.free, {}, one.assume)
        except Mc2proofError:
            continue
        tally.update(protocols=1, certified=len(held))
        for case in PARAMETRIC.cases_of(domain, random)[:CASES]:
            errors = PARAMETRIC.errors_at(one.protocol, case)
            if errors is not None:
                assert not held & errors, (case, one.what)
                tally.update(cases=1, faulty=bool(errors))
    return tally


def test_of_faulty_protocols() -> None:
    tally = in_corpus(9)
    assert min(tally["protocols"], tally["certified"] // 3) >= 5, tally


def test_of_random_protocols() -> None:
    tally = at_random(3, 11)
    assert min(tally["certified"], tally["cases"], tally["faulty"]) >= 10, tally


@pytest.mark.long
def test_of_all_faulty_protocols() -> None:
    tally = in_corpus(1)
    assert min(tally["protocols"], tally["certified"] // 3) >= 50, tally


@pytest.mark.long
def test_of_many_random_protocols() -> None:
    tally = at_random(60, 12)
    assert min(tally["certified"], tally["cases"], tally["faulty"]) >= 200, tally
