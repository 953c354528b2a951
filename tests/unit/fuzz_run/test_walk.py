"""The fast executor does what the Machine does: the same actions are possible at every step."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.model import Model
from mc2proof.fuzz.mutations import mutate
from mc2proof.fuzz.walk import Walk
from mc2proof.protocol.errors import Mc2proofError
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.machine import Machine
from mc2proof.protocol.profile import ASCEND950, Hold
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import unroll


def drawn_setup(random: Random) -> Setup:
    profile = replace(
        ASCEND950,
        wait_holds=random.choice((Hold.PIPE, Hold.PIPE, Hold.CORE)),
        flags_merge=random.random() < 0.2,
    )
    faults = frozenset({Injected.QUIET_TIMEOUT}) if random.random() < 0.2 else frozenset()
    return Setup(
        profile,
        launches=random.choice((1, 1, 2)),
        flags_cleared=random.random() < 0.3,
        faults=faults,
    )


def drawn_instance(name: str, random: Random, changes: int) -> Instance | None:
    protocol = mutate(BASES[name], random, changes=changes).protocol if changes else BASES[name]
    values = {
        "ranks": random.choice((1, 2, 3)),
        "blocks": random.choice((1, 2)),
        "buffer_size": random.choice((1, 2)),
        "tile_cnt": random.choice((0, 1, 3)),
    }
    try:
        return unroll(protocol, values, drawn_setup(random))
    except Mc2proofError:
        return None  # a fault may make a program that makes no sense


@pytest.mark.parametrize("changes", [0, 1, 2])
@pytest.mark.parametrize("name", BASES)
def test_a_walk_is_the_machine(name: str, changes: int) -> None:
    random = Random(f"{name} {changes}")
    instances = [i for i in (drawn_instance(name, random, changes) for _ in range(6)) if i is not None]
    assert instances
    for instance in instances:
        model, machine = Model(instance), Machine(instance)
        walk, state, steps = Walk(model), machine.initial(), 0
        while actions := machine.enabled(state):
            assert [model.actions[slot] for slot in sorted(walk.ready)] == actions
            assert all(walk.is_ready(model.slots[action]) for action in actions)
            action = random.choice(actions)
            state = machine.step(state, action)
            walk.step(model.slots[action])
            steps += 1
        assert not walk.ready
        assert walk.finished() == machine.finished(state)
        if walk.finished():
            assert steps == model.length
