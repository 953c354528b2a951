"""The Machine rule by rule: what can happen before what, over all reachable states of small protocols.

Each rule is tested both ways: what it forbids never happens, what it allows does.
"""

from collections.abc import Callable
from random import Random

import pytest

from mc2proof.fuzz.mutations import Mutant
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.instance import Instance, Kind
from mc2proof.protocol.machine import Action, ActionKind, Machine, Moment, Phase, State
from mc2proof.protocol.profile import ASCEND950, ATLAS_A2, BarrierAll, Profile
from mc2proof.protocol.program import Address, Pipe, RegionKind, Role
from mc2proof.protocol.sync import Counter

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]
Point = tuple[int, int, Phase]

BEGIN, END = Phase.BEGIN, Phase.END
AIV, AIC = 0, 1  # core numbers of rank 0 where both roles have a program


def possible(instance: Instance, first: Point, without: Point, *, halves: bool = True) -> bool:
    """Whether ``first`` can happen while ``without`` has not."""
    machine = Machine(instance, halves=halves)
    wanted, excluded = Moment(*first), Moment(*without)
    todo = [machine.initial()]
    seen = set(todo)
    while todo:
        state = todo.pop()
        for action in machine.enabled(state):
            moments = machine.points(state, action)
            if excluded in moments:
                continue
            if wanted in moments:
                return True
            after = machine.step(state, action)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return False


def run_out(machine: Machine, seed: int = 0) -> State:
    """The state after some run that goes on as long as it can."""
    random, state = Random(seed), machine.initial()
    while actions := machine.enabled(state):
        state = machine.step(state, random.choice(actions))
    return state


def memory(p: ProtocolBuilder) -> Address:
    return Address(p.region("scratch", RegionKind.PRIVATE, 64), as_expr(0))


# --- pipes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "overtakes"), [(Pipe.MTE3, False), (Pipe.V, True)])
def test_a_pipe_is_in_order_and_others_are_not_ordered_with_it(
    start: Start, instantiate: Instantiate, second: Pipe, overtakes: bool
) -> None:
    p = start()
    a = memory(p)
    p.role(Role.AIV).write(Pipe.MTE3, window(a, 8))
    p.role(Role.AIV).write(second, window(a, 8))
    instance = instantiate(p.build())
    assert possible(instance, (AIV, 1, BEGIN), (AIV, 0, END)) is overtakes
    assert possible(instance, (AIV, 1, END), (AIV, 0, BEGIN)) is overtakes
    assert possible(instance, (AIV, 0, END), (AIV, 1, BEGIN))


