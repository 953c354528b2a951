"""Making a failing timing short: fewest steps first, then fewest switches between cores.

Works on slots of a `Runner`. Every shorter version is run with its bytes, so that what is left fails by
itself; steps that have become impossible are left out. Used by `diagnose`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ..protocol.machine import ActionKind
from .execute import Execution, Passed, Runner, WrongRead
from .model import Model

Fails = Callable[[Sequence[int]], list[int] | None]
"""From slots to those of them that were possible, or None if what was left out was needed."""

CHECKS = 4_000
"""How many shorter versions are tried."""


def wrong_read_after(runner: Runner, read: WrongRead) -> Fails:
    """Whether ``read`` finds wrong bytes if it ends after these steps."""
    reader = reader_slot(runner.model, read.core, read.event)

    def fails(slots: Sequence[int]) -> list[int] | None:
        walk, done = _walked(runner, slots)
        if not walk.is_running(read.core, read.event):
            return None
        walk.step(reader)
        wrong = any((w.core, w.event) == (read.core, read.event) for w in walk.wrong)
        return done if wrong else None

    return fails


def reader_slot(model: Model, core: int, event: int) -> int:
    """The slot whose step begins and ends the read ``event`` of ``core``."""
    code = model.cores[core]
    pipe = code.steps[event].event.pipe
    return code.slot + 1 + code.queues.index(pipe) if pipe in code.queues else code.slot


def stuck_after(runner: Runner) -> Fails:
    """Whether nothing can step after these steps, and not every core has ended."""

    def fails(slots: Sequence[int]) -> list[int] | None:
        walk, done = _walked(runner, slots)
        return done if not walk.ready and not walk.finished() and not walk.stopped else None

    return fails


def passed_after(runner: Runner, passed: Passed) -> Fails:
    """Whether the same counter passes its cap in these steps; those that come after are left out."""

    def fails(slots: Sequence[int]) -> list[int] | None:
        walk = runner.begin()
        done: list[int] = []
        for slot in slots:
            if walk.is_ready(slot):
                walk.step(slot)
                done.append(slot)
                if walk.passed is not None and walk.passed.counter == passed.counter:
                    return done if walk.passed.code == passed.code else None
        return None

    return fails


def _walked(runner: Runner, slots: Sequence[int]) -> tuple[Execution, list[int]]:
    walk = runner.begin()
    done: list[int] = []
    for slot in slots:
        if walk.stopped:
            break
        if walk.is_ready(slot):
            walk.step(slot)
            done.append(slot)
    return walk, done


def shortened(slots: Sequence[int], fails: Fails) -> list[int]:
    """``slots`` without those that are not needed, tried in blocks of falling size."""
    best = fails(slots)
    if best is None:
        return list(slots)
    checks, size = 0, max(1, len(best) // 2)
    while checks < CHECKS:
        position, before = len(best), len(best)
        while position > 0 and checks < CHECKS:
            first = max(0, position - size)
            shorter = fails(best[:first] + best[position:])
            checks += 1
            if shorter is not None:
                best = shorter
            position = min(first, len(best))
        if size == 1 and len(best) == before:
            break
        size = max(1, size // 2)
    return best


def calmed(model: Model, slots: Sequence[int], fails: Fails) -> list[int]:
    """``slots`` in an order with fewer switches between cores that fails as well."""
    best = list(slots)
    checks = 0
    position = 0
    while position + 1 < len(best) and checks < CHECKS:
        here = _core(model, best[position])
        later = next(
            (i for i in range(position + 1, len(best)) if _core(model, best[i]) == here), position + 1
        )
        if later > position + 1:
            moved = [*best[: position + 1], best[later], *best[position + 1 : later], *best[later + 1 :]]
            done = fails(moved)
            checks += 1
            if done is not None and len(done) == len(best) and switches(model, done) <= switches(model, best):
                best = done
        position += 1
    return best


def switches(model: Model, slots: Sequence[int]) -> int:
    """How often another core steps than before; a meeting of cores is nobody's."""
    cores = [core for core in (_core(model, slot) for slot in slots) if core >= 0]
    return sum(a != b for a, b in pairwise(cores))


def _core(model: Model, slot: int) -> int:
    action = model.actions[slot]
    return -1 if action.kind is ActionKind.MEET else action.core
