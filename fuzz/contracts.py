"""What the opaque kernel calls of a protocol compute, on bytes: inputs, results, and what is right.

A `Contract` gives the inputs of every launch, the result of a `Job` on the segments that it read, and
what the outputs must hold. Two are known: the MXFP8 product with its golden result (`product` says what
that is), and for every other call a mix of all bytes, by the origins that the protocol states (`mix`).
Used by `execute`. To add one, write a class like `Matmul` and choose it in `contract_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..protocol.errors import ParameterError, UnsupportedError
from ..protocol.instance import Access, Instance
from .contract import Contract, Expected, Segments, right_bytes
from .golden import accumulate, golden, multiply
from .jobs import Job, jobs_of
from .matrices import Inputs
from .mix import Mix
from .numerics import Bytes, Codes, Floats, dequantise
from .product import SIZES, geometry_of, is_matmul, multiplies, product_of

__all__ = [
    "SIZES", "Contract", "Job", "Matmul", "Mix", "contract_of", "geometry_of", "is_matmul", "jobs_of",
    "multiplies", "right_bytes",
]  # fmt: skip

HELD = 1 << 28
"""Bytes of products that are kept, so that a tile which is read right is multiplied once."""


def contract_of(
    instance: Instance, jobs: Sequence[Job], inputs: Sequence[Inputs] | None, seed: int = 0
) -> Contract:
    """The contract of ``instance``: of ``inputs``, one a launch, for the product, else random bytes."""
    if is_matmul(instance, jobs):
        if inputs is None:
            needed = "the product needs matrices, one Inputs for every launch (make_inputs, runner_of)"
            raise ParameterError("inputs", None, needed)
        return Matmul(instance, jobs, inputs)
    if inputs is not None:
        try:
            product_of(instance, jobs)  # which says why it is none
        except UnsupportedError as error:
            raise ParameterError("inputs", None, f"are of no use here: {error.construct}") from error
    return Mix(instance, jobs, seed)


class Matmul:
    """The MXFP8 product: one segment of A and its scales from every rank, times the rank's own B."""

    def __init__(self, instance: Instance, jobs: Sequence[Job], inputs: Sequence[Inputs]) -> None:
        if len(inputs) != instance.setup.launches:
            raise ParameterError("inputs", len(inputs), f"one for each of {instance.setup.launches} launches")
        self.given = inputs
        self.shape = inputs[0].geometry
        self.product = product_of(instance, jobs, self.shape.dtypes)
        asked = self.product.geometry
        if any(given.geometry != asked for given in inputs):
            raise ParameterError("inputs", None, f"are of {self.shape}, the instance of {asked}")
        self._b: dict[tuple[int, int, int], Floats] = {}
        self._products: dict[tuple[int, int, int, bytes, bytes], Floats] = {}
        self._results: dict[tuple[int, int, int, int, Segments], tuple[Bytes, Bytes]] = {}
        self._held = 0

    def inputs(self, launch: int, rank: int) -> Mapping[str, Bytes]:
        """The matrices of ``rank``, by the regions that they are in."""
        if not 0 <= rank < self.shape.ranks:
            return {}
        buffers = self.given[launch].buffers(rank)
        return {region: buffers[name].reshape(-1) for name, region in self.product.regions.items()}

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

    def expected(self, launch: int, rank: int) -> Expected:
        """The golden result, its segments added up in the order of the calls where each comes once."""
        orders = {
            tile: order
            for (of_launch, of_rank, tile), order in self.product.orders.items()
            if (of_launch, of_rank) == (launch, rank)
        }
        codes = golden(self.given[launch], rank, orders)
        return {self.product.output: (codes.view(np.uint8).reshape(-1), None)}

    def differs(self, region: str, right: Bytes, found: Bytes) -> npt.NDArray[np.bool_]:
        """Bytes of results that are not equal, where any NaN is equal to any other."""
        golden_codes, codes = right.view(np.uint16), np.frombuffer(found.tobytes(), np.uint16)
        different = (golden_codes != codes) & ~(_is_nan(golden_codes) & _is_nan(codes))
        of_bytes: npt.NDArray[np.bool_] = np.repeat(different, 2) & (right != found)
        return of_bytes


def _is_nan(codes: Codes) -> npt.NDArray[np.bool_]:
    """Which bf16 codes are NaN: all bits of the exponent, and some of the fraction."""
    nan: npt.NDArray[np.bool_] = (codes & 0x7FFF) > 0x7F80
    return nan


def _source(segment: Sequence[Access], number: int) -> int:
    """The rank that a segment is from: by its stated origin, else by its number."""
    origin = segment[0].origin if segment else None
    return number if origin is None else origin[0]
