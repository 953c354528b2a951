"""Values at which a property fails: tried where the boundaries lie, and just outside a condition.

Each candidate is judged by happens-before and counting; the engine for all values is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...protocol.errors import Mc2proofError
from ...protocol.evaluate import Value
from ...protocol.program import Protocol
from ...protocol.setup import Setup
from ...protocol.unroll import Limits, unroll
from ..quick import count, judge
from ..report import Severity
from .domain import Domain, satisfied
from .formula import Formula
from .sites import LAUNCHES

MOST_EVENTS = 40_000
"""Larger instances are not tried."""

_USUAL: Mapping[str, Sequence[int]] = {
    "ranks": (2, 3, 1, 4),
    "buffer_size": (2, 1, 3, 4, 8),
    LAUNCHES: (1, 2),
}
_BESIDE = (1, 0, 2, 3, 12, 16, 17)
"""Values of any other parameter."""

Case = Mapping[str, int]


def candidates(domain: Domain) -> Iterator[Case]:
    """Values of the free parameters that lie in the domain, small ones first, none twice."""
    seen: set[tuple[int, ...]] = set()
    for case in _products(domain, list(_order(domain.free))):
        key = tuple(case[name] for name in domain.free)
        if key not in seen and domain.contains(case):
            seen.add(key)
            yield case


def _order(free: Mapping[str, object]) -> Iterator[str]:
    """The names, those that others are chosen after first."""
    first = [name for name in ("ranks", "blocks", "buffer_size", LAUNCHES) if name in free]
    yield from first
    yield from (name for name in free if name not in first)


def _products(domain: Domain, names: list[str], chosen: Case | None = None) -> Iterator[Case]:
    chosen = chosen or {}
    if not names:
        yield chosen
        return
    name, *rest = names
    low, high = domain.free[name]
    for value in dict.fromkeys(_values(name, low, chosen)):
        if value >= low and (high is None or value <= high):
            yield from _products(domain, rest, {**chosen, name: value})


def _values(name: str, low: int, chosen: Case) -> Sequence[int]:
    ranks, depth = chosen.get("ranks", 2), chosen.get("buffer_size", 2)
    if name == "blocks":
        return (ranks, ranks + 1, max(ranks - 1, low))
    if name in _USUAL:
        return (*_USUAL[name], low)
    return (depth + 1, 2 * depth + 1, 1, depth, 2 * depth, depth - 1, 12, 17, depth + 15, low, *_BESIDE)


def outside(domain: Domain, condition: Formula) -> Iterator[Case]:
    """Values just outside ``condition``: one parameter after the other is raised until it fails."""
    for start in _starts(domain):
        found = []
        if not domain.free and not satisfied(condition, start):
            yield start  # all has a value
        for name, (_, high) in domain.free.items():
            value = _first_failing(domain, condition, start, name, high)
            if value is not None:
                found.append((value, {**start, name: value}))
        for _, case in sorted(found, key=lambda item: item[0]):
            yield case


def _starts(domain: Domain) -> Iterator[Case]:
    for number, case in enumerate(candidates(domain)):
        if number == 40:
            return
        yield case


def _first_failing(
    domain: Domain, condition: Formula, start: Case, name: str, high: int | None
) -> int | None:
    """The least value of ``name``, from that in ``start``, at which ``condition`` fails; by doubling."""
    low = start[name]

    def fails(value: int) -> bool:
        return not satisfied(condition, {**start, name: value})

    top = low
    while not fails(top):
        top = 2 * top + 1
        if top > 1 << 32 or (high is not None and top > high):
            return None
    while low < top:
        middle = (low + top) // 2
        low, top = (low, middle) if fails(middle) else (middle + 1, top)
    for value in range(top, top + 64):  # the domain may ask for more: a power of two, say
        if fails(value) and domain.contains({**start, name: value}):
            return value
    power = 1 << top.bit_length()
    return power if fails(power) and domain.contains({**start, name: power}) else None


def failing(
    protocol: Protocol, setup: Setup, domain: Domain, fixed: Mapping[str, Value],
    wanted: Mapping[str, Formula | None], most: int, *, strict_ids: bool,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Case]:  # fmt: skip
    """For properties of ``wanted``, values at which they fail, as far as some are found.

    ``wanted`` gives a condition that they hold under, where one is known; ``most``: how many values are tried
    otherwise.
    """
    found: dict[str, Case] = {}
    for name, condition in wanted.items():
        if condition is not None:
            for case in few(outside(domain, condition)):
                if name in _errors(protocol, setup, fixed, case, strict_ids=strict_ids, counting=True):
                    found[name] = case
                    break
    rest = [name for name in wanted if name not in found]
    for number, case in enumerate(candidates(domain)):
        if not rest or number == most:
            break
        if progress is not None:
            progress(f"looking for values at which {rest[0]} fails")
        for name in _errors(protocol, setup, fixed, case, strict_ids=strict_ids, counting=False):
            if name in rest:
                found[name] = case
                rest.remove(name)
    return found


def few(cases: Iterator[Case]) -> Iterator[Case]:
    """The first of ``cases``."""
    for number, case in enumerate(cases):
        if number == 12:
            return
        yield case


def _errors(
    protocol: Protocol,
    setup: Setup,
    fixed: Mapping[str, Value],
    case: Case,
    *,
    strict_ids: bool,
    counting: bool,
) -> list[str]:
    """The properties that fail at these values; none where they make no sense or are too many events."""
    from dataclasses import replace

    values = {**fixed, **{name: value for name, value in case.items() if name != LAUNCHES}}
    at = replace(setup, launches=case.get(LAUNCHES, setup.launches))
    try:
        instance = unroll(protocol, values, at, limits=Limits(max_events=MOST_EVENTS))
    except Mc2proofError:
        return []
    found = (
        count(instance, strict_ids=strict_ids) if counting else judge(instance, strict_ids=strict_ids).found
    )
    return sorted({fault.property for fault in found if fault.severity is Severity.ERROR})
