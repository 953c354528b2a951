"""Memory of the executable model: a numpy byte array for every region of every rank, kept between runs.

Used by `execute`.
"""

from __future__ import annotations

import numpy as np

from ..protocol.errors import LimitError
from ..protocol.instance import Access, Instance
from ..protocol.program import RegionKind
from .contract import Contract
from .numerics import Bytes

POISON = 0xFF
"""What memory holds before anything is written: NaN as fp8 value, as e8m0 scale and as bf16 result."""

MAX_BYTES = 1 << 32
"""Of all memory that an instance may touch."""

Place = tuple[int, str]
"""A region of a rank."""


class Memory:
    """The bytes of every region of every rank that somebody touches, kept between runs."""

    def __init__(self, instance: Instance, contract: Contract) -> None:
        self.instance, self.contract = instance, contract
        self.kinds = {region.name: region.kind for region in instance.protocol.regions}
        self.low, self.arrays = self._laid_out()
        self.outputs = [
            (place, array[-self.low[place] :])
            for place, array in self.arrays.items()
            if self.kinds[place[1]] is RegionKind.OUTPUT
        ]

    def _laid_out(self) -> tuple[dict[Place, int], dict[Place, Bytes]]:
        spans: dict[Place, tuple[int, int]] = {}
        for rank in range(self.instance.ranks):
            for name, data in self.contract.inputs(0, rank).items():
                spans[rank, name] = (0, len(data))
            for name, (right, _) in self.contract.expected(0, rank).items():
                spans[rank, name] = (0, len(right))
        for core in self.instance.cores:
            for event in core.events:
                for access in (*event.reads, *event.writes):
                    low, high = spans.get((access.rank, access.region), (0, 0))
                    spans[access.rank, access.region] = (min(low, access.begin), max(high, access.end))
        needed = sum(high - low for low, high in spans.values())
        if needed > MAX_BYTES:
            raise LimitError("memory", MAX_BYTES, f"an instance that touches {needed} bytes")
        arrays = {place: np.empty(high - low, np.uint8) for place, (low, high) in spans.items()}
        return {place: low for place, (low, _) in spans.items()}, arrays

    def view(self, access: Access) -> Bytes:
        """The bytes of ``access``."""
        place = (access.rank, access.region)
        low = self.low[place]
        return self.arrays[place][access.begin - low : access.end - low]

    def reset(self) -> None:
        """As before the first step: poison everywhere, then the inputs of the first launch."""
        for array in self.arrays.values():
            array.fill(POISON)
        for rank in range(self.instance.ranks):
            self.put_inputs(0, rank)

    def put_inputs(self, launch: int, rank: int) -> None:
        """Give ``rank`` its inputs of ``launch``."""
        for name, data in self.contract.inputs(launch, rank).items():
            low = -self.low[rank, name]
            self.arrays[rank, name][low : low + len(data)] = data
