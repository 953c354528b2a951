"""`growth`: how far one parameter of a planned shape may grow, in words, and what sets the limit.

What instances show is from `limits`; beyond what a scan reaches, the host's own rules and the areas
that it lays the heap out by are asked, and the kernel at their last value. Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..protocol.ascendc.host import Area, AreaWraps, Geometry, HostRules, ShapeRefused
from ..protocol.errors import LimitError, SourceError, UnsupportedError
from ..protocol.evaluate import Value, evaluate
from ..protocol.expr import Expr, Var, variables
from ..protocol.parameters import check_values
from ..protocol.program import Protocol, Region
from ..protocol.setup import Setup
from ..protocol.unroll import Limits, unroll
from .layout import extents
from .limits import Scan, Seen, largest, scan
from .quick import Found
from .report import Severity

TILES, TILE_ROWS = "tile_cnt", "m"
"""The parameter that grows with the rows of a shape, and the one that says how many rows a tile has."""
AREAS_RULE, HOST_RULE, DOMAIN_RULE = "areas", "host-rules", "domain"
"""What limits that no instance shows are called: the heap by its areas, the host, the parameter itself."""
SHOWN_VALUES = 8
"""How many allowed values are listed where they are no range."""
CHECKED_EVENTS = 100_000
"""The largest instance that is made to see what the kernel does where the areas end."""


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
    """The largest value of a parameter, of those ``judged``, that no rule forbids.

    ``bound_by``: what forbids the next value, or every one judged where ``largest`` is None; empty:
    nobody knows, and ``unknown`` says why. ``follows``: other parameters that changed with it.
    """

    parameter: str
    largest: int | None
    bound_by: list[str]
    judged: list[int]
    follows: list[str]
    unknown: str | None


@dataclass(frozen=True, slots=True)
class Planned:
    """One planned shape: everything that its limits start from. ``values`` are complete."""

    protocol: Protocol
    rules: HostRules
    geometry: Geometry
    given: Mapping[str, Value]
    values: Mapping[str, Value]
    setup: Setup
    strict_ids: bool

    def heap(self) -> Region:
        """The region that the host lays out. Raises SourceError where there is none that is shared."""
        region = next((r for r in self.protocol.regions if r.name == self.rules.region), None)
        if region is None or region.kind.name != "SHARED":
            what = "no region" if region is None else "no shared region, but an unshared one,"
            where = f"{self.rules.file}: host.region"
            raise SourceError(f"{where}: {self.protocol.name} has {what} {self.rules.region}")
        return region


@dataclass(frozen=True, slots=True)
class Growth:
    """What is said of one parameter; ``undecided``: why some of it is not known."""

    limits: tuple[Limit, ...]
    reach: Reach
    undecided: tuple[str, ...]


def growth(planned: Planned, name: str) -> Growth:
    """How far parameter ``name`` may grow."""
    return _Grower(planned, name).growth()


def numbers(values: Mapping[str, Value]) -> dict[str, int]:
    """``values`` without the arrays."""
    return {name: value for name, value in values.items() if isinstance(value, int)}


def size_of(region: Region, values: Mapping[str, Value]) -> int | None:
    """The bytes of ``region`` on the rank where it is smallest, None if not known."""
    if region.bytes is None:
        return None
    varies = any(isinstance(v, Var) and v.name == "rank" for v in variables(region.bytes))
    ranks = numbers(values)["ranks"] if varies else 1
    return min(evaluate(region.bytes, {**values, "rank": rank}) for rank in range(ranks))


class _Grower:
    """Works out the limits of one parameter."""

    def __init__(self, planned: Planned, name: str) -> None:
        self.planned = planned
        self.name = name
        self.cache: dict[int, Mapping[str, Value] | Found] = {}
        self.unfollowed = False

    def growth(self) -> Growth:
        scanned = scan(
            self.planned.protocol, self.at, self.name, self.planned.setup, strict_ids=self.planned.strict_ids
        )
        limits = [_limit(scanned, seen) for seen in scanned.seen]
        undecided = [] if scanned.open is None else [f"which {self.name} timing allows: {scanned.open}"]
        if scanned.ended is not None:
            undecided.append(f"not tried: {scanned.ended}")
        for limit in self.beyond(scanned):
            if isinstance(limit, str):
                undecided.append(limit)
            elif limit.code not in {seen.first.code for seen in scanned.seen}:
                limits.append(limit)
        if self.unfollowed:
            undecided.append(
                f"what the host makes of other {self.name}: M = {self.name} * {TILE_ROWS} does not give them"
            )
        return Growth(tuple(limits), self.reach(scanned, limits), tuple(undecided))

    # --- values -----------------------------------------------------------------------------

    def at(self, value: int) -> Mapping[str, Value] | Found:
        """All parameters where the scanned one is ``value``, or the host's refusal of it."""
        if value not in self.cache:
            self.cache[value] = self._at(value)
        return self.cache[value]

    def _at(self, value: int) -> Mapping[str, Value] | Found:
        planned = self.planned
        rows = planned.values.get(TILE_ROWS)
        if self.name != TILES or not isinstance(rows, int):
            return check_values(planned.protocol, {**planned.values, self.name: value})
        _, k, n = planned.geometry.shape
        try:
            geometry = planned.rules.geometry((value * rows, k, n), planned.geometry.ranks)
        except ShapeRefused as refused:
            text = f"M = {value * rows}: {refused.message}"
            return Found("layout", HOST_RULE, Severity.ERROR, text, planned.rules.file, 0)
        if geometry.parameters.get(TILES) == value:
            made = {**geometry.parameters, "ranks": geometry.ranks, **planned.given}
            return check_values(planned.protocol, made)
        self.unfollowed = True  # what is computed from the tiles follows them all the same
        kept = {n: v for n, v in planned.values.items() if not self._is_computed(n)}
        return check_values(planned.protocol, {**kept, self.name: value})

    def _is_computed(self, name: str) -> bool:
        parameter = self.planned.protocol.parameter(name)
        return parameter is not None and isinstance(parameter.default, Expr)

    def follows(self, scanned: Scan) -> list[str]:
        """The other parameters that differ between two values."""
        first = scanned.tried or range(scanned.low, min(scanned.low + 1, scanned.high) + 1)
        made = [v for v in map(self.at, first[:3]) if not isinstance(v, Found)]
        pairs = zip(made, [*made[1:], self.planned.values], strict=False)
        return list(dict.fromkeys(n for a, b in pairs for n in a if n != self.name and a[n] != b.get(n)))

    # --- beyond the scan --------------------------------------------------------------------

    def beyond(self, scanned: Scan) -> list[Limit | str]:
        """The limits by the host's checks and by the heap's areas, or why one is not told."""
        low, high = scanned.low, scanned.high
        found: list[Limit | str] = []
        host = largest(lambda value: not isinstance(self.at(value), Found), low, high, scanned.tried)
        refused = self.at(host.last + 1) if host.last < high else None
        if not host.monotone:
            found.append(
                f"up to which {self.name} the host goes: it takes larger values than some it refuses"
            )
        elif isinstance(refused, Found):
            reason = f"at {host.last + 1}: {refused.message}"
            found.append(_up_to(self.name, host.last, low, HOST_RULE, Severity.ERROR, reason))
            high = host.last
        if self.planned.heap().bytes is not None and low <= high:
            room = largest(self.has_room, low, high, scanned.tried)
            if not room.monotone:
                found.append(
                    f"up to which {self.name} the areas fit the heap: larger values fit where some do not"
                )
            elif room.last < high and room.last + 1 not in _leaving(scanned):
                found.append(self.areas_limit(room.last, low))
        return found

    def has_room(self, value: int) -> bool:
        """Whether the host's areas fit the heap at ``value``; what the host refuses is another rule's."""
        values = self.at(value)
        if isinstance(values, Found):
            return True
        try:
            used = total(self.planned.rules.heap_areas(numbers(values)))
        except AreaWraps:
            return False
        size = size_of(self.planned.heap(), values)
        return size is None or used <= size

    def areas_limit(self, room: int, low: int) -> Limit:
        """The limit by the areas, and what the kernel itself does just beyond it."""
        values = self.at(room + 1)
        assert not isinstance(values, Found)
        size = size_of(self.planned.heap(), values)
        assert size is not None
        try:
            parts = areas_text(self.planned.rules.heap_areas(numbers(values)))
        except AreaWraps as error:
            parts = f"areas ({error.message})"
        needed = self.needed(room + 1)
        severity = Severity.ERROR
        if needed is None:
            known = "by the areas alone"
        elif needed > size:
            before = self.needed(room) if room >= low else None
            known = (
                f"the kernel leaves it at {room} already"
                if (before or 0) > size
                else "the kernel leaves it there"
            )
        else:
            severity, known = Severity.WARNING, f"the kernel itself needs {needed:,} B there"
        reason = f"at {room + 1}: {parts} exceed the heap of {size:,} B; {known}"
        return _up_to(self.name, room, low, AREAS_RULE, severity, reason)

    def needed(self, value: int) -> int | None:
        """The bytes of the heap that the kernel addresses at ``value``; None where that is not known."""
        values = self.at(value)
        if isinstance(values, Found):
            return None
        limits = Limits(max_events=CHECKED_EVENTS)
        try:
            instance = unroll(self.planned.protocol, values, self.planned.setup, limits=limits)
        except (LimitError, UnsupportedError):
            return None
        return next((e.needed for e in extents(instance) if e.region == self.planned.rules.region), 0)

    # --- the largest ------------------------------------------------------------------------

    def reach(self, scanned: Scan, limits: list[Limit]) -> Reach:
        """The largest safe value of those judged."""
        safe, forbidden = scanned.safe(), scanned.forbidden()
        best = safe[-1] if safe else None
        decided = sorted({*safe, *forbidden})
        doubtful = any(v not in forbidden and v > (best or 0) for v in scanned.tried)
        unknown = None
        if best is None and decided and scanned.open is None:
            bound_by = _binding(scanned, forbidden)
        elif best is None or doubtful:
            bound_by = []
        else:
            bound_by = self.bounds(scanned, limits, best)
        if not bound_by:
            rest = f"larger ones were not {'judged' if doubtful else 'tried'}"
            unknown = scanned.open or scanned.ended or rest
        return Reach(self.name, best, bound_by, decided, self.follows(scanned), unknown)

    def bounds(self, scanned: Scan, limits: list[Limit], best: int) -> list[str]:
        """What forbids the value after ``best``."""
        codes = [seen.first.code for seen in scanned.seen if seen.is_error and best + 1 in seen.at]
        codes += [
            limit.code
            for limit in limits
            if limit.code in _BEYOND and limit.largest == best and limit.severity == Severity.ERROR.value
        ]
        return [*dict.fromkeys(codes), *([DOMAIN_RULE] if best == scanned.high else [])]


