"""`audit`: whether a certificate proves what it says of the program, without solver and without engines.

The claims that a property needs are derived from the program (`audit_claims`), every condition that a proof
uses as well (`audit_scene`); that they cannot hold together with the claim's denial is found by
`audit_arithmetic`. What is trusted is these modules, the program form, how its variables get their closed
form (`protocol.closed_forms`) and its expressions become polynomials (`parametric.translate`); where two byte
windows overlap is told by `parametric.windows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ..protocol.errors import Mc2proofError
from ..protocol.profile import PROFILES, BarrierAll
from ..protocol.program import Protocol, Role
from ..protocol.setup import Injected, Setup
from . import audit_claims as claims
from . import audit_limits as limits
from . import audit_memory as memory
from .audit_arithmetic import impossible
from .audit_claims import Case, Claim, Invalid, Stated, Supplier
from .audit_ranks import RankTable, enough_cores, grows
from .audit_scene import Event, Label, Match, Scene, Subject, subject_of
from .certificate import Certificate, CertificateFile, ClaimEntry, Place, poly
from .parametric.domain import Domain, domain_of
from .parametric.formula import FALSE, Formula, equal
from .parametric.sites import Site

MOST_MATMUL_OBJECTS = 4
"""How many the Matmul API gives flag ids to (devkit)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a certificate proves nothing: the entry, and what is wrong with it."""

    entry: str
    text: str


@dataclass(slots=True)
class Audited:
    """What was found of one certificate: its properties, how many claims they need, and the problems."""

    certificate: Certificate
    needed: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether it proves all that it says."""
        return not self.problems


def audit(file: CertificateFile, protocols: Sequence[Protocol]) -> list[Audited]:
    """Check every certificate of ``file`` against the program that it is of."""
    found = []
    covered: set[str] = set()
    for certificate in file.programs:
        same = [p for p in protocols if p.digest() == certificate.digest]
        covered |= {certificate.digest}
        result = Audited(certificate)
        if same:
            check(result, same[0])
        else:
            digests = ", ".join(sorted({p.digest() for p in protocols}))
            result.problems.append(
                Problem("program", f"it is of {certificate.digest}, and the sources are {digests}")
            )
        found.append(result)
    for protocol in protocols:
        if protocol.digest() not in covered and found:
            found[0].problems.append(Problem("program", f"there is no certificate for {protocol.name}"))
    return found


def check(result: Audited, protocol: Protocol) -> None:
    """Check one certificate against its program; problems are noted in ``result``."""
    certificate = result.certificate
    try:
        case = case_of(certificate, protocol)
        table = rank_table(certificate)
    except (Invalid, Mc2proofError) as error:
        result.problems.append(Problem("program", str(error)))
        return
    if not certificate.properties:
        result.problems.append(Problem("properties", "it proves none"))
    entries = {entry.key: entry for entry in certificate.claims}
    if len(entries) < len(certificate.claims):
        result.problems.append(Problem("claims", "two proofs are of one claim"))
    done: dict[tuple[str, str], bool] = {}
    for name in certificate.properties:
        result.needed[name] = 0
        try:
            for claim in needs(case, table, name):
                result.needed[name] += 1
                if (claim.key, claim.title) not in done:
                    problem = checked(case, claim, entries.get(claim.key))
                    done[claim.key, claim.title] = problem is None
                    if problem is not None:
                        result.problems.append(Problem(f"{claim.key}: {claim.title}", problem))
        except (Invalid, Mc2proofError) as error:
            result.problems.append(Problem(name, str(error)))
    spare = sorted(entries.keys() - {key for key, _ in done})
    if spare and not result.problems:
        result.problems.append(Problem(spare[0], "no property needs this claim"))


# --- what is certified ------------------------------------------------------------------------


def setup_from(certificate: Certificate) -> Setup:
    """What the program is run on. Raises Invalid."""
    given = certificate.setup
    if not 0 <= given.matmul_objects <= MOST_MATMUL_OBJECTS:
        raise Invalid(f"its setup is none: {given.matmul_objects} matmul objects")
    try:
        profile = replace(
            PROFILES[certificate.profile], flags_merge=given.flags_merge, cores=given.cores,
            matmul_objects=given.matmul_objects,
        )  # fmt: skip
        reading = None if given.barrier_all is None else BarrierAll(given.barrier_all)
        faults = frozenset(Injected(fault) for fault in given.faults)
        return Setup(profile, reading, given.launches, given.flags_cleared, faults)
    except (KeyError, ValueError) as error:
        raise Invalid(f"its setup is none: {error}") from error


