"""Each faulty variant of the reference kernel is found by running it, and the right ones pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import mc2proof
from mc2proof.fuzz.search import Found, search
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.replay import replay

Make = Callable[[str], list[Path]]

DATA = ("01", "02", "03", "04", "07", "08", "09", "11")
HANGS = ("06",)
RIGHT = ("10", "12", "13")
SEEDS = 20


@dataclass(frozen=True)
class Smallest:
    """The property that a faulty variant violates, and the least values at which it does."""

    property: str
    ranks: int
    buffer_size: int
    tile_cnt: int


SMALLEST = {
    "01": Smallest("no-overwrite-before-read", 2, 1, 2),
    "02": Smallest("no-overwrite-before-read", 2, 1, 2),
    "03": Smallest("no-overwrite-before-read", 2, 1, 2),
    "04": Smallest("no-read-before-write", 2, 1, 1),
    "06": Smallest("deadlock-freedom", 1, 1, 2),
    "07": Smallest("no-read-before-write", 2, 1, 1),
    "08": Smallest("no-read-before-write", 2, 1, 1),
    "09": Smallest("no-overwrite-before-read", 2, 2, 2),
    "11": Smallest("no-overwrite-before-read", 2, 1, 2),
}


def load(headers: list[Path]) -> Protocol:
    return mc2proof.load(*map(str, headers))[0]


def found(protocol: Protocol, number: str, seed: int, examples: int = 1000) -> Found:
    ranks = 3 if number == "08" else 2
    values = {"ranks": ranks, "buffer_size": 2, "tile_cnt": 6}
    return search(protocol, values, examples=examples, number=seed)


def check(protocol: Protocol, number: str, seed: int) -> None:
    fault = found(protocol, number, seed).fault
    assert fault is not None
    wanted, values = SMALLEST[number], fault.instance.values
    assert fault.property == wanted.property
    assert (values["ranks"], values["buffer_size"], values["tile_cnt"]) == (
        wanted.ranks, wanted.buffer_size, wanted.tile_cnt,
    )  # fmt: skip
    assert replay(fault.trace, [protocol]).reproduced


@pytest.mark.parametrize("number", [*DATA, *HANGS])
def test_a_fault_is_found_and_shown_at_its_smallest(number: str, variant: Make) -> None:
    protocol = load(variant(number))
    for seed in (0, 1):
        check(protocol, number, seed)


@pytest.mark.long
@pytest.mark.parametrize("number", [*DATA, *HANGS])
def test_a_fault_is_found_with_every_seed(number: str, variant: Make) -> None:
    protocol = load(variant(number))
    for seed in range(SEEDS):
        check(protocol, number, seed)


@pytest.mark.parametrize("number", RIGHT)
def test_what_is_right_passes(number: str, variant: Make) -> None:
    assert found(load(variant(number)), number, 0, examples=150).fault is None


@pytest.mark.long
@pytest.mark.parametrize("number", RIGHT)
def test_what_is_right_passes_a_thousand_times(number: str, variant: Make) -> None:
    assert found(load(variant(number)), number, 0).fault is None


def test_the_reference_passes(reference: list[Path]) -> None:
    assert found(load(reference), "00", 0, examples=150).fault is None


def test_small_uneven_matrices_of_the_reference(reference: list[Path]) -> None:
    """An odd number of scale groups has padding; every rank's part of K ends inside a group."""
    values = {"ranks": 3, "buffer_size": 2, "tile_cnt": 4, "m": 3, "k": 96, "n": 7}
    assert search(load(reference), values, examples=20).fault is None
