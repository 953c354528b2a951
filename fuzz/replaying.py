"""Replaying a trace with data: what the timing of a counterexample does to the bytes.

A trace ends where its conflict shows in what happened; the bytes show it a little later. So after it
the puts that the conflict needs land, the readers that it names end, and the rest runs to its end.
Used by ``mc2proof replay --with-data``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol.errors import ParameterError, TraceError
from ..protocol.instance import Instance, Kind
from ..protocol.machine import Action, ActionKind, Moment, Phase
from ..protocol.profile import PROFILES, Profile
from ..protocol.program import Protocol
from ..protocol.trace import Claim, DataNote, decode, from_words, read_actions, read_setup
from ..protocol.unroll import Limits, unroll
from .diagnose import headline_of_read
from .execute import Outcome, Runner
from .kinds import KINDS
from .minimise import reader_slot
from .numerics import Dtypes, parse_dtypes
from .search import Acceptance, acceptance_of, runner_of
from .timings import Recorded

UNNOTED = DataNote(str(Dtypes()), "tagged", 0)
"""The data for a trace that notes none, such as one of `prove`."""


@dataclass(frozen=True, slots=True)
class DataReplay:
    """What a trace does to the bytes: ``readers`` that found wrong ones, as sentences; the outputs.

    ``data``: the inputs that were taken; ``noted``: the trace says so, they are those it was found with.
    """

    outcome: Outcome
    readers: Sequence[str]
    acceptance: Acceptance | None
    data: DataNote
    noted: bool


def replay_with_data(
    text: str,
    protocols: Sequence[Protocol],
    *,
    profiles: Sequence[Profile] = (),
    limits: Limits | None = None,
) -> DataReplay:
    """Run the trace ``text`` with its data on the one of ``protocols`` that it was made from.

    A trace that notes no data is run with `UNNOTED`. Raises TraceError where it does not fit.
    """
    trace = decode(text)
    protocol = next((p for p in protocols if p.digest() == trace.digest), None)
    if protocol is None:
        raise TraceError(f"the trace is of program {trace.digest}, which is not given")
    setup = read_setup(trace.setup, {**PROFILES, **{p.name: p for p in profiles}})
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in trace.parameters.items()}
    instance = unroll(protocol, values, setup, limits=limits)
    data = trace.data or UNNOTED
    runner = runner_of(instance, _formats(data), data.kind, data.seed)
    outcome = runner.run(Recorded(read_actions(trace.actions), _after(runner, trace.claim)))
    readers = [headline_of_read(instance, read) for read in outcome.wrong_reads]
    acceptance = acceptance_of(runner, outcome)
    return DataReplay(outcome, list(dict.fromkeys(readers)), acceptance, data, trace.data is not None)


def _formats(data: DataNote) -> Dtypes:
    """The formats of ``data``. Raises TraceError where anything of it is not known here."""
    if data.kind not in KINDS:
        raise TraceError(f"the trace was made with {data.kind} inputs, which are not known here")
    if data.seed < 0:
        raise TraceError(f"the trace was made with seed {data.seed}, which is none")
    try:
        return parse_dtypes(data.dtype)
    except ParameterError as error:
        raise TraceError(f"the trace was made with {error}") from error


def _after(runner: Runner, claim: Claim) -> list[Action]:
    """What brings the conflict of ``claim`` into the bytes: puts land, then readers end."""
    happened, pending = from_words(claim.happened), from_words(claim.pending)
    lands = [
        Action(ActionKind.LAND, moment.core, moment.event)
        for moment in happened
        if _kind(runner.instance, moment) is Kind.PUT
        and moment.phase is Phase.BEGIN
        and moment._replace(phase=Phase.END) not in pending
        for _half in range(2)
    ]
    readers = [m for m in (*happened, *pending) if _kind(runner.instance, m) is Kind.READ]
    ends = [runner.model.actions[reader_slot(runner.model, m.core, m.event)] for m in readers]
    return lands + ends


def _kind(instance: Instance, moment: Moment) -> Kind | None:
    if not 0 <= moment.core < len(instance.cores):
        return None
    events = instance.cores[moment.core].events
    return events[moment.event].kind if 0 <= moment.event < len(events) else None
