"""A run of a `Model`, changed in place: what the numpy model moves bytes with.

The Machine stays the semantics: tests hold the two side by side in random timings, and replay on it
what a Walk did. Copying no state makes a run some ten times as fast. Read `execute` (a Walk with
bytes) next.
"""

from __future__ import annotations

from .model import (
    EFFECT,
    IS_QUIET,
    LAND,
    LASTS,
    MEETS,
    PASSES,
    POSTS,
    QUEUE,
    SCALAR,
    SETS,
    SETS_EVENT,
    WAITS,
    Model,
    Step,
)


class Walk:
    """One run of ``model``, at its start. ``ready``: the slots that can step now, in no order.

    A subclass moves bytes: it overrides `lasts`, `lands`, `meets` and `passes`, which do nothing here.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ready: list[int] = []
        self._where = [-1] * len(model.actions)
        self._at = [0] * len(model.cores)
        self._taken = [[0] * len(code.heads) for code in model.cores]
        self._begun = [False] * len(model.actions)  # of a scalar's or queue's slot, or of a landing's
        self._counters = [0] * len(model.counter_owner)
        self._arrivals = [0] * len(model.machine.arrivals)
        self._flight = [0] * len(model.quieters)
        self._arrived = [False] * len(model.cores)
        self._met = [0] * len(model.members)
        self._merges = model.machine.merges
        self._quiet_waits = model.machine.quiet_waits
        for core in range(len(model.cores)):
            self._settle(core)

    # --- what a subclass does with bytes ---------------------------------------------------------

    def lasts(self, core: int, step: Step, ends: bool) -> None:
        """A read or write of ``core`` begins or ends."""

    def lands(self, step: Step, second: bool) -> None:
        """The first or second half of a put lands."""

    def meets(self, meeting: int) -> None:
        """All cores of assembly ``meeting`` meet."""

    def passes(self, core: int, step: Step, counter: int) -> None:
        """The set ``step`` of ``core`` has raised ``counter`` above its cap; the Machine counts on."""

    # --- steps ---------------------------------------------------------------------------------

    def finished(self) -> bool:
        """Whether every core has executed its END."""
        return all(at == code.length for at, code in zip(self._at, self.model.cores, strict=True))

    def is_ready(self, slot: int) -> bool:
        """Whether ``slot`` can step now."""
        return self._where[slot] >= 0

    def is_running(self, core: int, event: int) -> bool:
        """Whether the read or write ``event`` of ``core`` has begun and not ended."""
        code = self.model.cores[core]
        pipe = code.steps[event].event.pipe
        if pipe not in code.queues:
            return self._begun[code.slot] and self._at[core] == event
        queue = code.queues.index(pipe)
        taken = self._taken[core][queue]
        return self._begun[code.slot + 1 + queue] and code.heads[queue][taken].number == event

    def step(self, slot: int) -> None:
        """Take the step of ``slot``, which must be ready."""
        model = self.model
        kind = model.kind_of[slot]
        if kind == QUEUE:
            core = model.owner[slot]
            code = model.cores[core]
            queue = slot - code.slot - 1
            taken = self._taken[core]
            step = code.heads[queue][taken[queue]]
            if not self._goes_on(core, step, slot):
                taken[queue] += 1
                self._settle(core)
        elif kind == EFFECT:
            self._remove(slot)
            self._take_effect(*model.effect[slot])
        elif kind == LAND:
            self._land(slot, model.landing[slot][1])
        elif kind == SCALAR:
            core = model.owner[slot]
            step = model.cores[core].steps[self._at[core]]
            if not self._goes_on(core, step, slot):
                self._at[core] += 1
                self._settle(core)
        else:
            self._meet(slot)

    def _goes_on(self, core: int, step: Step, slot: int) -> bool:
        """Do what ``step`` does at the head of its queue; whether it only began."""
        does = step.does
        if does == LASTS:
            if not self._begun[slot]:
                self._begun[slot] = True
                self.lasts(core, step, False)
                return True
            self._begun[slot] = False
            self.lasts(core, step, True)
        elif does == WAITS:
            self._counters[step.counter] -= 1
        elif does == SETS_EVENT:
            self._raise(core, step, step.counter)
        elif does == POSTS:
            self._flight[step.queue] += 1
            self._add(step.slot)
            for other in self.model.quieters[step.queue]:
                if other != core:
                    self._look(other)
        return False

    def _raise(self, core: int, step: Step, counter: int) -> None:
        self._counters[counter] += 1
        if self._counters[counter] > self.model.caps[counter]:
            self.passes(core, step, counter)

    def _take_effect(self, core: int, step: Step) -> None:
        counters = self._counters
        if step.together:
            arrivals = self._arrivals
            arrivals[step.own] += 1
            if not all(arrivals[a] for a in step.together):
                return
            for a in step.together:
                arrivals[a] -= 1
        for counter in step.raises:
            if self._merges and counters[counter]:
                continue
            self._raise(core, step, counter)
            if counters[counter] == 1:
                self._look(self.model.counter_owner[counter])

    def _land(self, slot: int, step: Step) -> None:
        second = self._begun[slot]
        self.lands(step, second)
        self._begun[slot] = not second
        if second:
            self._remove(slot)
            self._flight[step.queue] -= 1
            if not self._flight[step.queue]:
                for core in self.model.quieters[step.queue]:
                    self._look(core)

    def _meet(self, slot: int) -> None:
        meeting = self.model.actions[slot].core
        self._remove(slot)
        self._met[meeting] = 0
        self.meets(meeting)
        for core in self.model.members[meeting]:
            self._arrived[core] = False
            self._at[core] += 1
            self._settle(core)

    # --- what is ready ---------------------------------------------------------------------------

    def _add(self, slot: int) -> None:
        self._where[slot] = len(self.ready)
        self.ready.append(slot)

    def _remove(self, slot: int) -> None:
        where, last = self._where[slot], self.ready.pop()
        if last != slot:
            self.ready[where] = last
            self._where[last] = where
        self._where[slot] = -1

    def _settle(self, core: int) -> None:
        """Issue up to the next scalar event, move sets out of the queues' heads, and look what is ready."""
        code = self.model.cores[core]
        at, issued = code.stops[self._at[core]]
        self._at[core] = at
        for slot in issued:
            self._add(slot)
        taken = self._taken[core]
        for queue, heads in enumerate(code.heads):
            head = heads[taken[queue]]
            while head.number < at and (head.does == SETS or head.does == PASSES):
                if head.does == SETS:
                    self._add(head.slot)
                taken[queue] += 1
                head = heads[taken[queue]]
        self._look(core)

    def _look(self, core: int) -> None:
        """Bring the ready slots of ``core``, and its arrival at a barrier, up to date."""
        code = self.model.cores[core]
        at, taken, where, slot = self._at[core], self._taken[core], self._where, code.slot
        ready = at < code.length and self._scalar_ready(core, code.steps[at], slot)
        if ready != (where[slot] >= 0):
            (self._add if ready else self._remove)(slot)
        for queue, heads in enumerate(code.heads):
            slot += 1
            head = heads[taken[queue]]
            if head.number >= at:
                ready = False
            elif head.does == WAITS:
                ready = self._counters[head.counter] > 0
            else:
                ready = not head.needs or self._begun[slot] or self._have_left(core, head)
            if ready != (where[slot] >= 0):
                (self._add if ready else self._remove)(slot)

    def _scalar_ready(self, core: int, step: Step, slot: int) -> bool:
        does = step.does
        if does == MEETS:
            if not self._arrived[core] and self._have_left(core, step):
                self._arrived[core] = True
                meeting = step.meeting
                self._met[meeting] += 1
                if self._met[meeting] == len(self.model.members[meeting]):
                    self._add(self.model.meet_slots[meeting])
            return False
        if does == WAITS:
            return self._counters[step.counter] > 0 and self._have_left(core, step)
        if does == IS_QUIET and self._quiet_waits and self._flight[step.queue]:
            return False
        return self._begun[slot] or self._have_left(core, step)

    def _have_left(self, core: int, step: Step) -> bool:
        taken = self._taken[core]
        for queue, count in step.needs:  # noqa: SIM110 - all() is slower, and this is asked at every step
            if (taken[queue] if queue >= 0 else self._at[core]) < count:
                return False
        return True
