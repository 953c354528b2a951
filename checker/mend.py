"""`mends`: the smallest changes to the synchronisation of a VIOLATED protocol that make it PROVED.

Edits come from `edit_list`: single ones first, then pairs of those that help each for itself. Each is
judged at the smallest failing case first; what passes all cases is confirmed by `prove`, Z3 included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..protocol.edits import Edit, EditKind, edited
from ..protocol.program import Protocol
from .cases import Case, Outcome, Question, holds, outcome, proof
from .edit_list import handshakes, single_edits
from .report import Report

PROPOSALS = 3
"""How many mends are told."""

PAIRS = 2000
"""How many pairs of edits are tried at most."""

ENOUGH = 12
"""The search among pairs ends when so many mend; the best of them are told."""

Tell = Callable[[str], None]
Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Mended:
    """Edits after which everything is PROVED, and the neighbouring cases at which it is not."""

    edits: Edits
    fails_at: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """The mends, best first; how many single edits and pairs were tried, and how many pairs were not."""

    found: tuple[Mended, ...]
    singles: int
    pairs: int
    untried: int


@dataclass(frozen=True, slots=True)
class _Passed:
    edits: Edits
    protocol: Protocol
    fails_at: tuple[Case, ...]
    rank: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Searcher:
    protocol: Protocol
    cases: Sequence[Case]
    question: Question
    base: Report
    tell: Tell
    probe: Case

    @property
    def given(self) -> Case:
        return self.cases[0]

    def judge(self, edits: Edits, case: Case) -> Outcome:
        return outcome(edited(self.protocol, edits), case.values, self.question, quick=True)

    def passed(self, edits: Edits, number: int) -> list[_Passed]:
        """The edits if they mend the given case, with the neighbours that they leave or make wrong."""
        protocol = edited(self.protocol, edits)
        mended = outcome(protocol, self.given.values, self.question, quick=True)
        if not mended.clean:
            return []
        fails = []
        for case in self.cases[1:]:
            # what is wrong there and not here is no part of what is to be mended
            beside = case.base.codes - self.given.base.codes
            there = outcome(protocol, case.values, self.question, quick=True)
            if there.codes - beside or (there.open and not case.base.open):
                fails.append(case)
        added = max(0, mended.events - self.given.base.events)
        kinds = sum(_KINDS.index(edit.kind) for edit in edits)
        return [_Passed(edits, protocol, tuple(fails), (len(fails), added, kinds, number))]

    def confirmed(self, passed: Sequence[_Passed]) -> list[Mended]:
        """The best of those that ``prove`` agrees with, equal programs once.

        What fails at some neighbour is told only where nothing else is.
        """
        found: list[Mended] = []
        seen: set[str] = set()
        for each in sorted(passed, key=lambda p: p.rank):
            digest = each.protocol.digest()
            if len(found) == PROPOSALS or (each.fails_at and found and not found[0].fails_at):
                break
            if digest in seen:
                continue
            seen.add(digest)
            self.tell(f"proving mend {len(found) + 1}")
            if holds(proof(each.protocol, self.given.values, self.question), self.base):
                found.append(Mended(each.edits, each.fails_at))
        return found


_KINDS = list(EditKind)


def mends(protocol: Protocol, cases: Sequence[Case], question: Question, base: Report, tell: Tell) -> Search:
    """Mends of ``protocol``, which is VIOLATED at the first of ``cases``; ``base`` is its report there."""
    searcher = _Searcher(protocol, cases, question, base, tell, _probe(cases))
    helping: list[tuple[int, Edit]] = []
    singles = 0
    for stage in (single_edits(protocol), handshakes(protocol)):
        passed: list[_Passed] = []
        for number, edit in enumerate(stage):
            if number % 20 == 0:
                tell(f"trying edit {number + 1} of {len(stage)}")
            there = searcher.judge((edit,), searcher.probe)
            if there.clean:
                passed += searcher.passed((edit,), number)
            elif _helps(there, searcher.probe.base):
                helping.append((len(there.codes), edit))
        singles += len(stage)
        found = searcher.confirmed(passed)
        if found:
            return Search(tuple(found), singles, 0, 0)
    return _pairs_tried(searcher, helping, singles)


def _pairs_tried(searcher: _Searcher, helping: Sequence[tuple[int, Edit]], singles: int) -> Search:
    pairs = list(_pairs(helping))
    passed: list[_Passed] = []
    tried = 0
    while tried < min(len(pairs), PAIRS) and sum(not p.fails_at for p in passed) < ENOUGH:
        if tried % 20 == 0:
            searcher.tell(f"trying pair {tried + 1} of {min(len(pairs), PAIRS)}")
        pair = pairs[tried]
        if searcher.judge(pair, searcher.probe).clean:
            passed += searcher.passed(pair, tried)
        tried += 1
    return Search(tuple(searcher.confirmed(passed)), singles, tried, len(pairs) - tried)


def _probe(cases: Sequence[Case]) -> Case:
    """The smallest case that shows all errors of the first."""
    wanted = cases[0].base.codes
    return min((case for case in cases if case.base.codes >= wanted), key=lambda case: case.base.events)


def _helps(there: Outcome, before: Outcome) -> bool:
    """Whether an edit takes errors away, or changes where they are, and makes none of another kind."""
    if there.open is not None and not there.errors:
        return False
    same = {f.message for f in there.errors} == {f.message for f in before.errors}
    return there.codes < before.codes or (there.codes == before.codes and not same)


def _pairs(helping: Sequence[tuple[int, Edit]]) -> Iterator[Edits]:
    """Pairs of edits of different statements, those first that leave least wrong each."""
    ordered = [edit for _, edit in sorted(helping, key=lambda item: item[0])]
    for second in range(len(ordered)):
        for first in range(second):
            one, other = ordered[first], ordered[second]
            if not set(one.removed) & set(other.removed):
                yield (one, other)
