"""Verdicts about flags, shares and locks that were wrong once: the shortest form of each fault.

Like test_wrong_verdicts.py: each test says what is true and why; never remove one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Report, Verdict
from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder, window
from mc2proof.protocol.errors import UnsupportedError
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.profile import ASCEND950
from mc2proof.protocol.program import Address, Mode, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

Fill = Callable[[ProtocolBuilder, RoleBuilder, RoleBuilder], None]

RW, OW, WC, FR = "no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "flag-range"
HEAP = Address("heap", as_expr(0))


def protocol(
    fill: Fill, *, blocks: int = 1, two: bool = False, alignment: int | None = None, covered: bool = False
) -> Protocol:
    """One rank, a region of each kind, and what ``fill`` puts into the two programs."""
    p = ProtocolBuilder("case", vectors_per_cube=2 if two else 1)
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=blocks)
    p.region("heap", RegionKind.SHARED, 64, alignment=alignment)
    p.region("other", RegionKind.SHARED, 64)
    p.region("a", RegionKind.INPUT, 64)
    p.region("c", RegionKind.OUTPUT, 64, covered=covered)
    fill(p, p.role(Role.AIV), p.role(Role.AIC))
    return p.build()


def prove(case: Protocol, setup: Setup | None = None, *, cross_check: bool = True) -> Report:
    report = prove_protocols([case], {}, setup, cross_check=cross_check)
    for row in report.results:
        for finding in row.findings:
            if finding.counterexample is not None and finding.counterexample.trace is not None:
                assert replay(finding.counterexample.trace, [case]).reproduced
    return report


def violated(report: Report) -> dict[str, set[str]]:
    return {r.property: {f.code for f in r.findings} for r in report.results if r.verdict is Verdict.VIOLATED}


# --- blocks and cores -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_a_wait_is_called_does_not_matter_to_who_must_set(mode: int) -> None:
    """Modes 0 to 2 share a counter: a wait of any mode waits for the blocks that set it in mode 0."""

    def fill(_: ProtocolBuilder, aiv: RoleBuilder, __: RoleBuilder) -> None:
        aiv.set_flag(Pipe.MTE3, 0, mode=0)
        aiv.wait_flag(Pipe.S, 0, mode=mode)

    one = Setup(replace(ASCEND950, cores=1))
    assert violated(prove(protocol(fill, blocks=2), one))["deadlock-freedom"] == {"blocks-exceed-cores"}
    assert "deadlock-freedom" not in violated(prove(protocol(fill, blocks=2)))


# --- shares -----------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [("x", "y"), ("s", "s")])
def test_shares_of_two_contracts_are_no_whole(segments: tuple[str, str]) -> None:
    """Named like their segment indices, two contracts were taken for one."""

    def fill(p: ProtocolBuilder, _: RoleBuilder, aic: RoleBuilder) -> None:
        whole = window(Address("c", as_expr(0)), 64)
        with aic.when(p.block.eq(0)):
            aic.compute("x", segments[0], 1, reads=[], writes=[whole])
        with aic.otherwise():
            aic.compute("y", segments[1], 1, reads=[], writes=[whole])

    assert violated(prove(protocol(fill, blocks=2, covered=True))).keys() == {"coverage", WC}


@pytest.mark.parametrize("segments", [("x", "y"), ("s", "s")])
def test_a_call_made_in_two_branches_is_one_call(segments: tuple[str, str]) -> None:
    def fill(p: ProtocolBuilder, _: RoleBuilder, aic: RoleBuilder) -> None:
        whole = window(Address("c", as_expr(0)), 64)
        with aic.when(p.block.eq(0)):
            aic.compute("matmul", segments[0], 1, reads=[], writes=[whole])
        with aic.otherwise():
            aic.compute("matmul", segments[1], 1, reads=[], writes=[whole])

    assert violated(prove(protocol(fill, blocks=2, covered=True))) == {}


def test_two_vector_cores_of_a_block_write_the_same_share() -> None:
    """A contract promises disjoint shares of different blocks, not of the cores of one."""

    def fill(_: ProtocolBuilder, aiv: RoleBuilder, __: RoleBuilder) -> None:
        whole = window(Address("c", as_expr(0)), 64)
        aiv.compute("cast", "s", 1, reads=[], writes=[whole], write_pipe=Pipe.MTE3)

    found = violated(prove(protocol(fill, two=True, covered=True)))
    assert found == {"coverage": {"output-twice"}, WC: {"write-conflict"}}
    assert violated(prove(protocol(fill, blocks=2, covered=True))) == {}


# --- counterexamples where the timings share no order -----------------------------------------


def stir(aiv: RoleBuilder, aic: RoleBuilder) -> None:
    """Two sets of flag 5, awaited on two pipes: the timings share no one order."""
    aiv.set_flag(Pipe.MTE3, 5)
    aiv.set_flag(Pipe.MTE3, 5)
    aic.wait_flag(Pipe.MTE2, 5)
    aic.wait_flag(Pipe.S, 5)


@pytest.mark.parametrize("sets", [16, 17])
def test_a_cap_passed_beside_a_flag_without_a_fixed_matching(sets: int) -> None:
    """The shown timing lacked the earlier sets, and was then not shown at all."""

    def fill(_: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        with aiv.loop("i", sets):
            aiv.set_flag(Pipe.MTE3, 1)
        aic.wait_flag(Pipe.FIX, 1)
        stir(aiv, aic)
        with aic.loop("i", sets - 1):
            aic.wait_flag(Pipe.FIX, 1)

    report = prove(protocol(fill), cross_check=False)
    assert violated(report) == {FR: {"counter-cap"}}
    (finding,) = report.results[[r.property for r in report.results].index(FR)].findings
    assert finding.counterexample is not None
    assert finding.counterexample.trace is not None


def merge_counted(aiv: RoleBuilder, aic: RoleBuilder) -> None:
    for flag, pipes in ((0, (Pipe.MTE3, Pipe.MTE3)), (1, (Pipe.MTE3, Pipe.V))):
        for pipe in pipes:
            aiv.set_flag(pipe, flag)
        for _ in pipes:
            aic.wait_flag(Pipe.S, flag)


def merge_channels(aiv: RoleBuilder, aic: RoleBuilder) -> None:
    aiv.set_flag(Pipe.MTE3, 0, mode=1)
    aiv.wait_flag(Pipe.S, 0, mode=1)
    aiv.wait_flag(Pipe.S, 0, mode=1)
    aic.set_flag(Pipe.FIX, 0)


@pytest.mark.parametrize(("body", "two"), [(merge_counted, False), (merge_channels, True)])
def test_a_merged_flag_is_shown_up_to_the_set_that_is_lost(
    body: Callable[[RoleBuilder, RoleBuilder], None], two: bool
) -> None:
    """What would follow in a run where flags count is not what follows where they merge."""
    case = protocol(lambda _, aiv, aic: body(aiv, aic), two=two)
    found = violated(prove(case, Setup(replace(ASCEND950, flags_merge=True)), cross_check=False))
    assert "flag-merged" in found[FR]


def test_a_joint_cap_is_seen_by_the_explorer() -> None:
    """A wait that is taken at once hid how high the counter had been."""

    def fill(_: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        with aiv.loop("i", 16):
            aiv.set_flag(Pipe.MTE3, 0, mode=1)
        with aiv.loop("i", 16):
            aiv.wait_flag(Pipe.V, 0, mode=1)
        aic.set_flag(Pipe.FIX, 5)
        aic.set_flag(Pipe.MTE2, 5)
        aiv.wait_flag(Pipe.S, 5)
        aiv.wait_flag(Pipe.S, 5)

    assert violated(prove(protocol(fill, two=True))) == {FR: {"counter-cap"}}


# --- what sets have been done -----------------------------------------------------------------


@pytest.mark.parametrize(("waits", "done"), [(1, False), (2, True)])
def test_one_wait_does_not_say_which_of_two_sets_is_done(waits: int, done: bool) -> None:
    def fill(_: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.set_flag(Pipe.MTE3, 0, mode=1)
        aiv.set_flag(Pipe.MTE3, 0, mode=1)
        for _ in range(waits):
            aiv.wait_flag(Pipe.S, 0, mode=1)
        aiv.set_flag(Pipe.V, 0, mode=2)
        aic.wait_flag(Pipe.S, 0, mode=2)

    found = violated(prove(protocol(fill)))
    assert found.get(FR) == (None if done else {"mode-change"})


# --- locks ------------------------------------------------------------------------------------


def lock(_: ProtocolBuilder, __: RoleBuilder, aic: RoleBuilder, *, held: bool = True) -> None:
    """MTE2 writes and reads, FIX overwrites, each while it holds the one token of flag 0."""
    origin = Origin(as_expr(0), Address("a", as_expr(0)))
    aic.set_flag(Pipe.MTE2, 0, mode=0)
    aic.wait_flag(Pipe.MTE2, 0, mode=0)
    aic.write(Pipe.MTE2, window(HEAP, 8, origin=origin))
    if not held:
        aic.set_flag(Pipe.MTE2, 0, mode=0)
        aic.wait_flag(Pipe.MTE2, 0, mode=0)
    aic.read(Pipe.MTE2, window(HEAP, 8, origin=origin))
    aic.set_flag(Pipe.MTE2, 0, mode=0)
    aic.wait_flag(Pipe.FIX, 0, mode=0)
    aic.write(Pipe.FIX, window(HEAP, 8))
    aic.set_flag(Pipe.FIX, 0, mode=0)
    aic.pipe_barrier()
    aic.wait_flag(Pipe.S, 0, mode=0)


def test_what_a_lock_excludes_is_no_overwrite() -> None:
    """FIX may write before all of it or after all of it, but in no one timing between write and read.

    The writes are unordered all the same.
    """
    assert violated(prove(protocol(lock))).keys() == {WC}


def test_a_lock_that_is_let_go_between_write_and_read_is_an_overwrite() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        lock(p, aiv, aic, held=False)

    report = prove(protocol(fill))
    assert violated(report).keys() == {OW, WC}
    row = next(r for r in report.results if r.property == OW)
    assert row.findings[0].counterexample is not None
    steps = [s.operation for s in row.findings[0].counterexample.steps]
    wrote = next(i for i, text in enumerate(steps) if text.startswith("begins writing"))
    assert steps.index("ends writing heap[0..8) of rank 0") > wrote
    assert steps[-1].startswith("begins writing")  # FIX's, after the needed write


@pytest.mark.parametrize("held", [True, False])
def test_a_lock_around_a_read_that_says_no_origin(held: bool) -> None:
    def fill(_: ProtocolBuilder, __: RoleBuilder, aic: RoleBuilder) -> None:
        aic.set_flag(Pipe.MTE2, 0, mode=0)
        aic.wait_flag(Pipe.MTE2, 0, mode=0)
        if not held:
            aic.set_flag(Pipe.MTE1, 0, mode=0)
        aic.read(Pipe.MTE2, window(HEAP, 8))
        if held:
            aic.set_flag(Pipe.MTE2, 0, mode=0)
        aic.wait_flag(Pipe.FIX, 0, mode=0)
        aic.write(Pipe.FIX, window(HEAP, 8))
        aic.set_flag(Pipe.FIX, 0, mode=0)
        aic.pipe_barrier()
        aic.wait_flag(Pipe.S, 0, mode=0)

    found = violated(prove(protocol(fill)))
    assert found.get(OW) == (None if held else {"source-overwritten"})


# --- ids, bases, pipes ------------------------------------------------------------------------


@pytest.mark.parametrize(("alignment", "expected"), [(256, {"base-misaligned"}), (512, None), (None, None)])
def test_the_base_of_what_is_sent_counts_too(alignment: int | None, expected: set[str] | None) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        with aiv.when(p.rank.eq(0)):
            aiv.put(1, Address("other", as_expr(0)), HEAP, 8)
            aiv.quiet(1)

    case = protocol(fill, alignment=alignment)
    report = prove_protocols([case], {"ranks": 2}, properties=["layout"])
    assert violated(report).get("layout") == expected


def test_a_barrier_of_vector_cores_takes_no_counter_of_mode_4() -> None:
    """Mode 4 counts apart (hardware.md 2): its 14 is not the barrier's, only the number is."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.barrier()
        aic.set_flag(Pipe.FIX, 14, mode=4)
        with aiv.when(p.sub.eq(0)):
            aiv.wait_flag(Pipe.S, 14, mode=4)

    report = prove(protocol(fill, two=True))
    assert FR not in violated(report)
    codes = {f.code for r in report.results if r.property == FR for f in r.findings}
    assert codes == {"id-reserved-elsewhere"}


