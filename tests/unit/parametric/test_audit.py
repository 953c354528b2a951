"""`audit` accepts what is proved and nothing else, and does without Z3 and the engines."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mc2proof.checker.audit import audit
from mc2proof.checker.audit_arithmetic import impossible
from mc2proof.checker.certificate import CertificateFile, read, written
from mc2proof.checker.parametric.certify import Certified
from mc2proof.checker.parametric.formula import at_least, differ, either, equal, less
from mc2proof.checker.parametric.polynomial import symbol
from mc2proof.checker.report import Report
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.program import Pipe, Role

Data = dict[str, Any]
FileOf = Callable[[Certified], CertificateFile]
x, y, z = map(symbol, "xyz")


def problems(data: Data) -> list[str]:
    """What `audit` says of a certificate of the built-in protocol, given as plain data."""
    file = read(msgspec.json.encode(data))
    return [f"{p.entry}: {p.text}" for found in audit(file, [ring_all_to_all()]) for p in found.problems]


@pytest.fixture(scope="session")
def plain(ring_order: Certified, file_of: FileOf) -> Data:
    data: Data = msgspec.json.decode(written(file_of(ring_order)))
    return data


def test_the_real_one(ring: tuple[Report, Certified], file_of: FileOf) -> None:
    (found,) = audit(read(written(file_of(ring[1]))), [ring_all_to_all()])
    assert found.problems == []
    assert list(found.needed) == ring[1].certificate.properties


# --- mutations --------------------------------------------------------------------------------


def moved(rng: random.Random, terms: list[Any]) -> None:
    """Another value: one more or one less."""
    by = rng.choice((1, -1))
    constant = next((term for term in terms if not term[1]), None)
    if constant is None:
        terms.append([by, []])
    else:
        constant[0] += by


def edge_removed(rng: random.Random, one: Data) -> None:
    entry = rng.choice(one["claims"])
    entry["uses"].remove(rng.choice(entry["uses"]))


def edge_turned(rng: random.Random, one: Data) -> None:
    uses = [use for entry in one["claims"] for use in entry["uses"] if use[0] == "rule" and use[1] != use[2]]
    use = rng.choice(uses)
    use[1], use[2] = use[2], use[1]


def index_changed(rng: random.Random, one: Data) -> None:
    place = rng.choice([place for entry in one["claims"] for place in entry["events"]])
    moved(rng, rng.choice([place["rank"], place["block"], *place["turns"]]))


def shift_changed(rng: random.Random, one: Data) -> None:
    moved(rng, rng.choice(rng.choice(one["matches"])["shift"]))


def supplier_changed(rng: random.Random, one: Data) -> None:
    place = rng.choice([place for place in one["suppliers"].values() if place])
    moved(rng, rng.choice([place["rank"], place["block"], *place["turns"]]))


def ranks_swapped(rng: random.Random, one: Data) -> None:
    offset = one["ranks"]["offset"]
    loop = [site for site in offset if one["ranks"]["phase"][site] == 1]
    a, b = rng.choice([(a, b) for a in loop for b in loop if offset[a] < offset[b]])
    offset[a], offset[b] = offset[b], offset[a]


def claim_removed(rng: random.Random, one: Data) -> None:
    one["claims"].remove(rng.choice(one["claims"]))


def other_source(rng: random.Random, one: Data) -> None:
    one["digest"] = f"{rng.getrandbits(64):016x}"


MUTATIONS: tuple[Callable[[random.Random, Data], None], ...] = (
    edge_removed, edge_turned, index_changed, shift_changed, supplier_changed, ranks_swapped, claim_removed,
    other_source,
)  # fmt: skip


@pytest.mark.parametrize("count", [48, pytest.param(400, marks=pytest.mark.long)])
def test_mutations_are_rejected(count: int, plain: Data) -> None:
    assert problems(plain) == []
    rng = random.Random(5)
    for number in range(count):
        mutation = MUTATIONS[number % len(MUTATIONS)]
        changed = copy.deepcopy(plain)
        mutation(rng, changed["programs"][0])
        assert problems(changed), f"{mutation.__name__}, number {number}"


def test_every_claim_is_needed(plain: Data) -> None:
    for place, entry in enumerate(plain["programs"][0]["claims"]):
        changed = copy.deepcopy(plain)
        del changed["programs"][0]["claims"][place]
        assert any(said.startswith(f"{entry['key']}: ") for said in problems(changed))


def changed_in(plain: Data, **fields: object) -> list[str]:
    changed = copy.deepcopy(plain)
    changed["programs"][0] |= fields
    return problems(changed)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"assume": ["tile_cnt >= 1", "ranks >= 2"]}, "names no condition"),
        ({"properties": ["deadlock-freedom", "layout"]}, "no largest value"),
        ({"properties": ["speed"]}, "no property"),
        ({"properties": []}, "it proves none"),
        ({"properties": ["deadlock-freedom"]}, "no property needs this claim"),
        ({"ranks": None}, "no table of ranks"),
        ({"free": ["ranks", "tile_cnt"]}, "buffer_size is no symbol"),
        ({"values": {"m": 256}}, "compute something else"),
        ({"profile": "atlas"}, "setup"),
        ({"matches": []}, "not one match for every wait"),
        ({"suppliers": {}}, "no supplier is named"),
        ({"assume": ["tile_cnt >= 5", "tile_cnt <= 3"]}, "no value satisfies"),
        ({"assume": ["buffer_size power of 2", "5 <= buffer_size <= 7"]}, "no value satisfies"),
        ({"assume": ["-" * 1900 + "1 <= 1"]}, "is no comparison"),
        ({"assume": ["1 + " * 600 + "1 >= 1"]}, "more than 2000 characters"),
    ],
)
def test_what_is_said_of_it(fields: Data, said: str, plain: Data) -> None:
    assert any(said in text for text in changed_in(plain, **fields))


def test_more_matmul_objects_than_there_are_ids_for(plain: Data) -> None:
    for count in (-1, 8, 10**9):
        setup = plain["programs"][0]["setup"] | {"matmul_objects": count}
        properties = ["flag-range"]
        assert changed_in(plain, setup=setup, properties=properties) == [
            f"program: its setup is none: {count} matmul objects"
        ]


def test_a_core_that_does_not_exist(plain: Data) -> None:
    changed = copy.deepcopy(plain)
    entry = next(e for e in changed["programs"][0]["claims"] if e["events"])
    entry["events"][0]["sub"] = 1
    assert any("there is no AI" in text for text in problems(changed))


def test_other_sources(plain: Data) -> None:
    p = ProtocolBuilder("other")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1)
    p.role(Role.AIV).pipe_barrier(Pipe.MTE3)
    found = audit(read(msgspec.json.encode(plain)), [p.build()])
    assert "the sources are" in found[0].problems[0].text


# --- arithmetic -------------------------------------------------------------------------------


def test_what_cannot_hold_together() -> None:
    assert impossible([less(x, y), less(y, z), less(z, x)])
    assert impossible([either(equal(x, 1), equal(x, 2)), at_least(x, 3)])
    assert impossible([equal(x * 2, y * 2 + 1)])
    assert impossible([at_least(x * 3, 1), at_least(2, x * 3)])
    assert impossible([differ(x, 0), at_least(x, 0), less(x, 1)])
    assert impossible([either()])


def test_what_can() -> None:
    assert not impossible([])
    assert not impossible([less(x, y), less(y, z)])
    assert not impossible([equal(x * y, 1), equal(x, 0)])  # products are numbers of their own
    assert not impossible([either(equal(x, 1), equal(x, 2)), at_least(x, 2)])


# --- independence -----------------------------------------------------------------------------

ALLOWED = {"atoms", "domain", "formula", "polynomial", "sites", "translate", "windows"}
"""Modules of the parametric engine that say what the program means: arithmetic, expressions, sites."""


def test_it_loads_neither_z3_nor_the_engines() -> None:
    code = "import mc2proof.certified, mc2proof.checker.audit, sys; print(*sorted(sys.modules))"
    names = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not any(name.split(".")[0] in ("z3", "numpy", "cvc5") for name in names)
    prefix = "mc2proof.checker."
    loaded = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    own = {
        "audit",
        "audit_arithmetic",
        "audit_claims",
        "audit_limits",
        "audit_memory",
        "audit_ranks",
        "audit_scene",
    }
    meaning = {f"parametric.{name}" for name in ALLOWED}
    assert loaded - own == {"certificate", "report", "parametric"} | meaning
