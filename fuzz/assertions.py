"""One call for a test of your own: run a protocol with data in many timings, against the golden result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..protocol.builtin import BUILTIN
from ..protocol.errors import ParameterError
from ..protocol.evaluate import Value
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from .kinds import KINDS
from .numerics import parse_dtypes
from .search import Found, search
from .timings import TIMINGS

DEFAULTS: Mapping[str, Value] = {"ranks": 2, "buffer_size": 2, "tile_cnt": 6}
"""Values that a test need not give: enough tiles for every slot to be used three times."""


def assert_matches_golden(
    protocol: Protocol,
    *,
    values: Mapping[str, Value] | None = None,
    setup: Setup | None = None,
    examples: int = 200,
    seed: int = 0,
    timing: str = "pct",
    dtype: str = "e4m3:e4m3",
    inputs: str = "tagged",
) -> Found:
    """Assert that ``protocol`` ends, and is right to the bit, in ``examples`` timings.

    ``values`` of its parameters; ``ranks``, ``buffer_size`` and ``tile_cnt`` are 2, 2 and 6 and the
    matrices small unless given. A product is compared with the golden result of the operator on inputs
    of the kind ``inputs`` (tagged, normal, extreme, special), of the formats ``dtype``; any other
    computation by the origins that its readers state. ``timing`` is pct, preempt or uniform; equal
    arguments run equal timings.

    Raises AssertionError with the smallest failing case and its trace, Mc2proofError for bad arguments.
    """
    if not isinstance(protocol, Protocol):
        raise ParameterError("protocol", repr(protocol), "must be a Protocol (mc2proof.load reads kernels)")
    _one_of("timing", timing, TIMINGS)
    _one_of("inputs", inputs, KINDS)
    _whole("examples", examples, 1)
    _whole("seed", seed, 0)
    if values is not None and not isinstance(values, Mapping):
        raise ParameterError("values", repr(values), "must map names of parameters to values")
    complete = {name: value for name, value in DEFAULTS.items() if protocol.parameter(name) is not None}
    found = search(
        protocol, {**complete, **(values or {})}, setup,
        examples=examples, number=seed, timing=timing, dtypes=parse_dtypes(dtype), kind=inputs,
    )  # fmt: skip
    if found.fault is not None:
        raise AssertionError(describe(found, f"{timing}, seed {seed}, {dtype}"))
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
    return "\n".join(rows)


def _sources(protocol: Protocol) -> str:
    """How the command is told where ``protocol`` is from: its headers, or a place to fill in."""
    if protocol.digest() in {make().digest() for make in BUILTIN.values()}:
        return ""
    headers = [file for file in protocol.files if not file.endswith(".py")]
    return "".join(f" {file}" for file in headers or ["FILE.py:NAME"])


def _one_of(name: str, value: object, known: Mapping[str, object] | Sequence[str]) -> None:
    if value not in known:
        raise ParameterError(name, repr(value), f"must be one of {', '.join(known)}")


def _whole(name: str, value: object, low: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ParameterError(name, repr(value), f"must be an integer from {low}")
