"""Verdicts that were wrong once: small protocols, each the shortest form of a fault of the tool.

Each test says what is true and why. Never remove one; a new one is written before its mend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Report, Verdict
from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder, element, window
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import SourceError
from mc2proof.protocol.expr import Const, Expr, cast
from mc2proof.protocol.profile import BarrierAll
from mc2proof.protocol.program import Address, Mode, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup

Fill = Callable[[ProtocolBuilder, RoleBuilder, RoleBuilder], None]

RW, OW, WC = "no-read-before-write", "no-overwrite-before-read", "no-write-conflict"


def heap(offset: int) -> Address:
    return Address("heap", Const(offset))


def source(offset: int) -> Address:
    return Address("a", Const(offset))


SETUP = {f.name for f in fields(Setup)}


def protocol(fill: Fill, *, blocks: int = 1, aic: bool = True) -> Protocol:
    """Two ranks, one region of each kind, and what ``fill`` puts into the two programs."""
    p = ProtocolBuilder("case")
    p.parameter("ranks", low=2, high=2, default=2)
    p.parameter("blocks", low=blocks, high=blocks, default=blocks)
    p.region("heap", RegionKind.SHARED, 1024)
    p.region("a", RegionKind.INPUT, 1024)
    p.region("own", RegionKind.PRIVATE, 1024)
    vector = p.role(Role.AIV)
    fill(p, vector, p.role(Role.AIC) if aic else RoleBuilder())
    return p.build()


def prove(case: Protocol, *, engine: str = "auto", cross_check: bool = True, **options: object) -> Report:
    setup = Setup(**{n: options.pop(n) for n in SETUP & options.keys()})  # type: ignore[arg-type]
    return prove_protocols(
        [case],
        {},
        setup,
        engine=engine,
        cross_check=cross_check,
        **options,  # type: ignore[arg-type]
    )


def rows(report: Report, verdict: Verdict) -> set[str]:
    return {r.property for r in report.results if r.verdict is verdict}


def codes(report: Report) -> set[str]:
    return {f.code for r in report.results for f in r.findings}


def peer(p: ProtocolBuilder) -> Expr:
    return 1 - p.rank


def send(p: ProtocolBuilder, aiv: RoleBuilder, target: int, origin: int, size: int = 8) -> None:
    """A put of input bytes to the peer, complete and met."""
    aiv.put(peer(p), heap(target), source(origin), size)
    aiv.quiet(peer(p))
    aiv.barrier()


def expect(p: ProtocolBuilder, at: int, origin: int, size: int = 8) -> object:
    return window(heap(at), size, origin=Origin(peer(p), source(origin)))


# --- writes that were not seen ----------------------------------------------------------------


def test_what_a_compute_writes_conflicts_with_puts() -> None:
    """The AIC writes heap[0..8) while a peer's put may write it, and while the AIV may read it."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        send(p, aiv, 0, 0)
        aiv.read(Pipe.MTE2, expect(p, 0, 0))  # type: ignore[arg-type]
        aic.compute("mm", "s", 1, reads=[], writes=[window(heap(0), 8)])

    report = prove(protocol(fill))
    assert {OW, WC} <= rows(report, Verdict.VIOLATED)


def test_a_put_that_sends_a_result_on_is_unsupported() -> None:
    """Nothing says what forwarded bytes must be, so no row about data may be PROVED."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), heap(64), heap(0), 8)
        aiv.quiet(peer(p))
        aiv.barrier()
        aiv.read(Pipe.MTE2, window(heap(64), 8, origin=Origin(peer(p), heap(0))))

    report = prove(protocol(fill))
    assert {RW, OW, "completion", "coverage"} <= rows(report, Verdict.UNSUPPORTED)


def test_a_sum_is_not_its_summand() -> None:
    """After an atomic add the reader finds old content plus the input, not the input."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), heap(0), source(0), 8, mode=Mode.ADD)
        aiv.quiet(peer(p))
        aiv.barrier()
        aiv.read(Pipe.MTE2, expect(p, 0, 0))  # type: ignore[arg-type]

    assert {RW, "coverage"} <= rows(prove(protocol(fill)), Verdict.VIOLATED)


def test_a_reader_needs_one_write_for_all_rows() -> None:
    """Other data lies between two deliveries of the same bytes: neither makes the reader safe."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), heap(0), source(0), 8)
        aiv.quiet(peer(p))
        aiv.put(peer(p), heap(0), source(512), 8)
        aiv.quiet(peer(p))
        aiv.barrier()
        aiv.put(peer(p), heap(0), source(0), 8)
        aiv.read(Pipe.MTE2, expect(p, 0, 0))  # type: ignore[arg-type]
        aiv.quiet(peer(p))

    assert {RW, OW} & rows(prove(protocol(fill)), Verdict.VIOLATED)


def test_an_input_that_is_written_is_a_fault() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.write(Pipe.MTE3, window(source(0), 8))
        send(p, aiv, 0, 0)
        aiv.read(Pipe.MTE2, expect(p, 0, 0))  # type: ignore[arg-type]

    report = prove(protocol(fill))
    assert "layout" in rows(report, Verdict.VIOLATED)
    assert "input-written" in codes(report)


def test_two_cores_on_one_queue_race() -> None:
    """One send queue for each peer and rank, without atomics."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), Address("heap", p.block * 8), Address("a", p.block * 8), 8)
        aiv.quiet(peer(p))

    report = prove(protocol(fill, blocks=2))
    assert WC in rows(report, Verdict.VIOLATED)
    assert "queue-race" in codes(report)


