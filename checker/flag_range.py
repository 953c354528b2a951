"""Flag ids: outside their domain, taken by the system, aliases of each other, or on absent pipes.

Counting only; that a counter can pass its cap, or an id change its mode too early, depends on the
timing and is in `flag_obligations`. Used by `rows`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..protocol.describe import numbers
from ..protocol.instance import Absent, CoreId, Event, Instance, Kind
from ..protocol.profile import Profile
from ..protocol.program import Pipe, Role, SetFlag, Span, WaitEvent, WaitFlag
from ..protocol.sync import Sync
from .catalogue import severity_of
from .pieces import distinct_cores
from .report import Severity
from .static import NOWHERE, Fault

FLAGS = (Kind.SET_FLAG, Kind.WAIT_FLAG)


def flag_range(sync: Sync, *, strict_ids: bool) -> list[Fault] | None:
    """Ids outside their domain, reserved ids, and operations on pipes that the core lacks."""
    instance = sync.instance
    if not sync.sets and not sync.waits and not instance.absent:
        return None
    takers = _takers(sync)
    ids: dict[tuple[str, str, Span, Severity], set[int]] = defaultdict(set)
    used: dict[tuple[Role, int], set[int]] = defaultdict(set)
    seen: set[tuple[int, int, Role, int]] = set()  # a statement with one id is judged alike on like cores
    for cores in distinct_cores(instance):
        core = instance.cores[cores[0]]
        for event in core.events:
            if event.raw < 0 and not event.link and event.kind not in FLAGS:
                continue
            key = (id(event.operation), event.raw, core.id.role, core.id.sub)
            if key in seen:
                continue
            seen.add(key)
            if event.kind in FLAGS:
                used[core.id.role, event.flag].add(event.raw)
            for code, about, severity in _faults_of(instance.profile, core.id, event, takers, strict_ids):
                ids[code, about, event.span or NOWHERE, severity].add(event.raw)
    found = [
        Fault(code, _message(instance.profile, code, about, raw, used), span, severity)
        for (code, about, span, severity), raw in ids.items()
    ]
    return [*_absent_pipes(instance), *found]


@dataclass(frozen=True, slots=True)
class _Taker:
    """Something that uses flag counters itself: a barrier in use, or the Matmul API.

    ``modes``: those whose counters it may use; a barrier of AIVs alone uses none of mode 4.
    """

    name: str
    taken: dict[Role, frozenset[int]]
    modes: frozenset[int] = frozenset({0, 1, 2, 4})


def _takers(sync: Sync) -> list[_Taker]:
    instance = sync.instance
    ratio = instance.protocol.vectors_per_cube
    called = {meeting.function for meeting in sync.meetings}
    forms = {a.form.name: a.form for name, a in instance.barriers().items() if name in called}
    takers = [
        _Taker(
            f"the {name} barrier",
            {role: forms[name].reserved_on(role, ratio) for role in Role},
            frozenset({0, 1, 2} if forms[name].participants == {Role.AIV} else {0, 1, 2, 4}),
        )
        for name in sorted(forms)
    ]
    objects = instance.profile.matmul_objects
    if objects:  # devkit SyncAll: ids 0 .. 2N-1 on both sides
        takers.append(_Taker("the Matmul API", dict.fromkeys(Role, frozenset(range(2 * objects)))))
    return takers


def _faults_of(
    profile: Profile, core: CoreId, event: Event, takers: Sequence[_Taker], strict_ids: bool
) -> Iterable[tuple[str, str, Severity]]:
    """What is wrong with the id of one set or wait: code, what it is about, severity."""
    if event.kind in FLAGS:
        yield from _flag_faults(profile, core, event, takers, strict_ids)
    elif event.link and event.raw not in profile.event_ids:
        yield "event-id-out-of-range", event.link, Severity.ERROR
    elif event.link and event.raw in profile.system_event_ids:
        code = "event-id-of-system"
        yield code, event.link, severity_of(code, strict_ids=strict_ids)


def _flag_faults(
    profile: Profile, core: CoreId, event: Event, takers: Sequence[_Taker], strict_ids: bool
) -> Iterable[tuple[str, str, Severity]]:
    domain = profile.ids(core.role, event.mode)
    half = len(profile.flag_ids)
    if event.raw not in domain:
        yield "id-out-of-range", f"{domain[-1]} {core.role.name}", Severity.ERROR
    elif strict_ids and event.raw % half not in profile.strict_ids:
        yield "id-not-for-users", "", Severity.ERROR
    holder, counter = _counter_meant(core, event, half)
    for taker in takers:
        if counter in taker.taken[holder] and event.mode in taker.modes:
            about = f"{taker.name} itself uses that counter on the {holder.name}"
            yield "id-reserved", about, Severity.ERROR
        elif any(event.flag in ids for ids in taker.taken.values()):
            code = "id-reserved-elsewhere"
            yield code, taker.name, severity_of(code, strict_ids=strict_ids)


def _counter_meant(core: CoreId, event: Event, half: int) -> tuple[Role, int]:
    """The role whose counter a set or wait touches, and the counter's number there."""
    if event.kind is Kind.WAIT_FLAG or event.mode in (0, 1):
        return core.role, event.flag
    if core.role is Role.AIC:
        return Role.AIV, event.flag % half
    return Role.AIC, event.flag + (half * core.sub if event.mode == 4 else 0)


