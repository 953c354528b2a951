"""Certificates: for every claim that a PROVED property needs, a small proof that `audit` can check.

The claims are those of `checker.audit_claims`. For each, `question` gathers events as it does for the
engine's own proof; Z3 says which conditions are needed, and the auditor's arithmetic has to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ...protocol.evaluate import Value
from ...protocol.instance import Kind
from ..audit import needs, setup_from, used
from ..audit_arithmetic import impossible
from ..audit_claims import Case, Claim, Invalid, Stated, Supplier
from ..audit_ranks import RankTable
from ..audit_scene import Event, Label, Match, Scene, subject_of
from ..certificate import BacklogEntry, Certificate, ClaimEntry, MatchEntry, Place, RankEntry, terms
from ..report import run_setup
from .atoms import Ring
from .conditions import largest
from .decide import Decided
from .formula import FALSE, TRUE, at_least, negation
from .layout import region_bytes, touches
from .memory import supply_of
from .polynomial import Poly, never_negative, number
from .program import Program
from .question import Happening, Question
from .solve import Answer, Solver
from .touches import readers


@dataclass(slots=True)
class Certified:
    """A certificate with the claims that it is of, for `why`."""

    certificate: Certificate
    case: Case
    claims: dict[str, Claim] = field(default_factory=dict)
    entries: dict[str, ClaimEntry] = field(default_factory=dict)
    by_property: dict[str, list[str]] = field(default_factory=dict)


def certify(
    found: Decided, subjects: list[str], values: Mapping[str, Value], properties: Sequence[str],
    *, strict_ids: bool, progress: Callable[[str], None] | None = None,
) -> Certified:  # fmt: skip
    """A certificate of ``properties``, which ``found`` says are proved; what has no proof is left out."""
    program = found.program
    case = _case(found, strict_ids)
    table = None
    if found.ranks is not None:
        table = RankTable(found.ranks.factor, found.ranks.phase, found.ranks.offset)
    made = Certified(_empty(found, subjects, values, strict_ids), case)
    kept: list[str] = []
    left_out: dict[str, str] = {}
    if setup_from(made.certificate) != program.setup:
        left_out = dict.fromkeys(properties, "its hardware profile is none of the shipped ones")
    for name in properties if not left_out else ():
        if progress is not None:
            progress(f"writing down why {name} holds")
        try:
            made.by_property[name] = [
                key for claim in needs(case, table, name) for key in _proved(program, made, claim)
            ]
            kept.append(name)
        except Invalid as error:
            left_out[name] = str(error)
            made.by_property.pop(name, None)
    needed = {key for keys in made.by_property.values() for key in keys}
    made.certificate = _filled(
        made, kept, left_out, table, [e for k, e in made.entries.items() if k in needed]
    )
    return made


def _proved(program: Program, made: Certified, claim: Claim) -> Iterator[str]:
    """The claim's key, once it has a proof; nothing where there is nothing to prove."""
    if claim.key not in made.claims:
        entry = prove(program, made.case, claim)
        made.claims[claim.key] = claim
        if entry is not None:
            made.entries[claim.key] = entry
    if claim.key in made.entries:
        yield claim.key


def prove(program: Program, case: Case, claim: Claim) -> ClaimEntry | None:
    """The proof of ``claim``; None where it claims nothing. Raises Invalid where none is found."""
    unseen = False
    for way, statement in enumerate(claim.ways):
        for count in (1, 2):  # the further pairs are mostly in program order, or come with the first
            scene = case.scene()
            said = statement(scene)
            if FALSE in said.given:
                return None
            uses = _search(program, scene, said, count)
            if uses is not None:
                entry = _entry(claim, way, case, uses, scene)
                if entry is not None:
                    return entry
                unseen = True
            if len(said.pairs) < 2:
                break
    if unseen:
        raise Invalid(f"the auditor's arithmetic does not see that {claim.title}")
    raise Invalid(f"no proof was found that {claim.title}")


