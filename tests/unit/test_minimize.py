"""What synchronisations are needed for, minimal safe sets, and mends."""

from collections.abc import Callable

import pytest

import mc2proof
from mc2proof.checker.minimize import Minimized
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.edits import Edit, EditKind, Site, edited, sites
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import (
    Barrier,
    Pipe,
    Protocol,
    Quiet,
    Role,
    SetFlag,
    Statement,
    WaitFlag,
)

SMALL = {"ranks": 3, "buffer_size": 2, "tile_cnt": 4}
OW, RW = "no-overwrite-before-read", "no-read-before-write"


def found(protocol: Protocol, kind: type[Statement], role: Role = Role.AIV) -> list[tuple[Site, Statement]]:
    return [(site, s) for site, s in sites(protocol) if isinstance(s, kind) and site.role is role]


def without(protocol: Protocol, *taken: tuple[Site, Statement]) -> Protocol:
    return edited(protocol, [Edit(EditKind.REMOVE, "", s, removed=(site,)) for site, s in taken])


def minimize(protocol: Protocol, **values: int) -> Minimized:
    return mc2proof.minimize(protocol, barrier_all="vec", **(SMALL | values))


def by_numbers(answer: Minimized) -> dict[tuple[int, ...], set[str]]:
    return {tuple(need.numbers): {b.property for b in need.violates} for need in answer.needs}


def test_everything_in_the_ring_is_needed() -> None:
    answer = minimize(ring_all_to_all())
    assert answer.verdict == "PROVED"
    assert {need.verdict for need in answer.needs} == {"needed"}
    assert by_numbers(answer) == {
        (0,): {OW, "flag-balance"},
        (1,): {OW},
        (2,): {RW, "completion", "no-write-conflict"},
        (3,): {RW},
        (4,): {"deadlock-freedom", "flag-balance"},
        (5,): {RW, "flag-balance"},
        (6,): {"deadlock-freedom", "flag-balance"},
        (4, 5): {RW},
        (0, 6): {OW},
        (1, 3): {OW, RW},
    }
    assert [(s.kept, s.left_out) for s in answer.safe_sets] == [([0, 1, 2, 3, 4, 5, 6], [])]
    assert answer.mends == []


def test_what_is_needed_beside_the_given_values_only() -> None:
    """With no more tiles than slots nothing is released, and yet it is needed at the next number."""
    answer = minimize(ring_all_to_all(), tile_cnt=2)
    needs = {tuple(need.numbers): need for need in answer.needs}
    assert needs[0, 6].verdict == "needed"
    assert needs[0, 6].at == {"tile_cnt": 3}
    assert needs[4, 5].at == {}


@pytest.mark.parametrize("which", [0, 1])
def test_a_doubled_barrier_may_go(which: int) -> None:
    protocol = ring_all_to_all()
    site, barrier = found(protocol, Barrier)[which]
    doubled = edited(protocol, [Edit(EditKind.INSERT, "", barrier, inserted=((site, barrier),))])
    answer = minimize(doubled)
    spare = [s.number for s in answer.synchronisations if s.line == barrier.span.line]
    assert [need.numbers for need in answer.needs if need.verdict == "not needed"] == [[n] for n in spare]
    assert [s.left_out for s in answer.safe_sets] == [[n] for n in spare]


def test_a_handshake_that_orders_nothing_may_go_as_a_pair() -> None:
    protocol = ring_all_to_all()
    (site, sent), (awaited_at, awaited) = found(protocol, SetFlag)[0], found(protocol, WaitFlag, Role.AIC)[0]
    assert isinstance(sent, SetFlag)
    assert isinstance(awaited, WaitFlag)
    twice = edited(
        protocol,
        [
            Edit(EditKind.INSERT, "", sent, inserted=((site, sent),)),
            Edit(EditKind.INSERT, "", awaited, inserted=((awaited_at, awaited),)),
        ],
    )
    answer = minimize(twice)
    assert answer.verdict == "PROVED"
    going = [need.numbers for need in answer.needs if need.verdict == "not needed"]
    assert going
    assert all(len(numbers) == 2 for numbers in going)
    assert {tuple(s.left_out) for s in answer.safe_sets} == {tuple(numbers) for numbers in going}


