"""Layout: byte ranges against their regions, areas against each other, and arithmetic that wraps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..protocol.describe import access_name, numbers
from ..protocol.evaluate import evaluate
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.program import Region, RegionKind, Span
from .pieces import distinct_cores
from .static import NOWHERE, Fault


def layout(instance: Instance) -> list[Fault] | None:
    """Every fault of the layout; None where nothing is addressed."""
    accesses = list(_accesses(instance))
    if not accesses and not instance.wraps:
        return None
    return [
        *_wraps(instance), *_bounds(instance, accesses), *_peers(instance), *_sizes(instance),
        *_areas(instance), *_targets(instance, accesses), *_bases(instance),
    ]  # fmt: skip


def _accesses(instance: Instance) -> Iterable[tuple[Event, Access]]:
    """Every access, those of equal cores once."""
    for cores in distinct_cores(instance):
        for event in instance.cores[cores[0]].events:
            for access in (*event.reads, *event.writes):
                yield event, access


def _wraps(instance: Instance) -> Iterable[Fault]:
    seen: set[tuple[Span, str]] = set()
    for wrap in instance.wraps:
        if (wrap.span, wrap.text) not in seen:
            seen.add((wrap.span, wrap.text))
            text = f"{wrap.text} wraps around: C computes {wrap.value}, the exact value is {wrap.exact}"
            yield Fault("wrap-around", f"{text} ({wrap.core})", wrap.span)


def _bounds(instance: Instance, accesses: Iterable[tuple[Event, Access]]) -> Iterable[Fault]:
    sizes: dict[tuple[str, int], int | None] = {}
    for region in instance.protocol.regions:
        for rank in range(instance.ranks):
            values = {**instance.values, "rank": rank}
            sizes[region.name, rank] = None if region.bytes is None else evaluate(region.bytes, values)
    worst: dict[tuple[Span, str], tuple[int, Access, int | None]] = {}
    for event, access in accesses:
        size = sizes.get((access.region, access.rank))
        over = max(-access.begin, 0 if size is None else access.end - size)
        if over > 0 and (access.region, access.rank) in sizes:
            key = (event.span or NOWHERE, access.region)
            if key not in worst or over > worst[key][0]:
                worst[key] = (over, access, size)
    for (span, _), (_, access, size) in worst.items():
        yield out_of_bounds(access, size, span)


def out_of_bounds(access: Access, size: int | None, span: Span) -> Fault:
    """That ``access`` leaves its region of ``size`` bytes."""
    over = max(-access.begin, 0 if size is None else access.end - size)
    limit = "its begin" if access.begin < 0 else f"its {size} bytes"
    text = f"{access_name(access)} leaves {access.region}: {over} bytes beyond {limit}"
    return Fault("out-of-bounds", text, span)


def put_too_large(size: int, limit: int, span: Span) -> Fault:
    """That a request is of more than ``limit`` bytes."""
    return Fault("put-too-large", f"a put of {size} bytes: at most {limit} bytes a request", span)


def _targets(instance: Instance, accesses: Iterable[tuple[Event, Access]]) -> Iterable[Fault]:
    """Ranges of negative size, puts to what is not symmetric, and writes into an input."""
    kinds = {region.name: region.kind for region in instance.protocol.regions}
    seen: set[tuple[str, Span]] = set()
    for event, access in accesses:
        writes = access in event.writes
        faults = {
            "negative-size": access.end < access.begin,
            "target-not-shared": event.kind is Kind.PUT
            and writes
            and kinds[access.region] is not RegionKind.SHARED,
            "input-written": writes and kinds[access.region] is RegionKind.INPUT,
        }
        for code, found in faults.items():
            span = event.span or NOWHERE
            if found and (code, span) not in seen:
                seen.add((code, span))
                yield Fault(code, f"{access_name(access)} {_TARGET_TEXTS[code]}", span)


_TARGET_TEXTS = {
    "negative-size": "has a negative size",
    "target-not-shared": "is the target of a put, but not in symmetric memory",
    "input-written": "is written, but it is an input, which nobody writes",
}


def _peers(instance: Instance) -> Iterable[Fault]:
    outside: dict[Span, set[int]] = defaultdict(set)
    own: dict[Span, set[int]] = defaultdict(set)
    for core in instance.cores:
        for event in core.events:
            if event.kind not in (Kind.PUT, Kind.QUIET):
                continue
            if not 0 <= event.peer < instance.ranks:
                outside[event.span or NOWHERE].add(event.peer)
            elif event.kind is Kind.PUT and event.peer == core.id.rank:
                own[event.span or NOWHERE].add(event.peer)
    for span, peers in outside.items():
        text = f"there is no rank {numbers(peers)}: ranks are 0-{instance.ranks - 1}"
        yield Fault("no-such-rank", text, span)
    for span, ranks in own.items():
        text = f"ranks {numbers(ranks)} put to themselves, which is not allowed"
        yield Fault("put-to-self", text, span)


def _sizes(instance: Instance) -> Iterable[Fault]:
    limit = instance.profile.put_limit
    seen: set[Span] = set()
    for cores in distinct_cores(instance):
        for event in instance.cores[cores[0]].events:
            if event.kind is Kind.PUT and event.span not in seen:
                size = event.writes[0].end - event.writes[0].begin
                if size > limit:
                    seen.add(event.span or NOWHERE)
                    yield put_too_large(size, limit, event.span or NOWHERE)


def _bases(instance: Instance) -> Iterable[Fault]:
    """Symmetric regions, to or from which requests go, whose stated base is not aligned as UDMA needs it."""
    wanted = instance.profile.base_alignment
    used: dict[str, Span] = {}
    for cores in distinct_cores(instance):
        for event in instance.cores[cores[0]].events:
            if event.kind is Kind.PUT:
                for access in (*event.writes, *event.reads):
                    used.setdefault(access.region, event.span or NOWHERE)
    for region in instance.protocol.regions:
        if region.kind is not RegionKind.SHARED or region.name not in used:
            continue
        if region.alignment is not None and region.alignment % wanted:
            text = f"{region.name} is aligned to {region.alignment} bytes: requests need a base on {wanted}"
            yield Fault("base-misaligned", text, used[region.name])


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a region is used on any rank: the first byte behind the last one addressed."""

    region: str
    needed: int
    size: int | None


