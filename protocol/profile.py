"""Hardware profiles: what the machine does, as tables whose every row cites its document.

Used by `unroll` and `machine`; a rule of the hardware is a row here, never an ``if`` elsewhere.
The documents are those of hardware.md: *devkit* (asc-devkit pages and implementation), *shmem*
(CANN SHMEM device sources). To add a profile, add a constant to `PROFILES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from .program import Pipe, Role


class Hold(Enum):
    """What a waiting CrossCoreWaitFlag holds back."""

    PIPE = "only the named pipe; the scalar runs on"
    CORE = "every pipe of the core; the named pipe is ignored"


class BarrierAll(Enum):
    """What ``aclshmem_barrier_all`` is taken to mean (hardware.md 3): it depends on the build."""

    VEC = "vec"
    MIX = "mix"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class BarrierForm:
    """One implementation of a barrier, over all ranks or (``own_rank``) over one rank's cores.

    ``participants`` must all call it equally often; ``drains``: each caller first empties all its
    pipes; ``reserved``: the flag counters it uses, by the role whose core holds the counter;
    ``reserved_two``: those it uses as well where an AIC has two AIVs.
    """

    name: str
    participants: frozenset[Role]
    drains: bool
    reserved: Mapping[Role, frozenset[int]]
    source: str
    own_rank: bool = False
    reserved_two: Mapping[Role, frozenset[int]] = field(default_factory=dict)

    def reserved_on(self, role: Role, vectors_per_cube: int) -> frozenset[int]:
        """The counters of a core of ``role`` that the barrier uses."""
        more = self.reserved_two if vectors_per_cube == 2 else {}
        return self.reserved.get(role, frozenset()) | more.get(role, frozenset())


VEC_BARRIER = BarrierForm(
    name="vec",
    participants=frozenset({Role.AIV}),
    drains=True,  # shmem: begins with PipeBarrier<PIPE_ALL>
    reserved={Role.AIV: frozenset({14})},  # devkit SyncAll<true>: id 14 on the AIVs
    source="CANN SHMEM: aclshmemx_barrier_all_vec; asc-devkit: SyncAll<true>",
)
MIX_BARRIER = BarrierForm(
    name="mix",
    participants=frozenset({Role.AIV, Role.AIC}),
    drains=True,
    reserved={  # devkit SyncAll<false>, ratio 1:1
        Role.AIC: frozenset({11, 12, 13}),
        Role.AIV: frozenset({12, 13}),
    },
    reserved_two={Role.AIC: frozenset({28, 29})},  # devkit SyncAll<false>, ratio 1:2 on dav-3510
    source="CANN SHMEM: aclshmem_barrier_all, MIX build; asc-devkit: SyncAll<false>",
)
SOFT_BARRIER = BarrierForm(
    name="soft",
    participants=frozenset({Role.AIV}),
    drains=False,  # shmem: neither a pipe barrier nor flags; the AIC returns at once
    reserved={},
    source="CANN SHMEM: barrier without the MIX macro",
)

SYNC_VECTORS = replace(VEC_BARRIER, name="SyncAll<true>", own_rank=True, source="asc-devkit: SyncAll<true>")
SYNC_ALL = replace(MIX_BARRIER, name="SyncAll<false>", own_rank=True, source="asc-devkit: SyncAll<false>")


def _barriers(mix: BarrierForm, sync_all: BarrierForm) -> Mapping[str, Mapping[BarrierAll, BarrierForm]]:
    return {
        "aclshmem_barrier_all": {
            BarrierAll.VEC: VEC_BARRIER,
            BarrierAll.MIX: mix,
            BarrierAll.SOFT: SOFT_BARRIER,
        },
        "aclshmemx_barrier_all_vec": {
            BarrierAll.VEC: VEC_BARRIER,
            BarrierAll.MIX: VEC_BARRIER,
            BarrierAll.SOFT: SOFT_BARRIER,
        },
        "SyncAll<true>": dict.fromkeys(BarrierAll, SYNC_VECTORS),
        "SyncAll<false>": dict.fromkeys(BarrierAll, sync_all),
    }


BARRIERS = _barriers(MIX_BARRIER, SYNC_ALL)
"""What each barrier function is under each reading of ``aclshmem_barrier_all`` (hardware.md 3)."""

BARRIERS_2201 = _barriers(replace(MIX_BARRIER, reserved_two={}), replace(SYNC_ALL, reserved_two={}))
"""The same on dav-2201, where a ratio of 1:2 takes no further ids (devkit SyncAll)."""

STREAM_ORDER = BarrierForm(
    name="launch",
    participants=frozenset(Role),
    drains=False,
    reserved={},
    source="launches of one stream follow each other",
    own_rank=True,
)
"""Between two launches of a rank: the next begins when every core of the last has ended."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of hardware. Sizes in bytes."""

    name: str
    title: str
    pipes: Mapping[Role, frozenset[Pipe]]
    wait_holds: Hold
    flag_ids: range = range(16)  # devkit CrossCoreSetFlag: larger ids keep their low 4 bits
    strict_ids: range = range(11)  # devkit, other editions: 0-10 are the user's
    counter_cap: int = 15  # devkit CrossCoreSetFlag: beyond it the core aborts or freezes
    event_ids: range = range(8)  # devkit SetFlag/WaitFlag (6 and 7 are used by the system)
    system_event_ids: frozenset[int] = frozenset({6, 7})  # same page: used by the system
    cores: int | None = None  # AI cores of a device; None: not known (devkit SyncAll)
    flags_merge: bool = False  # outside the devkit: one report says an unconsumed set is lost
    matmul_objects: int = 0  # devkit SyncAll: N objects of the Matmul API take the ids 0 .. 2N-1
    put_limit: int = 256 << 20  # shmem: at most 256 MB a request
    native_puts: bool = True  # shmem: UDMA exists on dav-3510 only
    single_flags: bool = True  # devkit CrossCoreSetFlag: mode 4 exists on dav-3510 only
    base_alignment: int = 512  # shmem: the base of what UDMA reads and writes in the symmetric heap
    barriers: Mapping[str, Mapping[BarrierAll, BarrierForm]] = field(default_factory=lambda: BARRIERS)
    source: str = ""

    @property
    def backlog(self) -> int:
        """How many sets of a flag may wait to be taken: more pass the cap or, where flags merge, are lost."""
        return 1 if self.flags_merge else self.counter_cap

    def ids(self, role: Role, mode: int) -> range:
        """The ids that a set or wait of ``mode`` may name on a core of ``role``.

        In mode 4 an AIC names the counters of its second AIV by ids 16 and up (devkit
        CrossCoreSetFlag).
        """
        if mode == 4 and role is Role.AIC:  # devkit CrossCoreSetFlag
            return range(2 * len(self.flag_ids))
        return self.flag_ids


ASCEND950 = Profile(
    name="ascend950",
    title="Ascend 950 (dav-3510)",
    pipes={  # devkit key_features
        Role.AIV: frozenset({Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3}),
        Role.AIC: frozenset({Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.FIX}),
    },
    wait_holds=Hold.PIPE,  # devkit CrossCoreWaitFlag, dav_3510: only the named pipe
    source="devkit basic_api/dav_3510",
)
ATLAS_A2 = Profile(
    name="atlas-a2",
    title="Atlas A2/A3 (dav-2201)",
    pipes={
        Role.AIV: frozenset({Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3}),
        Role.AIC: frozenset({Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX}),
    },
    wait_holds=Hold.CORE,  # devkit CrossCoreWaitFlag, dav_c220: every pipe of the core
    native_puts=False,
    single_flags=False,
    barriers=BARRIERS_2201,
    source="devkit basic_api/dav_c220",
)

PROFILES: Mapping[str, Profile] = {p.name: p for p in (ASCEND950, ATLAS_A2)}
