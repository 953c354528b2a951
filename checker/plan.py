"""`make_plan`: what the host's rules make of a shape, what is wrong there, and how far it may grow.

The values come from `protocol.ascendc.host`, the findings from `quick`, the limits from `growth`. The
command line prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..protocol.ascendc.host import Geometry, HostRules
from ..protocol.errors import LimitError, UnsupportedError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance
from ..protocol.parameters import check_values
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .analysis import collection_paused
from .assumptions import assumptions_of
from .growth import AREAS_RULE, TILES, Limit, Planned, Reach, areas_text, growth, numbers, size_of, total
from .layout import extents
from .quick import Found, judge
from .report import AssumptionNote

PLAN_SCHEMA_VERSION = 1
SCANNED = (TILES, "buffer_size")
"""The parameters whose limits a plan tells, where the protocol has them."""


class Derived(msgspec.Struct, frozen=True):
    """A parameter of the kernel at the planned shape; ``host`` False: it was given instead."""

    name: str
    value: int
    meaning: str
    host: bool


class HeapArea(msgspec.Struct, frozen=True):
    """An area of the heap: ``count`` pieces of ``bytes`` bytes."""

    name: str
    count: int
    bytes: int


class Heap(msgspec.Struct, frozen=True):
    """The shared region of one rank.

    ``used``: the bytes of all ``areas``, by the host's rules. ``addressed``: how far the kernel itself
    goes, None: not known. ``size`` None: not known.
    """

    region: str
    areas: list[HeapArea]
    used: int
    addressed: int | None
    size: int | None
    alignment: int | None


class PlanFinding(msgspec.Struct, frozen=True):
    """Something wrong, or as a warning noteworthy, at the planned shape."""

    property: str
    code: str
    severity: str
    message: str
    file: str
    line: int


class Plan(msgspec.Struct, frozen=True):
    """Everything that `mc2proof plan` says. ``undecided``: why some of it is not known.

    ``judged``: whether findings are looked for in every respect (``all``), by counting and byte ranges
    only (``counted``), or by the sizes of areas only (``areas``).
    """

    subject: str
    digest: str
    facts: str
    source: str
    shape: list[int]
    ranks: int
    profile: str
    named: dict[str, int]
    parameters: list[Derived]
    dropped_rows: int
    heap: Heap
    judged: str
    findings: list[PlanFinding]
    limits: list[Limit]
    reach: list[Reach]
    undecided: list[str]
    assumptions: list[AssumptionNote]
    schema_version: int = PLAN_SCHEMA_VERSION

    def to_json(self) -> str:
        """The plan in its published format."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        ordered = {"schema_version": plain.pop("schema_version"), **plain}
        return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode()


def make_plan(
    protocol: Protocol,
    rules: HostRules,
    geometry: Geometry,
    given: Mapping[str, Value],
    setup: Setup,
    *,
    strict_ids: bool = False,
) -> Plan:
    """The plan of ``protocol`` for ``geometry``; ``given`` parameters replace the host's.

    Raises ParameterError and SourceError for values that the protocol does not take.
    """
    values = check_values(protocol, {**geometry.parameters, "ranks": geometry.ranks, **given})
    planned = Planned(protocol, rules, geometry, given, values, setup, strict_ids)
    with collection_paused():
        instance, refusal = _instance(planned)
        heap = _heap(planned, instance)
        judged, findings, undecided = _findings(planned, heap, instance, refusal)
        grown = [growth(planned, name) for name in SCANNED if protocol.parameter(name) is not None]
    return Plan(
        subject=", ".join(protocol.subjects or (protocol.name,)),
        digest=protocol.digest(),
        facts=rules.file,
        source=rules.source,
        shape=list(geometry.shape),
        ranks=geometry.ranks,
        profile=setup.profile.name,
        named=dict(geometry.named),
        parameters=[
            Derived(p.name, value, p.meaning, p.name in geometry.parameters and p.name not in given)
            for p in protocol.parameters
            for value in [values[p.name]]
            if isinstance(value, int)
        ],
        dropped_rows=rules.dropped_rows(numbers(values)),
        heap=heap,
        judged=judged,
        findings=findings,
        limits=[limit for each in grown for limit in each.limits],
        reach=[each.reach for each in grown],
        undecided=[*undecided, *(text for each in grown for text in each.undecided)],
        assumptions=assumptions_of(protocol, None, setup),
    )


def _instance(planned: Planned) -> tuple[Instance | None, str]:
    """The instance at the planned shape, or why there is none."""
    try:
        return unroll(planned.protocol, planned.values, planned.setup, limits=Limits()), ""
    except (LimitError, UnsupportedError) as error:
        return None, str(error)


def _heap(planned: Planned, instance: Instance | None) -> Heap:
    region = planned.heap()
    areas = planned.rules.heap_areas(numbers(planned.values))
    addressed = None
    if instance is not None:
        addressed = next((e.needed for e in extents(instance) if e.region == region.name), 0)
    shown = [HeapArea(a.name, a.count, a.bytes) for a in areas]
    size = size_of(region, planned.values)
    return Heap(region.name, shown, total(areas), addressed, size, region.alignment)


def _findings(
    planned: Planned, heap: Heap, instance: Instance | None, refusal: str
) -> tuple[str, list[PlanFinding], list[str]]:
    """How far the planned shape was judged, what is wrong at it, and what is not known of it."""
    if instance is None:
        beyond = heap.size is not None and heap.used > heap.size
        areas = planned.rules.heap_areas(numbers(planned.values))
        text = f"{areas_text(areas)} exceed the {heap.region} of {heap.size:,} B, by the areas alone"
        found = [PlanFinding("layout", AREAS_RULE, "error", text, planned.rules.file, 0)] if beyond else []
        return "areas", found, [f"the planned shape is not judged: {refusal}"]
    judgement = judge(instance, strict_ids=planned.strict_ids)
    shown = [_plan_finding(found) for found in judgement.found]
    if judgement.open is None:
        return "all", shown, []
    return "counted", shown, [f"what depends on timing is not judged: {judgement.open}"]


def _plan_finding(found: Found) -> PlanFinding:
    severity = found.severity.value
    return PlanFinding(found.property, found.code, severity, found.message, found.file, found.line)
