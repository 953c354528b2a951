"""The contract of calls of which nothing is known: results are sums of all bytes that were read.

What is right follows from the origins that the protocol states: of readers, and of what is put or
written into an output. Used by `contracts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..protocol.instance import Access, Event, Instance
from ..protocol.operations import Compute
from ..protocol.program import RegionKind
from .contract import Expected, Segments, right_bytes
from .jobs import Job
from .numerics import Bytes


class Mix:
    """Each byte of a job's share is a sum, mod 256, of the bytes that it read.

    Every byte read is in some sum, with every share, so that one wrong byte shows. Inputs are random.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self.instance, self.jobs, self.seed = instance, jobs, seed
        self.kinds = {region.name: region.kind for region in instance.protocol.regions}
        self._sizes = self._input_sizes()
        self._given: dict[tuple[int, int], Mapping[str, Bytes]] = {}
        self._results: dict[tuple[int, Segments], Bytes] = {}

    def _input_sizes(self) -> dict[str, int]:
        """How far somebody looks into each input, by access or as an origin."""
        sizes = {name: 0 for name, kind in self.kinds.items() if kind is RegionKind.INPUT}
        for core in self.instance.cores:
            for event in core.events:
                for access in (*event.reads, *event.writes):
                    ends = [(access.region, access.end)]
                    if access.origin is not None:
                        size = access.end - access.begin
                        ends.append((access.origin[1], access.origin[2] + size))
                    for region, end in ends:
                        if region in sizes:
                            sizes[region] = max(sizes[region], end)
        return sizes

    def inputs(self, launch: int, rank: int) -> Mapping[str, Bytes]:
        """Random bytes, others for every launch and rank."""
        if not 0 <= rank < self.instance.ranks:
            return {}
        if (launch, rank) not in self._given:
            random = np.random.default_rng([self.seed, launch, rank])
            self._given[launch, rank] = {
                name: random.integers(0, 256, size, np.uint8) for name, size in self._sizes.items()
            }
        return self._given[launch, rank]

    def parts(self, job: Job, window: Bytes) -> tuple[Bytes, Bytes]:
        """A run of the window's bytes, in two halves."""
        low, high = (len(window) * i // job.shares for i in (job.share, job.share + 1))
        middle = (low + high) // 2
        return window[low:middle], window[middle:high]

    def result(self, job: Job, segments: Segments) -> tuple[Bytes, Bytes]:
        """The sums, as many as the share has bytes."""
        window = job.windows[0]
        size = window.end - window.begin
        low, high = (size * i // job.shares for i in (job.share, job.share + 1))
        middle = (low + high) // 2 - low
        key = (high - low, segments)
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = _mixed(b"".join(p for s in segments for p in s), high - low)
        return found[:middle], found[middle:]

    def expected(self, launch: int, rank: int) -> Expected:
        """What writers leave if every byte that they read comes from its stated origin.

        A byte is known if all that write it state their origins and agree on it.
        """
        outputs = {
            name: _Known(self._ends(name, launch, rank))
            for name, kind in self.kinds.items()
            if kind is RegionKind.OUTPUT
        }
        for job in self.jobs:
            if job.launch == launch and job.rank == rank and job.windows:
                known = outputs.get(job.windows[0].region)
                if known is not None and _is_inside(job.windows[0]):
                    self._expect(job, known.within(job.windows[0].begin, job.windows[0].end))
        for event in self._plain_writes(launch):
            access = event.writes[0]
            known = outputs.get(access.region)
            if access.rank == rank and known is not None and _is_inside(access):
                right = None if access.add else right_bytes(self, launch, access)
                data = None if right is None else np.frombuffer(right, np.uint8)
                known.within(access.begin, access.end).say(data)
        return {name: (known.values, known.certain()) for name, known in outputs.items()}

    def differs(self, region: str, right: Bytes, found: Bytes) -> npt.NDArray[np.bool_]:
        """Bytes that are not equal."""
        different: npt.NDArray[np.bool_] = right != found
        return different

    def _ends(self, region: str, launch: int, rank: int) -> int:
        """How far ``region`` of ``rank`` is written in ``launch``."""
        ends = (
            access.end
            for core in self.instance.cores
            for event in core.events
            if event.launch == launch
            for access in event.writes
            if access.region == region and access.rank == rank
        )
        return max(0, max(ends, default=0))

    def _plain_writes(self, launch: int) -> Iterator[Event]:
        """Puts and writes of ``launch`` that are of no call."""
        for core in self.instance.cores:
            for event in core.events:
                if event.launch == launch and event.writes and not isinstance(event.operation, Compute):
                    yield event

    def _expect(self, job: Job, known: _Known) -> None:
        segments = self._right(job)
        results = (None, None) if segments is None else self.result(job, segments)
        of = [self.parts(job, array) for array in (known.values, known.told, known.doubted)]
        for half, right in enumerate(results):
            _Known.of(*(parts[half] for parts in of)).say(right)

    def _right(self, job: Job) -> Segments | None:
        """What ``job`` must read; None if some origin is not stated."""
        segments = []
        for accesses in job.accesses:
            parts = [right_bytes(self, job.launch, access) for access in accesses]
            if any(part is None for part in parts):
                return None
            segments.append(tuple(part for part in parts if part is not None))
        return tuple(segments)


class _Known:
    """What is known of the bytes of an output: which are told, and of which writers disagree."""

    def __init__(self, size: int) -> None:
        self.values, self.told, self.doubted = (np.zeros(size, np.uint8) for _ in range(3))

    @classmethod
    def of(cls, values: Bytes, told: Bytes, doubted: Bytes) -> _Known:
        """Views of the arrays of another."""
        known = cls(0)
        known.values, known.told, known.doubted = values, told, doubted
        return known

    def within(self, begin: int, end: int) -> _Known:
        """A part of it, to change."""
        return _Known.of(self.values[begin:end], self.told[begin:end], self.doubted[begin:end])

    def say(self, right: Bytes | None) -> None:
        """Some writer leaves ``right`` here; None: something that is not known."""
        if right is None:
            self.doubted[:] = 1
            return
        self.doubted |= self.told & (self.values != right)
        self.values[:] = right
        self.told[:] = 1

    def certain(self) -> Bytes:
        """The mask of bytes on which all that write them agree."""
        certain: Bytes = np.where(self.doubted != 0, np.uint8(0), self.told)
        return certain


def _is_inside(access: Access) -> bool:
    """Whether ``access`` is of bytes that there can be: a fault may move it before its region."""
    return 0 <= access.begin < access.end


def _mixed(data: bytes, size: int) -> Bytes:
    if size == 0:
        return np.zeros(0, np.uint8)
    padded = np.zeros(-(-len(data) // size) * size, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    mixed: Bytes = padded.reshape(-1, size).sum(axis=0, dtype=np.uint64).astype(np.uint8)
    return mixed
