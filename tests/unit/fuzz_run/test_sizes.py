"""The sizes that a run takes by itself: small, within domains, and with room for tags."""

from __future__ import annotations

import numpy as np
import pytest

from mc2proof.fuzz.search import runner_of
from mc2proof.fuzz.sizes import instance, sized
from mc2proof.fuzz.timings import Pct
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import Pipe, Protocol, Role


def rounds(name: str) -> Protocol:
    """Flags handed over as often as the parameter ``name`` says: no product."""
    p = ProtocolBuilder("rounds")
    p.parameter("ranks", low=1, default=2)
    p.parameter("blocks", low=1, default=1)
    count = p.parameter(name, low=1, default=8)
    with p.role(Role.AIV).loop("i", count) as i:
        p.role(Role.AIV).set_flag(Pipe.MTE3, i)
    with p.role(Role.AIC).loop("i", count) as i:
        p.role(Role.AIC).wait_flag(Pipe.MTE2, i)
    return p.build()


@pytest.mark.parametrize("name", ["m", "k", "n"])
def test_only_the_sizes_of_a_product_are_chosen(name: str) -> None:
    assert sized(rounds(name), {}) == {}
    assert instance(rounds(name)).values[name] == 8


def test_sizes_are_small_unless_given() -> None:
    assert sized(ring_all_to_all(), {"ranks": 3}) == {"ranks": 3, "m": 2, "k": 64, "n": 3}
    assert sized(ring_all_to_all(), {"m": 8, "n": 1}) == {"m": 8, "k": 64, "n": 1}
    assert sized(ring_all_to_all(), {"ranks": 4, "blocks": 2, "tile_cnt": 4})["n"] == 2
    assert sized(ring_all_to_all(), {})["n"] == 4  # by the default of ranks


@pytest.mark.parametrize(
    "values",
    [
        {"ranks": 2, "tile_cnt": 17},
        {"ranks": 2, "tile_cnt": 18, "k": 6},
        {"ranks": 3, "blocks": 4},
        {"ranks": 2, "tile_cnt": 200, "n": 4},
    ],
)
def test_tags_have_room(values: dict[str, int]) -> None:
    runner = runner_of(instance(ring_all_to_all(), values), kind="tagged")
    assert not runner.run(Pct(1)).failed


def test_sizes_that_leave_no_room_for_tags_are_run_with_normal_data() -> None:
    runner = runner_of(instance(ring_all_to_all(), {"ranks": 2, "n": 1}))
    assert not runner.run(Pct(1)).failed
    with pytest.raises(ParameterError, match="tagged inputs cannot tell"):
        runner_of(instance(ring_all_to_all(), {"ranks": 2, "n": 1}), kind="tagged")


def test_nothing_to_multiply() -> None:
    with pytest.raises(ParameterError, match=r"tile_cnt = 0: leaves nothing to multiply"):
        runner_of(instance(ring_all_to_all(), {"ranks": 2, "tile_cnt": 0}))


def test_integers_of_numpy_are_integers() -> None:
    assert instance(ring_all_to_all(), {"ranks": np.int64(2)}).ranks == 2
    assert type(sized(ring_all_to_all(), {"ranks": np.int64(2)})["ranks"]) is int


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ranks": 2.0}, r"ranks = 2\.0: must be an integer"),
        ({"ranks": "2"}, r"ranks = '2': must be an integer"),
        ({"ranks": True}, "ranks = True: must be an integer"),
        ({"ranks": None}, "ranks = None: must be an integer"),
        ({1: 2}, "values = 1: must be the name"),
        ([("ranks", 2)], "values = .*must map names"),
    ],
)
def test_values_are_checked(values: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        instance(ring_all_to_all(), values)  # type: ignore[arg-type]


def test_what_is_no_protocol_is_told_in_a_line() -> None:
    with pytest.raises(ParameterError, match=r"not 2 of them: mc2proof.load\(...\)\[0\]") as caught:
        instance([ring_all_to_all()] * 2)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 150
    with pytest.raises(ParameterError, match=r"setup = \{'launches': 2\}: must be a Setup"):
        instance(ring_all_to_all(), {}, {"launches": 2})  # type: ignore[arg-type]
