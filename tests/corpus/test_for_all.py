"""The corpus and mutants of it for all values: nothing is PROVED that fails at values that `judge` sees.

Every entry's protocol is asked about with all of its whole-number parameters free, and so are copies with a
random fault. Each is then judged at the entry's own values and at small ones.
"""

from __future__ import annotations

import importlib.util
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from mc2proof.checker.parametric import question
from mc2proof.checker.parametric.decide import Decision, decide
from mc2proof.checker.parametric.domain import Domain, domain_of, satisfied
from mc2proof.checker.properties import rows_for
from mc2proof.checker.quick import judge
from mc2proof.checker.report import Severity
from mc2proof.fuzz.mutations import mutate
from mc2proof.protocol.errors import Mc2proofError, UnsupportedError
from mc2proof.protocol.profile import PROFILES, BarrierAll
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import Limits, unroll

HERE = Path(__file__).parent
RLIMIT = 400_000
SMALL = (1, 2, 3, 0, 5)
CASES = 25


@pytest.fixture(autouse=True)
def _gathering_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer happenings: less is proved, in a fraction of the time, and never more."""
    monkeypatch.setattr(question, "MOST", 16)


@dataclass(frozen=True)
class Asked:
    """A protocol with the values and the setup at which the corpus speaks of it."""

    name: str
    protocol: Protocol
    values: Mapping[str, int]
    setup: Setup


@cache
def load(name: str) -> ModuleType:
    """The module ``protocols/NAME.py``."""
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", HERE / "protocols" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(entry: Mapping[str, Any]) -> Asked:
    """What an entry of the manifest speaks of."""
    module, _, function = entry["protocol"].partition(".")
    protocol: Protocol = getattr(load(module), function)(**entry.get("arguments", {}))
    profile = replace(PROFILES[entry.get("profile", "ascend950")], **entry.get("profile_options", {}))
    setup = Setup(
        profile,
        BarrierAll(entry.get("barrier_all", "vec")),
        entry.get("launches", 1),
        entry.get("flags_cleared", False),
    )
    return Asked(entry["name"], protocol, entry["parameters"], setup)


MANIFEST = [
    asked(entry)
    for path in sorted((HERE / "manifest").glob("*.toml"))
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["entry"]
    if not entry.get("faults") and all(isinstance(value, int) for value in entry["parameters"].values())
]


def cases(one: Asked, domain: Domain) -> Iterator[dict[str, int]]:
    """The entry's own values, then small ones."""
    own = {name: one.values[name] for name in domain.free}
    others = [
        dict(zip(domain.free, values, strict=True))
        for values in itertools.product(SMALL, repeat=len(domain.free))
    ]
    Random(1).shuffle(others)
    yield from itertools.islice((case for case in (own, *others) if domain.contains(case)), CASES)


def errors_at(one: Asked, values: Mapping[str, int]) -> set[str] | None:
    """The properties that fail there; None where it makes no sense or is too large."""
    try:
        judgement = judge(unroll(one.protocol, values, one.setup, limits=Limits(max_events=2_000)))
    except Mc2proofError:
        return None
    return {found.property for found in judgement.found if found.severity is Severity.ERROR}


def compare(one: Asked, what: object, tally: Counter[str]) -> None:
    """Decide ``one`` for all values and at single ones."""
    free = [name for name in one.values if one.protocol.parameter(name) is not None]
    decisions: Mapping[str, Decision]
    try:
        domain = domain_of(one.protocol, free, {}, (), one.setup.launches)
        found = decide(one.protocol, one.setup, domain, rows_for(one.setup.launches), rlimit=RLIMIT)
    except UnsupportedError:
        tally["unsupported"] += 1
        return
    if found.declined is not None:
        tally["declined"] += 1
        return
    decisions = found.decisions
    tally["protocols"] += 1
    failing: set[str] = set()
    for case in cases(one, domain):
        errors = errors_at(one, case)
        if errors is None:
            continue
        tally["cases"] += 1
        failing |= errors
        for name, decision in decisions.items():
            when = decision.condition
            if decision.proved or (when is not None and satisfied(when, case)):
                assert name not in errors, (one.name, what, name, case, decision.holds_when)
    tally["proved"] += sum(decision.proved for decision in decisions.values())
    tally["faulty"] += bool(failing)


def mutants(count: int, seed: int) -> Counter[str]:
    """Compare mutants until ``count`` were within the fragment and failed somewhere."""
    random, tally = Random(seed), Counter[str]()
    while tally["faulty"] < count:
        one = random.choice(MANIFEST)
        mutant = mutate(one.protocol, random)
        compare(replace(one, protocol=mutant.protocol), mutant.changes, tally)
    return tally


def test_mutants_of_the_corpus_for_all_values() -> None:
    tally = mutants(20, 1)
    assert min(tally["proved"], tally["cases"] // 5) >= 20, tally


@pytest.mark.long
def test_many_mutants_of_the_corpus_for_all_values() -> None:
    tally = mutants(240, 2)
    assert min(tally["proved"], tally["cases"] // 5) >= 240, tally


@pytest.mark.long
def test_the_corpus_for_all_values() -> None:
    tally = Counter[str]()
    for one in MANIFEST:
        compare(one, None, tally)
    assert min(tally["protocols"], tally["faulty"]) >= 40, tally
