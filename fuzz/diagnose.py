"""From a failed run to its fault: which property, who did what, and the shortest timing that shows it.

Knows nothing of obligations: it looks at one run's writes and names what misled the reader. What it
returns has been replayed on the Machine. Used by `search`; `minimise` shortens the timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.describe import (
    access_name,
    core_name,
    describe_waiting,
    origin_name,
    place_of,
)
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.machine import Action, Machine, Moment, Phase
from ..protocol.replay import ShownStep, run
from ..protocol.trace import Claim, DataNote, Trace, encode, to_words, write_actions, write_setup
from .execute import Outcome, Runner, WrongRead
from .memory import POISON
from .minimise import calmed, shortened, stuck_after, wrong_read_after

DEADLOCK = "deadlock"

Written = tuple[int, int, Access]
"""A write: its core, its event, and which of the event's accesses."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in one timing of ``instance``: the property and code that `prove` would name.

    ``headline`` says where it shows, ``conflict`` how it came about, ``steps`` the timing, and ``trace``
    is that timing for ``mc2proof replay``.
    """

    instance: Instance
    property: str
    code: str
    headline: str
    conflict: Sequence[str]
    steps: Sequence[ShownStep]
    trace: str


@dataclass(frozen=True, slots=True)
class _Blame:
    """``last``: the point that ends the timing in which ``claim`` holds; None: the whole timing."""

    property: str
    code: str
    conflict: list[str]
    claim: Claim
    last: Moment | None = None


def diagnose(runner: Runner, outcome: Outcome, data: DataNote | None = None) -> Fault:
    """The fault of ``outcome``, a failed run of ``runner``; ``data`` as its trace is to note it."""
    if outcome.wrong_reads:
        return _wrong_read(runner, outcome, outcome.wrong_reads[0], data)
    slots = [runner.model.slots[action] for action in outcome.actions]
    if not outcome.finished:
        slots = calmed(runner.model, slots, stuck_after(runner))
        blame = _stuck(runner.instance, slots, runner)
        return _fault(runner, slots, _headline_of_stuck(runner), blame, data)
    return _fault(runner, slots, _headline_of_output(runner, outcome), _wrong_output(runner, outcome), data)


def code_of(runner: Runner, outcome: Outcome) -> str:
    """The code of the fault of ``outcome``, a failed run of ``runner``; quicker than `diagnose`."""
    if outcome.wrong_reads:
        read = outcome.wrong_reads[0]
        return _mislead_by(runner.instance, outcome.actions[: read.step], read).code
    if not outcome.finished:
        return DEADLOCK
    return _wrong_output(runner, outcome).code


def _fault(
    runner: Runner, slots: Sequence[int], headline: str, blame: _Blame, data: DataNote | None
) -> Fault:
    """The fault that ``blame`` says, replayed on the Machine."""
    instance = runner.instance
    actions = [runner.model.actions[slot] for slot in slots]
    steps, holds = run(instance, actions, blame.claim)
    if not holds:  # no AssertionError: that is what a test of a user's own takes for a wrong protocol
        raise RuntimeError(f"the Machine does not show {blame.code}")
    parameters = {n: list(v) if isinstance(v, tuple) else v for n, v in instance.values.items()}
    trace = Trace(
        instance.protocol.digest(), parameters, write_setup(instance.setup), blame.property, blame.code,
        blame.conflict, blame.claim, write_actions(actions), data,
    )  # fmt: skip
    return Fault(instance, blame.property, blame.code, headline, blame.conflict, steps, encode(trace))


# --- a reader that finds wrong bytes ------------------------------------------------------------


def _wrong_read(runner: Runner, outcome: Outcome, read: WrongRead, data: DataNote | None) -> Fault:
    model = runner.model
    code = code_of(runner, outcome)
    found = wrong_read_after(runner, read)

    def fails(slots: Sequence[int]) -> list[int] | None:
        """Of a shorter timing, whether the same reader is misled in the same way."""
        done = found(slots)
        if done is None:
            return None
        return (
            done
            if _mislead_by(runner.instance, [model.actions[s] for s in done], read).code == code
            else None
        )

    whole = [model.slots[action] for action in outcome.actions[: read.step]]
    slots = calmed(model, shortened(whole, fails), fails)
    actions = [model.actions[slot] for slot in slots]
    blame = _mislead_by(runner.instance, actions, read)
    if blame.last is not None:
        slots = slots[: _happened(runner.instance, actions)[blame.last] + 1]
    return _fault(runner, slots, headline_of_read(runner.instance, read), blame, data)


def headline_of_read(instance: Instance, read: WrongRead) -> str:
    """Where wrong bytes were read: rank, tile, segment."""
    core = instance.cores[read.core]
    launch = f", launch {read.launch + 1}" if instance.setup.launches > 1 else ""
    origin = read.access.origin
    whose = f" of rank {origin[0]}" if origin is not None else ""
    how = "changes while it is read" if read.torn else "is wrong"
    return (
        f"rank {core.id.rank}{launch}, tile {read.tile}: segment {read.segment}{whose} {how} "
        f"(read by {core.id})"
    )


def _happened(instance: Instance, actions: Sequence[Action]) -> Mapping[Moment, int]:
    """The points that ``actions`` bring about, with the number of their action."""
    machine = Machine(instance)
    state, found = machine.initial(), {}
    for number, action in enumerate(actions):
        for moment in machine.points(state, action):
            found[moment] = number
        state = machine.step(state, action)
    return found


def _mislead_by(instance: Instance, actions: Sequence[Action], read: WrongRead) -> _Blame:
    """Who is to blame for what ``read`` finds after ``actions``."""
    when = _happened(instance, actions)
    begins, ends = Moment(read.core, read.event, Phase.BEGIN), Moment(read.core, read.event, Phase.END)
    reader = instance.cores[read.core].events[read.event]
    who = core_name(instance, read.core, reader)
    needed, others = _writers(instance, read.access, reader.launch)
    began = when[begins]
    late = [w for w in needed if when.get(_end(w), began) >= began]
    intruders = [w for w in others if _begin(w) in when and _after_needed(w, needed, when)]
    wanted = _wanted(read.access)
    claim = Claim(to_words([begins]), to_words([ends]))
    if not _covered(read.access, needed):
        code = "foreign-data" if others else "never-written"
        reason = "but only other data goes there" if others else "and nobody ever writes it there"
        first = _at(f"{who} needs {wanted} in {access_name(read.access)}", reader)
        return _Blame("no-read-before-write", code, [first, reason], claim)
    if late:
        writer = late[0]
        text = f"before the data that {_core_of(instance, writer)} puts there has landed"
        return _Blame(
            "no-read-before-write", "read-before-write",
            [_at(f"{who} reads {access_name(read.access)}", reader), _at(text, _event(instance, writer))],
            Claim(to_words([begins]), to_words([_end(writer)])), begins,
        )  # fmt: skip
    if intruders:
        return _overwritten(instance, intruders[-1], read, who, reader)
    between = instance.setup.launches > 1
    return _Blame(
        "relaunch" if between else "no-overwrite-before-read",
        "relaunch-source-overwritten" if between else "source-overwritten",
        [
            _at(f"{who} finds other data than {wanted} in {access_name(read.access)}", reader),
            _at("as what it was put from had changed before it was complete", _event(instance, needed[0])),
        ],
        claim,
    )


def _overwritten(instance: Instance, writer: Written, read: WrongRead, who: str, reader: Event) -> _Blame:
    event = _event(instance, writer)
    between = event.launch != reader.launch
    what = (
        origin_name(writer[2].origin, writer[2].end - writer[2].begin) if writer[2].origin else "other data"
    )
    return _Blame(
        "relaunch" if between else "no-overwrite-before-read",
        "relaunch-overwrite" if between else "overwrite",
        [
            _at(f"{_core_of(instance, writer)} writes {what} into {access_name(writer[2])}", event),
            _at(f"while {who} still reads {_wanted(read.access)} from it", reader),
        ],
        Claim(
            to_words([_begin(writer), Moment(read.core, read.event, Phase.BEGIN)]),
            to_words([Moment(read.core, read.event, Phase.END)]),
        ),
    )


def _writers(instance: Instance, access: Access, launch: int) -> tuple[list[Written], list[Written]]:
    """Writes of bytes of ``access``: those that bring what it needs, and all others."""
    needed: list[Written] = []
    others: list[Written] = []
    for written, event in _writes(instance):
        if written[2][:2] != access[:2]:
            continue
        if written[2].begin < access.end and access.begin < written[2].end:
            right = event.launch == launch and _brings(written[2], access)
            (needed if right else others).append(written)
    return needed, others


def _covered(access: Access, needed: Sequence[Written]) -> bool:
    """Whether the writes ``needed`` together bring every byte of ``access``."""
    reached = access.begin
    for _, _, written in sorted(needed, key=lambda w: w[2].begin):
        if written.begin <= reached:
            reached = max(reached, written.end)
    return reached >= access.end


def _writes(instance: Instance) -> Iterator[tuple[Written, Event]]:
    for core, (_, events) in enumerate(instance.cores):
        for number, event in enumerate(events):
            for access in event.writes:
                yield (core, number, access), event


def _brings(written: Access, read: Access) -> bool:
    """Whether the bytes that ``written`` and ``read`` share come from where the reader needs them."""
    if written.origin is None or read.origin is None or written.origin[:2] != read.origin[:2]:
        return False
    return written.origin[2] - written.begin == read.origin[2] - read.begin


def _after_needed(writer: Written, needed: Sequence[Written], when: Mapping[Moment, int]) -> bool:
    """Whether ``writer`` can have changed what a needed write left: it was not complete before that began."""
    first = min((when[_begin(w)] for w in needed if _begin(w) in when), default=len(when))
    return when.get(_end(writer), first) >= first


def _begin(written: Written) -> Moment:
    return Moment(written[0], written[1], Phase.BEGIN)


def _end(written: Written) -> Moment:
    return Moment(written[0], written[1], Phase.END)


def _event(instance: Instance, written: Written) -> Event:
    return instance.cores[written[0]].events[written[1]]


def _core_of(instance: Instance, written: Written) -> str:
    return core_name(instance, written[0], _event(instance, written))


def _wanted(access: Access) -> str:
    """What a reader needs, by its origin."""
    return "it" if access.origin is None else origin_name(access.origin, access.end - access.begin)


def _at(text: str, event: Event) -> str:
    """``text`` with the place of ``event``, as the conflicts of a report end."""
    file, line = place_of(event)
    return f"{text}  ({file}:{line})" if file else text


# --- a run that is stuck, or ends with wrong outputs --------------------------------------------


def _stuck(instance: Instance, slots: Sequence[int], runner: Runner) -> _Blame:
    machine = runner.model.machine
    state = machine.initial()
    for slot in slots:
        state = machine.step(state, runner.model.actions[slot])
    lines: dict[str, list[int]] = {}
    for core, number in machine.waiting(state):
        event = instance.cores[core].events[number]
        if event.kind is not Kind.END:
            lines.setdefault(_at(f"{describe_waiting(event)} for ever", event), []).append(core)
    conflict = [f"{_cores(instance, cores)} {text}" for text, cores in lines.items()]
    return _Blame("deadlock-freedom", DEADLOCK, conflict, Claim(stuck=True))


def _cores(instance: Instance, cores: Sequence[int]) -> str:
    first = str(instance.cores[cores[0]].id)
    return first if len(cores) == 1 else f"{first} (and {len(cores) - 1} more)"


def _headline_of_stuck(runner: Runner) -> str:
    return "the run stops before every core is done"


def _headline_of_output(runner: Runner, outcome: Outcome) -> str:
    wrong = outcome.wrong_outputs[0]
    launch = f", launch {wrong.launch + 1}" if runner.instance.setup.launches > 1 else ""
    return (
        f"rank {wrong.rank}{launch}: {wrong.count} bytes of {wrong.region} are wrong, from byte "
        f"{wrong.first} on, though every reader found what it needs"
    )


def _wrong_output(runner: Runner, outcome: Outcome) -> _Blame:
    """Outputs that are wrong by themselves: never written, or written by two."""
    wrong = outcome.wrong_outputs[0]
    found = outcome.outputs[wrong.launch][wrong.rank][wrong.region]
    missing = found[wrong.first] == POISON
    ends = [
        Moment(core, len(events) - 1, Phase.END) for core, (_, events) in enumerate(runner.instance.cores)
    ]
    reason = "and nothing writes them" if missing else "and what writes them is wrong or not alone"
    return _Blame(
        "coverage" if missing else "no-write-conflict",
        "output-missing" if missing else "write-conflict",
        [f"bytes of {wrong.region} of rank {wrong.rank}, from byte {wrong.first} on, are not right", reason],
        Claim(to_words(ends)),
    )  # fmt: skip