# --- searching --------------------------------------------------------------------------------


def _search(program: Program, scene: Scene, said: Stated, count: int) -> list[Label] | None:
    """The names of conditions that cannot hold together with the denial; events are added to ``scene``."""
    question = Question(program)
    known: dict[Happening, Event] = {}
    for event in list(scene.events) if said.pairs else ():
        known[_happening(question, event)] = event
    for pair in said.pairs[:count]:
        first, then = (next(h for h, e in known.items() if e is of) for of in (pair.first, pair.then))
        question.seek(first, then)
    while True:
        for happening in question.happenings:
            if happening not in known:
                core, site = happening.core, scene.subject.sites[happening.site.number]
                known[happening] = scene.event(site, core.rank, core.block, happening.turns, core.sub)
        found = _core(program.solver, scene, said)
        if found is not None or not said.pairs or not question.gather():
            return found


def _happening(question: Question, event: Event) -> Happening:
    site = question.program.sites[event.site.number]
    return question.happen(
        site, question.core(event.site.role, event.rank, event.block, event.sub), event.turns
    )


def _core(solver: Solver, scene: Scene, said: Stated) -> list[Label] | None:
    labels = list(_labels(scene, said))
    conditions = used(scene, said, labels)
    ordered = [label for label in labels if label[0] == "rule"]
    ordered += [label for label in labels if label[0] != "rule"]
    core = solver.core([], conditions)
    return None if core is None else [ordered[place] for place in core]


def _labels(scene: Scene, said: Stated) -> Iterator[Label]:
    """The names of all conditions that are known."""
    for a in scene.events:
        for b in scene.events:
            for why, condition in scene.rules(a, b):
                if condition != TRUE:
                    yield ("rule", a.number, b.number, why)
    parameters = (("domain", scene.domain_facts()), ("product", scene.products(*said.given)))
    for kind, some in (("given", said.given), ("denied", said.denied), *parameters):
        yield from ((kind, place) for place in range(len(some)))
    names = list(scene.atoms.known)
    for name in names:
        yield from (("atom", name, place) for place in range(len(scene.atom_facts(name))))
    rings = [name for name in names if isinstance(scene.atoms.known[name], Ring)]
    for place, one in enumerate(rings):
        for other in rings[place + 1 :]:
            yield from (("lemma", one, other, number) for number in range(len(scene.lemmas(one, other))))


def _entry(claim: Claim, way: int, case: Case, uses: list[Label], scene: Scene) -> ClaimEntry | None:
    """The proof with the events that it uses; None where the auditor would not see it."""
    own = case.scene()
    said = claim.ways[way](own)
    count = len(own.events)
    needed = sorted(
        {int(place) for use in uses if use[0] == "rule" for place in use[1:3]} - set(range(count))
    )
    numbers = {old: new for new, old in enumerate((*range(count), *needed))}
    events = [scene.events[place] for place in needed]
    for event in events:
        own.event(event.site, event.rank, event.block, event.turns, event.sub)
    renamed: list[Label] = [
        ("rule", numbers[int(use[1])], numbers[int(use[2])], use[3]) if use[0] == "rule" else use
        for use in uses
    ]
    if not impossible(used(own, said, renamed)):
        return None
    return ClaimEntry(
        claim.key, claim.title, way, [_place(event) for event in events], [list(u) for u in renamed]
    )


def _place(event: Event) -> Place:
    turns = [terms(turn) for turn in event.turns]
    return Place(event.site.number, terms(event.rank), terms(event.block), turns, event.sub)


# --- what the engine chose --------------------------------------------------------------------


def _case(found: Decided, strict_ids: bool) -> Case:
    program = found.program
    subject = subject_of(program.protocol, program.setup, program.domain, strict_ids=strict_ids)
    subject.matches = [
        Match(subject.sites[m.set.number], subject.sites[m.wait.number], m.shift) for m in program.matches
    ]
    case = Case(subject)
    case.suppliers = dict(_suppliers(program, case))
    case.backlogs = {b.site.number: (b.distance, b.bound, b.loop) for b in found.backlogs}
    case.highs = dict(_highs(program, case.scene()))
    return case


