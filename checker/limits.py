"""How far one parameter may go: which finding appears at which of its values.

`scan` tries the values from 1 on, everything else as planned, and says of every finding where it is
seen. Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.errors import LimitError, Mc2proofError
from ..protocol.evaluate import Value
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .quick import Found, judge
from .report import Severity


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Where a scan of one parameter ends."""

    values: int = 64
    """The largest value tried."""
    events: int = 60_000
    """Events of all instances of a scan together."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding, by code and severity, with the values at which it is seen; what it says at the first."""

    first: Found
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """What trying the values 1 .. ``tried`` of ``parameter`` has shown."""

    parameter: str
    tried: int
    seen: tuple[Seen, ...]

    def safe(self) -> tuple[int, ...]:
        """The values without any error."""
        bad = {value for seen in self.seen if is_error(seen) for value in seen.at}
        return tuple(value for value in range(1, self.tried + 1) if value not in bad)


def is_error(seen: Seen) -> bool:
    """Whether a finding makes a property VIOLATED."""
    return seen.first.severity is Severity.ERROR


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
    limits = limits or ScanLimits()
    first: dict[tuple[str, Severity], Found] = {}
    at: dict[tuple[str, Severity], list[int]] = {}
    left = limits.events
    tried = 0
    for value in range(1, limits.values + 1):
        try:
            instance = unroll(protocol, values_at(value), setup, limits=Limits(max_events=left))
        except LimitError:
            break
        except Mc2proofError as error:  # these values make no sense to the program
            found: Sequence[Found] = [_nonsense(error)]
        else:
            left = max(1, left - instance.event_count())
            found = judge(instance, strict_ids=strict_ids).found
        tried = value
        for finding in found:
            key = finding.code, finding.severity
            first.setdefault(key, finding)
            if value not in at.setdefault(key, []):
                at[key].append(value)
    return Scan(parameter, tried, tuple(Seen(first[key], tuple(at[key])) for key in at))


def _nonsense(error: Mc2proofError) -> Found:
    return Found("layout", "not-computable", Severity.ERROR, str(error), "", 0)


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
