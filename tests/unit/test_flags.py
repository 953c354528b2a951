"""Wiring: who must set with whom, and whose counter rises, for every mode, role and core ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.errors import UnsupportedError
from mc2proof.protocol.flags import Channel, Counter, Raise, Wiring, counter_of
from mc2proof.protocol.instance import Instance, Kind
from mc2proof.protocol.profile import ASCEND950, ATLAS_A2
from mc2proof.protocol.program import Pipe, Role
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.sync import synchronise
from mc2proof.protocol.unroll import unroll

Start = Callable[..., ProtocolBuilder]

PIPES = {Role.AIV: Pipe.MTE3, Role.AIC: Pipe.FIX}


def one_set(
    start: Start, role: Role, mode: int, flag: int = 3, *, ratio: int = 1, ranks: int = 1, blocks: int = 1
) -> Instance:
    """Every core of ``role`` sets ``flag`` once."""
    p = start(vectors_per_cube=ratio)
    p.role(role).set_flag(PIPES[role], flag, mode=mode)
    return unroll(p.build(), {"ranks": ranks, "blocks": blocks})


def raised(instance: Instance) -> dict[str, tuple[list[str], list[tuple[str, int, str]]]]:
    """For every core that sets: the setters of its channel, and the counters that rise."""
    wiring = Wiring(instance)
    names = [str(core.id) for core in instance.cores]
    found = {}
    for number, core in enumerate(instance.cores):
        for event in core.events:
            if event.kind is Kind.SET_FLAG:
                channel, counters = wiring.raised_by(number, event)
                assert channel.mode == event.mode
                found[names[number]] = (
                    [names[setter] for setter in channel.setters],
                    [(names[c.core], c.flag, c.space) for c in counters],
                )
    return found


def aiv(rank: int = 0, block: int = 0, sub: int = 0) -> str:
    return f"rank {rank} AIV block {block}" + (f".{sub}" if sub else "")


def aic(rank: int = 0, block: int = 0) -> str:
    return f"rank {rank} AIC block {block}"


# --- mode 0: all cores of the role on the rank ------------------------------------------------


@pytest.mark.parametrize("ratio", [1, 2])
def test_mode_0_of_aivs(start: Start, ratio: int) -> None:
    found = raised(one_set(start, Role.AIV, 0, ratio=ratio, ranks=2, blocks=2))
    for rank in range(2):
        all_of_rank = [aiv(rank, block, sub) for block in range(2) for sub in range(ratio)]
        for core in all_of_rank:
            assert found[core] == (all_of_rank, [(receiver, 3, "") for receiver in all_of_rank])
    assert len(found) == 4 * ratio


@pytest.mark.parametrize("ratio", [1, 2])
def test_mode_0_of_aics(start: Start, ratio: int) -> None:
    found = raised(one_set(start, Role.AIC, 0, ratio=ratio, ranks=2, blocks=2))
    for rank in range(2):
        all_of_rank = [aic(rank, block) for block in range(2)]
        for core in all_of_rank:
            assert found[core] == (all_of_rank, [(receiver, 3, "") for receiver in all_of_rank])
    assert len(found) == 4


# --- mode 1: the AIVs of one AI core ----------------------------------------------------------


@pytest.mark.parametrize("ratio", [1, 2])
def test_mode_1(start: Start, ratio: int) -> None:
    found = raised(one_set(start, Role.AIV, 1, ratio=ratio, ranks=2, blocks=2))
    for rank, block in ((0, 0), (0, 1), (1, 0), (1, 1)):
        mates = [aiv(rank, block, sub) for sub in range(ratio)]
        for core in mates:
            assert found[core] == (mates, [(receiver, 3, "") for receiver in mates])


def test_mode_1_is_not_for_aics(start: Start) -> None:
    with pytest.raises(UnsupportedError, match="mode 1 on an AIC: it is for the AIVs of one core"):
        one_set(start, Role.AIC, 1)


# --- mode 2: an AIC and the AIVs of its AI core -----------------------------------------------


@pytest.mark.parametrize("ratio", [1, 2])
def test_mode_2_of_aivs_needs_all_of_them(start: Start, ratio: int) -> None:
    found = raised(one_set(start, Role.AIV, 2, ratio=ratio, ranks=2, blocks=2))
    for rank, block in ((0, 0), (0, 1), (1, 0), (1, 1)):
        mates = [aiv(rank, block, sub) for sub in range(ratio)]
        for core in mates:
            assert found[core] == (mates, [(aic(rank, block), 3, "")])


@pytest.mark.parametrize("ratio", [1, 2])
def test_mode_2_of_an_aic_raises_every_aiv(start: Start, ratio: int) -> None:
    found = raised(one_set(start, Role.AIC, 2, ratio=ratio, ranks=2, blocks=2))
    for rank, block in ((0, 0), (0, 1), (1, 0), (1, 1)):
        mates = [aiv(rank, block, sub) for sub in range(ratio)]
        assert found[aic(rank, block)] == ([aic(rank, block)], [(core, 3, "") for core in mates])


# --- mode 4: one AIV and the AIC --------------------------------------------------------------


def test_mode_4_of_aivs(start: Start) -> None:
    found = raised(one_set(start, Role.AIV, 4, ratio=2, ranks=2, blocks=2))
    for rank, block in ((0, 0), (0, 1), (1, 0), (1, 1)):
        for sub in range(2):
            core = aiv(rank, block, sub)
            assert found[core] == ([core], [(aic(rank, block), 3 + 16 * sub, "mode 4")])


@pytest.mark.parametrize(("flag", "sub", "counter"), [(3, 0, 3), (15, 0, 15), (16, 1, 0), (19, 1, 3)])
def test_mode_4_of_an_aic(start: Start, flag: int, sub: int, counter: int) -> None:
    found = raised(one_set(start, Role.AIC, 4, flag, ratio=2, blocks=2))
    for block in range(2):
        assert found[aic(0, block)] == ([aic(0, block)], [(aiv(0, block, sub), counter, "mode 4")])


def test_mode_4_both_ways_meets_the_wait_of_the_partner(start: Start) -> None:
    """AIV 1's id 3 is the AIC's id 19, whoever sets."""
    p = start(vectors_per_cube=2)
    vector, cube = p.role(Role.AIV), p.role(Role.AIC)
    with vector.when(p.sub.eq(1)):
        vector.set_flag(Pipe.MTE3, 3, mode=4)
        vector.wait_flag(Pipe.V, 5, mode=4)
    cube.wait_flag(Pipe.MTE2, 19, mode=4)
    cube.set_flag(Pipe.FIX, 21, mode=4)
    sync = synchronise(unroll(p.build(), {"ranks": 1, "blocks": 1}))
    assert sync.undetermined is None
    assert len(sync.released_by) == 2
    assert all(setters is not None for setters in sync.released_by.values())


@pytest.mark.parametrize(
    ("ratio", "setup", "message"),
    [(1, Setup(), "mode 4, which needs two AIVs per AIC"), (2, Setup(ATLAS_A2), "mode 4 on atlas-a2, which")],
)
def test_where_there_is_no_mode_4(start: Start, ratio: int, setup: Setup, message: str) -> None:
    p = start(vectors_per_cube=ratio)
    p.role(Role.AIV).wait_flag(Pipe.MTE3, 0, mode=4)
    with pytest.raises(UnsupportedError, match=message):
        unroll(p.build(), {"ranks": 1, "blocks": 1}, setup)


@pytest.mark.parametrize("mode", [3, 5, 255])
def test_modes_that_there_are_not(start: Start, mode: int) -> None:
    with pytest.raises(UnsupportedError, match=f"mode {mode}, which the documents do not have"):
        one_set(start, Role.AIV, mode)


# --- counters ---------------------------------------------------------------------------------


def test_modes_0_1_and_2_share_a_counter_and_mode_4_has_its_own(start: Start) -> None:
    p = start(vectors_per_cube=2)
    for mode in (0, 1, 2, 4):
        p.role(Role.AIV).wait_flag(Pipe.MTE3, 7, mode=mode)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    counters = [counter_of(instance, 0, event) for event in instance.cores[0].events[:4]]
    assert counters == [Counter(0, 7), Counter(0, 7), Counter(0, 7), Counter(0, 7, "mode 4")]
    assert not any(counter.is_event for counter in counters)


def test_an_event_has_a_counter_of_its_pipes(start: Start) -> None:
    p = start()
    p.role(Role.AIV).set_event(Pipe.MTE2, Pipe.V, 7)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    counter = counter_of(instance, 0, instance.cores[0].events[0])
    assert counter == Counter(0, 7, "MTE2_V")
    assert counter.is_event


@pytest.mark.parametrize("mode", [0, 1, 2, 4])
@pytest.mark.parametrize("cleared", [False, True])
def test_counters_carry_over_unless_they_are_cleared(start: Start, mode: int, cleared: bool) -> None:
    p = start(vectors_per_cube=2)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1, mode=mode)
    p.role(Role.AIV).wait_flag(Pipe.MTE2, 1, mode=mode)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=3, flags_cleared=cleared))
    wiring = Wiring(instance)
    events = instance.cores[0].events
    sets = [wiring.raised_by(0, e).counters[0].launch for e in events if e.kind is Kind.SET_FLAG]
    waits = [counter_of(instance, 0, e).launch for e in events if e.kind is Kind.WAIT_FLAG]
    assert sets == waits == ([0, 1, 2] if cleared else [0, 0, 0])


def test_sets_of_one_mode_and_group_are_one_channel(start: Start) -> None:
    """Two modes on one counter are two channels: which of them a wait sees is left to the timing."""
    p = start(vectors_per_cube=2)
    for mode in (0, 1):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1, mode=mode)
    p.role(Role.AIV).wait_flag(Pipe.MTE2, 1, mode=0)
    p.role(Role.AIV).wait_flag(Pipe.MTE2, 1, mode=1)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    wiring = Wiring(instance)
    first, second = (wiring.raised_by(0, e) for e in instance.cores[0].events[:2])
    assert first == Raise(Channel(0, (0, 1)), (Counter(0, 1), Counter(1, 1)))
    assert second == Raise(Channel(1, (0, 1)), (Counter(0, 1), Counter(1, 1)))
    assert synchronise(instance).undetermined is not None


def test_joint_sets_rise_together(start: Start) -> None:
    p = start(vectors_per_cube=2)
    with p.role(Role.AIV).loop("i", 2 + p.sub):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    sync = synchronise(instance)
    (counter,) = sync.sets
    rises = sync.rises(counter)
    assert [[(use.core, use.event) for use in rise] for rise in rises] == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    assert list(sync.released_by.values()) == [tuple(use.point for use in rise) for rise in rises]
    assert sync.undetermined is None


def test_a_receiver_without_program_has_a_counter_too(start: Start) -> None:
    found = raised(one_set(start, Role.AIV, 2, ratio=2))
    assert found[aiv()][1] == [(aic(), 3, "")]


@pytest.mark.parametrize("merges", [False, True])
def test_sets_without_a_wait_that_may_be_lost_need_an_order(start: Start, merges: bool) -> None:
    """A counter raised through two channels has none: the engines for that case must be asked."""
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIC).set_flag(Pipe.FIX, 0, mode=0)
    setup = Setup(replace(ASCEND950, name="merging", flags_merge=merges))
    sync = synchronise(unroll(p.build(), {"ranks": 1, "blocks": 1}, setup))
    assert (sync.undetermined is not None) is merges
    report = prove_protocols([p.build()], {"ranks": 1, "blocks": 1}, setup, cross_check=True)
    codes = {f.code for r in report.results for f in r.findings if r.property == "flag-range"}
    assert codes == ({"flag-merged"} if merges else set())