def extents(instance: Instance) -> list[Extent]:
    """The smallest size that suffices of every symmetric region, beside the size that it has."""
    needed: dict[str, int] = {}
    for _, access in _accesses(instance):
        if access.begin < access.end:
            needed[access.region] = max(access.end, needed.get(access.region, 0))
    return [
        Extent(region.name, needed[region.name], _smallest_size(instance, region))
        for region in instance.protocol.regions
        if region.kind is RegionKind.SHARED and region.name in needed
    ]


def _smallest_size(instance: Instance, region: Region) -> int | None:
    """The size of ``region`` on the rank where it is smallest."""
    if region.bytes is None:
        return None
    sizes = (evaluate(region.bytes, {**instance.values, "rank": rank}) for rank in range(instance.ranks))
    return min(sizes)


def _areas(instance: Instance) -> Iterable[Fault]:
    """Areas of a shared region that are filled from different inputs must not overlap."""
    shared = {r.name for r in instance.protocol.regions if r.kind is RegionKind.SHARED}
    areas: dict[tuple[str, int], dict[str, list[tuple[int, int, Span]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for core in instance.cores:
        for event in core.events:
            for access in event.writes:
                if access.region in shared and access.origin is not None and access.begin < access.end:
                    window = (access.begin, access.end, event.span or NOWHERE)
                    areas[access.region, access.rank][access.origin[1]].append(window)
    reported: set[tuple[str, str, str]] = set()
    for (region, rank), by_source in sorted(areas.items(), key=lambda item: item[0]):
        names = sorted(by_source)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                clash = _overlap(by_source[first], by_source[second])
                if clash is not None and (region, first, second) not in reported:
                    reported.add((region, first, second))
                    begin, end, span = clash
                    text = (
                        f"{region}[{begin}..{end}) of rank {rank} is filled from both "
                        f"{first} and {second}: their areas overlap"
                    )
                    yield Fault("areas-overlap", text, span)


def _overlap(
    first: list[tuple[int, int, Span]], second: list[tuple[int, int, Span]]
) -> tuple[int, int, Span] | None:
    """The first bytes that a window of each list shares."""
    marked = sorted([(b, e, s, 0) for b, e, s in set(first)] + [(b, e, s, 1) for b, e, s in set(second)],
                    key=lambda w: (w[0], w[1], w[3]))  # fmt: skip
    reach: list[float] = [-math.inf, -math.inf]
    for begin, end, span, which in marked:
        if reach[1 - which] > begin:
            return begin, int(min(end, reach[1 - which])), span
        reach[which] = max(reach[which], end)
    return None
