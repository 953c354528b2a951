"""Looking for a timing in which a protocol fails, and for the smallest case that does.

Hypothesis draws the timings; the first that fails ends the search. Sizes are shrunk here, by trying
smaller ones with many timings each: a timing drawn for one size says nothing about another, so a
shrinker that keeps the timing would stop at the first. Used by the ``fuzz`` command and by
`assert_matches_golden`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from time import perf_counter

import numpy as np
from hypothesis import (
    HealthCheck,
    Phase,
    Verbosity,
    currently_in_test_context,
    given,
    seed,
    settings,
)
from hypothesis import strategies as st
from hypothesis.errors import DidNotReproduce, InvalidArgument

from ..protocol.errors import Mc2proofError, ParameterError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.trace import DataNote
from ..protocol.unroll import Limits, unroll
from .acceptance import accepted
from .contracts import SIZES, geometry_of, is_matmul
from .diagnose import Fault, code_of, diagnose
from .execute import Outcome, Runner
from .kinds import make_inputs
from .matrices import Geometry
from .numerics import Dtypes
from .reproduction import Reproduce, line_of
from .sizes import sized
from .smaller import candidates, shrinkable
from .tagged import code_for
from .timings import SEEDS, TIMINGS, Timing

SEEDS_NOTED = 1 << 63
"""Seeds of data are below this: a trace notes them in 64 bits."""

TAGGED = "tagged"
AT_ONCE = 5000
"""Timings that Hypothesis draws in one go: it remembers all of them."""

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
                differs = runner.contract.differs(region, right, regions[region][: len(right)])
                different += int(np.count_nonzero(differs.reshape(-1, 2).any(axis=1)))
                failing += int(np.count_nonzero(~accepted(golden, found)))
    return Acceptance(elements, different, failing)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: ``fault`` None means that none of ``examples`` timings failed.

    The last of them did fail then; the fault is shown at parameters that may be smaller than those of
    ``instance``. ``acceptance`` judges the outputs of that smaller run; ``reproduction`` is Hypothesis's
    ``reproduce_failure(...)``, with which a search of the same arguments meets the failure at once.
    ``data``: the inputs that were taken; ``judged``: some byte was compared with what it must be, else
    a run could only hang.
    """

    instance: Instance
    examples: int
    seconds: float
    data: DataNote
    judged: bool
    fault: Fault | None = None
    acceptance: Acceptance | None = None
    reproduction: str | None = None

    @property
    def rate(self) -> float:
        """Examples a second."""
        return self.examples / self.seconds if self.seconds else 0.0


def search(
    protocol: Protocol,
    values: Mapping[str, object],
    setup: Setup | None = None,
    *,
    examples: int = 1000,
    number: int = 0,
    timing: str = "pct",
    dtypes: Dtypes | None = None,
    kind: str | None = None,
    limits: Limits | None = None,
    reproduce: Reproduce | None = None,
    progress: Callable[[str], None] | None = None,
) -> Found:
    """Run ``examples`` timings of ``protocol`` at ``values``; the same for the same seed ``number``.

    ``kind`` of `kinds.KINDS` (None: tagged, or normal where sizes leave tags no room) and ``dtypes`` are
    of the matrices. ``progress`` is told what is being done, as a text.

    A failure is shrunk: few ranks and tiles, few steps, few switches between cores. With ``reproduce``,
    of Hypothesis, the timing that it stands for is the only one. Raises ParameterError where that is of
    another version or another search.
    """
    make = _Cases(protocol, setup, dtypes, kind, number, limits)
    runner = make.runner(sized(protocol, values))
    started = perf_counter()
    first = _first_failure(runner, examples, number, timing, reproduce, progress)
    seconds = perf_counter() - started
    found = Found(
        runner.instance, first.ran, seconds, make.note(), bool(runner.judged), reproduction=first.line
    )
    if first.outcome is None:
        return found
    if progress is not None:
        progress(f"example {first.ran} fails: looking for the smallest case")
    smaller, shown = _smallest(make, runner, first.outcome, timing, number)
    fault = diagnose(smaller, shown, make.note())
    return replace(found, fault=fault, acceptance=acceptance_of(smaller, shown))


def run_one(
    protocol: Protocol,
    values: Mapping[str, object],
    setup: Setup | None,
    timing: Timing,
    *,
    number: int = 0,
    dtypes: Dtypes | None = None,
    kind: str | None = None,
) -> Found:
    """Run ``timing`` alone, at ``values`` and no smaller ones: whoever drew it shrinks it."""
    make = _Cases(protocol, setup, dtypes, kind, number, None)
    runner = make.runner(sized(protocol, values))
    started = perf_counter()
    outcome = runner.run(timing)
    found = Found(runner.instance, 1, perf_counter() - started, make.note(), bool(runner.judged))
    if not outcome.failed:
        return found
    fault = diagnose(runner, outcome, make.note())
    return replace(found, fault=fault, acceptance=acceptance_of(runner, outcome))


class _Failure(Exception):
    """Ends Hypothesis's loop: a timing failed."""


@dataclass(slots=True)
class _First:
    """The first timing that failed: how many were ``ran``, what was ``drawn`` for it, what came of it."""

    ran: int = 0
    drawn: int | None = None
    outcome: Outcome | None = None
    line: str | None = None


