"""What the faults of runs are told with: whom a run blames, and who writes what when.

Used by `diagnose` and `blame_output`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.describe import core_name, place_of
from ..protocol.instance import Access, Event, Instance
from ..protocol.machine import Action, Machine, Moment, Phase
from ..protocol.trace import Claim

Written = tuple[int, int, Access]
"""A write: its core, its event, and which of the event's accesses."""


@dataclass(frozen=True, slots=True)
class Blame:
    """What a timing violates, sentences that say who does, and what replaying it must show.

    ``last``: the point that ends the timing in which ``claim`` holds; None: the whole timing."""

    property: str
    code: str
    conflict: list[str]
    claim: Claim
    last: Moment | None = None


def happened(instance: Instance, actions: Sequence[Action]) -> Mapping[Moment, int]:
    """The points that ``actions`` bring about, with the number of their action."""
    machine = Machine(instance)
    state, found = machine.initial(), {}
    for number, action in enumerate(actions):
        for moment in machine.points(state, action):
            found[moment] = number
        state = machine.step(state, action)
    return found


def writes_of(instance: Instance) -> Iterator[tuple[Written, Event]]:
    """Every write of ``instance`` with its event."""
    for core, (_, events) in enumerate(instance.cores):
        for number, event in enumerate(events):
            for access in event.writes:
                yield (core, number, access), event


def begin_of(written: Written) -> Moment:
    """When a write begins."""
    return Moment(written[0], written[1], Phase.BEGIN)


def end_of(written: Written) -> Moment:
    """When a write is complete."""
    return Moment(written[0], written[1], Phase.END)


def event_of(instance: Instance, written: Written) -> Event:
    """The event of a write."""
    return instance.cores[written[0]].events[written[1]]


def who_writes(instance: Instance, written: Written) -> str:
    """The core of a write, by its name."""
    return core_name(instance, written[0], event_of(instance, written))


def at_place(text: str, event: Event) -> str:
    """``text`` with the place of ``event``, as the conflicts of a report end."""
    file, line = place_of(event)
    return f"{text}  ({file}:{line})" if file else text
