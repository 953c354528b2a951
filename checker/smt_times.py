"""Z3 on one straight-line instance in general: the solver also chooses which set each wait sees.

Every point has a Boolean (it has happened) and an integer time. A wait that happened takes one set
of its counter that no other wait takes and that has an earlier time; this is exact for counters,
because a counter is positive exactly while more sets than waits have happened. Where several cores
must set for one event, it takes one set of each core of one channel. A quiet excludes
that a request to its peer is in flight across it. For the many protocols whose matching is fixed,
`smt` asks far smaller questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from ..protocol.flags import Counter, counter_of
from ..protocol.instance import Kind
from ..protocol.sync import Sync, Use, determinate, program_graph
from .engine import Stuck
from .flag_obligations import counters_of_mixed_ids
from .obligations import NEVER, Obligation
from .smt import decide, new_solver


class Times:
    """The engine over any straight-line ``sync``."""

    name = "z3"

    def __init__(self, sync: Sync, *, rlimit: int = 0) -> None:
        self.sync = sync
        self.rlimit = rlimit
        count = sync.size + len(sync.meetings)
        self.happened = [z3.Bool(f"h{p}") for p in range(count)]
        self.time = [z3.Int(f"t{p}") for p in range(count)]
        self.before = program_graph(sync)
        self.constraints: list[Any] = []
        self._order_constraints()
        self._counter_constraints()
        self._queue_constraints()
        self.answers: dict[tuple[int, int], bool] = {}
        self.solver = self._solver()  # for the many small questions; constraints are read once

    # --- reachable states ---------------------------------------------------------------------

    def _earlier(self, first: int, then: int) -> Any:
        return z3.And(self.happened[first], self.time[first] < self.time[then])

    def _order_constraints(self) -> None:
        for point, points in enumerate(self.before):
            for earlier in points:
                self.constraints.append(z3.Implies(self.happened[point], self._earlier(earlier, point)))
        for number, meeting in enumerate(self.sync.meetings):
            if not meeting.complete:
                self.constraints.append(z3.Not(self.happened[self.sync.size + number]))

    def _counter_constraints(self) -> None:
        asked = set() if self.sync.undetermined is None else counters_of_mixed_ids(self.sync)
        for counter, waits in self.sync.waits.items():
            if counter not in asked and determinate(self.sync, counter):
                rises = self.sync.rises(counter)
                for k, wait in enumerate(waits):
                    sets = rises[k] if k < len(rises) else None
                    taken = z3.BoolVal(False) if sets is None else self._all_earlier(sets, wait)
                    self.constraints.append(z3.Implies(self.happened[wait.point], taken))
                continue
            self._choose(counter, waits)

    def _all_earlier(self, sets: Sequence[Use], wait: Use) -> Any:
        return z3.And(*(self._earlier(use.point, wait.point) for use in sets))

    def _choose(self, counter: Counter, waits: Sequence[Use]) -> None:
        """Every wait that happened takes earlier sets of all setters of a channel, none taken twice."""
        options: dict[int, list[Any]] = {w.point: [] for w in waits}
        for channel, by_core in self.sync.channels.get(counter, {}).items():
            lists = [by_core.get(core, []) for core in channel.setters]
            taken = [self._takes(waits, sets) for sets in lists]
            for w in waits:
                options[w.point].append(z3.And(*(of_setter[w.point] for of_setter in taken)))
        for w in waits:
            self.constraints.append(z3.Implies(self.happened[w.point], z3.Or(*options[w.point])))

    def _takes(self, waits: Sequence[Use], sets: Sequence[Use]) -> dict[int, Any]:
        """For every wait: that it takes one of ``sets``, which are one core's."""
        takes = {(w.point, s.point): z3.Bool(f"m{w.point}_{s.point}") for w in waits for s in sets}
        for w in waits:
            for s in sets:
                earlier = self._earlier(s.point, w.point)
                self.constraints.append(z3.Implies(takes[w.point, s.point], earlier))
        for s in sets:
            column = [takes[w.point, s.point] for w in waits]
            if len(column) > 1:
                self.constraints.append(z3.AtMost(*column, 1))
        return {w.point: z3.Or(*(takes[w.point, s.point] for s in sets)) for w in waits}

    def _queue_constraints(self) -> None:
        """No request of another core is in flight while a quiet of its queue returns."""
        sync = self.sync
        for queue, quiets in sync.quiets.items():
            for put in sync.puts.get(queue, ()):
                post, landing = sync.begin(put.core, put.event), sync.end(put.core, put.event)
                for quiet in quiets:
                    if quiet.core == put.core:
                        continue
                    posted_later = z3.Or(
                        z3.Not(self.happened[post]), self.time[quiet.point] < self.time[post]
                    )
                    free = z3.Or(posted_later, self._earlier(landing, quiet.point))
                    self.constraints.append(z3.Implies(self.happened[quiet.point], free))

    def _solver(self, *extra: Any) -> Any:
        solver = new_solver(None, self.rlimit)
        solver.add(*self.constraints)
        solver.add(*extra)
        return solver

    # --- deadlock -----------------------------------------------------------------------------

    def stuck(self) -> Stuck | None:
        """What is waiting in a reachable state in which nothing can happen, if there is one."""
        blocked = [z3.Or(h, self._blocked(p)) for p, h in enumerate(self.happened)]
        solver = self._solver(*blocked, z3.Or(*(z3.Not(h) for h in self.happened)))
        if not decide(solver):
            return None
        model = solver.model()
        done = [z3.is_true(model.eval(h, model_completion=True)) for h in self.happened]
        heads = []
        for point in range(self.sync.size):
            core, event = self.sync.locate(point)
            base = self.sync.base[core]
            inside = self.sync.orders[core].predecessors[point - base]
            if not done[point] and all(done[base + p] for p in inside):
                heads.append((core, event))
        return Stuck(tuple(heads))

    def _blocked(self, point: int) -> Any:
        """Why ``point`` cannot happen next: a predecessor is missing, or its counter is 0."""
        reasons = [z3.Not(self.happened[p]) for p in self.before[point]]
        if point >= self.sync.size:
            if not self.sync.meetings[point - self.sync.size].complete:
                return z3.BoolVal(True)
            return z3.Or(*reasons)
        event = self.sync.event_at(point)
        if event.kind in (Kind.WAIT_FLAG, Kind.WAIT_EVENT):
            core, _ = self.sync.locate(point)
            reasons.append(self._value(counter_of(self.sync.instance, core, event)) == 0)
        return z3.Or(*reasons)

    def _value(self, counter: Counter) -> Any:
        """The value of ``counter`` in the state: sets that happened minus waits that did."""
        rises = [
            self._least([self._number(by_core.get(core, ())) for core in channel.setters])
            for channel, by_core in self.sync.channels.get(counter, {}).items()
        ]
        return z3.Sum(*rises, z3.IntVal(0)) - self._number(self.sync.waits.get(counter, ()))

    def _number(self, uses: Sequence[Use]) -> Any:
        """How many of ``uses`` have happened."""
        return z3.Sum(*(z3.If(self.happened[u.point], 1, 0) for u in uses), z3.IntVal(0))

    def _least(self, numbers: list[Any]) -> Any:
        least = numbers[0]
        for number in numbers[1:]:
            least = z3.If(number < least, number, least)
        return least

    # --- obligations --------------------------------------------------------------------------

    def violated(self, obligations: Sequence[Obligation], *, one_each: bool = False) -> list[int]:
        """Indices of the violated obligations, ascending; with ``one_each`` the first of each kind."""
        found: list[int] = []
        kinds: set[tuple[str, str]] = set()
        for number, obligation in enumerate(obligations):
            kind = (obligation.property, obligation.code)
            if not (one_each and kind in kinds) and self._is_violated(obligation):
                found.append(number)
                kinds.add(kind)
        return found

    def _is_violated(self, obligation: Obligation) -> bool:
        if not obligation.clauses:
            assert obligation.counter is not None
            return decide(self._solver(self._value(obligation.counter) > obligation.cap))
        return any(self._holds(obligation, index) for index in range(obligation.width))

    def _holds(self, obligation: Obligation, index: int) -> bool:
        """Whether all clauses hold for equal core ``index``, in one timing if they have to."""
        clauses = obligation.clauses_at(index)
        if any(self._ordered(a, b) != ordered for a, b, ordered in clauses):
            return False
        if not obligation.at_once or self.sync.undetermined is None:
            return True
        return decide(self.solver, *self._moment(obligation, index))

    def _moment(self, obligation: Obligation, index: int) -> list[Any]:
        """A state in which every `thens_at` has happened, before every `firsts_at`."""
        thens, firsts = obligation.thens_at(index), obligation.firsts_at(index)
        literals = [self.happened[then] for then in thens]
        for first, then in zip(firsts, thens, strict=True):
            if first in thens:
                literals.append(self.time[then] < self.time[first])
            else:
                literals.append(z3.Not(self.happened[first]))
        return literals

    def _ordered(self, first: int, then: int) -> bool:
        if (first, then) not in self.answers:
            pending = [] if first == NEVER else [z3.Not(self.happened[first])]
            self.answers[first, then] = not decide(self.solver, self.happened[then], *pending)
        return self.answers[first, then]

    def witness(self, obligation: Obligation) -> tuple[int, list[int]] | None:
        """The equal core that shows ``obligation`` violated, and the points of one such timing."""
        for index in range(obligation.width):
            if not self._holds(obligation, index):
                continue
            clauses = obligation.clauses_at(index)
            if obligation.counter is not None:
                solver = self._solver(self._value(obligation.counter) > obligation.cap)
            elif obligation.at_once and obligation.thens_at(index):
                solver = self._solver(*self._moment(obligation, index))
            else:
                shown = next((a, b) for a, b, ordered in clauses if not ordered)
                pending = [] if shown[0] == NEVER else [z3.Not(self.happened[shown[0]])]
                solver = self._solver(self.happened[shown[1]], *pending)
            points = self._timing(solver)
            return None if points is None else (index, points)
        return None

    def completes(self) -> bool:
        """Whether some timing runs to its end."""
        return decide(self._solver(*self.happened))

    def stuck_timing(self) -> list[int] | None:
        """The points of one timing, in order, that ends stuck."""
        blocked = [z3.Or(h, self._blocked(p)) for p, h in enumerate(self.happened)]
        return self._timing(self._solver(*blocked, z3.Or(*(z3.Not(h) for h in self.happened))))

    def _timing(self, solver: Any) -> list[int] | None:
        if not decide(solver):
            return None
        model = solver.model()
        happened = [
            (model.eval(self.time[p], model_completion=True).as_long(), p)
            for p, h in enumerate(self.happened)
            if z3.is_true(model.eval(h, model_completion=True))
        ]
        return [p for _, p in sorted(happened)]