def test_an_access_on_a_pipe_that_the_core_lacks_is_not_decided() -> None:
    case = protocol(lambda _, aiv, __: aiv.read(Pipe.FIX, window(HEAP, 8)))
    with pytest.raises(UnsupportedError, match="access on PIPE_FIX, which an AIV lacks"):
        unroll(case, {})


def test_no_launch_is_no_setup() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Setup(launches=0)


def test_sets_of_a_mixed_id_where_the_timings_share_no_order() -> None:
    """One receiver's matching is fixed, the other's is not: sets may take effect in any order at both."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        aiv.set_flag(Pipe.MTE3, 0, mode=0)
        aiv.set_flag(Pipe.MTE3, 0, mode=0)
        aiv.wait_flag(Pipe.S, 0, mode=2)
        with aiv.when(p.sub.eq(1)):
            aiv.wait_flag(Pipe.MTE3, 0, mode=1)

    found = violated(prove(protocol(fill, two=True)))
    assert found[FR] == {"mode-change"}


def test_a_mode_change_before_a_set_that_nobody_awaits_is_shown() -> None:
    """Where nothing can tell that a set is done, the timing still has to show the later use."""

    def fill(_: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.set_flag(Pipe.V, 0)
        aic.set_flag(Pipe.MTE2, 0)
        aic.set_flag(Pipe.FIX, 0, mode=0)

    low = Setup(replace(ASCEND950, counter_cap=1))
    report = prove_protocols([protocol(fill)], {}, low)
    assert violated(report)[FR] == {"counter-cap", "mode-change"}


# --- writes that add --------------------------------------------------------------------------


def test_a_store_behind_another_addition_of_a_later_launch() -> None:
    """The next write of a later launch may add as well, and conflict with nothing: the one behind it may."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        with aiv.when(p.rank.eq(0)):
            aiv.put(1, HEAP, Address("a", as_expr(0)), 8, mode=Mode.ADD)
            with aiv.when(p.launch.eq(1)):
                aiv.put(1, HEAP, Address("a", as_expr(8)), 8)

    report = prove_protocols([protocol(fill)], {"ranks": 2}, Setup(launches=2), cross_check=True)
    assert violated(report)["relaunch"] == {"relaunch-write-conflict"}


