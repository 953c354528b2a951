"""The executable model: one timing of an instance, with every byte moved as the Machine's rules say.

Memory is a numpy byte array for each region of each rank, laid out by the kernel's own offsets and
filled with a poison (NaN in every format) before the inputs are put in. A put copies half of its
source at each of its two landings; a read takes its bytes when it begins and again when it ends, and a
byte that differs is torn; a write does its first half when it begins, its second when it ends. What a
call computes is its contract's business (`contracts`), who steps next the timing's (`timings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol.errors import ParameterError
from ..protocol.flags import Counter
from ..protocol.instance import Access, Instance, Kind
from ..protocol.machine import Action
from ..protocol.profile import STREAM_ORDER
from ..protocol.program import ALL_PIPES, Mode, Put, Write
from .contract import Contract, right_bytes
from .contracts import contract_of
from .jobs import Job, jobs_of
from .matrices import Inputs
from .memory import Memory
from .model import Model, Step
from .numerics import Bytes
from .outputs import Flaw, Judged, Outputs, WrongOutput
from .timings import Timing
from .walk import Walk

__all__ = ["Flaw", "Judged", "Outcome", "Passed", "Runner", "WrongOutput", "WrongRead", "run"]

COUNTER_CAP, EVENT_HANG, SET_TWICE = "counter-cap", "event-hang", "event-set-twice"


@dataclass(frozen=True, slots=True)
class WrongRead:
    """A reader that found bytes other than those it needs. ``step``: how many steps were taken before.

    ``tile`` is the job of its core that it is part of, ``segment`` which of the job's reads it is (0 for
    a read that belongs to no job); ``torn``: the bytes changed while it ran.
    """

    core: int
    event: int
    step: int
    tile: int
    segment: int
    access: Access
    torn: bool
    launch: int = 0


@dataclass(frozen=True, slots=True)
class Passed:
    """A counter that came above its cap, by the set ``event`` of ``core``, and what `prove` calls that.

    What a core does then is documented for some: past the cap of a flag's counter it stops
    (``counter-cap``), and an event that was set twice hangs a later wait for all pipes (``event-hang``):
    the run ends there, not finished. Else (``event-set-twice``) it counts on, as the Machine does.
    """

    code: str
    counter: Counter
    cap: int
    core: int
    event: int

    @property
    def stops(self) -> bool:
        """Whether the run ended there."""
        return self.code != SET_TWICE


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came of one timing.

    ``outputs[launch][rank]`` has the output regions by name; of a launch that did not end, as they were
    left. ``wrong_outputs`` is empty for a run that is stuck, as nothing is expected of one. ``passed``: a
    counter that came above its cap, which may be why the run did not end. ``judged``: how much was
    compared with what it must be; none at all (it is false then) means that only hangs can show.
    """

    instance: Instance
    finished: bool
    outputs: Sequence[Sequence[Mapping[str, Bytes]]]
    wrong_reads: Sequence[WrongRead]
    wrong_outputs: Sequence[WrongOutput]
    actions: Sequence[Action]
    judged: Judged
    passed: Passed | None = None

    @property
    def failed(self) -> bool:
        """Whether anything went wrong: a stuck run, a counter past its cap, wrong bytes read or left."""
        wrong = bool(self.wrong_reads) or bool(self.wrong_outputs)
        return not self.finished or wrong or self.passed is not None


def run(
    instance: Instance,
    inputs: Inputs | Sequence[Inputs] | None,
    timing: Timing,
    *,
    seed: int = 0,
) -> Outcome:
    """Run ``instance`` on ``inputs`` in ``timing``: to its end, or until nothing can step.

    ``inputs``: matrices for the MXFP8 product, one `Inputs` for each launch; None for protocols that
    compute something else, whose inputs are random bytes drawn from ``seed``. To run many timings of
    one instance make a `Runner`, which prepares it once.
    """
    return Runner(instance, inputs, seed=seed).run(timing)


class Runner:
    """An instance with its inputs, prepared to run any number of timings, one at a time."""

    def __init__(
        self, instance: Instance, inputs: Inputs | Sequence[Inputs] | None = None, *, seed: int = 0
    ) -> None:
        if not instance.cores:
            raise ParameterError("instance", None, f"{instance.protocol.name} has no roles: nothing to run")
        given = [inputs] * instance.setup.launches if isinstance(inputs, Inputs) else inputs
        self.instance = instance
        self.model = Model(instance)
        self.jobs = jobs_of(instance)
        self.contract: Contract = contract_of(instance, self.jobs, given, seed)
        self.memory = Memory(instance, self.contract)
        self.moves = Moves(self.model, self.jobs, self.contract, self.memory)
        self.outputs = Outputs(instance, self.contract)
        self.expected = self.outputs.expected
        reads = (part is not None for read in self.moves.reads.values() for part in read.right)
        self.judged = Judged(sum(reads), self.outputs.bytes)

    def begin(self) -> Execution:
        """A run before its first step. It uses this runner's memory: one at a time."""
        self.memory.reset()
        return Execution(self.moves)

    def run(self, timing: Timing) -> Outcome:
        """Run ``timing`` from the start."""
        walk = self.begin()
        choose, step, ready = timing.chooser(self.model), walk.step, walk.ready
        slots: list[int] = []
        walk.taken = slots
        while ready and not walk.stopped:
            slot = choose(ready)
            step(slot)
            slots.append(slot)
        actions = self.model.actions
        finished = walk.finished() and not walk.stopped
        outputs = walk.outputs()
        wrong = self.outputs.wrong(outputs) if finished else []
        done = _Actions(actions, slots)
        return Outcome(self.instance, finished, outputs, walk.wrong, wrong, done, self.judged, walk.passed)


