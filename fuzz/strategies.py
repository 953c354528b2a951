"""Hypothesis strategies: parameters, timings, inputs, and whole protocols, right and wrong ones.

All arguments are keywords with defaults and are checked when the strategy is made. What is drawn
shrinks towards few ranks and tiles, and towards timings with few changes. Use them in a test of your
own with `execute.run`, or have `assert_matches_golden` do all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from hypothesis import strategies as st

from ..protocol.errors import ParameterError
from ..protocol.evaluate import Value
from ..protocol.program import Protocol
from .bases import BASES
from .inputs import Geometry, Inputs
from .kinds import KINDS, make_inputs
from .mutants import Mutant, mutate
from .numerics import Dtypes
from .timings import TIMINGS, Pct, Preempt, Timing, Uniform

SEEDS = 1 << 32
MOST_CHANGES = 3
MOST_OTHERS = 8


def parameters(
    *, max_ranks: int = 3, max_buffer_size: int = 4, max_tile_cnt: int = 8
) -> st.SearchStrategy[Mapping[str, Value]]:
    """Values of ranks (from 2), buffer_size (from 1) and tile_cnt (from 1), small ones first."""
    _whole("max_ranks", max_ranks, 2)
    _whole("max_buffer_size", max_buffer_size, 1)
    _whole("max_tile_cnt", max_tile_cnt, 1)
    return st.fixed_dictionaries(
        {
            "ranks": st.integers(2, max_ranks),
            "buffer_size": st.integers(1, max_buffer_size),
            "tile_cnt": st.integers(1, max_tile_cnt),
        }
    )


def interleavings(*, kind: str = "pct", steps: int = 400) -> st.SearchStrategy[Timing]:
    """Timings of one ``kind``: pct (the default), preempt or uniform.

    ``steps`` is about how long a run is (`Runner.model.length`); only ``preempt`` uses it.
    """
    if kind not in TIMINGS:
        raise ParameterError("kind", repr(kind), f"must be one of {', '.join(TIMINGS)}")
    _whole("steps", steps, 1)
    seeds = st.integers(0, SEEDS - 1)
    if kind == "pct":
        return st.builds(Pct, changes=st.integers(0, MOST_CHANGES), seed=seeds)
    if kind == "uniform":
        return st.builds(Uniform, seed=seeds)
    switch = st.tuples(st.integers(0, steps - 1), st.integers(0, MOST_OTHERS - 1))
    switches = st.lists(switch, max_size=MOST_CHANGES).map(tuple)
    return st.builds(Preempt, switches=switches, seed=seeds)


def inputs(*, geometry: Geometry, kind: str = "tagged") -> st.SearchStrategy[Inputs]:
    """Matrices of ``geometry``, of a kind of `kinds.KINDS`: tagged, normal, extreme or special."""
    if not isinstance(geometry, Geometry):
        raise ParameterError("geometry", repr(geometry), "must be a Geometry")
    if kind not in KINDS:
        raise ParameterError("kind", repr(kind), f"must be one of {', '.join(KINDS)}")
    return st.integers(0, SEEDS - 1).map(lambda seed: make_inputs(kind, geometry, seed))


def dtypes() -> st.SearchStrategy[Dtypes]:
    """The formats of A and B: e4m3 or e5m2 each."""
    names = st.sampled_from(["e4m3", "e5m2"])
    return st.builds(Dtypes, names, names)


def protocols(*, safe: bool | None = None) -> st.SearchStrategy[Protocol]:
    """Small protocols that sync in different ways.

    ``safe`` True: correct ones (one block a rank for those named fan-out); False: with a fault put in
    that may or may not show; None: either.
    """
    if safe is not None and not isinstance(safe, bool):
        raise ParameterError("safe", repr(safe), "must be True, False or None")
    correct = st.sampled_from(list(BASES.values()))
    if safe:
        return correct
    faulty = correct.flatmap(lambda base: mutants(of=base)).map(lambda mutant: mutant.protocol)
    return faulty if safe is False else correct | faulty


def mutants(*, of: Protocol, changes: int = 1) -> st.SearchStrategy[Mutant]:
    """``of`` with ``changes`` faults put in at random; most of them show in some timing, not all."""
    if not isinstance(of, Protocol):
        raise ParameterError("of", repr(of), "must be a Protocol")
    _whole("changes", changes, 1)
    if not any(of.programs.values()):
        raise ParameterError("of", of.name, "has no statement to change")
    return st.integers(0, SEEDS - 1).map(lambda seed: mutate(of, Random(seed), changes=changes))


def _whole(name: str, value: object, low: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ParameterError(name, repr(value), f"must be an integer from {low}")