def test_a_scalar_instruction_finishes_before_later_ones_are_issued(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    p.role(Role.AIV).wait_flag(Pipe.S, 0)
    p.role(Role.AIV).write(Pipe.V, window(memory(p), 8))
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    instance = instantiate(p.build())
    assert not possible(instance, (AIV, 1, BEGIN), (AIV, 0, END))
    assert possible(instance, (AIV, 1, BEGIN), (AIC, 1, END))


@pytest.mark.parametrize(("barrier", "holds"), [(Pipe.ALL, True), (Pipe.V, False), (Pipe.MTE3, False)])
def test_a_pipe_barrier_holds_the_scalar_only_for_all(
    start: Start, instantiate: Instantiate, barrier: Pipe, holds: bool
) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    a = memory(p)
    aiv.write(Pipe.MTE3, window(a, 8))
    aiv.pipe_barrier(barrier)
    aiv.write(Pipe.V, window(a, 8))
    assert possible(instantiate(p.build()), (AIV, 2, BEGIN), (AIV, 0, END)) is not holds


def test_a_core_ends_when_all_its_pipes_are_empty(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    a = memory(p)
    for pipe in (Pipe.MTE2, Pipe.V, Pipe.MTE3):
        aiv.write(pipe, window(a, 8))
    instance = instantiate(p.build())
    for event in range(3):
        assert not possible(instance, (AIV, 3, END), (AIV, event, END))


# --- events -----------------------------------------------------------------------------------


def test_an_event_orders_its_two_pipes_and_no_other(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    a = memory(p)
    aiv.read(Pipe.MTE2, window(a, 8))
    aiv.set_event(Pipe.MTE2, Pipe.V, 0)
    aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
    aiv.write(Pipe.V, window(a, 8))
    aiv.write(Pipe.MTE3, window(a, 8))
    aiv.read(Pipe.MTE2, window(a, 8))
    instance = instantiate(p.build())
    assert not possible(instance, (AIV, 3, BEGIN), (AIV, 0, END))
    assert not possible(instance, (AIV, 3, BEGIN), (AIV, 1, END))
    assert possible(instance, (AIV, 4, END), (AIV, 0, BEGIN))
    assert possible(instance, (AIV, 5, END), (AIV, 2, END))


def test_a_wait_clears_its_event(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    aiv.set_event(Pipe.MTE2, Pipe.V, 0)
    aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
    aiv.wait_event(Pipe.MTE2, Pipe.V, 0)
    machine = Machine(instantiate(p.build()))
    state = run_out(machine)
    assert not machine.finished(state)
    assert machine.counter_value(state, Counter(0, 0, "MTE2_V")) == 0
    assert list(machine.waiting(state)) == [(0, 3), (0, 2)]


def test_events_of_different_pipe_pairs_do_not_alias(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_event(Pipe.MTE2, Pipe.V, 0)
    p.role(Role.AIV).wait_event(Pipe.MTE3, Pipe.V, 0)
    machine = Machine(instantiate(p.build()))
    assert not machine.finished(run_out(machine))


# --- cross-core flags -------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "holds_all"), [(ASCEND950, False), (ATLAS_A2, True)])
def test_what_a_waiting_flag_holds(
    start: Start, instantiate: Instantiate, profile: Profile, holds_all: bool
) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    a = memory(p)
    aiv.wait_flag(Pipe.MTE3, 0)
    aiv.write(Pipe.MTE3, window(a, 8))
    aiv.write(Pipe.V, window(a, 8))
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    instance = instantiate(p.build(), profile=profile)
    assert not possible(instance, (AIV, 1, BEGIN), (AIV, 0, END))
    assert possible(instance, (AIV, 2, BEGIN), (AIV, 0, END)) is not holds_all


def test_a_wait_takes_one_and_blocks_at_zero(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    for _ in range(2):
        p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    machine = Machine(instantiate(p.build()))
    assert list(machine.waiting(run_out(machine)))[-1] == (AIC, 1)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    machine = Machine(instantiate(p.build()))
    state = run_out(machine)
    assert machine.finished(state)
    assert machine.counter_value(state, Counter(AIC, 0)) == 0


def test_a_set_raises_the_counter_of_the_other_core_of_its_block(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    with p.role(Role.AIV).when(p.rank.eq(1)):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 5)
    with p.role(Role.AIC).when(p.rank.eq(0)):
        p.role(Role.AIC).set_flag(Pipe.FIX, 5)
    instance = instantiate(p.build(), ranks=2, blocks=2)
    machine = Machine(instance)
    state = run_out(machine)
    raised = {c for c in range(8) if machine.counter_value(state, Counter(c, 5))}
    assert {str(instance.cores[c].id) for c in raised} == {
        "rank 0 AIV block 0", "rank 0 AIV block 1", "rank 1 AIC block 0", "rank 1 AIC block 1"
    }  # fmt: skip


def test_a_set_takes_effect_late(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    a = memory(p)
    aiv.write(Pipe.MTE3, window(a, 8))
    aiv.set_flag(Pipe.MTE3, 0)
    aiv.set_flag(Pipe.MTE3, 1)
    aiv.write(Pipe.MTE3, window(a, 8))
    aiv.pipe_barrier()
    instance = instantiate(p.build())
    assert not possible(instance, (AIV, 1, END), (AIV, 0, END))
    assert possible(instance, (AIV, 2, END), (AIV, 1, END))  # in any order
    assert possible(instance, (AIV, 3, END), (AIV, 1, END))  # nothing waits for it
    assert possible(instance, (AIV, 4, END), (AIV, 1, END))  # not even PIPE_ALL
    assert possible(instance, (AIV, 5, END), (AIV, 2, END))


def test_a_set_waits_for_its_own_pipe_only(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a = memory(p)
    p.role(Role.AIV).write(Pipe.V, window(a, 8))
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    assert possible(instantiate(p.build()), (AIV, 1, END), (AIV, 0, BEGIN))


# --- barriers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("reading", "drains"), [(BarrierAll.VEC, True), (BarrierAll.SOFT, False)])
def test_only_the_hard_barriers_drain_the_pipes(
    start: Start, instantiate: Instantiate, reading: BarrierAll, drains: bool
) -> None:
    p = start()
    p.role(Role.AIV).write(Pipe.MTE3, window(memory(p), 8))
    p.role(Role.AIV).barrier()
    instance = instantiate(p.build(), ranks=2, barrier_all=reading)
    for core in (0, 1):  # of the caller itself, and of every other
        assert possible(instance, (0, 1, END), (core, 0, END)) is not drains


def test_a_barrier_meets_all_ranks_at_once(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    machine = Machine(instantiate(p.build(), ranks=3))
    state = machine.initial()
    assert machine.enabled(state) == [Action(ActionKind.MEET, 0)]
    moments = machine.points(state, Action(ActionKind.MEET, 0))
    assert {m.core for m in moments} == {0, 1, 2}
    assert all(machine.enabled(machine.step(state, Action(ActionKind.MEET, 0))))


def test_a_barrier_waits_for_a_rank_that_is_late(start: Start, instantiate: Instantiate) -> None:
    p = start()
    with p.role(Role.AIV).when(p.rank.eq(1)):
        p.role(Role.AIV).wait_flag(Pipe.S, 0)
    p.role(Role.AIV).barrier()
    machine = Machine(instantiate(p.build(), ranks=2))
    state = run_out(machine)
    assert not machine.finished(state)
    assert [m.kind for m in machine.enabled(state)] == []
    assert (0, 0) in machine.waiting(state)


@pytest.mark.parametrize(
    ("reading", "ends"), [(BarrierAll.VEC, True), (BarrierAll.MIX, False), (BarrierAll.SOFT, True)]
)
def test_only_the_mixed_barrier_needs_the_cubes(
    start: Start, instantiate: Instantiate, reading: BarrierAll, ends: bool
) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIC).pipe_barrier()
    machine = Machine(instantiate(p.build(), barrier_all=reading))
    assert machine.finished(run_out(machine)) is ends


# --- puts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("staging", "held"), [(Pipe.MTE3, True), (Pipe.S, False)])
def test_a_pending_wait_on_the_staging_pipe_holds_a_put(
    start: Start, instantiate: Instantiate, staging: Pipe, held: bool
) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    with p.role(Role.AIV).when(p.rank.eq(0)):
        p.role(Role.AIV).wait_flag(Pipe.MTE3, 0)
        p.role(Role.AIV).put(1, heap, heap, 8, staging=staging)
    instance = instantiate(p.build(), ranks=2)
    assert possible(instance, (0, 1, BEGIN), (0, 0, END)) is not held


def put_and_quiet(start: Start, *, quiet_peer: int = 1) -> ProtocolBuilder:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    with p.role(Role.AIV).when(p.rank.eq(0)):
        p.role(Role.AIV).put(1, heap, heap, 8)
        p.role(Role.AIV).quiet(quiet_peer)
    return p


def test_a_put_is_in_flight_until_it_lands(start: Start, instantiate: Instantiate) -> None:
    p = put_and_quiet(start)
    p.role(Role.AIV).barrier()
    instance = instantiate(p.build(), ranks=2)
    assert not possible(instance, (0, 0, END), (0, 0, BEGIN))
    assert not possible(instance, (0, 1, END), (0, 0, END))
    assert not possible(instance, (1, 0, END), (0, 0, END))


def test_nothing_but_a_quiet_of_its_peer_waits_for_a_put(start: Start, instantiate: Instantiate) -> None:
    p = put_and_quiet(start, quiet_peer=0)
    p.role(Role.AIV).pipe_barrier()
    p.role(Role.AIV).barrier()
    instance = instantiate(p.build(), ranks=2)
    for event in (1, 2, 3, 4):
        assert possible(instance, (0, event, END), (0, 0, END))


def test_a_quiet_waits_for_requests_of_the_other_blocks_of_its_rank(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        with aiv.when(p.block.eq(0)):
            aiv.put(1, heap, heap, 8)
        with aiv.when(p.block.eq(1)):
            aiv.quiet(1)
    machine = Machine(instantiate(p.build(), ranks=2, blocks=2))
    post, quiet = Action(ActionKind.SCALAR, 0), Action(ActionKind.SCALAR, 1)
    assert quiet in machine.enabled(machine.initial())
    posted = machine.step(machine.initial(), post)
    assert quiet not in machine.enabled(posted)
    land = Action(ActionKind.LAND, 0, 0)
    half = machine.step(posted, land)
    assert quiet not in machine.enabled(half)
    assert quiet in machine.enabled(machine.step(half, land))


def test_a_put_lands_in_two_halves(start: Start, instantiate: Instantiate) -> None:
    instance = instantiate(put_and_quiet(start).build(), ranks=2)
    machine, whole = Machine(instance), Machine(instance, halves=False)
    post, land = Action(ActionKind.SCALAR, 0), Action(ActionKind.LAND, 0, 0)
    state = machine.step(machine.initial(), post)
    assert machine.points(state, land) == []
    half = machine.step(state, land)
    assert land in machine.enabled(half)
    assert machine.points(half, land) == [Moment(0, 0, END)]
    assert land not in machine.enabled(machine.step(half, land))
    state = whole.step(whole.initial(), post)
    assert whole.points(state, land) == [Moment(0, 0, END)]
    assert land not in whole.enabled(whole.step(state, land))


# --- computes and points ----------------------------------------------------------------------


def test_a_compute_writes_after_its_last_read(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a = memory(p)
    p.role(Role.AIV).pipe_barrier()
    p.role(Role.AIC).compute("matmul", "s", 2, reads=[window(a, 8)], writes=[window(a, 8)])
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    p.role(Role.AIC).read(Pipe.MTE2, window(a, 8))
    instance = instantiate(p.build())
    assert not possible(instance, (AIC, 2, BEGIN), (AIC, 1, END))
    assert not possible(instance, (AIC, 3, END), (AIC, 2, END))
    assert possible(instance, (AIC, 4, END), (AIC, 2, BEGIN))


def test_the_scalar_reads_over_a_stretch_of_time_too(start: Start, instantiate: Instantiate) -> None:
    p = start()
    a = memory(p)
    p.role(Role.AIV).read(Pipe.S, window(a, 8))
    p.role(Role.AIV).write(Pipe.V, window(a, 8))
    p.role(Role.AIC).write(Pipe.FIX, window(a, 8))
    instance = instantiate(p.build())
    assert possible(instance, (AIC, 0, END), (AIV, 0, END))
    machine = Machine(instance)
    read = Action(ActionKind.SCALAR, AIV)
    begun = machine.step(machine.initial(), read)
    assert machine.points(machine.initial(), read) == [Moment(AIV, 0, BEGIN)]
    assert machine.points(begun, read) == [Moment(AIV, 0, END)]
    assert not possible(instance, (AIV, 1, BEGIN), (AIV, 0, END))


def test_every_point_happens_once_in_a_whole_run(mutants: list[tuple[Mutant, Instance]]) -> None:
    finished = 0
    for number, (_, instance) in enumerate(mutants[:40]):
        machine = Machine(instance)
        random, state = Random(number), machine.initial()
        happened: list[Moment] = []
        while actions := machine.enabled(state):
            action = random.choice(actions)
            assert len(set(actions)) == len(actions)
            happened += machine.points(state, action)
            state = machine.step(state, action)
        assert len(set(happened)) == len(happened)
        if machine.finished(state):
            finished += 1
            expected = {
                Moment(core, event, phase)
                for core, (_, events) in enumerate(instance.cores)
                for event, what in enumerate(events)
                for phase in Phase
                if what.kind is not Kind.PIPE_BARRIER or what.pipe is Pipe.S
            }
            assert set(happened) == expected
    assert finished >= 20


def test_begin_and_end_of_an_instruction_without_duration_are_one_step(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    machine = Machine(instantiate(p.build()))
    effect = Action(ActionKind.EFFECT, 0, 0)
    assert machine.points(machine.initial(), effect) == [Moment(0, 0, BEGIN), Moment(0, 0, END)]


def test_actions_print_as_a_trace_writes_them() -> None:
    actions = [Action(ActionKind.SCALAR, 0), Action(ActionKind.PIPE, 3, 1), Action(ActionKind.LAND, 2, 17)]
    assert [str(a) for a in actions] == ["s0.0", "p3.1", "l2.17"]


def test_equal_states_are_equal_and_hashable(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 1)
    machine = Machine(instantiate(p.build()))
    first, second = Action(ActionKind.EFFECT, 0, 0), Action(ActionKind.EFFECT, 0, 1)
    one = machine.step(machine.step(machine.initial(), first), second)
    other = machine.step(machine.step(machine.initial(), second), first)
    assert one == other
    assert hash(one) == hash(other)
