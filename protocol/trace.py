"""Traces: one interleaving as a short string that can be pasted into an issue and replayed.

The format, version 2: ``v2:`` and the base64 (of URLs) of the deflated JSON of a `Trace`. It names the
program by digest, carries the parameters and readings that the instance is made from, the actions, the
claim that holds after them and, where it was found by running with data, what data that was. Fields
with a default may be missing, and a reader skips those it does not know: ``data`` came later, and
traces with and without it are read by versions with and without it. Written by
`checker.counterexample` and `fuzz.diagnose`, read by `replay` and `fuzz.replaying`.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from .errors import TraceError
from .machine import Action, ActionKind, Moment, Phase
from .profile import BarrierAll, Profile
from .setup import Injected, Setup

PREFIX = "v2:"


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What holds at the end: points that happened, points that did not, or that nothing can happen.

    Points are (core, event, begin or end). ``counter`` = (core, flag, space, launch, value that is
    passed).
    """

    happened: list[tuple[int, int, str]] = []
    pending: list[tuple[int, int, str]] = []
    stuck: bool = False
    counter: tuple[int, int, str, int, int] | None = None


class SetupNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `Setup` as a trace carries it: the profile by name, with what was chosen for it."""

    profile: str
    barrier_all: str | None = None
    launches: int = 1
    flags_cleared: bool = False
    faults: list[str] = []
    cores: int | None = None
    flags_merge: bool = False
    matmul_objects: int = 0


class DataNote(msgspec.Struct, frozen=True):
    """The inputs that a run had: formats of A and B as ``A:B``, kind of values, seed of their choice.

    The names are those of `fuzz.numerics` and `fuzz.kinds`. For what multiplies no matrices the seed
    alone counts, its inputs are random bytes.
    """

    dtype: str
    kind: str
    seed: int


class Trace(msgspec.Struct, frozen=True, omit_defaults=True):
    """One timing of one instance, and what it shows. ``data`` None: no bytes were moved to find it."""

    digest: str
    parameters: dict[str, int | list[int]]
    setup: SetupNote
    property: str
    code: str
    conflict: list[str]
    claim: Claim
    actions: str
    data: DataNote | None = None


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


def write_setup(setup: Setup) -> SetupNote:
    """``setup`` in the form that a trace carries."""
    return SetupNote(
        setup.profile.name,
        None if setup.barrier_all is None else setup.barrier_all.value,
        setup.launches,
        setup.flags_cleared,
        sorted(fault.value for fault in setup.faults),
        setup.profile.cores,
        setup.profile.flags_merge,
        setup.profile.matmul_objects,
    )


def read_setup(note: SetupNote, profiles: Mapping[str, Profile]) -> Setup:
    """The setup of `write_setup`; ``profiles`` by name. Raises TraceError."""
    if note.profile not in profiles:
        raise TraceError(f"the trace uses profile {note.profile}, which is not known")
    try:
        return Setup(
            replace(
                profiles[note.profile],
                cores=note.cores,
                flags_merge=note.flags_merge,
                matmul_objects=note.matmul_objects,
            ),
            None if note.barrier_all is None else BarrierAll(note.barrier_all),
            note.launches,
            note.flags_cleared,
            frozenset(map(Injected, note.faults)),
        )
    except ValueError as error:
        raise TraceError(f"the trace was made for what is not known here: {error}") from error


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
