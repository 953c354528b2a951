"""Protocols of which something false was once proved for all values. A name says what was overlooked."""

from __future__ import annotations

import pytest

from mc2proof.checker.parametric.decide import Decided, decide
from mc2proof.checker.parametric.domain import domain_of
from mc2proof.checker.parametric.forall import prove_for_all
from mc2proof.checker.properties import rows_for
from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder, window
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import ParameterError, UnsupportedError
from mc2proof.protocol.expr import Const, Expr, both, cast
from mc2proof.protocol.program import Address, Origin, Pipe, RegionKind, Role
from mc2proof.protocol.setup import Setup

PART = 8


class Small:
    """A protocol of both roles with the usual parameters."""

    def __init__(self, vectors: int = 1) -> None:
        self.p = ProtocolBuilder("small", vectors_per_cube=vectors)
        self.ranks = self.p.parameter("ranks", low=1)
        self.blocks = self.p.parameter("blocks", low=1)
        self.tiles = self.p.parameter("tile_cnt")
        self.aiv: RoleBuilder = self.p.role(Role.AIV)
        self.aic: RoleBuilder = self.p.role(Role.AIC)

    def input(self) -> str:
        return self.p.region("a", RegionKind.INPUT, self.ranks * self.blocks * PART)

    def heap(self) -> str:
        return self.p.region("heap", RegionKind.SHARED, self.ranks * self.blocks * PART)

    def decided(self, *assume: str) -> Decided:
        """What is decided for all values, whatever small values show."""
        protocol = self.p.build()
        domain = domain_of(protocol, ("ranks", "blocks", "tile_cnt"), {}, assume)
        return decide(protocol, Setup(), domain, rows_for(1), rlimit=20_000_000)

    def proved(self, *assume: str) -> set[str]:
        """The properties that are proved for all values."""
        return {name for name, decision in self.decided(*assume).decisions.items() if decision.proved}


# --- several AIVs a block ---------------------------------------------------------------------


def test_only_one_of_two_aivs_sets() -> None:
    one = Small(vectors=2)
    with one.aiv.when(one.p.sub.eq(0)):
        one.aiv.set_flag(Pipe.MTE3, 3)
    one.aic.wait_flag(Pipe.MTE2, 3)
    with pytest.raises(UnsupportedError, match="several AIVs"):
        one.proved()


def test_the_second_aiv_waits_for_nothing() -> None:
    one = Small(vectors=2)
    with one.aiv.when(one.p.sub.eq(1)):
        one.aiv.wait_flag(Pipe.MTE3, 3)
    with pytest.raises(UnsupportedError, match="several AIVs"):
        one.proved()


def test_only_one_of_two_aivs_meets() -> None:
    one = Small(vectors=2)
    with one.aiv.when(one.p.sub.eq(0)):
        one.aiv.barrier()
    with pytest.raises(UnsupportedError, match="several AIVs"):
        one.proved()


def test_two_aivs_of_one_block_write_the_same() -> None:
    one = Small(vectors=2)
    c = one.p.region("c", RegionKind.OUTPUT, one.tiles * 0 + PART)
    with one.aiv.when(one.p.block.eq(0)):
        one.aiv.write(Pipe.MTE3, window(Address(c, Const(0)), PART))
    with pytest.raises(UnsupportedError, match="several AIVs"):
        one.proved()


def test_aivs_that_are_alike_are_followed() -> None:
    one = Small(vectors=2)
    one.aiv.set_flag(Pipe.MTE3, 3)
    one.aic.wait_flag(Pipe.MTE2, 3)
    assert {"deadlock-freedom", "flag-balance", "flag-range"} <= one.proved()


# --- cores that are not there -----------------------------------------------------------------


def test_bytes_of_a_rank_beyond_the_last() -> None:
    one = Small()
    a, heap = one.input(), one.heap()
    with one.aiv.when(both(one.p.block.eq(0), one.p.rank > 0)):
        one.aiv.put(one.p.rank - 1, Address(heap, Const(0)), Address(a, Const(0)), PART)
        one.aiv.quiet(one.p.rank - 1)
    one.aiv.barrier()
    one.aiv.set_flag(Pipe.MTE3, 1)
    one.aic.wait_flag(Pipe.MTE2, 1)
    origin = Origin(one.p.rank + 1, Address(a, Const(0)))
    one.aic.read(Pipe.MTE2, window(Address(heap, Const(0)), PART, origin=origin))
    assert not {"no-read-before-write", "coverage"} & one.proved()