# --- order ------------------------------------------------------------------------------------


def wait_before_its_own_set(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
    aiv.put(peer(p), heap(0), source(0), 8)
    aiv.quiet(peer(p))
    aiv.wait_event(Pipe.MTE3, Pipe.S, 0)
    aiv.set_event(Pipe.MTE3, Pipe.S, 0)


@pytest.mark.parametrize("engine", ["happens-before", "z3", "explore"])
@pytest.mark.parametrize("then", ["end", "pipe barrier", "put"])
def test_a_wait_before_its_own_set_never_returns(engine: str, then: str) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        wait_before_its_own_set(p, aiv, aic)
        if then == "pipe barrier":
            aiv.pipe_barrier()
        elif then == "put":
            aiv.put(peer(p), heap(8), source(0), 8)
            aiv.quiet(peer(p))

    report = prove(protocol(fill), engine=engine, cross_check=False)
    assert report.verdict("deadlock-freedom") is Verdict.VIOLATED


def test_engines_agree_on_a_reader_behind_a_deadlock() -> None:
    """A reader that never begins needs nothing: no row about it is violated."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        origin = Origin(p.rank, source(0))
        aic.wait_flag(Pipe.MTE2, 0)
        aic.read(Pipe.MTE2, window(heap(0), 8, origin=origin))
        aic.write(Pipe.MTE2, window(heap(0), 8, origin=origin))
        aiv.put(peer(p), heap(0), source(0), 8)
        aiv.quiet(peer(p))

    report = prove(protocol(fill))
    assert report.verdict("deadlock-freedom") is Verdict.VIOLATED
    assert OW not in rows(report, Verdict.VIOLATED)


def test_a_counterexample_where_the_reader_comes_before_its_own_write() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.read(Pipe.MTE2, expect(p, 0, 0))  # type: ignore[arg-type]
        aiv.barrier()
        aiv.put(peer(p), heap(0), source(0), 8)
        aiv.quiet(peer(p))
        aic.write(Pipe.FIX, window(heap(0), 8))

    assert {RW, OW} <= rows(prove(protocol(fill)), Verdict.VIOLATED)


@pytest.mark.parametrize("pipe", [Pipe.S, Pipe.MTE2])
def test_reads_on_the_scalar_pipe_replay(pipe: Pipe) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), heap(0), source(0), 8)
        aiv.quiet(peer(p))
        aiv.read(pipe, expect(p, 0, 0))  # type: ignore[arg-type]
        aiv.put(peer(p), heap(0), source(8), 8)
        aiv.quiet(peer(p))
        aiv.wait_flag(Pipe.S, 0)

    report = prove(protocol(fill))
    assert {RW, "deadlock-freedom"} <= rows(report, Verdict.VIOLATED)


@pytest.mark.parametrize(("reads", "writes"), [(Pipe.S, Pipe.FIX), (Pipe.MTE2, Pipe.S), (Pipe.S, Pipe.S)])
def test_computes_on_the_scalar_pipe(reads: Pipe, writes: Pipe) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        own = window(source(0), 8, origin=Origin(p.rank, source(0)))
        aic.compute("mm", "s", 2, reads=[own], writes=[window(Address("own", Const(0)), 8)],
                    read_pipe=reads, write_pipe=writes)  # fmt: skip
        send(p, aiv, 0, 0)

    assert not rows(prove(protocol(fill)), Verdict.VIOLATED)


# --- counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["auto", "z3", "explore"])
def test_sets_on_two_pipes_that_nobody_awaits_pass_the_cap(engine: str) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        with aiv.loop("i", 8):
            aiv.set_flag(Pipe.MTE3, 0)
            aiv.set_flag(Pipe.V, 0)

    report = prove(protocol(fill), engine=engine, cross_check=False)
    assert report.verdict("flag-range") is Verdict.VIOLATED


def test_a_set_that_never_happens_passes_no_cap() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.wait_flag(Pipe.S, 5)
        with aiv.loop("i", 8):
            aiv.set_flag(Pipe.MTE3, 0)
            aiv.set_flag(Pipe.V, 0)

    assert prove(protocol(fill)).verdict("flag-range") is Verdict.PROVED


@pytest.mark.parametrize("aic", [True, False])
def test_a_mix_barrier_waits_for_cube_cores_that_never_call_it(aic: bool) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        aiv.barrier()

    report = prove(protocol(fill, aic=aic), barrier_all=BarrierAll.MIX)
    assert {"deadlock-freedom", "barrier-match"} <= rows(report, Verdict.VIOLATED)


def test_two_functions_of_one_form_are_one_barrier() -> None:
    """Under vec both functions run the same code, so a rank may call either."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        with aiv.when(p.rank.eq(0)):
            aiv.barrier("aclshmem_barrier_all")
        with aiv.otherwise():
            aiv.barrier("aclshmemx_barrier_all_vec")

    assert not rows(prove(protocol(fill)), Verdict.VIOLATED)
    mixed = prove(protocol(fill), barrier_all=BarrierAll.MIX)
    assert {"deadlock-freedom", "barrier-match"} <= rows(mixed, Verdict.VIOLATED)


def test_a_set_toward_a_role_without_a_program_is_left_over() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, _: RoleBuilder) -> None:
        aiv.set_flag(Pipe.MTE3, 99)

    report = prove(protocol(fill, aic=False))
    assert {"flag-balance", "flag-range"} <= rows(report, Verdict.VIOLATED)


