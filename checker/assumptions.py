"""The assumptions of a verdict: everything that it rests on and the sources do not say."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.instance import Kind
from ..protocol.profile import BarrierAll
from ..protocol.program import Barrier, Protocol, Put, statements
from ..protocol.setup import Injected, Setup
from .analysis import Analysis
from .flag_range import collides_with_barrier, flag_range
from .pieces import all_events, shared_regions
from .report import AssumptionNote, Finding
from .static import blocks_exceed_cores


def assumptions_of(
    protocol: Protocol,
    analysis: Analysis | None,
    setup: Setup,
    *,
    any_launches: bool = False,
) -> list[AssumptionNote]:
    """The assumptions on which the verdicts about ``protocol`` rest, in a fixed order.

    ``any_launches``: they are about any number of launches.
    """
    used = [s for program in protocol.programs.values() for s in statements(program)]
    notes = []
    if any(isinstance(s, Barrier) and s.function == "aclshmem_barrier_all" for s in used):
        notes.append(_barrier_note(setup.barrier_all))
    notes += _launch_notes(setup, any_launches)
    if setup.profile.cores is None and any(isinstance(s, Barrier) for s in used):
        text = "every launched block has an AI core of its own (--cores checks it)"
        notes.append(AssumptionNote("blocks-resident", text))
    if analysis is not None and blocks_exceed_cores(analysis.sync):
        text = "the rows other than deadlock-freedom are about blocks that all run at once"
        notes.append(AssumptionNote("blocks-resident", text, warning=True))
    notes += [AssumptionNote("injected-fault", _FAULT_TEXTS[f]) for f in Injected if f in setup.faults]
    if not setup.profile.native_puts and any(isinstance(s, Put) for s in used):
        text = f"{setup.profile.name} has no UDMA: its puts are taken to behave as on ascend950"
        notes.append(AssumptionNote("puts-emulated", text))
    if analysis is not None and collides_with_barrier(flag_range(analysis.sync, strict_ids=False)):
        text = "the flags of barrier and Matmul API are undisturbed, although a user's flag meets them"
        notes.append(AssumptionNote("barrier-undisturbed", text, warning=True))
    if analysis is not None and _reads_without_origin(analysis):
        text = "some reads of shared memory do not say what they must find: any data is taken to do"
        notes.append(AssumptionNote("origin-unstated", text, warning=True))
    notes += [AssumptionNote(a.code, a.text) for a in protocol.assumptions]
    return notes


_FAULT_TEXTS = {Injected.QUIET_TIMEOUT: "a quiet may give up and return before its requests are complete"}


def _launch_notes(setup: Setup, any_launches: bool) -> list[AssumptionNote]:
    if setup.launches == 1 and not any_launches:
        return [
            AssumptionNote("one-launch", "one launch; what a second launch may do is not judged"),
            AssumptionNote("flags-cleared", "all flag counters are 0 when the launch begins"),
        ]
    kept = "all flag counters are 0 when a launch begins"
    if not setup.flags_cleared:
        kept = "all flag counters are 0 at first; what a launch leaves in them is there in the next"
    many = "any number of" if any_launches else str(setup.launches)
    return [
        AssumptionNote(
            "launches",
            f"{many} launches, one stream a rank: a rank's next begins when all its cores have "
            "ended the last, on the same cores; nothing orders launches of different ranks",
        ),
        AssumptionNote("flags-cleared" if setup.flags_cleared else "flags-carried", kept),
    ]


def note_on_counting(findings: Iterable[Finding]) -> list[AssumptionNote]:
    """What the other verdicts assume where a counter or event is beyond what the documents define."""
    texts = {
        "counter-cap": "a counter that passes its cap counts on (the device aborts or freezes)",
        "event-set-twice": "an event that is set twice counts both sets (the documents leave it undefined)",
    }
    codes = {finding.code for finding in findings}
    return [AssumptionNote("counts-on", text, warning=True) for c, text in texts.items() if c in codes]


def _reads_without_origin(analysis: Analysis) -> bool:
    shared = shared_regions(analysis.instance)
    return any(
        event.kind is Kind.READ and access.region in shared and access.origin is None
        for event in all_events(analysis.instance)
        for access in event.reads
    )


def _barrier_note(barrier_all: BarrierAll | None) -> AssumptionNote:
    meaning = {
        BarrierAll.VEC: "AIVs only, draining the pipes, flag id 14",
        BarrierAll.MIX: "AIVs and AICs, draining the pipes, flag ids 11-13",
        BarrierAll.SOFT: "AIVs only, no flags, no draining",
    }
    chosen = barrier_all or BarrierAll.VEC
    text = f"aclshmem_barrier_all is taken as {chosen.value} ({meaning[chosen]})"
    if barrier_all is None:
        text += " by default: what it is depends on the build, see --barrier-all"
    return AssumptionNote("barrier-all", text, warning=barrier_all is None)
