"""What `minimize` takes out: single synchronisations, and those that only make sense together.

A set without its wait is no smaller protocol but a broken one, so every set is also taken out with the
waits that it can release; barriers are also taken out in pairs, since one may stand in for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ..protocol.edits import Edit, Site, Synchronisation, edited, sites
from ..protocol.flags import Counter
from ..protocol.instance import Instance
from ..protocol.program import Barrier, Protocol, SetEvent, SetFlag, WaitEvent, WaitFlag
from ..protocol.sync import Sync, Use, synchronise
from .edit_list import removal

PAIRED_BARRIERS = 6
"""Up to so many barriers are also taken out two at a time; more of them only all together."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Synchronisations, by their numbers, that are taken out together."""

    members: frozenset[int]

    @property
    def ordered(self) -> list[int]:
        """The numbers in program order."""
        return sorted(self.members)


@dataclass(frozen=True, slots=True)
class Synchronisations:
    """The synchronisations of a protocol, numbered in program order."""

    protocol: Protocol
    found: tuple[tuple[Site, Synchronisation], ...]

    def without(self, members: frozenset[int]) -> Protocol:
        """The protocol without some of them."""
        edits: list[Edit] = [removal(*self.found[number]) for number in sorted(members)]
        return edited(self.protocol, edits)


def synchronisations(protocol: Protocol) -> Synchronisations:
    """The synchronisations of ``protocol``."""
    found = tuple((site, s) for site, s in sites(protocol) if isinstance(s, Synchronisation))
    return Synchronisations(protocol, found)


def units(known: Synchronisations, instances: list[Instance]) -> list[Unit]:
    """What is taken out, singles first. Sets and waits belong together that do in one of ``instances``.

    In these, the operations of events must be the very objects that ``known`` has.
    """
    groups = [frozenset([number]) for number in range(len(known.found))]
    partners = sorted({pair for instance in instances for pair in _partners(known, instance)})
    groups += [frozenset(pair) for pair in partners]
    groups += _joined(partners)
    barriers = [n for n, (_, s) in enumerate(known.found) if isinstance(s, Barrier)]
    if len(barriers) <= PAIRED_BARRIERS:
        groups += [frozenset(pair) for pair in combinations(barriers, 2)]
    if len(barriers) > 1:
        groups.append(frozenset(barriers))
    return [Unit(members) for members in dict.fromkeys(groups)]


def _partners(known: Synchronisations, instance: Instance) -> Iterator[tuple[int, int]]:
    """Which sets and waits use one counter of ``instance``."""
    numbers = {id(s): number for number, (_, s) in enumerate(known.found)}
    sync = synchronise(instance)
    waits: dict[Counter, set[int]] = {
        counter: _statements(sync, uses, numbers) for counter, uses in sync.waits.items()
    }
    for counter in sync.channels:
        sets = _statements(sync, [use for rise in sync.rises(counter) for use in rise], numbers)
        yield from ((a, b) for a in sets for b in waits.get(counter, ()))


def _statements(sync: Sync, uses: list[Use], numbers: dict[int, int]) -> set[int]:
    operations = (sync.instance.cores[use.core].events[use.event].operation for use in uses)
    kinds = SetFlag | WaitFlag | SetEvent | WaitEvent
    return {numbers[id(o)] for o in operations if isinstance(o, kinds) and id(o) in numbers}


def _joined(pairs: list[tuple[int, int]]) -> list[frozenset[int]]:
    """The pairs that share a member, together: what uses the same flags in one direction."""
    groups: list[set[int]] = []
    for pair in pairs:
        touched = [group for group in groups if group & set(pair)]
        merged = set(pair).union(*touched)
        groups = [group for group in groups if group not in touched] + [merged]
    return [frozenset(group) for group in groups]