def _message(
    profile: Profile, code: str, about: str, raw: set[int], used: dict[tuple[Role, int], set[int]]
) -> str:
    many = len(raw) > 1
    name = f"{'ids' if many else 'id'} {numbers(raw)}"
    are = "are" if many else "is"
    match code:
        case "id-out-of-range":
            last, role = about.split()
            return f"{name} {are} outside 0-{last}: {_aliases(int(last) + 1, Role[role], raw, used)}"
        case "id-not-for-users":
            return f"{name} {are} not among the user's ids 0-{profile.strict_ids[-1]} (strict ids)"
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
    return f"event {name} of {about} {are} outside {ids[0]}-{ids[-1]}"


def _aliases(count: int, role: Role, raw: set[int], used: dict[tuple[Role, int], set[int]]) -> str:
    """What the hardware makes of ids that are too large, and who else uses that."""
    cut = {i % count for i in raw}
    same = {other for i in cut for other in used[role, i]} - raw
    text = f"the hardware keeps the low {count.bit_length() - 1} bits, so flag {numbers(cut)} is used"
    return f"{text}, as for id {numbers(same)}" if same else text


def collides_with_barrier(faults: Sequence[Fault] | None) -> bool:
    """Whether a user's flag meets one of the system: other verdicts then assume it undisturbed."""
    return any(f.code == "id-reserved" for f in faults or ())


def _absent_pipes(instance: Instance) -> Iterable[Fault]:
    by_place: dict[Span, list[int]] = defaultdict(list)
    chosen: dict[Span, Absent] = {}
    for entry in instance.absent:
        by_place[entry.operation.span].append(entry.core.rank)
        chosen.setdefault(entry.operation.span, entry)
    for span, entry in chosen.items():
        operation, lacks = entry.operation, "lacks"
        if isinstance(operation, SetFlag | WaitFlag):
            what = "CrossCoreWaitFlag" if isinstance(operation, WaitFlag) else "CrossCoreSetFlag"
            pipes = f"{operation.pipe.value}, which"
            if operation.pipe is Pipe.S:
                pipes, lacks = f"{operation.pipe.value}, on which", f"cannot set in mode {operation.mode}"
        else:
            what = "WaitFlag" if isinstance(operation, WaitEvent) else "SetFlag"
            pipes = f"{operation.source.value} and {operation.target.value}, one of which"
        text = (
            f"{what} names {pipes} an {entry.core.role.name} {lacks}: it compiles to nothing "
            f"(ranks {numbers(by_place[span])})"
        )
        yield Fault("absent-pipe", text, span)
