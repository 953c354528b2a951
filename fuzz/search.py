"""Looking for a timing in which a protocol fails, and for the smallest case that does.

Hypothesis draws the timings; the first that fails ends the search. Sizes are shrunk here, by trying
smaller ones with many timings each: a timing drawn for one size says nothing about another, so a
shrinker that keeps the timing would stop at the first. Used by the ``fuzz`` command and by
`assert_matches_golden`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ..protocol.errors import Mc2proofError
from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Expr, Var, VarKind, variables
from ..protocol.instance import Instance
from ..protocol.program import For, Protocol, statements
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .acceptance import accepted
from .contracts import geometry_of, is_matmul
from .diagnose import Fault, code_of, diagnose
from .execute import Outcome, Runner
from .kinds import make_inputs
from .numerics import Dtypes
from .strategies import SEEDS
from .timings import TIMINGS

SMALL_SIZES: Mapping[str, int] = {"m": 2, "k": 64, "n": 2}
"""What the sizes of the product are where nobody gives them; n at least one column a block."""

TRIED = 100
"""How many timings of each kind are tried at each smaller size."""

OTHER_FAULTS = 20
"""How many timings with another fault are met there before that size is given up."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The reference's acceptance test on the outputs of a run: how many of ``elements`` fail it.

    ``different`` of them are not equal to the golden ones to the bit.
    """

    elements: int
    different: int
    failing: int

    def __str__(self) -> str:
        verdict = f"{self.failing} fail" if self.failing else "all pass"
        return (
            f"{self.different} of {self.elements} results differ from the golden ones, "
            f"{verdict} the test |golden - out| <= 0.01 + 0.01 * |out|"
        )


def acceptance_of(runner: Runner, outcome: Outcome) -> Acceptance | None:
    """How the outputs of ``outcome`` are judged; None where there are none, or no golden ones."""
    if not outcome.finished or not is_matmul(outcome.instance):
        return None
    elements = different = failing = 0
    for launch, ranks in enumerate(outcome.outputs):
        for rank, regions in enumerate(ranks):
            for region, (right, _) in runner.expected[launch][rank].items():
                golden = right.view(np.uint16)
                found = regions[region][: len(right)].view(np.uint16)
                elements += golden.size
                different += int(np.count_nonzero(golden != found))
                failing += int(np.count_nonzero(~accepted(golden, found)))
    return Acceptance(elements, different, failing)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: ``fault`` None means that none of ``examples`` timings failed.

    The last of them did fail then; the fault is shown at parameters that may be smaller than those of
    ``instance``. ``acceptance`` judges the outputs of that smaller run.
    """

    instance: Instance
    examples: int
    seconds: float
    fault: Fault | None = None
    acceptance: Acceptance | None = None

    @property
    def rate(self) -> float:
        """Examples a second."""
        return self.examples / self.seconds if self.seconds else 0.0


def sized(protocol: Protocol, values: Mapping[str, Value]) -> dict[str, Value]:
    """``values``, with small sizes for the matrices where none are given."""
    small = dict(values)
    for name, size in SMALL_SIZES.items():
        if protocol.parameter(name) is not None:
            small.setdefault(name, size)
    if protocol.parameter("n") is not None and "n" not in values:
        parameter = protocol.parameter("ranks")
        blocks = small.get("blocks", small.get("ranks", parameter.default if parameter else None))
        if isinstance(blocks, int):
            small["n"] = max(blocks, SMALL_SIZES["n"])  # a block without a column shows nothing
    return small


def search(
    protocol: Protocol,
    values: Mapping[str, Value],
    setup: Setup | None = None,
    *,
    examples: int = 1000,
    number: int = 0,
    timing: str = "pct",
    dtypes: Dtypes | None = None,
    kind: str = "tagged",
    limits: Limits | None = None,
    progress: Callable[[int], None] | None = None,
) -> Found:
    """Run ``examples`` timings of ``protocol`` at ``values``; the same for the same seed ``number``.

    ``kind`` of `kinds.KINDS` and ``dtypes`` are of the matrices. ``progress`` is told how many timings
    have been run. A failure is shrunk: few ranks and tiles, few steps, few switches between cores.
    """
    make = _Cases(protocol, setup, dtypes, kind, number, limits)
    runner = make.runner(sized(protocol, values))
    started = perf_counter()
    ran, failed = _first_failure(runner, examples, number, timing, progress)
    found = Found(runner.instance, ran, perf_counter() - started)
    if failed is None:
        return found
    smaller, shown = _smallest(make, runner, failed, timing, number)
    return replace(found, fault=diagnose(smaller, shown), acceptance=acceptance_of(smaller, shown))


