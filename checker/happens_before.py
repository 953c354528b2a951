"""Happens-before: one partial order for all timings, decided with vector clocks.

Exact where every wait's matching set is fixed (`Sync.undetermined` is None); declines otherwise.
One pass over the points gives each a clock: per chain (a pipe of a core), how many of its points
have happened by then. Points that learn nothing new share their predecessor's clock. Time is
linear in events, memory in (acquiring points) x (chains).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..protocol.instance import Kind
from ..protocol.order import NO_CHAIN
from ..protocol.sync import Sync, order_graph
from .engine import Declined, Stuck
from .obligations import NEVER, Obligation

Clock = npt.NDArray[np.int32]


MOST_CLOCK_ENTRIES = 250_000_000
"""Acquiring points times chains: about 1 GB of clocks."""


class HappensBefore:
    """The engine over ``sync``; construction computes the order.

    Raises Declined if the timings do not share one partial order.
    """

    name = "happens-before"

    def __init__(self, sync: Sync) -> None:
        if sync.undetermined is not None:
            raise Declined(sync.undetermined)
        self.sync = sync
        self.graph = order_graph(sync)
        self.before = self.graph.predecessors
        self._number_chains()
        acquiring = sum(len(points) > 1 for points in self.before)
        if acquiring * self.chain_count > MOST_CLOCK_ENTRIES:
            raise Declined(f"its clocks need more than {MOST_CLOCK_ENTRIES} entries")
        self.clocks: list[Clock] = [np.full(self.chain_count, -1, np.int32)]
        self.clock_of = [-1] * (sync.size + len(sync.meetings))
        self.order: list[int] = []  # points in one possible timing
        self._run()
        self.table = np.stack(self.clocks)
        self._chains = np.array(self.chain)
        self._positions = np.array(self.position)
        self._clocks = np.array(self.clock_of)
        self._released: dict[int, list[int]] | None = None  # the waits that each set releases

    # --- construction -------------------------------------------------------------------------

    def _number_chains(self) -> None:
        """Give every (core, pipe) that has points a number; flatten the per-core data."""
        self.chain: list[int] = []
        self.position: list[int] = []
        count = 0
        for order in self.sync.orders:
            used = sorted({c for c in order.chain if c != NO_CHAIN})
            number = {c: count + i for i, c in enumerate(used)}
            number[NO_CHAIN] = NO_CHAIN
            self.chain += [number[c] for c in order.chain]
            self.position += order.position
            count += len(used)
        self.chain_count = count
        self.chain += [NO_CHAIN] * len(self.sync.meetings)
        self.position += [0] * len(self.sync.meetings)

    # --- the pass -----------------------------------------------------------------------------

    def _run(self) -> None:
        """Take every point that can happen, in one timing, and give it its clock."""
        before = self.before
        successors: list[list[int]] = [[] for _ in before]
        for point, points in enumerate(before):
            for earlier in points:
                successors[earlier].append(point)
        missing = [len(points) for points in before]
        for point in self.graph.blocked:
            missing[point] += 1
        ready = [p for p, count in enumerate(missing) if count == 0]
        chain, clock_of = self.chain, self.clock_of
        for point in ready:  # grows while it is read
            sources = before[point]
            if len(sources) == 1 and chain[sources[0]] == chain[point] != NO_CHAIN:
                clock_of[point] = clock_of[sources[0]]
            else:
                clock_of[point] = self._join(sources, chain[point])
            for after in successors[point]:
                missing[after] -= 1
                if not missing[after]:
                    ready.append(after)
        self.order = ready

    def _join(self, sources: list[int], own: int) -> int:
        """The number of the clock of a point on chain ``own`` that comes after ``sources``."""
        if not sources:
            return 0
        chain, position, clock_of = self.chain, self.position, self.clock_of
        base = sources[0]
        if len(sources) > 1 and own != NO_CHAIN:
            base = next((p for p in sources if chain[p] == own), base)
        number = clock_of[base]
        clock = self.clocks[number]
        merged = {number}
        fresh = False  # whether ``clock`` is this point's own, so that it may be changed
        for point in sources:
            on = chain[point]
            known = on in (NO_CHAIN, own) or clock[on] >= position[point]
            if known and on != NO_CHAIN:
                continue
            other = clock_of[point]
            if known and other in merged:
                continue
            if not fresh:
                clock, fresh = clock.copy(), True
            if other not in merged:
                merged.add(other)
                np.maximum(clock, self.clocks[other], out=clock)
            if not known and clock[on] < position[point]:
                clock[on] = position[point]
        if not fresh:
            return number
        self.clocks.append(clock)
        return len(self.clocks) - 1

    # --- answers ------------------------------------------------------------------------------

    def stuck(self) -> Stuck | None:
        """What never happens, if anything: the events whose own predecessors all happened."""
        size = self.sync.size
        if all(number >= 0 for number in self.clock_of[:size]):
            return None
        heads = [
            self.sync.locate(point)
            for point in range(size)
            if self.clock_of[point] < 0 and all(self.clock_of[p] >= 0 for p in self._inside(point))
        ]
        return Stuck(tuple(heads))

    def _inside(self, point: int) -> list[int]:
        """The predecessors of ``point`` in its own core."""
        core, _ = self.sync.locate(point)
        base = self.sync.base[core]
        return [base + p for p in self.sync.orders[core].predecessors[point - base]]

    def completes(self) -> bool:
        """Whether some timing runs to its end: with one order, all do or none does."""
        return self.stuck() is None

    def violated(self, obligations: Sequence[Obligation], *, one_each: bool = False) -> list[int]:
        """Indices of all violated obligations, ascending; all of them cost no more than one."""
        firsts: list[int] = []
        thens: list[int] = []
        wanted: list[bool] = []
        case_of: list[int] = []  # the case (an obligation for one of its equal cores) of each clause
        owner: list[int] = []  # the obligation of each case
        for number, obligation in enumerate(obligations):
            if not obligation.clauses:
                raise Declined("a counter whose sets and waits have no fixed order")
            width = obligation.width
            cases = range(len(owner), len(owner) + width)
            owner += [number] * width
            for clause in obligation.clauses:
                firsts += clause.first if len(clause.first) == width else clause.first * width
                thens += clause.then if len(clause.then) == width else clause.then * width
                wanted += [clause.ordered] * width
                case_of += cases
        if not firsts:
            return []
        holds = self.ordered(firsts, thens) == np.array(wanted)
        all_hold = np.ones(len(owner), bool)
        all_hold[np.array(case_of)[~holds]] = False
        return sorted({owner[i] for i in np.flatnonzero(all_hold)})

    def ordered(self, firsts: Sequence[int], thens: Sequence[int]) -> npt.NDArray[np.bool_]:
        """For each pair, whether ``first`` comes before ``then`` in every timing where that happens."""
        stand_ins = {p: self._stand_ins(p) for p in set(firsts)}
        answer = self._ordered_on_chains([stand_ins[p][0] for p in firsts], thens)
        if all(len(points) == 1 for points in stand_ins.values()):
            return answer
        for number, point in enumerate(firsts):
            for other in stand_ins[point][1:]:  # a set that several waits wait for
                answer[number] |= self._ordered_on_chains([other], thens[number : number + 1])[0]
        return answer

    def _ordered_on_chains(self, firsts: Sequence[int], thens: Sequence[int]) -> npt.NDArray[np.bool_]:
        """`ordered` for firsts that lie on chains, or are NEVER."""
        first = np.array(firsts)
        then = np.array(thens)
        chain, position, clocks = self._chains, self._positions, self._clocks[then]
        known = self.table[clocks, chain[first]] >= position[first]
        same = (chain[first] == chain[then]) & (position[first] <= position[then])
        never_first = first == NEVER
        answer: npt.NDArray[np.bool_] = (clocks < 0) | (~never_first & (known | same))
        return answer

    def _stand_ins(self, point: int) -> list[int]:
        """The points of chains that tell that ``point`` has happened; NEVER if none does."""
        if point == NEVER or self.chain[point] != NO_CHAIN:
            return [point]
        core, event = self.sync.locate(point)
        if self.sync.event_at(point).kind is Kind.PUT:
            covered = self.sync.covered_by(core, event)
            return [NEVER if covered is None else covered]
        return self._waits_by_set().get(point) or [NEVER]

    def _waits_by_set(self) -> dict[int, list[int]]:
        if self._released is None:
            self._released = {}
            for wait, sets in self.sync.released_by.items():
                for point in dict.fromkeys(sets or ()):
                    self._released.setdefault(point, []).append(wait)
        return self._released
