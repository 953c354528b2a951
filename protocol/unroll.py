"""Unrolling: from a protocol and concrete parameters to the events of every core.

Each role's program is compiled once to a Python function of (rank, block, sub) and run for every
core; roles whose program does not mention block run once a rank. A size is predicted first, so
that a hopeless request ends before it starts. Operations that are not decided yet are refused by
name here, when they are executed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from .errors import LimitError, SourceError, UnsupportedError
from .evaluate import Value
from .expr import Element, Var, variables
from .generate import Generated, generate, mentions
from .instance import Absent, Assembly, Core, CoreId, Event, Instance, Kind, Wrap, assembly_name
from .parameters import check_values
from .profile import STREAM_ORDER, BarrierForm
from .program import (
    ALL_PIPES,
    Assign,
    Barrier,
    Block,
    Compute,
    For,
    Pipe,
    Protocol,
    Role,
    SetEvent,
    SetFlag,
    WaitEvent,
    WaitFlag,
    addresses,
    expressions,
    statements,
)
from .setup import Setup


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound that a run may meet; each is named in the message when it is hit."""

    max_events: int = 1_000_000
    """Events of an instance, over all cores."""
    max_states: int = 100_000
    """States that the explorer visits."""
    rlimit: int = 1_000_000_000
    """Z3's resource limit a question; 0 is none."""


END_EVENT = Event(Kind.END, Pipe.S, None, drains=ALL_PIPES)
NO_PROGRAM = (END_EVENT,)


def unroll(
    protocol: Protocol,
    values: Mapping[str, Value],
    setup: Setup | None = None,
    *,
    limits: Limits | None = None,
    keep: Collection[tuple[int, int]] | None = None,
) -> Instance:
    """The instance of ``protocol`` at ``values``, for ``setup`` (default: all its defaults).

    ``keep``: only the cores of these blocks, as (rank, block), are made (see `checker.cells`).

    Raises ParameterError for missing, unknown or out-of-domain values, LimitError when the
    predicted size exceeds ``limits.max_events``, UnsupportedError for an executed operation that is
    not decided, SourceError where the program itself computes nonsense (division by zero).
    """
    complete = check_values(protocol, values)
    return Unroller(protocol, setup or Setup()).at(complete, limits=limits, keep=keep)


class Unroller:
    """Unrolls one protocol for one setup at many values; what does not depend on them is done once.

    Raises SourceError and UnsupportedError for what no values make right.
    """

    def __init__(self, protocol: Protocol, setup: Setup) -> None:
        _check_names(protocol)
        _check_regions(protocol)
        self.protocol, self.setup = protocol, setup
        self.barriers = barrier_forms(protocol, setup)
        self.roles = launched_roles(protocol, self.barriers)
        self.varies = {role: _varies(program) for role, program in protocol.programs.items()}
        self._compiled: tuple[dict[str, Value], dict[Role, Generated]] | None = None

    def at(
        self,
        complete: dict[str, Value],
        *,
        limits: Limits | None = None,
        keep: Collection[tuple[int, int]] | None = None,
    ) -> Instance:
        """The instance at values that `check_values` has completed; raises as `unroll` does."""
        protocol, setup, limits = self.protocol, self.setup, limits or Limits()
        ranks, blocks = complete["ranks"], complete["blocks"]
        assert isinstance(ranks, int)
        assert isinstance(blocks, int)
        programs = self._programs(complete)
        subs = {Role.AIV: protocol.vectors_per_cube, Role.AIC: 1}
        ends = 2 * setup.launches  # END and, but for the last launch, the meeting after it
        predicted = sum(
            min((programs[role].predicted if role in programs else 0) * setup.launches + ends, _FAR)
            * (ranks * blocks if keep is None else len(keep))
            * subs[role]
            for role in self.roles
        )
        if predicted > limits.max_events:
            raise LimitError("max-events", limits.max_events, f"a predicted size of {predicted} events")
        runner = _Runner(programs, self.varies, setup.launches, limits)
        cores = tuple(
            Core(core, runner.events_of(core))
            for rank in range(ranks)
            for block in range(blocks)
            if keep is None or (rank, block) in keep
            for role in self.roles
            for sub in range(subs[role])
            for core in (CoreId(rank, role, block, sub),)
        )
        return Instance(
            protocol, complete, setup, cores,
            _assemblies(self.barriers.values(), cores, ranks, setup.launches),
            tuple(runner.wraps), tuple(runner.absent),
        )  # fmt: skip

    def _programs(self, complete: dict[str, Value]) -> dict[Role, Generated]:
        """The compiled programs at ``complete``; those of the last values are kept."""
        if self._compiled is None or self._compiled[0] != complete:
            programs = {
                role: generate(self.protocol, program, role, complete, self.setup, self.barriers)
                for role, program in self.protocol.programs.items()
            }
            self._compiled = dict(complete), programs
        return self._compiled[1]


