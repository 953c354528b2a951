"""Small correct protocols to mutate: the built-in one, and relatives that sync in other ways.

All take the parameters ranks, blocks, buffer_size and tile_cnt; the others have defaults.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..protocol.builtin import ring_all_to_all
from ..protocol.program import Protocol
from .fan_out import Between, every_other_peer, fan_out
from .staged import staged_by_pair, staged_by_rank

BASES: Mapping[str, Protocol] = {
    "ring-all-to-all": ring_all_to_all(),
    "fan-out, flag per tile": fan_out(flag_per_slot=False),
    "fan-out, flag per slot": fan_out(flag_per_slot=True),
    "fan-out, closed": fan_out(flag_per_slot=True, between=Between.BARRIER),
    "fan-out, buffers in turns": fan_out(flag_per_slot=False, between=Between.PARITY),
    "every other peer, mode 2": every_other_peer(single=False, between=Between.PARITY),
    "every other peer, mode 4": every_other_peer(single=True, between=Between.PARITY),
    "every other peer, closed": every_other_peer(single=False, between=Between.BARRIER),
    "staged by rank, mode 0": staged_by_rank(Between.BARRIER),
    "staged by pair, mode 1": staged_by_pair(Between.PARITY),
}
"""The protocols that the differential tests mutate."""

ONE_LAUNCH = frozenset({"ring-all-to-all", "fan-out, flag per tile", "fan-out, flag per slot"})
"""Bases that are safe for one launch only: with more, relaunch is VIOLATED and nothing else."""


def base(name: str) -> Protocol:
    """The base called ``name``."""
    return BASES[name]
