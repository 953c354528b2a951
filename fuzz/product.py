"""Whether the calls of an instance are the MXFP8 product whose golden result is known, and its sizes.

Regions, tiles and the order of the segments are found from the windows that the calls read and write,
whatever they are called; the sizes of a tile are the parameters m, k and n. Used by `contracts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..protocol.errors import UnsupportedError
from ..protocol.evaluate import evaluate
from ..protocol.instance import Access, Instance
from ..protocol.operations import Compute
from ..protocol.program import Protocol, RegionKind, statements
from .jobs import Job, jobs_of
from .matrices import Geometry
from .numerics import Dtypes

SIZES = ("m", "k", "n")
"""Parameters that the MXFP8 product needs: rows of a tile, columns of A on one rank, columns of C."""

NAMES = ("a", "scale_a", "b", "scale_b")
"""The buffers of `matrices.Inputs`. B is read by none of the windows: its regions have these names."""


class Place(NamedTuple):
    """Where the bytes of a window are from: a rank, a region of it, the first byte there."""

    rank: int
    region: str
    begin: int


@dataclass(frozen=True, slots=True)
class Product:
    """The product that an instance computes.

    ``regions``: the region of each of `NAMES` that the protocol has; ``output``: that of C. ``orders``:
    by launch, rank and tile, the ranks whose segments are added up, in that order, where each comes once.
    """

    geometry: Geometry
    regions: Mapping[str, str]
    output: str
    orders: Mapping[tuple[int, int, int], Sequence[int]]


def multiplies(protocol: Protocol) -> bool:
    """Whether the calls of ``protocol`` are named the product, in a protocol with m, k and n."""
    names = {
        statement.contract
        for program in protocol.programs.values()
        for statement in statements(program)
        if isinstance(statement, Compute)
    }
    return names == {"matmul"} and all(protocol.parameter(name) for name in SIZES)


def is_matmul(instance: Instance, jobs: Sequence[Job] | None = None) -> bool:
    """Whether ``instance`` computes the MXFP8 product, in the layout of the golden result.

    So does one in which no tile is left; `geometry_of` refuses that. ``jobs``: its own, if known.
    """
    if not multiplies(instance.protocol):
        return False
    found = jobs_of(instance) if jobs is None else jobs
    try:
        return not found or product_of(instance, found) is not None
    except UnsupportedError:
        return False


def geometry_of(instance: Instance, dtypes: Dtypes | None = None) -> Geometry:
    """The sizes of the product that ``instance`` computes. Raises UnsupportedError where it does not."""
    return product_of(instance, jobs_of(instance), dtypes).geometry


def product_of(instance: Instance, jobs: Sequence[Job], dtypes: Dtypes | None = None) -> Product:
    """The product of ``instance``. Raises UnsupportedError that says why it is not the known one."""
    name = instance.protocol.name
    if not multiplies(instance.protocol):
        raise UnsupportedError(f"{name} multiplies no MXFP8 matrices (calls named matmul, and m, k and n)")
    if not jobs:
        raise UnsupportedError(f"{name} leaves nothing to multiply here")
    output = _output(instance, jobs)
    a, scale_a = (_source_region(instance, jobs, buffer) for buffer in (0, 1))
    refused: UnsupportedError | None = None
    for rows in dict.fromkeys(_rows(instance, jobs, output, a)):
        shape = _shape(instance, rows, dtypes)
        try:
            orders = _orders(instance, jobs, shape)
        except UnsupportedError as error:  # another number of rows may fit
            refused = refused or error
            continue
        return Product(shape, _regions(instance.protocol, a, scale_a), output, orders)
    raise refused or UnsupportedError(f"a product of no rows in {name}")


def _shape(instance: Instance, rows: int, dtypes: Dtypes | None) -> Geometry:
    m, k, n = (_number(instance, size) for size in SIZES)
    return Geometry(instance.ranks, rows, k, n, m, dtypes or Dtypes())


def _number(instance: Instance, name: str) -> int:
    value = instance.values[name]
    if not isinstance(value, int):
        raise UnsupportedError(f"a product whose {name} is an array")
    return value


def _regions(protocol: Protocol, a: str, scale_a: str) -> dict[str, str]:
    """The regions of the buffers; those of B only where the protocol has them."""
    inputs = {region.name for region in protocol.regions if region.kind is RegionKind.INPUT}
    others = {name: name for name in NAMES[2:] if name in inputs - {a, scale_a}}
    return {"a": a, "scale_a": scale_a, **others}


def _output(instance: Instance, jobs: Sequence[Job]) -> str:
    """The one region that the calls write."""
    kinds = {region.name: region.kind for region in instance.protocol.regions}
    names = {window.region for job in jobs for window in job.windows}
    if len(names) != 1 or kinds[next(iter(names))] is not RegionKind.OUTPUT:
        raise UnsupportedError(f"a product that is written to {_listed(names)}, not to one output")
    return next(iter(names))


def _source_region(instance: Instance, jobs: Sequence[Job], buffer: int) -> str:
    """The one input that window ``buffer`` of every segment is from."""
    inputs = {region.name for region in instance.protocol.regions if region.kind is RegionKind.INPUT}
    windows = {segment[buffer] for job in jobs for segment in job.accesses if len(segment) > buffer}
    places = (_place(window, inputs) for window in windows)
    names = {place.region for place in places if place is not None}
    if len(names) != 1 or not names <= inputs:
        what = ("A", "scales")[buffer]
        raise UnsupportedError(f"a product whose {what} are stated to be from {_listed(names)}, no one input")
    return next(iter(names))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nowhere"


def _place(window: Access, inputs: set[str]) -> Place | None:
    """Where the bytes of ``window`` must be from: as it states, or where it stands in an input."""
    if window.origin is not None:
        return Place(*window.origin)
    return Place(window.rank, window.region, window.begin) if window.region in inputs else None


def _rows(instance: Instance, jobs: Sequence[Job], output: str, a: str) -> Iterator[int]:
    """What the rows that a rank receives may be: from the size of C, from that of A, from the windows."""
    k, n = _number(instance, "k"), _number(instance, "n")
    for region, row in ((output, n * 2), (a, instance.ranks * k)):
        size = _size(instance, region)
        if size and row and size % row == 0:
            yield size // row
    last = max(window.end for job in jobs for window in job.windows)
    if n and last >= n * 2:
        yield last // (n * 2)


def _size(instance: Instance, name: str) -> int | None:
    """The bytes of region ``name`` of rank 0."""
    region = next(region for region in instance.protocol.regions if region.name == name)
    return None if region.bytes is None else evaluate(region.bytes, {**instance.values, "rank": 0})


def _orders(
    instance: Instance, jobs: Sequence[Job], shape: Geometry
) -> dict[tuple[int, int, int], Sequence[int]]:
    """In which order segments are added up; raises UnsupportedError where they are none of ``shape``."""
    inputs = {region.name for region in instance.protocol.regions if region.kind is RegionKind.INPUT}
    found: dict[tuple[int, int, int], set[tuple[int, ...]]] = {}
    for job in jobs:
        tile = _tile(job, shape)
        order = tuple(_source(job, number, shape, inputs) for number in range(len(job.accesses)))
        found.setdefault((job.launch, job.rank, tile), set()).add(order)
    alone = {key: next(iter(orders)) for key, orders in found.items() if len(orders) == 1}
    return {key: order for key, order in alone.items() if sorted(order) == list(range(shape.ranks))}


def _tile(job: Job, shape: Geometry) -> int:
    """The tile of C that ``job`` writes."""
    size = shape.tile_rows * shape.n * 2
    sizes = [window.end - window.begin for window in job.windows]
    if sizes != [size] or job.windows[0].begin % size or job.windows[0].begin < 0:
        raise UnsupportedError(f"a product that does not write a tile of {shape.tile_rows} x {shape.n}")
    return job.windows[0].begin // size


def _source(job: Job, number: int, shape: Geometry, inputs: set[str]) -> int:
    """The rank that segment ``number`` is from: by its stated origin, else by its number."""
    segment = job.accesses[number]
    wanted = [shape.tile_rows * shape.k, shape.tile_rows * shape.scale_bytes]
    if [window.end - window.begin for window in segment] != wanted:
        raise UnsupportedError(
            f"a product whose segments are not one window of A ({wanted[0]} bytes) and one of scales "
            f"({wanted[1]})"
        )
    places = [_place(window, inputs) for window in segment]
    ranks = {place.rank for place in places if place is not None} or {number}
    source = next(iter(ranks))
    if len(ranks) > 1 or not 0 <= source < shape.ranks:
        raise UnsupportedError("a product with more segments than ranks, or of a segment of two ranks")
    starts = {
        place.begin / row
        for place, row in zip(places, (shape.k, shape.scale_bytes), strict=True)
        if place is not None
    }
    if len(starts) > 1 or any(not _is_tile(start, job.rank, shape) for start in starts):
        raise UnsupportedError(f"a product whose segment {number} is no tile of the rows for its rank")
    return source


def _is_tile(start: float, rank: int, shape: Geometry) -> bool:
    """Whether row ``start`` of A begins a tile of what its owner sends to ``rank``."""
    within = start - rank * shape.rows
    return 0 <= within < shape.rows and within % shape.tile_rows == 0
