"""`minimize`: which synchronisations of a protocol are needed, by what; and what a VIOLATED one lacks.

Every unit (`units`) is taken out and the rest judged at the given values and beside them (`cases`). What
may go together gives the minimal safe sets; for a VIOLATED protocol, `mend` looks for a mend. All of it
is about the values that were judged. The command line prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..protocol.edits import Edit, told_apart
from ..protocol.evaluate import Value
from ..protocol.parameters import check_values
from ..protocol.program import Protocol, Statement
from ..protocol.statement_text import statement_text
from ..protocol.unroll import unroll
from .assumptions import assumptions_of
from .cases import Case, Outcome, Question, cases, holds, outcome, proof
from .mend import Mended, Search, mends
from .quick import Found
from .report import AssumptionNote, Report, RunSetup, Verdict, run_setup
from .units import Synchronisations, Unit, synchronisations, units

MINIMIZE_SCHEMA_VERSION = 1
SETS = 16
"""How many minimal safe sets are told."""

NEEDED, NOT_NEEDED, OPEN = "needed", "not needed", "open"

Tell = Callable[[str], None]


class Synchronised(msgspec.Struct, frozen=True):
    """A synchronisation; ``called_from`` is the call that it was inlined through, "" for none."""

    number: int
    role: str
    statement: str
    file: str
    line: int
    called_from: str


class Broken(msgspec.Struct, frozen=True):
    """An error that is there, or arises."""

    property: str
    code: str
    message: str
    file: str
    line: int


class Need(msgspec.Struct, frozen=True):
    """Whether the synchronisations ``numbers`` may go together.

    ``verdict``: needed, not needed, or open (``reason``). ``at``: what differs from the given values where
    ``violates`` arises; empty: at these themselves.
    """

    numbers: list[int]
    verdict: str
    at: dict[str, int]
    violates: list[Broken]
    reason: str | None


class SafeSet(msgspec.Struct, frozen=True):
    """Synchronisations that suffice, none of which may go then: ``kept``, and ``left_out``."""

    kept: list[int]
    left_out: list[int]


class Change(msgspec.Struct, frozen=True):
    """One edit of a mend: what kind, in words, near which line."""

    kind: str
    text: str
    file: str
    line: int


class Mend(msgspec.Struct, frozen=True):
    """Changes after which all properties are PROVED at the given values; ``fails_at``: not at these."""

    changes: list[Change]
    fails_at: list[dict[str, int]]


class Tried(msgspec.Struct, frozen=True):
    """How far mends were looked for; ``pairs_left`` were not tried."""

    edits: int
    pairs: int
    pairs_left: int


class Beside(msgspec.Struct, frozen=True):
    """Values beside the given ones; ``reason``: why nothing was judged there, None where it was."""

    changed: dict[str, int]
    reason: str | None


class Minimized(msgspec.Struct, frozen=True):
    """Everything that `mc2proof minimize` says.

    ``verdict``: of the protocol as it stands: PROVED, VIOLATED, or UNKNOWN. ``safe_sets`` are of a PROVED
    one only, ``mends`` of a VIOLATED one. ``safe_sets_left``: how many more there are.
    """

    subject: str
    digest: str
    parameters: dict[str, int | list[int]]
    profile: str
    setup: RunSetup
    verdict: str
    violated: list[Broken]
    judged: list[Beside]
    synchronisations: list[Synchronised]
    needs: list[Need]
    safe_sets: list[SafeSet]
    safe_sets_left: int
    mends: list[Mend]
    tried: Tried
    assumptions: list[AssumptionNote]
    schema_version: int = MINIMIZE_SCHEMA_VERSION

    def to_json(self) -> str:
        """The answer in its published format."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        ordered = {"schema_version": plain.pop("schema_version"), **plain}
        return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode()


@dataclass(frozen=True, slots=True)
class _Run:
    """A protocol with its synchronisations, the cases it is judged at, and its report at the first."""

    known: Synchronisations
    cases: Sequence[Case]
    question: Question
    base: Report
    tell: Tell

    @property
    def verdict(self) -> str:
        verdicts = {row.verdict for row in self.base.results}
        if Verdict.VIOLATED in verdicts:
            return "VIOLATED"
        return "UNKNOWN" if verdicts & {Verdict.UNKNOWN, Verdict.UNSUPPORTED} else "PROVED"


def minimized(
    protocol: Protocol, values: Mapping[str, Value], question: Question, tell: Tell | None = None
) -> Minimized:
    """What `mc2proof minimize` says of ``protocol`` at ``values``.

    Raises ParameterError and SourceError for values that the protocol does not take, LimitError and
    UnsupportedError for what is too large or not decided.
    """
    tell = tell or (lambda _: None)
    apart = told_apart(protocol)
    tell("judging the program as it stands")
    run = _Run(
        synchronisations(apart),
        cases(apart, values, question),
        question,
        proof(apart, values, question),
        tell,
    )
    groups = units(run.known, _instances(run))
    needs = [_need(run, unit, f"{n + 1} of {len(groups)}") for n, unit in enumerate(groups)]
    sets, left = _safe_sets(run, needs) if run.verdict == "PROVED" else ([], 0)
    search = Search((), 0, 0, 0)
    if run.verdict == "VIOLATED":
        search = mends(apart, run.cases, question, run.base, tell)
    complete = check_values(protocol, values)
    return Minimized(
        subject=", ".join(protocol.subjects or (protocol.name,)),
        digest=protocol.digest(),
        parameters={n: list(v) if isinstance(v, tuple) else v for n, v in complete.items()},
        profile=question.setup.profile.name,
        setup=run_setup(question.setup, strict_ids=question.strict_ids),
        verdict=run.verdict,
        violated=[_broken(found) for found in run.cases[0].base.errors],
        judged=[Beside(dict(case.changed), _not_judged(case, run.cases[0])) for case in run.cases[1:]],
        synchronisations=_listed(run.known),
        needs=needs,
        safe_sets=sets,
        safe_sets_left=left,
        mends=[_mend(mended) for mended in search.found],
        tried=Tried(search.singles, search.pairs, search.untried),
        assumptions=assumptions_of(protocol, None, question.setup),
    )


