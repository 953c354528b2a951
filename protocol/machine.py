"""The Machine: the executable state machine over an Instance. *The* semantics.

It answers four questions: `initial`, `enabled`, `step`, and what an action means (`points`). The
explorer, replay and the numpy model run it; the proof engines are tested against it. It executes
the rules of hardware.md operationally: the scalar runs the program and feeds the queues, each queue
takes its events in order, sets take effect late, puts land in two halves.

Handing an event to a queue, and a set or pipe barrier reaching the head of its queue, change
nothing that another core or queue could see, so they are done at once and are no actions.

Known limits: what a core does after a counter passes its cap, or after an event is set twice, is
not documented; the Machine goes on counting, and the property flag-range reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from .flags import Channel, Counter, Wiring, counter_of
from .instance import CoreId, Event, Instance, Kind
from .program import Pipe
from .setup import Injected


class ActionKind(Enum):
    """What kind of step an action is; the value is its letter in a trace."""

    SCALAR = "s"  # the scalar instruction at which a core stands
    MEET = "b"  # all participants of a barrier at once
    PIPE = "p"  # the event at the head of a queue: take, begin or end
    EFFECT = "e"  # a set that left its queue takes effect
    LAND = "l"  # half of a put in flight lands


class Action(NamedTuple):
    """One atomic step. ``item``: for PIPE the queue, for EFFECT and LAND the event, else 0.

    For MEET, ``core`` is the number of the assembly among `Instance.assemblies`.
    """

    kind: ActionKind
    core: int
    item: int = 0

    def __str__(self) -> str:
        return f"{self.kind.value}{self.core}.{self.item}"


class Phase(Enum):
    """Which end of an event a point is."""

    BEGIN = "begin"
    END = "end"


class Moment(NamedTuple):
    """The begin or end of event ``event`` of core ``core``."""

    core: int
    event: int
    phase: Phase


State = tuple[int, ...]

_WAITS = (Kind.WAIT_FLAG, Kind.WAIT_EVENT)
_LASTING = (Kind.READ, Kind.WRITE)


@dataclass(slots=True)
class _CoreTable:
    """Constant facts of one core; offsets say where its part of a state lies.

    A core's part: next event to issue, then per queue the number of events taken from it, then a mask
    of queues (the scalar after them) whose event has begun, then one of sets waiting to take effect.
    ``targets`` are the counters that a set or wait changes; ``joint``, for a set that others must
    make as well: the counter of its own sets without theirs, and those of all setters.
    """

    id: CoreId
    events: tuple[Event, ...]
    queues: tuple[Pipe, ...]
    lists: tuple[tuple[int, ...], ...]
    slot: dict[Pipe, int]
    rank_in_queue: tuple[int, ...]
    sets: tuple[int, ...]
    set_number: dict[int, int]
    targets: dict[int, tuple[int, ...]]
    joint: dict[int, tuple[int, tuple[int, ...]]]
    offset: int = 0
    begun: int = 0
    pending: int = 0


class Machine:
    """The state machine of ``instance``; with ``halves`` false a put lands in one step."""

    def __init__(self, instance: Instance, *, halves: bool = True) -> None:
        self.instance = instance
        self.halves = halves
        self.functions = tuple(instance.assemblies)
        self.members = [assembly.members for assembly in instance.assemblies.values()]
        self.quiet_waits = Injected.QUIET_TIMEOUT not in instance.setup.faults
        self.merges = instance.profile.flags_merge
        self.wiring = Wiring(instance)
        self.arrivals: dict[tuple[Channel, Counter, int], int] = {}
        self.counters: dict[Counter, int] = {}
        self.puts: dict[tuple[int, int], int] = {}
        self.queue_puts: dict[tuple[int, int], list[int]] = {}
        self.tables = [self._table(i) for i in range(len(instance.cores))]
        position = 0
        for table in self.tables:
            table.offset = position
            table.begun = position + 1 + len(table.queues)
            table.pending = table.begun + 1
            position = table.pending + 1
        self.counter_base = position
        self.arrival_base = position + len(self.counters)
        self.flight = self.arrival_base + len(self.arrivals)
        self.landed_half = self.flight + 1
        self.put_list = list(self.puts)
        self.lost = self.landed_half + 1
        self.width = self.lost + 1

    # --- construction -------------------------------------------------------------------------

    def _table(self, index: int) -> _CoreTable:
        core = self.instance.cores[index]
        queues = tuple(p for p in Pipe if p is not Pipe.S and any(e.pipe is p for e in core.events))
        lists = tuple(tuple(i for i, e in enumerate(core.events) if e.pipe is p) for p in queues)
        rank_in_queue = [0] * len(core.events)
        for members in lists:
            for rank, i in enumerate(members):
                rank_in_queue[i] = rank
        sets = tuple(i for i, e in enumerate(core.events) if e.kind is Kind.SET_FLAG)
        targets: dict[int, tuple[int, ...]] = {}
        joint: dict[int, tuple[int, tuple[int, ...]]] = {}
        for i, event in enumerate(core.events):
            if event.kind is Kind.SET_FLAG:
                channel, counters = self.wiring.raised_by(index, event)
                targets[i] = tuple(map(self._counter, counters))
                if len(channel.setters) > 1 and counters:
                    together = tuple(self._arrival(channel, counters[0], s) for s in channel.setters)
                    joint[i] = (self._arrival(channel, counters[0], index), together)
            elif event.kind in (Kind.WAIT_FLAG, Kind.WAIT_EVENT, Kind.SET_EVENT):
                targets[i] = (self._counter(counter_of(self.instance, index, event)),)
            elif event.kind is Kind.PUT:
                number = self.puts.setdefault((index, i), len(self.puts))
                self.queue_puts.setdefault((core.id.rank, event.peer), []).append(number)
        return _CoreTable(
            core.id, core.events, queues, lists, {p: k for k, p in enumerate(queues)},
            tuple(rank_in_queue), sets, {i: k for k, i in enumerate(sets)}, targets, joint,
        )  # fmt: skip

    def _counter(self, counter: Counter) -> int:
        return self.counters.setdefault(counter, len(self.counters))

    def _arrival(self, channel: Channel, counter: Counter, setter: int) -> int:
        """Counts the sets of ``setter`` that wait for those of the channel's other setters."""
        return self.arrivals.setdefault((channel, counter, setter), len(self.arrivals))

    # --- the four questions -------------------------------------------------------------------

    def initial(self) -> State:
        """Every core before its first event, all counters 0, nothing in flight."""
        state = [0] * self.width
        for table in self.tables:
            self._settle(table, state)
        return tuple(state)

    def enabled(self, state: State) -> list[Action]:
        """Every action that can happen next, in a fixed order."""
        actions: list[Action] = []
        for index, table in enumerate(self.tables):
            if self._scalar_ready(table, state):
                actions.append(Action(ActionKind.SCALAR, index))
            for queue in range(len(table.queues)):
                if self._head_ready(table, queue, state):
                    actions.append(Action(ActionKind.PIPE, index, queue))
            pending = state[table.pending]
            if pending:
                actions += [
                    Action(ActionKind.EFFECT, index, event)
                    for number, event in enumerate(table.sets)
                    if pending >> number & 1
                ]
        actions += [
            Action(ActionKind.MEET, number)
            for number, function in enumerate(self.functions)
            if self._all_met(number, function, state)
        ]
        flight = state[self.flight]
        if flight:
            actions += [
                Action(ActionKind.LAND, core, event)
                for number, (core, event) in enumerate(self.put_list)
                if flight >> number & 1
            ]
        return actions

    def step(self, state: State, action: Action) -> State:
        """The state after ``action``, which must be enabled."""
        new = list(state)
        kind, core, index = action
        if kind is ActionKind.MEET:
            for member in self.members[core]:
                table = self.tables[member]
                new[table.offset] += 1
                self._settle(table, new)
            return tuple(new)
        table = self.tables[core]
        if kind is ActionKind.SCALAR:
            self._step_scalar(table, core, new)
        elif kind is ActionKind.PIPE:
            self._step_head(table, index, new)
        elif kind is ActionKind.EFFECT:
            new[table.pending] &= ~(1 << table.set_number[index])
            self._take_effect(table, index, new)
        else:
            bit = 1 << self.puts[core, index]
            if self.halves and not new[self.landed_half] & bit:
                new[self.landed_half] |= bit
            else:
                new[self.landed_half] &= ~bit
                new[self.flight] &= ~bit
        return tuple(new)

    def points(self, state: State, action: Action) -> list[Moment]:
        """The begins and ends that ``action`` brings about in ``state``."""
        kind, core, index = action
        if kind is ActionKind.MEET:
            moments: list[Moment] = []
            for member in self.members[core]:
                event = state[self.tables[member].offset]
                moments += _instant(member, event)
            return moments
        table = self.tables[core]
        if kind is ActionKind.SCALAR:
            event = state[table.offset]
            if table.events[event].kind is Kind.PUT:
                return [Moment(core, event, Phase.BEGIN)]
            return self._moment(table, core, event, len(table.queues), state)
        if kind is ActionKind.PIPE:
            event = table.lists[index][state[table.offset + 1 + index]]
            return self._moment(table, core, event, index, state)
        if kind is ActionKind.EFFECT:
            return _instant(core, index)
        whole = not self.halves or state[self.landed_half] >> self.puts[core, index] & 1
        return [Moment(core, index, Phase.END)] if whole else []

    def _moment(self, table: _CoreTable, core: int, event: int, begun_bit: int, state: State) -> list[Moment]:
        """What the next step of ``event`` is: its begin or its end, or both at once."""
        if table.events[event].kind not in _LASTING:
            return _instant(core, event)
        ends = state[table.begun] >> begun_bit & 1
        return [Moment(core, event, Phase.END if ends else Phase.BEGIN)]

    # --- questions about a state --------------------------------------------------------------

    def finished(self, state: State) -> bool:
        """Whether every core has executed its END."""
        return all(state[t.offset] == len(t.events) for t in self.tables)

    def waiting(self, state: State) -> Iterator[tuple[int, int]]:
        """(core, event) of everything at the head of a queue, or at the scalar, that has not happened."""
        for index, table in enumerate(self.tables):
            scalar = state[table.offset]
            if scalar < len(table.events):
                yield index, scalar
            for queue, members in enumerate(table.lists):
                taken = state[table.offset + 1 + queue]
                if taken < len(members) and members[taken] < scalar:
                    yield index, members[taken]

    def counter_value(self, state: State, counter: Counter) -> int:
        """The value of ``counter``; 0 for one that nobody uses."""
        number = self.counters.get(counter)
        return 0 if number is None else state[self.counter_base + number]

    def has_passed(self, state: State, counter: Counter, cap: int) -> bool:
        """Whether ``counter`` is above ``cap``, or, where flags merge, has lost a set."""
        number = self.counters.get(counter)
        if number is None:
            return False
        return state[self.counter_base + number] > cap or bool(state[self.lost] >> number & 1)

    # --- rules --------------------------------------------------------------------------------

    def _settle(self, table: _CoreTable, state: list[int]) -> None:
        """Issue up to the next scalar event; move sets and pipe barriers out of the queues' heads."""
        position, events = state[table.offset], table.events
        while position < len(events):
            if events[position].pipe is Pipe.S:
                if events[position].kind is not Kind.SET_FLAG:
                    break
                state[table.pending] |= 1 << table.set_number[position]
            position += 1
        state[table.offset] = position
        for queue, members in enumerate(table.lists):
            slot = table.offset + 1 + queue
            while state[slot] < len(members) and members[state[slot]] < position:
                event = members[state[slot]]
                kind = events[event].kind
                if kind is Kind.SET_FLAG:
                    state[table.pending] |= 1 << table.set_number[event]
                elif kind is not Kind.PIPE_BARRIER:
                    break
                state[slot] += 1

    def _drained(self, table: _CoreTable, event: int, state: State) -> bool:
        """Whether the queues that scalar event ``event`` drains hold nothing issued before it."""
        for pipe in table.events[event].drains:
            queue = table.slot.get(pipe)
            if queue is not None:
                members, taken = table.lists[queue], state[table.offset + 1 + queue]
                if taken < len(members) and members[taken] < event:
                    return False
        return True

    def _scalar_ready(self, table: _CoreTable, state: State) -> bool:
        position = state[table.offset]
        if position == len(table.events):
            return False
        event = table.events[position]
        if event.kind is Kind.BARRIER or not self._drained(table, position, state):
            return False
        if event.kind in _WAITS:
            return state[self.counter_base + table.targets[position][0]] > 0
        if event.after and not state[table.begun] >> len(table.queues) & 1:
            return all(self._taken(table, earlier, state) for earlier in event.after)
        if event.kind is Kind.QUIET and self.quiet_waits:
            flight = state[self.flight]
            queue = self.queue_puts.get((table.id.rank, event.peer), ())
            return not any(flight >> number & 1 for number in queue)
        return True

    def _all_met(self, number: int, function: str, state: State) -> bool:
        for member in self.members[number]:
            table = self.tables[member]
            position = state[table.offset]
            if position == len(table.events) or table.events[position].barrier != function:
                return False
            if not self._drained(table, position, state):
                return False
        return bool(self.members[number])

    def _head_ready(self, table: _CoreTable, queue: int, state: State) -> bool:
        members, taken = table.lists[queue], state[table.offset + 1 + queue]
        if taken == len(members) or members[taken] >= state[table.offset]:
            return False
        number = members[taken]
        event = table.events[number]
        if event.kind in _WAITS:
            return state[self.counter_base + table.targets[number][0]] > 0
        if event.after and not state[table.begun] >> queue & 1:
            return all(self._taken(table, earlier, state) for earlier in event.after)
        return True

    def _taken(self, table: _CoreTable, event: int, state: State) -> bool:
        if table.events[event].pipe is Pipe.S:
            return state[table.offset] > event
        queue = table.slot[table.events[event].pipe]
        return state[table.offset + 1 + queue] > table.rank_in_queue[event]

    def _step_scalar(self, table: _CoreTable, core: int, state: list[int]) -> None:
        position = state[table.offset]
        event = table.events[position]
        bit = 1 << len(table.queues)
        if event.kind in _LASTING and not state[table.begun] & bit:
            state[table.begun] |= bit
            return
        state[table.begun] &= ~bit
        if event.kind is Kind.PUT:
            state[self.flight] |= 1 << self.puts[core, position]
        self._count(table, position, state)
        state[table.offset] = position + 1
        self._settle(table, state)

    def _step_head(self, table: _CoreTable, queue: int, state: list[int]) -> None:
        number = table.lists[queue][state[table.offset + 1 + queue]]
        kind = table.events[number].kind
        if kind in _LASTING and not state[table.begun] >> queue & 1:
            state[table.begun] |= 1 << queue
            return
        state[table.begun] &= ~(1 << queue)
        self._count(table, number, state)
        state[table.offset + 1 + queue] += 1
        self._settle(table, state)

    def _take_effect(self, table: _CoreTable, event: int, state: list[int]) -> None:
        """Raise the counters of a cross-core set, once every core that must set has done so."""
        own, together = table.joint.get(event, (-1, ()))
        if together:
            state[self.arrival_base + own] += 1
            if not all(state[self.arrival_base + a] for a in together):
                return
            for arrival in together:
                state[self.arrival_base + arrival] -= 1
        for counter in table.targets[event]:
            place = self.counter_base + counter
            if self.merges and state[place]:  # an unconsumed flag takes no second set
                state[self.lost] |= 1 << counter
            else:
                state[place] += 1

    def _count(self, table: _CoreTable, number: int, state: list[int]) -> None:
        """Take one from, or add one to, the counter of a wait or of an intra-core set."""
        kind = table.events[number].kind
        if kind in _WAITS:
            state[self.counter_base + table.targets[number][0]] -= 1
        elif kind is Kind.SET_EVENT:
            state[self.counter_base + table.targets[number][0]] += 1


def _instant(core: int, event: int) -> list[Moment]:
    return [Moment(core, event, Phase.BEGIN), Moment(core, event, Phase.END)]
