"""What is ordered inside one core: the points of its events and their predecessors.

Program order is partial (hardware.md 1). A *point* is the begin or end of an event; events without
duration have one point. An event of a queue comes after the previous event of its queue and after
the last scalar event before it; a scalar event comes after the previous scalar event and after the
queues that it drains. A Set takes effect any time after its queue's earlier events: nothing in the
core comes after it. A put begins when it is posted and ends when it has landed.

Used by the proof engines; the Machine does not use it, it executes the same rules, and the tests
compare the two. Read `sync` (what is ordered across cores) next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .instance import Event, Kind
from .program import Pipe

SETS = frozenset({Kind.SET_FLAG})
"""Kinds that take effect late: later events of their pipe do not wait for them."""

LASTING = frozenset({Kind.READ, Kind.WRITE})
"""Kinds with a begin and an end on their pipe."""

NO_CHAIN = -1


@dataclass(slots=True)
class CoreOrder:
    """The points of one event list, numbered in program order.

    ``begin`` and ``end`` give each event's points (the same for events without duration);
    ``predecessors`` are points of the same core that come before. Points of one pipe that are
    totally ordered share a ``chain`` (the pipe's index) and count up in ``position``; effects of
    sets and landings of puts lie on no chain.
    """

    begin: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    event: list[int] = field(default_factory=list)
    chain: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    predecessors: list[tuple[int, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.event)


PIPES = tuple(Pipe)
_CHAIN = {pipe: index for index, pipe in enumerate(PIPES)}


def order_core(events: Sequence[Event]) -> CoreOrder:
    """The order inside a core that executes ``events``."""
    order = CoreOrder()
    last: dict[Pipe, int] = {}  # the last point on each pipe's chain
    length = dict.fromkeys((NO_CHAIN, *_CHAIN.values()), 0)  # points on each chain
    add_event, add_chain = order.event.append, order.chain.append
    add_position, add_predecessors = order.position.append, order.predecessors.append
    number = -1  # of the point before
    for index, event in enumerate(events):
        kind, pipe = event.kind, event.pipe
        late, lasts, put = kind in SETS, kind in LASTING, kind is Kind.PUT
        first = NO_CHAIN if late else _CHAIN[pipe]
        before = _before(event, last, order)
        order.begin.append(number + 1)
        for chain in (first, NO_CHAIN) if put else (first, first) if lasts else (first,):
            number += 1
            add_event(index)
            add_chain(chain)
            add_position(length[chain])
            length[chain] += 1
            add_predecessors(before)
            before = (number,)
        order.end.append(number)
        if not late:
            last[pipe] = number - put  # a put holds its pipe until it is posted only
    return order


def _before(event: Event, last: dict[Pipe, int], order: CoreOrder) -> tuple[int, ...]:
    """The points of the same core that must come before ``event`` begins."""
    pipes = (event.pipe, *event.drains) if event.pipe is Pipe.S else (event.pipe, Pipe.S)
    points = [last[pipe] for pipe in pipes if pipe in last]
    if not event.after:
        return tuple(points)  # those of different pipes
    points += [order.end[index] for index in event.after]
    return tuple(dict.fromkeys(points))
