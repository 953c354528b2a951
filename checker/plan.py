"""`make_plan`: what the host's rules make of a shape, what is wrong there, and how far it may grow.

The values come from `protocol.ascendc.host`, the findings from `quick`, the limits from `limits`; the
heap is counted by the host's own areas, beyond what a scan reaches. The command line prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ..protocol.ascendc.host import Area, Geometry, HostRules
from ..protocol.errors import LimitError, SourceError, UnsupportedError
from ..protocol.evaluate import evaluate
from ..protocol.parameters import check_values
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .assumptions import assumptions_of
from .limits import MOST, Scan, Seen, largest, scan
from .quick import Found, judge
from .report import AssumptionNote

PLAN_SCHEMA_VERSION = 1
SCANNED = ("tile_cnt", "buffer_size")
"""The parameters whose limits a plan tells, where the protocol has them."""
SHOWN_VALUES = 8
"""How many allowed values are listed where they are no range."""
HEAP_RULE = "out-of-bounds"
"""The finding that an area beyond the end of the heap is."""


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
    """The shared region of one rank; ``size`` None: not known."""

    region: str
    areas: list[HeapArea]
    used: int
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


class Limit(msgspec.Struct, frozen=True):
    """The values of a parameter that one rule allows, everything else as planned.

    ``condition``: as text. ``largest``: up to where it holds, None if no value, or not up to one.
    ``forbidden``: the values tried at which it is broken.
    """

    parameter: str
    condition: str
    largest: int | None
    forbidden: list[int]
    code: str
    severity: str
    reason: str


class Reach(msgspec.Struct, frozen=True):
    """The largest value of a parameter that no rule forbids; ``bound_by``: what forbids the next.

    ``largest`` None: none is safe, or none is known to be. ``bound_by`` empty: nobody knows about the
    next. ``tried``: values beyond it were not tried.
    """

    parameter: str
    largest: int | None
    bound_by: list[str]
    tried: int


class Plan(msgspec.Struct, frozen=True):
    """Everything that `mc2proof plan` says. ``undecided``: why some of it is not known."""

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
    given: Mapping[str, int],
    setup: Setup,
    *,
    strict_ids: bool = False,
) -> Plan:
    """The plan of ``protocol`` for ``geometry``; ``given`` parameters replace the host's.

    Raises ParameterError and SourceError for values that the protocol does not take.
    """
    values = _numbers(protocol, {**geometry.parameters, "ranks": geometry.ranks, **given})
    heap = _heap(protocol, rules, values)
    planned = _Planned(protocol, rules, values, heap, setup, strict_ids)
    findings, undecided = planned.findings()
    limits: list[Limit] = []
    reach: list[Reach] = []
    for name in SCANNED:
        if protocol.parameter(name) is not None:
            some, far, unknown = planned.limits_of(name)
            limits += some
            reach.append(far)
            undecided += unknown
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
            Derived(p.name, values[p.name], p.meaning, p.name in geometry.parameters and p.name not in given)
            for p in protocol.parameters
            if p.name in values
        ],
        dropped_rows=rules.dropped_rows(values),
        heap=heap,
        findings=findings,
        limits=limits,
        reach=reach,
        undecided=undecided,
        assumptions=assumptions_of(protocol, None, setup),
    )


def _numbers(protocol: Protocol, values: Mapping[str, int]) -> dict[str, int]:
    complete = check_values(protocol, values)
    return {name: value for name, value in complete.items() if isinstance(value, int)}


def _heap(protocol: Protocol, rules: HostRules, values: Mapping[str, int]) -> Heap:
    region = next((r for r in protocol.regions if r.name == rules.region), None)
    if region is None:
        raise SourceError(f"{rules.file}: host.region: {protocol.name} has no region {rules.region}")
    areas = rules.heap_areas(values)
    size = None if region.bytes is None else evaluate(region.bytes, values)
    shown = [HeapArea(a.name, a.count, a.bytes) for a in areas]
    return Heap(region.name, shown, _total(areas), size, region.alignment)


def _total(areas: tuple[Area, ...]) -> int:
    return sum(area.total for area in areas)


def _plan_finding(found: Found) -> PlanFinding:
    severity = found.severity.value
    return PlanFinding(found.property, found.code, severity, found.message, found.file, found.line)


# --- findings and limits ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Planned:
    """What the findings and limits of one plan start from."""

    protocol: Protocol
    rules: HostRules
    values: Mapping[str, int]
    heap: Heap
    setup: Setup
    strict_ids: bool

    def findings(self) -> tuple[list[PlanFinding], list[str]]:
        """What is wrong at the planned shape, and what is not known of it."""
        try:
            instance = unroll(self.protocol, self.values, self.setup, limits=Limits())
        except (LimitError, UnsupportedError) as error:
            return [], [f"the planned shape is not judged: {error}"]
        judgement = judge(instance, strict_ids=self.strict_ids)
        unknown = (
            [] if judgement.open is None else [f"what depends on timing is not judged: {judgement.open}"]
        )
        return [_plan_finding(found) for found in judgement.found], unknown

    def limits_of(self, name: str) -> tuple[list[Limit], Reach, list[str]]:
        """The limits of parameter ``name``, the largest safe value, and what is not known."""

        def at(value: int) -> dict[str, int]:
            return _numbers(self.protocol, {**kept, name: value})

        # a computed parameter follows what it is computed from: a scan is about whole tiles
        kept = {n: v for n, v in self.values.items() if not _is_computed(self.protocol, n)}
        scanned = scan(self.protocol, at, name, self.setup, strict_ids=self.strict_ids)
        limits = [_limit(scanned, seen) for seen in scanned.seen]
        room, size = None, self.heap.size
        if size is not None and scanned.tried:
            room = largest(lambda value: _total(self.rules.heap_areas(at(value))) <= size)
            if scanned.tried <= room < MOST:
                limits.append(_heap_limit(name, room, self.rules.heap_areas(at(room + 1)), size))
        unknown = (
            [] if scanned.open is None else [f"which {name} timing allows is not judged: {scanned.open}"]
        )
        return limits, _reach(scanned, room), unknown


def _is_computed(protocol: Protocol, name: str) -> bool:
    parameter = protocol.parameter(name)
    return parameter is not None and parameter.default is not None and not isinstance(parameter.default, int)


def _limit(scanned: Scan, seen: Seen) -> Limit:
    """In words, which of the tried values have no such finding."""
    fine = [v for v in seen.among if v not in seen.at]
    gaps = seen.among != tuple(range(1, len(seen.among) + 1))
    end = None
    if not fine:
        condition = f"> {seen.among[-1]}, if any"
    elif not gaps and fine[-1] < seen.at[0]:
        condition, end = f"<= {fine[-1]}", fine[-1]
    elif not gaps and fine[0] > seen.at[-1]:
        condition = f">= {fine[0]}"
    else:
        shown = [*map(str, fine[:SHOWN_VALUES]), *(["…"] if len(fine) > SHOWN_VALUES else [])]
        condition = f"= {', '.join(shown)}{' (others not tried)' if gaps else ''}"
    at = "" if not fine else f"at {seen.at[0]}: "
    first = seen.first
    return Limit(
        scanned.parameter, condition, end, list(seen.at), first.code, first.severity.value, at + first.message
    )


def _heap_limit(name: str, room: int, beyond: tuple[Area, ...], size: int) -> Limit:
    parts = " + ".join(
        f"{area.name} {area.count} x {area.bytes:,}" if area.count != 1 else f"{area.name} {area.bytes:,}"
        for area in beyond
    )
    reason = f"at {room + 1}: {parts} B exceed the heap of {size:,} B"
    return Limit(name, f"<= {room}", room, [], HEAP_RULE, "error", reason)


def _reach(scanned: Scan, room: int | None) -> Reach:
    """The largest safe value: of those judged, or what the heap has room for if that is less."""
    safe = [v for v in scanned.safe() if room is None or v <= room]
    best = safe[-1] if safe else None
    following = 1 if best is None else best + 1
    bound_by = [s.first.code for s in scanned.seen if s.is_error and following in s.at]
    if room is not None and following > room and HEAP_RULE not in bound_by:
        bound_by.append(HEAP_RULE)
    return Reach(scanned.parameter, best, bound_by, scanned.tried)
