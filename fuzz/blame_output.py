"""Whom to blame for outputs that are wrong though every reader found what it needs.

Used by `diagnose`; `outputs` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..protocol.describe import access_name
from ..protocol.instance import Instance, Kind
from ..protocol.machine import Action, Moment, Phase
from ..protocol.trace import Claim, to_words
from .blame import Blame, Written, at_place, begin_of, end_of, event_of, happened, who_writes, writes_of
from .outputs import Flaw, WrongOutput

NOT_GOLDEN = "golden-result"
"""What is violated where the kernel computes something else than the golden result, undisturbed."""


def headline_of_output(instance: Instance, wrong: WrongOutput) -> str:
    """Where an output is wrong, and how."""
    launch = f", launch {wrong.launch + 1}" if instance.setup.launches > 1 else ""
    how = {
        Flaw.MISSING: "are never written",
        Flaw.TWICE: "are written more than once",
        Flaw.DIFFERS: "are wrong, though every reader found what it needs",
    }[wrong.flaw]
    count = "1 byte" if wrong.count == 1 else f"{wrong.count} bytes"
    return f"rank {wrong.rank}{launch}: {count} of {wrong.region}, from byte {wrong.first} on, {how}"


def blame_of_output(instance: Instance, wrong: WrongOutput, actions: Sequence[Action]) -> Blame:
    """Who wrote the first of the wrong bytes in ``actions``, a whole run, or that nobody did."""
    of_launch = _writers(instance, wrong, own=True)
    once = f"while every byte of {wrong.region} is to be written once a launch"
    if wrong.flaw is Flaw.MISSING:
        text = "no core writes them, or not every block that has a share of them"
        return _blame(instance, "coverage", "output-missing", [], text, once)
    if wrong.flaw is Flaw.TWICE:
        return _blame(instance, "coverage", "output-twice", of_launch, once)
    return _of_different(instance, wrong, of_launch, happened(instance, actions))


def _of_different(
    instance: Instance, wrong: WrongOutput, writers: Sequence[Written], when: Mapping[Moment, int]
) -> Blame:
    ended = _ended(instance, wrong, when)
    late = [w for w in writers if when[end_of(w)] > ended]
    if late:
        text = "and need not be complete when the launch ends"
        return _blame(instance, "completion", "not-complete-at-end", late, text)
    first = min((when[begin_of(w)] for w in writers), default=ended)
    others = _writers(instance, wrong, own=False)
    intruders = [w for w in others if when[end_of(w)] > first and when[begin_of(w)] < ended]
    if intruders:
        text = f"before launch {wrong.launch + 1}, whose result is there, has ended on rank {wrong.rank}"
        if event_of(instance, intruders[0]).launch < wrong.launch:
            text = f"in launch {wrong.launch + 1} of rank {wrong.rank}, though it is of an earlier one"
        return _blame(instance, "relaunch", "relaunch-overwrite", intruders[:1], text)
    if sum(not written[2].share for written in writers) > 1:
        text = "and which of them comes last depends on the timing"
        return _blame(instance, "no-write-conflict", "write-conflict", writers, text)
    if any(event_of(instance, w).kind is Kind.PUT for w in writers):
        text = "and what it is put from changes before it is complete"
        return _blame(instance, "no-overwrite-before-read", "source-overwritten", writers, text)
    text = "and nobody else: it is not the product of the segments of that tile, those of each rank once"
    return _blame(instance, NOT_GOLDEN, "not-golden", writers, text)


def _ended(instance: Instance, wrong: WrongOutput, when: Mapping[Moment, int]) -> int:
    """When the outputs of that launch were taken: where the next begins, or at the end of the run."""
    if wrong.launch + 1 == instance.setup.launches:
        return len(when)
    return max(
        when[Moment(core, number, Phase.END)]
        for core, (identity, events) in enumerate(instance.cores)
        if identity.rank == wrong.rank
        for number, event in enumerate(events)
        if event.launch == wrong.launch
        if event.kind is Kind.END or event.barrier
    )


def _blame(instance: Instance, name: str, code: str, writers: Sequence[Written], *reasons: str) -> Blame:
    """The blame on ``writers``, of whom the first two are named; it claims that every core ends."""
    ends = [Moment(core, len(events) - 1, Phase.END) for core, (_, events) in enumerate(instance.cores)]
    told = [
        at_place(f"{who_writes(instance, w)} writes {access_name(w[2])}", event_of(instance, w))
        for w in writers[:2]
    ]
    return Blame(name, code, [*told, *reasons], Claim(to_words(ends)))


def _writers(instance: Instance, wrong: WrongOutput, *, own: bool) -> list[Written]:
    """Writes of the first wrong byte, of its own launch or of all others."""
    return [
        written
        for written, event in writes_of(instance)
        if written[2][:2] == (wrong.rank, wrong.region)
        and written[2].begin <= wrong.first < written[2].end
        and (event.launch == wrong.launch) is own
    ]
