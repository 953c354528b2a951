"""What is judged of cells alone: the rules of deadlock, flags and barriers, the backlog, and the order.

None of it depends on addresses or sizes, so that two instances whose cores make the same events but for
these are judged once: `CellRules` remembers the last few. Configurations that differ in the number of
ranks alone mostly are such. Used by `sweep`, on `cells.Cells.reduced`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from ..protocol.instance import Core, Event, Instance
from ..protocol.sync import Sync, synchronise
from .engine import Declined
from .flag_obligations import MERGED, flag_obligations
from .flag_range import flag_range
from .happens_before import HappensBefore
from .report import Severity
from .static import Fault, barrier_match, blocks_exceed_cores, flag_balance

OF_CELLS = frozenset({"deadlock-freedom", "flag-balance", "flag-range", "barrier-match"})
"""The properties that are decided on one cell of each class."""

REMEMBERED = 4
"""Instances whose judgement is kept: as many as follow each other with other numbers of ranks."""


class Rule(msgspec.Struct, frozen=True):
    """A rule that fails; ``code`` empty where the property was answered for all values."""

    property: str
    code: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The rules of `OF_CELLS` that fail in ``sync``; its order and backlog, if timings share one order."""

    sync: Sync
    rules: tuple[Rule, ...]
    order: HappensBefore | None
    backlog: int | None


class CellRules:
    """Judges instances of one protocol and setup, those that are alike once."""

    def __init__(self, *, strict_ids: bool = False) -> None:
        self.strict_ids = strict_ids
        self.last: deque[Judged] = deque(maxlen=REMEMBERED)

    def judged(self, instance: Instance) -> Judged:
        """What is known of ``instance``."""
        for known in self.last:
            if alike(known.sync.instance, instance):
                sync = replace(known.sync, instance=instance)
                break
        else:
            sync = synchronise(instance)
            known = self._judge(sync)
            self.last.append(known)
        blocks = _failing({"deadlock-freedom": blocks_exceed_cores(sync)})  # the number of blocks may differ
        return replace(known, sync=sync, rules=(*blocks, *known.rules))

    def _judge(self, sync: Sync) -> Judged:
        rules = _failing({
            "flag-balance": flag_balance(sync),
            "flag-range": flag_range(sync, strict_ids=self.strict_ids),
            "barrier-match": barrier_match(sync),
        })  # fmt: skip
        try:
            order = HappensBefore(sync)
            obligations = list(flag_obligations(sync))
            broken = [obligations[i] for i in order.violated(obligations)]
        except Declined:
            return Judged(sync, tuple(rules), None, None)
        lossy = any(obligation.code == MERGED for obligation in broken)
        if order.stuck() is not None and not lossy:
            rules[Rule("deadlock-freedom", "deadlock")] = None
        rules |= {Rule(o.property, o.code): None for o in broken if not lossy or o.property == "flag-range"}
        return Judged(sync, tuple(rules), order, backlog(sync, order))


def _failing(faults: Mapping[str, list[Fault] | None]) -> dict[Rule, None]:
    return {
        Rule(name, fault.code): None
        for name, some in faults.items()
        for fault in some or ()
        if fault.severity is Severity.ERROR
    }


def alike(a: Instance, b: Instance) -> bool:
    """Whether the same cores make the same events but for addresses and sizes, and meet alike."""
    same = a.protocol is b.protocol and a.setup == b.setup
    shape = same and a.assemblies == b.assemblies and a.absent == b.absent and len(a.cores) == len(b.cores)
    return shape and all(map(_cores_alike, a.cores, b.cores))


def _cores_alike(a: Core, b: Core) -> bool:
    return a.id == b.id and len(a.events) == len(b.events) and all(map(_events_alike, a.events, b.events))


_READS = Event._fields.index("reads")
_DRAINS = Event._fields.index("drains")
assert Event._fields[_READS:_DRAINS] == ("reads", "writes")


def _events_alike(a: Event, b: Event) -> bool:
    return a.operation is b.operation and a[:_READS] == b[:_READS] and a[_DRAINS:] == b[_DRAINS:]


def backlog(sync: Sync, order: HappensBefore) -> int:
    """The most sets of one flag that can wait to be taken, in any timing."""
    most = 0
    waits_of: list[int] = []
    sets_of: list[int] = []
    owners: list[tuple[object, int]] = []
    taken: dict[tuple[object, int], int] = {}
    for counter in sync.sets:
        if counter.is_event:
            continue
        rises, waits = sync.rises(counter), sync.waits.get(counter, [])
        for j, rise in enumerate(rises):
            taken[counter, j] = 0
            for wait in waits[:j]:
                waits_of.append(wait.point)
                sets_of.append(rise[-1].point)
                owners.append((counter, j))
    if waits_of:
        for owner, before in zip(owners, order.ordered(waits_of, sets_of), strict=True):
            taken[owner] += bool(before)
    for (_, j), count in taken.items():
        most = max(most, j + 1 - count)
    return most
