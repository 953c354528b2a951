"""From a failed run to its fault: which property, who did what, and the shortest timing that shows it.

Knows nothing of obligations: it looks at one run's writes and names what misled the reader. What it
returns has been replayed on the Machine. Used by `search`; `minimise` shortens the timing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..protocol.describe import (
    access_name,
    core_name,
    describe_waiting,
    origin_name,
)
from ..protocol.instance import Access, Event, Instance, Kind
from ..protocol.machine import Action, Moment, Phase
from ..protocol.program import RegionKind
from ..protocol.replay import ShownStep, run
from ..protocol.trace import Claim, DataNote, Trace, encode, to_words, write_actions, write_setup
from .blame import (
    Blame,
    Written,
    at_place,
    begin_of,
    end_of,
    event_of,
    happened,
    who_writes,
    writes_of,
)
from .blame_output import blame_of_output, headline_of_output
from .execute import COUNTER_CAP, EVENT_HANG, SET_TWICE, Outcome, Passed, Runner, WrongRead
from .minimise import calmed, passed_after, shortened, stuck_after, wrong_read_after

DEADLOCK = "deadlock"


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong in one timing of ``instance``: the property and code that `prove` would name.

    A kernel that computes, undisturbed, something else than the golden result is ``golden-result``, which
    `prove` knows nothing of.

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


def diagnose(runner: Runner, outcome: Outcome, data: DataNote | None = None) -> Fault:
    """The fault of ``outcome``, a failed run of ``runner``; ``data`` as its trace is to note it."""
    if outcome.wrong_reads:
        return _wrong_read(runner, outcome, outcome.wrong_reads[0], data)
    slots = [runner.model.slots[action] for action in outcome.actions]
    if outcome.passed is not None and not outcome.wrong_outputs:
        return _passed_cap(runner, slots, outcome.passed, data)
    if not outcome.finished:
        slots = calmed(runner.model, slots, stuck_after(runner))
        blame = _stuck(runner.instance, slots, runner)
        return _fault(runner, slots, _headline_of_stuck(runner), blame, data)
    wrong = outcome.wrong_outputs[0]
    headline = headline_of_output(runner.instance, wrong)
    return _fault(runner, slots, headline, blame_of_output(runner.instance, wrong, outcome.actions), data)


def code_of(runner: Runner, outcome: Outcome) -> str:
    """The code of the fault of ``outcome``, a failed run of ``runner``; quicker than `diagnose`."""
    if outcome.wrong_reads:
        read = outcome.wrong_reads[0]
        return _mislead_by(runner.instance, outcome.actions[: read.step], read).code
    if outcome.passed is not None and not outcome.wrong_outputs:
        return outcome.passed.code
    if not outcome.finished:
        return DEADLOCK
    return blame_of_output(runner.instance, outcome.wrong_outputs[0], outcome.actions).code


def _fault(runner: Runner, slots: Sequence[int], headline: str, blame: Blame, data: DataNote | None) -> Fault:
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
        slots = slots[: happened(runner.instance, actions)[blame.last] + 1]
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


def _mislead_by(instance: Instance, actions: Sequence[Action], read: WrongRead) -> Blame:
    """Who is to blame for what ``read`` finds after ``actions``."""
    when = happened(instance, actions)
    begins, ends = Moment(read.core, read.event, Phase.BEGIN), Moment(read.core, read.event, Phase.END)
    reader = instance.cores[read.core].events[read.event]
    who = core_name(instance, read.core, reader)
    needed, others = _writers(instance, read.access, reader.launch)
    if not _covered(read.access, needed):
        needed, others = _with_forwarded(instance, read.access, needed, others, reader.launch)
    began = when[begins]
    late = [w for w in needed if when.get(end_of(w), began) >= began]
    intruders = [w for w in others if begin_of(w) in when and _after_needed(w, needed, when)]
    wanted = _wanted(read.access)
    claim = Claim(to_words([begins]), to_words([ends]))
    if not _covered(read.access, needed):
        code = "foreign-data" if others else "never-written"
        reason = "but only other data goes there" if others else "and nobody ever writes it there"
        first = at_place(f"{who} needs {wanted} in {access_name(read.access)}", reader)
        return Blame("no-read-before-write", code, [first, reason], claim)
    if late:
        writer = late[0]
        text = f"before the data that {who_writes(instance, writer)} puts there has landed"
        return Blame(
            "no-read-before-write", "read-before-write",
            [
                at_place(f"{who} reads {access_name(read.access)}", reader),
                at_place(text, event_of(instance, writer)),
            ],
            Claim(to_words([begins]), to_words([end_of(writer)])), begins,
        )  # fmt: skip
    if intruders:
        return _overwritten(instance, intruders[-1], read, who, reader)
    between = instance.setup.launches > 1
    return Blame(
        "relaunch" if between else "no-overwrite-before-read",
        "relaunch-source-overwritten" if between else "source-overwritten",
        [
            at_place(f"{who} finds other data than {wanted} in {access_name(read.access)}", reader),
            at_place(
                "as what it was put from had changed before it was complete", event_of(instance, needed[0])
            ),
        ],
        claim,
    )


def _overwritten(instance: Instance, writer: Written, read: WrongRead, who: str, reader: Event) -> Blame:
    event = event_of(instance, writer)
    between = event.launch != reader.launch
    what = (
        origin_name(writer[2].origin, writer[2].end - writer[2].begin) if writer[2].origin else "other data"
    )
    return Blame(
        "relaunch" if between else "no-overwrite-before-read",
        "relaunch-overwrite" if between else "overwrite",
        [
            at_place(f"{who_writes(instance, writer)} writes {what} into {access_name(writer[2])}", event),
            at_place(f"while {who} still reads {_wanted(read.access)} from it", reader),
        ],
        Claim(
            to_words([begin_of(writer), Moment(read.core, read.event, Phase.BEGIN)]),
            to_words([Moment(read.core, read.event, Phase.END)]),
        ),
    )


def _writers(instance: Instance, access: Access, launch: int) -> tuple[list[Written], list[Written]]:
    """Writes of bytes of ``access``: those that bring what it needs, and all others."""
    needed: list[Written] = []
    others: list[Written] = []
    for written, event in writes_of(instance):
        if written[2][:2] != access[:2]:
            continue
        if written[2].begin < access.end and access.begin < written[2].end:
            right = event.launch == launch and _brings(written[2], access)
            (needed if right else others).append(written)
    return needed, others


def _with_forwarded(
    instance: Instance, access: Access, needed: list[Written], others: list[Written], launch: int
) -> tuple[list[Written], list[Written]]:
    """The same, with puts from what is no input among the needed, if they complete it.

    Their bytes may be those that the reader needs, which somebody else wrote there (forwarding).
    """
    inputs = {r.name for r in instance.protocol.regions if r.kind is RegionKind.INPUT}
    forwarded = [
        w
        for w in others
        if (event := event_of(instance, w)).kind is Kind.PUT
        and event.launch == launch
        and event.reads[0].region not in inputs
    ]
    if not _covered(access, [*needed, *forwarded]):
        return needed, others
    return [*needed, *forwarded], [w for w in others if w not in forwarded]


def _covered(access: Access, needed: Sequence[Written]) -> bool:
    """Whether the writes ``needed`` together bring every byte of ``access``."""
    reached = access.begin
    for _, _, written in sorted(needed, key=lambda w: w[2].begin):
        if written.begin <= reached:
            reached = max(reached, written.end)
    return reached >= access.end


def _brings(written: Access, read: Access) -> bool:
    """Whether the bytes that ``written`` and ``read`` share come from where the reader needs them."""
    if written.origin is None or read.origin is None or written.origin[:2] != read.origin[:2]:
        return False
    return written.origin[2] - written.begin == read.origin[2] - read.begin


def _after_needed(writer: Written, needed: Sequence[Written], when: Mapping[Moment, int]) -> bool:
    """Whether ``writer`` can have changed what a needed write left: it was not complete before that began."""
    first = min((when[begin_of(w)] for w in needed if begin_of(w) in when), default=len(when))
    return when.get(end_of(writer), first) >= first


def _wanted(access: Access) -> str:
    """What a reader needs, by its origin."""
    return "it" if access.origin is None else origin_name(access.origin, access.end - access.begin)


# --- a run that is stuck, or ends with wrong outputs --------------------------------------------


def _stuck(instance: Instance, slots: Sequence[int], runner: Runner) -> Blame:
    machine = runner.model.machine
    state = machine.initial()
    for slot in slots:
        state = machine.step(state, runner.model.actions[slot])
    lines: dict[str, list[int]] = {}
    for core, number in machine.waiting(state):
        event = instance.cores[core].events[number]
        if event.kind is not Kind.END:
            lines.setdefault(at_place(f"{describe_waiting(event)} for ever", event), []).append(core)
    conflict = [f"{_cores(instance, cores)} {text}" for text, cores in lines.items()]
    return Blame("deadlock-freedom", DEADLOCK, conflict, Claim(stuck=True))


def _cores(instance: Instance, cores: Sequence[int]) -> str:
    first = str(instance.cores[cores[0]].id)
    return first if len(cores) == 1 else f"{first} (and {len(cores) - 1} more)"


def _headline_of_stuck(runner: Runner) -> str:
    return "the run stops before every core is done"


# --- a counter above its cap --------------------------------------------------------------------


def _passed_cap(runner: Runner, slots: Sequence[int], passed: Passed, data: DataNote | None) -> Fault:
    fails = passed_after(runner, passed)
    slots = calmed(runner.model, shortened(slots, fails), fails)
    event = runner.instance.cores[passed.core].events[passed.event]
    core, flag, space, launch = passed.counter
    is_event = passed.counter.is_event
    what = f"event {flag} of {space}" if is_event else f"flag {flag}"
    who = runner.instance.cores[core].id
    first = at_place(f"{what} of {who} is set when it already is {passed.cap}", event)
    blame = Blame(
        "deadlock-freedom" if passed.code == EVENT_HANG else "flag-range",
        passed.code,
        [first, _AND_THEN[passed.code]],
        Claim(counter=(core, flag, space, launch, passed.cap)),
    )
    how = "is set twice" if is_event else f"passes its cap of {passed.cap}"
    return _fault(runner, slots, f"{what} of {who} {how}", blame, data)


_AND_THEN = {
    COUNTER_CAP: "and above its cap a counter stops its core: the run ends there",
    EVENT_HANG: "and the core waits later until all its pipes are empty, which then never ends",
    SET_TWICE: "and what an event does that is set twice is not defined",
}
