"""Small instances that the tests of the executable model share."""

from __future__ import annotations

import pytest

from mc2proof.fuzz.execute import Runner
from mc2proof.fuzz.search import runner_of
from mc2proof.fuzz.sizes import sized
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll


def instance_of(protocol: Protocol, setup: Setup | None = None, **values: int) -> Instance:
    """``protocol`` with small matrices, on 2 ranks unless ``values`` say otherwise."""
    return unroll(protocol, sized(protocol, {"ranks": 2, **values}), setup)


@pytest.fixture
def ring() -> Runner:
    """The built-in protocol on 2 ranks, 2 slots, 5 tiles, with tagged data."""
    return runner_of(instance_of(ring_all_to_all(), buffer_size=2, tile_cnt=5))