def case_of(certificate: Certificate, protocol: Protocol) -> Case:
    """The program with the choices of the certificate. Raises Invalid."""
    setup = setup_from(certificate)
    domain = domain_of(protocol, certificate.free, certificate.values, certificate.assume, setup.launches)
    if _is_empty(domain):
        raise Invalid("no value satisfies what it assumes: anything is proved of nothing")
    names = {name: str(value) for name, value in domain.names.items()}
    if names != certificate.names:
        raise Invalid("the parameters of the sources compute something else")
    subject = subject_of(protocol, setup, domain, strict_ids=certificate.setup.strict_ids)
    for entry in certificate.matches:
        shift = tuple(poly(data) for data in entry.shift)
        subject.matches.append(Match(_site(subject, entry.set), _site(subject, entry.wait), shift))
    suppliers = {
        key: None if place is None else _supplier(subject, place)
        for key, place in certificate.suppliers.items()
    }
    backlogs = {
        entry.set: (poly(entry.distance), poly(entry.bound), entry.loop) for entry in certificate.backlogs
    }
    highs = {key: poly(data) for key, data in certificate.highs.items()}
    return Case(subject, suppliers, backlogs, highs)


def _is_empty(domain: Domain) -> bool:
    """Whether the assumptions are seen to contradict each other; the powers of two, one by one."""
    conditions = domain.conditions()
    if impossible(conditions):
        return True
    sizes = [1 << exponent for exponent in range(64)]
    return any(
        all(impossible([*conditions, equal(power, size)]) for size in sizes) for power in domain.powers
    )


def _site(subject: Subject, at: int) -> Site:
    if not 0 <= at < len(subject.sites):
        raise Invalid(f"there is no site {at}")
    return subject.sites[at]


def _supplier(subject: Subject, place: Place) -> Supplier:
    turns = tuple(poly(turn) for turn in place.turns)
    return Supplier(_site(subject, place.site), poly(place.rank), poly(place.block), turns)


def rank_table(certificate: Certificate) -> RankTable | None:
    """The ranks that it has."""
    ranks = certificate.ranks
    return None if ranks is None else RankTable(ranks.factor, ranks.phase, ranks.offset)


# --- what the properties need -----------------------------------------------------------------


def needs(case: Case, table: RankTable | None, name: str) -> Iterator[Claim]:
    """The claims from which property ``name`` follows. Raises Invalid where it cannot."""
    if name not in _NEEDS:
        raise Invalid(f"{name} is no property that can be certified")
    return chain(_basis(case, name), _NEEDS[name](case, table))


_BY_BARRIERS = frozenset({"no-read-before-write", "no-overwrite-before-read", "no-write-conflict"})
"""Properties that may be shown by what is ordered without flags, where no match is named."""


def _basis(case: Case, name: str) -> Iterator[Claim]:
    """What the claims of property ``name`` rest on."""
    yield from claims.arithmetic(case)
    if name == "layout":
        return
    yield from claims.barriers(case)
    if name != "barrier-match" and (case.subject.matches or name not in _BY_BARRIERS):
        yield from claims.matching(case)


Needs = Callable[[Case, RankTable | None], Iterator[Claim]]


