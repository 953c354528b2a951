"""Forensics: what readers found, or where an output went, is named; what nothing explains is told."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc2proof.fuzz.acceptance import accepted
from mc2proof.fuzz.forensics import Explanation, explain_output, unseen
from mc2proof.fuzz.golden import accumulate, golden, segment_product
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.matrices import Geometry, Inputs
from mc2proof.fuzz.numerics import PAIRS, Codes
from mc2proof.fuzz.residual import LEVELS, same
from mc2proof.fuzz.substitutions import Half, Launches, Part, Segment, Substitution
from mc2proof.fuzz.tagged import code_for

NOT_THERE = ("no-read-before-write", "completion", "coverage")
OVERWRITTEN = ("no-overwrite-before-read", "no-read-before-write")
MISPLACED = ("no-read-before-write", "coverage")

NAMED = {
    "stale": (
        ((0, 1, 2), (0, 1, 0), Part.DATA, Half.WHOLE),
        "segment of rank 0 is that of tile 0",
        NOT_THERE,
    ),
    "overwritten": (
        ((0, 1, 0), (0, 1, 2), Part.DATA, Half.WHOLE),
        "segment of rank 0 is that of tile 2",
        OVERWRITTEN,
    ),
    "missing": (
        ((1, 0, 1), None, Part.DATA, Half.WHOLE),
        "segment of rank 1 is zero: nothing arrived",
        NOT_THERE,
    ),
    "torn": (
        ((1, 0, 1), (1, 0, 2), Part.DATA, Half.SECOND),
        "second half of the segment of rank 1 is that of tile 2",
        OVERWRITTEN,
    ),
    "for another rank": (
        ((1, 0, 1), (1, 2, 1), Part.DATA, Half.WHOLE),
        "segment of rank 1 is that for rank 2",
        MISPLACED,
    ),
    "of another rank": (
        ((1, 0, 1), (2, 0, 1), Part.DATA, Half.WHOLE),
        "segment of rank 1 is that of rank 2",
        MISPLACED,
    ),
    "of another altogether": (
        ((1, 0, 1), (2, 1, 0), Part.DATA, Half.FIRST),
        "first half of the segment of rank 1 is that of rank 2 for rank 1 of tile 0",
        MISPLACED,
    ),
    "scales": (
        ((0, 2, 1), (0, 2, 0), Part.SCALES, Half.WHOLE),
        "scales of the segment of rank 0 are those of tile 0",
        NOT_THERE,
    ),
    "no scales": (
        ((0, 2, 1), None, Part.SCALES, Half.WHOLE),
        "scales of the segment of rank 0 are zero: nothing arrived",
        NOT_THERE,
    ),
    "both": (
        ((0, 2, 1), (0, 2, 2), Part.BOTH, Half.WHOLE),
        "segment of rank 0, with its scales, is that of tile 2",
        OVERWRITTEN,
    ),
}


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Three ranks, three tiles of enough rows for all scales to differ, and separate columns."""
    geometry = Geometry(3, 24, 64, 24, 8)
    assert code_for(geometry).separate
    return make_inputs("tagged", geometry, 4)


def explain(inputs: Inputs, rank: int, found: Codes) -> list[str]:
    return [e.text for e in explain_output(Launches(inputs), rank, golden(inputs, rank), found)]


@pytest.mark.parametrize("case", NAMED)
def test_a_fault_is_named(case: str, inputs: Inputs, with_faults: Callable) -> None:
    (own, other, part, half), text, violated = NAMED[case]
    fault = Substitution(Segment(*own), Segment(*other) if other else None, part, half)
    right = golden(inputs, own[1])
    found = with_faults(inputs, right, fault)
    (explained,) = explain_output(Launches(inputs), own[1], right, found)
    assert explained.text == f"rank {own[1]}, tile {own[2]}: {text}"
    assert explained.properties == (violated,)
    assert explained.exact


def test_any_number_of_faults_together_is_named(with_faults: Callable) -> None:
    inputs = make_inputs("tagged", Geometry(5, 15, 64, 40, 5), 1)
    own = [Segment(source, 2, 1) for source in range(5)]
    faults = (
        Substitution(own[0], own[0]._replace(tile=2)),
        Substitution(own[1], None),
        Substitution(own[3], own[3]._replace(tile=0), half=Half.FIRST),
        Substitution(own[4], own[4]._replace(rank=0), Part.BOTH),
    )
    right = golden(inputs, 2)
    (found,) = explain_output(Launches(inputs), 2, right, with_faults(inputs, right, *faults))
    assert found.shares[0].stories == (tuple((one,) for one in faults),)
    assert found.properties == (OVERWRITTEN, NOT_THERE, MISPLACED)