class _Actions(Sequence[Action]):
    """The actions of a list of slots, looked up when somebody asks."""

    def __init__(self, actions: Sequence[Action], slots: Sequence[int]) -> None:
        self._actions, self._slots = actions, slots

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: int | slice) -> Action | list[Action]:  # type: ignore[override]
        if isinstance(index, slice):
            return [self._actions[slot] for slot in self._slots[index]]
        return self._actions[self._slots[index]]


@dataclass(slots=True)
class _Read:
    """A read, ready to do: its windows, what they must hold (None: anything), and the job it feeds.

    ``whole`` is ``right`` where all of it is known. ``write`` is the event that writes what the job makes
    of it, -1 for a read of no job.
    """

    windows: tuple[memoryview, ...]
    accesses: tuple[Access, ...]
    right: tuple[bytes | None, ...]
    whole: tuple[bytes, ...] | None
    tile: int
    segment: int
    write: int


@dataclass(slots=True)
class _Write:
    """A write, ready to do: the halves of its part, its job, or the fixed bytes of one without a job."""

    parts: tuple[Bytes, Bytes]
    job: Job | None
    fixed: tuple[Bytes, Bytes] | None
    adds: bool


class Moves:
    """What every lasting event and landing of an instance does to memory, found once."""

    def __init__(self, model: Model, jobs: Sequence[Job], contract: Contract, memory: Memory) -> None:
        self.model, self.contract, self.memory = model, contract, memory
        self.reads: dict[tuple[int, int], _Read] = {}
        self.writes: dict[tuple[int, int], _Write] = {}
        self.puts: dict[int, tuple[tuple[Bytes, Bytes], tuple[Bytes, Bytes], bool]] = {}
        of_read = {(job.core, read): (job, i) for job in jobs for i, read in enumerate(job.reads)}
        of_write = {(job.core, job.write): job for job in jobs}
        for core, code in enumerate(model.cores):
            for step in code.steps[:-1]:
                key = (core, step.number)
                if step.event.kind is Kind.READ:
                    self.reads[key] = self._read(step, *of_read.get(key, (None, 0)))
                elif step.event.kind is Kind.WRITE:
                    self.writes[key] = self._write(core, step, of_write.get(key))
                elif step.event.kind is Kind.PUT:
                    self.puts[step.slot] = self._put(step)

    def _read(self, step: Step, job: Job | None, segment: int) -> _Read:
        accesses = step.event.reads
        right = tuple(right_bytes(self.contract, step.event.launch, access) for access in accesses)
        known = tuple(part for part in right if part is not None)
        return _Read(
            tuple(self.memory.view(access).data for access in accesses),
            accesses,
            right,
            known if len(known) == len(right) else None,
            0 if job is None else job.number,
            segment,
            -1 if job is None else job.write,
        )

    def _write(self, core: int, step: Step, job: Job | None) -> _Write:
        nothing = np.zeros(0, np.uint8)
        if not step.event.writes:
            return _Write((nothing, nothing), None, (nothing, nothing), False)
        access = step.event.writes[0]
        view = self.memory.view(access)
        if job is not None:
            return _Write(self.contract.parts(job, view), job, None, False)
        right = right_bytes(self.contract, step.event.launch, access)
        data = np.full(len(view), (core * 31 + step.number) % 251, np.uint8)  # of no stated origin
        if right is not None:
            data = np.frombuffer(right, np.uint8)
        operation = step.event.operation
        adds = isinstance(operation, Write) and operation.mode is Mode.ADD
        return _Write(_halves(view), None, _halves(data), adds)

    def _put(self, step: Step) -> tuple[tuple[Bytes, Bytes], tuple[Bytes, Bytes], bool]:
        event = step.event
        adds = isinstance(event.operation, Put) and event.operation.mode is Mode.ADD
        return _halves(self.memory.view(event.reads[0])), _halves(self.memory.view(event.writes[0])), adds


def _halves(data: Bytes) -> tuple[Bytes, Bytes]:
    middle = len(data) // 2
    return data[:middle], data[middle:]


