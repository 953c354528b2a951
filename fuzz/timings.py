"""Timings: who steps next. Each is a small value that decides alike whenever it is used again.

Used by `execute` and drawn by `strategies`. A timing makes a `Chooser` for a model; the chooser is
asked once a step with the slots that are ready. Seed 0 is the calm order in which cores come as they
are numbered, so that a shrunk seed reads well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from ..protocol.errors import TraceError
from ..protocol.machine import Action
from .model import Model

Chooser = Callable[[list[int]], int]
"""From the slots that are ready (never none; in an order that depends on the run alone) to one of them."""


SEEDS = 1 << 32
"""Seeds are drawn below this."""


@runtime_checkable
class Timing(Protocol):
    """What decides who steps next."""

    def chooser(self, model: Model) -> Chooser:
        """A chooser for one run of ``model``, from its start."""


def _order(count: int, random: Random, seed: int) -> list[int]:
    """A random order of the numbers below ``count``; for seed 0 their own."""
    order = list(range(count))
    if seed:
        random.shuffle(order)
    return order


@dataclass(frozen=True, slots=True)
class Pct:
    """Probabilistic concurrency testing: the ready slot of highest priority steps.

    Priorities are random, one for each scalar, queue, late set and put; at ``changes`` random steps
    the slot that would step is made the last of all. A fault that needs d ordered steps is found with
    a probability that depends on d, not on how many timings there are (Burckhardt et al., ASPLOS 2010).
    """

    seed: int
    changes: int = 2

    def chooser(self, model: Model) -> Chooser:
        """The slot with the highest priority, with ``changes`` demotions on the way."""
        random = Random(self.seed)
        order = _order(len(model.actions), random, self.seed)
        priority = [0] * len(order)
        for place, slot in enumerate(order):
            priority[slot] = -place
        points = sorted(random.randrange(model.length) for _ in range(self.changes))
        return _Priorities(priority, points).choose


class _Priorities:
    def __init__(self, priority: list[int], points: list[int]) -> None:
        self.key = priority.__getitem__
        self.priority, self.points = priority, points
        self.step, self.lowest = -1, -len(priority)
        self.next = points.pop(0) if points else -1

    def choose(self, ready: list[int]) -> int:
        self.step += 1
        while self.step == self.next:
            self.priority[max(ready, key=self.key)] = self.lowest
            self.lowest -= 1
            self.next = self.points.pop(0) if self.points else -1
        return max(ready, key=self.key)


@dataclass(frozen=True, slots=True)
class Preempt:
    """Bounded preemption: a slot steps until it cannot, but for ``switches`` steps at which another does.

    ``switches``: (step, which of the others) pairs. When a slot can go no further, the next in an order
    drawn from ``seed`` does.
    """

    seed: int
    switches: tuple[tuple[int, int], ...] = ()

    def chooser(self, model: Model) -> Chooser:
        """Whoever stepped last goes on, unless it cannot or this step is a switch."""
        order = _order(len(model.actions), Random(self.seed), self.seed)
        place = [0] * len(order)
        for position, slot in enumerate(order):
            place[slot] = position
        return _Turns(place, dict(self.switches)).choose


class _Turns:
    def __init__(self, place: list[int], switches: Mapping[int, int]) -> None:
        self.key = place.__getitem__
        self.switches = switches
        self.step, self.last = -1, -1

    def choose(self, ready: list[int]) -> int:
        self.step += 1
        which = self.switches.get(self.step)
        if which is not None and len(ready) > 1:
            others = sorted((slot for slot in ready if slot != self.last), key=self.key)
            self.last = others[which % len(others)]
        elif self.last not in ready:
            self.last = min(ready, key=self.key)
        return self.last


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every ready slot is as likely as any other, by one random sequence."""

    seed: int

    def chooser(self, model: Model) -> Chooser:
        """A random slot."""
        draw = Random(self.seed).random
        return lambda ready: ready[int(draw() * len(ready))]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The steps of a trace, then those of ``after`` that are possible, and the rest in the cores' order.

    Raises TraceError at a step of the trace that is not possible where it stands.
    """

    actions: Sequence[Action]
    after: Sequence[Action] = ()

    def chooser(self, model: Model) -> Chooser:
        """The next recorded action; after the last, the ready slot of the lowest number."""
        exact = iter(enumerate(self.actions, 1))
        waiting = iter(self.after)

        def choose(ready: list[int]) -> int:
            for number, action in exact:
                slot = model.slots.get(action)
                if slot is None or slot not in ready:
                    raise TraceError(f"action {number} ({action}) is not possible there")
                return slot
            for action in waiting:
                slot = model.slots.get(action)
                if slot is not None and slot in ready:
                    return slot
            return min(ready)

        return choose


def pct(seed: int, length: int) -> Pct:
    """The usual `Pct` of ``seed``: with none to three changes."""
    return Pct(seed, seed % 4)


def preempt(seed: int, length: int) -> Preempt:
    """The usual `Preempt` of ``seed``: with none to three switches within ``length`` steps."""
    random = Random(seed)
    switches = ((random.randrange(max(length, 1)), random.randrange(8)) for _ in range(seed % 4))
    return Preempt(seed, tuple(sorted(switches)))


def uniform(seed: int, length: int) -> Uniform:
    """The `Uniform` of ``seed``."""
    return Uniform(seed)


TIMINGS: Mapping[str, Callable[[int, int], Timing]] = MappingProxyType(
    {"pct": pct, "preempt": preempt, "uniform": uniform}
)
"""Kinds of timings by name: from a seed and the steps of a run to a timing."""
