"""The Machine's rules, compiled for one instance: what each action waits for and changes, by numbers.

`Model` numbers every action that an instance can ever take (a *slot*) in the order in which
`Machine.enabled` lists them. Read `walk` (which runs it) next.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.flags import Counter
from ..protocol.instance import Event, Instance, Kind
from ..protocol.machine import Action, ActionKind, Machine
from ..protocol.program import Pipe

# What an event does to its queue or scalar. Plain numbers: members of an Enum cost more to look up than
# a step may take.
PASSES, WAITS, SETS_EVENT, LASTS, POSTS, IS_QUIET, MEETS, SETS = range(8)

_DOES = {
    Kind.SET_FLAG: SETS,
    Kind.WAIT_FLAG: WAITS,
    Kind.WAIT_EVENT: WAITS,
    Kind.SET_EVENT: SETS_EVENT,
    Kind.PIPE_BARRIER: PASSES,
    Kind.BARRIER: MEETS,
    Kind.PUT: POSTS,
    Kind.QUIET: IS_QUIET,
    Kind.READ: LASTS,
    Kind.WRITE: LASTS,
    Kind.END: PASSES,
}
_STEPS = {LASTS: 2, POSTS: 3, MEETS: 0}
"""Steps of an event; one for the others (a set's is its effect)."""

SCALAR, QUEUE, EFFECT, MEET, LAND = range(5)
_SLOT_KIND = {
    ActionKind.SCALAR: SCALAR,
    ActionKind.PIPE: QUEUE,
    ActionKind.EFFECT: EFFECT,
    ActionKind.MEET: MEET,
    ActionKind.LAND: LAND,
}

FAR = 1 << 60

Needs = tuple[tuple[int, int], ...]
"""(queue, number of its events that must have left it), all of them; queue -1 is the scalar."""


@dataclass(slots=True)
class Step:
    """One event as the Walk needs it.

    ``counter``: of a wait or intra-core set. ``raises``: the counters of a cross-core set, ``own`` and
    ``together`` the arrivals of one that others must make as well. ``slot``: of the effect or the
    landing. ``needs``: what must have left its queue first. ``queue``: of a put or quiet.
    """

    does: int
    number: int
    event: Event
    counter: int = -1
    raises: tuple[int, ...] = ()
    own: int = -1
    together: tuple[int, ...] = ()
    slot: int = -1
    needs: Needs = ()
    queue: int = -1
    meeting: int = -1


@dataclass(slots=True)
class CoreCode:
    """One core: its steps, those of each queue, and the first of its slots (scalar, then queues).

    After all steps, and after those of each queue, stands one of a number that is never reached.
    ``stops[at]``: where the scalar stops next, and the effects of sets that it issues on the way.
    """

    steps: list[Step]
    queues: tuple[Pipe, ...]
    heads: list[list[Step]]
    slot: int
    stops: list[tuple[int, tuple[int, ...]]]
    length: int


def _stops(steps: list[Step]) -> list[tuple[int, tuple[int, ...]]]:
    """Of every position, the next scalar step at or after it, and the scalar sets before that."""
    stop: tuple[int, tuple[int, ...]] = (len(steps), ())
    stops = [stop]
    for step in reversed(steps):
        if step.event.pipe is Pipe.S:
            stop = (stop[0], (step.slot, *stop[1])) if step.does == SETS else (step.number, ())
        stops.append(stop)
    return stops[::-1]


class Model:
    """``instance``, compiled. ``actions[slot]`` is the action that a slot stands for.

    ``length``: the number of steps of a run in which every core ends. ``caps``: the most that each of
    ``counters`` may come to.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.machine = machine = Machine(instance)
        self.actions: list[Action] = []
        self.owner: list[int] = []
        self.cores = [self._core(index) for index in range(len(instance.cores))]
        self.members = machine.members
        self.meet_slots = [
            self._slot(Action(ActionKind.MEET, number), -1) for number in range(len(machine.functions))
        ]
        self.queue_names: dict[tuple[int, int], int] = {}
        self.landing: dict[int, tuple[int, Step]] = {}  # slot -> core, step
        self.effect: dict[int, tuple[int, Step]] = {}
        self.quieters: list[list[int]] = []
        for core, code in enumerate(self.cores):
            self._link(core, code)
        self.counters = list(machine.counters)
        self.counter_owner = [counter.core for counter in self.counters]
        self.caps = [self._cap(counter) for counter in self.counters]
        self.slots = {action: slot for slot, action in enumerate(self.actions)}
        self.kind_of = [_SLOT_KIND[action.kind] for action in self.actions]
        self.length = self._length()

    def _cap(self, counter: Counter) -> int:
        """The most that ``counter`` may come to: an event is one bit, flags that merge never count on."""
        if counter.is_event:
            return 1
        return FAR if self.machine.merges else self.instance.profile.counter_cap

    def _slot(self, action: Action, owner: int) -> int:
        self.actions.append(action)
        self.owner.append(owner)
        return len(self.actions) - 1

    def _core(self, index: int) -> CoreCode:
        table = self.machine.tables[index]
        first = self._slot(Action(ActionKind.SCALAR, index), index)
        for queue in range(len(table.queues)):
            self._slot(Action(ActionKind.PIPE, index, queue), index)
        steps = [self._step(index, number) for number in range(len(table.events))]
        for number in table.sets:
            steps[number].slot = self._slot(Action(ActionKind.EFFECT, index, number), index)
        length = len(steps)
        never = Step(PASSES, FAR, table.events[-1])
        heads = [[*(steps[number] for number in members), never] for members in table.lists]
        return CoreCode([*steps, never], table.queues, heads, first, _stops(steps), length)

    def _step(self, core: int, number: int) -> Step:
        table = self.machine.tables[core]
        event = table.events[number]
        step = Step(_DOES[event.kind], number, event)
        needs = [self._left_before(core, pipe, number) for pipe in event.drains if pipe in table.slot]
        for earlier in event.after:
            pipe = table.events[earlier].pipe
            if pipe is Pipe.S:
                needs.append((-1, earlier + 1))
            else:
                needs.append((table.slot[pipe], table.rank_in_queue[earlier] + 1))
        step.needs = tuple(needs)
        if event.kind is Kind.SET_FLAG:
            step.raises = table.targets[number]
            step.own, step.together = table.joint.get(number, (-1, ()))
        elif number in table.targets:
            step.counter = table.targets[number][0]
        if event.kind is Kind.BARRIER:
            step.meeting = self.machine.functions.index(event.barrier)
        return step

    def _left_before(self, core: int, pipe: Pipe, number: int) -> tuple[int, int]:
        queue = self.machine.tables[core].slot[pipe]
        return queue, sum(1 for member in self.machine.tables[core].lists[queue] if member < number)

    def _link(self, core: int, code: CoreCode) -> None:
        """Number the send queues and the landings, and note who is quiet on which queue."""
        rank = self.instance.cores[core].id.rank
        for step in code.steps[:-1]:
            if step.does == SETS:
                self.effect[step.slot] = (core, step)
            if step.does not in (POSTS, IS_QUIET):
                continue
            step.queue = self.queue_names.setdefault((rank, step.event.peer), len(self.queue_names))
            if step.queue == len(self.quieters):
                self.quieters.append([])
            if step.does == POSTS:
                step.slot = self._slot(Action(ActionKind.LAND, core, step.number), core)
                self.landing[step.slot] = (core, step)
            elif core not in self.quieters[step.queue]:
                self.quieters[step.queue].append(core)

    def _length(self) -> int:
        steps = sum(_STEPS.get(step.does, 1) for code in self.cores for step in code.steps[:-1])
        meetings = (
            sum(s.meeting == number for s in self.cores[members[0]].steps[:-1])
            for number, members in enumerate(self.members)
            if members
        )
        return steps + sum(meetings)
