"""From a violated obligation to the shortest bad timing: shrunk, replayed, with a trace.

Shrinking searches smaller parameters for the same fault; the timing is the causal past of the
conflict, arranged so that the conflict shows and cores switch rarely. Nothing is shown that the
Machine has not replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..protocol.errors import TraceError
from ..protocol.evaluate import Value
from ..protocol.instance import Instance, Kind
from ..protocol.machine import Action, ActionKind, Machine, Moment, Phase
from ..protocol.order import PIPES
from ..protocol.program import Pipe
from ..protocol.replay import ShownStep, run
from ..protocol.sync import Sync
from ..protocol.trace import Claim, Trace, encode, to_words, write_actions, write_setup
from .analysis import Analysis, analyse
from .engine import Declined, Stuck
from .explain import conflict_of, conflict_of_stuck
from .flag_obligations import MERGED
from .happens_before import HappensBefore
from .obligations import NEVER, Obligation
from .report import Counterexample, Step
from .shrink import SMALL, Within, shrunk
from .smt_times import Times

CONSIDERED = 50
"""Among how many violated obligations the shortest is chosen."""

POINTS_FOR_TIMES = 600
"""Instances without one order are shrunk with Z3 up to this many points."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault in one instance: an obligation (with the equal core that shows it), or a stuck state."""

    analysis: Analysis
    obligation: Obligation | None
    case: int
    stuck: Stuck | None
    points: tuple[int, ...]


def counterexample(
    instance: Instance, property_name: str, code: str, known: frozenset[str] | None = None,
    within: Within | None = None,
) -> Counterexample | None:  # fmt: skip
    """The shortest timing found that shows fault ``code`` of ``property_name``; None: none found.

    ``known``: the codes of all errors of ``instance``, which a smaller case may have as well.
    ``within``: which cases may be shown.
    """
    smallest = shrunk(instance, lambda candidate: _failure(candidate, property_name, code), known, within)
    failure = smallest.found or _failure(instance, property_name, code)
    return None if failure is None else _shown(failure, property_name, code)


def counted(
    instance: Instance, fails: Callable[[Instance], bool], known: frozenset[str] | None = None,
    within: Within | None = None,
) -> Counterexample:  # fmt: skip
    """The smallest case at which ``fails(instance)`` holds: for faults without a timing to show."""
    smallest = shrunk(instance, lambda candidate: fails(candidate) or None, known, within)
    return Counterexample(_plain(smallest.values), smallest.launches, [], [], None)


# --- the fault in one instance -----------------------------------------------------------------


def _failure(instance: Instance, property_name: str, code: str) -> Failure | None:
    """The fault in ``instance``, with the shortest timing among the first few of its kind."""
    if instance.event_count() > SMALL.max_events:
        return None
    analysis = analyse(instance)
    if code != MERGED and _may_lose_sets(analysis):
        return None  # only the explorer follows that, and it keeps no timings
    obligations = [o for o in analysis.obligations if o.property == property_name and o.code == code]
    if analysis.sync.undetermined is not None:
        return _failure_in_times(analysis, code, obligations)
    order = HappensBefore(analysis.sync)
    if code == "deadlock":
        stuck = order.stuck()
        if stuck is None:
            return None
        return Failure(analysis, None, 0, stuck, tuple(_arrange(analysis.sync, order, order.order)))
    found = [obligations[i] for i in order.violated(obligations)[:CONSIDERED]]
    if not found:
        return None
    return _timing(analysis, order, min(found, key=lambda o: _length(order, o)))


def _may_lose_sets(analysis: Analysis) -> bool:
    mergers = [o for o in analysis.obligations if o.code == MERGED]
    if not mergers or analysis.sync.undetermined is not None:
        return bool(mergers)
    return bool(HappensBefore(analysis.sync).violated(mergers))


def _length(order: HappensBefore, obligation: Obligation) -> int:
    """How many points the conflict of ``obligation`` needs."""
    case = _first_case(order, obligation)
    return len(_past(order, [then for _, then, _ in obligation.clauses_at(case)]))


def _failure_in_times(analysis: Analysis, code: str, obligations: Sequence[Obligation]) -> Failure | None:
    if analysis.sync.size > POINTS_FOR_TIMES:
        return None
    engine = Times(analysis.sync, rlimit=20_000_000)
    try:
        if code == "deadlock":
            stuck = engine.stuck()
            points = engine.stuck_timing() if stuck is not None else None
            return None if points is None else Failure(analysis, None, 0, stuck, tuple(points))
        for index in engine.violated(obligations)[:1]:
            shown = engine.witness(obligations[index])
            if shown is not None:
                case, points = shown
                return Failure(analysis, obligations[index], case, None, tuple(points))
    except Declined:
        return None
    return None


