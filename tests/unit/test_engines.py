"""Each engine alone: what it answers on small protocols, what it declines and where its limits are.

That they agree is tested on the corpus and on mutants (tests/corpus, tests/differential).
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.ask import Answers, EngineDisagreement, ask, compare, make_engine
from mc2proof.checker.engine import Declined, Engine
from mc2proof.checker.explorer import Explorer
from mc2proof.checker.happens_before import HappensBefore
from mc2proof.checker.properties import PROPERTIES
from mc2proof.checker.smt import Cuts
from mc2proof.checker.smt_times import Times
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.program import Address, Origin, Pipe, Protocol, RegionKind, Role
from mc2proof.protocol.unroll import Limits

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]
Make = Callable[[Analysis], Engine]

ENGINES: dict[str, Make] = {
    "happens-before": lambda a: HappensBefore(a.sync),
    "cuts": lambda a: Cuts(a.sync),
    "times": lambda a: Times(a.sync),
    "explore": lambda a: Explorer(a.sync, a.obligations, max_states=100_000),
    "explore everything": lambda a: Explorer(a.sync, a.obligations, max_states=100_000, reduce=False),
}
GENERAL = ("times", "explore", "explore everything")


def waiting_in_a_ring(start: Start) -> Protocol:
    """AIV and AIC each wait for the other before they set."""
    p = start()
    p.role(Role.AIV).wait_flag(Pipe.S, 0)
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    p.role(Role.AIC).wait_flag(Pipe.S, 0)
    p.role(Role.AIC).set_flag(Pipe.FIX, 0)
    return p.build()


def exchange(start: Start, *, quiet: bool, barrier: bool = True) -> Protocol:
    p = start()
    heap, a = p.region("heap", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)
    aiv = p.role(Role.AIV)
    peer, begin = 1 - p.rank, as_expr(0)
    aiv.put(peer, Address(heap, begin), Address(a, begin), 8)
    if quiet:
        aiv.quiet(peer)
    if barrier:
        aiv.barrier()
    aiv.read(Pipe.MTE2, window(Address(heap, begin), 8, origin=Origin(peer, Address(a, begin))))
    return p.build()


def two_setters(start: Start, *, sets: int = 1) -> Protocol:
    """A wait that either of two pipes' sets releases: its matching is not fixed."""
    p = start()
    scratch = Address(p.region("scratch", RegionKind.PRIVATE, 8), as_expr(0))
    aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
    aiv.write(Pipe.MTE3, window(scratch, 8))
    for _ in range(sets):
        aiv.set_flag(Pipe.MTE3, 0)
        aiv.set_flag(Pipe.V, 0)
    aic.wait_flag(Pipe.MTE2, 0)
    return p.build()


def pipes_of_their_own(start: Start) -> Protocol:
    """12 writes on six pipes: few points, many orders."""
    p = start()
    scratch = Address(p.region("scratch", RegionKind.PRIVATE, 8), as_expr(0))
    pipes = {Role.AIV: (Pipe.V, Pipe.MTE2, Pipe.MTE3), Role.AIC: (Pipe.M, Pipe.MTE1, Pipe.FIX)}
    for role, names in pipes.items():
        for pipe in names * 2:
            p.role(role).write(pipe, window(scratch, 8))
    return p.build()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_circular_wait_is_stuck(start: Start, instantiate: Instantiate, engine: str) -> None:
    answers = ENGINES[engine](analyse(instantiate(waiting_in_a_ring(start))))
    stuck = answers.stuck()
    assert stuck is not None
    assert {(0, 0), (1, 0)} <= set(stuck.waiting)
    assert not answers.completes()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("quiet", "barrier", "expected"),
    [
        (True, True, set()),
        (True, False, {"read-before-write"}),
        (False, True, {"read-before-write", "request-not-complete", "not-complete-at-end"}),
        (False, False, {"read-before-write", "not-complete-at-end"}),
    ],
)
def test_what_an_exchange_needs(
    start: Start, instantiate: Instantiate, engine: str, quiet: bool, barrier: bool, expected: set[str]
) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=quiet, barrier=barrier), ranks=2))
    answers = ENGINES[engine](analysis)
    assert answers.stuck() is None
    assert answers.completes()
    assert {analysis.obligations[i].code for i in answers.violated(analysis.obligations)} == expected


