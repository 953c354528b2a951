"""The plain explorer: every reachable state of the Machine, under a cap.

The oracle for the other engines, and the decider where nothing else applies. An action that nobody
can disturb and no question looks at (a set taking effect, a meeting, a wait with a counter of its
own, work on memory that no obligation speaks of) is taken at once instead of in every order:
doing it later leads to no other answer. ``reduce=False`` takes nothing at once; the tests compare.
Memory and time grow with the states, so it answers small instances only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..protocol.flags import Counter, counter_of
from ..protocol.instance import Kind
from ..protocol.machine import Action, ActionKind, Machine, Phase, State
from ..protocol.sync import Sync, determinate
from .engine import Declined, Stuck
from .obligations import NEVER, Obligation

POINTS_PER_STATE = 200
"""Instances with more than max_states / this many points are not even tried."""


class _Moment(NamedTuple):
    """A moment at which all ``thens`` have happened, the last of them now, and no other of ``firsts``."""

    thens: frozenset[int]
    firsts: frozenset[int]


class Explorer:
    """The engine; explores when first asked. Raises Declined beyond ``max_states`` states."""

    name = "explore"

    def __init__(
        self, sync: Sync, obligations: Sequence[Obligation], *, max_states: int, reduce: bool = True
    ) -> None:
        if sync.size > max_states // POINTS_PER_STATE:
            raise Declined(f"{sync.size} points are too many to explore")
        self.sync = sync
        self.machine = Machine(sync.instance, halves=False)
        self.reduce = reduce
        self.states = 0
        self.unordered: set[tuple[int, int]] = set()
        self.passed: set[Counter] = set()
        self._stuck: Stuck | None = None
        self._completes = False
        self._index(obligations)
        self._explore(max_states)

    def _index(self, obligations: Sequence[Obligation]) -> None:
        """Number the points that obligations ask for, and file what each must come after."""
        self.asked: dict[int, int] = {}
        self.firsts: dict[int, set[int]] = defaultdict(set)
        self.caps: dict[Counter, int] = {}
        self.moments: dict[int, set[_Moment]] = defaultdict(set)
        self.met: set[_Moment] = set()
        for obligation in obligations:
            for index in range(obligation.width):
                for first, then, _ in obligation.clauses_at(index):
                    for point in (first, then):
                        if point != NEVER:
                            self.asked.setdefault(point, len(self.asked))
                    self.firsts[then].add(first)
                if obligation.at_once and self.sync.undetermined is not None:
                    moment = _Moment(
                        frozenset(obligation.thens_at(index)), frozenset(obligation.firsts_at(index))
                    )
                    for then in moment.thens:
                        self.moments[then].add(moment)
            if obligation.counter is not None and not obligation.clauses:
                self.caps[obligation.counter] = obligation.cap
        own_queue = {
            queue
            for queue, quiets in self.sync.quiets.items()
            if {u.core for u in self.sync.puts.get(queue, ())} <= {quiets[0].core}
        }
        self.quiet_alone = {(use.core, use.event) for queue in own_queue for use in self.sync.quiets[queue]}

    # --- exploring ----------------------------------------------------------------------------

    def _explore(self, max_states: int) -> None:
        machine = self.machine
        start = machine.initial()
        seen = {start: 0}
        todo = [start]
        while todo:
            state = todo.pop()
            happened = seen[state]
            actions = machine.enabled(state)
            if not actions and machine.finished(state):
                self._completes = True
            elif not actions and self._stuck is None:
                self._stuck = Stuck(tuple(machine.waiting(state)))
            if self.reduce:
                actions = self._reduced(state, actions)
            for action in actions:
                after = machine.step(state, action)
                now = self._note(state, action, happened)
                self._note_counters(after)
                if after not in seen:
                    if len(seen) >= max_states:
                        raise Declined(f"more than {max_states} states (raise max-states)")
                    seen[after] = now
                    todo.append(after)
        self.states = len(seen)

    def _points(self, state: State, action: Action) -> list[int]:
        """The asked points that ``action`` brings about."""
        return [
            point
            for core, event, phase in self.machine.points(state, action)
            for point in (
                self.sync.begin(core, event) if phase is Phase.BEGIN else self.sync.end(core, event),
            )
            if point in self.asked
        ]

    def _note(self, state: State, action: Action, happened: int) -> int:
        """Record which asked points are still missing at the moment others happen."""
        points = self._points(state, action)
        for point in points:
            happened |= 1 << self.asked[point]
        for then in points:
            for first in self.firsts.get(then, ()):
                if first == NEVER or not happened >> self.asked[first] & 1:
                    self.unordered.add((first, then))
            for moment in self.moments.get(then, ()):
                missing = [first for first in moment.firsts if first != then]
                if all(happened >> self.asked[p] & 1 for p in moment.thens) and not any(
                    happened >> self.asked[p] & 1 for p in missing
                ):
                    self.met.add(moment)
        return happened

    def _note_counters(self, state: State) -> None:
        for counter, cap in self.caps.items():
            if self.machine.has_passed(state, counter, cap):
                self.passed.add(counter)

    def _reduced(self, state: State, actions: list[Action]) -> list[Action]:
        for action in actions:
            if self._undisturbed(state, action) and not self._points(state, action):
                return [action]
        return actions

    def _undisturbed(self, state: State, action: Action) -> bool:
        """Whether ``action`` stays possible and means the same whatever else happens first."""
        if action.kind is ActionKind.EFFECT:
            return not self.machine.merges  # else whether it is lost depends on the waits before it
        if action.kind is ActionKind.MEET:
            return True
        if action.kind is ActionKind.LAND:
            return True  # only its own points and quiets look at it
        moments = self.machine.points(state, action)
        core, event, _ = moments[0]
        what = self.sync.instance.cores[core].events[event]
        if what.kind in (Kind.WAIT_FLAG, Kind.WAIT_EVENT):
            counter = counter_of(self.sync.instance, core, what)
            alone = not self.machine.merges and determinate(self.sync, counter)
            return alone and counter not in self.caps  # a wait taken early hides how high it rose
        if what.kind is Kind.QUIET:
            return not self.machine.quiet_waits or (core, event) in self.quiet_alone
        # a request in flight holds back the quiets of its queue
        return what.kind is not Kind.PUT

    # --- answers ------------------------------------------------------------------------------

    def stuck(self) -> Stuck | None:
        """A reachable state in which nothing can happen and some core is not done."""
        return self._stuck

    def completes(self) -> bool:
        """Whether some timing runs to its end."""
        return self._completes

    def violated(self, obligations: Sequence[Obligation], *, one_each: bool = False) -> list[int]:
        """Indices of all violated obligations; they must be among those given at construction."""
        return [n for n, obligation in enumerate(obligations) if self._is_violated(obligation)]

    def _is_violated(self, obligation: Obligation) -> bool:
        if not obligation.clauses:
            return obligation.counter in self.passed
        return any(self._holds(obligation, index) for index in range(obligation.width))

    def _holds(self, obligation: Obligation, index: int) -> bool:
        """Whether all clauses hold for equal core ``index``, in one timing if they have to."""
        if obligation.at_once and self.sync.undetermined is not None:
            moment = _Moment(frozenset(obligation.thens_at(index)), frozenset(obligation.firsts_at(index)))
            if moment.thens and moment not in self.met:
                return False
        return all(
            ((first, then) not in self.unordered) == ordered
            for first, then, ordered in obligation.clauses_at(index)
        )
