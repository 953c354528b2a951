"""The list of edits that `mend` tries: moves, insertions in kind, changed flags, guards, removals.

Each generator yields edits of one kind for a whole protocol; nothing here knows whether they help.
To add a kind of edit, write a generator and name it in `single_edits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath

from ..protocol.edits import (
    Edit,
    EditKind,
    Gap,
    Site,
    Synchronisation,
    gaps,
    loop_indices,
    parameters_in,
    sites,
    substituted,
)
from ..protocol.expr import Expr, Var, binary
from ..protocol.program import (
    Barrier,
    Compute,
    For,
    If,
    Pipe,
    PipeBarrier,
    Protocol,
    Put,
    Quiet,
    Read,
    Role,
    SetFlag,
    Span,
    Statement,
    WaitFlag,
    Write,
)
from ..protocol.statement_text import statement_text

Flag = SetFlag | WaitFlag

_USUAL_BARRIER = "aclshmem_barrier_all"
"""What is put in where a program has no barrier to copy."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A protocol's statements and gaps, found once for all generators."""

    protocol: Protocol
    statements: tuple[tuple[Site, Statement], ...]
    gaps: tuple[Gap, ...]

    def flags(self) -> list[tuple[Site, Flag]]:
        """The sets and waits of cross-core flags."""
        return [(site, s) for site, s in self.statements if isinstance(s, Flag)]

    def pipes(self, role: Role) -> list[Pipe]:
        """The pipes that ``role`` moves or computes data on."""
        found: dict[Pipe, None] = {}
        for site, statement in self.statements:
            if site.role is role:
                found |= dict.fromkeys(_pipes(statement))
        return list(found)


def listed(protocol: Protocol) -> Listed:
    """What the generators start from."""
    return Listed(protocol, tuple(sites(protocol)), tuple(gaps(protocol)))


def single_edits(protocol: Protocol) -> list[Edit]:
    """All edits of the list but the handshakes, each kind in program order."""
    known = listed(protocol)
    kinds: tuple[Callable[[Listed], Iterator[Edit]], ...] = (
        _moves, _barriers, _quiets, _pipe_barriers, _partners, _renumbered, _other_pipes, _guarded, _removals,
    )  # fmt: skip
    return [edit for kind in kinds for edit in kind(known)]


def handshakes(protocol: Protocol) -> list[Edit]:
    """A new flag each: its set in one role and its wait in the other."""
    return list(_handshakes(listed(protocol)))


# --- the kinds --------------------------------------------------------------------------------


def _moves(known: Listed) -> Iterator[Edit]:
    """Every synchronisation to every other place of its role."""
    for site, statement in known.statements:
        if not isinstance(statement, Synchronisation):
            continue
        for gap in known.gaps:
            same = gap.site.role is site.role and gap.knows(statement)
            if same and gap.site not in (site, site.following):
                text = f"{statement_text(statement)} to {where(gap)}"
                yield Edit(EditKind.MOVE, text, statement, (site,), ((gap.site, statement),))


def _barriers(known: Listed) -> Iterator[Edit]:
    """Another call of a barrier that the program has, or of the usual one."""
    called = dict.fromkeys(s.function for _, s in known.statements if isinstance(s, Barrier))
    for function in called or (_USUAL_BARRIER,):
        for gap in known.gaps:
            yield _insertion(gap, Barrier(function, span_at(gap)))


def _quiets(known: Listed) -> Iterator[Edit]:
    """A quiet to a peer that is put to."""
    for role in known.protocol.programs:
        peers = dict.fromkeys(
            s.peer for site, s in known.statements if isinstance(s, Put) and site.role is role
        )
        for peer in peers:
            yield from _everywhere(known, role, partial(_quiet, peer))


def _pipe_barriers(known: Listed) -> Iterator[Edit]:
    for role in known.protocol.programs:
        yield from _everywhere(known, role, lambda gap: PipeBarrier(Pipe.ALL, span_at(gap)))


def _partners(known: Listed) -> Iterator[Edit]:
    """A set for a wait, or a wait for a set: the same flag, or as many rounds apart as a parameter says."""
    for site, statement in known.flags():
        other: type[Flag] = WaitFlag if isinstance(statement, SetFlag) else SetFlag
        for role in _partner_roles(known.protocol, site.role, statement.mode):
            apart = parameters_in(known.protocol)
            for gap in known.gaps:
                if gap.site.role is not role:
                    continue
                for flag in _flags_at(statement, gap, apart):
                    for pipe in known.pipes(role):
                        yield _insertion(gap, other(statement.mode, pipe, flag, span_at(gap)))


def _renumbered(known: Listed) -> Iterator[Edit]:
    """Another flag: the next, the one before, or a parameter's value away."""
    for site, statement in known.flags():
        shifts: tuple[Expr | int, ...] = (1, *parameters_in(known.protocol))
        for shift in shifts:
            for sign in "+-":
                flag = binary(sign, statement.flag, shift)
                yield _changed(site, statement, replace(statement, flag=flag))


def _other_pipes(known: Listed) -> Iterator[Edit]:
    for site, statement in known.flags():
        for pipe in known.pipes(site.role):
            if pipe is not statement.pipe:
                yield _changed(site, statement, replace(statement, pipe=pipe))


def _guarded(known: Listed) -> Iterator[Edit]:
    """Leave a set or wait out in the first or last rounds, as many as a parameter says."""
    around = {gap.site: gap for gap in known.gaps}
    for site, statement in known.flags():
        for loop in around[site].loops()[-1:]:
            for parameter in parameters_in(known.protocol):
                for condition in (_not_last(loop, parameter), _not_first(loop, parameter)):
                    inside = If(condition, (statement,), (), statement.span)
                    text = f"{statement_text(statement)} by if ({condition})"
                    yield Edit(EditKind.GUARD, text, statement, (site,), ((site, inside),))


