"""Replaying a trace on the Machine: every action must be possible, and the claim must hold after it.

Used for every counterexample before it is shown, and by ``mc2proof replay``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .describe import barrier_name, core_name, describe_event, describe_landing, place_of
from .errors import TraceError
from .flags import Counter
from .instance import Event, Instance, Kind
from .machine import Action, ActionKind, Machine, Moment, State
from .profile import PROFILES, STREAM_ORDER, Profile
from .program import Protocol
from .trace import Claim, decode, from_words, read_actions, read_setup
from .unroll import Limits, unroll


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step as a reader sees it: both halves of a landing, and all calls of a meeting, are one."""

    core: str
    pipe: str
    operation: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a trace."""

    protocol: Protocol
    parameters: dict[str, int | list[int]]
    property: str
    code: str
    conflict: list[str]
    steps: list[ShownStep]
    reproduced: bool


def replay(
    text: str,
    protocols: Sequence[Protocol],
    *,
    profiles: Sequence[Profile] = (),
    limits: Limits | None = None,
) -> Replay:
    """Run the trace ``text`` on the one of ``protocols`` that it was made from.

    Raises TraceError if none matches, or an action is not possible where the trace has it.
    """
    trace = decode(text)
    protocol = next((p for p in protocols if p.digest() == trace.digest), None)
    if protocol is None:
        known = ", ".join(f"{p.name} ({p.digest()})" for p in protocols)
        raise TraceError(
            f"the trace is of program {trace.digest}, not of {known}: give the sources that it was made "
            "from; if these are they, they have changed since"
        )
    setup = read_setup(trace.setup, {**PROFILES, **{p.name: p for p in profiles}})
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in trace.parameters.items()}
    instance = unroll(protocol, values, setup, limits=limits)
    steps, reproduced = run(instance, read_actions(trace.actions), trace.claim)
    return Replay(protocol, trace.parameters, trace.property, trace.code, trace.conflict, steps, reproduced)


def run(instance: Instance, actions: Sequence[Action], claim: Claim) -> tuple[list[ShownStep], bool]:
    """Execute ``actions`` from the start; returns the shown steps and whether ``claim`` holds.

    Raises TraceError at an action that is not enabled.
    """
    machine = Machine(instance)
    state = machine.initial()
    happened: set[Moment] = set()
    steps: list[ShownStep] = []
    for number, action in enumerate(actions, 1):
        if action not in machine.enabled(state):
            raise TraceError(f"action {number} ({action}) is not possible there")
        moments = machine.points(state, action)
        happened.update(moments)
        step = _shown(instance, machine, state, action, moments)
        if step is not None:
            steps.append(step)
        state = machine.step(state, action)
    return steps, _holds(machine, state, happened, claim)


def _holds(machine: Machine, state: State, happened: set[Moment], claim: Claim) -> bool:
    if claim.stuck:
        return not machine.enabled(state) and not machine.finished(state)
    if claim.counter is not None:
        core, flag, space, launch, value = claim.counter
        return machine.has_passed(state, Counter(core, flag, space, launch), value)
    if not claim.happened and not claim.pending:
        return False  # it claims nothing
    return happened.issuperset(from_words(claim.happened)) and happened.isdisjoint(from_words(claim.pending))


def _shown(
    instance: Instance, machine: Machine, state: State, action: Action, moments: list[Moment]
) -> ShownStep | None:
    """How ``action`` is shown; None for the first half of a landing and for the end of a core."""
    if not moments:
        return None
    core, event, phase = moments[0]
    what = instance.cores[core].events[event]
    if what.kind is Kind.END:
        return None
    file, line = place_of(what)
    if action.kind is ActionKind.MEET:
        return _shown_meeting(instance, machine, action, what)
    text = describe_landing(what) if action.kind is ActionKind.LAND else describe_event(what, phase)
    if what.kind is Kind.QUIET and not machine.quiet_waits:
        text = f"its quiet to rank {what.peer} returns, complete or not"
    return ShownStep(core_name(instance, core, what), what.pipe.name, text, file, line)


def _shown_meeting(instance: Instance, machine: Machine, action: Action, call: Event) -> ShownStep:
    members = machine.members[action.core]
    count = f"all {len(members)} cores"
    rank = instance.cores[members[0]].id.rank
    form = instance.assemblies[machine.functions[action.core]].form
    if form is STREAM_ORDER:
        text = f"end launch {call.launch + 1}, launch {call.launch + 2} begins"
        return ShownStep(f"{count} of rank {rank}", "S", text, "", 0)
    who = f"{count} of rank {rank}" if form.own_rank else count
    return ShownStep(who, "S", f"meet in {barrier_name(call)}", *place_of(call))