@dataclass(slots=True)
class _Tries:
    """Runs timings of ``runner``, by the seeds drawn for them, until one fails: that is ``first``."""

    runner: Runner
    timing: str
    examples: int
    progress: Callable[[str], None] | None
    first: _First = field(default_factory=_First)

    def run(self, drawn: int) -> None:
        """Run the timing of ``drawn``. Raises _Failure if it fails, and whenever it comes again."""
        first = self.first
        if first.outcome is None:  # Hypothesis runs the example that failed once more
            first.ran += 1
            outcome = self.runner.run(TIMINGS[self.timing](drawn, self.runner.model.length))
            if self.progress is not None:
                self.progress(f"{first.ran} of {self.examples} examples")
            if outcome.failed:
                first.drawn, first.outcome = drawn, outcome
        if drawn == first.drawn:
            raise _Failure


def _first_failure(
    runner: Runner, examples: int, number: int, timing: str, reproduce: Reproduce | None,
    progress: Callable[[str], None] | None,
) -> _First:  # fmt: skip
    tries = _Tries(runner, timing, examples, progress)
    if currently_in_test_context():  # a test of Hypothesis's may not hold another
        if reproduce is not None:
            raise ParameterError("reproduce", None, "inside a test of Hypothesis, put it on that test")
        return _without_hypothesis(tries, number)
    for first in range(0, examples, AT_ONCE):
        _given(tries, min(AT_ONCE, examples - first), number + first * SEEDS_NOTED, reproduce)
        if tries.first.outcome is not None or reproduce is not None:
            break
    return tries.first


def _without_hypothesis(tries: _Tries, number: int) -> _First:
    random = Random(number)
    for _ in range(tries.examples):
        try:
            tries.run(random.randrange(SEEDS))
        except _Failure:
            break
    return tries.first


def _given(tries: _Tries, examples: int, number: int, reproduce: Reproduce | None) -> None:
    """Let Hypothesis draw ``examples`` timings, or the one that ``reproduce`` stands for."""

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=True,
        verbosity=Verbosity.quiet,
    )  # fmt: skip
    @given(st.integers(0, SEEDS - 1))  # one draw: many would cost more than the run itself
    def example(drawn: int) -> None:
        tries.run(drawn)

    try:
        (example if reproduce is None else reproduce(example))()
    except _Failure as failure:
        tries.first.line = line_of(failure)
    except (DidNotReproduce, InvalidArgument) as error:
        if reproduce is None:
            raise
        if not tries.first.ran:  # else the timing was run, and did not fail
            raise ParameterError("reproduce", None, " ".join(str(error).split())) from error


@dataclass(slots=True)
class _Cases:
    """Makes runners of one protocol at any sizes."""

    protocol: Protocol
    setup: Setup | None
    dtypes: Dtypes | None
    kind: str | None
    seed: int
    limits: Limits | None

    def __post_init__(self) -> None:
        if self.seed >= SEEDS_NOTED:
            raise ParameterError("seed", self.seed, f"must be below {SEEDS_NOTED}")

    def runner(self, values: Mapping[str, Value]) -> Runner:
        instance = unroll(self.protocol, values, self.setup, limits=self.limits)
        if self.kind is None:
            self.kind = kind_for(instance, self.dtypes)
        return runner_of(instance, self.dtypes, self.kind, self.seed)

    def note(self) -> DataNote:
        """The data as traces note it."""
        return DataNote(str(self.dtypes or Dtypes()), self.kind or TAGGED, self.seed)


def kind_for(instance: Instance, dtypes: Dtypes | None = None) -> str:
    """The kind of inputs that shows most: tagged, or normal where the sizes leave tags no room."""
    if not is_matmul(instance):
        return TAGGED  # which is of no meaning there
    geometry = _geometry(instance, dtypes)
    try:
        code_for(geometry)
    except ParameterError:
        return "normal"
    return TAGGED


def _geometry(instance: Instance, dtypes: Dtypes | None) -> Geometry:
    for name in ("tile_cnt", "rows", *SIZES):
        if instance.values.get(name) == 0:
            raise ParameterError(name, 0, "leaves nothing to multiply, so there is nothing to run")
    return geometry_of(instance, dtypes)


def runner_of(
    instance: Instance, dtypes: Dtypes | None = None, kind: str | None = None, seed: int = 0
) -> Runner:
    """A runner of ``instance`` on inputs of ``kind`` (None: of `kind_for`), others for every launch."""
    if not isinstance(instance, Instance):
        raise ParameterError("instance", None, "must be an Instance: mc2proof.fuzz.instance makes one")
    if dtypes is not None and not isinstance(dtypes, Dtypes):
        raise ParameterError("dtypes", repr(dtypes), "must be Dtypes, as Dtypes('e4m3', 'e5m2')")
    if not is_matmul(instance):
        return Runner(instance, seed=seed)
    geometry = _geometry(instance, dtypes)
    kind = kind or kind_for(instance, dtypes)
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
        for name in shrinkable(make.protocol):
            for candidate in candidates(make.protocol, runner.instance.values, name):
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
