"""The obligations: the reduced pairs decide what all pairs do, and each kind is posed where it must be."""

import itertools
from collections.abc import Callable

import pytest

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.checker.happens_before import HappensBefore
from mc2proof.checker.obligations import NEVER
from mc2proof.checker.pieces import Place, Writes, distinct_cores, pieces
from mc2proof.protocol.builder import ProtocolBuilder, window
from mc2proof.protocol.expr import as_expr
from mc2proof.protocol.instance import Access, Event, Instance, Kind
from mc2proof.protocol.program import Address, Mode, Origin, Pipe, RegionKind, Role
from mc2proof.protocol.sync import Sync, determinate, order_graph

Start = Callable[..., ProtocolBuilder]
Instantiate = Callable[..., Instance]
MEMORY = ("no-read-before-write", "no-overwrite-before-read", "no-write-conflict", "completion", "relaunch")


class Oracle:
    """design.md 3 taken literally: every pair of accesses of every core, order by reachability."""

    def __init__(self, sync: Sync) -> None:
        self.sync = sync
        graph = order_graph(sync)
        self.past: list[int | None] = [None] * len(graph.predecessors)
        blocked = set(graph.blocked)
        todo = True
        while todo:  # points in rounds; what never settles never happens
            todo = False
            for point, before in enumerate(graph.predecessors):
                if self.past[point] is None and point not in blocked:
                    pasts = [self.past[p] for p in before]
                    if all(p is not None for p in pasts):
                        mask = 1 << point
                        for past in pasts:
                            assert past is not None
                            mask |= past
                        self.past[point] = mask
                        todo = True
        self.reads = list(self._accesses("reads", Kind.READ))
        self.writes = list(self._accesses("writes", Kind.WRITE))
        self.puts = [w for w in self.writes if self.event(w).kind is Kind.PUT]
        self.sources = list(self._accesses("reads", Kind.PUT))

    def _accesses(self, which: str, kind: Kind) -> list[Place]:
        return [
            Place(core, number, access)
            for core, (_, events) in enumerate(self.sync.instance.cores)
            for number, event in enumerate(events)
            if event.kind is kind or (which == "writes" and event.kind is Kind.PUT)
            for access in getattr(event, which)
            if access.begin < access.end
        ]

    def event(self, place: Place) -> Event:
        return self.sync.instance.cores[place.core].events[place.event]

    def rank(self, place: Place) -> int:
        return self.sync.instance.cores[place.core].id.rank

    def before(self, first: int, then: int) -> bool:
        past = self.past[then]
        return past is None or bool(past >> first & 1)

    def begin(self, place: Place) -> int:
        return self.sync.begin(place.core, place.event)

    def end(self, place: Place) -> int:
        return self.sync.end(place.core, place.event)

    def disjoint_in_time(self, a: Place, b: Place) -> bool:
        return self.before(self.end(a), self.begin(b)) or self.before(self.end(b), self.begin(a))

    def launch(self, place: Place) -> int:
        return self.event(place).launch

    def named(self, name: str, a: Place, b: Place) -> str:
        return name if self.launch(a) == self.launch(b) else "relaunch"

    def violated(self) -> set[str]:
        found = set()
        for reader in self.reads:
            found |= self._reader(reader)
        for a, b in itertools.combinations(self.writes, 2):
            if (a.access.add and b.access.add) or not distinct_and_overlapping(a, b):
                continue
            blocks = {self.sync.instance.cores[place.core].id.block for place in (a, b)}
            shares = a.access.share and b.access.share and len(blocks) == 2
            if shares and a.access[1:4] == b.access[1:4] and self.event(a)[2] is self.event(b)[2]:
                continue  # the blocks of one compute write disjoint shares of one window
            if not self.disjoint_in_time(a, b):
                found.add(self.named("no-write-conflict", a, b))
        for source, w in itertools.product(self.sources, self.writes):
            if distinct_and_overlapping(source, w) and not self.disjoint_in_time(w, source):
                found.add(self.named("no-overwrite-before-read", source, w))
        for a, b in itertools.combinations(self.puts, 2):  # one send queue a peer, without atomics
            if (a.access.rank, self.rank(a)) == (b.access.rank, self.rank(b)) and a.core != b.core:
                first, second = self.begin(a), self.begin(b)
                if not self.before(first, second) and not self.before(second, first):
                    found.add("no-write-conflict")
        for put in self.puts:
            if not self.before(self.end(put), self.sync.last(put.core, self.launch(put))):
                found.add("completion")
        return found

    def _reader(self, reader: Place) -> set[str]:
        access = reader.access
        found: set[str] = set()
        if access.origin is None or self.past[self.begin(reader)] is None:
            return found  # nothing is needed, or the reader never begins
        touching = [w for w in self.writes if overlap(w.access, access)]
        touching.sort(key=lambda w: (w.access.begin, w.access.end, w.core, w.event))
        edges = sorted({access.begin, access.end, *(
            edge for w in touching for edge in (w.access.begin, w.access.end)
            if access.begin < edge < access.end
        )})  # fmt: skip
        for byte in edges[:-1]:
            here = [w for w in touching if w.access.begin <= byte < w.access.end]
            if not here and access.origin == (access.rank, access.region, access.begin):
                continue
            needed = [
                w for w in here
                if not w.access.add and source_of(w.access, byte) == source_of(access, byte)
                and self.launch(w) == self.launch(reader)
            ]  # fmt: skip
            if not needed:
                found.add("no-read-before-write")
                continue
            chosen = needed[-1]  # of several deliveries, one is what the reader waits for
            if not self.before(self.end(chosen), self.begin(reader)):
                found.add("no-read-before-write")
            for n in needed:
                posted = self.before(self.begin(n), self.begin(reader))
                landed = self.before(self.end(n), self.begin(reader))
                if self.event(n).kind is Kind.PUT and posted and not landed:
                    found.add("completion")
            for w in here:
                if w is chosen or self.before(self.end(reader), self.begin(w)):
                    continue
                if not self.before(self.begin(w), self.begin(chosen)):
                    found.add(self.named("no-overwrite-before-read", w, reader))
        return found