def _removals(known: Listed) -> Iterator[Edit]:
    for site, statement in known.statements:
        if isinstance(statement, Synchronisation):
            yield removal(site, statement)


def _handshakes(known: Listed) -> Iterator[Edit]:
    """A set in a loop of one role and its wait in a loop of the other, 0 or a parameter's rounds later."""
    inner = [gap for gap in known.gaps if gap.around and isinstance(gap.around[-1], For)]
    for first in inner:
        for second in inner:
            if first.site.role is second.site.role:
                continue
            for distance in (None, *parameters_in(known.protocol)):
                for set_pipe in known.pipes(first.site.role):
                    for wait_pipe in known.pipes(second.site.role):
                        yield _handshake(first, second, distance, set_pipe, wait_pipe)


def _handshake(first: Gap, second: Gap, distance: Var | None, set_pipe: Pipe, wait_pipe: Pipe) -> Edit:
    from_loop, to_loop = first.loops()[-1], second.loops()[-1]
    made: Statement = SetFlag(2, set_pipe, from_loop.index, span_at(first))
    flag: Expr = to_loop.index if distance is None else binary("-", to_loop.index, distance)
    awaited: Statement = WaitFlag(2, wait_pipe, flag, span_at(second))
    texts = [f"{statement_text(made)} {where(first)}", f"{statement_text(awaited)} {where(second)}"]
    if distance is not None:
        conditions = _not_last(from_loop, distance), _not_first(to_loop, distance)
        made = If(conditions[0], (made,), (), span_at(first))
        awaited = If(conditions[1], (awaited,), (), span_at(second))
        texts = [f"{text}, if ({guard})" for text, guard in zip(texts, conditions, strict=True)]
    near = first.before or first.after or first.around[-1]
    placed = ((first.site, made), (second.site, awaited))
    return Edit(EditKind.HANDSHAKE, "; ".join(texts), near, inserted=placed)


# --- parts ------------------------------------------------------------------------------------


def removal(site: Site, statement: Statement) -> Edit:
    """Take ``statement`` out."""
    return Edit(EditKind.REMOVE, statement_text(statement), statement, removed=(site,))


def where(gap: Gap) -> str:
    """A gap in words: by the statement before it, else by the one after, else by what is around."""
    if gap.before is not None:
        return f"after {_named(gap.before, gap)}"
    if gap.after is not None:
        return f"before {_named(gap.after, gap)}"
    return f"into {_named(gap.around[-1], gap)}" if gap.around else "into the empty program"


def span_at(gap: Gap) -> Span:
    """The place of what is put into ``gap``: that of its neighbour."""
    near = gap.before or gap.after or (gap.around[-1] if gap.around else None)
    return near.span if near is not None else Span("", 0)


def _named(statement: Statement, gap: Gap) -> str:
    """A neighbour of ``gap`` with its place, and the call it is reached by if the gap is in the caller."""
    held = "the whole " if isinstance(statement, For | If) else ""
    calls, frame = statement.span.calls, gap.around[-1].span.calls if gap.around else statement.span.calls
    call = f", called at {_place(calls[len(frame)])}" if len(calls) > len(frame) else ""
    return f"{held}{statement_text(statement)} ({_place(statement.span)}{call})"


def _place(span: Span) -> str:
    return f"{PurePath(span.file).name}:{span.line}"


def _insertion(gap: Gap, statement: Statement) -> Edit:
    near = gap.before or gap.after or (gap.around[-1] if gap.around else statement)
    text = f"{statement_text(statement)} {where(gap)}"
    return Edit(EditKind.INSERT, text, near, inserted=((gap.site, statement),))


def _changed(site: Site, old: Statement, new: Statement) -> Edit:
    text = f"{statement_text(old)} to {statement_text(new)}"
    return Edit(EditKind.CHANGE, text, old, removed=(site,), inserted=((site, new),))


def _quiet(peer: Expr, gap: Gap) -> Statement:
    return Quiet(peer, span_at(gap))


def _everywhere(known: Listed, role: Role, make: Callable[[Gap], Statement]) -> Iterator[Edit]:
    for gap in known.gaps:
        if gap.site.role is role:
            statement = make(gap)
            if gap.knows(statement):
                yield _insertion(gap, statement)


def _flags_at(statement: Flag, gap: Gap, apart: Sequence[Expr]) -> list[Expr]:
    """What the flag of ``statement`` may be called in the innermost loop around ``gap``."""
    names, loops = loop_indices(statement), gap.loops()
    if not names:
        return [statement.flag]
    if len(names) > 1 or not loops:
        return []
    index = loops[-1].index
    renamed = substituted(statement.flag, names.pop(), index)
    return list(dict.fromkeys([renamed, index, *(binary("-", index, rounds) for rounds in apart)]))


def _partner_roles(protocol: Protocol, role: Role, mode: int) -> list[Role]:
    """Who may be spoken to: cores of the same kind in modes 0 and 1, of the other in 2 and 4."""
    return [other for other in protocol.programs if (other is role) == (mode in (0, 1))]


def _pipes(statement: Statement) -> tuple[Pipe, ...]:
    match statement:
        case Put(staging=pipe) | Read(pipe=pipe) | Write(pipe=pipe):
            return (pipe,)
        case Compute(read_pipe=first, write_pipe=last):
            return (first, last)
    return ()


def _not_last(loop: For, rounds: Expr) -> Expr:
    return binary("<", binary("+", loop.index, rounds), loop.stop)


def _not_first(loop: For, rounds: Expr) -> Expr:
    return binary(">=", loop.index, binary("+", loop.start, rounds))
