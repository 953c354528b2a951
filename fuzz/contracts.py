"""What the opaque kernel calls of a protocol compute, on bytes: inputs, results, and what is right.

A `Job` is one executed Compute. A `Contract` gives the inputs of every launch, the result of a job on
the segments that it read, and what the outputs must hold. Two are known: the MXFP8 product with its
golden result, and for every other call a mix of all bytes, by the origins that the protocol states.
Used by `execute`. To add one, write a class like `Matmul` and choose it in `contract_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np

from ..protocol.errors import ParameterError, UnsupportedError
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.operations import Compute
from ..protocol.program import Protocol, RegionKind, statements
from .golden import accumulate, golden, multiply
from .matrices import Geometry, Inputs
from .numerics import Bytes, Dtypes, Floats, dequantise

Segments = tuple[tuple[bytes, ...], ...]
"""What a job read: of every segment the bytes of its windows."""

HELD = 1 << 28
"""Bytes of products that are kept, so that a tile which is read right is multiplied once."""


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


class Contract(Interface):
    """What the calls of one instance compute."""

    def inputs(self, launch: int, rank: int) -> Mapping[str, Bytes]:
        """The input regions of ``rank`` in ``launch``, as flat arrays of bytes."""

    def parts(self, job: Job, window: Bytes) -> tuple[Bytes, Bytes]:
        """Views of the two halves of the job's share in the bytes of its first window."""

    def result(self, job: Job, segments: Segments) -> tuple[Bytes, Bytes]:
        """What the job writes into its `parts`, of what it read. Never changed by anybody."""

    def expected(self, launch: int, rank: int) -> Mapping[str, tuple[Bytes, Bytes | None]]:
        """What the outputs of ``rank`` must hold, with a mask of the bytes that are known (None: all)."""


def contract_of(
    instance: Instance, jobs: Sequence[Job], inputs: Sequence[Inputs] | None, seed: int = 0
) -> Contract:
    """The contract of ``instance``: of ``inputs``, one a launch, for the product, else random bytes."""
    if is_matmul(instance):
        if inputs is None:
            needed = "the product needs matrices, one Inputs for every launch (make_inputs, runner_of)"
            raise ParameterError("inputs", None, needed)
        return Matmul(instance, jobs, inputs)
    if inputs is not None:
        raise ParameterError("inputs", None, f"{instance.protocol.name} multiplies no MXFP8 matrices")
    return Mix(instance, jobs, seed)


SIZES = ("m", "k", "n")
"""Parameters that the MXFP8 product needs: rows of a tile, columns of A on one rank, columns of C."""


def is_matmul(instance: Instance) -> bool:
    """Whether the calls are the MXFP8 product: by that name, in a protocol with m, k and n."""
    return multiplies(instance.protocol)


def multiplies(protocol: Protocol) -> bool:
    """`is_matmul` of the instances of ``protocol``."""
    names = {
        statement.contract
        for program in protocol.programs.values()
        for statement in statements(program)
        if isinstance(statement, Compute)
    }
    return names == {"matmul"} and all(protocol.parameter(name) for name in SIZES)


def geometry_of(instance: Instance, dtypes: Dtypes | None = None) -> Geometry:
    """The sizes of the product that ``instance`` computes."""
    numbers = {name: value for name, value in instance.values.items() if isinstance(value, int)}
    m, tiles = numbers["m"], numbers.get("tile_cnt", 1)
    return Geometry(
        instance.ranks, numbers.get("rows", m * tiles), numbers["k"], numbers["n"], m, dtypes or Dtypes()
    )


