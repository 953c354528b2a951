"""Counting: flag balance, ids, barrier calls, coverage; each code once faulty and once safe."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mc2proof.checker.analysis import analyse
from mc2proof.checker.flag_range import collides_with_barrier, flag_range
from mc2proof.checker.report import Severity
from mc2proof.checker.static import Fault, barrier_match, blocks_exceed_cores, coverage, flag_balance
from mc2proof.protocol.builder import ProtocolBuilder, segment_index, window
from mc2proof.protocol.expr import Expr, as_expr
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, ATLAS_A2, BarrierAll, Profile
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.sync import synchronise

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]


def codes(faults: list[Fault] | None) -> list[str]:
    assert faults is not None
    return [f.code for f in faults]


# --- flag-balance -----------------------------------------------------------------------------


def hand_over(start: Start, *, sets: int, waits: int, event: bool = False) -> Protocol:
    p = start()
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    for _ in range(sets):
        if event:
            aiv.set_event(Pipe.MTE2, Pipe.V, 3)
        else:
            aiv.set_flag(Pipe.MTE3, 3)
    for _ in range(waits):
        if event:
            aiv.wait_event(Pipe.MTE2, Pipe.V, 3)
        else:
            aic.wait_flag(Pipe.MTE2, 3)
    return p.build()


@pytest.mark.parametrize("event", [False, True], ids=["flag", "event"])
@pytest.mark.parametrize(
    ("sets", "waits", "expected"),
    [(2, 2, []), (3, 1, ["set-without-wait"]), (1, 2, ["wait-without-set"]), (0, 1, ["wait-without-set"])],
)
def test_flag_balance(
    start: Start, instantiate: Instantiate, event: bool, sets: int, waits: int, expected: list[str]
) -> None:
    sync = synchronise(instantiate(hand_over(start, sets=sets, waits=waits, event=event), ranks=2))
    faults = flag_balance(sync)
    assert codes(faults) == expected
    for fault in faults or []:
        number = abs(sets - waits) * 2
        kind = "event" if event else "flag"
        assert f"{number} {'sets of' if sets > waits else 'waits for'} {kind} 3 by the" in fault.message
        assert "ranks 0, 1" in fault.message
        assert fault.span.line > 0


def test_the_statement_that_is_left_over_is_named(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIV).set_flag(Pipe.V, 0)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    protocol = p.build()
    (fault,) = flag_balance(synchronise(instantiate(protocol))) or []
    assert fault.span == protocol.programs[Role.AIV][1].span


def test_nothing_to_balance(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    sync = synchronise(instantiate(p.build()))
    assert flag_balance(sync) is None
    assert flag_range(sync, strict_ids=False) is None


@pytest.mark.parametrize(
    ("mode", "sets", "waits", "expected"),
    [
        (2, (1, 1), 1, []),
        (2, (2, 1), 1, [("set-without-wait", "1 set of flag 3 by the AIV 0 of rank 0 counts only when")]),
        (2, (3, 1), 1, [("set-without-wait", "2 sets of flag 3 by the AIV 0 of rank 0 count only when")]),
        (2, (2, 2), 1, [("set-without-wait", "1 set of flag 3 by the AIV 0 of rank 0 is never waited for")]),
        (2, (1, 0), 1, [("wait-without-set", "1 wait for flag 3 by the AIC of rank 0 has no set"),
                        ("set-without-wait", "1 set of flag 3 by the AIV 0 of rank 0 counts only when")]),
        (0, (1, 1), 1, []),
        (0, (2, 1), 1, [("set-without-wait", "1 set of flag 3 by the AIV 0 of rank 0 counts only when")]),
        (1, (1, 1), 2, [("wait-without-set", "2 waits for flag 3 by the AIV of rank 0 have no set")]),
    ],
)  # fmt: skip
def test_flags_that_two_aivs_set_together(
    start: Start,
    instantiate: Instantiate,
    mode: int,
    sets: tuple[int, int],
    waits: int,
    expected: list[tuple[str, str]],
) -> None:
    """``sets`` of AIV 0 and of AIV 1; in mode 2 the AIC waits, else each of the AIVs."""
    p = start(vectors_per_cube=2)
    vector = p.role(Role.AIV)
    with vector.loop("i", sets[0] + (sets[1] - sets[0]) * p.sub):
        vector.set_flag(Pipe.MTE3, 3, mode=mode)
    with (p.role(Role.AIC) if mode == 2 else vector).loop("j", waits):
        (p.role(Role.AIC) if mode == 2 else vector).wait_flag(Pipe.MTE2, 3, mode=mode)
    faults = flag_balance(synchronise(instantiate(p.build()))) or []
    assert [fault.code for fault in faults] == [code for code, _ in expected]
    for fault, (_, text) in zip(faults, expected, strict=True):
        assert fault.message.startswith(text)


def test_a_mode_4_flag_is_one_aivs_own(start: Start, instantiate: Instantiate) -> None:
    p = start(vectors_per_cube=2)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 3, mode=4)
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 19, mode=4)
    (fault,) = flag_balance(synchronise(instantiate(p.build()))) or []
    assert fault.message == "1 set of flag 3 by the AIV 0 of rank 0 is never waited for"
    p.role(Role.AIC).wait_flag(Pipe.MTE2, 3, mode=4)
    assert flag_balance(synchronise(instantiate(p.build()))) == []


# --- flag-range -------------------------------------------------------------------------------


def one_flag(start: Start, flag: int, *, from_aiv: bool = True, barrier: bool = False) -> Protocol:
    p = start()
    setter, waiter = (Role.AIV, Role.AIC) if from_aiv else (Role.AIC, Role.AIV)
    if barrier:
        for role in Role:
            p.role(role).barrier()
    p.role(setter).set_flag(Pipe.V if from_aiv else Pipe.FIX, flag)
    p.role(waiter).wait_flag(Pipe.MTE2, flag)
    return p.build()


@pytest.mark.parametrize(
    ("flag", "strict", "expected"),
    [
        (0, True, []), (10, True, []), (11, False, []), (15, False, []),
        (11, True, ["id-not-for-users"] * 2), (16, False, ["id-out-of-range"] * 2),
        (-1, False, ["id-out-of-range"] * 2), (16, True, ["id-out-of-range"] * 2),
    ],
)  # fmt: skip
def test_ids_and_their_domain(
    start: Start, instantiate: Instantiate, flag: int, strict: bool, expected: list[str]
) -> None:
    sync = synchronise(instantiate(one_flag(start, flag)))
    faults = flag_range(sync, strict_ids=strict)
    assert codes(faults) == expected
    if expected and not 0 <= flag < 16:
        assert f"flag {flag & 15} is used" in (faults or [])[0].message


RESERVED = [
    # reading, id, set by the AIV, what it is on the core that holds the counter, elsewhere
    (BarrierAll.VEC, 14, False, "id-reserved"),
    (BarrierAll.VEC, 14, True, "id-reserved-elsewhere"),
    (BarrierAll.VEC, 13, False, None),
    (BarrierAll.MIX, 11, True, "id-reserved"),
    (BarrierAll.MIX, 11, False, "id-reserved-elsewhere"),
    (BarrierAll.MIX, 12, True, "id-reserved"),
    (BarrierAll.MIX, 12, False, "id-reserved"),
    (BarrierAll.MIX, 14, False, None),
    (BarrierAll.SOFT, 14, False, None),
]


@pytest.mark.parametrize(("reading", "flag", "from_aiv", "expected"), RESERVED)
def test_reserved_ids_are_those_of_the_barrier_on_the_core_that_holds_them(
    start: Start,
    instantiate: Instantiate,
    reading: BarrierAll,
    flag: int,
    from_aiv: bool,
    expected: str | None,
) -> None:
    protocol = one_flag(start, flag, from_aiv=from_aiv, barrier=True)
    sync = synchronise(instantiate(protocol, barrier_all=reading))
    faults = flag_range(sync, strict_ids=False)
    assert codes(faults) == ([expected] * 2 if expected else [])
    errors = [f for f in faults or [] if f.severity is Severity.ERROR]
    assert bool(errors) is (expected == "id-reserved")
    assert collides_with_barrier(faults) is (expected == "id-reserved")
    strict = flag_range(sync, strict_ids=True) or []
    assert all(f.severity is Severity.ERROR for f in strict)


def joint_flag(start: Start, role: Role, mode: int, flag: int, *, function: str) -> Protocol:
    """Two AIVs per AIC: ``role`` sets ``flag``, and every core calls the barrier."""
    p = start(vectors_per_cube=2)
    for each in Role:
        p.role(each).barrier(function)
    p.role(role).set_flag(Pipe.V if role is Role.AIV else Pipe.FIX, flag, mode=mode)
    return p.build()


@pytest.mark.parametrize(
    ("function", "role", "mode", "flag", "profile", "expected"),
    [
        # SyncAll<false> with two AIVs uses 28 and 29 of the AIC as well: mode 4 of the second AIV
        ("SyncAll<false>", Role.AIV, 4, 12, ASCEND950, ["id-reserved"]),
        ("SyncAll<false>", Role.AIV, 4, 13, ASCEND950, ["id-reserved"]),
        ("SyncAll<false>", Role.AIV, 4, 14, ASCEND950, []),
        ("SyncAll<false>", Role.AIC, 4, 28, ASCEND950, ["id-reserved"]),
        ("SyncAll<false>", Role.AIC, 4, 27, ASCEND950, []),
        ("SyncAll<false>", Role.AIC, 2, 13, ASCEND950, ["id-reserved"]),
        ("SyncAll<false>", Role.AIC, 2, 13, ATLAS_A2, ["id-reserved"]),
        ("SyncAll<false>", Role.AIV, 2, 11, ATLAS_A2, ["id-reserved"]),
        ("SyncAll<true>", Role.AIV, 0, 14, ASCEND950, ["id-reserved"]),
        ("SyncAll<true>", Role.AIV, 1, 14, ASCEND950, ["id-reserved"]),
        ("SyncAll<true>", Role.AIC, 0, 14, ASCEND950, ["id-reserved-elsewhere"]),
        ("SyncAll<true>", Role.AIV, 2, 13, ASCEND950, []),
    ],
)
def test_reserved_ids_by_ratio_and_mode(
    start: Start,
    instantiate: Instantiate,
    function: str,
    role: Role,
    mode: int,
    flag: int,
    profile: Profile,
    expected: list[str],
) -> None:
    protocol = joint_flag(start, role, mode, flag, function=function)
    faults = flag_range(synchronise(instantiate(protocol, profile=profile)), strict_ids=False)
    assert list(dict.fromkeys(codes(faults))) == expected


@pytest.mark.parametrize(
    ("objects", "flag", "reserved"), [(0, 0, False), (1, 1, True), (1, 2, False), (4, 7, True), (4, 8, False)]
)
@pytest.mark.parametrize("from_aiv", [True, False])
def test_ids_of_the_matmul_api(
    start: Start, instantiate: Instantiate, objects: int, flag: int, reserved: bool, from_aiv: bool
) -> None:
    profile = replace(ASCEND950, matmul_objects=objects)
    sync = synchronise(instantiate(one_flag(start, flag, from_aiv=from_aiv), profile=profile))
    faults = flag_range(sync, strict_ids=False)
    assert codes(faults) == (["id-reserved"] * 2 if reserved else [])
    for fault in faults or []:
        assert "the Matmul API itself uses that counter" in fault.message


@pytest.mark.parametrize(
    ("role", "mode", "flag", "expected"),
    [
        (Role.AIC, 4, 31, []),
        (Role.AIC, 4, 32, ["id-out-of-range"]),
        (Role.AIV, 4, 15, []),
        (Role.AIV, 4, 16, ["id-out-of-range"]),
        (Role.AIC, 2, 16, ["id-out-of-range"]),
        (Role.AIV, 0, 16, ["id-out-of-range"]),
    ],
)
def test_the_domain_of_an_id_is_that_of_its_mode(
    start: Start, instantiate: Instantiate, role: Role, mode: int, flag: int, expected: list[str]
) -> None:
    p = start(vectors_per_cube=2)
    p.role(role).set_flag(Pipe.MTE2, flag, mode=mode)
    assert codes(flag_range(synchronise(instantiate(p.build())), strict_ids=False)) == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((1, 17), "id 17 is outside 0-15: the hardware keeps the low 4 bits, so flag 1 is used, as for id 1"),
        ((2, 17), "id 17 is outside 0-15: the hardware keeps the low 4 bits, so flag 1 is used"),
        ((1, 17, 33), "ids 17, 33 are outside 0-15: the hardware keeps the low 4 bits, so flag 1 is used, as "
                      "for id 1"),
    ],
)  # fmt: skip
def test_what_an_id_that_is_cut_aliases_with(
    start: Start, instantiate: Instantiate, flags: tuple[int, ...], message: str
) -> None:
    p = start()
    for flag in flags:  # one statement, so one finding
        p.role(Role.AIV).set_flag(Pipe.MTE3, flag)
    faults = flag_range(synchronise(instantiate(p.build())), strict_ids=False) or []
    assert faults[-1].message == message


def test_ids_are_free_where_no_barrier_is_called(start: Start, instantiate: Instantiate) -> None:
    sync = synchronise(instantiate(one_flag(start, 14, from_aiv=False)))
    assert flag_range(sync, strict_ids=False) == []


@pytest.mark.parametrize(
    ("event", "code", "error"),
    [(5, None, False), (6, "event-id-of-system", False), (7, "event-id-of-system", False),
     (8, "event-id-out-of-range", True), (-1, "event-id-out-of-range", True)],
)  # fmt: skip
def test_event_ids(start: Start, instantiate: Instantiate, event: int, code: str | None, error: bool) -> None:
    p = start()
    p.role(Role.AIV).set_event(Pipe.MTE2, Pipe.V, event)
    p.role(Role.AIV).wait_event(Pipe.MTE2, Pipe.V, event)
    sync = synchronise(instantiate(p.build()))
    faults = flag_range(sync, strict_ids=False)
    assert codes(faults) == ([code] * 2 if code else [])
    assert all((f.severity is Severity.ERROR) is error for f in faults or [])
    assert all(f.severity is Severity.ERROR for f in flag_range(sync, strict_ids=True) or [])


def test_an_event_between_pipes_that_the_core_lacks_is_nothing(
    start: Start, instantiate: Instantiate
) -> None:
    p = start()
    p.role(Role.AIV).set_event(Pipe.MTE2, Pipe.FIX, 0)
    sync = synchronise(instantiate(p.build()))
    faults = flag_range(sync, strict_ids=False)
    assert codes(faults) == ["absent-pipe"]
    assert "SetFlag names PIPE_MTE2 and PIPE_FIX, one of which an AIV lacks" in (faults or [])[0].message
    assert flag_balance(sync) is None


def test_an_absent_pipe_is_named_once_with_its_ranks(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIC).set_flag(Pipe.MTE3, 0)
    faults = flag_range(synchronise(instantiate(p.build(), ranks=3)), strict_ids=False)
    assert codes(faults) == ["absent-pipe"]
    assert "CrossCoreSetFlag names PIPE_MTE3, which an AIC lacks" in (faults or [])[0].message
    assert "ranks 0-2" in (faults or [])[0].message
    a2 = synchronise(instantiate(p.build(), ranks=3, profile=ATLAS_A2))
    assert flag_range(a2, strict_ids=False) in ([], None)


# --- barrier-match ----------------------------------------------------------------------------


def test_barriers_called_unequally_often(start: Start, instantiate: Instantiate) -> None:
    p = start()
    with p.role(Role.AIV).when(p.rank.ne(1)):
        p.role(Role.AIV).barrier()
    faults = barrier_match(synchronise(instantiate(p.build(), ranks=3)))
    assert codes(faults) == ["barrier-mismatch"]
    assert "1 times by the AIV of ranks 0, 2, 0 times by the AIV of rank 1" in (faults or [])[0].message
    assert barrier_match(synchronise(instantiate(p.build(), ranks=1))) == []


def test_a_cube_that_does_not_call_matters_under_mix_only(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).barrier()
    p.role(Role.AIC).pipe_barrier()
    for reading, expected in (
        (BarrierAll.VEC, []),
        (BarrierAll.MIX, ["barrier-mismatch"]),
        (BarrierAll.SOFT, []),
    ):
        assert codes(barrier_match(synchronise(instantiate(p.build(), barrier_all=reading)))) == expected


def test_forms_are_matched_one_by_one(start: Start, instantiate: Instantiate) -> None:
    p = start()
    with p.role(Role.AIV).when(p.rank.eq(0)):
        p.role(Role.AIV).barrier()
    with p.role(Role.AIV).when(p.rank.eq(1)):
        p.role(Role.AIV).barrier("aclshmemx_barrier_all_vec")
    mixed = instantiate(p.build(), ranks=2, barrier_all=BarrierAll.MIX)
    assert codes(barrier_match(synchronise(mixed))) == ["barrier-mismatch"] * 2
    # one implementation under two names is one barrier
    assert codes(barrier_match(synchronise(instantiate(p.build(), ranks=2)))) == []


def test_no_barrier_no_verdict(start: Start, instantiate: Instantiate) -> None:
    p = start()
    p.role(Role.AIV).pipe_barrier()
    assert barrier_match(synchronise(instantiate(p.build()))) is None


# --- blocks and cores -------------------------------------------------------------------------


def waiting(start: Start, what: str) -> Protocol:
    p = start()
    vector = p.role(Role.AIV)
    match what:
        case "mode 0":
            vector.set_flag(Pipe.MTE3, 1, mode=0)
            vector.wait_flag(Pipe.MTE2, 1, mode=0)
        case "mode 2":
            vector.set_flag(Pipe.MTE3, 1)
            p.role(Role.AIC).wait_flag(Pipe.MTE2, 1)
        case _:
            vector.barrier(what)
    return p.build()


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("SyncAll<true>", "SyncAll<true> waits"),
        ("aclshmem_barrier_all", "aclshmem_barrier_all waits"),
        ("mode 0", "flag 1, set in mode 0, waits"),
        ("mode 2", None),
    ],
)
@pytest.mark.parametrize(("blocks", "cores"), [(3, 2), (2, 2), (3, None)])
def test_more_blocks_than_cores(
    start: Start, instantiate: Instantiate, what: str, named: str | None, blocks: int, cores: int | None
) -> None:
    profile = replace(ASCEND950, cores=cores)
    faults = blocks_exceed_cores(
        synchronise(instantiate(waiting(start, what), blocks=blocks, profile=profile))
    )
    if named is None or cores is None or blocks <= cores:
        assert faults == []
        return
    (fault,) = faults
    assert fault.code == "blocks-exceed-cores"
    assert fault.message == (
        f"{named} for all 3 blocks of a rank, and a device of 2 AI cores runs 2 of them at a time"
    )
    assert fault.span.line > 0


# --- coverage ---------------------------------------------------------------------------------


def delivery(start: Start, *, puts: int, offset: int = 0) -> Protocol:
    """Rank 1 reads a segment that rank 0 puts ``puts`` times, ``offset`` bytes further on."""
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)
    with p.role(Role.AIV).when(p.rank.eq(0)):
        for _ in range(puts):
            p.role(Role.AIV).put(1, Address(heap, as_expr(offset)), Address(a, as_expr(offset)), 8)
    with p.role(Role.AIV).when(p.rank.eq(1)):
        origin = Origin(as_expr(0), Address(a, as_expr(0)))
        p.role(Role.AIV).read(Pipe.MTE2, window(Address(heap, as_expr(0)), 8, origin=origin))
    return p.build()


@pytest.mark.parametrize(
    ("puts", "offset", "expected", "message"),
    [
        (1, 0, [], ""),
        (2, 0, ["delivered-twice"], "1 segments that rank 1 read are delivered more than once"),
        (0, 0, ["never-delivered"], "the first: a[0..8) of rank 0 into heap[0..8)"),
        (1, 4, ["never-delivered"], "a[0..8) of rank 0"),
    ],
)
def test_deliveries(
    start: Start, instantiate: Instantiate, puts: int, offset: int, expected: list[str], message: str
) -> None:
    analysis = analyse(instantiate(delivery(start, puts=puts, offset=offset), ranks=2))
    faults = coverage(analysis.instance, analysis.groups)
    assert codes(faults) == expected
    assert all(message in f.message for f in faults or [])


def output(start: Start, writes: list[tuple[int, int]], *, covered: bool = True) -> Protocol:
    p = start()
    a = p.region("a", RegionKind.INPUT, 64)
    c = p.region("c", RegionKind.OUTPUT, 64, covered=covered)
    for begin, size in writes:
        p.role(Role.AIC).compute(
            "matmul", "s", 1,
            reads=[window(Address(a, segment_index("s")), 1)],
            writes=[window(Address(c, as_expr(begin)), size)],
        )  # fmt: skip
    p.role(Role.AIC).pipe_barrier()
    return p.build()


@pytest.mark.parametrize(
    ("writes", "expected", "message"),
    [
        ([(0, 64)], [], ""),
        ([(32, 32), (0, 32)], [], ""),
        ([(0, 32)], ["output-missing"], "bytes 32..64 are never written"),
        ([(0, 16), (32, 32)], ["output-missing"], "bytes 16..32 are never written"),
        ([(0, 48), (32, 32)], ["output-twice"], "bytes 32..48 are written twice"),
        ([(0, 64), (0, 64)], ["output-twice"], "bytes 0..64 are written twice"),
        ([], ["output-missing"], "bytes 0..64 are never written"),
    ],
)
def test_outputs(
    start: Start, instantiate: Instantiate, writes: list[tuple[int, int]], expected: list[str], message: str
) -> None:
    analysis = analyse(instantiate(output(start, writes)))
    faults = coverage(analysis.instance, analysis.groups)
    assert codes(faults) == expected
    assert all(message in f.message for f in faults or [])


def test_an_output_need_not_be_covered(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(output(start, [(0, 32)], covered=False)))
    assert coverage(analysis.instance, analysis.groups) is None


def plain_output(start: Start, role: Role, size: Expr | int) -> Protocol:
    """The output written by a plain Write, not by a compute."""
    p = start()
    c = p.region("c", RegionKind.OUTPUT, 64, covered=True)
    pipe = Pipe.FIX if role is Role.AIC else Pipe.MTE3
    p.role(role).write(pipe, window(Address(c, as_expr(0)), size))
    return p.build()


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(("size", "expected"), [(32, ["output-missing"]), (64, [])])
def test_outputs_of_plain_writes(
    start: Start, instantiate: Instantiate, role: Role, size: int, expected: list[str]
) -> None:
    analysis = analyse(instantiate(plain_output(start, role, size)))
    assert codes(coverage(analysis.instance, analysis.groups)) == expected


def test_a_plain_write_by_every_block_writes_as_often(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(plain_output(start, Role.AIC, 64), blocks=2))
    assert codes(coverage(analysis.instance, analysis.groups)) == ["output-twice"]


@pytest.mark.parametrize(
    ("guard", "expected"), [("all", []), ("block 0", ["output-missing"]), ("block 0 twice", ["output-twice"])]
)
def test_a_shared_window_needs_every_block(
    start: Start, instantiate: Instantiate, guard: str, expected: list[str]
) -> None:
    p = start()
    a = p.region("a", RegionKind.INPUT, 64)
    c = p.region("c", RegionKind.OUTPUT, 64, covered=True)
    aic = p.role(Role.AIC)
    turns = 1 + p.block.eq(0) if guard == "block 0 twice" else as_expr(1)
    with aic.loop("turn", turns), aic.when(p.block.eq(0) if guard == "block 0" else 1):
        aic.compute(
            "matmul", "s", 1,
            reads=[window(Address(a, segment_index("s")), 1)],
            writes=[window(Address(c, as_expr(0)), 64)],
        )  # fmt: skip
    analysis = analyse(instantiate(p.build(), blocks=2))
    assert codes(coverage(analysis.instance, analysis.groups)) == expected
