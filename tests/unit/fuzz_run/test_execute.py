"""The numpy model: what bytes are where, what is found to be wrong, and where it is found."""

from __future__ import annotations

import numpy as np
import pytest

from mc2proof.fuzz.bases import BASES, ONE_LAUNCH
from mc2proof.fuzz.contracts import geometry_of, jobs_of
from mc2proof.fuzz.execute import Runner, run
from mc2proof.fuzz.golden import golden
from mc2proof.fuzz.kinds import KINDS, make_inputs
from mc2proof.fuzz.numerics import Dtypes
from mc2proof.fuzz.search import runner_of
from mc2proof.fuzz.timings import TIMINGS, Pct, Recorded, Uniform
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError, UnsupportedError
from mc2proof.protocol.expr import Const
from mc2proof.protocol.machine import ActionKind, Machine
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.setup import Setup

from .conftest import instance_of

ZERO = Const(0)


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_correct_protocol_is_equal_to_the_bit(ring: Runner, timing: str) -> None:
    for seed in range(60):
        outcome = ring.run(TIMINGS[timing](seed, ring.model.length))
        assert not outcome.failed, (seed, outcome.wrong_reads, outcome.wrong_outputs)


@pytest.mark.parametrize("dtypes", [Dtypes(a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_in_every_format(kind: str, dtypes: Dtypes) -> None:
    instance = instance_of(ring_all_to_all(), buffer_size=2, tile_cnt=4, k=96, m=3, n=5)
    inputs = make_inputs(kind, geometry_of(instance, dtypes), 1)
    outcome = run(instance, inputs, Uniform(3))
    assert not outcome.failed
    for rank, regions in enumerate(outcome.outputs[0]):
        assert regions["c"].tobytes() == golden(inputs, rank).tobytes()


@pytest.mark.parametrize("name", BASES)
def test_correct_relatives_and_two_launches(name: str) -> None:
    setup = Setup(launches=1 if name in ONE_LAUNCH else 2)
    values = {"blocks": 1} if name.startswith("fan-out") else {}
    runner = runner_of(instance_of(BASES[name], setup, buffer_size=2, tile_cnt=3, **values))
    for seed in range(20):
        for make in TIMINGS.values():
            assert not runner.run(make(seed, runner.model.length)).failed


def test_a_second_launch_without_a_barrier_goes_wrong() -> None:
    runner = runner_of(instance_of(ring_all_to_all(), Setup(launches=2), buffer_size=2, tile_cnt=1))
    outcomes = [runner.run(Pct(seed, 2)) for seed in range(100)]
    wrong = [o for o in outcomes if o.failed]
    assert wrong
    assert all(o.finished for o in outcomes)


def test_the_actions_of_a_run_replay_on_the_machine_and_give_the_same_bytes(ring: Runner) -> None:
    machine = Machine(ring.instance)
    for seed in range(10):
        outcome = ring.run(Uniform(seed))
        state = machine.initial()
        for action in outcome.actions:
            assert action in machine.enabled(state)
            state = machine.step(state, action)
        assert machine.finished(state)
        again = ring.run(Recorded(list(outcome.actions)))
        assert list(again.actions) == list(outcome.actions)
        for before, after in zip(outcome.outputs[0], again.outputs[0], strict=True):
            assert np.array_equal(before["c"], after["c"])


def test_a_depth_that_is_no_power_of_two_is_found_where_it_is_wrong() -> None:
    runner = runner_of(instance_of(ring_all_to_all(), buffer_size=3, tile_cnt=5))
    outcomes = [runner.run(Pct(seed, seed % 4)) for seed in range(60)]
    wrong = [o for o in outcomes if o.failed]
    assert wrong
    for outcome in wrong:
        read = outcome.wrong_reads[0]
        core = runner.instance.cores[read.core]
        assert core.id.role is Role.AIC
        assert read.access.region == "heap"
        assert read.access.origin is not None
        assert read.access.origin[0] != core.id.rank
        assert 0 <= read.tile < 5
        assert outcome.actions[read.step].kind is ActionKind.PIPE  # the step in which the reader ends
    assert any(outcome.wrong_outputs for outcome in wrong)


def test_shares_of_a_tile_are_disjoint_and_all_of_it() -> None:
    instance = instance_of(ring_all_to_all(), ranks=3, blocks=3, tile_cnt=2, n=7)
    runner = runner_of(instance)
    for tile in range(2):
        jobs = [job for job in jobs_of(instance) if job.rank == 0 and job.number == tile]
        assert [job.share for job in jobs] == [0, 1, 2]
        window_bytes = np.zeros(2 * 7 * 2, np.uint8)
        for job in jobs:
            for part in runner.contract.parts(job, window_bytes):
                part += 1
        assert (window_bytes == 1).all()


def one_put(*, quiet: bool) -> Protocol:
    """Rank 0 puts 8 bytes to rank 1, whose AIV reads them after a barrier."""
    p = ProtocolBuilder("one put")
    p.parameter("ranks", low=2, default=2)
    p.parameter("blocks", low=1, default=1)
    heap = p.region("heap", RegionKind.SHARED, 64)
    a = p.region("a", RegionKind.INPUT, 8)
    c = p.region("c", RegionKind.OUTPUT, 8)
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.put(1, Address(heap, ZERO), Address(a, ZERO), 8, staging=Pipe.S)
        if quiet:
            aiv.quiet(1)
    aiv.barrier()
    with aiv.when(p.rank.eq(1)):
        read = window(Address(heap, ZERO), 8, origin=Origin(ZERO, Address(a, ZERO)))
        aiv.compute("copy", "s", 1, reads=[read], writes=[window(Address(c, ZERO), 8)],
                    read_pipe=Pipe.MTE2, write_pipe=Pipe.MTE3)  # fmt: skip
    return p.build()


def test_a_put_lands_in_two_halves_and_a_reader_may_see_one() -> None:
    runner = Runner(instance_of(one_put(quiet=False)))
    source = runner.contract.inputs(0, 0)["a"]
    seen = set()
    for seed in range(200):
        outcome = runner.run(Uniform(seed))
        found = outcome.outputs[0][1]["c"]
        right = [bool(found[i] == source[i]) for i in range(8)]
        seen.add(tuple(right))
        assert outcome.failed == (not all(right))
        assert all(r.torn or not any(right) or r.step >= 0 for r in outcome.wrong_reads)
    assert (True,) * 8 in seen
    assert (False,) * 8 in seen
    assert (True,) * 4 + (False,) * 4 in seen  # the first half only


def test_with_quiet_it_is_whole() -> None:
    runner = Runner(instance_of(one_put(quiet=True)))
    assert not any(runner.run(Uniform(seed)).failed for seed in range(200))


def test_inputs_are_checked() -> None:
    ring_instance = instance_of(ring_all_to_all(), tile_cnt=2)
    other = make_inputs("tagged", geometry_of(instance_of(ring_all_to_all(), tile_cnt=3)), 0)
    with pytest.raises(ParameterError, match="inputs"):
        run(ring_instance, None, Uniform(0))
    with pytest.raises(ParameterError, match="the instance of"):
        run(ring_instance, other, Uniform(0))
    with pytest.raises(ParameterError, match="multiplies no MXFP8"):
        run(instance_of(one_put(quiet=True)), other, Uniform(0))
    two = instance_of(ring_all_to_all(), Setup(launches=2), tile_cnt=3)
    with pytest.raises(ParameterError, match="one for each of 2 launches"):
        run(two, [other], Uniform(0))


def test_a_product_of_other_segments_has_no_golden_result() -> None:
    p = ProtocolBuilder("one window")
    p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1, default=1)
    for name in ("m", "k", "n"):
        p.parameter(name, low=1)
    p.parameter("tile_cnt", default=1)
    a = p.region("a", RegionKind.INPUT)
    c = p.region("c", RegionKind.OUTPUT)
    aic = p.role(Role.AIC)
    aic.compute("matmul", "s", 1, reads=[window(Address(a, ZERO), 8)], writes=[window(Address(c, ZERO), 8)])
    instance = instance_of(p.build())
    assert not runner_of(instance).judged
    with pytest.raises(UnsupportedError, match="scales are stated to be from nowhere, no one input"):
        geometry_of(instance)