def test_a_smaller_case_makes_no_requests_to_ranks_that_there_are_not() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        with aiv.when(p.rank.eq(0)):
            aiv.put(1, HEAP, Address("a", as_expr(0)), 8)

    report = prove_protocols([protocol(fill)], {"ranks": 4}, properties=["completion"])
    (finding,) = report.results[0].findings
    assert finding.counterexample is not None
    assert finding.counterexample.parameters["ranks"] == 2


def test_the_reader_is_named_where_the_writer_s_event_has_the_same_number() -> None:
    """The finding named the writer's core as the reader when both events had one number in their cores."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        with aiv.when(p.rank.eq(0)):
            aiv.put(1, HEAP, Address("a", as_expr(0)), 8)
            aiv.quiet(1)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, 0)
        with aiv.when(p.rank.eq(0)):
            aiv.put(1, HEAP, Address("a", as_expr(8)), 8)
            aiv.quiet(1)
        aic.wait_flag(Pipe.MTE2, 0)
        for _ in range(3):
            aic.pipe_barrier(Pipe.MTE2)
        with aic.when(p.rank.eq(1)):
            origin = Origin(as_expr(0), Address("a", as_expr(0)))
            aic.read(Pipe.MTE2, window(HEAP, 8, origin=origin))

    report = prove_protocols([protocol(fill)], {"ranks": 2}, properties=[OW])
    (finding,) = report.results[0].findings
    assert finding.counterexample is not None
    writer, reader = finding.counterexample.conflict[:2]
    assert writer.startswith("rank 0 AIV block 0 puts")
    assert reader.startswith("while rank 1 AIC block 0 may still read")
