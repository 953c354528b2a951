"""Questions that counting answers: flag balance, ids, barrier calls, coverage.

Each function returns its faults, or None where the instance has nothing that the property speaks
of. Layout, which is arithmetic over byte ranges, is in `layout`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.describe import numbers
from ..protocol.evaluate import evaluate
from ..protocol.instance import Absent, Access, Event, Instance, Kind
from ..protocol.profile import Profile
from ..protocol.program import Role, SetFlag, Span, WaitEvent, WaitFlag
from ..protocol.sync import Sync, Use
from .obligations import Piece, distinct_cores
from .report import Severity

NOWHERE = Span("", 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong (or, as a warning, noteworthy), with its place and the rule's document."""

    code: str
    message: str
    span: Span
    source_doc: str
    severity: Severity = Severity.ERROR


def cores_named(instance: Instance, cores: Iterable[int]) -> str:
    """A short name for several cores: their role and ranks."""
    ids = [instance.cores[c].id for c in cores]
    roles = sorted({i.role.name for i in ids})
    ranks = sorted({i.rank for i in ids})
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{'/'.join(roles)} of {word} {numbers(ranks)}"


# --- flag-balance -----------------------------------------------------------------------------


def flag_balance(sync: Sync) -> list[Fault] | None:
    """Counters whose sets and waits differ in number, grouped by the statement left over."""
    if not sync.sets and not sync.waits:
        return None
    surplus: dict[tuple[str, Span], list[tuple[Use, int]]] = defaultdict(list)
    for counter in sorted({**sync.sets, **sync.waits}):
        sets, waits = sync.sets.get(counter, []), sync.waits.get(counter, [])
        if len(sets) == len(waits):
            continue
        longer, shorter = (sets, waits) if len(sets) > len(waits) else (waits, sets)
        extra = longer[len(shorter)]
        span = _event(sync, extra).span or NOWHERE
        code = "set-without-wait" if longer is sets else "wait-without-set"
        surplus[code, span].append((extra, len(longer) - len(shorter)))
    return [_imbalance(sync, code, span, uses) for (code, span), uses in surplus.items()]


def _event(sync: Sync, use: Use) -> Event:
    return sync.instance.cores[use.core].events[use.event]


def _imbalance(sync: Sync, code: str, span: Span, uses: Sequence[tuple[Use, int]]) -> Fault:
    total = sum(count for _, count in uses)
    flags = numbers(_event(sync, use).flag for use, _ in uses)
    kind = "event" if _event(sync, uses[0][0]).link else "flag"
    who = cores_named(sync.instance, (use.core for use, _ in uses))
    sets = f"{total} set{'s' if total > 1 else ''} of {kind} {flags} by the {who}"
    waits = f"{total} wait{'s' if total > 1 else ''} for {kind} {flags} by the {who}"
    if code == "set-without-wait":
        what = f"{sets} {'are' if total > 1 else 'is'} never waited for"
    else:
        what = f"{waits} {'have' if total > 1 else 'has'} no set"
    return Fault(code, what, span, "asc-devkit: CrossCoreSetFlag")


# --- flag-range -------------------------------------------------------------------------------


def flag_range(sync: Sync, *, strict_ids: bool) -> list[Fault] | None:
    """Ids outside their domain, reserved ids, and operations on pipes that the core lacks."""
    instance = sync.instance
    if not sync.sets and not sync.waits and not instance.absent:
        return None
    reserved = {
        function: instance.barriers[function].reserved
        for function in sorted({meeting.function for meeting in sync.meetings})
    }
    ids: dict[tuple[str, str, Span, Severity], set[int]] = defaultdict(set)
    for cores in distinct_cores(instance):
        core = instance.cores[cores[0]]
        for event in core.events:
            if event.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG):
                for code, about, severity in _id_faults(
                    instance.profile, core.id.role, event, reserved, strict_ids
                ):
                    ids[code, about, event.span or NOWHERE, severity].add(event.raw)
            elif event.link and event.raw not in instance.profile.event_ids:
                key = ("event-id-out-of-range", event.link, event.span or NOWHERE, Severity.ERROR)
                ids[key].add(event.raw)
            elif event.link and event.raw in instance.profile.system_event_ids:
                severity = Severity.ERROR if strict_ids else Severity.WARNING
                ids["event-id-of-system", event.link, event.span or NOWHERE, severity].add(event.raw)
    found = [
        Fault(code, _id_message(instance.profile, code, about, raw), span, _ID_SOURCES[code], severity)
        for (code, about, span, severity), raw in ids.items()
    ]
    return [*_absent_pipes(instance), *found]


_ID_SOURCES = {
    "id-out-of-range": "asc-devkit: CrossCoreSetFlag",
    "id-not-for-users": "asc-devkit: other editions",
    "id-reserved": "asc-devkit: SyncAll",
    "id-reserved-elsewhere": "asc-devkit: SyncAll",
    "event-id-out-of-range": "asc-devkit: SetFlag/WaitFlag",
    "event-id-of-system": "asc-devkit: SetFlag/WaitFlag",
}


def _id_faults(
    profile: Profile,
    role: Role,
    event: Event,
    reserved: Mapping[str, Mapping[Role, frozenset[int]]],
    strict_ids: bool,
) -> Iterable[tuple[str, str, Severity]]:
    """What is wrong with the id of one set or wait: code, what it collides with, severity."""
    if event.raw not in profile.flag_ids:
        yield "id-out-of-range", "", Severity.ERROR
    elif strict_ids and event.raw not in profile.strict_ids:
        yield "id-not-for-users", "", Severity.ERROR
    other = Role.AIC if role is Role.AIV else Role.AIV
    holder = other if event.kind is Kind.SET_FLAG else role
    for function, by_role in reserved.items():
        if event.flag in by_role.get(holder, ()):
            about = f"the {function} barrier itself uses that counter on the {holder.name}"
            yield "id-reserved", about, Severity.ERROR
        elif any(event.flag in taken for taken in by_role.values()):
            yield (
                "id-reserved-elsewhere",
                f"the {function} barrier",
                Severity.ERROR if strict_ids else Severity.WARNING,
            )


