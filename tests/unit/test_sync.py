"""What is tied together across cores: matching, meetings, queues, and where nothing is fixed."""

from collections.abc import Callable

import pytest

from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import Address, Pipe, RegionKind, Role
from mc2proof.protocol.sync import Counter, Queue, determinate, order_graph, synchronise

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]


def test_the_kth_wait_takes_the_kth_set(start: Start, instantiate: Instantiate) -> None:
    p = start()
    for flag in (0, 1, 0):
        p.role(Role.AIV).set_flag(Pipe.MTE3, flag)
    for flag in (0, 0, 1):
        p.role(Role.AIC).wait_flag(Pipe.MTE2, flag)
    sync = synchronise(instantiate(p.build()))
    assert sync.undetermined is None
    matched = {
        sync.locate(wait)[1]: sync.locate(sets[0])[1]
        for wait, sets in sync.released_by.items()
        if sets is not None
    }
    assert matched == {0: 0, 1: 2, 2: 1}
    assert [u.event for u in sync.sets[Counter(1, 0)]] == [0, 2]
    assert [u.event for u in sync.waits[Counter(1, 0)]] == [0, 1]


def test_ids_that_are_cut_to_the_same_counter_match(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 16)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    sync = synchronise(instantiate(p.build()))
    assert list(sync.released_by.values()) == [(sync.begin(0, 0),)]


def test_a_wait_without_a_set_never_happens(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    for _ in range(2):
        p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    sync = synchronise(instantiate(p.build()))
    assert sync.released_by[sync.begin(1, 1)] is None
    assert order_graph(sync).blocked == {sync.begin(1, 1)}


def test_flags_of_blocks_and_ranks_do_not_mix(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 3)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 3)
    sync = synchronise(instantiate(p.build(), ranks=2, blocks=2))
    ids = [core.id for core in sync.instance.cores]
    assert len(sync.released_by) == 4
    for wait, sets in sync.released_by.items():
        assert sets is not None
        waiter, source = ids[sync.locate(wait)[0]], ids[sync.locate(sets[0])[0]]
        assert (waiter.rank, waiter.block) == (source.rank, source.block)
        assert (waiter.role, source.role) == (Role.AIC, Role.AIV)


# --- where the matching is not fixed ----------------------------------------------------------


def test_a_counter_set_on_two_pipes_is_undetermined(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIV).set_flag(Pipe.V, 0)
    sync = synchronise(instantiate(p.build()))
    assert len(sync.sets[Counter(1, 0)]) == 2
    assert not determinate(sync, Counter(1, 0))
    assert sync.undetermined is None  # nobody waits: nothing depends on it
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    sync = synchronise(instantiate(p.build()))
    assert sync.undetermined == "flag 0 of rank 0 AIC block 0 is set or awaited on several pipes"


