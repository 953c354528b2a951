"""Questions that counting answers: flag balance, barrier calls, blocks and cores, coverage.

Each function returns its faults, or None where the instance has nothing that the property speaks
of. Ids are in `flag_range`, byte ranges in `layout`.
"""

from __future__ import annotations

import itertools
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.describe import barrier_name, flag_name, numbers
from ..protocol.evaluate import evaluate
from ..protocol.flags import Counter
from ..protocol.instance import Access, CoreId, Event, Instance, Kind
from ..protocol.program import Role, Span
from ..protocol.sync import Sync, Use
from .pieces import Piece, contract_of
from .report import Severity

NOWHERE = Span("", 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong (or, as a warning, noteworthy), with its place; what the code means: `catalogue`."""

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR


def cores_named(instance: Instance, cores: Iterable[int]) -> str:
    """A short name for several cores: their role and ranks."""
    ids = [instance.cores[c].id for c in cores]
    subs = {i.sub for i in ids if i.role is Role.AIV}
    one_of_two = f" {min(subs)}" if len(subs) == 1 and instance.protocol.vectors_per_cube == 2 else ""
    roles = sorted({i.role.name + (one_of_two if i.role is Role.AIV else "") for i in ids})
    ranks = sorted({i.rank for i in ids})
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{'/'.join(roles)} of {word} {numbers(ranks)}"


# --- flag-balance -----------------------------------------------------------------------------


def flag_balance(sync: Sync) -> list[Fault] | None:
    """Counters whose sets and waits differ in number, grouped by the statement left over."""
    if not sync.sets and not sync.waits:
        return None
    surplus: dict[tuple[str, Span], list[tuple[Use, int]]] = defaultdict(list)
    seen: set[int] = set()  # points of sets that were left over at another receiver already
    for counter in sorted({**sync.sets, **sync.waits}):
        for code, use, count in _left_over(sync, counter):
            if code != "set-alone" or use.point not in seen:
                seen.add(use.point)
                surplus[code, _event(sync, use).span or NOWHERE].append((use, count))
    return [_imbalance(sync, code, span, uses) for (code, span), uses in surplus.items()]


def _left_over(sync: Sync, counter: Counter) -> Iterator[tuple[str, Use, int]]:
    """The first set or wait of ``counter`` that has no partner, and how many there are."""
    rises, waits = sync.rises(counter), sync.waits.get(counter, [])
    if len(waits) > len(rises):
        yield "wait-without-set", waits[len(rises)], len(waits) - len(rises)
    elif len(rises) > len(waits):
        yield "set-without-wait", rises[len(waits)][0], len(rises) - len(waits)
    for channel, by_core in sync.channels.get(counter, {}).items():
        lists = [by_core.get(core, []) for core in channel.setters]
        together = min(map(len, lists))
        for sets in lists:
            if len(sets) > together:
                yield "set-alone", sets[together], len(sets) - together


def _event(sync: Sync, use: Use) -> Event:
    return sync.instance.cores[use.core].events[use.event]


_IMBALANCES = {
    "wait-without-set": ("wait-without-set", "wait", "for", ("has no set", "have no set")),
    "set-without-wait": ("set-without-wait", "set", "of", ("is never waited for", "are never waited for")),
    "set-alone": ("set-without-wait", "set", "of", ("counts only when the other cores of the mode set as "
                  "well, which they do not", "count only when the other cores of the mode set as well, "
                  "which they do not")),
}  # fmt: skip
"""For each kind of leftover: its code, what is left, and what is said of one and of many."""


def _imbalance(sync: Sync, kind: str, span: Span, uses: Sequence[tuple[Use, int]]) -> Fault:
    code, noun, preposition, said = _IMBALANCES[kind]
    total = sum(count for _, count in uses)
    flags = numbers(_event(sync, use).flag for use, _ in uses)
    what = "event" if _event(sync, uses[0][0]).link else "flag"
    who = cores_named(sync.instance, (use.core for use, _ in uses))
    many = total > 1
    text = f"{total} {noun}{'s' if many else ''} {preposition} {what} {flags} by the {who} {said[many]}"
    return Fault(code, text, span)


# --- barrier-match ----------------------------------------------------------------------------


def barrier_match(sync: Sync) -> list[Fault] | None:
    """Barrier functions that their participants call different numbers of times."""
    instance = sync.instance
    if not any(meeting.function in instance.barriers() for meeting in sync.meetings):
        return None
    faults = []
    for function, (_, members) in instance.barriers().items():
        calls: Tally[int] = Tally()
        for meeting in sync.meetings:
            if meeting.function == function:
                calls.update(sync.locate(point)[0] for point in meeting.points)
        by_count: dict[int, list[int]] = defaultdict(list)
        for core in members:
            by_count[calls[core]].append(core)
        if len(by_count) > 1:
            parts = [
                f"{count} times by the {cores_named(instance, cores)}"
                for count, cores in sorted(by_count.items(), reverse=True)
            ]
            span = _first_call(instance, function)
            text = f"the {function} barrier is called {', '.join(parts)}: all must call it equally often"
            faults.append(Fault("barrier-mismatch", text, span))
    return faults


def _first_call(instance: Instance, function: str) -> Span:
    for core in instance.cores:
        for event in core.events:
            if event.kind is Kind.BARRIER and event.barrier == function:
                return event.span or NOWHERE
    return NOWHERE


# --- blocks and cores -------------------------------------------------------------------------


def blocks_exceed_cores(sync: Sync) -> list[Fault]:
    """A barrier, or a flag that all blocks set, waits for blocks which cannot start while others wait."""
    instance = sync.instance
    cores = instance.profile.cores
    if cores is None or instance.blocks <= cores:
        return []
    places: dict[Span, str] = {}
    for core in instance.cores:
        for event in core.events:
            if event.kind is Kind.BARRIER and event.operation is not None:
                places.setdefault(event.span or NOWHERE, f"{barrier_name(event)} waits")
    for counter, waits in sync.waits.items():
        if any(channel.mode == 0 for channel in sync.channels.get(counter, ())):
            event = _event(sync, waits[0])
            places.setdefault(event.span or NOWHERE, f"{flag_name(event)}, set in mode 0, waits")
    return [
        Fault(
            "blocks-exceed-cores",
            f"{what} for all {instance.blocks} blocks of a rank, and a device of {cores} AI cores runs "
            f"{cores} of them at a time",
            span,
        )
        for span, what in places.items()
    ]


# --- coverage ---------------------------------------------------------------------------------


def coverage(instance: Instance, groups: Sequence[tuple[tuple[int, ...], list[Piece]]]) -> list[Fault] | None:
    """Bytes that a reader needs and nobody delivers, or that are delivered twice; outputs likewise."""
    outputs = [r for r in instance.protocol.regions if r.covered and r.bytes is not None]
    expected = {
        (r.name, rank): evaluate(r.bytes, {**instance.values, "rank": rank})
        for r in outputs
        if r.bytes is not None
        for rank in range(instance.ranks)
    }
    if not groups and not any(expected.values()):
        return None
    return [*_deliveries(instance, groups), *_outputs(instance, expected)]


def _deliveries(instance: Instance, groups: Sequence[tuple[tuple[int, ...], list[Piece]]]) -> Iterable[Fault]:
    missing: dict[Span, list[Piece]] = defaultdict(list)
    twice: dict[Span, list[Piece]] = defaultdict(list)
    for _, found in groups:
        for piece in found:
            span = _reader_event(instance, piece).span or NOWHERE
            if not piece.needed:
                missing[span].append(piece)
            elif len(piece.needed) > 1:
                twice[span].append(piece)
    for code, table, text in (
        ("never-delivered", missing, "are never delivered"),
        ("delivered-twice", twice, "are delivered more than once"),
    ):
        for span, found in table.items():
            ranks = sorted({p.reader.access.rank for p in found})
            word = "rank" if len(ranks) == 1 else "ranks"
            first = found[0].reader.access
            message = (
                f"{len(found)} segments that {word} {numbers(ranks)} read {text}, "
                f"the first: {_needed(first)} into {first.region}[{first.begin}..{first.end})"
            )
            yield Fault(code, message, span)


def _needed(access: Access) -> str:
    if access.origin is None:
        return "bytes"
    rank, region, offset = access.origin
    return f"{region}[{offset}..{offset + access.end - access.begin}) of rank {rank}"


def _reader_event(instance: Instance, piece: Piece) -> Event:
    return instance.cores[piece.reader.core].events[piece.reader.event]


def _outputs(instance: Instance, expected: Mapping[tuple[str, int], int]) -> Iterable[Fault]:
    """Every byte of a covered region is written exactly once.

    A window that blocks share is written once when every core of their role on the rank writes its
    share of it.
    """
    reported: set[tuple[str, Span]] = set()
    launches = range(instance.setup.launches)
    written = _output_writes(instance, expected)
    for ((region, rank), size), launch in itertools.product(expected.items(), launches):
        windows = _whole_windows(instance, written.get((region, rank, launch), []))
        for code, text, span in _gaps(sorted(windows, key=lambda w: w[:2]), size):
            if (code, span) not in reported:
                reported.add((code, span))
                which = f" in launch {launch + 1}" if instance.setup.launches > 1 else ""
                message = f"{region} of rank {rank}: {text}{which}"
                yield Fault(code, message, span)


_OutputWrite = tuple[CoreId, Event, Access]


def _output_writes(
    instance: Instance, expected: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int, int], list[_OutputWrite]]:
    """The writes of bytes in the ``expected`` regions, by region, rank and launch."""
    written: dict[tuple[str, int, int], list[_OutputWrite]] = defaultdict(list)
    for core, events in instance.cores:
        for event in events:
            for access in event.writes:
                if access.begin < access.end and (access.region, access.rank) in expected:
                    written[access.region, access.rank, event.launch].append((core, event, access))
    return written


def _whole_windows(instance: Instance, written: Sequence[_OutputWrite]) -> list[tuple[int, int, Span]]:
    """The windows of a region that are wholly written in a launch, each as often as it is.

    Blocks share a window where they make the same opaque call, be it at several places.
    """
    whole: list[tuple[int, int, Span]] = []
    shares: dict[tuple[int, int, Role, str], Tally[int]] = defaultdict(Tally)  # by block
    places: dict[tuple[int, int, Role, str], Span] = {}
    for core, event, access in written:
        span = event.span or NOWHERE
        if access.share:
            key = (access.begin, access.end, core.role, contract_of(event))
            shares[key][core.block] += 1
            places.setdefault(key, span)
        else:
            whole.append((access.begin, access.end, span))
    for key, writers in shares.items():
        begin, end, *_ = key
        span = places[key]
        fewest = min(writers[block] for block in range(instance.blocks))
        whole += [(begin, end, span)] * fewest
        if any(count > fewest for count in writers.values()) and fewest:
            whole.append((begin, end, span))  # some block writes its share once more
    return whole


def _gaps(windows: list[tuple[int, int, Span]], size: int) -> Iterable[tuple[str, str, Span]]:
    position = 0
    span = NOWHERE
    for begin, end, span in windows:
        if begin > position:
            yield "output-missing", f"bytes {position}..{begin} are never written", span
        elif begin < position:
            yield "output-twice", f"bytes {begin}..{min(end, position)} are written twice", span
        position = max(position, end)
    if position < size:
        yield "output-missing", f"bytes {position}..{size} are never written", span
