"""Statements in one line each, as `mc2proof show` lists them and `mc2proof minimize` names them."""

from __future__ import annotations

from .program import (
    Arrive,
    Assign,
    AwaitPhase,
    Barrier,
    Compute,
    Fence,
    For,
    Get,
    If,
    Load,
    Mode,
    PipeBarrier,
    Put,
    PutSignal,
    Quiet,
    Read,
    Reset,
    SetEvent,
    SetFlag,
    Signal,
    Statement,
    WaitEvent,
    WaitFlag,
    WaitUntil,
    While,
    Write,
)


def statement_text(statement: Statement) -> str:
    """The statement in one line, without what is nested in it."""
    match statement:
        case For(index=index, start=start, stop=stop, step=step):
            return f"for ({index} = {start}; {index} < {stop}; {index} += {step})"
        case While(condition=condition):
            return f"while ({condition})"
        case If(condition=condition):
            return f"if ({condition})"
        case Assign(target=target, value=value):
            return f"{target} = {value}"
        case Load(target=target, word=word):
            return f"{target} = word at {word}"
    return _synchronising(statement) or _moving(statement)


def _synchronising(statement: Statement) -> str | None:
    match statement:
        case SetFlag(mode=mode, pipe=pipe, flag=flag):
            return f"set flag {flag} on {pipe.name} (mode {mode})"
        case WaitFlag(mode=mode, pipe=pipe, flag=flag):
            return f"wait for flag {flag} on {pipe.name} (mode {mode})"
        case SetEvent(source=source, target=target, event=event):
            return f"set event {event} from {source.name} to {target.name}"
        case WaitEvent(source=source, target=target, event=event):
            return f"wait for event {event} from {source.name} to {target.name}"
        case PipeBarrier(pipe=pipe):
            return f"pipe barrier {pipe.name}"
        case Barrier(function=function):
            return f"barrier {function}"
        case Arrive(name=name):
            return f"arrive at {name}"
        case AwaitPhase(name=name, parity=parity):
            return f"await phase of {name}, parity {parity}"
        case Quiet(peer=peer):
            return f"quiet to rank {peer}"
        case Fence(peer=peer):
            return f"fence to rank {peer}"
    return None


def _moving(statement: Statement) -> str:
    match statement:
        case Put(peer=peer, mode=mode, staging=staging):
            return f"put to rank {peer}{_mode(mode)} (staged by {staging.name})"
        case Get(peer=peer):
            return f"get from rank {peer}"
        case PutSignal(peer=peer, mode=mode):
            return f"put and signal to rank {peer}{_mode(mode)}"
        case Signal(peer=peer, word=word, value=value, mode=mode):
            return f"signal to rank {peer}: word at {word} {'+=' if mode is Mode.ADD else '='} {value}"
        case WaitUntil(word=word, comparison=comparison, value=value):
            return f"wait until word at {word} {comparison} {value}"
        case Reset(word=word):
            return f"word at {word} = 0"
        case Read(pipe=pipe):
            return f"read on {pipe.name}"
        case Write(pipe=pipe, mode=mode):
            return f"write on {pipe.name}{_mode(mode)}"
        case Compute(contract=contract, segment=segment, segments=segments):
            return (
                f"compute {contract}: for {segment} in 0 .. {segments} - 1 reads on "
                f"{statement.read_pipe.name}, then writes on {statement.write_pipe.name}"
            )
    raise TypeError(f"no statement: {statement!r}")


def _mode(mode: Mode) -> str:
    return ", adding" if mode is Mode.ADD else ""