class _Varies(NamedTuple):
    """By what, other than the rank, a program tells cores apart."""

    by_block: bool
    by_launch: bool


def _varies(program: Block) -> _Varies:
    return _Varies(mentions(program, "block", "sub"), mentions(program, "launch"))


_FAR = 1 << 60


def _assemblies(
    forms: Iterable[BarrierForm], cores: tuple[Core, ...], ranks: int, launches: int
) -> dict[str, Assembly]:
    """Who meets: a barrier's participants, of every rank or of each, and each rank's between launches."""
    assemblies: dict[str, Assembly] = {}
    for form in [*forms, *([STREAM_ORDER] if launches > 1 else [])]:
        for rank in range(ranks) if form.own_rank else (None,):
            members = tuple(
                number
                for number, core in enumerate(cores)
                if core.id.role in form.participants and rank in (None, core.id.rank)
            )
            assemblies[assembly_name(form, rank)] = Assembly(form, members)
    return assemblies


def launched_roles(protocol: Protocol, barriers: Mapping[str, BarrierForm]) -> list[Role]:
    """The roles that have cores: those with a program, and those that a flag or barrier speaks to.

    A core of a role without a program ends at once.
    """
    roles = set(protocol.programs)
    for form in barriers.values():
        roles |= form.participants
    if any(isinstance(s, SetFlag | WaitFlag) for p in protocol.programs.values() for s in statements(p)):
        roles |= set(Role)
    return [role for role in Role if role in roles]


def _check_names(protocol: Protocol) -> None:
    """Raises SourceError for a name that is no identifier: names become part of compiled text."""
    for program in protocol.programs.values():
        for statement in statements(program):
            names = [
                v.array if isinstance(v, Element) else v.name
                for e in expressions(statement)
                for v in variables(e)
            ]
            match statement:
                case For(index=index):
                    names.append(index.name)
                case Assign(target=target):
                    names.append(target.array if isinstance(target, Element) else target.name)
                case Compute(segment=segment):
                    names.append(segment.name)
            for name in names:
                if not name.isidentifier():
                    raise SourceError(f"{name!r} is no identifier", statement.span)


def _check_regions(protocol: Protocol) -> None:
    """Raises SourceError for an address in a region that is not declared, or a size that varies by core."""
    known = {region.name for region in protocol.regions}
    names = {p.name for p in protocol.parameters} | {"rank"}
    for region in protocol.regions:
        for v in variables(region.bytes) if region.bytes is not None else ():
            if not isinstance(v, Var) or v.name not in names:
                raise SourceError(
                    f"the size of region {region.name} may use parameters and rank only, not {v}"
                )
    for program in protocol.programs.values():
        for statement in statements(program):
            for address in addresses(statement):
                if address.region not in known:
                    raise SourceError(f"region {address.region} is not declared", statement.span)