def test_untagged_data_is_explained_too(with_faults: Callable) -> None:
    inputs = make_inputs("normal", Geometry(4, 24, 64, 32, 8), 1)
    own = [Segment(source, 0, 1) for source in range(4)]
    faults = (
        Substitution(own[1], own[1]._replace(tile=2)),
        Substitution(own[2], None),
        Substitution(own[3], own[3]._replace(tile=0)),
    )
    right = golden(inputs, 0)
    (found,) = explain_output(Launches(inputs), 0, right, with_faults(inputs, right, *faults))
    (story,) = found.shares[0].stories
    assert tuple(one[0] for one in story) == faults
    assert found.text.endswith(
        "segment of rank 1 is that of tile 2; either segment of rank 2 is zero: nothing arrived, or scales "
        "of the segment of rank 2 are zero: nothing arrived; segment of rank 3 is that of tile 0"
    )


def test_other_launches_are_tried(inputs: Inputs, with_faults: Callable) -> None:
    launches = Launches(inputs, *(make_inputs("tagged", inputs.geometry, seed) for seed in (5, 6)))
    own = Segment(1, 0, 1)
    right = golden(inputs, 0)
    for launch, told, violated in (
        (-1, "that of the launch before", NOT_THERE),
        (1, "that of the next launch", ("relaunch",)),
    ):
        found = with_faults(launches, right, Substitution(own, own._replace(launch=launch)))
        (explained,) = explain_output(launches, 0, right, found)
        assert explained.text == f"rank 0, tile 1: segment of rank 1 is {told}"
        assert explained.properties == (violated,)
    found = right.copy()
    found[8:16] = golden(launches.of(-1), 0)[8:16]
    (kept,) = explain_output(launches, 0, right, found)
    assert kept.text == "rank 0, tile 1: its result is that of the launch before: it was never written"


def test_rows_that_are_off_are_named(with_faults: Callable) -> None:
    """A kernel that takes row blocks for whole tiles, on a host that does not (hardware.md 5)."""
    inputs = make_inputs("tagged", Geometry(3, 22, 64, 24, 8), 1)
    right = golden(inputs, 2)
    faults = [
        Substitution(Segment(s, 2, 1), Segment(s, 2, 1, shift=12), part)
        for s, part in enumerate((Part.DATA,) * 3)
    ]
    (found,) = explain_output(Launches(inputs), 2, right, with_faults(inputs, right, *faults))
    assert found.text.startswith("rank 2, tile 1: segment of rank 0 is that 12 rows above; segment of rank 1")


def test_outputs_in_the_wrong_place_are_named(inputs: Inputs) -> None:
    right = golden(inputs, 0)
    found = right.copy()
    found[0:8] = 0
    found[8:16] = right[16:24]
    found[16:24] = golden(inputs, 1)[16:24]
    assert explain(inputs, 0, found) == [
        "rank 0, tile 0: its result is zero: it was never written",
        "rank 0, tile 1: its result is that of tile 2",
        "rank 0, tile 2: its result is that of rank 1",
    ]
    assert explain(inputs, 0, right) == []


def test_shares_of_the_columns_are_told_apart(inputs: Inputs, with_faults: Callable) -> None:
    right = golden(inputs, 0)
    own = Segment(1, 0, 1), Segment(2, 0, 2)
    stale = with_faults(inputs, right, Substitution(own[0], own[0]._replace(tile=0)))
    late = with_faults(inputs, right, Substitution(own[1], None))
    found = right.copy()
    found[8:16, 12:24] = stale[8:16, 12:24]  # the second of two blocks
    found[16:24, :12] = late[16:24, :12]
    found[16:24, 12:24] = 0
    found[:8, :6], found[:8, 6:12] = right[:8, 6:12], right[:8, :6]
    swapped, one, both = explain(inputs, 0, found)
    assert swapped == (
        "rank 0, tile 0: columns 0-5: its result is that of columns 6-11; "
        "columns 6-11: its result is that of columns 0-5"
    )
    wrong = np.flatnonzero((~accepted(right, found))[8:16].any(axis=0))
    assert one == f"rank 0, tile 1: columns {wrong[0]}-{wrong[-1]}: segment of rank 1 is that of tile 0"
    assert both == (
        "rank 0, tile 2: columns 2-11: segment of rank 2 is zero: nothing arrived; "
        "columns 12-23: its result is zero: it was never written"
    )


def test_a_put_torn_at_any_row_is_named(inputs: Inputs, with_faults: Callable) -> None:
    right = golden(inputs, 0)
    own = Segment(1, 0, 1)
    stale = with_faults(inputs, right, Substitution(own, own._replace(tile=0)))
    for rows, told in ((slice(8, 11), "rows 0-2"), (slice(13, 16), "rows 5-7")):
        found = right.copy()
        found[rows] = stale[rows]
        assert explain(inputs, 0, found) == [f"rank 0, tile 1: {told}: segment of rank 1 is that of tile 0"]


def test_what_cannot_be_told_is_not_guessed(inputs: Inputs) -> None:
    right = golden(inputs, 0)
    found = right.copy()
    found[0:4] = 0x7FC0
    found[10, 3] ^= 0x4000
    found[17] = found[18, ::-1]
    nan, flipped, mixed = explain_output(Launches(inputs), 0, right, found)
    assert nan.text == (
        "rank 0, tile 0: rows 0-3: NaN in all columns, as of memory that nobody wrote, "
        "in place of the segment of rank 1 or rank 2"
    )
    assert nan.properties == (NOT_THERE,)
    for one in (flipped, mixed):
        assert one.text.split(": ", 1)[1].startswith(
            "not explained by any single schedule fault; first differences at ["
        )
        assert one.properties == ()


