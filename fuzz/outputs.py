"""What a run must leave in the outputs: every byte of a covered one, once a launch, and the right ones.

Which bytes are written, and how often, is the same in every timing that ends; what they hold is compared
after each launch. Used by `execute`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain

import numpy as np

from ..protocol.evaluate import evaluate
from ..protocol.instance import Access, Core, Event, Instance
from ..protocol.operations import Compute
from ..protocol.program import Role
from .contract import Contract
from .numerics import Bytes


class Flaw(Enum):
    """What is wrong with bytes of an output."""

    MISSING = "nothing writes them"
    TWICE = "they are written twice"
    DIFFERS = "they hold something else"


@dataclass(frozen=True, slots=True)
class WrongOutput:
    """Bytes of an output that are not what they must be: the first of ``count``, and how they are wrong."""

    launch: int
    rank: int
    region: str
    first: int
    count: int
    flaw: Flaw = Flaw.DIFFERS


@dataclass(frozen=True, slots=True)
class Judged:
    """How much of a run is compared with what it must be: windows that are read, bytes of outputs.

    Bytes count once for every launch. False where there are none of either: only hangs can show.
    """

    reads: int
    output_bytes: int

    def __bool__(self) -> bool:
        return bool(self.reads or self.output_bytes)

    def __str__(self) -> str:
        if not self:
            return "no reader or output states its bytes: only hangs can show"
        reads, size = (_count(self.reads, "read"), _count(self.output_bytes, "byte"))
        return f"{reads} and {size} of outputs judged in each timing"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Outputs:
    """What the outputs of ``instance`` must hold after every launch, found once."""

    def __init__(self, instance: Instance, contract: Contract) -> None:
        launches = range(instance.setup.launches)
        self.contract = contract
        self.expected = [[contract.expected(n, r) for r in range(instance.ranks)] for n in launches]
        covered = _covered(instance)
        self.flawed = [
            wrong
            for launch in launches
            for (region, rank), size in covered.items()
            for wrong in _counted(instance, launch, rank, region, size)
        ]
        self.bytes = sum(
            max(covered.get((region, rank), 0), self._known(launch, rank, region))
            for launch in launches
            for rank in range(instance.ranks)
            for region in {*self.expected[launch][rank], *(name for name, _ in covered)}
        )

    def _known(self, launch: int, rank: int, region: str) -> int:
        """Of how many bytes it is known what they must be."""
        right, known = self.expected[launch][rank].get(region, (np.zeros(0, np.uint8), None))
        return len(right) if known is None else int(np.count_nonzero(known))

    def wrong(self, found: Sequence[Sequence[Mapping[str, Bytes]]]) -> list[WrongOutput]:
        """What is wrong in ``found``, the outputs of a run that ended, by launch, rank and region."""
        return [*self.flawed, *self._different(found)]

    def _different(self, found: Sequence[Sequence[Mapping[str, Bytes]]]) -> Iterator[WrongOutput]:
        flawed = {(wrong.launch, wrong.rank, wrong.region) for wrong in self.flawed}
        for launch, ranks in enumerate(found):
            for rank, regions in enumerate(ranks):
                for region, (right, known) in self.expected[launch][rank].items():
                    if (launch, rank, region) in flawed:
                        continue  # said above, with its cause
                    bytes_ = regions[region][: len(right)]
                    if known is None and bytes_.tobytes() == right.tobytes():
                        continue
                    differs = self.contract.differs(region, right, bytes_)
                    places = np.flatnonzero(differs if known is None else differs & (known != 0))
                    if len(places):
                        yield WrongOutput(launch, rank, region, int(places[0]), len(places))


def _covered(instance: Instance) -> dict[tuple[str, int], int]:
    """Outputs whose every byte must be written, by region and rank, with their sizes."""
    return {
        (region.name, rank): evaluate(region.bytes, {**instance.values, "rank": rank})
        for region in instance.protocol.regions
        if region.covered and region.bytes is not None
        for rank in range(instance.ranks)
    }


def _counted(instance: Instance, launch: int, rank: int, region: str, size: int) -> Iterator[WrongOutput]:
    """The bytes of a covered output that are never written in ``launch``, or more than once."""
    times = np.zeros(size, np.uint16)
    for begin, end in _windows(instance, launch, rank, region):
        times[max(begin, 0) : max(end, 0)] += 1
    for flaw, places in (
        (Flaw.MISSING, np.flatnonzero(times == 0)),
        (Flaw.TWICE, np.flatnonzero(times > 1)),
    ):
        if len(places):
            yield WrongOutput(launch, rank, region, int(places[0]), len(places), flaw)


def _windows(instance: Instance, launch: int, rank: int, region: str) -> Iterator[tuple[int, int]]:
    """The windows of ``region`` that are wholly written in ``launch``, each as often as it is.

    A window whose shares several blocks write is wholly written as often as every block writes its own.
    """
    shares: dict[tuple[int, int, Role, str], list[int]] = {}
    for core, event, access in _writes(instance, launch):
        if (access.region, access.rank) != (region, rank) or access.begin >= access.end:
            continue
        if access.share:
            operation = event.operation
            call = operation.contract if isinstance(operation, Compute) else ""
            key = (access.begin, access.end, core.id.role, call)
            shares.setdefault(key, [0] * instance.blocks)[core.id.block] += 1
        else:
            yield access.begin, access.end
    for (begin, end, _, _), times in shares.items():
        fewest = min(times)
        again = fewest > 0 and max(times) > fewest  # some block writes its share once more
        yield from chain([(begin, end)] * fewest, [(begin, end)] if again else [])


def _writes(instance: Instance, launch: int) -> Iterator[tuple[Core, Event, Access]]:
    for core in instance.cores:
        for event in core.events:
            if event.launch == launch:
                for access in event.writes:
                    yield core, event, access