def distinct_and_overlapping(a: Place, b: Place) -> bool:
    return (a.core, a.event) != (b.core, b.event) and overlap(a.access, b.access)


def overlap(a: Access, b: Access) -> bool:
    return a[:2] == b[:2] and a.begin < b.end and b.begin < a.end


def source_of(access: Access, byte: int) -> tuple[int, str, int] | None:
    if access.origin is None:
        return None
    rank, region, offset = access.origin
    return rank, region, offset + byte - access.begin


def test_reduced_pairs_decide_what_all_pairs_do(analyses: list[Analysis], relaunched: list[Analysis]) -> None:
    seen: dict[str, int] = dict.fromkeys(MEMORY, 0)
    decided = 0
    for analysis in [*analyses, *relaunched]:
        if analysis.sync.undetermined is not None:
            continue
        decided += 1
        found = HappensBefore(analysis.sync).violated(analysis.obligations)
        reduced = {analysis.obligations[i].property for i in found} & set(MEMORY)
        expected = Oracle(analysis.sync).violated()
        assert reduced == expected, analysis.instance.protocol.name
        for name in expected:
            seen[name] += 1
    assert decided >= 60
    assert min(seen.values()) >= 5, seen


# --- pieces -----------------------------------------------------------------------------------


def two_ranks(start: Start) -> tuple[ProtocolBuilder, str, str]:
    p = start()
    return p, p.region("heap", RegionKind.SHARED, 64), p.region("a", RegionKind.INPUT, 64)


