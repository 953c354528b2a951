"""Replaying a trace with data: what the timing of a counterexample does to the bytes.

A trace ends where its conflict shows in what happened; the bytes show it a little later. So after it
the puts that the conflict needs land, the readers that it names end, and the rest runs to its end.
Used by ``mc2proof replay --with-data``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol.errors import TraceError
from ..protocol.instance import Instance, Kind
from ..protocol.machine import Action, ActionKind, Moment, Phase
from ..protocol.profile import PROFILES, Profile
from ..protocol.program import Protocol
from ..protocol.trace import Claim, decode, from_words, read_actions, read_setup
from ..protocol.unroll import Limits, unroll
from .diagnose import headline_of_read
from .execute import Outcome, Runner
from .minimise import reader_slot
from .numerics import Dtypes
from .search import Acceptance, acceptance_of, runner_of
from .timings import Recorded


@dataclass(frozen=True, slots=True)
class DataReplay:
    """What a trace does to the bytes: ``readers`` that found wrong ones, as sentences; the outputs."""

    outcome: Outcome
    readers: Sequence[str]
    acceptance: Acceptance | None


def replay_with_data(
    text: str,
    protocols: Sequence[Protocol],
    *,
    profiles: Sequence[Profile] = (),
    dtypes: Dtypes | None = None,
    seed: int = 0,
    limits: Limits | None = None,
) -> DataReplay:
    """Run the trace ``text`` with tagged data on the one of ``protocols`` that it was made from.

    Raises TraceError where it does not fit.
    """
    trace = decode(text)
    protocol = next((p for p in protocols if p.digest() == trace.digest), None)
    if protocol is None:
        raise TraceError(f"the trace is of program {trace.digest}, which is not given")
    setup = read_setup(trace.setup, {**PROFILES, **{p.name: p for p in profiles}})
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in trace.parameters.items()}
    instance = unroll(protocol, values, setup, limits=limits)
    runner = runner_of(instance, dtypes, seed=seed)
    outcome = runner.run(Recorded(read_actions(trace.actions), _after(runner, trace.claim)))
    readers = [headline_of_read(instance, read) for read in outcome.wrong_reads]
    return DataReplay(outcome, list(dict.fromkeys(readers)), acceptance_of(runner, outcome))


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