class _Failure(Exception):
    """Ends Hypothesis's loop: a timing failed."""


def _first_failure(
    runner: Runner, examples: int, number: int, timing: str, progress: Callable[[int], None] | None
) -> tuple[int, Outcome | None]:
    ran = 0
    failed: list[Outcome] = []

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(st.integers(0, SEEDS - 1))  # one draw: many would cost more than the run itself
    def example(drawn: int) -> None:
        nonlocal ran
        if not failed:  # Hypothesis runs the example that failed once more
            ran += 1
            outcome = runner.run(TIMINGS[timing](drawn, runner.model.length))
            if progress is not None:
                progress(ran)
            if outcome.failed:
                failed.append(outcome)
        if failed:
            raise _Failure

    with suppress(_Failure):
        example()
    return ran, failed[0] if failed else None


@dataclass(slots=True)
class _Cases:
    """Makes runners of one protocol at any sizes."""

    protocol: Protocol
    setup: Setup | None
    dtypes: Dtypes | None
    kind: str
    seed: int
    limits: Limits | None

    def runner(self, values: Mapping[str, Value]) -> Runner:
        instance = unroll(self.protocol, values, self.setup, limits=self.limits)
        return runner_of(instance, self.dtypes, self.kind, self.seed)


def runner_of(
    instance: Instance, dtypes: Dtypes | None = None, kind: str = "tagged", seed: int = 0
) -> Runner:
    """A runner of ``instance`` on inputs of ``kind``, others for every launch."""
    if not is_matmul(instance):
        return Runner(instance, seed=seed)
    geometry = geometry_of(instance, dtypes)
    launches = range(instance.setup.launches)
    return Runner(instance, [make_inputs(kind, geometry, seed + n) for n in launches], seed=seed)


# --- shrinking ----------------------------------------------------------------------------------


def _smallest(
    make: _Cases, runner: Runner, failed: Outcome, timing: str, number: int
) -> tuple[Runner, Outcome]:
    """The smallest case found that has the same fault, by its code."""
    code = code_of(runner, failed)
    before = None
    while before != runner.instance.values:
        before = runner.instance.values
        for name in _shrinkable(make.protocol):
            for candidate in _candidates(make.protocol, runner.instance.values, name):
                try:
                    smaller = make.runner(candidate)
                except Mc2proofError:
                    continue  # smaller sizes may make no sense to this program
                outcome = _fails(smaller, code, timing, number)
                if outcome is not None:
                    runner, failed = smaller, outcome
                    break
    return runner, failed


def _fails(runner: Runner, code: str, timing: str, number: int) -> Outcome | None:
    """A timing of ``runner`` that has fault ``code``."""
    others = 0
    for kind in dict.fromkeys((timing, *TIMINGS)):
        for tried in range(TRIED):
            outcome = runner.run(TIMINGS[kind](tried + number * TRIED, runner.model.length))
            if outcome.failed and code_of(runner, outcome) == code:
                return outcome
            others += outcome.failed
            if others == OTHER_FAULTS:
                return None
    return None


def _shrinkable(protocol: Protocol) -> list[str]:
    """Ranks, then blocks where they are not one for each rank, then every parameter that bounds a loop.

    A kernel whose blocks each serve one rank has other faults with fewer blocks than ranks.
    """
    bounds = {
        v.name
        for program in protocol.programs.values()
        for s in statements(program)
        if isinstance(s, For)
        for v in variables(s.stop)
        if isinstance(v, Var) and v.kind is VarKind.PARAMETER
    }
    return ["ranks", "blocks", *sorted(bounds - {"ranks", "blocks"}, reverse=True), "buffer_size"]


def _candidates(protocol: Protocol, values: Mapping[str, Value], name: str) -> Iterator[dict[str, Value]]:
    """Smaller values of one parameter, ascending; what is computed from others follows them."""
    parameter, current = protocol.parameter(name), values.get(name)
    if parameter is None or not isinstance(current, int):
        return
    if name == "blocks" and current == values.get("ranks"):
        return
    computed = {
        p.name
        for p in protocol.parameters
        if isinstance(p.default, Expr) and values.get(p.name) == evaluate(p.default, values)
    }
    kept = {n: v for n, v in values.items() if n not in computed}
    for value in range(parameter.low, current):
        candidate = {**kept, name: value}
        if name == "ranks" and values.get("blocks") == current:
            candidate["blocks"] = value
        yield candidate