@pytest.mark.parametrize("engine", ["happens-before", "cuts"])
def test_an_order_that_is_not_fixed_is_declined(start: Start, instantiate: Instantiate, engine: str) -> None:
    analysis = analyse(instantiate(two_setters(start)))
    with pytest.raises(Declined, match="set or awaited on several pipes") as caught:
        ENGINES[engine](analysis)
    assert caught.value.reason == analysis.sync.undetermined


@pytest.mark.parametrize("engine", GENERAL)
def test_a_choice_of_sets_is_decided_by_the_general_engines(
    start: Start, instantiate: Instantiate, engine: str
) -> None:
    answers = ENGINES[engine](analyse(instantiate(two_setters(start))))
    assert answers.stuck() is None


@pytest.mark.parametrize("engine", GENERAL)
@pytest.mark.parametrize(("sets", "passes"), [(7, False), (8, True)])
def test_a_counter_without_a_fixed_matching_is_counted(
    start: Start, instantiate: Instantiate, engine: str, sets: int, passes: bool
) -> None:
    """2 x 7 sets stay at the cap of 15; 2 x 8 pass it, although one is taken again."""
    analysis = analyse(instantiate(two_setters(start, sets=sets)))
    asked = [analysis.obligations[i] for i in analysis.of("flag-range")]
    if engine == "explore everything":
        engine = "explore"  # 2^16 orders of the sets alone
    assert bool(ENGINES[engine](analysis).violated(asked)) is passes


@pytest.mark.parametrize("engine", GENERAL)
def test_a_timing_that_only_sometimes_hangs_is_found(
    start: Start, instantiate: Instantiate, engine: str
) -> None:
    """Two waits on two pipes share one set: where the wrong one takes it, the other set never comes."""

    def protocol(*, both_first: bool) -> Protocol:
        p = start()
        aiv, aic = p.role(Role.AIV), p.role(Role.AIC)
        aiv.set_flag(Pipe.MTE3, 0)
        if both_first:
            aiv.set_flag(Pipe.MTE3, 0)
        aiv.wait_flag(Pipe.S, 1)
        if not both_first:
            aiv.set_flag(Pipe.MTE3, 0)
        aic.wait_flag(Pipe.FIX, 0)
        aic.wait_flag(Pipe.MTE2, 0)
        aic.set_flag(Pipe.MTE2, 1)
        return p.build()

    hangs = ENGINES[engine](analyse(instantiate(protocol(both_first=False))))
    assert hangs.stuck() is not None
    assert hangs.completes()
    runs = ENGINES[engine](analyse(instantiate(protocol(both_first=True))))
    assert runs.stuck() is None


@pytest.mark.parametrize("engine", GENERAL)
def test_a_set_releases_one_wait_only(start: Start, instantiate: Instantiate, engine: str) -> None:
    """One set, two waits on two pipes: each may get it, never both."""
    p = start()
    p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    for pipe in (Pipe.MTE2, Pipe.FIX):
        p.role(Role.AIC).wait_flag(pipe, 0)
    answers = ENGINES[engine](analyse(instantiate(p.build())))
    assert answers.stuck() is not None
    assert not answers.completes()


# --- limits -----------------------------------------------------------------------------------


def test_a_resource_limit_ends_in_a_refusal(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=True), ranks=2))
    with pytest.raises(Declined, match="raise --rlimit"):
        Times(analysis.sync, rlimit=1).stuck()
    answers = ask("z3", analyse(instantiate(two_setters(start))), list(PROPERTIES), Limits(rlimit=1))
    assert answers.declined is not None
    assert "rlimit" in answers.declined


def test_the_explorer_stops_at_its_cap(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(ring_all_to_all(), ranks=2, blocks=2, buffer_size=1, tile_cnt=3))
    small = analyse(instantiate(pipes_of_their_own(start)))
    states = Explorer(small.sync, small.obligations, max_states=500_000, reduce=False).states
    Explorer(small.sync, small.obligations, max_states=states, reduce=False)
    with pytest.raises(Declined, match=f"more than {states - 1} states"):
        Explorer(small.sync, small.obligations, max_states=states - 1, reduce=False)
    with pytest.raises(Declined, match="too many to explore"):
        Explorer(analysis.sync, analysis.obligations, max_states=2_000)


