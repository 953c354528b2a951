"""An event that passes a limit, at given values: nothing is unrolled, so the values may be huge.

`layout` and `flags` name events that may go furthest (`Condition.places`). Here they are computed as the
program would, by `evaluate`; what the symbolic engine believes of them is not used. Called by `forall`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...protocol.errors import ParameterError
from ...protocol.evaluate import Value, evaluate
from ...protocol.expr import Expr
from ...protocol.instance import Access
from ...protocol.parameters import check_values
from ...protocol.program import Address, Put, SetFlag, Span, WaitFlag
from ..layout import out_of_bounds, put_too_large
from ..static import Fault
from .conditions import Condition, Place
from .flags import taken_ids
from .program import Program
from .sites import LAUNCHES, Site

Values = Mapping[str, Value]

OF_BYTES = frozenset({"out-of-bounds", "put-too-large"})
"""Codes of the layout: it is where a value that wraps around is a finding."""


class _Wraps(Exception):
    """A value that C cuts short."""

    def __init__(self, expr: Expr, found: int, exact: int) -> None:
        super().__init__(f"{expr} wraps around: C computes {found}, the exact value is {exact}")


@dataclass(frozen=True, slots=True)
class Beyond:
    """Events that pass limits at ``values``, which are those of all parameters."""

    values: dict[str, Value]
    launches: int
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class _Passed:
    """A limit that is passed ``by`` so much; ``about``: what it is a limit of."""

    fault: Fault
    about: str
    by: int


def beyond(
    program: Program, fixed: Values, case: Mapping[str, int], limits: Sequence[Condition]
) -> Beyond | None:
    """What events of ``limits`` pass at the values ``fixed`` and ``case``; None where they pass nothing."""
    given = {**fixed, **{name: value for name, value in case.items() if name != LAUNCHES}}
    launches = case.get(LAUNCHES, program.setup.launches)
    try:
        values = check_values(program.protocol, given)
    except ParameterError:
        return None
    worst: dict[tuple[Span, str, str], _Passed] = {}
    for limit in limits:
        for place in limit.places:
            for passed in _passed(program, limit, _numbers(place, case), {**values, LAUNCHES: launches}):
                key = (passed.fault.span, passed.fault.code, passed.about)
                if key not in worst or passed.by > worst[key].by:
                    worst[key] = passed
    if not worst:
        return None
    return Beyond(values, launches, tuple(passed.fault for passed in worst.values()))


def _numbers(place: Place, case: Mapping[str, int]) -> tuple[int, int, list[int]]:
    """Rank, block and turns."""
    return (
        place.rank.evaluate(case),
        place.block.evaluate(case),
        [turn.evaluate(case) for turn in place.turns],
    )


def _passed(
    program: Program, limit: Condition, place: tuple[int, int, list[int]], values: dict[str, Value]
) -> Iterator[_Passed]:
    try:
        names = _names(limit.site, values, *place)
        if names is not None:
            yield from _CHECKS[limit.code](program, limit.site, names)
    except _Wraps as wrap:
        if limit.code in OF_BYTES:
            yield _Passed(Fault("wrap-around", str(wrap), limit.site.span), "", 0)
    except (ZeroDivisionError, ValueError):
        return  # the program itself fails there, which is not what the limit is about


# --- one event --------------------------------------------------------------------------------


def _value(expr: Expr, names: Values) -> int:
    found, exact = evaluate(expr, names), evaluate(expr, names, exact=True)
    if found != exact:
        raise _Wraps(expr, found, exact)
    return found


def _names(
    site: Site, values: dict[str, Value], rank: int, block: int, turns: Sequence[int]
) -> dict[str, Value] | None:
    """What all names mean where the event is; None where there is no such event."""
    ranks, blocks = values["ranks"], values["blocks"]
    assert isinstance(ranks, int)
    assert isinstance(blocks, int)
    if not (0 <= rank < ranks and 0 <= block < blocks and all(turn >= 0 for turn in turns)):
        return None
    names: dict[str, Value] = {**values, "rank": rank, "block": block, "sub": 0}
    for depth, (loop, turn) in enumerate(zip(site.loops, turns, strict=True), 1):
        index = _value(loop.start, names) + turn * loop.step
        if index >= _value(loop.stop, names):
            return None
        names[loop.index] = index
        for guard in site.guards:
            if guard.depth == depth and bool(_value(guard.condition, names)) is not guard.wanted:
                return None
    return names


# --- bytes ------------------------------------------------------------------------------------


def _accesses(site: Site, names: Values) -> Iterator[Access]:
    own = names["rank"]
    assert isinstance(own, int)
    if isinstance(site.operation, Put):
        put = site.operation
        yield _access(_value(put.peer, names), put.target, put.bytes, names)
        yield _access(own, put.source, put.bytes, names)
    for window in site.windows:
        if _value(window.guard, names):
            yield _access(own, window.address, window.bytes, names)


def _access(rank: int, address: Address, size: Expr, names: Values) -> Access:
    begin = _value(address.offset, names)
    return Access(rank, address.region, begin, begin + _value(size, names))


def _out_of_bounds(program: Program, site: Site, names: Values) -> Iterator[_Passed]:
    regions = {region.name: region for region in program.protocol.regions}
    for access in _accesses(site, names):
        whole = regions[access.region].bytes
        size = None if whole is None else _value(whole, {**names, "rank": access.rank})
        if size is not None and access.end > size:
            yield _Passed(out_of_bounds(access, size, site.span), access.region, access.end - size)


def _too_large(program: Program, site: Site, names: Values) -> Iterator[_Passed]:
    most = program.setup.profile.put_limit
    for access in _accesses(site, names):
        sent = access.end - access.begin
        if sent > most:
            yield _Passed(put_too_large(sent, most, site.span), "", sent - most)


# --- flags ------------------------------------------------------------------------------------


def _id(program: Program, site: Site, names: Values) -> Iterator[_Passed]:
    operation = site.operation
    assert isinstance(operation, SetFlag | WaitFlag)
    raw = _value(operation.flag, names)
    count = len(program.setup.profile.flag_ids)
    if not 0 <= raw < count:
        kept = f"the hardware keeps the low {count.bit_length() - 1} bits, so flag {raw % count} is used"
        text = f"id {raw} is outside 0-{count - 1}: {kept}"
        yield _Passed(Fault("id-out-of-range", text, site.span), "", 0)
    elif raw in taken_ids(program, site):
        text = f"id {raw}: a barrier or the Matmul API itself uses that counter"
        yield _Passed(Fault("id-reserved", text, site.span), "", 0)


_CHECKS: Mapping[str, Callable[[Program, Site, Values], Iterator[_Passed]]] = {
    "out-of-bounds": _out_of_bounds,
    "put-too-large": _too_large,
    "id-out-of-range": _id,
    "id-reserved": _id,
}
"""By the code of a condition."""