class Matmul:
    """The MXFP8 product: one segment of A and its scales from every rank, times the rank's own B."""

    def __init__(self, instance: Instance, jobs: Sequence[Job], inputs: Sequence[Inputs]) -> None:
        if len(inputs) != instance.setup.launches:
            raise ParameterError("inputs", len(inputs), f"one for each of {instance.setup.launches} launches")
        self.given = inputs
        self.shape = inputs[0].geometry
        asked = geometry_of(instance, self.shape.dtypes)
        if any(given.geometry != asked for given in inputs):
            raise ParameterError("inputs", None, f"are of {self.shape}, the instance of {asked}")
        for job in jobs:
            self._check(job)
        self._b: dict[tuple[int, int, int], Floats] = {}
        self._products: dict[tuple[int, int, int, bytes, bytes], Floats] = {}
        self._results: dict[tuple[int, int, int, int, Segments], tuple[Bytes, Bytes]] = {}
        self._held = 0

    def _check(self, job: Job) -> None:
        shape = self.shape
        wanted = [shape.tile_rows * shape.k, shape.tile_rows * shape.scale_bytes]
        found = [[access.end - access.begin for access in segment] for segment in job.accesses]
        written = [window.end - window.begin for window in job.windows]
        if any(sizes != wanted for sizes in found) or written != [shape.tile_rows * shape.n * 2]:
            raise UnsupportedError(
                f"a product whose segments are not one window of A ({wanted[0]} bytes) and one of scales "
                f"({wanted[1]}), or that does not write a tile of {shape.tile_rows} x {shape.n}"
            )
        if any(not 0 <= _source(segment, i) < shape.ranks for i, segment in enumerate(job.accesses)):
            raise UnsupportedError("a product with more segments than ranks")

    def inputs(self, launch: int, rank: int) -> Mapping[str, Bytes]:
        """The matrices of ``rank``."""
        return {name: array.reshape(-1) for name, array in self.given[launch].buffers(rank).items()}

    def parts(self, job: Job, window: Bytes) -> tuple[Bytes, Bytes]:
        """The job's columns of the tile, in two halves."""
        return self._halves(job, window.reshape(self.shape.tile_rows, self.shape.n * 2))

    def _halves(self, job: Job, tile: Bytes) -> tuple[Bytes, Bytes]:
        low, high = (self.shape.n * i // job.shares for i in (job.share, job.share + 1))
        middle = (low + high) // 2
        return tile[:, low * 2 : middle * 2], tile[:, middle * 2 : high * 2]

    def result(self, job: Job, segments: Segments) -> tuple[Bytes, Bytes]:
        """The job's columns of the product, accumulated in the order of the segments."""
        key = (job.launch, job.rank, job.share, job.shares, segments)
        found = self._results.get(key)
        if found is None:
            codes = accumulate(
                self._product(job, _source(job.accesses[i], i), *segment)
                for i, segment in enumerate(segments)
            )
            tile = codes.view(np.uint8).reshape(self.shape.tile_rows, self.shape.n * 2)
            found = self._results[key] = self._halves(job, tile)
            self._hold(tile.nbytes + sum(len(part) for segment in segments for part in segment))
        return found

    def _product(self, job: Job, source: int, a: bytes, scale: bytes) -> Floats:
        key = (job.launch, job.rank, source, a, scale)
        found = self._products.get(key)
        if found is None:
            rows, dtypes = self.shape.tile_rows, self.shape.dtypes
            values = np.frombuffer(a, np.uint8).reshape(rows, -1)
            scales = np.frombuffer(scale, np.uint8).reshape(rows, -1)
            b = self._b_of(job.launch, job.rank, source)
            found = self._products[key] = multiply(dequantise(values, scales, dtypes.a), b)
            self._hold(found.nbytes)
        return found

    def _b_of(self, launch: int, rank: int, source: int) -> Floats:
        found = self._b.get((launch, rank, source))
        if found is None:
            found = dequantise(*self.given[launch].b_segment(rank, source), self.shape.dtypes.b)
            self._b[launch, rank, source] = found
        return found

    def _hold(self, more: int) -> None:
        """Forget all products when they grow too large: they can be computed again."""
        self._held += more
        if self._held > HELD:
            self._held = 0
            self._products.clear()
            self._results.clear()

    def expected(self, launch: int, rank: int) -> Mapping[str, tuple[Bytes, Bytes | None]]:
        """The golden result."""
        return {"c": (golden(self.given[launch], rank).view(np.uint8).reshape(-1), None)}


def _source(segment: Sequence[Access], number: int) -> int:
    """The rank that a segment is from: by its stated origin, else by its number."""
    origin = segment[0].origin if segment else None
    return number if origin is None else origin[0]


class Mix:
    """Any other call: each byte of a job's share is a sum, mod 256, of the bytes that it read.

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

    def expected(self, launch: int, rank: int) -> Mapping[str, tuple[Bytes, Bytes | None]]:
        """What the jobs write if every byte that they read comes from its stated origin.

        A byte is known if all jobs that write it agree on it and state their origins.
        """
        found: dict[str, tuple[Bytes, Bytes]] = {}
        doubtful: dict[str, Bytes] = {}
        for job in self.jobs:
            if job.launch != launch or job.rank != rank or not job.windows:
                continue
            window = job.windows[0]
            if self.kinds[window.region] is not RegionKind.OUTPUT or window.begin < 0:
                continue
            values, known = _grown(found.get(window.region), window.end)
            (doubt, _) = _grown(_pair(doubtful.get(window.region)), window.end)
            self._expect(job, values[window.begin : window.end], known[window.begin : window.end],
                         doubt[window.begin : window.end])  # fmt: skip
            found[window.region], doubtful[window.region] = (values, known), doubt
        return {name: (values, _certain(known, doubtful[name])) for name, (values, known) in found.items()}

    def _expect(self, job: Job, values: Bytes, known: Bytes, doubt: Bytes) -> None:
        segments = self._right(job)
        for i, part in enumerate(self.parts(job, values)):
            mask, doubted = self.parts(job, known)[i], self.parts(job, doubt)[i]
            if segments is None:
                doubted[:] = 1
                continue
            right = self.result(job, segments)[i]
            doubted |= mask & (part != right)
            part[:] = right
            mask[:] = 1

    def _right(self, job: Job) -> Segments | None:
        """What ``job`` must read; None if some origin is not stated."""
        segments = []
        for accesses in job.accesses:
            parts = [right_bytes(self, job.launch, access) for access in accesses]
            if any(part is None for part in parts):
                return None
            segments.append(tuple(part for part in parts if part is not None))
        return tuple(segments)


def right_bytes(contract: Contract, launch: int, access: Access) -> bytes | None:
    """What a reader must find in ``access``; None if its origin is not stated, or is no input."""
    if access.origin is None:
        return None
    rank, region, offset = access.origin
    source = contract.inputs(launch, rank).get(region)
    size = access.end - access.begin
    if source is None or offset < 0 or offset + size > len(source):
        return None
    return source[offset : offset + size].tobytes()


def _mixed(data: bytes, size: int) -> Bytes:
    if size == 0:
        return np.zeros(0, np.uint8)
    padded = np.zeros(-(-len(data) // size) * size, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    mixed: Bytes = padded.reshape(-1, size).sum(axis=0, dtype=np.uint64).astype(np.uint8)
    return mixed


def _certain(known: Bytes, doubtful: Bytes) -> Bytes:
    certain: Bytes = np.where(doubtful != 0, np.uint8(0), known)
    return certain


def _pair(array: Bytes | None) -> tuple[Bytes, Bytes] | None:
    return None if array is None else (array, array)


def _grown(pair: tuple[Bytes, Bytes] | None, size: int) -> tuple[Bytes, Bytes]:
    """``pair`` with at least ``size`` bytes each, new ones 0."""
    old = pair or (np.zeros(0, np.uint8), np.zeros(0, np.uint8))
    more = max(0, size - len(old[0]))
    grown = [np.concatenate([array, np.zeros(more, np.uint8)]) for array in old]
    return grown[0], grown[1]
