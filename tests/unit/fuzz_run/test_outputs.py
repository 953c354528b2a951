"""Outputs of calls that are no product: every byte, once a launch, and what the hardware stops at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.checker.prove import prove_protocols
from mc2proof.checker.report import Verdict
from mc2proof.fuzz.diagnose import Fault, code_of, diagnose
from mc2proof.fuzz.execute import Flaw, Outcome, Runner
from mc2proof.fuzz.search import runner_of, search
from mc2proof.fuzz.timings import Uniform
from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder, window
from mc2proof.protocol.expr import Const, Expr
from mc2proof.protocol.profile import ASCEND950
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, Region, RegionKind, Role
from mc2proof.protocol.replay import replay
from mc2proof.protocol.setup import Setup

from .conftest import instance_of

ZERO = Const(0)
SIZE = 64


class Copy:
    """A protocol that fills the 64 bytes of output c; ``body`` says how."""

    def __init__(self, body: Callable[[Copy], None], *, covered: bool = True) -> None:
        self.p = ProtocolBuilder("copy")
        self.p.parameter("ranks", low=1, default=2)
        self.p.parameter("blocks", low=1, default=1)
        self.x, self.y = (self.p.region(name, RegionKind.INPUT, SIZE) for name in "xy")
        self.heap = self.p.region("heap", RegionKind.SHARED, SIZE)
        self.c = self.p.region("c", RegionKind.OUTPUT, SIZE, covered=covered)
        self.aiv, self.aic = self.p.role(Role.AIV), self.p.role(Role.AIC)
        body(self)

    def origin(self, region: Region, rank: Expr | None = None) -> Origin:
        return Origin(self.p.rank if rank is None else rank, Address(region, ZERO))

    def compute(self, role: RoleBuilder, size: int = SIZE) -> None:
        read = window(Address(self.x, ZERO), SIZE, origin=self.origin(self.x))
        role.compute("sum", "s", 1, reads=[read], writes=[window(Address(self.c, ZERO), size)],
                     read_pipe=Pipe.MTE2, write_pipe=Pipe.MTE3 if role is self.aiv else Pipe.FIX)  # fmt: skip

    def write(self, role: RoleBuilder, pipe: Pipe, region: Region, begin: int = 0, size: int = SIZE) -> None:
        origin = Origin(self.p.rank, Address(region, Const(begin)))
        role.write(pipe, window(Address(self.c, Const(begin)), size, origin=origin))


def half(copy: Copy) -> None:
    copy.compute(copy.aic, SIZE // 2)


def first_launch_only(copy: Copy) -> None:
    with copy.aic.when(copy.p.launch.eq(0)):
        copy.compute(copy.aic)


def two_origins(copy: Copy) -> None:
    copy.write(copy.aiv, Pipe.MTE3, copy.x)
    copy.write(copy.aic, Pipe.FIX, copy.y)


def same_twice(copy: Copy) -> None:
    copy.write(copy.aiv, Pipe.MTE3, copy.x)
    copy.write(copy.aic, Pipe.FIX, copy.x)


def halves_by_two(copy: Copy) -> None:
    copy.write(copy.aiv, Pipe.MTE3, copy.x, 0, SIZE // 2)
    copy.write(copy.aic, Pipe.FIX, copy.y, SIZE // 2, SIZE // 2)


def put_to_peer(copy: Copy) -> None:
    copy.aiv.put(1 - copy.p.rank, Address(copy.c, ZERO), Address(copy.x, ZERO), SIZE, staging=Pipe.S)


def put_and_quiet(copy: Copy) -> None:
    put_to_peer(copy)
    copy.aiv.quiet(1 - copy.p.rank)
    copy.aiv.barrier()


def failed(protocol: Protocol, launches: int = 1) -> tuple[Runner, Outcome, Fault]:
    runner = runner_of(instance_of(protocol, Setup(launches=launches)))
    outcome = next(o for o in (runner.run(Uniform(seed)) for seed in range(200)) if o.failed)
    fault = diagnose(runner, outcome)
    assert code_of(runner, outcome) == fault.code
    assert replay(fault.trace, [protocol]).reproduced
    return runner, outcome, fault


@pytest.mark.parametrize(
    ("body", "launches", "flaw", "code", "count", "first"),
    [
        (half, 1, Flaw.MISSING, "output-missing", 32, 32),
        (first_launch_only, 2, Flaw.MISSING, "output-missing", 64, 0),
        (two_origins, 1, Flaw.TWICE, "output-twice", 64, 0),
        (same_twice, 1, Flaw.TWICE, "output-twice", 64, 0),
    ],
)
def test_a_covered_output_is_written_once_every_launch(
    body: Callable[[Copy], None], launches: int, flaw: Flaw, code: str, count: int, first: int
) -> None:
    protocol = Copy(body).p.build()
    runner, outcome, fault = failed(protocol, launches)
    wrong = outcome.wrong_outputs[0]
    assert (wrong.flaw, wrong.count, wrong.first, wrong.launch) == (flaw, count, first, launches - 1)
    assert (fault.property, fault.code) == ("coverage", code)
    assert all(runner.run(Uniform(seed)).failed for seed in range(5))
    report = prove_protocols([protocol], {"ranks": 2}, Setup(launches=launches))
    assert {r.property: r.verdict for r in report.results}["coverage"] is Verdict.VIOLATED


@pytest.mark.parametrize(("body", "launches"), [(halves_by_two, 1), (halves_by_two, 2), (put_and_quiet, 1)])
def test_what_is_written_once_is_right(body: Callable[[Copy], None], launches: int) -> None:
    runner = runner_of(instance_of(Copy(body).p.build(), Setup(launches=launches)))
    assert runner.judged.output_bytes == 2 * launches * SIZE
    assert not any(runner.run(Uniform(seed)).failed for seed in range(50))


def test_a_peer_that_begins_its_next_launch_overwrites_the_result() -> None:
    """Behind the barrier it may do so before this rank's launch has ended and its output was taken."""
    _, _, fault = failed(Copy(put_and_quiet).p.build(), launches=2)
    assert (fault.property, fault.code) == ("relaunch", "relaunch-overwrite")
    assert "before launch 1, whose result is there, has ended on rank" in fault.conflict[1]