def _binding(scanned: Scan, forbidden: frozenset[int]) -> list[str]:
    """Few rules that together forbid every value of ``forbidden``, the one with most values first."""
    errors = [seen for seen in scanned.seen if seen.is_error]
    rest, codes = set(forbidden), []
    while rest:
        best = max(errors, key=lambda seen: len(rest.intersection(seen.at)))
        rest -= set(best.at)
        codes.append(best.first.code)
    return codes


_BEYOND = frozenset({AREAS_RULE, HOST_RULE})


def _leaving(scanned: Scan) -> set[int]:
    """The values at which the kernel was seen to leave a region."""
    return {value for seen in scanned.seen if seen.first.code == "out-of-bounds" for value in seen.at}


def total(areas: tuple[Area, ...]) -> int:
    """The bytes of all ``areas``."""
    return sum(area.total for area in areas)


def areas_text(areas: tuple[Area, ...]) -> str:
    """``ring 4 x 4,194,304 + scale 524,288 B``."""
    shown = (
        f"{area.name} {area.count} x {area.bytes:,}" if area.count != 1 else f"{area.name} {area.bytes:,}"
        for area in areas
    )
    return f"{' + '.join(shown)} B"


# --- words ------------------------------------------------------------------------------------


def _up_to(name: str, last: int, low: int, code: str, severity: Severity, reason: str) -> Limit:
    end = last if last >= low else None
    condition = f"<= {last}" if end is not None else "= none"
    return Limit(name, condition, end, [], code, severity.value, reason)


