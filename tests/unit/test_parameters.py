"""Values of parameters: what is completed, and what is refused before anything is made of them."""

from __future__ import annotations

import pytest

from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.errors import ParameterError, SourceError
from mc2proof.protocol.expr import Expr
from mc2proof.protocol.parameters import check_values
from mc2proof.protocol.program import Protocol, RegionKind


@pytest.mark.parametrize("name", ["ranks", "blocks", "tile_cnt", "m"])
def test_an_array_for_a_number(name: str) -> None:
    """Also for those that only sizes and other defaults are computed from."""
    with pytest.raises(ParameterError, match=f"{name} = 1,2: is one number, not an array"):
        check_values(ring_all_to_all(), {name: (1, 2)})


def with_size(*, default: bool = False, by_rank: bool = False) -> Protocol:
    p = ProtocolBuilder("sized")
    ranks = p.parameter("ranks", low=1, default=4)
    p.parameter("blocks", low=1)
    part: Expr = 64 // (ranks - 4 if not by_rank else p.rank - 2)
    if default:
        p.parameter("part", default=part)
    else:
        p.region("heap", RegionKind.SHARED, part)
    return p.build()


def test_a_size_that_cannot_be_computed() -> None:
    with pytest.raises(
        SourceError, match=r"the size of region heap, `.*`, cannot be computed: division by zero"
    ):
        check_values(with_size(), {})
    assert check_values(with_size(), {"ranks": 5})["ranks"] == 5
    with pytest.raises(SourceError, match="the size of region heap"):
        check_values(with_size(by_rank=True), {})
    assert check_values(with_size(by_rank=True), {"ranks": 2})["ranks"] == 2


def test_a_default_that_cannot_be_computed() -> None:
    with pytest.raises(SourceError, match=r"the default of part, `.*`, cannot be computed: division by zero"):
        check_values(with_size(default=True), {})
    assert check_values(with_size(default=True), {"ranks": 12})["part"] == 8
