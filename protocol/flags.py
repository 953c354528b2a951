"""Cross-core flags: whose counter a set raises, and who must set with it (hardware.md 2).

One table of modes. Used by `sync` and `machine`, which must mean the same by a flag.
"""

from __future__ import annotations

from typing import NamedTuple

from .instance import Event, Instance
from .program import Role


class Counter(NamedTuple):
    """A counter: a cross-core flag of core ``core``, or an intra-core event (``space`` its pipes).

    Modes 0, 1 and 2 share one counter an id (``space`` empty), mode 4 has its own. ``launch`` is 0
    throughout where counters carry over from launch to launch.
    """

    core: int
    flag: int
    space: str = ""
    launch: int = 0

    @property
    def is_event(self) -> bool:
        """Whether it is the bit of an intra-core event."""
        return "_" in self.space


SINGLE = "mode 4"
"""The space of mode-4 counters."""


class Channel(NamedTuple):
    """Where sets of one mode come from: the ``setters`` must all set, once each, for one event."""

    mode: int
    setters: tuple[int, ...]


class Raise(NamedTuple):
    """What a set takes part in: its channel, and the counters that one event of it raises."""

    channel: Channel
    counters: tuple[Counter, ...]


def counter_of(instance: Instance, core: int, event: Event) -> Counter:
    """The counter that a wait takes from, or that the set of an intra-core event sets."""
    space = event.link or (SINGLE if event.mode == 4 else "")
    return Counter(core, event.flag, space, event.launch if instance.setup.flags_cleared else 0)


class Wiring:
    """Which cores the flags of an instance join."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._of_rank: dict[tuple[int, Role], list[int]] = {}
        self._of_block: dict[tuple[int, int, Role], list[int]] = {}
        for number, core in enumerate(instance.cores):
            rank, role, block, _ = core.id
            self._of_rank.setdefault((rank, role), []).append(number)
            self._of_block.setdefault((rank, block, role), []).append(number)

    def raised_by(self, core: int, event: Event) -> Raise:
        """What cross-core set ``event`` of core ``core`` raises, and with whom."""
        launch = event.launch if self.instance.setup.flags_cleared else 0
        if event.mode == 4:
            return Raise(Channel(4, (core,)), self._partner(core, event.flag, launch))
        rank, role, block, _ = self.instance.cores[core].id
        block_mates = self._of_block[rank, block, role]
        setters = self._of_rank[rank, role] if event.mode == 0 else block_mates
        receivers = setters
        if event.mode == 2:
            receivers = self._of_block.get((rank, block, _OTHER[role]), [])
        counters = tuple(Counter(r, event.flag, "", launch) for r in receivers)
        return Raise(Channel(event.mode, tuple(setters)), counters)

    def _partner(self, core: int, flag: int, launch: int) -> tuple[Counter, ...]:
        """The counter that a mode-4 set raises: AIV 1's id f is the AIC's id f + 16, both ways.

        (devkit CrossCoreSetFlag). None where the core has no such AIV.
        """
        rank, role, block, sub = self.instance.cores[core].id
        count = len(self.instance.profile.flag_ids)
        if role is Role.AIV:
            (cube,) = self._of_block[rank, block, Role.AIC]
            return (Counter(cube, flag + count * sub, SINGLE, launch),)
        vectors = self._of_block[rank, block, Role.AIV]
        chosen = flag // count
        return (Counter(vectors[chosen], flag % count, SINGLE, launch),) if chosen < len(vectors) else ()


_OTHER = {Role.AIC: Role.AIV, Role.AIV: Role.AIC}