class Execution(Walk):
    """A Walk that moves bytes."""

    def __init__(self, moves: Moves) -> None:
        super().__init__(moves.model)
        self.moves = moves
        self.taken: list[int] = []
        self.wrong: list[WrongRead] = []
        self.passed: Passed | None = None
        self.stopped = False
        self._before: dict[tuple[int, int], tuple[bytes, ...]] = {}
        self._found: dict[tuple[int, int], list[tuple[bytes, ...]]] = {}
        self._writing: dict[tuple[int, int], Bytes] = {}
        self._ended: list[list[dict[str, Bytes]]] = [[] for _ in range(moves.memory.instance.ranks)]

    def lasts(self, core: int, step: Step, ends: bool) -> None:
        """Move the bytes of a read or write, half of them at each end."""
        key = (core, step.number)
        if step.event.kind is Kind.READ:
            self._read(key, self.moves.reads[key], ends)
        else:
            self._write(key, self.moves.writes[key], ends)

    def _read(self, key: tuple[int, int], read: _Read, ends: bool) -> None:
        found = tuple([bytes(window) for window in read.windows])
        if read.whole is not None and found == read.whole:
            found = read.whole  # the same object: what is made of it is looked up by it
        if not ends:
            self._before[key] = found
            return
        before = self._before.pop(key)
        if not (before is found is read.whole):
            self._note(key, read, before, found)
            found = tuple(_torn(*pair) for pair in zip(before, found, strict=True))
        if read.write >= 0:
            self._found.setdefault((key[0], read.write), []).append(found)

    def _note(
        self, key: tuple[int, int], read: _Read, before: Sequence[bytes], after: Sequence[bytes]
    ) -> None:
        for i, right in enumerate(read.right):
            if right is not None and not before[i] == after[i] == right:
                torn = before[i] != after[i]
                launch = self.model.cores[key[0]].steps[key[1]].event.launch
                self.wrong.append(
                    WrongRead(*key, len(self.taken), read.tile, read.segment, read.accesses[i], torn, launch)
                )

    def _write(self, key: tuple[int, int], write: _Write, ends: bool) -> None:
        if ends:
            self._store(write.parts[1], self._writing.pop(key), write.adds)
            return
        if write.job is None:
            assert write.fixed is not None
            data = write.fixed
        else:
            found = self._found.pop(key, [])  # of the segments, in their order
            data = self.moves.contract.result(write.job, tuple(found))
        self._store(write.parts[0], data[0], write.adds)
        self._writing[key] = data[1]

    def lands(self, step: Step, second: bool) -> None:
        """Copy half of the source of a put, as it is now."""
        sources, targets, adds = self.moves.puts[step.slot]
        self._store(targets[second], sources[second], adds)

    def _store(self, target: Bytes, data: Bytes, adds: bool) -> None:
        if adds:
            target += data
        else:
            target[:] = data

    def meets(self, meeting: int) -> None:
        """Between two launches of a rank: keep its outputs, and give it its next inputs."""
        instance = self.moves.memory.instance
        names = self.model.machine.functions
        if instance.assemblies[names[meeting]].form is STREAM_ORDER:
            rank = instance.cores[self.model.members[meeting][0]].id.rank
            self._ended[rank].append(self._outputs_of(rank))
            self.moves.memory.put_inputs(len(self._ended[rank]), rank)

    def passes(self, core: int, step: Step, counter: int) -> None:
        """Note the first counter that passes its cap, or the one that stops its core."""
        if self.stopped:
            return
        model = self.model
        code = _code_of(model, core, step, counter)
        if self.passed is None or code != SET_TWICE:
            self.passed = Passed(code, model.counters[counter], model.caps[counter], core, step.number)
        self.stopped = self.passed.stops

    def _outputs_of(self, rank: int) -> dict[str, Bytes]:
        memory = self.moves.memory
        return {region: array.copy() for (owner, region), array in memory.outputs if owner == rank}

    def outputs(self) -> list[list[Mapping[str, Bytes]]]:
        """By launch and rank; a rank's last ones are what its memory holds now."""
        ranks = [[*ended, self._outputs_of(rank)] for rank, ended in enumerate(self._ended)]
        launches = self.moves.memory.instance.setup.launches
        return [[ended[min(n, len(ended) - 1)] for ended in ranks] for n in range(launches)]


def _code_of(model: Model, core: int, step: Step, counter: int) -> str:
    """What it is called that ``step`` of ``core`` raises ``counter`` above its cap."""
    if not model.counters[counter].is_event:
        return COUNTER_CAP
    later = model.cores[core].steps[step.number + 1 : -1]
    drains = any(
        s.event.kind in (Kind.PIPE_BARRIER, Kind.BARRIER) and s.event.drains == ALL_PIPES for s in later
    )
    return EVENT_HANG if drains else SET_TWICE


def _torn(before: bytes, after: bytes) -> bytes:
    """What a reader may have found whose bytes changed while it ran: by turns the new and the old ones."""
    if before == after:
        return after
    mixed = bytearray(after)
    changed = [i for i, byte in enumerate(before) if byte != after[i]]
    for i in changed[1::2]:
        mixed[i] = before[i]
    return bytes(mixed)