# --- timings ----------------------------------------------------------------------------------


def _timing(analysis: Analysis, order: HappensBefore, obligation: Obligation) -> Failure:
    """The causal past of the conflict, later accesses as late as the fault allows."""
    case = _first_case(order, obligation)
    shown = [c for c in obligation.clauses_at(case) if not c[2]]
    first, then, _ = shown[0]
    goals = []
    if obligation.code in ("overwrite", "relaunch-overwrite"):
        # the needed write begins, the reader begins, and only then the other write
        needed = obligation.clauses_at(case)[1][1]
        begins = _begin_of(analysis.sync, first)
        goals = [needed] if begins in _past(order, [then]) else [needed, begins]
    elif obligation.code.removeprefix("relaunch-") in ("write-conflict", "source-overwritten", "queue-race"):
        goals = [shown[1][1]]
    points: list[int] = []
    if obligation.counter is not None:
        goals += _earlier_sets(analysis.sync, obligation, [c[1] for c in shown])
    # a goal that brings about what must still be missing would hide the conflict
    goals = [g for g in goals if first == NEVER or first not in _past(order, [g])]
    for goal in [*goals, then]:
        past = _past(order, [goal]) - set(points)
        points += _arrange(analysis.sync, order, [p for p in order.order if p in past], points)
    assert first == NEVER or first not in points
    return Failure(analysis, obligation, case, None, tuple(points))


def _earlier_sets(sync: Sync, obligation: Obligation, last: Sequence[int]) -> list[int]:
    """All sets up to the rise that passes the cap, which the sets ``last`` make; these but one, too."""
    assert obligation.counter is not None
    rises = [[use.point for use in rise] for rise in sync.rises(obligation.counter)]
    until = next(i for i, rise in enumerate(rises) if last[0] in rise)
    return [point for rise in rises[:until] for point in rise] + list(last[1:])


def _first_case(order: HappensBefore, obligation: Obligation) -> int:
    return next(i for i in range(obligation.width) if _case_holds(order, obligation, i))


def _case_holds(order: HappensBefore, obligation: Obligation, case: int) -> bool:
    clauses = obligation.clauses_at(case)
    answers = order.ordered([c[0] for c in clauses], [c[1] for c in clauses])
    return all(bool(a) == c[2] for a, c in zip(answers, clauses, strict=True))


def _begin_of(sync: Sync, end: int) -> int:
    return sync.begin(*sync.locate(end))


def _past(order: HappensBefore, goals: Iterable[int]) -> set[int]:
    """Everything that has happened by the time all ``goals`` have, themselves included."""
    past: set[int] = set()
    todo = list(goals)
    while todo:
        point = todo.pop()
        if point not in past:
            past.add(point)
            todo += order.before[point]
    return past


def _arrange(sync: Sync, order: HappensBefore, points: Sequence[int], done: Sequence[int] = ()) -> list[int]:
    """``points`` in an order that respects happens-before and stays with one core while it can."""
    missing = dict.fromkeys(points, 0)
    successors: dict[int, list[int]] = {p: [] for p in points}
    happened = set(done)
    for point in points:
        for earlier in order.before[point]:
            if earlier not in happened:
                missing[point] += 1
                successors[earlier].append(point)
    ready: dict[int, list[int]] = {}  # by core; meetings are core -1
    for point in points:
        if not missing[point]:
            ready.setdefault(_core_of(sync, point), []).append(point)
    result: list[int] = []
    core = -1
    while ready:
        if core not in ready:
            core = min(ready)
        chosen = ready[core].pop(0)
        if not ready[core]:
            del ready[core]
        result.append(chosen)
        for after in successors[chosen]:
            missing[after] -= 1
            if not missing[after]:
                ready.setdefault(_core_of(sync, after), []).append(after)
    return result


def _core_of(sync: Sync, point: int) -> int:
    return -1 if point >= sync.size else sync.locate(point)[0]


# --- actions and claims -----------------------------------------------------------------------