def test_a_window_is_cut_where_its_writers_change(start: Start, instantiate: Instantiate) -> None:
    p, heap, a = two_ranks(start)
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        aiv.put(1, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
        aiv.put(1, Address(heap, as_expr(6)), Address(a, as_expr(20)), 8)
    with aiv.when(p.rank.eq(1)):
        aiv.read(
            Pipe.MTE2,
            window(Address(heap, as_expr(4)), 12, origin=Origin(as_expr(0), Address(a, as_expr(4)))),
        )
    instance = instantiate(p.build(), ranks=2)
    reader = Place(1, 0, instance.cores[1].events[0].reads[0])
    found = pieces(instance, Writes(instance), reader)
    assert [(x.begin, x.end, len(x.needed), len(x.others)) for x in found] == [
        (4, 6, 1, 0), (6, 8, 1, 1), (8, 14, 0, 1), (14, 16, 0, 0)
    ]  # fmt: skip


def test_an_input_that_nobody_writes_is_its_own_origin(start: Start, instantiate: Instantiate) -> None:
    p, _, a = two_ranks(start)
    own = Address(a, as_expr(8))
    p.role(Role.AIV).read(Pipe.MTE2, window(own, 8, origin=Origin(p.rank, own)))
    p.role(Role.AIV).read(Pipe.MTE2, window(own, 8, origin=Origin(1 - p.rank, own)))
    analysis = analyse(instantiate(p.build(), ranks=2))
    assert [(o.code, o.actors[0].event) for o in analysis.obligations] == [("never-written", 1)] * 2


def test_windows_that_only_touch_do_not_overlap(start: Start, instantiate: Instantiate) -> None:
    p, heap, a = two_ranks(start)
    with p.role(Role.AIV).when(p.rank.eq(0)):
        for begin, size in ((0, 8), (16, 8), (12, 4), (20, 0)):
            p.role(Role.AIV).put(1, Address(heap, as_expr(begin)), Address(a, as_expr(0)), size)
    writes = Writes(instantiate(p.build(), ranks=2))
    assert writes.overlapping(1, "heap", 8, 16) == [(12, 16)]
    assert writes.overlapping(1, "heap", 7, 17) == [(0, 8), (12, 16), (16, 24)]
    assert writes.overlapping(1, "heap", 8, 8) == []
    assert writes.overlapping(0, "heap", 0, 64) == []


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [(Mode.STORE, Mode.STORE, 1), (Mode.ADD, Mode.STORE, 1), (Mode.ADD, Mode.ADD, 0)],
)
def test_two_additions_do_not_conflict(
    start: Start, instantiate: Instantiate, first: Mode, second: Mode, asked: int
) -> None:
    p, heap, a = two_ranks(start)
    with p.role(Role.AIV).when(p.rank.eq(0)):
        for mode in (first, second):
            p.role(Role.AIV).put(1, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8, mode=mode)
    analysis = analyse(instantiate(p.build(), ranks=2))
    assert len(analysis.of("no-write-conflict")) == asked


def test_a_request_of_no_bytes_still_has_to_complete(start: Start, instantiate: Instantiate) -> None:
    p, heap, a = two_ranks(start)
    with p.role(Role.AIV).when(p.rank.eq(0)):
        p.role(Role.AIV).put(1, Address(heap, as_expr(0)), Address(a, as_expr(0)), 0)
    analysis = analyse(instantiate(p.build(), ranks=2))
    assert [(o.property, o.code) for o in analysis.obligations] == [("completion", "not-complete-at-end")]


def test_equal_cores_are_one_obligation_of_their_number(start: Start, instantiate: Instantiate) -> None:
    p, heap, a = two_ranks(start)
    with p.role(Role.AIV).when(p.block.eq(0)):
        p.role(Role.AIV).put(1 - p.rank, Address(heap, as_expr(0)), Address(a, as_expr(0)), 8)
    origin = Origin(1 - p.rank, Address(a, as_expr(0)))
    p.role(Role.AIC).read(Pipe.MTE2, window(Address(heap, as_expr(0)), 8, origin=origin))
    instance = instantiate(p.build(), ranks=2, blocks=3)
    assert [len(g) for g in distinct_cores(instance) if instance.cores[g[0]].id.role is Role.AIC] == [3, 3]
    asked = [o for o in analyse(instance).obligations if o.property == "no-read-before-write"]
    assert [(o.width, len(o.clauses), len(o.clauses[0].then)) for o in asked] == [(3, 1, 3)] * 2
    assert len({o.clauses_at(i)[0][1] for o in asked for i in range(3)}) == 6


def violated_codes(instance: Instance) -> set[str]:
    analysis = analyse(instance)
    engine = HappensBefore(analysis.sync)
    return {analysis.obligations[i].code for i in engine.violated(analysis.obligations)}


