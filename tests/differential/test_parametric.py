"""Proofs for all values against happens-before at single values, on random protocols.

What is PROVED for all values holds at 50 random ones, what has a condition holds where that is satisfied
and, where it is called exact, fails just outside it; what is VIOLATED fails at the values shown. `audit`
accepts the certificate of what is PROVED. Protocols outside the fragment do not count. 6 protocols, 300
with ``-m long``; the seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.certificate import FORMAT, CertificateFile, read, written
from mc2proof.checker.parametric import question
from mc2proof.checker.parametric.certify import certify
from mc2proof.checker.parametric.concrete import outside
from mc2proof.checker.parametric.decide import Decided, Decision, decide
from mc2proof.checker.parametric.domain import Domain, domain_of, satisfied
from mc2proof.checker.parametric.forall import check_possible, prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Severity, Verdict
from mc2proof.fuzz.exchanges import drawn as exchange
from mc2proof.fuzz.mutations import mutate
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import Mc2proofError, UnsupportedError
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

FREE = ("ranks", "blocks", "buffer_size", "tile_cnt")
VALUES: Mapping[str, tuple[int, ...]] = {
    "ranks": (1, 2, 3),
    "blocks": (1, 2, 3, 4),
    "buffer_size": (1, 2, 3, 4, 5),
    "tile_cnt": (0, 1, 2, 3, 4, 5, 7, 9, 12, 17),
    "launches": (1, 2, 3),
}
SAMPLES = 50
MOST_EVENTS = 4_000
RLIMIT = 400_000
LIMITS = Limits(rlimit=100_000)
WIDE = ("ranks >= 2", "tile_cnt >= 1", "tile_cnt <= 9", "buffer_size <= 3")
"""Assumptions of which each protocol gets one or none besides its own."""


@pytest.fixture(autouse=True)
def _gathering_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer happenings: less is proved, in a fraction of the time, and never more."""
    monkeypatch.setattr(question, "MOST", 16)


@dataclass(frozen=True)
class Drawn:
    """A protocol, the domain it is asked about, and what was done to it."""

    protocol: Protocol
    assume: tuple[str, ...]
    free: tuple[str, ...]
    what: tuple[object, ...]


def drawn(random: Random) -> Drawn:
    """An exchange, or the built-in protocol; with a fault of its own, a random one, or none."""
    fault = random.choices(("none", "own", "mutant"), (4, 3, 3))[0]
    what: tuple[object, ...] = ()
    if random.random() < 0.08:
        protocol, assume = ring_all_to_all(), ("buffer_size power of 2", "blocks >= ranks")
    else:
        one = exchange(random, faulty=fault == "own", closed=random.random() < 0.35)
        protocol, assume, what = one.build(), one.assume, (one,)
        if fault == "own" and random.random() < 0.2:
            assume = ()
    assume += tuple(random.sample(WIDE, random.choice((0, 1))))
    if fault == "mutant":
        mutant = mutate(protocol, random)
        protocol, what = mutant.protocol, (*what, *mutant.changes)
    free = (*FREE, "launches") if random.random() < 0.25 else FREE
    return Drawn(protocol, assume, free, (protocol.name, assume, free, *what))


def errors_at(protocol: Protocol, case: Mapping[str, int]) -> set[str] | None:
    """The properties that fail at ``case``; None where it makes no sense, or not all could be told."""
    values = {name: value for name, value in case.items() if name != "launches"}
    setup = Setup(launches=case.get("launches", 1))
    try:
        judgement = judge(unroll(protocol, values, setup, limits=Limits(max_events=MOST_EVENTS)))
    except Mc2proofError:
        return None
    errors = {found.property for found in judgement.found if found.severity is Severity.ERROR}
    return errors if judgement.open is None or errors else None


def cases_of(domain: Domain, random: Random) -> list[dict[str, int]]:
    """All values of `VALUES` in the domain, in random order."""
    cases: list[dict[str, int]] = [{}]
    for name in domain.free:
        cases = [{**case, name: value} for case in cases for value in VALUES[name]]
    random.shuffle(cases)
    return [case for case in cases if domain.contains(case)]


def compared(count: int, seed: int) -> Counter[str]:
    """Draw until ``count`` were within the fragment; compare these, and say what was seen."""
    random, tally = Random(seed), Counter[str]()
    while tally["protocols"] < count:
        one = drawn(random)
        names = rows_for(2 if "launches" in one.free else 1)
        try:
            domain = domain_of(one.protocol, one.free, {}, one.assume)
            check_possible(domain)
            found = decide(one.protocol, Setup(), domain, names, rlimit=RLIMIT)
        except UnsupportedError:
            tally["unsupported"] += 1
            continue
        if found.declined is not None:
            tally["declined"] += 1
            continue
        tally["protocols"] += 1
        failing = compare_inside(one, domain, found.decisions, random, tally)
        compare_outside(one, domain, found.decisions, tally)
        check_certificate(one, found, tally)
        confirm(one, found.decisions, failing if tally["protocols"] % 5 else None, tally)
    return tally


