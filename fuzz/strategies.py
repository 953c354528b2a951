"""Hypothesis strategies: parameters, timings, inputs, and whole protocols, right and wrong ones.

All arguments are keywords, and are checked when the strategy is made. What is drawn shrinks towards few
ranks and tiles, and towards timings with few changes; what it prints names the call that makes it. Use
them in a test of your own, with `assert_matches_golden` or with `run`. The names are those of
`mc2proof.fuzz` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from hypothesis import strategies as st

from ..protocol.errors import ParameterError
from ..protocol.evaluate import Value
from ..protocol.program import Parameter, Protocol
from .bases import BASES, base
from .kinds import KINDS, make_inputs
from .matrices import Geometry, Inputs
from .mutations import Mutant, mutate
from .numerics import FP8, Dtypes
from .sizes import checked_whole, sized
from .timings import SEEDS, TIMINGS, Pct, Preempt, Timing, Uniform

LEAST: Mapping[str, int] = {"ranks": 2, "buffer_size": 1, "tile_cnt": 1}
"""The parameters that are drawn, and the least value of each: one rank talks to nobody."""
MOST_CHANGES = 3
MOST_OTHERS = 8


def parameters(
    *,
    of: Protocol | None = None,
    max_ranks: int = 3,
    max_buffer_size: int = 4,
    max_tile_cnt: int = 8,
    **given: st.SearchStrategy[int],
) -> st.SearchStrategy[Mapping[str, Value]]:
    """Values of ``ranks`` (from 2), ``buffer_size`` (slots, from 1) and ``tile_cnt`` (tiles, from 1).

    Small ones first. ``of`` a protocol: those of the three that it has, within its own domains, and small
    matrices: ``m`` rows a tile, ``k`` columns of A on a rank, ``n`` columns of C (elements, not bytes).
    Any parameter may have a strategy of your own by its name: ``buffer_size=sampled_from([1, 2, 4])`` for
    a kernel that takes powers of two only.
    """
    if of is not None and not isinstance(of, Protocol):
        raise ParameterError("of", repr(of), "must be a Protocol, or None")
    for name, strategy in given.items():
        _own(name, strategy, of)
    most = {"ranks": max_ranks, "buffer_size": max_buffer_size, "tile_cnt": max_tile_cnt}
    for name, value in most.items():
        checked_whole(f"max_{name}", value, LEAST[name])
    free = [name for name in most if name not in given]
    if of is None:
        return st.fixed_dictionaries({**{n: st.integers(LEAST[n], most[n]) for n in free}, **given})
    known = [parameter for parameter in of.parameters if parameter.name in free]
    return _complete(of, {**{p.name: _within(p, most[p.name]) for p in known}, **given})


def _own(name: str, strategy: object, of: Protocol | None) -> None:
    """Raises ParameterError unless ``strategy`` is one, for a parameter that there is."""
    if of is not None and of.parameter(name) is None:
        raise ParameterError(name, None, f"{of.name} has no such parameter")
    if not isinstance(strategy, st.SearchStrategy):
        raise ParameterError(name, repr(strategy), "must be a strategy, such as sampled_from([1, 2, 4])")


@st.composite  # which is printed as the values themselves, a map as the call that makes them
def _complete(
    draw: st.DrawFn, protocol: Protocol, strategies: Mapping[str, st.SearchStrategy[int]]
) -> Mapping[str, Value]:
    return sized(protocol, {name: draw(strategy) for name, strategy in strategies.items()})


def _within(parameter: Parameter, most: int) -> st.SearchStrategy[int]:
    """Values of ``parameter`` up to ``most``, as far as its domain goes."""
    if most < parameter.low:
        raise ParameterError(f"max_{parameter.name}", most, f"must be an integer from {parameter.low}")
    high = most if parameter.high is None else min(most, parameter.high)
    return st.integers(min(max(LEAST[parameter.name], parameter.low), high), high)


def interleavings(*, kind: str = "pct", steps: int = 400) -> st.SearchStrategy[Timing]:
    """Timings of one ``kind``: pct (by priorities), preempt (few switches) or uniform.

    ``steps``: how long a run is at most, in steps of a core or of a landing (`Runner.model.length` says
    it of an instance). Only ``preempt`` uses it: a switch that comes later than the run ends is none.
    """
    _one_of("kind", kind, TIMINGS)
    checked_whole("steps", steps, 1)
    seeds = st.integers(0, SEEDS - 1)
    if kind == "pct":
        return st.builds(Pct, changes=st.integers(0, MOST_CHANGES), seed=seeds)
    if kind == "uniform":
        return st.builds(Uniform, seed=seeds)
    switch = st.tuples(st.integers(0, steps - 1), st.integers(0, MOST_OTHERS - 1))
    switches = st.lists(switch, max_size=MOST_CHANGES).map(tuple)
    return st.builds(Preempt, switches=switches, seed=seeds)


def inputs(*, geometry: Geometry, kind: str = "tagged") -> st.SearchStrategy[Inputs]:
    """The input matrices of all ranks, of a ``kind``: tagged, normal, extreme or special.

    Of every rank, uint8 codes: ``a`` [ranks * rows, k], ``b`` [n, ranks * k], and their e8m0 scales, one
    for 32 values along k in pairs, ``scale_a`` [ranks * rows, s], ``scale_b`` [n, ranks * s] with
    s = 2 * ceil(k / 64) bytes. ``geometry``: `geometry_of` an instance, or sizes of your own.
    """
    if not isinstance(geometry, Geometry):
        raise ParameterError("geometry", repr(geometry), "must be a Geometry (geometry_of makes one)")
    _one_of("kind", kind, KINDS)
    return st.builds(make_inputs, st.just(kind), st.just(geometry), st.integers(0, SEEDS - 1))


def dtypes() -> st.SearchStrategy[Dtypes]:
    """The formats of the values of A and B: each e4m3 or e5m2, one byte a value."""
    names = st.sampled_from(list(FP8))
    return st.builds(Dtypes, names, names)


def protocols(*, safe: bool | None = None) -> st.SearchStrategy[Protocol]:
    """Small protocols that sync in different ways; a handful of statements for each core.

    ``safe`` True: correct ones (one block a rank for those named fan-out); False: with a fault put in
    that may or may not show; None: either. Their matrices are large by default; `mc2proof.fuzz.instance`
    makes them small.
    """
    if safe is not None and not isinstance(safe, bool):
        raise ParameterError("safe", repr(safe), "must be True, False or None")
    correct = st.builds(base, st.sampled_from(list(BASES)))
    faulty = st.builds(_with_a_fault, correct, st.integers(0, SEEDS - 1))
    if safe is None:
        return correct | faulty
    return correct if safe else faulty


def _with_a_fault(of: Protocol, seed: int) -> Protocol:
    return mutate(of, Random(seed)).protocol


def mutants(*, of: Protocol, changes: int = 1) -> st.SearchStrategy[Mutant]:
    """``of`` with ``changes`` statements changed at random; most of them show in some timing, not all."""
    if not isinstance(of, Protocol):
        raise ParameterError("of", repr(of), "must be a Protocol")
    checked_whole("changes", changes, 1)
    if not any(of.programs.values()):
        raise ParameterError("of", of.name, "has no statement to change")

    def mutant(seed: int) -> Mutant:
        return mutate(of, Random(seed), changes=changes)

    return st.builds(mutant, st.integers(0, SEEDS - 1))


def _one_of(name: str, value: object, known: Mapping[str, object]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ParameterError(name, repr(value), f"must be one of {', '.join(known)}")