@pytest.mark.parametrize(("begins", "expected"), [(True, {"overwrite"}), (False, set())])
def test_a_reader_that_never_begins_needs_nothing(
    start: Start, instantiate: Instantiate, begins: bool, expected: set[str]
) -> None:
    p, heap, a = two_ranks(start)
    aiv = p.role(Role.AIV)
    with aiv.when(p.rank.eq(0)):
        for turn in (0, 1):
            aiv.put(1, Address(heap, as_expr(0)), Address(a, as_expr(turn * 8)), 8)
            aiv.quiet(1)
            if turn == 0:
                aiv.barrier()
    with aiv.when(p.rank.eq(1)):
        aiv.barrier()
        if not begins:
            aiv.wait_flag(Pipe.MTE2, 0)
        origin = Origin(as_expr(0), Address(a, as_expr(0)))
        aiv.read(Pipe.MTE2, window(Address(heap, as_expr(0)), 8, origin=origin))
    assert violated_codes(instantiate(p.build(), ranks=2)) == expected


@pytest.mark.parametrize(
    ("offsets", "computes", "expected"),
    [
        ((0,), ("matmul",), set()),  # one window, of which every block writes its own share
        ((0,), ("matmul", "matmul"), set()),  # calls that are alike share it alike
        ((0,), ("matmul", "other"), {"write-conflict"}),  # the shares of the second are not the first's
        ((0, 4), ("matmul",), {"write-conflict"}),
        ((0, 8), ("matmul",), set()),
    ],
)
def test_shares_are_disjoint_within_one_window_of_one_call_only(
    start: Start, instantiate: Instantiate, offsets: tuple[int, ...], computes: tuple[str, ...],
    expected: set[str],
) -> None:  # fmt: skip
    p = start()
    a, c = p.region("a", RegionKind.INPUT, 64), p.region("c", RegionKind.OUTPUT, 64)
    aic = p.role(Role.AIC)
    for contract in computes:
        with aic.loop("i", len(offsets)) as i:
            place = Address(c, i * (offsets[-1] if len(offsets) > 1 else 0))
            aic.compute(
                contract, "s", 1, reads=[window(Address(a, as_expr(0)), 8)], writes=[window(place, 8)]
            )
    assert violated_codes(instantiate(p.build(), blocks=2)) == expected
    assert violated_codes(instantiate(p.build(), blocks=1)) == set()


# --- counters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("sets", "waits", "asked"), [(15, 0, 0), (16, 0, 1), (17, 3, 2)])
def test_a_counter_is_asked_for_beyond_its_cap(
    start: Start, instantiate: Instantiate, sets: int, waits: int, asked: int
) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", sets):
        p.role(Role.AIV).set_flag(Pipe.MTE3, 0)
    with p.role(Role.AIC).loop("i", waits):
        p.role(Role.AIC).wait_flag(Pipe.MTE2, 0)
    analysis = analyse(instantiate(p.build()))
    obligations = [analysis.obligations[i] for i in analysis.of("flag-range")]
    assert [(o.code, o.cap) for o in obligations] == [("counter-cap", 15)] * asked
    firsts = [o.clauses[0].first[0] for o in obligations]
    assert all((first == NEVER) is (waits == 0) for first in firsts)


def test_an_event_holds_one(start: Start, instantiate: Instantiate) -> None:
    p = start()
    for _ in range(2):
        p.role(Role.AIV).set_event(Pipe.MTE2, Pipe.V, 0)
    analysis = analyse(instantiate(p.build()))
    assert [(o.code, o.cap) for o in analysis.obligations] == [("event-set-twice", 1)]


def test_a_counter_without_a_fixed_matching_is_counted(start: Start, instantiate: Instantiate) -> None:
    p = start()
    with p.role(Role.AIV).loop("i", 8):
        for pipe in (Pipe.MTE3, Pipe.V):
            p.role(Role.AIV).set_flag(pipe, 0)
    p.role(Role.AIC).pipe_barrier()
    analysis = analyse(instantiate(p.build()))
    (obligation,) = analysis.obligations
    assert obligation.counter is not None
    assert not determinate(analysis.sync, obligation.counter)
    assert (obligation.clauses, obligation.cap) == ((), 15)
