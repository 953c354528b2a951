"""The memory rows against data: every timing of small random protocols, run with what memory holds.

The oracle knows nothing of obligations. It executes the Machine in every order, keeps the origin of
every byte (with its launch: inputs change between launches), and notes what goes wrong (`Seen`). An
exhaustive search must see exactly what the rows say; one that was cut off, and single runs of larger
protocols, may see nothing that the rows do not say.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import NamedTuple

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, ask
from mc2proof.checker.properties import rows_for
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutants import MUTATIONS, Mutant, mutate
from mc2proof.protocol.flags import counter_of
from mc2proof.protocol.instance import Access, Instance, Kind
from mc2proof.protocol.machine import Action, ActionKind, Machine, Phase, State
from mc2proof.protocol.profile import ASCEND950, STREAM_ORDER, BarrierAll, Hold
from mc2proof.protocol.program import RegionKind
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import Limits, unroll

MOST_STATES = 8_000

Place = tuple[int, str, int]  # rank, region, first byte
Origin = tuple[int, str, int, int] | str  # rank, region, first byte, launch; or why it is none
Contents = tuple[Origin, ...]
Running = frozenset[tuple[int, int]]  # core, event


class Seen(Enum):
    """What can be seen to go wrong; the value says which codes of findings say so."""

    MISLED = frozenset({
        "never-written", "foreign-data", "read-before-write", "overwrite", "relaunch-overwrite",
    })  # fmt: skip
    """While a reader runs, some byte of its window is not what it must be."""
    TORN = frozenset({"write-conflict", "relaunch-write-conflict"})
    """Two writes of one byte run at once."""
    OPEN = frozenset({"not-complete-at-end"})
    """A request is in flight when its core ends the launch."""


class Snapshot(NamedTuple):
    """A state of the Machine with what memory holds, and what runs or is in flight."""

    state: State
    contents: Contents
    running: Running


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
        return Snapshot(self.machine.initial(), self.memory.initial(), frozenset())

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
        cells, running = list(snapshot.contents), set(snapshot.running)
        if self._between_launches(action):
            self._new_inputs(action, cells)
        for core, number, phase in self.machine.points(snapshot.state, action):
            event = self.instance.cores[core].events[number]
            if event.kind in (Kind.READ, Kind.WRITE, Kind.PUT):
                change = self._begin if phase is Phase.BEGIN else self._end
                change(core, number, cells, running)
                self._look_at_readers(cells, running)
            elif event.kind is Kind.END and self._in_flight(core, event.launch, running):
                self.seen.add(Seen.OPEN)
        return Snapshot(self.machine.step(snapshot.state, action), tuple(cells), frozenset(running))

    def _between_launches(self, action: Action) -> bool:
        if action.kind is not ActionKind.MEET:
            return False
        return self.instance.assemblies[self.names[action.core]].form is STREAM_ORDER

    def _new_inputs(self, action: Action, cells: list[Origin]) -> None:
        """The rank of ``action`` begins its next launch, with other inputs."""
        member = self.instance.cores[self.machine.members[action.core][0]]
        for cell, (rank, region, first) in enumerate(self.memory.places):
            if rank == member.id.rank and region in self.memory.inputs:
                old = cells[cell]
                launch = old[3] + 1 if isinstance(old, tuple) else 0
                cells[cell] = (rank, region, first, launch)

    def _begin(self, core: int, number: int, cells: list[Origin], running: set[tuple[int, int]]) -> None:
        for access in self.instance.cores[core].events[number].writes:
            for cell, _ in self.memory.cells(access):
                torn = self._others(core, access, cell, running)
                cells[cell] = "torn" if torn else "being written"
                if torn:
                    self.seen.add(Seen.TORN)
        running.add((core, number))

    def _others(self, core: int, access: Access, cell: int, running: set[tuple[int, int]]) -> bool:
        """Whether another write is at the cell; blocks' shares of one window are disjoint."""
        return any(
            not (write.share and access.share and other != core and write[:4] == access[:4])
            for other, number in running
            for write in self.instance.cores[other].events[number].writes
            if any(cell == touched for touched, _ in self.memory.cells(write))
        )

    def _end(self, core: int, number: int, cells: list[Origin], running: set[tuple[int, int]]) -> None:
        running.discard((core, number))
        event = self.instance.cores[core].events[number]
        stale = event.kind is Kind.PUT and self._source_is_gone(event.reads, event.launch, cells)
        for access in event.writes:
            for cell, into in self.memory.cells(access):
                if cells[cell] != "torn":
                    cells[cell] = "unknown" if stale or access.add else _moved(access, into, event.launch)

    def _source_is_gone(self, sources: tuple[Access, ...], launch: int, cells: list[Origin]) -> bool:
        """Whether a request lands after its rank was given the inputs of the next launch."""
        return any(
            cells[cell] != (*self.memory.places[cell], launch)
            for source in sources
            for cell, _ in self.memory.cells(source)
        )

    def _look_at_readers(self, cells: list[Origin], running: set[tuple[int, int]]) -> None:
        for core, number in running:
            event = self.instance.cores[core].events[number]
            for access in event.reads if event.kind is Kind.READ else ():
                for cell, into in self.memory.cells(access):
                    if access.origin is not None and cells[cell] != _moved(access, into, event.launch):
                        self.seen.add(Seen.MISLED)

    def _in_flight(self, core: int, launch: int, running: set[tuple[int, int]]) -> bool:
        events = self.instance.cores[core].events
        return any(
            who == core and events[number].kind is Kind.PUT and events[number].launch == launch
            for who, number in running
        )


