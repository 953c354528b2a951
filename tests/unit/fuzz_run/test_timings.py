"""Timings: deterministic by their seed, different from each other, and of the kind that they say."""

from __future__ import annotations

import pytest

from mc2proof.fuzz.execute import Runner
from mc2proof.fuzz.minimise import switches
from mc2proof.fuzz.timings import TIMINGS, Pct, Preempt, Recorded, Uniform
from mc2proof.protocol.errors import TraceError
from mc2proof.protocol.machine import Action, ActionKind


@pytest.mark.parametrize("kind", TIMINGS)
def test_equal_seeds_give_equal_timings_and_others_differ(ring: Runner, kind: str) -> None:
    make = TIMINGS[kind]
    runs = [list(ring.run(make(seed, ring.model.length)).actions) for seed in (1, 2, 3, 1, 2, 3)]
    assert runs[:3] == runs[3:]
    assert len({tuple(actions) for actions in runs}) == 3


def test_few_changes_mean_few_switches(ring: Runner) -> None:
    def of(timing: Pct | Preempt | Uniform) -> int:
        slots = [ring.model.slots[action] for action in ring.run(timing).actions]
        return switches(ring.model, slots)

    assert of(Preempt(0)) < of(Uniform(1))
    assert of(Pct(0, 0)) < of(Uniform(1))


def test_a_switch_is_where_it_is_asked_for(ring: Runner) -> None:
    calm = ring.run(Preempt(0)).actions
    switched = ring.run(Preempt(0, ((10, 0),))).actions
    assert list(calm[:10]) == list(switched[:10])
    assert calm[10] != switched[10]


def test_a_recorded_timing_must_fit(ring: Runner) -> None:
    with pytest.raises(TraceError, match=r"action 1 .* is not possible there"):
        ring.run(Recorded([Action(ActionKind.LAND, 0, 0)]))
    assert not ring.run(Recorded([], after=[Action(ActionKind.LAND, 0, 0)])).failed