def compare_inside(
    one: Drawn, domain: Domain, decisions: Mapping[str, Decision], random: Random, tally: Counter[str]
) -> set[str]:
    """What is proved holds at 50 random values, or at all of `VALUES` where these are fewer.

    Returns the properties that fail at some of them.
    """
    judged, failing = 0, set[str]()
    for case in cases_of(domain, random):
        errors = errors_at(one.protocol, case)
        if errors is None:
            tally["not judged"] += 1
            continue
        failing |= errors
        for name, decision in decisions.items():
            when = decision.condition
            if decision.proved or (when is not None and satisfied(when, case)):
                assert name not in errors, (name, case, decision.holds_when, one.what)
                tally["conditioned"] += when is not None
        judged += 1
        if judged == SAMPLES:
            break
    tally["cases"] += judged
    tally["fewer cases"] += judged < SAMPLES
    return failing


def compare_outside(
    one: Drawn, domain: Domain, decisions: Mapping[str, Decision], tally: Counter[str]
) -> None:
    """An exact condition is needed: what lies just outside it fails."""
    for name, decision in decisions.items():
        if decision.condition is None or not decision.exact:
            continue
        for case, _ in zip(outside(domain, decision.condition), range(4), strict=False):
            errors = errors_at(one.protocol, case)
            if errors is not None:
                assert name in errors, (name, case, decision.holds_when, one.what)
                tally["outside"] += 1


def check_certificate(one: Drawn, found: Decided, tally: Counter[str]) -> None:
    """`audit` accepts the certificate of what is proved, as it is written."""
    proved = [name for name, decision in found.decisions.items() if decision.proved]
    made = certify(found, [one.protocol.name], {}, proved, strict_ids=False)
    for name in made.certificate.left_out:
        tally[f"{name} left out"] += 1
    assert {*made.certificate.properties, *made.certificate.left_out} == set(proved)
    file = CertificateFile(FORMAT, "0", [made.certificate])
    (audited,) = audit(read(written(file)), [one.protocol])
    assert audited.problems == [], (audited.problems, one.what)
    tally["certified"] += len(made.certificate.properties)


def confirm(
    one: Drawn, decisions: Mapping[str, Decision], failing: set[str] | None, tally: Counter[str]
) -> None:
    """What the report calls VIOLATED fails at the values of its counterexamples; the rest is UNKNOWN.

    ``failing``: the report is asked of these only, which takes less: for the others it decides once more.
    """
    for name, decision in decisions.items():
        if decision.proved or decision.nothing:
            tally[f"{name} {'PROVED' if decision.proved else 'VACUOUS'}"] += 1
    open_ones = []
    for name, decision in decisions.items():
        if decision.proved or decision.nothing:
            continue
        if failing is None or name in failing:
            open_ones.append(name)
        else:
            tally[f"{name} open"] += 1
    if not open_ones:
        return
    report = prove_for_all([one.protocol], {}, one.free, one.assume, properties=open_ones, limits=LIMITS)
    for row in report.results:
        assert row.verdict in (Verdict.VIOLATED, Verdict.UNKNOWN), (row.property, row.verdict, one.what)
        tally[f"{row.property} {row.verdict.name}"] += 1
        if row.verdict is not Verdict.VIOLATED:
            continue
        cases = [f.counterexample for f in row.findings if f.counterexample is not None]
        assert cases or row.findings, (row.property, one.what)
        for shown in cases:
            values = {n: v for n, v in shown.parameters.items() if isinstance(v, int)}
            instance = unroll(one.protocol, values, Setup(launches=shown.launches))
            errors = {f.property for f in judge(instance).found if f.severity is Severity.ERROR}
            assert row.property in errors, (row.property, values, one.what)
            tally["confirmed"] += 1


def check_tally(tally: Counter[str], count: int) -> None:
    """Enough of everything was seen; the tally is the message."""
    shown = dict(sorted(tally.items()))
    proved, violated = (
        sum(number for row, number in tally.items() if row.endswith(verdict))
        for verdict in (" PROVED", " VIOLATED")
    )
    left_out = sum(number for row, number in tally.items() if row.endswith(" left out"))
    assert tally["protocols"] == count
    assert tally["cases"] >= 40 * count, shown
    assert proved >= 4 * count, shown
    assert tally["certified"] == proved - left_out, shown
    assert left_out <= proved // 4, shown
    assert min(violated, tally["confirmed"], tally["conditioned"]) >= count // 2, shown
    assert tally["no-overwrite-before-read PROVED"] >= count // 10, shown


def test_for_all_values_and_at_single_ones() -> None:
    check_tally(compared(6, 5), 6)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_for_all_values_and_at_many(part: int) -> None:
    """300 in ten parts, each with protocols of its own."""
    tally = compared(30, 100 + part)
    check_tally(tally, 30)
    assert tally["outside"] >= 1, dict(sorted(tally.items()))
