"""The Hypothesis strategies, as a test of one's own uses them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from mc2proof.fuzz import geometry_of, run, strategies
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.matrices import Geometry, Inputs
from mc2proof.fuzz.mutations import Mutant, mutate
from mc2proof.fuzz.search import runner_of
from mc2proof.fuzz.sizes import sized
from mc2proof.fuzz.timings import Pct, Preempt, Timing, Uniform
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.unroll import unroll

quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@quick
@given(values=strategies.parameters(max_buffer_size=2), timing=strategies.interleavings())
def test_the_builtin_is_right_at_depths_that_are_powers_of_two(
    values: dict[str, int], timing: Timing
) -> None:
    protocol = ring_all_to_all()
    assert not runner_of(unroll(protocol, sized(protocol, values))).run(timing).failed


SMALLEST = {"pct": Pct(1, 0), "preempt": Preempt(1, ()), "uniform": Uniform(0)}


@pytest.mark.parametrize("kind", SMALLEST)
def test_what_fails_shrinks_to_few_ranks_tiles_and_switches(kind: str) -> None:
    protocol = ring_all_to_all()

    def fails(drawn: tuple[dict[str, int], Timing]) -> bool:
        values, timing = drawn
        return runner_of(unroll(protocol, sized(protocol, values))).run(timing).failed

    drawn = st.tuples(strategies.parameters(), strategies.interleavings(kind=kind, steps=200))
    phases = (Phase.generate, Phase.shrink)
    values, timing = find(
        drawn, fails, settings=settings(max_examples=400, derandomize=True, database=None, phases=phases)
    )
    assert values == {"ranks": 2, "buffer_size": 3, "tile_cnt": 2}
    assert timing == SMALLEST[kind]


@quick
@given(data=st.data(), values=strategies.parameters(of=ring_all_to_all(), max_buffer_size=2))
def test_run_takes_what_is_drawn(data: st.DataObject, values: dict[str, int]) -> None:
    instance = unroll(ring_all_to_all(), values)
    matrices = data.draw(strategies.inputs(geometry=geometry_of(instance)))
    outcome = run(instance, matrices, data.draw(strategies.interleavings()))
    assert outcome.finished
    assert not outcome.failed


@quick
@given(data=st.data())
def test_parameters_follow_the_protocol(data: st.DataObject) -> None:
    p = ProtocolBuilder("pair")
    p.parameter("ranks", low=2, high=2, default=2)
    p.parameter("blocks", low=1, high=1, default=1)
    p.parameter("tile_cnt", low=3, default=3)
    pair = p.build()
    drawn = data.draw(strategies.parameters(of=pair, max_ranks=5, max_tile_cnt=4))
    assert drawn["ranks"] == 2
    assert drawn["tile_cnt"] in (3, 4)
    assert set(drawn) == {"ranks", "tile_cnt"}
    with pytest.raises(ParameterError, match=r"max_tile_cnt = 2: must be an integer from 3"):
        strategies.parameters(of=pair, max_tile_cnt=2)


@quick
@given(values=strategies.parameters(of=ring_all_to_all(), buffer_size=st.sampled_from([1, 2, 4])))
def test_a_parameter_may_have_a_strategy_of_ones_own(values: dict[str, int]) -> None:
    assert values["buffer_size"] in (1, 2, 4)
    assert set(values) == {"ranks", "buffer_size", "tile_cnt", "m", "k", "n"}


def test_what_is_drawn_is_printed_in_a_line() -> None:
    protocol = ring_all_to_all()
    assert repr(protocol) == f"<Protocol ring-all-to-all {protocol.digest()}>"
    assert len(repr(mutate(protocol, Random(1), changes=2))) < 200


def test_more_changes_than_there_is_to_change() -> None:
    assert 0 < len(mutate(ring_all_to_all(), Random(1), changes=3000, first="drop").changes) <= 3000


@quick
@given(st.data())
def test_what_is_drawn(data: st.DataObject) -> None:
    geometry = Geometry(2, 4, 64, 4, 2)
    assert isinstance(data.draw(strategies.interleavings()), Pct)
    assert isinstance(data.draw(strategies.inputs(geometry=geometry)), Inputs)
    assert data.draw(strategies.dtypes()).a in ("e4m3", "e5m2")
    assert data.draw(strategies.protocols(safe=True)) in BASES.values()
    assert isinstance(data.draw(strategies.protocols()), Protocol)
    mutant = data.draw(strategies.mutants(of=ring_all_to_all()))
    assert isinstance(mutant, Mutant)
    assert mutant.protocol.digest() != ring_all_to_all().digest() or mutant.changes


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: strategies.parameters(max_ranks=1), "max_ranks"),
        (lambda: strategies.parameters(max_tile_cnt=0), "max_tile_cnt"),
        (lambda: strategies.parameters(max_ranks=2.0), "max_ranks"),  # type: ignore[arg-type]
        (lambda: strategies.parameters(of="x"), "of"),  # type: ignore[arg-type]
        (lambda: strategies.parameters(buffer_size=3), "buffer_size"),  # type: ignore[arg-type]
        (lambda: strategies.parameters(of=ring_all_to_all(), ring=st.just(1)), "ring"),
        (lambda: strategies.interleavings(kind="any"), "kind"),
        (lambda: strategies.interleavings(kind=[]), "kind"),  # type: ignore[arg-type]
        (lambda: strategies.interleavings(steps=0), "steps"),
        (lambda: strategies.inputs(geometry=None), "geometry"),  # type: ignore[arg-type]
        (lambda: strategies.inputs(geometry=Geometry(2, 4, 64, 4, 2), kind="x"), "kind"),
        (lambda: strategies.protocols(safe=1), "safe"),  # type: ignore[arg-type]
        (lambda: strategies.mutants(of="x"), "of"),  # type: ignore[arg-type]
        (lambda: strategies.mutants(of=ring_all_to_all(), changes=0), "changes"),
    ],
)
def test_arguments_are_checked(make: Callable[[], object], name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}\b") as caught:
        make()
    assert "\n" not in str(caught.value)
