"""Which parameters are symbols, and what is assumed of them."""

from __future__ import annotations

import pytest

from mc2proof.checker.parametric.domain import domain_of
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError

FREE = ("ranks", "tile_cnt", "buffer_size")


@pytest.mark.parametrize(
    ("assume", "inside", "outside"),
    [
        ("tile_cnt <= 16", {"tile_cnt": 16}, {"tile_cnt": 17}),
        ("16 >= tile_cnt", {"tile_cnt": 16}, {"tile_cnt": 17}),
        ("2 <= ranks < 5", {"ranks": 4}, {"ranks": 5}),
        ("tile_cnt <= min(16, buffer_size + 14)", {"tile_cnt": 15}, {"tile_cnt": 16}),
        ("max(tile_cnt, ranks) <= 9", {"tile_cnt": 9}, {"ranks": 10}),
        ("tile_cnt >= max(3, buffer_size)", {"tile_cnt": 3}, {"tile_cnt": 2}),
        ("tile_cnt <= max(3, buffer_size)", {"tile_cnt": 3}, {"tile_cnt": 4}),
        ("min(tile_cnt, ranks) <= 2", {"tile_cnt": 2, "ranks": 9}, {"tile_cnt": 3, "ranks": 3}),
        ("buffer_size power of 2", {"buffer_size": 8}, {"buffer_size": 6}),
        ("buffer_size is a power of two", {"buffer_size": 1}, {"buffer_size": 3}),
        ("tile_cnt == 2 * ranks or tile_cnt == 1", {"tile_cnt": 4, "ranks": 2}, {"tile_cnt": 3}),
        ("tile_cnt != 4 and ranks > 1", {"tile_cnt": 5}, {"tile_cnt": 4}),
    ],
)
def test_assumptions(assume: str, inside: dict[str, int], outside: dict[str, int]) -> None:
    domain = domain_of(ring_all_to_all(), FREE, {}, [assume])
    usual = {"ranks": 2, "tile_cnt": 1, "buffer_size": 1}
    assert domain.contains({**usual, **inside})
    assert not domain.contains({**usual, **outside})


@pytest.mark.parametrize(
    "assume",
    ["tile_cnt", "tiles <= 4", "tile_cnt <=", "not tile_cnt < 3", "k power of 2", "x power of 2",
     "tile_cnt / 2 < 3", "tile_cnt == min(2, ranks)", "tile_cnt in (1, 2)", "", "tile_cnt < 2.5",
     "tile_cnt < True"],
)  # fmt: skip
def test_assumptions_that_cannot_be_read(assume: str) -> None:
    with pytest.raises(ParameterError):
        domain_of(ring_all_to_all(), FREE, {}, [assume])


def test_unknown_names_and_names_with_a_value_are_refused() -> None:
    with pytest.raises(ParameterError, match="no such parameter"):
        domain_of(ring_all_to_all(), ("tiles",), {})
    with pytest.raises(ParameterError, match="as well"):
        domain_of(ring_all_to_all(), ("ranks",), {"ranks": 3})


def test_what_is_not_free_has_its_value_or_its_default() -> None:
    domain = domain_of(ring_all_to_all(), ("tile_cnt",), {"ranks": 3, "k": 64})
    assert str(domain.names["rows"]) == "512 * tile_cnt"
    assert {name: str(domain.names[name]) for name in ("ranks", "blocks", "k", "m")} == {
        "ranks": "3", "blocks": "3", "k": "64", "m": "512",
    }  # fmt: skip