def test_a_counter_that_two_pipes_can_take_beyond_its_cap_is_undetermined(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", 8):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
        p.role(Role.AIV).set_flag(Pipe.V, 0)
    assert synchronise(instantiate(p.build())).undetermined is not None


def test_a_counter_awaited_on_two_pipes_is_undetermined(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    p.role(Role.AIC).wait_flag(Pipe.FIX, 0)
    sync = synchronise(instantiate(p.build()))
    assert sync.undetermined == "flag 0 of rank 0 AIC block 0 is set or awaited on several pipes"


def test_two_flags_on_two_pipes_are_determined(start: Start, instantiate: Instantiate) -> None:
    p = start()
    for flag, pipe in ((0, Pipe.MTE3), (1, Pipe.V)):
        p.role(Role.AIV).set_flag(pipe, flag)
        p.role(Role.AIC).wait_flag(Pipe.MTE2, flag)
    assert synchronise(instantiate(p.build())).undetermined is None


@pytest.mark.parametrize(("blocks", "shared"), [(1, False), (2, True)])
def test_a_queue_that_several_cores_use_is_undetermined(
    start: Start, instantiate: Instantiate, blocks: int, shared: bool
) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    p.role(Role.AIV).put(1 - p.rank, heap, heap, 8)
    p.role(Role.AIV).quiet(1 - p.rank)
    sync = synchronise(instantiate(p.build(), ranks=2, blocks=blocks))
    reason = "several cores of rank 0 use the queue to rank 1"
    assert sync.undetermined == (reason if shared else None)
    assert set(sync.puts) == set(sync.quiets) == {Queue(0, 1), Queue(1, 0)}


def test_a_queue_shared_without_a_quiet_is_determined(start: Start, instantiate: Instantiate) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    p.role(Role.AIV).put(1 - p.rank, heap, heap, 8)
    assert synchronise(instantiate(p.build(), ranks=2, blocks=2)).undetermined is None


# --- meetings and quiets ----------------------------------------------------------------------


def test_meetings_pair_the_kth_calls(start: Start, instantiate: Instantiate) -> None:
    p = start()
    aiv = p.role(Role.AIV)
    aiv.barrier()
    with aiv.when(p.rank.eq(0)):
        aiv.barrier()
    sync = synchronise(instantiate(p.build(), ranks=3))
    assert [(m.turn, len(m.points), m.complete) for m in sync.meetings] == [(0, 3, True), (1, 1, False)]
    assert order_graph(sync).blocked == {sync.size + 1}


@pytest.mark.parametrize(
    ("reading", "meetings"),
    [(BarrierAll.MIX, [("mix", True), ("vec", True)]), (BarrierAll.VEC, [("vec", True)] * 2)],
)
def test_two_functions_are_two_barriers_where_their_forms_differ(
    start: Start, instantiate: Instantiate, reading: BarrierAll, meetings: list[tuple[str, bool]]
) -> None:
    p = start()
    names = ("aclshmem_barrier_all", "aclshmemx_barrier_all_vec")
    for rank in (0, 1):
        with p.role(Role.AIV).when(p.rank.eq(rank)):
            for name in names if rank else reversed(names):
                p.role(Role.AIV).barrier(name)
    p.role(Role.AIC).barrier(names[0])
    sync = synchronise(instantiate(p.build(), ranks=2, barrier_all=reading))
    assert [(m.function, m.complete) for m in sync.meetings] == meetings
    assert len(sync.instance.assemblies["vec"].members) == 2
    if reading is BarrierAll.MIX:
        assert len(sync.instance.assemblies["mix"].members) == 4


def test_under_mix_a_cube_that_never_calls_leaves_the_meeting_incomplete(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIC).pipe_barrier()
    sync = synchronise(instantiate(p.build(), barrier_all=BarrierAll.MIX))
    assert [m.complete for m in sync.meetings] == [False]


def test_a_put_is_covered_by_the_next_quiet_of_its_own_core_to_its_peer(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    heap = Address(p.region("heap", RegionKind.SHARED, 64), as_expr(0))
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.quiet(1)
        aiv.put(1, heap, heap, 8)
        aiv.put(2, heap, heap, 8)
        aiv.quiet(2)
        aiv.quiet(1)
        aiv.quiet(1)
        aiv.put(1, heap, heap, 8)
    sync = synchronise(instantiate(p.build(), ranks=3))
    assert sync.covered_by(0, 1) == sync.begin(0, 4)
    assert sync.covered_by(0, 2) == sync.begin(0, 3)
    assert sync.covered_by(0, 6) is None
    before = order_graph(sync).predecessors
    assert sync.end(0, 1) in before[sync.begin(0, 4)]
    assert sync.end(0, 1) not in before[sync.begin(0, 0)]


def test_points_are_located(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIC).set_flag(Pipe.FIX, 1)
    sync = synchronise(instantiate(p.build(), ranks=2))
    for core, (_, events) in enumerate(sync.instance.cores):
        for event in range(len(events)):
            assert sync.locate(sync.begin(core, event)) == (core, event)
            assert sync.event_at(sync.end(core, event)) is events[event]
        assert sync.last(core) == sync.end(core, len(events) - 1)