def test_a_put_into_an_output_that_comes_after_the_launch() -> None:
    _, outcome, fault = failed(Copy(put_to_peer).p.build(), launches=2)
    assert outcome.wrong_outputs[0].flaw is Flaw.DIFFERS
    assert (fault.property, fault.code) in {
        ("completion", "not-complete-at-end"),
        ("relaunch", "relaunch-overwrite"),
    }
    assert " writes c[0..64) of rank " in fault.conflict[0]


def test_an_output_that_need_not_be_covered_may_be_left() -> None:
    runner = runner_of(instance_of(Copy(half, covered=False).p.build()))
    assert runner.judged.output_bytes == 2 * SIZE // 2
    assert not runner.run(Uniform(0)).failed


def test_bytes_that_look_like_poison_are_not_missing() -> None:
    found = search(Copy(lambda copy: copy.compute(copy.aic)).p.build(), {"ranks": 2}, examples=20)
    assert found.fault is None


# --- counters above their cap -------------------------------------------------------------------


def plain(body: Callable[[RoleBuilder, RoleBuilder], None]) -> Protocol:
    p = ProtocolBuilder("flags")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=1)
    body(p.role(Role.AIV), p.role(Role.AIC))
    return p.build()


def sets(count: int) -> Callable[[RoleBuilder, RoleBuilder], None]:
    def body(aiv: RoleBuilder, aic: RoleBuilder) -> None:
        for _ in range(count):
            aiv.set_flag(Pipe.MTE3, 1)
            aic.wait_flag(Pipe.MTE2, 1)

    return body


def event_twice(*, drained: bool) -> Callable[[RoleBuilder, RoleBuilder], None]:
    def body(aiv: RoleBuilder, aic: RoleBuilder) -> None:
        for _ in range(2):
            aiv.set_event(Pipe.MTE2, Pipe.MTE3, 1)
        for _ in range(2):
            aiv.wait_event(Pipe.MTE2, Pipe.MTE3, 1)
        if drained:
            aiv.pipe_barrier()
        aic.set_flag(Pipe.FIX, 2)
        aiv.wait_flag(Pipe.MTE3, 2)

    return body


@pytest.mark.parametrize(
    ("body", "name", "code", "stops"),
    [
        (sets(20), "flag-range", "counter-cap", True),
        (event_twice(drained=True), "deadlock-freedom", "event-hang", True),
        (event_twice(drained=False), "flag-range", "event-set-twice", False),
    ],
)
def test_a_counter_above_its_cap_is_named(
    body: Callable[[RoleBuilder, RoleBuilder], None], name: str, code: str, stops: bool
) -> None:
    protocol = plain(body)
    _, outcome, fault = failed(protocol)
    assert outcome.passed is not None
    assert (outcome.passed.code, outcome.passed.stops, outcome.finished) == (code, stops, not stops)
    assert (fault.property, fault.code) == (name, code)
    assert "is set when it already is" in fault.conflict[0]
    report = prove_protocols([protocol], {"ranks": 2})
    assert {r.property: r.verdict for r in report.results}[name] is Verdict.VIOLATED


def test_up_to_the_cap_nothing_is_wrong() -> None:
    runner = runner_of(instance_of(plain(sets(ASCEND950.counter_cap))))
    outcomes = [runner.run(Uniform(seed)) for seed in range(50)]
    assert all(o.passed is None and not o.failed for o in outcomes)
    assert not outcomes[0].judged
    assert str(outcomes[0].judged) == "no reader or output states its bytes: only hangs can show"


# --- forwarding ---------------------------------------------------------------------------------


def forwarded(copy: Copy) -> None:
    peer = 1 - copy.p.rank
    stage = copy.p.region("stage", RegionKind.SHARED, SIZE)
    copy.aiv.write(Pipe.MTE3, window(Address(stage, ZERO), SIZE, origin=copy.origin(copy.x)))
    copy.aiv.put(peer, Address(copy.heap, ZERO), Address(stage, ZERO), SIZE)
    copy.aiv.barrier()
    copy.aiv.read(Pipe.MTE2, window(Address(copy.heap, ZERO), SIZE, origin=copy.origin(copy.x, peer)))


def test_a_forwarded_put_that_is_late_is_late_and_not_foreign() -> None:
    _, outcome, fault = failed(Copy(forwarded, covered=False).p.build())
    assert outcome.wrong_reads
    assert (fault.property, fault.code) == ("no-read-before-write", "read-before-write")
    assert "puts there has landed" in fault.conflict[1]


def test_a_window_before_its_region_is_run_too() -> None:
    def body(copy: Copy) -> None:
        origin = copy.origin(copy.x)
        copy.aiv.write(Pipe.MTE3, window(Address(copy.c, Const(-2 * SIZE)), SIZE, origin=origin))

    runner = runner_of(instance_of(Copy(body, covered=False).p.build()))
    assert not runner.judged
    assert not runner.run(Uniform(0)).failed
