"""How far one parameter may go: which finding appears at which of its values.

`scan` tries the values from 1 on, everything else as planned, and says of every finding where it is
seen. Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..protocol.errors import Mc2proofError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .quick import Found, count, judge
from .report import Severity


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Where a scan of one parameter ends; events are those of all its instances together."""

    values: int = 64
    """The largest value tried."""
    judged_events: int = 60_000
    """Beyond it values are only counted, and the largest that counting allows is judged."""
    counted_events: int = 300_000
    """Beyond it no more values are tried."""
    forbidden: int = 8
    """A scan ends after so many values in succession that counting forbids, the counted part at the first."""
    probes: int = 3
    """How many of the largest values that counting allows are judged, until one is safe."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding, by code and severity: what it says at the first value, and all values that show it.

    ``among``: the values at which it was looked for.
    """

    first: Found
    at: tuple[int, ...]
    among: tuple[int, ...]

    @property
    def is_error(self) -> bool:
        """Whether it makes a property VIOLATED."""
        return self.first.severity is Severity.ERROR


@dataclass(frozen=True, slots=True)
class Scan:
    """What trying the values 1 .. ``tried`` of ``parameter`` has shown; ``judged`` ones in every respect.

    ``open``: why some value was not judged although it was to be.
    """

    parameter: str
    tried: int
    judged: tuple[int, ...]
    seen: tuple[Seen, ...]
    open: str | None = None

    def safe(self) -> tuple[int, ...]:
        """The values without any error, of those that were judged."""
        bad = {value for seen in self.seen if seen.is_error for value in seen.at}
        return tuple(value for value in self.judged if value not in bad)


def scan(
    protocol: Protocol,
    values_at: Callable[[int], Mapping[str, Value]],
    parameter: str,
    setup: Setup,
    *,
    strict_ids: bool = False,
    limits: ScanLimits | None = None,
) -> Scan:
    """Try the values of ``parameter`` from 1 on; ``values_at`` gives all parameters at one of them."""
    scanner = _Scanner(protocol, values_at, setup, strict_ids, limits or ScanLimits())
    scanner.run()
    return scanner.result(parameter)


Key = tuple[str, Severity]


class _Scanner:
    """Collects what each value shows: what is counted at every value, the rest at judged ones."""

    def __init__(
        self,
        protocol: Protocol,
        values_at: Callable[[int], Mapping[str, Value]],
        setup: Setup,
        strict_ids: bool,
        limits: ScanLimits,
    ) -> None:
        self.protocol = protocol
        self.values_at = values_at
        self.setup = setup
        self.strict_ids = strict_ids
        self.limits = limits
        self.tried = 0
        self.open: str | None = None
        self.judged: set[int] = set()
        self.first: dict[Key, Found] = {}
        self.counted: dict[Key, list[int]] = {}
        self.others: dict[Key, list[int]] = {}

    def run(self) -> None:
        """Judge while the events suffice, count the values beyond, and judge the best of these."""
        events = forbidden = 0
        for value in range(1, self.limits.values + 1):
            try:
                instance = self._instance(value, self.limits.counted_events - events)
            except Mc2proofError:
                break  # too large, not supported, or no sense to the program: not tried
            events += instance.event_count()
            self.tried = value
            judged = events <= self.limits.judged_events
            if judged:
                self._judge(value, instance)
            else:
                self._note(self.counted, value, count(instance, strict_ids=self.strict_ids))
            forbidden = forbidden + 1 if value in self._forbidden() else 0
            if forbidden >= (self.limits.forbidden if judged else 1):
                break
        self._probe()

    def _instance(self, value: int, events: int) -> Instance:
        limits = Limits(max_events=max(1, events))
        return unroll(self.protocol, self.values_at(value), self.setup, limits=limits)

    def _judge(self, value: int, instance: Instance) -> None:
        judgement = judge(instance, strict_ids=self.strict_ids)
        self._note(self.counted, value, judgement.counted)
        if judgement.open is not None:
            self.open = judgement.open
            return
        self.judged.add(value)
        self._note(self.others, value, judgement.others)

    def _probe(self) -> None:
        """Judge the largest values that counting allows, until one of them is safe."""
        bad = self._forbidden() | self.judged
        allowed = [v for v in range(self.tried, 0, -1) if v not in bad]
        for value in allowed[: self.limits.probes]:
            self._judge(value, self._instance(value, self.limits.counted_events))
            if self.open is not None or value in self.result("").safe():
                return

    def _forbidden(self) -> set[int]:
        """The values with an error that counting finds."""
        return {value for key, at in self.counted.items() if key[1] is Severity.ERROR for value in at}

    def _note(self, table: dict[Key, list[int]], value: int, found: Iterable[Found]) -> None:
        for finding in found:
            key = finding.code, finding.severity
            self.first.setdefault(key, finding)
            if value not in table.setdefault(key, []):
                table[key].append(value)

    def result(self, parameter: str) -> Scan:
        """What was found."""
        judged = tuple(sorted(self.judged))
        every = tuple(range(1, self.tried + 1))
        seen = [Seen(self.first[key], tuple(sorted(at)), every) for key, at in self.counted.items()]
        seen += [Seen(self.first[key], tuple(sorted(at)), judged) for key, at in self.others.items()]
        return Scan(parameter, self.tried, judged, tuple(seen), self.open)


MOST = 1 << 31
"""The largest value that `largest` looks at."""


def largest(fits: Callable[[int], bool]) -> int:
    """The largest value from 0 to `MOST` that fits; a value fits if a larger one does."""
    low, high = 0, MOST
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
