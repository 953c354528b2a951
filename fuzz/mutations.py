"""Mutants: protocols with one or a few faults put in at random, for testing checkers and fuzzers.

A mutation edits one statement of one role: drops it, doubles it, swaps it with its neighbour, moves it
out of its loop, shifts a number in it, leaves it to one core, or names a wrong pipe, mode, peer or
bound. Deterministic for a given `random.Random`.
To add one, write a function from a statement to its replacement and list it in `MUTATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from ..protocol.cinteger import CType
from ..protocol.expr import Expr, Var, VarKind, binary, variables
from ..protocol.program import (
    Barrier,
    Block,
    Compute,
    For,
    If,
    Pipe,
    Protocol,
    Put,
    Quiet,
    Role,
    SetFlag,
    Statement,
    WaitFlag,
    While,
    statements,
)

Edited = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed protocol and what was changed, one line a change."""

    protocol: Protocol
    changes: tuple[str, ...]

    def __repr__(self) -> str:
        """Its name and its changes: the whole program would fill pages of a failing test."""
        return f"Mutant({self.protocol.name}: {'; '.join(self.changes)})"


def mutate(protocol: Protocol, random: Random, *, changes: int = 1, first: str | None = None) -> Mutant:
    """``protocol`` with ``changes`` random edits, the first one by mutation ``first`` if given.

    Fewer where nothing is left to edit.
    """
    done = []
    for number in range(changes):
        if not any(protocol.programs.values()):
            break
        names = list(MUTATIONS) if number or first is None else [first]
        protocol, change = _one_change(protocol, random, names)
        done.append(change)
    return Mutant(replace(protocol, name=f"{protocol.name} mutant"), tuple(done))


def _one_change(protocol: Protocol, random: Random, names: Sequence[str]) -> tuple[Protocol, str]:
    while True:
        name = random.choice(names)
        role = random.choice(list(protocol.programs))
        sites = list(statements(protocol.programs[role]))
        if not sites:
            continue
        site = random.choice(sites)
        edited = MUTATIONS[name](site, role, protocol, random)
        if edited is None or edited == (site,):
            continue
        program = _replaced(protocol.programs[role], site, edited)
        if name == "swap":
            program = _swapped(protocol.programs[role], site)
        if program == protocol.programs[role]:
            continue
        programs = {**protocol.programs, role: program}
        where = f"line {site.span.line}" if site.span.line else "built by hand"
        return replace(protocol, programs=programs), f"{name} {type(site).__name__} ({role.name}, {where})"


def _replaced(block: Block, site: Statement, edited: Edited) -> Block:
    """``block`` with the statement that *is* ``site`` replaced, at any depth."""
    result: list[Statement] = []
    for statement in block:
        if statement is site:
            result += edited
            continue
        match statement:
            case For() | While():
                result.append(replace(statement, body=_replaced(statement.body, site, edited)))
            case If():
                then = _replaced(statement.then, site, edited)
                orelse = _replaced(statement.orelse, site, edited)
                result.append(replace(statement, then=then, orelse=orelse))
            case _:
                result.append(statement)
    return tuple(result)


def _swapped(block: Block, site: Statement) -> Block:
    """``block`` with ``site`` exchanged with the statement after it (before it, if it is the last)."""
    for position, statement in enumerate(block):
        if statement is site and len(block) > 1:
            other = position + 1 if position + 1 < len(block) else position - 1
            items = list(block)
            items[position], items[other] = items[other], items[position]
            return tuple(items)
    result: list[Statement] = []
    for statement in block:
        match statement:
            case For() | While():
                result.append(replace(statement, body=_swapped(statement.body, site)))
            case If():
                then, orelse = _swapped(statement.then, site), _swapped(statement.orelse, site)
                result.append(replace(statement, then=then, orelse=orelse))
            case _:
                result.append(statement)
    return tuple(result)


# --- mutations --------------------------------------------------------------------------------


