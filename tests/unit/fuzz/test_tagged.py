"""Tagged inputs: every substitution shows in every row that it changes."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from mc2proof.fuzz.acceptance import accepted
from mc2proof.fuzz.forensics import unseen
from mc2proof.fuzz.golden import golden
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.matrices import Geometry, Inputs
from mc2proof.fuzz.numerics import Dtypes
from mc2proof.fuzz.residual import LEVELS
from mc2proof.fuzz.substitutions import Launches, Segment, Substitution, rows_of
from mc2proof.fuzz.tagged import code_for, is_certain
from mc2proof.protocol.errors import ParameterError

SIZES = {
    "usual": Geometry(2, 12, 64, 8, 4),
    "e5m2": Geometry(2, 12, 64, 8, 4, Dtypes("e5m2", "e5m2")),
    "three ranks": Geometry(3, 8, 32, 8, 4, Dtypes("e5m2", "e4m3")),
    "odd groups, four ranks": Geometry(4, 8, 96, 16, 4, Dtypes("e4m3", "e5m2")),
    "one row a tile": Geometry(2, 4, 64, 8, 1),
    "few columns": Geometry(2, 6, 64, 4, 2),
    "shorter last tile": Geometry(2, 10, 64, 8, 4),
}


def every_substitution(inputs: Inputs) -> Iterator[Substitution]:
    """All that change a byte of what is read."""
    geometry = inputs.geometry
    for rank in range(geometry.ranks):
        for tile in range(geometry.tiles):
            for source in range(geometry.ranks):
                segment = Segment(source, rank, tile)
                for make in LEVELS:
                    yield from (
                        one for one in make(Launches(inputs), segment) if changed_rows(inputs, one).any()
                    )


def changed_rows(inputs: Inputs, one: Substitution) -> np.ndarray:
    rows = np.arange(one.segment_rows(inputs.geometry))
    launches = Launches(inputs)
    own, found = rows_of(launches, one.segment, rows), one.found(launches, rows)
    return (own[0] != found[0]).any(axis=1) | (own[1] != found[1]).any(axis=1)


@pytest.mark.parametrize("size", SIZES)
def test_every_substitution_shows_in_every_changed_row(size: str, with_faults: Callable) -> None:
    inputs = make_inputs("tagged", SIZES[size], 2)
    assert is_certain(SIZES[size])
    right = [golden(inputs, rank) for rank in range(SIZES[size].ranks)]
    tried = 0
    for one in every_substitution(inputs):
        expected = right[one.segment.rank]
        span = inputs.geometry.tile_span(one.segment.tile)
        passes = accepted(expected[span], with_faults(inputs, expected, one)[span]).all(axis=1)
        assert (passes == ~changed_rows(inputs, one)).all(), one.text
        tried += 1
    assert tried > 200


@pytest.mark.parametrize("seed", range(20))
def test_no_seed_hides_a_likely_substitution(seed: int) -> None:
    inputs = make_inputs("tagged", Geometry(3, 12, 64, 6, 2), seed)
    assert [unseen(inputs, rank) for rank in range(3)] == [[], [], []]


def test_exchanged_segments_show(with_faults: Callable) -> None:
    inputs = make_inputs("tagged", SIZES["three ranks"], 0)
    for rank in range(3):
        right = golden(inputs, rank)
        for one, two in ((0, 1), (1, 2), (0, 2)):
            first, second = Segment(one, rank, 1), Segment(two, rank, 1)
            found = with_faults(inputs, right, Substitution(first, second), Substitution(second, first))
            assert (~accepted(right, found)[4:]).any(axis=1).all()


def test_all_segments_and_rows_are_different() -> None:
    geometry = Geometry(3, 12, 64, 8, 4)
    inputs = make_inputs("tagged", geometry, 0)
    rows = np.concatenate([r.a for r in inputs.of_rank]).reshape(-1, 4, 64)
    assert len({segment.tobytes() for segment in rows}) == 27
    for row in range(4):
        assert len({segment[row].tobytes() for segment in rows}) == 27


def test_too_small_for_tags_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot tell 36 segments apart in 1 columns"):
        code_for(Geometry(2, 18, 64, 1, 2))
    assert not is_certain(Geometry(16, 4, 64, 16, 2))
