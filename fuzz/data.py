"""Running an instance with data: what every byte holds, in one timing or in all of them.

It knows nothing of obligations or of what is ordered, so the tests compare the checker with it. It
executes the Machine, keeps the origin of every byte (with its launch: inputs change between
launches) and notes what goes wrong (`Seen`). Memory and time grow with the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

from ..protocol.flags import counter_of
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.machine import Action, ActionKind, Machine, Phase, State
from ..protocol.profile import STREAM_ORDER
from ..protocol.program import RegionKind

Place = tuple[int, str, int]  # rank, region, first byte
Origin = tuple[int, str, int, int] | str  # rank, region, first byte, launch; or why it is none
Contents = tuple[Origin, ...]
Written = tuple[int, int]  # the core and event of a write
History = tuple[tuple[Written, ...], ...]  # of every cell, the writes that began, in their order


class Seen(Enum):
    """What can be seen to go wrong.

    The first three are of a reader that finds, while it runs, a byte that is not what it must be.
    """

    EARLY = "nothing wrote the byte that it needs, or not wholly yet"
    OVERWRITTEN = "another write of its launch began at that byte after the one it needs"
    RELAUNCHED = "a write of another launch did"
    TORN = "two writes of one byte, of one launch, run at once"
    TORN_BETWEEN = "two writes of one byte, of two launches, run at once"
    OPEN = "a request is in flight when its core ends the launch"


class Snapshot(NamedTuple):
    """A state of the Machine with what memory holds, how it came to, and what runs or is in flight."""

    state: State
    contents: Contents
    history: History
    running: frozenset[Written]


@dataclass(slots=True)
class Now:
    """The parts of a snapshot that a step changes."""

    cells: list[Origin]
    history: list[tuple[Written, ...]]
    running: set[Written]


class Memory:
    """Every byte range that some access distinguishes, by a number."""

    def __init__(self, instance: Instance) -> None:
        edges: dict[tuple[int, str], set[int]] = {}
        for core in instance.cores:
            for event in core.events:
                for access in (*event.reads, *event.writes):
                    edges.setdefault((access.rank, access.region), set()).update((access.begin, access.end))
        self.edges = {key: sorted(found) for key, found in edges.items()}
        self.places: list[Place] = [(r, g, edge) for (r, g), found in self.edges.items() for edge in found]
        self.number = {place: i for i, place in enumerate(self.places)}
        self.inputs = {r.name for r in instance.protocol.regions if r.kind is RegionKind.INPUT}
        self._cells: dict[Access, tuple[tuple[int, int], ...]] = {}

    def initial(self) -> Contents:
        """Every byte holds itself, as of the first launch."""
        return tuple((*place, 0) for place in self.places)

    def cells(self, access: Access) -> tuple[tuple[int, int], ...]:
        """The cells of a window: their numbers, and how far into the window they begin."""
        found = self._cells.get(access)
        if found is None:
            edges = self.edges[access.rank, access.region]
            found = self._cells[access] = tuple(
                (self.number[access.rank, access.region, edge], edge - access.begin)
                for edge in edges
                if access.begin <= edge < access.end
            )
        return found


class Oracle:
    """Runs ``instance`` with data. With ``reduce``, what nothing can disturb and nobody sees goes first."""

    def __init__(self, instance: Instance, *, reduce: bool = True) -> None:
        self.instance, self.reduce = instance, reduce
        self.machine, self.memory = Machine(instance, halves=False), Memory(instance)
        self.seen: set[Seen] = set()
        self.names = list(instance.assemblies)
        self._index()

    def _index(self) -> None:
        """Who takes from each counter, who posts to each queue, who touches each cell."""
        self.takers: dict[object, set[object]] = {}
        self.posters: dict[tuple[int, int], set[int]] = {}
        self.readers: dict[int, set[object]] = {}
        self.writers: dict[int, set[object]] = {}
        for number, (identity, events) in enumerate(self.instance.cores):
            for position, event in enumerate(events):
                who = (number, event.pipe)
                if event.kind in (Kind.WAIT_FLAG, Kind.WAIT_EVENT):
                    self.takers.setdefault(counter_of(self.instance, number, event), set()).add(who)
                elif event.kind is Kind.PUT:
                    self.posters.setdefault((identity.rank, event.peer), set()).add(number)
                # requests of one core overlap in time, instructions of one pipe do not
                actor = (number, position) if event.kind is Kind.PUT else who
                for accesses, table in ((event.reads, self.readers), (event.writes, self.writers)):
                    for access in accesses:
                        for cell, _ in self.memory.cells(access):
                            table.setdefault(cell, set()).add(actor)

    # --- runs ---------------------------------------------------------------------------------

    def start(self) -> Snapshot:
        """Before the first action."""
        nothing: History = ((),) * len(self.memory.places)
        return Snapshot(self.machine.initial(), self.memory.initial(), nothing, frozenset())

    def explore(self, most_states: int) -> bool:
        """Run every timing; False if there are too many states, or all that can be seen was."""
        start = self.start()
        known, todo = {start}, [start]
        while todo:
            snapshot = todo.pop()
            for action in self.choices(snapshot.state):
                after = self.step(snapshot, action)
                if after not in known:
                    if len(known) >= most_states:
                        return False
                    known.add(after)
                    todo.append(after)
        return True

    def run(self, random: Random) -> None:
        """Run one timing: at every step an action of a random core, some cores rarely."""
        snapshot = self.start()
        weights = [random.choice((0.01, 0.3, 1)) for _ in self.instance.cores]
        while actions := self.machine.enabled(snapshot.state):
            chances = [1 if a.kind is ActionKind.MEET else weights[a.core] for a in actions]
            snapshot = self.step(snapshot, random.choices(actions, chances)[0])

    def choices(self, state: State) -> list[Action]:
        """The actions to try: all, or one that makes no difference whenever it is done."""
        actions = self.machine.enabled(state)
        if self.reduce:
            for action in actions:
                if self._at_once(state, action):
                    return [action]
        return actions

    def _at_once(self, state: State, action: Action) -> bool:
        """Whether ``action`` stays possible, commutes with all others, and shows nothing by its time.

        What is seen in a timing that has it later is then seen in one that has it now.
        """
        if action.kind is ActionKind.EFFECT:
            return not self.machine.merges
        if action.kind is ActionKind.MEET:
            return not self._between_launches(action)
        core, number, _ = self.machine.points(state, action)[0]
        event = self.instance.cores[core].events[number]
        if event.kind in (Kind.WAIT_FLAG, Kind.WAIT_EVENT):
            alone = len(self.takers[counter_of(self.instance, core, event)]) == 1
            return alone and not self.machine.merges
        if event.kind is Kind.QUIET:
            rank = self.instance.cores[core].id.rank
            alone = self.posters.get((rank, event.peer), set()) <= {core}
            return alone or not self.machine.quiet_waits
        if event.kind in (Kind.READ, Kind.WRITE):
            return self._untouched(core, number)
        return event.kind in (Kind.END, Kind.SET_EVENT, Kind.PIPE_BARRIER)  # an early end sees most

    def _untouched(self, core: int, number: int) -> bool:
        """Whether no other pipe writes what the instruction reads, or touches what it writes."""
        event = self.instance.cores[core].events[number]
        own = {(core, event.pipe)}
        read = (self.writers.get(cell, own) for a in event.reads for cell, _ in self.memory.cells(a))
        written = (
            self.writers.get(cell, own) | self.readers.get(cell, own)
            for a in event.writes
            for cell, _ in self.memory.cells(a)
        )
        return all(who <= own for who in (*read, *written))

    # --- one step -----------------------------------------------------------------------------

    def step(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """``snapshot`` after ``action``; notes what is seen on the way."""
        now = Now(list(snapshot.contents), list(snapshot.history), set(snapshot.running))
        if self._between_launches(action):
            self._new_inputs(action, now)
        for core, number, phase in self.machine.points(snapshot.state, action):
            event = self.instance.cores[core].events[number]
            if event.kind in (Kind.READ, Kind.WRITE, Kind.PUT):
                change = self._begin if phase is Phase.BEGIN else self._end
                change((core, number), now)
                self._look_at_readers(now)
            elif event.kind is Kind.END and self._in_flight(core, event.launch, now):
                self.seen.add(Seen.OPEN)
        state = self.machine.step(snapshot.state, action)
        return Snapshot(state, tuple(now.cells), tuple(now.history), frozenset(now.running))

    def _event(self, who: Written) -> Event:
        return self.instance.cores[who[0]].events[who[1]]

    def _between_launches(self, action: Action) -> bool:
        if action.kind is not ActionKind.MEET:
            return False
        return self.instance.assemblies[self.names[action.core]].form is STREAM_ORDER

    def _new_inputs(self, action: Action, now: Now) -> None:
        """The rank of ``action`` begins its next launch, with other inputs."""
        member = self.instance.cores[self.machine.members[action.core][0]]
        for cell, (rank, region, first) in enumerate(self.memory.places):
            if rank == member.id.rank and region in self.memory.inputs:
                old = now.cells[cell]
                assert isinstance(old, tuple), "nobody writes inputs"
                now.cells[cell] = (rank, region, first, old[3] + 1)

    def _begin(self, who: Written, now: Now) -> None:
        event = self._event(who)
        for access in event.writes:
            for cell, _ in self.memory.cells(access):
                others = self._others(who, access, cell, now)
                now.cells[cell] = "torn" if others else "being written"
                now.history[cell] += (who,)
                for launch in others:
                    self.seen.add(Seen.TORN if launch == event.launch else Seen.TORN_BETWEEN)
        now.running.add(who)

    def _others(self, who: Written, access: Access, cell: int, now: Now) -> set[int]:
        """The launches of other writes that are at the cell; blocks' shares of one window are disjoint."""
        return {
            self._event(other).launch
            for other in now.running
            for write in self._event(other).writes
            if any(cell == touched for touched, _ in self.memory.cells(write))
            and not (write.share and access.share and other[0] != who[0] and write[:4] == access[:4])
        }

    def _end(self, who: Written, now: Now) -> None:
        now.running.discard(who)
        event = self._event(who)
        stale = event.kind is Kind.PUT and self._source_is_gone(event, now)
        for access in event.writes:
            for cell, into in self.memory.cells(access):
                if now.cells[cell] != "torn":
                    kept = not stale and not access.add
                    now.cells[cell] = _moved(access, into, event.launch) if kept else "unknown"

    def _source_is_gone(self, event: Event, now: Now) -> bool:
        """Whether a request lands after its rank was given the inputs of the next launch.

        Also of one that sends on what is no input: what it leaves has no known origin.
        """
        return any(
            now.cells[cell] != (*self.memory.places[cell], event.launch)
            for source in event.reads
            for cell, _ in self.memory.cells(source)
        )

    def _look_at_readers(self, now: Now) -> None:
        for who in now.running:
            event = self._event(who)
            for access in event.reads if event.kind is Kind.READ else ():
                for cell, into in self.memory.cells(access):
                    needed = _moved(access, into, event.launch)
                    if access.origin is not None and now.cells[cell] != needed:
                        self.seen |= self._why(cell, needed, event.launch, now)

    def _why(self, cell: int, needed: Origin, launch: int, now: Now) -> set[Seen]:
        """What misleads a reader of ``launch``; nothing, if writes that overlap or came late did."""
        writes = now.history[cell]
        right = [n for n, who in enumerate(writes) if self._leaves(who, cell) == needed]
        if not right:
            return {Seen.EARLY}
        early = {Seen.EARLY} if writes[right[-1]] in now.running else set()
        launches = {self._event(who).launch for who in writes[right[-1] + 1 :]}
        return (
            early
            | ({Seen.OVERWRITTEN} if launch in launches else set())
            | ({Seen.RELAUNCHED} if launches - {launch} else set())
        )

    def _leaves(self, who: Written, cell: int) -> Origin:
        """What a write leaves at ``cell`` if nothing disturbs it."""
        event = self._event(who)
        return next(
            _moved(access, into, event.launch) if not access.add else "unknown"
            for access in event.writes
            for touched, into in self.memory.cells(access)
            if touched == cell
        )

    def _in_flight(self, core: int, launch: int, now: Now) -> bool:
        return any(
            who[0] == core and self._event(who).kind is Kind.PUT and self._event(who).launch == launch
            for who in now.running
        )


def _moved(access: Access, into: int, launch: int) -> Origin:
    """The origin of the byte that lies ``into`` the window of ``access``."""
    if access.origin is None:
        return "unknown"
    rank, region, offset = access.origin
    return (rank, region, offset + into, launch)
