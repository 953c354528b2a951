"""Why a property holds for all values, as chains of source lines; made from the proofs of its certificate.

A chain leads from what has to be first, through the rules that its proof uses, to what has to come after.
Used by `cli.why`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER
from ...protocol.program import Compute, PipeBarrier, Put, Quiet, SetFlag, Span, WaitFlag
from ..audit import used
from ..audit_claims import Claim, Pair
from ..audit_scene import BEGINS, MEET, RELEASE, Event, Label, Scene
from ..certificate import ClaimEntry
from ..certificate import poly as read_poly
from .atoms import Ring
from .certify import Certified
from .polynomial import Poly
from .sites import Site

SYNCHRONISATIONS = (Kind.SET_FLAG, Kind.WAIT_FLAG, Kind.BARRIER, Kind.QUIET, Kind.PIPE_BARRIER)
"""Kinds of which it is told whether a proof needs them."""


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain: what happens, where, and the rule by which it comes after the step before."""

    text: str
    span: Span
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one claim holds: its chains (two where either order will do), and the facts that they rest on."""

    title: str
    chains: tuple[tuple[Link, ...], ...]
    facts: tuple[str, ...]


def reasons(made: Certified, name: str) -> list[Reason]:
    """Why property ``name`` holds, claim by claim; those of which order is claimed first."""
    found = [_reason(made, made.claims[key], made.entries[key]) for key in made.by_property[name]]
    return sorted(found, key=lambda reason: not reason.chains)


def unneeded(made: Certified) -> list[Site]:
    """The synchronisations that no proof of an order passes through."""
    passed: set[int] = set()
    for entry in made.entries.values():
        scene = _scene(made, made.claims[entry.key], entry)[0]
        for use in entry.uses:
            if use[0] == "rule":
                passed |= {scene.events[int(place)].site.number for place in use[1:3]}
    return [
        site
        for site in made.case.subject.sites
        if site.kind in SYNCHRONISATIONS and site.barrier is not STREAM_ORDER and site.number not in passed
    ]


def _scene(made: Certified, claim: Claim, entry: ClaimEntry) -> tuple[Scene, tuple[Pair, ...]]:
    scene = made.case.scene()
    said = claim.ways[entry.way](scene)
    for place in entry.events:
        turns = tuple(map(read_poly, place.turns))
        site = made.case.subject.sites[place.site]
        scene.event(site, read_poly(place.rank), read_poly(place.block), turns, place.sub)
    used(scene, said, [tuple(use) for use in entry.uses])  # names the atoms that the rules speak of
    return scene, said.pairs


def _reason(made: Certified, claim: Claim, entry: ClaimEntry) -> Reason:
    scene, pairs = _scene(made, claim, entry)
    uses: list[Label] = [tuple(use) for use in entry.uses]
    wording = Wording(scene)
    denied = {int(use[1]) for use in uses if use[0] == "denied"}
    chains = [_chain(scene, uses, pair, wording) for place, pair in enumerate(pairs) if place in denied]
    return Reason(
        claim.title, tuple(c for c in chains if c), tuple(dict.fromkeys(_facts(scene, uses, wording)))
    )


# --- chains -----------------------------------------------------------------------------------


Point = tuple[int, bool]
"""An event and whether its end is meant."""


def _chain(scene: Scene, uses: Iterable[Label], pair: Pair, wording: Wording) -> tuple[Link, ...]:
    """The shortest way from one point to the other through the rules that are used."""
    edges: dict[Point, list[tuple[Point, str]]] = {}
    for use in uses:
        if use[0] == "rule":
            first, then, why = scene.events[int(use[1])], scene.events[int(use[2])], str(use[3])
            start, stop = _ends(first, then, why)
            edges.setdefault(start, []).append((stop, why))
    start = (pair.first.number, pair.before == pair.first.end and pair.first.end != pair.first.begin)
    goal = (pair.then.number, pair.after == pair.then.end and pair.then.end != pair.then.begin)
    before: dict[Point, tuple[Point, str] | None] = {start: None}
    waiting = [start]
    for point in waiting:
        for following, why in edges.get(point, ()):
            if following not in before:
                before[following] = (point, why)
                waiting.append(following)
    if goal not in before:
        return ()
    found = []
    at: Point | None = goal
    while at is not None:
        came = before[at]
        found.append((at, came[1] if came else ""))
        at = came[0] if came else None
    return tuple(_links(scene, found[::-1], wording))


def _ends(first: Event, then: Event, why: str) -> tuple[Point, Point]:
    """The two points that a rule orders."""
    begins = why in (BEGINS, MEET, RELEASE) or (why == "program order" and first.site.kind is Kind.PUT)
    start = (first.number, not begins and first.end != first.begin)
    ends = why in (BEGINS, MEET)
    return start, (then.number, ends and then.end != then.begin)


def _links(scene: Scene, points: list[tuple[Point, str]], wording: Wording) -> Iterator[Link]:
    """One link for each event: a barrier that several cores meet in is told once."""
    last: Event | None = None
    for (number, _), why in points:
        event = scene.events[number]
        if last is not None and (event is last or (why == MEET and event.site is last.site)):
            continue
        rule = "all meet in it" if event.site.barrier is not None and why != MEET else why
        yield Link(wording.event(event), event.site.span, rule)
        last = event


# --- words ------------------------------------------------------------------------------------

_LETTERS = {"rank": "rqpsuv", "block": "bcdefg", "": "ijklmnxyz"}
_SYMBOL = re.compile(r"(\w+)#(\d+)")


class Wording:
    """Names for the symbols of one scene: i and j for turns, r and q for ranks, b and c for blocks."""

    def __init__(self, scene: Scene) -> None:
        self.names: dict[str, str] = {}
        taken = set(scene.subject.domain.names)
        pools = {kind: (c for c in letters if c not in taken) for kind, letters in _LETTERS.items()}
        for event in scene.events:
            for poly in (event.rank, event.block, *event.turns):
                for name in sorted(poly.symbols - self.names.keys(), key=_order):
                    kind = name.partition("#")[0]
                    if _SYMBOL.fullmatch(name) and kind != "launch":
                        self.names[name] = next(pools[kind if kind in pools else ""], name)
        self.launches = scene.subject.domain.names["launches"].constant != 1

    def poly(self, poly: Poly) -> str:
        """``poly`` in these names."""
        return self.text(str(poly))

    def text(self, text: str) -> str:
        """Any text in these names."""
        return _SYMBOL.sub(lambda found: self.names.get(found[0], found[0]), text)

    def event(self, event: Event) -> str:
        """An event: what is done, for which turn, on which rank."""
        turns = [
            f"{loop.index} {self.poly(turn)}"
            for loop, turn in list(zip(event.site.loops, event.turns, strict=True))[not self.launches :]
        ]
        of = f" of {', '.join(turns)}" if turns else ""
        return f"{_done(event.site, self, event)}{of} on rank {self.poly(event.rank)}"


def _order(name: str) -> tuple[int, str]:
    found = _SYMBOL.fullmatch(name)
    return (int(found[2]) if found else 0, name)


def _done(site: Site, wording: Wording, event: Event) -> str:
    operation = site.operation
    match operation:
        case SetFlag():
            return "flag set"
        case WaitFlag():
            return "flag awaited"
        case Put():
            return "put"
        case Quiet():
            return "quiet"
        case PipeBarrier(pipe=pipe):
            return f"pipe barrier {pipe.value}"
        case Compute(contract=name):
            return f"{name} reads" if site.kind is Kind.READ else f"{name} done"
    if site.barrier is not None:
        return "next launch of the rank" if site.barrier is STREAM_ORDER else "barrier"
    return "end of the program" if site.kind is Kind.END else site.kind.value


def _facts(scene: Scene, uses: Iterable[Label], wording: Wording) -> Iterator[str]:
    """What the proof rests on besides rules: the remainders of a ring, and assumptions on parameters."""
    for use in uses:
        match use:
            case ("lemma", str(one), str(other), _):
                a, b = scene.atoms.known[one], scene.atoms.known[other]
                assert isinstance(a, Ring)
                assert isinstance(b, Ring)
                x, y, size = (wording.poly(p) for p in (a.value, b.value, a.modulus))
                yield f"{x} and {y} have one remainder by {size} only if they are equal or {size} apart"