def test_fewer_blocks_than_ranks_to_put_to() -> None:
    one = Small()
    a, heap = one.input(), one.heap()
    block, rank = one.p.block, one.p.rank
    with one.aiv.when(both(block < one.ranks, block.ne(rank))):
        one.aiv.put(block, Address(heap, rank * PART), Address(a, block * PART), PART)
        one.aiv.quiet(block)
    one.aiv.barrier()
    one.aiv.set_flag(Pipe.MTE3, 1)
    one.aic.wait_flag(Pipe.MTE2, 1)
    with one.aic.loop("s", one.ranks) as s, one.aic.when(s.ne(rank)):
        origin = Origin(s, Address(a, rank * PART))
        one.aic.read(Pipe.MTE2, window(Address(heap, s * PART), PART, origin=origin))
    assert not {"no-read-before-write", "coverage"} & one.proved()


def test_what_the_other_role_writes_is_not_in_program_order() -> None:
    one = Small()
    a, heap = one.input(), one.heap()
    place = one.p.block * PART
    origin = Origin(one.p.rank, Address(a, place))
    one.aiv.write(Pipe.MTE3, window(Address(heap, place), PART, origin=origin))
    one.aic.pipe_barrier()
    one.aic.pipe_barrier()
    one.aic.read(Pipe.MTE2, window(Address(heap, place), PART, origin=origin))
    assert "no-read-before-write" not in one.proved()


def test_a_second_delivery_of_the_same_bytes() -> None:
    one = Small()
    a, heap = one.input(), one.heap()
    block, rank = one.p.block, one.p.rank

    def send() -> None:
        with one.aiv.when(both(block < one.ranks, block.ne(rank))):
            one.aiv.put(block, Address(heap, rank * PART), Address(a, block * PART), PART)
            one.aiv.quiet(block)

    send()
    one.aiv.barrier()
    one.aiv.set_flag(Pipe.MTE3, 1)
    send()
    one.aic.wait_flag(Pipe.MTE2, 1)
    with one.aic.loop("s", one.ranks) as s, one.aic.when(s.ne(rank)):
        origin = Origin(s, Address(a, rank * PART))
        one.aic.read(Pipe.MTE2, window(Address(heap, s * PART), PART, origin=origin))
    assert "no-read-before-write" not in one.proved("blocks >= ranks")


def test_a_quiet_for_no_rank() -> None:
    one = Small()
    c = one.p.region("c", RegionKind.OUTPUT, one.tiles * 0 + PART)
    one.aiv.quiet(one.ranks)
    with one.aiv.when(one.p.block.eq(0)):
        one.aiv.write(Pipe.MTE3, window(Address(c, Const(0)), PART))
    assert "layout" not in one.proved()


# --- turns of loops ---------------------------------------------------------------------------


def ahead(one: Small, aic_turns: Expr) -> None:
    """The AIC waits in every turn for the set of the turn before."""
    with one.aic.loop("i", aic_turns) as i:
        with one.aic.when(i > 0):
            one.aic.wait_flag(Pipe.FIX, 2)
        with one.aic.when(i < one.tiles):
            one.aic.set_flag(Pipe.FIX, 1)


def test_one_loop_behind_another_waits_for_it() -> None:
    one = Small()
    with one.aiv.loop("i", one.tiles):
        one.aiv.wait_flag(Pipe.MTE3, 1)
    with one.aiv.loop("i", one.tiles):
        one.aiv.set_flag(Pipe.MTE3, 2)
    ahead(one, one.tiles + 1)
    assert "deadlock-freedom" not in one.proved()


def test_one_loop_behind_another_within_a_loop() -> None:
    one = Small()
    with one.aiv.loop("o", one.ranks):
        with one.aiv.loop("i", one.tiles):
            one.aiv.wait_flag(Pipe.MTE3, 1)
        with one.aiv.loop("i", one.tiles):
            one.aiv.set_flag(Pipe.MTE3, 2)
    with one.aic.loop("o", one.ranks):
        ahead(one, one.tiles + 1)
    assert "deadlock-freedom" not in one.proved()


def test_sets_pile_up_over_the_turns_of_an_outer_loop() -> None:
    one = Small()
    with one.aiv.loop("o", one.tiles), one.aiv.loop("i", 1):
        one.aiv.set_flag(Pipe.MTE3, 2)
    with one.aic.loop("o", one.tiles), one.aic.loop("i", 1):
        one.aic.wait_flag(Pipe.FIX, 2)
    assert "flag-range" not in one.proved()


def test_sets_that_nobody_waits_for_pile_up() -> None:
    one = Small()
    with one.aiv.loop("i", one.tiles):
        one.aiv.set_flag(Pipe.MTE3, 5)
    assert not {"flag-range", "flag-balance"} & one.proved()