def barrier_forms(protocol: Protocol, setup: Setup) -> dict[str, BarrierForm]:
    """What each barrier function of ``protocol`` is for ``setup``.

    Raises UnsupportedError for a function that the profile does not have.
    """
    forms = {}
    for program in protocol.programs.values():
        for statement in statements(program):
            if isinstance(statement, Barrier):
                if statement.function not in setup.profile.barriers:
                    raise UnsupportedError(f"barrier {statement.function}", statement.span)
                forms[statement.function] = setup.profile.barriers[statement.function][setup.reading]
    return dict(sorted(forms.items()))


class _Runner:
    """Runs the compiled programs, sharing the events of cores that cannot differ."""

    def __init__(
        self,
        programs: Mapping[Role, Generated],
        varies: Mapping[Role, _Varies],
        launches: int,
        limits: Limits,
    ) -> None:
        self.programs = programs
        self.varies = varies
        self.launches = launches
        self.limits = limits
        self.wraps: list[Wrap] = []
        self.absent: list[Absent] = []
        self.cache: dict[tuple[Role, int], tuple[Event, ...]] = {}

    def events_of(self, core: CoreId) -> tuple[Event, ...]:
        generated = self.programs.get(core.role)
        if generated is None and self.launches == 1:
            return NO_PROGRAM
        if generated is None or not self.varies[core.role].by_block:
            cached = self.cache.get((core.role, core.rank))
            if cached is not None:
                return cached
        events = self._all_launches(generated, core)
        self.cache[core.role, core.rank] = events
        return events

    def _all_launches(self, generated: Generated | None, core: CoreId) -> tuple[Event, ...]:
        """The events of every launch, with the meeting of the rank's cores between two."""
        out: list[Event] = []
        one: tuple[Event, ...] = NO_PROGRAM
        for launch in range(self.launches):
            if generated is not None and (launch == 0 or self.varies[core.role].by_launch):
                one = self._run(generated, core, launch)
            start = len(out)
            out += one if launch == 0 else (_moved(event, launch, start) for event in one)
            if launch + 1 < self.launches:
                name = assembly_name(STREAM_ORDER, core.rank)
                out.append(Event(Kind.BARRIER, Pipe.S, None, barrier=name, launch=launch))
        return tuple(out)

    def _run(self, generated: Generated, core: CoreId, launch: int) -> tuple[Event, ...]:
        out: list[Event] = []
        wraps: dict[int, Wrap] = {}
        absent: dict[int, Absent] = {}

        def note_wrap(index: int, value: int, exact: int) -> int:
            span, text = generated.checked[index]
            wraps.setdefault(index, Wrap(span, text, core, int(value), int(exact)))
            return value

        def note_absent(index: int, raw: int) -> None:
            operation = generated.operations[index]
            assert isinstance(operation, SetFlag | WaitFlag | SetEvent | WaitEvent)
            absent.setdefault(index, Absent(operation, core, raw))

        try:
            generated.function(
                core.rank, core.block, core.sub, launch, out, note_wrap, note_absent, self.limits.max_events
            )
        except (ZeroDivisionError, ValueError, IndexError, KeyError, NameError) as error:
            line = _line_in_generated(error.__traceback__, generated.filename)
            if line is None:
                raise
            raise SourceError(_meaning(error), generated.lines[line]) from error
        self.wraps += wraps.values()
        self.absent += absent.values()
        out.append(END_EVENT)
        return tuple(out)


def _moved(event: Event, launch: int, start: int) -> Event:
    """``event`` of the first launch as it is in a later one, whose events begin at ``start``."""
    return event._replace(launch=launch, after=tuple(start + number for number in event.after))


def _line_in_generated(trace: TracebackType | None, filename: str) -> int | None:
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _meaning(error: Exception) -> str:
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, KeyError):
        return f"array element {error.args[0]} is read before it is assigned"
    if isinstance(error, NameError):
        name = re.search(r"\b[vd]_(\w+)", str(error))
        return f"{name[1] if name else error} is read before it is assigned"
    return str(error)