def _moved(access: Access, into: int, launch: int) -> Origin:
    """The origin of the byte that lies ``into`` the window of ``access``."""
    if access.origin is None:
        return "unknown"
    rank, region, offset = access.origin
    return (rank, region, offset + into, launch)


# --- the rows ---------------------------------------------------------------------------------


def answer_of(analysis: Analysis) -> Answers | None:
    """What an engine that follows every timing says; None if all is too much for the explorer."""
    names = rows_for(analysis.instance.setup.launches)
    for engine in ("happens-before", "explore"):
        answers = ask(engine, analysis, names, Limits(max_states=40_000))
        if answers.declined is None and not answers.lossy:
            return answers
    return None


def said(analysis: Analysis, answers: Answers) -> set[Seen]:
    """What the rows say can be seen."""
    codes = {analysis.obligations[i].code for i in answers.violated}
    return {what for what in Seen if codes & what.value}


def delivered_twice(analysis: Analysis) -> bool:
    """Whether some bytes are delivered twice: the rows judge the reader against the last delivery."""
    return any(len(piece.needed) > 1 for _, pieces in analysis.groups for piece in pieces)


# --- protocols --------------------------------------------------------------------------------


def small_instance(number: int) -> tuple[Mutant, Instance]:
    """Random protocol ``number``, most of them small enough to run in every timing."""
    random = Random(f"data/{number}")
    name = random.choice(list(BASES))
    launches = random.choice((1, 1, 1, 2, 2, 3))
    tiles = random.choice(((1, 2, 3), (1, 1, 2), (1,))[launches - 1])
    values = {"ranks": 2, "blocks": 1, "buffer_size": random.choice((1, 1, 2)), "tile_cnt": tiles}
    if name.startswith("ring"):
        values |= {"m": 2, "k": 64, "n": 2, "blocks": 2}
    elif name.startswith("staged") and random.random() < 0.5:
        values |= {"ranks": 1, "blocks": random.choice((1, 2))}
    elif random.random() < 0.15:
        values |= {"blocks": 2, "tile_cnt": min(tiles, 2)}
    setup = Setup(
        replace(
            ASCEND950,
            wait_holds=random.choice((Hold.PIPE, Hold.PIPE, Hold.CORE)),
            flags_merge=random.random() < 0.1,
        ),
        random.choice((BarrierAll.VEC, BarrierAll.VEC, BarrierAll.SOFT)),
        launches=launches,
        flags_cleared=random.random() < 0.3,
        faults=frozenset({Injected.QUIET_TIMEOUT} if random.random() < 0.08 else ()),
    )
    first = list(MUTATIONS)[number % len(MUTATIONS)]
    mutant = mutate(BASES[name], random, changes=random.choice((0, 1, 1, 2)), first=first)
    return mutant, unroll(mutant.protocol, values, setup)


@dataclass(frozen=True, slots=True)
class Compared:
    """A protocol with what was seen of it and what is said of it."""

    instance: Instance
    whole: bool
    seen: frozenset[Seen]
    said: frozenset[Seen]


def compared(numbers: range) -> Iterator[Compared]:
    """Random protocols; an assertion fails where the rows and what is seen differ."""
    for number in numbers:
        mutant, instance = small_instance(number)
        analysis = analyse(instance)
        answers = answer_of(analysis)
        if answers is None:
            continue
        oracle = Oracle(instance)
        whole = oracle.explore(MOST_STATES)
        for seed in () if whole else range(12):
            oracle.run(Random(seed))
        seen, told = set(oracle.seen), said(analysis, answers)
        where = f"protocol {number}, {mutant.protocol.name} {mutant.changes}"
        twice = delivered_twice(analysis)
        for what in sorted(seen - told, key=lambda s: s.name):
            assert what is Seen.MISLED and twice, f"{where}: {what.name} is seen, no row says so"
        if whole:
            assert told - seen <= ({Seen.MISLED} if twice else set()), f"{where}: {told} said, {seen} seen"
        yield Compared(instance, whole, frozenset(seen), frozenset(told))