def to_actions(sync: Sync, points: Sequence[int]) -> list[Action]:
    """The Machine's actions that bring about ``points`` in this order."""
    functions = list(sync.instance.assemblies)
    actions: list[Action] = []
    for point in points:
        if point >= sync.size:
            function = sync.meetings[point - sync.size].function
            actions.append(Action(ActionKind.MEET, functions.index(function)))
            continue
        core, number = sync.locate(point)
        event = sync.instance.cores[core].events[number]
        if event.kind is Kind.BARRIER:
            continue  # its meeting is the step
        if event.kind is Kind.SET_FLAG:
            actions.append(Action(ActionKind.EFFECT, core, number))
        elif event.kind is Kind.PUT and point == sync.end(core, number):
            actions += [Action(ActionKind.LAND, core, number)] * 2
        elif event.pipe is Pipe.S:
            actions.append(Action(ActionKind.SCALAR, core))
        elif event.kind is not Kind.PIPE_BARRIER:
            actions.append(Action(ActionKind.PIPE, core, _queue(sync, core, event.pipe)))
    return actions


def _queue(sync: Sync, core: int, pipe: Pipe) -> int:
    used = {event.pipe for event in sync.instance.cores[core].events}
    queues: list[Pipe] = [p for p in PIPES if p in used - {Pipe.S}]
    return queues.index(pipe)


def _claim(failure: Failure) -> Claim:
    if failure.obligation is None:
        return Claim(stuck=True)
    obligation = failure.obligation
    if obligation.counter is not None:
        counter = obligation.counter
        return Claim(counter=(*counter, obligation.cap))
    open_clauses = [c for c in obligation.clauses_at(failure.case) if not c[2]]
    sync, shown = failure.analysis.sync, set(failure.points)
    first, then, _ = open_clauses[0]
    happened, pending = [then], [] if first == NEVER else [first]
    if obligation.at_once:
        happened += [p for p in obligation.thens_at(failure.case) if p in shown and p != then]
        pending += [p for p in obligation.firsts_at(failure.case) if p not in shown and p != first]
    return Claim(
        happened=to_words([_moment(sync, p) for p in happened]),
        pending=to_words([_moment(sync, p) for p in pending]),
    )


def _until_passed(
    failure: Failure, actions: list[Action], claim: Claim
) -> tuple[Failure, Claim, list[Action]]:
    """The timing up to where a counter passes its cap; where flags merge, the first that loses a set.

    How a timing goes on from there is no longer what was asked for.
    """
    assert failure.obligation is not None
    asked = [failure.obligation]
    if failure.obligation.code == MERGED:
        asked += [o for o in failure.analysis.obligations if o.code == MERGED]
    caps = {o.counter: o for o in reversed(asked) if o.counter is not None}
    machine = Machine(failure.analysis.instance)
    state = machine.initial()
    for number, action in enumerate(actions, 1):
        if action not in machine.enabled(state):
            break
        state = machine.step(state, action)
        for counter, obligation in caps.items():
            if machine.has_passed(state, counter, obligation.cap):
                passed = replace(failure, obligation=obligation)
                return passed, _claim(passed), actions[:number]
    return failure, claim, actions


def _moment(sync: Sync, point: int) -> Moment:
    core, event = sync.locate(point)
    begins = point == sync.begin(core, event) and point != sync.end(core, event)
    return Moment(core, event, Phase.BEGIN if begins else Phase.END)


def _shown(failure: Failure, property_name: str, code: str) -> Counterexample:
    instance = failure.analysis.instance
    actions = to_actions(failure.analysis.sync, failure.points)
    claim = _claim(failure)
    if claim.counter is not None:
        failure, claim, actions = _until_passed(failure, actions, claim)
    try:
        steps, holds = run(instance, actions, claim)
    except TraceError as error:
        raise AssertionError(f"the counterexample to {property_name} does not run: {error}") from error
    if not holds:
        raise AssertionError(f"the counterexample to {property_name} does not show what it claims")
    if failure.obligation is None:
        assert failure.stuck is not None
        conflict = conflict_of_stuck(failure.analysis, failure.stuck)
    else:
        conflict = conflict_of(failure.analysis, failure.obligation, failure.case)
    parameters = _plain(instance.values)
    trace = Trace(
        instance.protocol.digest(), parameters, write_setup(instance.setup), property_name, code, conflict,
        claim, write_actions(actions),
    )  # fmt: skip
    launches = instance.setup.launches
    return Counterexample(parameters, launches, conflict, [_step(s) for s in steps], encode(trace))


def _plain(values: Mapping[str, Value]) -> dict[str, int | list[int]]:
    return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}


def _step(step: ShownStep) -> Step:
    return Step(step.core, step.pipe, step.operation, step.file, step.line)
