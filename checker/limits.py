"""How far one parameter may go: which finding appears at which of its values.

`scan` tries values of one parameter, everything else as its caller says, and says of every finding
where it is seen. `largest` is the same for a question that needs no instance. Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..protocol.errors import LimitError, Mc2proofError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance
from ..protocol.program import Parameter, Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .quick import Found, count, judge
from .report import Severity

ValuesAt = Callable[[int], "Mapping[str, Value] | Found"]
"""All parameters where the scanned one has a value, or what forbids that value before any is computed."""


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Where a scan of one parameter ends; events are those of all its instances together."""

    dense: int = 20
    """So many values are tried one after the other; beyond them powers of two and their neighbours."""
    last: int = 64
    """The largest value tried, unless the first ``dense`` ones go beyond it."""
    judged_events: int = 20_000
    """Beyond it only powers of two are judged, and the other values are counted."""
    power_events: int = 60_000
    """Beyond it all values are only counted, and the largest that counting allows are judged."""
    counted_events: int = 300_000
    """Beyond it no more values are tried."""
    forbidden: int = 4
    """After so many values in succession that counting forbids, only powers of two are tried, ..."""
    spare_events: int = 35_000
    """... as soon as so many events were counted."""
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
    """What trying the values ``tried`` of ``parameter`` has shown; ``judged`` ones in every respect.

    ``low``, ``high``: the ends of the parameter's domain. ``open``: why some value was not judged
    although it was to be. ``ended``: why the next value was not tried although it was to be.
    """

    parameter: str
    low: int
    high: int
    tried: tuple[int, ...]
    judged: tuple[int, ...]
    seen: tuple[Seen, ...]
    open: str | None = None
    ended: str | None = None

    def forbidden(self) -> frozenset[int]:
        """The values with an error."""
        return frozenset(value for seen in self.seen if seen.is_error for value in seen.at)

    def safe(self) -> tuple[int, ...]:
        """The values without any error, of those that were judged."""
        return tuple(value for value in self.judged if value not in self.forbidden())


def scan(
    protocol: Protocol,
    values_at: ValuesAt,
    name: str,
    setup: Setup,
    *,
    strict_ids: bool = False,
    limits: ScanLimits | None = None,
) -> Scan:
    """Try values of parameter ``name``, from the lowest on that is one of anything."""
    parameter = protocol.parameter(name)
    assert parameter is not None
    scanner = _Scanner(protocol, values_at, parameter, setup, strict_ids, limits or ScanLimits())
    scanner.run()
    return scanner.result()


def domain(parameter: Parameter) -> tuple[int, int]:
    """The lowest and the largest value of ``parameter`` that a limit is told about: none of nothing."""
    high = parameter.type.high if parameter.high is None else min(parameter.high, parameter.type.high)
    return max(1, parameter.low), min(high, MOST)


def candidates(low: int, high: int, limits: ScanLimits) -> Iterator[int]:
    """The values to try, in order."""
    end = min(high, max(limits.last, low + limits.dense - 1))
    yield from range(low, min(low + limits.dense, end + 1))
    near = {p + d for p in _powers(end + 1) for d in (-1, 0, 1)}
    yield from sorted(value for value in near if low + limits.dense <= value <= end)


def _powers(end: int) -> Iterator[int]:
    power = 1
    while power <= end:
        yield power
        power *= 2


def _is_power(value: int) -> bool:
    return value & (value - 1) == 0


Key = tuple[str, Severity]


class _Scanner:
    """Collects what each value shows: what is counted at every value, the rest at judged ones."""

    def __init__(
        self,
        protocol: Protocol,
        values_at: ValuesAt,
        parameter: Parameter,
        setup: Setup,
        strict_ids: bool,
        limits: ScanLimits,
    ) -> None:
        self.protocol = protocol
        self.values_at = values_at
        self.parameter = parameter
        self.setup = setup
        self.strict_ids = strict_ids
        self.limits = limits
        self.tried: list[int] = []
        self.open: str | None = None
        self.ended: str | None = None
        self.judged: set[int] = set()
        self.first: dict[Key, Found] = {}
        self.counted: dict[Key, list[int]] = {}
        self.others: dict[Key, list[int]] = {}

    def run(self) -> None:
        """Judge while the events suffice, count the values beyond, and judge the best of these."""
        left = self.limits.counted_events
        judged = forbidden = 0
        for value in candidates(*domain(self.parameter), self.limits):
            spent = self.limits.counted_events - left > self.limits.spare_events
            if forbidden >= self.limits.forbidden and spent and not _is_power(value):
                continue
            try:
                events = self._try(value, left, judged)
            except LimitError as error:
                self.ended = f"{self.parameter.name} {value}: {error.needed} is beyond what a plan tries"
                break
            except Mc2proofError as error:
                self.ended = f"{self.parameter.name} {value}: {error}"
                break
            left -= events
            if value in self.judged:
                judged += events
            forbidden = forbidden + 1 if value in self._forbidden() else 0
        self._probe()

    def _try(self, value: int, left: int, judged: int) -> int:
        """What ``value`` shows, and its number of events; ``judged``: those of values judged so far."""
        made = self._instance(value, left)
        self.tried.append(value)
        if isinstance(made, Found):
            self._note(self.counted, value, [made])
            return 0
        events = made.event_count()
        total = judged + events
        if total <= self.limits.judged_events or (_is_power(value) and total <= self.limits.power_events):
            self._judge(value, made)
        else:
            self._note(self.counted, value, count(made, strict_ids=self.strict_ids))
        return events

    def _instance(self, value: int, events: int) -> Instance | Found:
        values = self.values_at(value)
        if isinstance(values, Found):
            return values
        return unroll(self.protocol, values, self.setup, limits=Limits(max_events=max(1, events)))

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
        allowed = sorted(set(self.tried) - self._forbidden(), reverse=True)
        for value in allowed[: self.limits.probes]:
            if value not in self.judged:
                made = self._instance(value, self.limits.counted_events)
                if not isinstance(made, Found):
                    self._judge(value, made)
            if self.open is not None or value in self.result().safe():
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

    def result(self) -> Scan:
        """What was found."""
        judged, tried = tuple(sorted(self.judged)), tuple(self.tried)
        seen = [Seen(self.first[key], tuple(sorted(at)), tried) for key, at in self.counted.items()]
        seen += [Seen(self.first[key], tuple(sorted(at)), judged) for key, at in self.others.items()]
        low, high = domain(self.parameter)
        return Scan(self.parameter.name, low, high, tried, judged, tuple(seen), self.open, self.ended)


MOST = 1 << 31
"""The largest value that anything is said about."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Up to which value something holds; ``monotone`` False: it holds again at a larger one tried."""

    last: int
    monotone: bool


def largest(fits: Callable[[int], bool], low: int, high: int, tried: Iterable[int] = ()) -> Bound:
    """The largest value from ``low`` to ``high`` up to which ``fits`` holds; ``low`` - 1 if nowhere.

    It is searched by halving, which is right where a value fits if a larger one does. Whether that is
    so is looked at for the values ``tried`` and the powers of two.
    """
    first, last = low - 1, high
    while first < last:
        middle = (first + last + 1) // 2
        if fits(middle):
            first = middle
        else:
            last = middle - 1
    looked = {value for value in (*tried, *_powers(high)) if low <= value <= high}
    return Bound(first, all(fits(value) == (value <= first) for value in looked))
