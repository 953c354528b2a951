"""A `Setup`: what an instance is made for besides its parameters.

The hardware, the reading of a function that depends on the build, how often the kernel is launched,
and faults to put in. `unroll` makes an instance for one; a trace carries one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .profile import ASCEND950, BarrierAll, Profile


class Injected(Enum):
    """A fault of the hardware or library that `unroll` may be asked to put in."""

    QUIET_TIMEOUT = "quiet-timeout"  # shmem: quiet gives up after about 1e6 polls, and nobody looks


@dataclass(frozen=True, slots=True)
class Setup:
    """``barrier_all`` None: not said, taken as vec.

    ``launches`` of a rank follow each other, nothing orders them across ranks; unless
    ``flags_cleared``, what a launch leaves in a counter is there in the next.
    """

    profile: Profile = ASCEND950
    barrier_all: BarrierAll | None = None
    launches: int = 1
    flags_cleared: bool = False
    faults: frozenset[Injected] = frozenset()

    def __post_init__(self) -> None:
        """Raises ValueError for fewer than one launch."""
        if self.launches < 1:
            raise ValueError(f"launches = {self.launches}: must be at least 1")

    @property
    def reading(self) -> BarrierAll:
        """What ``aclshmem_barrier_all`` is taken to mean."""
        return BarrierAll.VEC if self.barrier_all is None else self.barrier_all