def _suppliers(program: Program, case: Case) -> Iterator[tuple[str, Supplier | None]]:
    for site, window in readers(program):
        supply = supply_of(program, site, window)
        if supply is None:
            continue
        key, chosen = f"{site.number}.{site.windows.index(window)}", supply.supplier
        if chosen is None:
            yield key, None
        else:
            where = case.subject.sites[chosen.site.number]
            yield key, Supplier(where, chosen.core.rank, chosen.core.block, chosen.turns)


def _highs(program: Program, scene: Scene) -> Iterator[tuple[str, Poly]]:
    """The largest values of ends and sizes that signs alone do not bound, where one is within its limit."""
    regions = {region.name: region for region in program.protocol.regions}
    for site in program.of_kind(Kind.PUT, Kind.READ, Kind.WRITE):
        question = Question(program)
        happening = question.happen(site, question.core(site.role))
        for place, touch in enumerate(touches(question, happening)):
            limit = region_bytes(question, site, regions[touch.region], touch.rank)
            if limit is not None:
                yield from _high(
                    scene, question, happening, f"end {site.number}.{place}", touch.extent.stop, limit
                )
            if site.kind is Kind.PUT and place == 0:
                most = number(program.setup.profile.put_limit)
                yield from _high(scene, question, happening, f"size {site.number}", touch.extent.bytes, most)


def _high(
    scene: Scene, question: Question, happening: Happening, key: str, value: Poly, limit: Poly
) -> Iterator[tuple[str, Poly]]:
    bounds = question.bounds(happening)
    if never_negative(limit - value, bounds):
        return
    for high in largest(question, happening, value):
        denied = negation(at_least(limit, high))
        asked = [denied, *scene.domain_facts(), *scene.products(denied)]
        fits = question.program.solver.ask(asked) is Answer.IMPOSSIBLE
        if fits and never_negative(high - value, bounds):
            yield key, high
            return


def _empty(found: Decided, subjects: list[str], values: Mapping[str, Value], strict_ids: bool) -> Certificate:
    program = found.program
    domain = program.domain
    return Certificate(
        subjects=subjects,
        digest=program.protocol.digest(),
        free=list(domain.free),
        assume=[assumption.text for assumption in domain.assumptions],
        values={name: value for name, value in values.items() if isinstance(value, int)},
        names={name: str(value) for name, value in domain.names.items()},
        profile=program.setup.profile.name,
        setup=run_setup(program.setup, strict_ids=strict_ids),
        properties=[], matches=[], suppliers={}, backlogs=[], highs={}, ranks=None, claims=[],
    )  # fmt: skip


def _filled(
    made: Certified, kept: list[str], left_out: dict[str, str], table: RankTable | None,
    entries: list[ClaimEntry],
) -> Certificate:  # fmt: skip
    case = made.case
    suppliers = {
        key: None
        if s is None
        else Place(s.site.number, terms(s.rank), terms(s.block), [*map(terms, s.turns)])
        for key, s in case.suppliers.items()
    }
    backlogs = [
        BacklogEntry(n, terms(distance), terms(bound), loop)
        for n, (distance, bound, loop) in case.backlogs.items()
    ]
    return msgspec.structs.replace(
        made.certificate,
        properties=kept,
        matches=[
            MatchEntry(m.set.number, m.wait.number, [*map(terms, m.shift)]) for m in case.subject.matches
        ],
        suppliers=suppliers,
        backlogs=backlogs if "flag-range" in kept else [],
        highs={key: terms(high) for key, high in case.highs.items()} if "layout" in kept else {},
        ranks=None if table is None else RankEntry(table.factor, dict(table.phase), dict(table.offset)),
        claims=entries,
        left_out=left_out,
    )
