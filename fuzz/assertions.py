"""One call for a test of your own: run a protocol with data in many timings, against the golden result.

The test of a kernel project calls it with its kernel; a Hypothesis test gives it what it has drawn. Read
`search` next.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis.errors import DidNotReproduce

from ..protocol.builtin import BUILTIN
from ..protocol.errors import ParameterError
from ..protocol.evaluate import Value
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from .kinds import KINDS
from .numerics import parse_dtypes
from .reproduction import Reproduce
from .search import Found, run_one, search
from .sizes import checked_protocol, checked_setup, checked_values, checked_whole
from .timings import TIMINGS, Timing

DEFAULTS: Mapping[str, Value] = {"ranks": 2, "buffer_size": 2, "tile_cnt": 6}
"""Values that a test need not give: enough tiles for every slot to be used three times."""


def assert_matches_golden(
    protocol: Protocol,
    *,
    values: Mapping[str, object] | None = None,
    setup: Setup | None = None,
    examples: int = 200,
    seed: int = 0,
    timing: str | Timing = "pct",
    dtype: str = "e4m3:e4m3",
    inputs: str | None = None,
    reproduce: Reproduce | None = None,
) -> Found:
    """Assert that ``protocol`` ends, and is right to the bit, in ``examples`` timings.

    ``values`` of its parameters; ``ranks``, ``buffer_size`` (slots) and ``tile_cnt`` (tiles) are 2, 2 and
    6 unless given, the matrices small: ``m`` 2 rows a tile, ``k`` 64 columns of A on a rank, ``n`` 2
    columns of C, or one a block, or as many as tags need. A product is compared with the golden result of
    the operator on inputs of the kind ``inputs`` (tagged, normal, extreme, special; unless given tagged,
    or normal where your sizes leave tags no room), of the formats ``dtype`` of A and B; any other
    computation by the origins that its readers state. The golden result adds up in the order in which
    the computation reads its segments.

    A run shows hangs and wrong data only: wrong flag ids, counters past their cap, too few cores, or a
    race between equal bytes are found by ``mc2proof.prove`` alone.

    ``timing`` is pct, preempt or uniform; equal arguments run equal timings. Or it is one timing that
    your own ``@given`` has drawn from `interleavings`: then that one is run, at ``values`` and no others.
    ``reproduce``: what a failure has printed, hypothesis's ``reproduce_failure(...)``; the timing that
    failed is run at once, and no other.

    Raises AssertionError with the smallest failing case and its trace, Mc2proofError for bad arguments,
    and hypothesis's DidNotReproduce where what is to be reproduced does not fail any more.
    """
    checked_protocol(protocol)
    checked_setup(setup)
    if not isinstance(timing, Timing):
        _one_of("timing", timing, TIMINGS)
    if inputs is not None:
        _one_of("inputs", inputs, KINDS)
    checked_whole("examples", examples, 1)
    checked_whole("seed", seed, 0)
    if not isinstance(dtype, str):
        raise ParameterError("dtype", repr(dtype), "must be the formats of A and B, as 'e4m3:e5m2'")
    if reproduce is not None and not (callable(reproduce) and isinstance(timing, str)):
        raise ParameterError("reproduce", repr(reproduce), "must be reproduce_failure(...), of a search")
    complete = {name: value for name, value in DEFAULTS.items() if protocol.parameter(name) is not None}
    complete.update(checked_values({} if values is None else values))
    dtypes = parse_dtypes(dtype)
    if isinstance(timing, str):
        found = search(
            protocol, complete, setup, examples=examples, number=seed, timing=timing, dtypes=dtypes,
            kind=inputs, reproduce=reproduce,
        )  # fmt: skip
    else:
        found = run_one(protocol, complete, setup, timing, number=seed, dtypes=dtypes, kind=inputs)
    if found.fault is not None:
        raise AssertionError(describe(found, f"{timing}, {found.data.kind}, seed {seed}, {dtypes}"))
    if reproduce is not None:
        raise DidNotReproduce("the timing that failed is right now: take reproduce= away")
    return found


def describe(found: Found, how: str) -> str:
    """A failure as text: where and why, the smallest parameters, and how to see it again."""
    fault = found.fault
    if fault is None:
        return f"no failure in {found.examples} timings ({how})"
    sizes = ", ".join(f"{name} {value}" for name, value in fault.instance.values.items())
    rows = [
        f"{fault.instance.protocol.name}: {fault.headline}",
        *(f"  {sentence}" for sentence in fault.conflict),
        f"violates    {fault.property} ({fault.code})",
        f"smallest    {sizes}",
        f"found       in timing {found.examples} ({how})",
    ]
    if found.acceptance is not None:
        rows.append(f"outputs     {found.acceptance}")
    rows.append(f"replay      mc2proof replay {fault.trace}{_sources(fault.instance.protocol)}")
    if found.reproduction is not None:
        rows.append(f"reproduce   temporarily add reproduce=hypothesis.{found.reproduction} to the call")
    return "\n".join(rows)


def _sources(protocol: Protocol) -> str:
    """How the command is told where ``protocol`` is from: its headers, or a place to fill in."""
    if protocol.digest() in {make().digest() for make in BUILTIN.values()}:
        return ""
    headers = [file for file in protocol.files if not file.endswith(".py")]
    return "".join(f" {file}" for file in headers or ["FILE.py:NAME"])


def _one_of(name: str, value: object, known: Mapping[str, object]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ParameterError(name, repr(value), f"must be one of {', '.join(known)}")
