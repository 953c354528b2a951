"""Asking engines: which engine answers what, what each said, and whether they agree."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..protocol.trace import write_setup
from ..protocol.unroll import Limits
from .analysis import Analysis
from .engine import Declined, Engine, Stuck
from .explorer import Explorer
from .flag_obligations import MERGED
from .happens_before import HappensBefore
from .properties import PROPERTIES, Method
from .smt import Cuts
from .smt_times import Times


@dataclass(slots=True)
class Answers:
    """What one engine said. ``declined``: why it did not, else None.

    ``violated`` are indices into the analysis's obligations, of the properties that were asked; with
    ``one_each`` perhaps only the first of each property and code. ``lossy``: a set can be lost because
    flags merge, which this engine does not follow; it answers for flag-range only.
    """

    engine: str
    declined: str | None = None
    stuck: Stuck | None = None
    completes: bool = True
    violated: list[int] = field(default_factory=list)
    one_each: bool = False
    lossy: bool = False


class EngineDisagreement(Exception):
    """Two engines gave different answers: a fault of this tool. ``path`` has what to report."""

    def __init__(self, message: str, path: str | None) -> None:
        super().__init__(message)
        self.path = path


def make_engine(name: str, analysis: Analysis, limits: Limits) -> Engine:
    """The engine called ``name`` over ``analysis``. Raises Declined."""
    if name == "happens-before":
        return HappensBefore(analysis.sync)
    if name == "z3":
        if analysis.sync.undetermined is None:
            return Cuts(analysis.sync, rlimit=limits.rlimit)
        return Times(analysis.sync, rlimit=limits.rlimit)
    if name == "explore":
        return Explorer(analysis.sync, analysis.obligations, max_states=limits.max_states)
    raise ValueError(f"no engine {name}")


def ask(
    name: str, analysis: Analysis, chosen: Sequence[str], limits: Limits, *, one_each: bool = False
) -> Answers:
    """Everything that the chosen properties need to know from engine ``name``."""
    asked = [i for i, o in enumerate(analysis.obligations) if o.property in chosen]
    dynamic = any(PROPERTIES[p].method is not Method.STATIC or PROPERTIES[p].at_end for p in chosen)
    answers = Answers(name, one_each=one_each)
    if not dynamic:
        return answers
    try:
        engine = make_engine(name, analysis, limits)
        answers.stuck = engine.stuck()
        answers.completes = engine.completes()
        found = engine.violated([analysis.obligations[i] for i in asked], one_each=one_each)
    except Declined as reason:
        answers.declined = reason.reason
        return answers
    answers.violated = [asked[i] for i in found]
    answers.lossy = name != "explore" and _loses_a_set(analysis, engine)
    return answers


def _loses_a_set(analysis: Analysis, engine: Engine) -> bool:
    """Whether some set can find its flag unconsumed where flags merge, and so be lost."""
    mergers = [o for o in analysis.obligations if o.code == MERGED]
    return bool(mergers) and bool(engine.violated(mergers, one_each=True))


def compare(analysis: Analysis, answers: Sequence[Answers]) -> None:
    """Raises EngineDisagreement unless all engines that answered said the same."""
    given = [a for a in answers if a.declined is None]
    for a, b in itertools.pairwise(given):
        if a.lossy != b.lossy:
            continue  # where a set is lost, only the explorer knows how it goes on
        if (a.stuck is None) != (b.stuck is None) or a.completes != b.completes:
            raise _disagreement(analysis, a, b, "deadlock-freedom")
        different = _differences(analysis, a, b)
        if different:
            raise _disagreement(analysis, a, b, analysis.obligations[min(different)].property)


def _differences(analysis: Analysis, a: Answers, b: Answers) -> set[int]:
    """Obligations on which the engines differ, as far as both say something about them."""
    if not a.one_each and not b.one_each:
        return set(a.violated) ^ set(b.violated)
    kinds = [
        {(o.property, o.code): i for i in answers.violated for o in (analysis.obligations[i],)}
        for answers in (a, b)
    ]
    different = {kinds[0].get(k, kinds[1].get(k, 0)) for k in kinds[0].keys() ^ kinds[1].keys()}
    if not a.one_each:
        different |= set(b.violated) - set(a.violated)
    if not b.one_each:
        different |= set(a.violated) - set(b.violated)
    return different


def _disagreement(analysis: Analysis, a: Answers, b: Answers, where: str) -> EngineDisagreement:
    instance = analysis.instance
    content = {
        "program": instance.protocol.digest(),
        "parameters": dict(instance.values),
        "setup": write_setup(instance.setup),
        "property": where,
        a.engine: {"stuck": a.stuck is not None, "violated": a.violated},
        b.engine: {"stuck": b.stuck is not None, "violated": b.violated},
        "program_text": repr(instance.protocol.programs),
    }
    path: str | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "wb", prefix="mc2proof-disagreement-", suffix=".json", delete=False
        ) as file:
            file.write(msgspec.json.encode(content))
            path = str(Path(file.name))
    except OSError:
        path = None  # nowhere to write: the message still says what disagrees
    return EngineDisagreement(
        f"{a.engine} and {b.engine} disagree on {where} of {instance.protocol.name}", path
    )