def test_the_reduction_saves_states(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=True), ranks=2))
    reduced = Explorer(analysis.sync, analysis.obligations, max_states=100_000)
    whole = Explorer(analysis.sync, analysis.obligations, max_states=100_000, reduce=False)
    assert reduced.states < whole.states


# --- asking and comparing ---------------------------------------------------------------------


def test_z3_takes_the_form_that_the_instance_needs(start: Start, instantiate: Instantiate) -> None:
    fixed = analyse(instantiate(exchange(start, quiet=True), ranks=2))
    free = analyse(instantiate(two_setters(start)))
    assert isinstance(make_engine("z3", fixed, Limits()), Cuts)
    assert isinstance(make_engine("z3", free, Limits()), Times)
    with pytest.raises(ValueError, match="no engine spin"):
        make_engine("spin", fixed, Limits())


def test_only_what_was_chosen_is_asked(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=False), ranks=2))
    answers = ask("happens-before", analysis, ["completion"], Limits())
    assert {analysis.obligations[i].property for i in answers.violated} == {"completion"}
    assert ask("happens-before", analysis, ["layout"], Limits()).violated == []


def test_engines_that_differ_are_an_error_with_a_reproducer(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=False), ranks=2))
    mine, other = (ask(e, analysis, list(PROPERTIES), Limits()) for e in ("happens-before", "z3"))
    compare(analysis, [mine, other])
    other.violated = other.violated[1:]
    with pytest.raises(EngineDisagreement, match="happens-before and z3 disagree on") as caught:
        compare(analysis, [mine, other])
    assert caught.value.path is not None
    assert analysis.instance.protocol.digest() in Path(caught.value.path).read_text(encoding="utf-8")


def test_one_violation_of_each_kind_confirms_and_is_compared(instantiate: Instantiate) -> None:
    """Many pairs violate: with ``one_each`` Z3 may stop at the first, and still nothing may be missing."""
    analysis = analyse(instantiate(ring_all_to_all(), ranks=2, buffer_size=3, tile_cnt=5))
    whole = ask("happens-before", analysis, list(PROPERTIES), Limits())
    first = ask("z3", analysis, list(PROPERTIES), Limits(), one_each=True)
    assert len(first.violated) < len(whole.violated)
    kinds = {(analysis.obligations[i].property, analysis.obligations[i].code) for i in whole.violated}
    assert {(analysis.obligations[i].property, analysis.obligations[i].code) for i in first.violated} == kinds
    compare(analysis, [whole, first])
    kept = first.violated
    for wrong in (kept[1:], [], [*kept, next(i for i in range(999) if i not in whole.violated)]):
        first.violated = wrong
        with pytest.raises(EngineDisagreement):
            compare(analysis, [whole, first])


@pytest.fixture(autouse=True)
def _saved_reproducers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reproducers that disagreements save go to a folder of the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_an_engine_that_declined_is_not_compared(start: Start, instantiate: Instantiate) -> None:
    analysis = analyse(instantiate(exchange(start, quiet=False), ranks=2))
    mine = ask("happens-before", analysis, list(PROPERTIES), Limits())
    compare(analysis, [mine, Answers("z3", declined="tired")])


@pytest.mark.parametrize("field", ["stuck", "completes"])
def test_a_different_deadlock_is_a_disagreement(
    start: Start, instantiate: Instantiate, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analyse(instantiate(waiting_in_a_ring(start)))
    mine, other = (ask(e, analysis, list(PROPERTIES), Limits()) for e in ("happens-before", "z3"))
    monkeypatch.setattr("tempfile.NamedTemporaryFile", _no_room)
    setattr(other, field, {"stuck": None, "completes": True}[field])
    with pytest.raises(EngineDisagreement, match="deadlock-freedom") as caught:
        compare(analysis, [mine, other])
    assert caught.value.path is None


def _no_room(*_: object, **__: object) -> None:
    raise OSError("no space left on device")
