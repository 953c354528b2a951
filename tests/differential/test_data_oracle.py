"""The memory rows against data: every timing of small random protocols, run with what memory holds.

The oracle knows nothing of obligations. It executes the Machine in every order, keeps the origin of
every byte, and watches the readers: a reader is *misled* if, from its begin to its end, some byte is
not what it must be or is being written. Misled in some timing if and only if the rows say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from mc2proof.checker.analysis import analyse
from mc2proof.checker.happens_before import HappensBefore
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutants import MUTATIONS, mutate
from mc2proof.protocol.instance import Access, Instance, Kind
from mc2proof.protocol.machine import Action, Machine, Phase, State
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Hold
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

MOST_STATES = 12_000
READER_ROWS = {"no-read-before-write", "no-overwrite-before-read"}
DATA_ROWS = READER_ROWS | {"no-write-conflict", "completion"}

Cell = tuple[int, str, int]  # rank, region, first byte
Origin = tuple[int, str, int] | str
Contents = tuple[Origin, ...]


class Memory:
    """Every byte range that some access distinguishes, and what it holds."""

    def __init__(self, instance: Instance) -> None:
        edges: dict[tuple[int, str], set[int]] = {}
        for core in instance.cores:
            for event in core.events:
                for access in (*event.reads, *event.writes):
                    edges.setdefault((access.rank, access.region), set()).update((access.begin, access.end))
        self.cells: list[Cell] = [(r, g, edge) for (r, g), found in edges.items() for edge in sorted(found)]
        self.number = {cell: i for i, cell in enumerate(self.cells)}
        self.edges = {key: sorted(found) for key, found in edges.items()}

    def initial(self) -> Contents:
        return tuple(self.cells)

    def touched(self, access: Access) -> Iterator[tuple[int, int]]:
        """The cells of a window: their numbers, and how far into the window they begin."""
        for edge in self.edges[access.rank, access.region]:
            if access.begin <= edge < access.end:
                yield self.number[access.rank, access.region, edge], edge - access.begin


def misled(instance: Instance) -> bool | None:
    """Whether some timing misleads a reader; None: too many states to say."""
    machine, memory = Machine(instance, halves=False), Memory(instance)
    start = (machine.initial(), memory.initial(), frozenset[tuple[int, int]]())
    seen, todo = {start}, [start]
    while todo:
        state, contents, active = todo.pop()
        for action in machine.enabled(state):
            after, bad = _execute(instance, machine, memory, state, contents, active, action)
            if bad:
                return True
            if after not in seen:
                if len(seen) >= MOST_STATES:
                    return None
                seen.add(after)
                todo.append(after)
    return False


Snapshot = tuple[State, Contents, frozenset[tuple[int, int]]]


def _execute(
    instance: Instance,
    machine: Machine,
    memory: Memory,
    state: State,
    contents: Contents,
    active: frozenset[tuple[int, int]],
    action: Action,
) -> tuple[Snapshot, bool]:
    cells = list(contents)
    running = set(active)
    bad = False
    for core, number, phase in machine.points(state, action):
        event = instance.cores[core].events[number]
        if event.kind not in (Kind.READ, Kind.WRITE, Kind.PUT):
            continue
        if phase is Phase.BEGIN:
            running.add((core, number))
            for access in event.writes:
                for cell, _ in memory.touched(access):
                    cells[cell] = "being written"
        else:
            running.discard((core, number))
            for access in event.writes:
                for cell, into in memory.touched(access):
                    cells[cell] = _written(instance, memory, access, cell, into, running)
        bad = bad or _some_reader_is_misled(instance, memory, cells, running)
    return (machine.step(state, action), tuple(cells), frozenset(running)), bad


def _written(
    instance: Instance, memory: Memory, access: Access, cell: int, into: int, running: set[tuple[int, int]]
) -> Origin:
    """What a finished write leaves: its bytes, unless another write is at them or it was a sum."""
    others = [
        w
        for core, number in running
        for w in instance.cores[core].events[number].writes
        if cell in dict(memory.touched(w))
    ]
    if others or access.add or access.origin is None:
        return "being written" if others else "unknown"
    rank, region, offset = access.origin
    return (rank, region, offset + into)


def _some_reader_is_misled(
    instance: Instance, memory: Memory, cells: list[Origin], running: set[tuple[int, int]]
) -> bool:
    for core, number in running:
        event = instance.cores[core].events[number]
        if event.kind is not Kind.READ:
            continue
        for access in event.reads:
            if access.origin is not None:
                rank, region, offset = access.origin
                for cell, into in memory.touched(access):
                    if cells[cell] != (rank, region, offset + into):
                        return True
    return False


def protocols(count: int) -> Iterator[tuple[int, Instance]]:
    """Small random protocols whose timings share one order."""
    for number in range(count):
        random = Random(f"data/{number}")
        name = random.choice(list(BASES))
        values = {"ranks": 2, "buffer_size": random.choice((1, 1, 2)), "tile_cnt": random.choice((1, 2, 3))}
        values |= {"m": 2, "k": 64, "n": 2, "blocks": 2} if name.startswith("ring") else {"blocks": 1}
        profile = replace(ASCEND950, wait_holds=random.choice((Hold.PIPE, Hold.PIPE, Hold.CORE)))
        reading = random.choice((BarrierAll.VEC, BarrierAll.VEC, BarrierAll.SOFT))
        first = list(MUTATIONS)[number % len(MUTATIONS)]
        mutant = mutate(BASES[name], random, changes=random.choice((1, 1, 2)), first=first)
        yield number, unroll(mutant.protocol, values, Setup(profile, reading))


def test_readers_are_misled_where_the_rows_say_so() -> None:
    compared = wrong = 0
    for number, instance in protocols(90):
        analysis = analyse(instance)
        if analysis.sync.undetermined is not None or analysis.sync.size > 160:
            continue
        answer = misled(instance)
        if answer is None:
            continue
        found = HappensBefore(analysis.sync).violated(analysis.obligations)
        violated = {analysis.obligations[i].property for i in found}
        doubled = any(len(piece.needed) > 1 for _, pieces in analysis.groups for piece in pieces)
        if answer:
            assert violated & DATA_ROWS or doubled, f"protocol {number}: a reader is misled, no row says so"
        if violated & READER_ROWS and not doubled:
            assert answer, f"protocol {number}: {violated} are VIOLATED, no timing misleads a reader"
        compared += 1
        wrong += answer
    assert compared >= 30
    assert 5 <= wrong <= compared - 5