def _instances(run: _Run) -> list[Any]:
    protocol, setup = run.known.protocol, run.question.setup
    runnable = [case for case in run.cases if case.base.events]
    return [unroll(protocol, case.values, setup, limits=run.question.limits) for case in runnable]


def _not_judged(case: Case, given: Case) -> str | None:
    """Why ``case`` says nothing; a case with errors of its own still tells those that arise."""
    if case.base.errors and not given.base.errors:
        first = case.base.errors[0]
        return f"VIOLATED there as it stands: {first.property} ({first.code})"
    return case.base.open if not case.base.errors else None


# --- needs ------------------------------------------------------------------------------------


def _need(run: _Run, unit: Unit, progress: str) -> Need:
    """Whether ``unit`` is needed, at the given values if it is there."""
    run.tell(f"taking out {progress}")
    without = run.known.without(unit.members)
    reason = None
    for case in run.cases:
        there = outcome(without, case.values, run.question)
        new = [found for found in there.errors if (found.property, found.code) not in case.base.codes]
        if new:
            return Need(unit.ordered, NEEDED, dict(case.changed), [_broken(found) for found in new], None)
        if reason is None and case.base.clean and not there.clean:
            reason = _at(case, there)
    if reason is None and run.verdict != "PROVED":
        reason = "nothing else breaks, but the program is not PROVED as it stands"
    return Need(unit.ordered, NOT_NEEDED if reason is None else OPEN, {}, [], reason)


def _at(case: Case, there: Outcome) -> str:
    return f"{case.text}: {there.open}" if case.changed else str(there.open)


def _safe_sets(run: _Run, needs: Sequence[Need]) -> tuple[list[SafeSet], int]:
    """The minimal safe sets, those that leave out most first, and how many are not told.

    What may go together is built up from what may go: a set is tried when it may be left out less any
    one of its parts.
    """
    atoms = [frozenset(need.numbers) for need in needs if need.verdict == NOT_NEEDED]
    atoms = [a for a in atoms if not any(b < a for b in atoms)]
    level = {frozenset([index]) for index in range(len(atoms))}
    largest: list[frozenset[int]] = []
    while level:
        following = {
            a | b for a in level for b in level if len(a | b) == len(a) + 1 and _parts(a | b) <= level
        }
        safe = {s for s in sorted(following, key=sorted) if _may_go(run, _members(atoms, s))}
        largest += [s for s in level if not any(s < other for other in safe)]
        level = safe
    everything = frozenset(range(len(run.known.found)))
    left_out = {_members(atoms, chosen) for chosen in largest} or {frozenset[int]()}
    ordered = sorted(left_out, key=lambda s: (-len(s), sorted(s)))
    proved = [s for s in ordered[:SETS] if not s or _proved_without(run, s)]
    sets = [SafeSet(sorted(everything - s), sorted(s)) for s in proved]
    return sets, max(0, len(ordered) - SETS)


def _parts(chosen: frozenset[int]) -> set[frozenset[int]]:
    return {chosen - {one} for one in chosen}


def _members(atoms: Sequence[frozenset[int]], chosen: frozenset[int]) -> frozenset[int]:
    return frozenset(number for index in chosen for number in atoms[index])


def _may_go(run: _Run, members: frozenset[int]) -> bool:
    run.tell(f"taking out {len(members)} together")
    without = run.known.without(members)
    judged = (case for case in run.cases if case.base.clean)
    return all(outcome(without, case.values, run.question).clean for case in judged)


def _proved_without(run: _Run, members: frozenset[int]) -> bool:
    run.tell("proving what is left")
    without = run.known.without(members)
    return holds(proof(without, run.cases[0].values, run.question), run.base)


# --- what is said -----------------------------------------------------------------------------


def _listed(known: Synchronisations) -> list[Synchronised]:
    places = [s.span.place for _, s in known.found]
    return [
        Synchronised(
            number,
            site.role.name,
            statement_text(s),
            s.span.file,
            s.span.line,
            _caller(s) if places.count(s.span.place) > 1 else "",
        )
        for number, (site, s) in enumerate(known.found)
    ]


def _caller(statement: Statement) -> str:
    calls = statement.span.calls
    return calls[-1].place if calls else ""


def _broken(found: Found) -> Broken:
    return Broken(found.property, found.code, found.message, found.file, found.line)


def _mend(mended: Mended) -> Mend:
    changes = [_change(edit) for edit in mended.edits]
    return Mend(changes, [dict(case.changed) for case in mended.fails_at])


def _change(edit: Edit) -> Change:
    return Change(edit.kind.value, edit.text, edit.near.span.file, edit.near.span.line)
