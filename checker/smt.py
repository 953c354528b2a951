"""Z3 on one instance whose timings share one partial order: reachable states as consistent cuts.

A state is a set of points closed under predecessors: one Boolean a node of the `skeleton`, one
implication an edge. "first before then in every timing" is proved when no closed set holds *then*
without *first*. Where some point can never happen, the points that can are computed first, with
integer times on the cycles of the order, and everything else is excluded.

For instances without one order see `smt_times`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import z3

from ..protocol.sync import Sync, order_graph
from .engine import Declined, Stuck
from .obligations import NEVER, Obligation
from .skeleton import fold


def new_solver(logic: str | None, rlimit: int) -> Any:
    """A fresh solver with a resource limit a question (0: none) and a fixed seed."""
    solver = z3.SolverFor(logic) if logic else z3.Solver()
    solver.set("random_seed", 0)
    if rlimit:
        solver.set("rlimit", rlimit)
    return solver


def decide(solver: Any, *assumptions: Any) -> bool:
    """Whether the constraints are satisfiable.

    Raises Declined if Z3 reaches its resource limit, KeyboardInterrupt where Z3 swallowed a Ctrl-C.
    """
    result = solver.check(*assumptions)
    if result == z3.unknown:
        reason = solver.reason_unknown()
        if "interrupted" in reason:
            raise KeyboardInterrupt
        if "canceled" in reason or "resource" in reason:
            raise Declined("the resource limit was reached (raise --rlimit, or 0 for none)")
        raise Declined(f"it gave up: {reason}")
    return bool(result == z3.sat)


FIRST_BATCH = 64
"""Obligations asked about at first where one violated one is enough; then ever more at once."""


class Cuts:
    """The engine over a determinate ``sync``. Raises Declined where the order is not fixed."""

    name = "z3"

    def __init__(self, sync: Sync, *, rlimit: int = 0) -> None:
        if sync.undetermined is not None:
            raise Declined(sync.undetermined)
        self.sync = sync
        self.rlimit = rlimit
        self.graph = order_graph(sync)
        self.skeleton = fold(sync, self.graph)
        self.happened = [z3.Bool(f"n{i}") for i in range(len(self.skeleton.members))]
        self.excluded: frozenset[int] = frozenset()
        self.answers: dict[tuple[int, int], bool] = {}
        self.closed_sets = self._closed_sets()
        self._stuck = self._find_stuck()
        self.solver = new_solver("QF_FD", rlimit)
        # prefer what has not happened: one model then shows most of what can be missing
        self.solver.set("phase", "always_false")
        self.solver.from_string(self.closed_sets)
        for node in sorted(self.excluded):
            self.solver.add(z3.Not(self.happened[node]))
        self.fresh = 0

    def _closed_sets(self) -> str:
        """What has happened is closed under predecessors, and nothing blocked has happened.

        As SMT-LIB text: Z3 reads it far faster than it is called from Python.
        """
        skeleton = self.skeleton
        lines = [f"(declare-const n{node} Bool)" for node in range(len(self.happened))]
        lines += [
            f"(assert (or (not n{node}) n{earlier}))"
            for node, before in enumerate(skeleton.predecessors)
            for earlier in before
        ]
        lines += [f"(assert (not n{node}))" for node in sorted(skeleton.blocked)]
        return "\n".join(lines)

    def _stuck_states(self) -> str:
        """Closed sets that are not everything and that no point can extend."""
        skeleton = self.skeleton
        lines = [self.closed_sets]
        for node, before in enumerate(skeleton.predecessors):
            if node not in skeleton.blocked:
                missing = " ".join(f"(not n{earlier})" for earlier in before)
                lines.append(f"(assert (or n{node} {missing} false))")
        everything = " ".join(f"n{node}" for node in range(len(self.happened)))
        lines.append(f"(assert (not (and true {everything})))")
        return "\n".join(lines)

    # --- deadlock -----------------------------------------------------------------------------

    def stuck(self) -> Stuck | None:
        """What is waiting in a reachable state in which nothing can happen, if there is one."""
        return self._stuck

    def completes(self) -> bool:
        """Whether some timing runs to its end: with one order, all do or none does."""
        return self._stuck is None

    def _find_stuck(self) -> Stuck | None:
        text = self._stuck_states()
        solver = new_solver("QF_FD", self.rlimit)
        solver.from_string(text)
        if not decide(solver):
            return None
        # Cycles satisfy closure without ever starting: times exclude them.
        timed = new_solver(None, self.rlimit)
        timed.from_string(text)
        self._add_times(timed)
        if not decide(timed):
            raise AssertionError("a stuck closed set exists, but no reachable one")
        model = timed.model()
        happened = [z3.is_true(model.eval(h, model_completion=True)) for h in self.happened]
        self.excluded = frozenset(i for i, h in enumerate(happened) if not h)
        return Stuck(tuple(self._heads(happened)))

    def _add_times(self, solver: Any) -> None:
        component = _components(self.skeleton.predecessors)
        for node, before in enumerate(self.skeleton.predecessors):
            for earlier in before:
                if component[node] == component[earlier]:
                    later = z3.Int(f"t{earlier}") < z3.Int(f"t{node}")
                    solver.add(z3.Or(z3.Not(self.happened[node]), later))

    def _heads(self, happened: list[bool]) -> Iterable[tuple[int, int]]:
        """Events that have not happened although all before them in their core has."""
        sync, node = self.sync, self.skeleton.node
        for point in range(sync.size):
            if not happened[node[point]]:
                core, event = sync.locate(point)
                base = sync.base[core]
                before = sync.orders[core].predecessors[point - base]
                if all(happened[node[base + p]] for p in before):
                    yield core, event

    # --- obligations --------------------------------------------------------------------------

    def violated(self, obligations: Sequence[Obligation], *, one_each: bool = False) -> list[int]:
        """Indices of the violated obligations, ascending; with ``one_each`` the first of each kind.

        Reading models is slow, and where something is violated there are often thousands.
        """
        if not one_each:
            return self._violated_among(obligations, range(len(obligations)))
        kinds: dict[tuple[str, str], list[int]] = {}
        for number, obligation in enumerate(obligations):
            kinds.setdefault((obligation.property, obligation.code), []).append(number)
        found: list[int] = []
        for numbers in kinds.values():
            start, size = 0, FIRST_BATCH
            while start < len(numbers):
                violated = self._violated_among(obligations, numbers[start : start + size])
                if violated:
                    found.append(violated[0])
                    break
                start, size = start + size, 4 * size
        return sorted(found)

    def _violated_among(self, obligations: Sequence[Obligation], numbers: Sequence[int]) -> list[int]:
        """Those of obligation ``numbers`` that are violated: each clause is a question to Z3."""
        open_cases = [(number, index) for number in numbers for index in range(obligations[number].width)]
        depth = 0
        found: set[int] = set()
        while open_cases:
            asked = []
            for number, index in open_cases:
                clauses = obligations[number].clauses
                if depth == len(clauses):
                    found.add(number)
                else:
                    clause = clauses[depth]
                    first = clause.first[index % len(clause.first)]
                    then = clause.then[index % len(clause.then)]
                    asked.append((number, index, first, then, clause.ordered))
            self._answer_all((first, then) for _, _, first, then, _ in asked)
            open_cases = [
                (number, index)
                for number, index, first, then, ordered in asked
                if self._known(first, then) == ordered
            ]
            depth += 1
        return sorted(found)

    def _known(self, first: int, then: int) -> bool:
        question = self.skeleton.question(first, then)
        return question is None or self.answers[question]

    def _answer_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Decide all pairs: for one later node, all earlier ones at once, until none is left."""
        groups: dict[int, set[int]] = defaultdict(set)
        for first, then in pairs:
            question = self.skeleton.question(first, then)
            if question is not None and question not in self.answers:
                groups[question[1]].add(question[0])
        for then in sorted(groups):
            firsts = sorted(groups[then])
            while firsts:
                missing = self._missing(firsts, then)
                for first in firsts:
                    if first in missing or not missing:
                        self.answers[first, then] = first not in missing
                firsts = [f for f in firsts if (f, then) not in self.answers]

    def _missing(self, firsts: list[int], then: int) -> set[int]:
        """Those of ``firsts`` that have not happened in some state where ``then`` has; empty: none."""
        if firsts[0] == NEVER:
            return {NEVER} if decide(self.solver, self.happened[then]) else set()
        self.fresh += 1
        switch = z3.Bool(f"q{self.fresh}")
        self.solver.add(z3.Or(z3.Not(switch), *(z3.Not(self.happened[f]) for f in firsts)))
        if not decide(self.solver, switch, self.happened[then]):
            return set()
        model = self.solver.model()
        return {f for f in firsts if z3.is_false(model.eval(self.happened[f], model_completion=True))}


def _components(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """The strongly connected component of every node (Tarjan's algorithm, without recursion)."""
    component = [-1] * len(predecessors)
    low = [0] * len(predecessors)
    seen = [0] * len(predecessors)
    stack: list[int] = []
    clock = count = 0
    for root in range(len(predecessors)):
        if seen[root]:
            continue
        work = [(root, 0)]
        while work:
            node, child = work.pop()
            if child == 0:
                clock += 1
                seen[node] = low[node] = clock
                stack.append(node)
            if child < len(predecessors[node]):
                work.append((node, child + 1))
                other = predecessors[node][child]
                if not seen[other]:
                    work.append((other, 0))
                elif component[other] < 0:
                    low[node] = min(low[node], seen[other])
                continue
            for other in predecessors[node]:
                if component[other] < 0:
                    low[node] = min(low[node], low[other])
            if low[node] == seen[node]:
                while True:
                    member = stack.pop()
                    component[member] = count
                    if member == node:
                        break
                count += 1
    return component