def test_single_columns_are_no_shares() -> None:
    """A segment stale in half of K, as no put leaves it, is not told as many narrow faults."""
    inputs = make_inputs("tagged", Geometry(2, 24, 256, 32, 8), 3)
    right = golden(inputs, 0)
    products = []
    for source in range(2):
        a, scales = (array.copy() for array in inputs.a_segment(source, 0, 2))
        if source == 1:
            stale, _ = inputs.a_segment(source, 0, 1)
            a[:, 128:] = stale[:, 128:]
        products.append(segment_product(a, scales, *inputs.b_segment(0, source), inputs.geometry.dtypes))
    found = right.copy()
    found[inputs.geometry.tile_span(2)] = accumulate(products)
    for explanation in explain_output(Launches(inputs), 0, right, found):
        assert len(explanation.shares) <= 1, explanation.text


def test_equal_segments_cannot_be_told_apart(with_faults: Callable) -> None:
    """Untagged inputs of which two tiles are the same: the fault passes unseen, and that is told."""
    inputs = make_inputs("normal", Geometry(2, 12, 64, 8, 4), 0)
    for buffer in (inputs.of_rank[1].a, inputs.of_rank[1].scale_a):
        buffer[4:8] = buffer[0:4]  # for rank 0, tile 1 is as tile 0
    hidden = unseen(inputs, 0)
    assert Substitution(Segment(1, 0, 1), Segment(1, 0, 0)) in hidden
    assert unseen(inputs, 1) == []
    right = golden(inputs, 0)
    stale = Substitution(Segment(1, 0, 2), Segment(1, 0, 0))
    assert explain(inputs, 0, with_faults(inputs, right, stale)) == [
        "rank 0, tile 2: either segment of rank 1 is that of tile 0, or segment of rank 1 is that of tile 1"
    ]


@st.composite
def faulty(draw: st.DrawFn) -> tuple[Inputs, int, tuple[Substitution, ...]]:
    """Tagged or normal inputs of some size, and random substitutions of some segments of one tile."""
    ranks, tiles = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rows, n = draw(st.integers(2, 9)), draw(st.integers(2, 10)) * ranks
    short = draw(st.integers(0, rows - 1)) if tiles > 1 else 0
    k = draw(st.sampled_from([32, 50, 64, 96]))
    geometry = Geometry(ranks, rows * tiles - short, k, n, rows, draw(st.sampled_from(PAIRS)))
    inputs = make_inputs(
        draw(st.sampled_from(["tagged", "tagged", "normal"])), geometry, draw(st.integers(0, 9))
    )
    rank, tile = draw(st.integers(0, ranks - 1)), draw(st.integers(0, tiles - 1))
    faults = []
    for source in draw(st.sets(st.integers(0, ranks - 1), min_size=1)):
        make = draw(st.sampled_from(LEVELS))
        tried = list(make(Launches(inputs), Segment(source, rank, tile)))
        if tried:
            faults.append(draw(st.sampled_from(tried)))
    return inputs, rank, tuple(faults)


def reproduced(explained: Explanation, inputs: Inputs, with_faults: Callable, found: Codes) -> bool:
    """Whether every share that is told gives what was found, in its rows and columns."""
    right = golden(inputs, explained.rank)
    span = inputs.geometry.tile_span(explained.tile)
    for share in explained.shares:
        rows = slice(span.start, span.stop)
        if share.rows is not None:
            rows = slice(span.start + share.rows[0], span.start + share.rows[1] + 1)
        columns = slice(None) if share.columns is None else slice(share.columns[0], share.columns[1] + 1)
        for story in share.stories:
            if all(isinstance(e[0], Substitution) for e in story):
                result = with_faults(inputs, right, *(e[0] for e in story))[rows, columns]
                agrees = same if share.exact else accepted
                if not agrees(result, found[rows, columns]).all():
                    return False
    return True


@settings(max_examples=120)
@given(case=faulty())
def test_random_faults_are_explained_or_it_is_said(
    case: tuple[Inputs, int, tuple[Substitution, ...]], with_faults: Callable
) -> None:
    inputs, rank, faults = case
    if not faults:
        return
    right = golden(inputs, rank)
    found = with_faults(inputs, right, *faults)
    explained = explain_output(Launches(inputs), rank, right, found)
    if accepted(right, found).all():
        assert explained == []
        return
    (one,) = explained
    assert reproduced(one, inputs, with_faults, found)
    tagged = inputs.of_rank[0].scale_b.min() == 127 and inputs.of_rank[0].scale_a.max() <= 128
    if tagged and code_for(inputs.geometry).separate:
        assert one.shares, (one.text, faults)
        assert one.exact
