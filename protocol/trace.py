"""Traces: one interleaving as a short string that can be pasted into an issue and replayed.

A trace names the program by digest, carries the parameters and readings that the instance is made
from, the actions, and the claim that holds after them. Written by `checker.counterexample`, read
by `replay`.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec

from .errors import TraceError
from .machine import Action, ActionKind, Moment, Phase

PREFIX = "v1:"


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What holds at the end: points that happened, points that did not, or that nothing can happen.

    Points are (core, event, begin or end). ``counter`` = (core, flag, link, value that is passed).
    """

    happened: list[tuple[int, int, str]] = []
    pending: list[tuple[int, int, str]] = []
    stuck: bool = False
    counter: tuple[int, int, str, int] | None = None


class Trace(msgspec.Struct, frozen=True):
    """One timing of one instance, and what it shows."""

    digest: str
    parameters: dict[str, int | list[int]]
    profile: str
    barrier_all: str
    property: str
    code: str
    conflict: list[str]
    claim: Claim
    actions: str


def encode(trace: Trace) -> str:
    """``trace`` as one word of letters, digits, ``-``, ``_`` and ``=``."""
    packed = zlib.compress(msgspec.json.encode(trace), 9)
    return PREFIX + base64.urlsafe_b64encode(packed).decode()


def decode(text: str) -> Trace:
    """The trace that ``text`` stands for. Raises TraceError."""
    text = text.strip()
    if not text.startswith(PREFIX):
        raise TraceError(f"a trace starts with {PREFIX!r}")
    try:
        packed = base64.urlsafe_b64decode(text[len(PREFIX) :].encode("ascii"))
        return msgspec.json.decode(zlib.decompress(packed), type=Trace)
    except (ValueError, UnicodeError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise TraceError("the trace is damaged or cut off: copy it whole") from error


def write_actions(actions: list[Action]) -> str:
    """Actions as words: a letter, the core, and the queue or event."""
    return " ".join(map(str, actions))


def read_actions(text: str) -> list[Action]:
    """The actions of `write_actions`. Raises TraceError."""
    kinds = {kind.value: kind for kind in ActionKind}
    actions = []
    for word in text.split():
        core, _, index = word[1:].partition(".")
        if word[0] not in kinds or not core.isdecimal() or not index.isdecimal():
            raise TraceError(f"{word!r} is no action")
        actions.append(Action(kinds[word[0]], int(core), int(index)))
    return actions


def to_words(moments: list[Moment]) -> list[tuple[int, int, str]]:
    """Points in the form that a claim stores."""
    return [(m.core, m.event, m.phase.value) for m in moments]


def from_words(words: list[tuple[int, int, str]]) -> list[Moment]:
    """The points that a claim stores. Raises TraceError."""
    try:
        return [Moment(core, event, Phase(phase)) for core, event, phase in words]
    except ValueError as error:
        raise TraceError("the trace's claim is damaged") from error
