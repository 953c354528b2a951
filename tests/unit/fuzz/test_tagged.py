"""Tagged inputs: every substitution shows in every row that it changes, and is named."""

from collections.abc import Iterator

import numpy as np
import pytest

from mc2proof.fuzz.acceptance import accepted
from mc2proof.fuzz.forensics import explain_output, unseen
from mc2proof.fuzz.golden import accumulate, golden, segment_product
from mc2proof.fuzz.inputs import Geometry, Inputs
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.numerics import Codes, Dtypes
from mc2proof.fuzz.substitutions import Half, Part, Segment, Substitution, likely, rows_of, unlikely
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
                for one in (*likely(geometry, segment), *unlikely(geometry, segment)):
                    if changed_rows(inputs, one).any():
                        yield one


def changed_rows(inputs: Inputs, one: Substitution) -> np.ndarray:
    rows = np.arange(one.segment_rows(inputs.geometry))
    own, found = rows_of(inputs, one.segment, rows), one.found(inputs, rows)
    return (own[0] != found[0]).any(axis=1) | (own[1] != found[1]).any(axis=1)


def with_faults(inputs: Inputs, right: Codes, *faults: Substitution) -> Codes:
    """``right``, the golden result, with the tile of ``faults`` as their reader computes it."""
    geometry, segment = inputs.geometry, faults[0].segment
    rows = np.arange(faults[0].segment_rows(geometry))
    of_source = {one.segment.source: one for one in faults}
    products = []
    for source in range(geometry.ranks):
        one = of_source.get(source)
        read = one.found(inputs, rows) if one else inputs.a_segment(source, segment.rank, segment.tile)
        products.append(segment_product(*read, *inputs.b_segment(segment.rank, source), geometry.dtypes))
    result = right.copy()
    result[geometry.tile_span(segment.tile)] = accumulate(products)
    return result


@pytest.mark.parametrize("size", SIZES)
def test_every_substitution_shows_in_every_changed_row(size: str) -> None:
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


def test_exchanged_segments_show() -> None:
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


NAMED = {
    "stale": (((0, 1, 2), (0, 1, 0), Part.DATA, Half.WHOLE), "segment of rank 0 is that of tile 0"),
    "overwritten": (((0, 1, 0), (0, 1, 2), Part.DATA, Half.WHOLE), "segment of rank 0 is that of tile 2"),
    "missing": (((1, 0, 1), None, Part.DATA, Half.WHOLE), "segment of rank 1 is zero: nothing arrived"),
    "torn": (
        ((1, 0, 1), (1, 0, 2), Part.DATA, Half.SECOND),
        "second half of the segment of rank 1 is that of tile 2",
    ),
    "for another rank": (
        ((1, 0, 1), (1, 2, 1), Part.DATA, Half.WHOLE),
        "segment of rank 1 is that for rank 2",
    ),
    "of another rank": (((1, 0, 1), (2, 0, 1), Part.DATA, Half.WHOLE), "segment of rank 1 is that of rank 2"),
    "of another altogether": (
        ((1, 0, 1), (2, 1, 0), Part.DATA, Half.FIRST),
        "first half of the segment of rank 1 is that of rank 2 for rank 1 of tile 0",
    ),
    "scales": (
        ((0, 2, 1), (0, 2, 0), Part.SCALES, Half.WHOLE),
        "scales of the segment of rank 0 are those of tile 0",
    ),
}
VIOLATED = {"overwritten": "no-overwrite-before-read", "torn": "no-overwrite-before-read"}


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Three ranks, three tiles of enough rows for all scales to differ."""
    return make_inputs("tagged", Geometry(3, 24, 64, 12, 8), 4)


@pytest.mark.parametrize("case", NAMED)
def test_a_fault_is_named(case: str, inputs: Inputs) -> None:
    (own, other, part, half), text = NAMED[case]
    fault = Substitution(Segment(*own), Segment(*other) if other else None, part, half)
    right = golden(inputs, own[1])
    (explained,) = explain_output(inputs, own[1], right, with_faults(inputs, right, fault))
    assert explained.text == f"rank {own[1]}, tile {own[2]}: {text}"
    assert explained.properties == (VIOLATED.get(case, "no-read-before-write"),)
    assert explained.exact


def test_faults_together_are_named(inputs: Inputs) -> None:
    right = golden(inputs, 1)
    stale = [Substitution(Segment(s, 1, 2), Segment(s, 1, 1)) for s in (0, 2)]
    (alike,) = explain_output(inputs, 1, right, with_faults(inputs, right, *stale))
    assert alike.substitutions == tuple(stale)
    mixed = (Substitution(Segment(0, 1, 0), Segment(0, 1, 2)), Substitution(Segment(2, 1, 0), None))
    (both,) = explain_output(inputs, 1, right, with_faults(inputs, right, *mixed))
    assert both.substitutions == mixed
    assert both.properties == ("no-overwrite-before-read", "no-read-before-write")
    assert both.text.endswith(
        "segment of rank 0 is that of tile 2; segment of rank 2 is zero: nothing arrived"
    )


def test_each_wrong_tile_is_explained(inputs: Inputs) -> None:
    right = golden(inputs, 0)
    found = right.copy()
    found[0:8] = 0
    found[8:16] = right[16:24]
    found[20, 3] ^= 0x4000
    assert [e.text for e in explain_output(inputs, 0, right, found)] == [
        "rank 0, tile 0: its result is zero: it was never written",
        "rank 0, tile 1: its result is that of tile 2",
        "rank 0, tile 2: no stale, torn, misplaced or missing segment explains it, nor any two together",
    ]
    assert explain_output(inputs, 0, right, right) == []


def test_equal_segments_cannot_be_told_apart() -> None:
    """Untagged inputs of which two tiles are the same: the fault passes unseen, and that is told."""
    inputs = make_inputs("normal", Geometry(2, 12, 64, 8, 4), 0)
    for buffer in (inputs.of_rank[1].a, inputs.of_rank[1].scale_a):
        buffer[4:8] = buffer[0:4]  # for rank 0, tile 1 is as tile 0
    hidden = unseen(inputs, 0)
    assert Substitution(Segment(1, 0, 1), Segment(1, 0, 0)) in hidden
    assert unseen(inputs, 1) == []
    right = golden(inputs, 0)
    stale = Substitution(Segment(1, 0, 2), Segment(1, 0, 0))
    (unsure,) = explain_output(inputs, 0, right, with_faults(inputs, right, stale))
    assert unsure.alternatives == 1
    assert unsure.text == "rank 0, tile 2: segment of rank 1 is that of tile 0 (1 more explain it as well)"