def _drop(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return None if isinstance(site, For) else ()


def _no_quiet(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return () if isinstance(site, Quiet) else None


def _double(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return None if isinstance(site, For) else (site, site)


def _swap(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return (site, site)  # the caller exchanges it with its neighbour instead


def _unguard(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return site.then if isinstance(site, If) else None


def _shift_flag(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    return (replace(site, flag=_shifted(site.flag, random.choice((-1, 1, 1, 14, 16)))),)


def _same_flag(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    """All iterations use one id: the counter then counts."""
    return (replace(site, flag=binary("*", site.flag, 0)),) if isinstance(site, SetFlag | WaitFlag) else None


def _wrong_pipe(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    return (replace(site, pipe=random.choice((Pipe.MTE2, Pipe.MTE3, Pipe.FIX, Pipe.V, Pipe.M))),)


def _two_pipes(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    """Half of the sets or waits name another pipe: a counter used on both has no fixed matching."""
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    pipe = random.choice((Pipe.MTE2, Pipe.MTE3, Pipe.FIX, Pipe.V))
    loops = [v for v in variables(site.flag) if isinstance(v, Var) and v.kind is VarKind.LOOP]
    if not loops:
        return None
    even = binary("==", binary("%", loops[0], 2), 0)
    return (If(even, (site,), (replace(site, pipe=pipe),), site.span),)


def _on_scalar(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    """A wait there holds everything after it; a set there takes effect at once, in mode 4, or never."""
    return (replace(site, pipe=Pipe.S),) if isinstance(site, SetFlag | WaitFlag) else None


def _other_mode(site: Statement, role: Role, protocol: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    modes = [0, 2]
    if role is Role.AIV:  # mode 1 is for AIVs only, mode 4 for two AIVs an AIC
        modes.append(1)
    if protocol.vectors_per_cube == 2:
        modes.append(4)
    return (replace(site, mode=random.choice([mode for mode in modes if mode != site.mode])),)


def _other_vector(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    """Speak with the other AIV, as an AIC names it in mode 4."""
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    return (replace(site, flag=_shifted(site.flag, random.choice((-16, 16)))),)


def _one_core_only(site: Statement, _: Role, protocol: Protocol, random: Random) -> Edited | None:
    """Only AIV 0 of a block, or only block 0 of a rank, sets or waits."""
    if not isinstance(site, SetFlag | WaitFlag):
        return None
    which = random.choice(("sub", "block")) if protocol.vectors_per_cube == 2 else "block"
    only = binary("==", Var(which, CType.I64, VarKind.IDENTITY), 0)
    return (If(only, (site,), (), site.span),)


def _out_of_loop(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    """A set or wait happens once, before the loop or after it, as in its first or last iteration."""
    if not isinstance(site, For):
        return None
    flags = [s for s in statements(site.body) if isinstance(s, SetFlag | WaitFlag)]
    if not flags:
        return None
    moved = random.choice(flags)
    rest = replace(site, body=_replaced(site.body, moved, ()))
    if random.random() < 0.5:
        return (replace(site, stop=_shifted(site.start, 1), body=(moved,)), rest)
    return (rest, replace(site, start=_shifted(site.stop, -1), body=(moved,)))


def _wrong_peer(site: Statement, _: Role, protocol: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, Put | Quiet):
        return None
    ranks = Var("ranks", protocol.parameters[0].type, VarKind.PARAMETER)
    return (replace(site, peer=binary("%", _shifted(site.peer, random.choice((1, 2))), ranks)),)


def _shift_target(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, Put):
        return None
    moved = replace(site.target, offset=_scaled_shift(site.target.offset, site.bytes, random))
    return (replace(site, target=moved),)


def _shift_source(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, Put):
        return None
    moved = replace(site.source, offset=_scaled_shift(site.source.offset, site.bytes, random))
    return (replace(site, source=moved),)


def _no_staging(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    return (replace(site, staging=Pipe.S),) if isinstance(site, Put) else None


def _shift_bound(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, For):
        return None
    return (replace(site, stop=_shifted(site.stop, random.choice((-1, 1)))),)


def _shift_reads(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, Compute):
        return None
    first, *rest = site.reads
    moved = replace(first.address, offset=_scaled_shift(first.address.offset, first.bytes, random))
    return (replace(site, reads=(replace(first, address=moved), *rest)),)


def _shift_writes(site: Statement, _: Role, __: Protocol, random: Random) -> Edited | None:
    if not isinstance(site, Compute) or not site.writes:
        return None
    first, *rest = site.writes
    moved = replace(first.address, offset=_scaled_shift(first.address.offset, first.bytes, random))
    return (replace(site, writes=(replace(first, address=moved), *rest)),)


def _one_role_barrier(site: Statement, _: Role, __: Protocol, ___: Random) -> Edited | None:
    """Only some cores call the barrier once more."""
    if not isinstance(site, Barrier):
        return None
    rank = Var("rank", CType.I64, VarKind.IDENTITY)
    return (site, If(binary("==", rank, 0), (site,), (), site.span))


def _shifted(expr: Expr, by: int) -> Expr:
    return binary("+", expr, by) if by > 0 else binary("-", expr, -by)


def _scaled_shift(offset: Expr, size: Expr, random: Random) -> Expr:
    """``offset`` moved by a whole or half window, either way, or far away."""
    step = random.choice((binary("/", size, 2), size, size, binary("*", size, 4)))
    return binary(random.choice("++-"), offset, step)


Mutation = Callable[[Statement, Role, Protocol, Random], Edited | None]

MUTATIONS: Mapping[str, Mutation] = {
    "drop": _drop,
    "no quiet": _no_quiet,
    "double": _double,
    "swap": _swap,
    "unguard": _unguard,
    "shift flag": _shift_flag,
    "one flag for all": _same_flag,
    "wrong pipe": _wrong_pipe,
    "two pipes": _two_pipes,
    "on the scalar pipe": _on_scalar,
    "other mode": _other_mode,
    "other vector": _other_vector,
    "one core only": _one_core_only,
    "out of its loop": _out_of_loop,
    "wrong peer": _wrong_peer,
    "shift target": _shift_target,
    "shift source": _shift_source,
    "no staging": _no_staging,
    "shift bound": _shift_bound,
    "shift reads": _shift_reads,
    "shift writes": _shift_writes,
    "extra barrier on rank 0": _one_role_barrier,
}
"""Every mutation by name; None from it means that it does not apply to the statement."""