def moved_wait(protocol: Protocol) -> Protocol:
    (site, wait), (barrier_at, _) = found(protocol, WaitFlag)[0], found(protocol, Barrier)[0]
    edit = Edit(EditKind.MOVE, "", wait, (site,), ((barrier_at.following, wait),))
    return edited(protocol, [edit])


def early_set(protocol: Protocol) -> Protocol:
    (site, sent), (barrier_at, _) = found(protocol, SetFlag)[0], found(protocol, Barrier)[1]
    edit = Edit(EditKind.MOVE, "", sent, (site,), ((barrier_at, sent),))
    return edited(protocol, [edit])


def other_pipe(protocol: Protocol) -> Protocol:
    ((site, _),) = found(protocol, WaitFlag)
    wait = WaitFlag(2, Pipe.FIX, protocol_flag(protocol), found(protocol, WaitFlag)[0][1].span)
    return edited(protocol, [Edit(EditKind.CHANGE, "", wait, (site,), ((site, wait),))])


def protocol_flag(protocol: Protocol) -> mc2proof.Expr:
    ((_, wait),) = found(protocol, WaitFlag)
    assert isinstance(wait, WaitFlag)
    return wait.flag


MENDS: dict[str, tuple[Callable[[Protocol], Protocol], str, str]] = {
    "barrier before wait": (moved_wait, "move", "barrier aclshmem_barrier_all to after wait for flag"),
    "no barrier": (
        lambda p: without(p, found(p, Barrier)[0]), "insert", "barrier aclshmem_barrier_all after wait",
    ),
    "no quiet": (lambda p: without(p, *found(p, Quiet)), "insert", "quiet to rank block after put"),
    "early set": (early_set, "move", "set flag tile on MTE3 (mode 2) to after barrier"),
    "no wait": (
        lambda p: without(p, *found(p, WaitFlag)), "insert", "wait for flag tile - buffer_size on MTE3",
    ),
    "pipe that is absent": (other_pipe, "change", "wait for flag tile - buffer_size on FIX"),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDS)
def test_mends(name: str) -> None:
    fault, kind, text = MENDS[name]
    answer = minimize(fault(ring_all_to_all()), tile_cnt=5)
    assert answer.verdict == "VIOLATED"
    assert answer.violated
    first = answer.mends[0]
    assert [change.kind for change in first.changes] == [kind]
    assert first.changes[0].text.startswith(text)
    assert first.fails_at == []
    assert answer.safe_sets == []


@pytest.mark.long
def test_two_faults_take_two_edits() -> None:
    protocol = ring_all_to_all()
    answer = minimize(without(protocol, found(protocol, Barrier)[0], *found(protocol, Quiet)), tile_cnt=5)
    assert [change.kind for change in answer.mends[0].changes] == ["insert", "insert"]
    assert answer.tried.pairs > 0


def test_no_handshake_at_all() -> None:
    protocol = ring_all_to_all()
    bare = without(protocol, *found(protocol, SetFlag), *found(protocol, WaitFlag, Role.AIC))
    answer = minimize(bare, tile_cnt=5)
    assert answer.mends[0].changes[0].kind == "insert a flag"


def test_what_is_hidden_by_a_violation_is_open() -> None:
    answer = minimize(moved_wait(ring_all_to_all()), tile_cnt=5)
    (barrier,) = (need for need in answer.needs if need.numbers == [0])
    assert barrier.verdict == "open"
    assert barrier.reason is not None


def test_the_same_answer_twice() -> None:
    faulty = early_set(ring_all_to_all())
    assert minimize(faulty).to_json() == minimize(faulty).to_json()


def test_bad_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="tile_count"):
        mc2proof.minimize(ring_all_to_all(), settings={"tile_count": 3})
    with pytest.raises(ParameterError, match="ranks"):
        minimize(ring_all_to_all(), ranks=0)