def _id_message(profile: Profile, code: str, about: str, raw: set[int]) -> str:
    many = len(raw) > 1
    name = f"{'ids' if many else 'id'} {numbers(raw)}"
    last = profile.flag_ids[-1]
    match code:
        case "id-out-of-range":
            cut = numbers(profile.effective_id(i) for i in raw)
            return (
                f"{name} {'are' if many else 'is'} outside 0-{last}: the hardware keeps the low 4 bits, "
                f"so flag {cut} is used"
            )
        case "id-not-for-users":
            strict = profile.strict_ids[-1]
            return f"{name} {'are' if many else 'is'} not among the user's ids 0-{strict} (strict ids)"
        case "id-reserved":
            return f"{name}: {about}"
        case "id-reserved-elsewhere":
            return (
                f"{name}: {about} uses the number on the other side; no conflict, but some documents "
                "reserve it"
            )
        case "event-id-of-system":
            return f"event {name} of {about}: the system uses {'them' if many else 'it'} as well"
    ids = profile.event_ids
    return f"event {name} of {about} {'are' if many else 'is'} outside {ids[0]}-{ids[-1]}"


def collides_with_barrier(faults: Sequence[Fault] | None) -> bool:
    """Whether a user's flag meets one of a barrier: other verdicts then assume it undisturbed."""
    return any(f.code == "id-reserved" for f in faults or ())


def _absent_pipes(instance: Instance) -> Iterable[Fault]:
    by_place: dict[Span, list[int]] = defaultdict(list)
    chosen: dict[Span, Absent] = {}
    for entry in instance.absent:
        by_place[entry.operation.span].append(entry.core.rank)
        chosen.setdefault(entry.operation.span, entry)
    for span, entry in chosen.items():
        operation = entry.operation
        if isinstance(operation, SetFlag | WaitFlag):
            what = "CrossCoreWaitFlag" if isinstance(operation, WaitFlag) else "CrossCoreSetFlag"
            pipes = f"{operation.pipe.value}, which"
        else:
            what = "WaitFlag" if isinstance(operation, WaitEvent) else "SetFlag"
            pipes = f"{operation.source.value} and {operation.target.value}, one of which"
        text = (
            f"{what} names {pipes} an {entry.core.role.name} lacks: it compiles to nothing "
            f"(ranks {numbers(by_place[span])})"
        )
        yield Fault("absent-pipe", text, span, "asc-devkit: CrossCoreSetFlag, dav_3510")


# --- barrier-match ----------------------------------------------------------------------------


def barrier_match(sync: Sync) -> list[Fault] | None:
    """Barrier functions that their participants call different numbers of times."""
    instance = sync.instance
    if not sync.meetings:
        return None
    faults = []
    for function in instance.barriers:
        calls: Tally[int] = Tally()
        for meeting in sync.meetings:
            if meeting.function == function:
                calls.update(sync.locate(point)[0] for point in meeting.points)
        members = instance.participants(function)
        by_count: dict[int, list[int]] = defaultdict(list)
        for core in members:
            by_count[calls[core]].append(core)
        if len(by_count) > 1:
            parts = [
                f"{count} times by the {cores_named(instance, cores)}"
                for count, cores in sorted(by_count.items(), reverse=True)
            ]
            span = _first_call(instance, function)
            form = instance.barriers[function]
            text = f"the {form.name} barrier is called {', '.join(parts)}: all must call it equally often"
            faults.append(Fault("barrier-mismatch", text, span, form.source))
    return faults


def _first_call(instance: Instance, function: str) -> Span:
    for core in instance.cores:
        for event in core.events:
            if event.kind is Kind.BARRIER and event.barrier == function:
                return event.span or NOWHERE
    return NOWHERE


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
            yield Fault(code, message, span, "README, properties: coverage")


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
    for (region, rank), size in expected.items():
        windows = _output_windows(instance, region, rank)
        for code, text, span in _gaps(sorted(windows, key=lambda w: w[:2]), size):
            if (code, span) not in reported:
                reported.add((code, span))
                message = f"{region} of rank {rank}: {text}"
                yield Fault(code, message, span, "README, properties: coverage")


def _output_windows(instance: Instance, region: str, rank: int) -> list[tuple[int, int, Span]]:
    """The windows of ``region`` that are wholly written, each as often as it is."""
    whole: list[tuple[int, int, Span]] = []
    shares: dict[tuple[int, int, Role, Span], Tally[int]] = defaultdict(Tally)
    for number, core in enumerate(instance.cores):
        for event in core.events:
            for access in event.writes:
                if (access.region, access.rank) != (region, rank) or access.begin >= access.end:
                    continue
                span = event.span or NOWHERE
                if access.share:
                    shares[access.begin, access.end, core.id.role, span][number] += 1
                else:
                    whole.append((access.begin, access.end, span))
    for (begin, end, role, span), writers in shares.items():
        cores = [i for i, c in enumerate(instance.cores) if c.id.role is role and c.id[0] == rank]
        fewest = min(writers[i] for i in cores)
        whole += [(begin, end, span)] * fewest
        if any(writers[i] > fewest for i in cores) and fewest:
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