def _deadlock(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from enough_cores(case)


def _no_circle(case: Case, table: RankTable | None) -> Iterator[Claim]:
    """What every proof of an order rests on: from events that wait in a circle any order would follow."""
    if table is None:
        raise Invalid("there is no table of ranks: events may wait in a circle")
    yield from grows(case, table)


def _before_read(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from memory.delivered(case)
    yield from memory.delivered_once(case)
    yield from memory.arrivals(case)


def _completion(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _before_read(case, table)
    yield from memory.completed(case)


def _overwrite(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from memory.delivered(case, written=True)
    yield from memory.undisturbed(case, across=False)


def _conflict(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from memory.queues(case.subject)
    yield from memory.ordered_writes(case, across=False)


def _relaunch(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from memory.delivered(case, written=True)
    yield from memory.undisturbed(case, across=True)
    yield from memory.queues(case.subject)
    yield from memory.ordered_writes(case, across=True)


def _range(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from _no_circle(case, table)
    yield from limits.ids_and_backlogs(case)


def _barriers(case: Case, _: RankTable | None) -> Iterator[Claim]:
    if not case.subject.barriers():
        raise Invalid("there is no barrier")
    yield from ()


def _coverage(case: Case, table: RankTable | None) -> Iterator[Claim]:
    yield from memory.delivered(case)
    yield from memory.delivered_once(case)
    yield from limits.covered(case)
    yield from _deadlock(case, table)


_NEEDS: Mapping[str, Needs] = {
    "deadlock-freedom": _deadlock,
    "no-read-before-write": _before_read,
    "no-overwrite-before-read": _overwrite,
    "no-write-conflict": _conflict,
    "completion": _completion,
    "flag-balance": lambda case, _: claims.awaited(case),
    "flag-range": _range,
    "barrier-match": _barriers,
    "coverage": _coverage,
    "layout": lambda case, _: limits.layout(case),
    "relaunch": _relaunch,
}


# --- one claim --------------------------------------------------------------------------------


def checked(case: Case, claim: Claim, entry: ClaimEntry | None) -> str | None:
    """Why ``entry`` does not prove ``claim``; None where it does."""
    for statement in claim.ways if entry is None else ():
        if FALSE in statement(case.scene()).given:
            return None  # nothing is claimed: the regions, say, are not the same
    if entry is None:
        return "it has no proof"
    if not 0 <= entry.way < len(claim.ways):
        return f"there is no form {entry.way} of this claim"
    scene = case.scene()
    said = claim.ways[entry.way](scene)
    try:
        for place in entry.events:
            _check_core(case, place)
            scene.event(
                _site(case.subject, place.site), poly(place.rank), poly(place.block),
                tuple(poly(turn) for turn in place.turns), place.sub,
            )  # fmt: skip
        conditions = used(scene, said, [tuple(use) for use in entry.uses])
    except (Invalid, Mc2proofError) as error:
        return str(error)
    except ValueError:
        return "an event has not one turn for every loop"
    return None if impossible(conditions) else "what it uses does not prove it"


def _check_core(case: Case, place: Place) -> None:
    site = _site(case.subject, place.site)
    cores = case.subject.protocol.vectors_per_cube if site.role is Role.AIV else 1
    if not 0 <= place.sub < cores:
        raise Invalid(f"there is no {site.role.name} {place.sub} in a block")


def used(scene: Scene, said: Stated, uses: Sequence[Label]) -> list[Formula]:
    """The conditions that ``uses`` name. Raises Invalid for what is none."""
    rules = [use for use in uses if use[:1] == ("rule",)]  # first: they may speak of further atoms
    found = [rule for use in rules for rule in [_rule(scene, use)]]
    for use in uses:
        if use[:1] != ("rule",):
            found.append(_fact(scene, said, use))
    return found


def _rule(scene: Scene, use: Label) -> Formula:
    match use:
        case ("rule", int(a), int(b), str(why)) if _is_event(scene, a) and _is_event(scene, b):
            for name, condition in scene.rules(scene.events[a], scene.events[b]):
                if name == why:
                    return condition
            first, then = scene.events[a], scene.events[b]
            raise Invalid(f"{why} says nothing of {claims.at(first.site)} and {claims.at(then.site)}")
    raise Invalid(f"{list(use)} names no rule")


def _is_event(scene: Scene, index: int) -> bool:
    return 0 <= index < len(scene.events)


def _fact(scene: Scene, said: Stated, use: Label) -> Formula:
    known: Sequence[Formula] = ()
    match use:
        case ("given", int(index)):
            known = said.given
        case ("denied", int(index)):
            known = said.denied
        case ("domain", int(index)):
            known = scene.domain_facts()
        case ("product", int(index)):
            known = scene.products(*said.given)
        case ("atom", str(name), int(index)) if name in scene.atoms.known:
            known = scene.atom_facts(name)
        case ("lemma", str(one), str(other), int(index)) if {one, other} <= scene.atoms.known.keys():
            known = scene.lemmas(one, other)
        case _:
            raise Invalid(f"{list(use)} names no condition")
    if not 0 <= index < len(known):
        raise Invalid(f"{list(use)} names no condition")
    return known[index]


__all__ = ["Audited", "Event", "Problem", "audit"]