@pytest.mark.parametrize(("strict", "verdict"), [(False, Verdict.PROVED), (True, Verdict.VIOLATED)])
def test_event_ids_of_the_system(strict: bool, verdict: Verdict) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.set_event(Pipe.MTE2, Pipe.V, 6)
        aiv.wait_event(Pipe.MTE2, Pipe.V, 6)

    report = prove(protocol(fill), strict_ids=strict)
    assert report.verdict("flag-range") is verdict
    assert "event-id-of-system" in codes(report)


def test_events_between_pipes_that_the_core_lacks() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.set_event(Pipe.M, Pipe.FIX, 0)
        aiv.wait_event(Pipe.M, Pipe.FIX, 0)

    assert "absent-pipe" in codes(prove(protocol(fill)))


# --- coverage and layout ----------------------------------------------------------------------


def covered(write_it: bool) -> Protocol:
    p = ProtocolBuilder("covered")
    p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1, default=1)
    p.region("c", RegionKind.OUTPUT, 64, covered=True)
    aiv = p.role(Role.AIV)
    if write_it:
        aiv.write(Pipe.MTE3, window(Address("c", Const(0)), 64))
    p.role(Role.AIC)
    return p.build()


@pytest.mark.parametrize(("written", "verdict"), [(False, Verdict.VIOLATED), (True, Verdict.PROVED)])
def test_outputs_may_be_written_by_any_core(written: bool, verdict: Verdict) -> None:
    assert prove(covered(written)).verdict("coverage") is verdict


@pytest.mark.parametrize(
    ("target", "size", "code"),
    [
        (heap(0), -8, "negative-size"),
        (Address("own", Const(0)), 8, "target-not-shared"),
        (Address("a", Const(0)), 8, "input-written"),
    ],
)
def test_targets_of_puts(target: Address, size: int, code: str) -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), target, source(8), size)
        aiv.quiet(peer(p))

    report = prove(protocol(fill))
    assert report.verdict("layout") is Verdict.VIOLATED
    assert code in codes(report)


def test_an_undeclared_region_is_an_error() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.put(peer(p), Address("hepa", Const(0)), source(0), 8)

    with pytest.raises(SourceError, match="hepa is not declared"):
        prove(protocol(fill))


def test_a_region_whose_size_depends_on_the_block_is_an_error() -> None:
    p = ProtocolBuilder("sizes")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=1)
    p.region("own", RegionKind.PRIVATE, p.block * 8)
    p.role(Role.AIV).barrier()
    with pytest.raises(SourceError, match="own may use parameters and rank only"):
        prove(p.build())


def test_untouched_bytes_of_an_input_are_what_they_are() -> None:
    """The reader's window is its own input; a later write of half of it makes the rest no fault."""

    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.read(Pipe.MTE2, window(source(0), 16, origin=Origin(p.rank, source(0))))
        aiv.write(Pipe.MTE2, window(source(8), 8))

    report = prove(protocol(fill))
    found = [f for r in report.results if r.property == RW for f in r.findings]
    assert not [f for f in found if f.code == "never-written"]


def test_a_local_array_index_wraps_as_in_c() -> None:
    def fill(p: ProtocolBuilder, aiv: RoleBuilder, aic: RoleBuilder) -> None:
        aiv.store("t", cast(CType.U8, Const(255) + p.rank - p.rank + 1), 3)
        aiv.set_flag(Pipe.MTE3, element("t", 0))
        aic.wait_flag(Pipe.MTE2, 3)

    assert prove(protocol(fill)).verdict("flag-balance") is Verdict.PROVED


def test_equal_programs_with_other_defaults_are_decided_apart() -> None:
    def build(tiles: int) -> Protocol:
        p = ProtocolBuilder(f"tiles {tiles}")
        p.parameter("ranks", low=1, default=1)
        p.parameter("blocks", low=1, default=1)
        count = p.parameter("tiles", default=tiles)
        aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
        with aiv.loop("i", count) as i:
            aiv.set_flag(Pipe.MTE3, i)
        with aic.loop("i", count) as i:
            aic.wait_flag(Pipe.MTE2, i)
        return p.build()

    report = prove_protocols([build(4), build(17)], {}, properties=["flag-range"])
    assert [(r.subjects, r.verdict) for r in report.results] == [
        (["tiles 4"], Verdict.PROVED),
        (["tiles 17"], Verdict.VIOLATED),
    ]