def _limit(scanned: Scan, seen: Seen) -> Limit:
    """In words, which of the tried values have no such finding."""
    fine = [v for v in seen.among if v not in seen.at]
    end = None
    if not fine:
        condition = "= none of those judged"
    elif seen.at[0] == fine[-1] + 1:  # a range up to one value, whatever was not tried beyond
        whole = _whole(fine) and fine[0] == scanned.low
        condition, end = (f"<= {fine[-1]}", fine[-1]) if whole else _listed(fine, seen)
    elif fine[0] == seen.at[-1] + 1 and seen.at == tuple(range(seen.at[0], fine[0])):
        condition = f">= {fine[0]}{'' if _whole(seen.among) else ' of those tried'}"
    else:
        condition, end = _listed(fine, seen)
    first = seen.first
    at = f"at {seen.at[0]}: " if fine or first.code == HOST_RULE else ""
    return Limit(
        scanned.parameter, condition, end, list(seen.at), first.code, first.severity.value, at + first.message
    )


def _listed(fine: list[int], seen: Seen) -> tuple[str, None]:
    shown = [*map(str, fine[:SHOWN_VALUES]), *(["…"] if len(fine) > SHOWN_VALUES else [])]
    return f"= {', '.join(shown)}{'' if _whole(seen.among) else ' (others not tried)'}", None


def _whole(values: Sequence[int]) -> bool:
    """Whether no value is left out between the first and the last."""
    return len(values) == values[-1] - values[0] + 1