def test_many_turns_share_a_place_of_a_ring() -> None:
    one = Small()
    depth = one.p.parameter("buffer_size", default=40)
    with one.aiv.loop("i", one.tiles) as i:
        with one.aiv.when(i >= depth):
            one.aiv.wait_flag(Pipe.MTE3, 9)
        one.aiv.pipe_barrier()
        one.aiv.set_flag(Pipe.MTE3, i / 20 % depth)
    with one.aic.loop("i", one.tiles) as i:
        one.aic.wait_flag(Pipe.MTE2, i / 20 % depth)
        one.aic.pipe_barrier()
        with one.aic.when(i + depth < one.tiles):
            one.aic.set_flag(Pipe.FIX, 9)
    found = one.decided("tile_cnt <= 300")
    assert found.declined is None
    assert [backlog.bound.constant for backlog in found.backlogs] == [40, 40]


# --- bytes and numbers ------------------------------------------------------------------------


def test_shares_of_windows_that_overlap() -> None:
    one = Small()
    a = one.input()
    c = one.p.region("c", RegionKind.OUTPUT, one.tiles * 4 + PART)
    with one.aic.loop("i", one.tiles) as i:
        source = window(Address(a, Const(0)), PART, origin=Origin(one.p.rank, Address(a, Const(0))))
        one.aic.compute("matmul", "s", 1, reads=[source], writes=[window(Address(c, i * 4), PART)])
    assert "no-write-conflict" not in one.proved()


def test_an_index_that_eight_bits_do_not_hold() -> None:
    one = Small()
    c = one.p.region("c", RegionKind.OUTPUT, one.tiles * PART)
    with one.aic.when(one.p.block.eq(0)), one.aic.loop("i", one.tiles) as i:
        place = cast(CType.I64, cast(CType.U8, i)) * PART
        one.aic.write(Pipe.FIX, window(Address(c, place), PART))
    assert not one.proved()


def test_a_default_that_wraps_around() -> None:
    p = ProtocolBuilder("small")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=1)
    tiles = p.parameter("tile_cnt")
    p.parameter("turns", default=cast(CType.I64, cast(CType.U32, tiles - 1)))
    with pytest.raises(ParameterError, match="may wrap around"):
        domain_of(p.build(), ("tile_cnt",), {})


def test_no_power_of_two_satisfies_the_assumptions() -> None:
    free = ("ranks", "tile_cnt", "buffer_size")
    with pytest.raises(ParameterError, match="no value"):
        prove_for_all([ring_all_to_all()], {}, free, ("buffer_size power of 2", "5 <= buffer_size <= 7"))


def test_a_guard_that_holds_because_it_wraps_around() -> None:
    """An unsigned difference inside the guard that would bound it."""
    one = Small()
    with one.aiv.loop("i", one.tiles * 2) as i, one.aiv.when(cast(CType.U32, one.tiles + 99 - i) > 0):
        one.aiv.set_flag(Pipe.MTE3, 0)
    with one.aic.loop("i", one.tiles * 2) as i, one.aic.when(i < one.tiles + 99):
        one.aic.wait_flag(Pipe.MTE2, 0)
    assert not one.proved()


# --- what is assumed of the order -------------------------------------------------------------


def test_what_stands_before_a_deadlock() -> None:
    """From flags that wait for each other in a circle any order follows."""
    one = Small()
    c = one.p.region("c", RegionKind.OUTPUT, PART)
    with one.aiv.when(one.tiles.eq(5000)):
        one.aiv.write(Pipe.MTE3, window(Address(c, Const(0)), PART))
        one.aiv.wait_flag(Pipe.MTE3, 0)
        one.aiv.set_flag(Pipe.MTE3, 1)
    with one.aic.when(one.tiles.eq(5000)):
        one.aic.write(Pipe.FIX, window(Address(c, Const(0)), PART))
        one.aic.wait_flag(Pipe.FIX, 1)
        one.aic.set_flag(Pipe.FIX, 0)
    assert not {"no-write-conflict", "flag-range"} & one.proved("blocks == 1")


def test_an_input_that_is_written_while_a_put_reads_it() -> None:
    one = Small()
    a, heap = one.input(), one.heap()
    with one.aiv.when(both(one.p.block.eq(0), one.p.rank.eq(0))):
        one.aiv.put(1, Address(heap, Const(0)), Address(a, Const(0)), PART)
        one.aiv.write(Pipe.V, window(Address(a, Const(0)), PART))
        one.aiv.quiet(1)
    assert "no-overwrite-before-read" not in one.proved("ranks == 2")
