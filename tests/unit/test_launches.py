"""Launches, and what the Machine does with them, with joint sets, merging flags and quiets that give up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Verdict
from mc2proof.fuzz.bases import BASES
from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.errors import LimitError
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.flags import Counter
from mc2proof.protocol.instance import Instance, Kind
from mc2proof.protocol.machine import Action, Machine, Moment, Phase, State
from mc2proof.protocol.profile import ASCEND950, STREAM_ORDER
from mc2proof.protocol.program import Address, Pipe, RegionKind, Role
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.sync import synchronise
from mc2proof.protocol.unroll import Limits, unroll

Start = Callable[..., ProtocolBuilder]

BASE = BASES[min(BASES)]
SMALL = {"ranks": 2, "blocks": 1, "buffer_size": 1, "tile_cnt": 2}
MERGING = replace(ASCEND950, name="merging", flags_merge=True)


def kinds(instance: Instance, core: int = 0) -> list[tuple[str, int]]:
    return [(event.kind.name, event.launch) for event in instance.cores[core].events]


# --- the events of launches -------------------------------------------------------------------


def test_every_launch_has_the_events_of_the_first_and_its_own_end(start: Start) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=3))
    one = ["SET_FLAG", "END", "BARRIER"]
    assert kinds(instance) == [(kind, launch) for launch in range(3) for kind in one][:-1]
    assert [core.events[-1].kind for core in instance.cores] == [Kind.END, Kind.END]


def test_one_launch_has_no_meeting(start: Start) -> None:
    p = start()
    p.role(Role.AIV).pipe_barrier()
    instance = unroll(p.build(), {"ranks": 2, "blocks": 1})
    assert kinds(instance) == [("PIPE_BARRIER", 0), ("END", 0)]
    assert instance.assemblies == {}


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_cores_of_a_rank_meet_between_launches(start: Start, ranks: int) -> None:
    p = start(vectors_per_cube=2)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    instance = unroll(p.build(), {"ranks": ranks, "blocks": 2}, Setup(launches=2))
    between = {name: a for name, a in instance.assemblies.items() if a.form is STREAM_ORDER}
    assert list(between) == [f"launch of rank {rank}" for rank in range(ranks)]
    assert instance.barriers() == {}
    for rank, assembly in enumerate(between.values()):
        members = [instance.cores[member].id for member in assembly.members]
        assert len(members) == 6  # 2 blocks of 2 AIVs and an AIC
        assert {core.rank for core in members} == {rank}
    meetings = [m for m in synchronise(instance).meetings if m.function in between]
    assert [(m.turn, len(m.points), m.complete) for m in meetings] == [(0, 6, True)] * ranks


def test_a_role_without_program_ends_in_every_launch(start: Start) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)  # speaks to the AIC, which has no program
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=2))
    assert kinds(instance, 1) == [("END", 0), ("BARRIER", 0), ("END", 1)]
    assert kinds(unroll(p.build(), {"ranks": 1, "blocks": 1}), 1) == [("END", 0)]


def test_after_points_into_its_own_launch(start: Start) -> None:
    p = start()
    a, c = p.region("a", RegionKind.INPUT), p.region("c", RegionKind.OUTPUT)
    p.role(Role.AIC).wait_event(Pipe.FIX, Pipe.M, 0)
    p.role(Role.AIC).compute(
        "matmul", "s", 2,
        reads=[window(Address(a, segment_index("s")), 1)], writes=[window(Address(c, as_expr(0)), 1)],
    )  # fmt: skip
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=3))
    (core,) = instance.cores
    writes = [event for event in core.events if event.kind is Kind.WRITE]
    assert [event.after for event in writes] == [(2,), (8,), (14,)]
    for event in writes:
        before = core.events[event.after[0]]
        assert (before.kind, before.launch) == (Kind.READ, event.launch)


def test_the_number_of_the_launch_in_the_program(start: Start) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", p.launch + 1):
        p.role(Role.AIV).set_flag(Pipe.MTE3, p.launch * 3)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=3))
    flags = [(e.launch, e.flag) for e in instance.cores[0].events if e.kind is Kind.SET_FLAG]
    assert flags == [(0, 0), (1, 3), (1, 3), (2, 6), (2, 6), (2, 6)]
    once = unroll(p.build(), {"ranks": 1, "blocks": 1})
    assert [e.flag for e in once.cores[0].events if e.kind is Kind.SET_FLAG] == [0]


def test_launches_multiply_the_events_of_every_base() -> None:
    for base in BASES.values():
        one, three = (unroll(base, SMALL, Setup(launches=n)) for n in (1, 3))
        for a, b in zip(one.cores, three.cores, strict=True):
            assert len(b.events) == 3 * len(a.events) + 2
            assert {event.launch for event in b.events} == {0, 1, 2}
        assert three.absent == one.absent
        assert three.signature() != one.signature()


@pytest.mark.parametrize("launches", [1, 2, 4])
def test_the_predicted_size_is_a_bound(launches: int) -> None:
    for base in BASES.values():
        instance = unroll(base, SMALL, Setup(launches=launches))
        with pytest.raises(LimitError):
            unroll(
                base, SMALL, Setup(launches=launches), limits=Limits(max_events=instance.event_count() - 1)
            )


def test_the_predicted_size_counts_the_number_of_the_launch(start: Start) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", (p.launch + 1) * 10):
        p.role(Role.AIV).pipe_barrier()
    setup = Setup(launches=3)
    count = unroll(p.build(), {"ranks": 1, "blocks": 1}, setup).event_count()
    assert count == 10 + 20 + 30 + 3 + 2
    with pytest.raises(LimitError):
        unroll(p.build(), {"ranks": 1, "blocks": 1}, setup, limits=Limits(max_events=count - 1))


# --- the Machine ------------------------------------------------------------------------------


def reachable(machine: Machine) -> Iterator[tuple[State, list[Action]]]:
    """Every reachable state with what can happen in it."""
    todo = [machine.initial()]
    seen = set(todo)
    while todo:
        state = todo.pop()
        actions = machine.enabled(state)
        yield state, actions
        for action in actions:
            after = machine.step(state, action)
            if after not in seen:
                seen.add(after)
                todo.append(after)


def possible(instance: Instance, first: Moment, without: Moment) -> bool:
    """Whether ``first`` can happen while ``without`` has not."""
    machine = Machine(instance)
    todo = [machine.initial()]
    seen = set(todo)
    while todo:
        state = todo.pop()
        for action in machine.enabled(state):
            moments = machine.points(state, action)
            if without in moments:
                continue
            if first in moments:
                return True
            after = machine.step(state, action)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return False


def begins(instance: Instance, core: int, kind: Kind) -> list[Moment]:
    events = instance.cores[core].events
    return [Moment(core, number, Phase.BEGIN) for number, event in enumerate(events) if event.kind is kind]


def test_a_launch_begins_when_the_last_one_of_the_rank_has_ended(start: Start) -> None:
    p = start()
    p.role(Role.AIV).pipe_barrier(Pipe.V)
    p.role(Role.AIC).write(Pipe.FIX, window(Address(p.region("c", RegionKind.OUTPUT), as_expr(0)), 1))
    instance = unroll(p.build(), {"ranks": 2, "blocks": 1}, Setup(launches=2))
    aiv, aic, other_aic = 0, 1, 3
    ends = {core: begins(instance, core, Kind.END) for core in (aiv, aic, other_aic)}
    for core, earlier in ((aiv, aic), (aic, aiv)):
        assert not possible(instance, ends[core][1], ends[earlier][0])
    # nothing orders launches of two ranks
    assert possible(instance, ends[aiv][1], ends[other_aic][0])
    assert possible(instance, ends[aiv][1], begins(instance, other_aic, Kind.WRITE)[0])
    for first, second in pairwise(begins(instance, aic, Kind.WRITE)):
        assert not possible(instance, second, Moment(aic, first.event, Phase.END))


@pytest.mark.parametrize("cleared", [False, True])
def test_what_a_launch_leaves_in_a_counter(start: Start, cleared: bool) -> None:
    """Each launch sets twice and waits once."""
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(launches=2, flags_cleared=cleared))
    machine = Machine(instance)
    for state, actions in reachable(machine):
        if not actions:
            assert machine.finished(state)
            left = [machine.counter_value(state, Counter(1, 1, "", launch)) for launch in (0, 1)]
            assert left == ([1, 1] if cleared else [2, 0])


@pytest.mark.parametrize("cleared", [False, True])
def test_a_wait_may_take_the_set_of_an_earlier_launch(start: Start, cleared: bool) -> None:
    p = start()
    vector, cube = p.role(Role.AIV), p.role(Role.AIC)
    with vector.when(p.launch.eq(0)):
        vector.set_flag(Pipe.MTE3, 1)
    with cube.when(p.launch.eq(1)):
        cube.wait_flag(Pipe.MTE2, 1)
    setup = Setup(launches=2, flags_cleared=cleared)
    machine = Machine(unroll(p.build(), {"ranks": 1, "blocks": 1}, setup))
    finished = [machine.finished(state) for state, actions in reachable(machine) if not actions]
    assert set(finished) == {not cleared}
    report = prove_protocols([p.build()], {"ranks": 1, "blocks": 1}, setup)
    verdicts = {r.property: r.verdict for r in report.results}
    expected = Verdict.VIOLATED if cleared else Verdict.PROVED
    assert verdicts["deadlock-freedom"] is expected
    assert verdicts["flag-balance"] is expected


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_joint_sets_rise_when_the_last_has_taken_effect(start: Start, mode: int) -> None:
    p = start(vectors_per_cube=2)
    vector = p.role(Role.AIV)
    vector.set_flag(Pipe.MTE3, 1, mode=mode)
    waiter = p.role(Role.AIC) if mode == 2 else vector
    waiter.wait_flag(Pipe.MTE2, 1, mode=mode)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    receivers = [2] if mode == 2 else [0, 1]
    for receiver in receivers:
        (wait,) = begins(instance, receiver, Kind.WAIT_FLAG)
        for setter in (0, 1):
            (effect,) = begins(instance, setter, Kind.SET_FLAG)
            assert not possible(instance, wait, effect)
    machine = Machine(instance)
    assert all(machine.finished(state) for state, actions in reachable(machine) if not actions)


def test_a_set_without_its_mates_raises_nothing(start: Start) -> None:
    p = start(vectors_per_cube=2)
    with p.role(Role.AIV).when(p.sub.eq(0)):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    machine = Machine(unroll(p.build(), {"ranks": 1, "blocks": 1}))
    assert all(machine.counter_value(state, Counter(2, 1)) == 0 for state, _ in reachable(machine))
    assert not any(machine.finished(state) for state, _ in reachable(machine))


def test_one_aiv_may_be_a_set_ahead(start: Start) -> None:
    """Two sets of one AIV and two of the other are two events in whatever order they take effect."""
    p = start(vectors_per_cube=2)
    for _ in range(2):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    machine = Machine(unroll(p.build(), {"ranks": 1, "blocks": 1}))
    values = {machine.counter_value(s, Counter(2, 1)) for s, _ in reachable(machine)}
    last = {machine.counter_value(s, Counter(2, 1)) for s, actions in reachable(machine) if not actions}
    assert values == {0, 1, 2}
    assert last == {2}


@pytest.mark.parametrize("merges", [False, True])
def test_a_set_of_a_flag_that_nobody_took_is_lost_where_flags_merge(start: Start, merges: bool) -> None:
    p = start()
    for _ in range(2):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
        p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
    machine = Machine(unroll(p.build(), {"ranks": 1, "blocks": 1}, Setup(MERGING if merges else ASCEND950)))
    ends = {machine.finished(state) for state, actions in reachable(machine) if not actions}
    highest = max(machine.counter_value(state, Counter(1, 1)) for state, _ in reachable(machine))
    assert ends == ({True, False} if merges else {True})
    assert highest == (1 if merges else 2)
    lost = any(machine.has_passed(state, Counter(1, 1), 15) for state, _ in reachable(machine))
    assert lost is merges


@pytest.mark.parametrize(("mode", "finished"), [(4, True), (2, False)])
def test_a_set_on_the_scalar_pipe_is_of_mode_4_only(start: Start, mode: int, finished: bool) -> None:
    p = start(vectors_per_cube=2)
    p.role(Role.AIV).set_flag(Pipe.S, 1, mode=mode)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1, mode=mode)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    assert bool(instance.absent) is not finished
    machine = Machine(instance)
    assert {machine.finished(s) for s, actions in reachable(machine) if not actions} == {finished}


def test_a_set_on_the_scalar_pipe_waits_for_earlier_scalar_instructions_only(start: Start) -> None:
    p = start(vectors_per_cube=2)
    vector = p.role(Role.AIV)
    scratch = Address(p.region("scratch", RegionKind.PRIVATE), as_expr(0))
    vector.write(Pipe.MTE3, window(scratch, 1))
    vector.write(Pipe.S, window(scratch, 1))
    vector.set_flag(Pipe.S, 1, mode=4)
    vector.write(Pipe.S, window(scratch, 1))
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 1, mode=4)
    instance = unroll(p.build(), {"ranks": 1, "blocks": 1})
    on_mte3, before, after = begins(instance, 0, Kind.WRITE)
    (effect,) = begins(instance, 0, Kind.SET_FLAG)
    assert not possible(instance, effect, Moment(0, before.event, Phase.END))
    assert possible(instance, effect, on_mte3)
    assert possible(instance, effect, after)
    assert possible(instance, after, effect)  # it takes effect late


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_quiet_that_gives_up_waits_for_nothing(start: Start, gives_up: bool) -> None:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)
    vector = p.role(Role.AIV)
    vector.put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    vector.quiet(1 - p.rank)
    faults = frozenset({Injected.QUIET_TIMEOUT} if gives_up else ())
    instance = unroll(p.build(), {"ranks": 2, "blocks": 1}, Setup(faults=faults))
    (quiet,) = begins(instance, 0, Kind.QUIET)
    (put,) = begins(instance, 0, Kind.PUT)
    assert possible(instance, quiet, Moment(0, put.event, Phase.END)) is gives_up
    assert bool(synchronise(instance).quiets) is not gives_up
    report = prove_protocols([p.build()], {"ranks": 2, "blocks": 1}, Setup(faults=faults), cross_check=True)
    verdicts = {r.property: r.verdict for r in report.results}
    assert verdicts["completion"] is (Verdict.VIOLATED if gives_up else Verdict.PROVED)
