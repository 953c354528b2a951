"""What a contract is: inputs, results and what is right, for the opaque calls of one instance.

`contracts` has the product, `mix` every other call. Used by `execute`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt

from ..protocol.instance import Access
from .jobs import Job
from .numerics import Bytes

Segments = tuple[tuple[bytes, ...], ...]
"""What a job read: of every segment the bytes of its windows."""

Expected = Mapping[str, tuple[Bytes, Bytes | None]]
"""What outputs must hold, by region, with a mask of the bytes that are known (None: all)."""


class Contract(Interface):
    """What the calls of one instance compute."""

    def inputs(self, launch: int, rank: int) -> Mapping[str, Bytes]:
        """The input regions of ``rank`` in ``launch``, as flat arrays of bytes; none of no such rank."""

    def parts(self, job: Job, window: Bytes) -> tuple[Bytes, Bytes]:
        """Views of the two halves of the job's share in the bytes of its first window."""

    def result(self, job: Job, segments: Segments) -> tuple[Bytes, Bytes]:
        """What the job writes into its `parts`, of what it read. Never changed by anybody."""

    def expected(self, launch: int, rank: int) -> Expected:
        """What the outputs of ``rank`` must hold."""

    def differs(self, region: str, right: Bytes, found: Bytes) -> npt.NDArray[np.bool_]:
        """Of every byte of output ``region``, whether it stands for another value than it must."""


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
