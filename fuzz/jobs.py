"""The opaque calls that an instance executes: what each reads, what it writes, and who shares a window.

Used by `contracts`, which computes them, and by `product`, which looks what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.operations import Compute


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One executed Compute of core ``core``: the events of its segments, and the event that writes.

    ``number`` counts the core's jobs of a launch: the tile, in kernels that go by tiles. ``share`` of
    ``shares``: which part of the window this core writes.
    """

    core: int
    rank: int
    launch: int
    number: int
    reads: tuple[int, ...]
    write: int
    accesses: tuple[tuple[Access, ...], ...]
    windows: tuple[Access, ...]
    share: int = 0
    shares: int = 1


def jobs_of(instance: Instance) -> list[Job]:
    """The executed Computes of all cores, in program order, with their shares."""
    found: list[Job] = []
    for number, core in enumerate(instance.cores):
        found += _jobs_of_core(number, core.id.rank, core.events)
    sharers: dict[tuple[object, ...], list[int]] = {}
    for job in found:
        cores = sharers.setdefault(_window_key(job), [])
        if job.core not in cores:
            cores.append(job.core)
    return [_with_share(job, sharers[_window_key(job)]) for job in found]


def _window_key(job: Job) -> tuple[object, ...]:
    return (job.launch, *(window[:4] for window in job.windows))


def _with_share(job: Job, cores: Sequence[int]) -> Job:
    return Job(
        job.core, job.rank, job.launch, job.number, job.reads, job.write, job.accesses, job.windows,
        cores.index(job.core), len(cores),
    )  # fmt: skip


def _jobs_of_core(core: int, rank: int, events: Sequence[Event]) -> list[Job]:
    jobs: list[Job] = []
    reads: list[int] = []
    launch = number = 0
    for position, event in enumerate(events):
        if event.launch != launch:
            launch, number = event.launch, 0
        if not isinstance(event.operation, Compute):
            continue
        if event.kind is Kind.READ:
            reads.append(position)
            continue
        accesses = tuple(events[read].reads for read in reads)
        jobs.append(Job(core, rank, launch, number, tuple(reads), position, accesses, event.writes))
        reads, number = [], number + 1
    return jobs
