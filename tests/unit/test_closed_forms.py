"""Programs whose locals are replaced by closed forms do what they did before."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mc2proof.protocol.builder import ProtocolBuilder, RoleBuilder
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.closed_forms import closed_forms
from mc2proof.protocol.evaluate import evaluate
from mc2proof.protocol.expr import Const, Expr, Var, VarKind, binary, cast, select, unary, variables
from mc2proof.protocol.instance import Kind
from mc2proof.protocol.program import Assign, Pipe, Protocol, Role, expressions, statements
from mc2proof.protocol.recurrence import TURN, Change, Facts, closed
from mc2proof.protocol.unroll import unroll

Body = Callable[[RoleBuilder, Expr, Expr], None]
NOTHING = Facts(frozenset(), frozenset())


def protocol(body: Body) -> Protocol:
    """A program of one AIC: ``body`` is given its builder and the parameters n and depth."""
    p = ProtocolBuilder("locals")
    p.parameter("ranks", low=1, default=1)
    p.parameter("blocks", low=1, default=1)
    n, depth = p.parameter("n", low=0), p.parameter("depth", low=1)
    body(p.role(Role.AIC), n, depth)
    return p.build()


def unresolved(made: Protocol) -> set[str]:
    """Locals that are still read."""
    return {
        v.name
        for program in made.programs.values()
        for statement in statements(program)
        for expr in expressions(statement)
        for v in variables(expr)
        if isinstance(v, Var) and v.kind is VarKind.LOCAL
    }


def flags(made: Protocol, **values: int) -> list[int]:
    """The ids that are set, in order."""
    core = next(core for core in unroll(made, values).cores if core.id.role is Role.AIC)
    return [event.raw for event in core.events if event.kind is Kind.SET_FLAG]


def both_ways(
    made: Protocol, powers: tuple[str, ...] = (), depths: tuple[int, ...] = (1, 2, 3, 4, 7)
) -> None:
    rewritten = closed_forms(made, powers)
    assert not unresolved(rewritten)
    for program in rewritten.programs.values():
        assert not any(isinstance(statement, Assign) for statement in statements(program))
    for n in range(9):
        for depth in depths:
            assert flags(rewritten, n=n, depth=depth) == flags(made, n=n, depth=depth), (n, depth)


def emit(aic: RoleBuilder, *values: Expr) -> None:
    for value in values:
        aic.set_flag(Pipe.FIX, value)


def toggle(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", 1 - slot)
        emit(aic, slot)
    emit(aic, slot)


def flipped_bit(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 1)
    with aic.loop("i", n):
        aic.let("slot", binary("^", slot, 1))
        emit(aic, slot)


def negated(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", cast(CType.I64, unary("!", slot)))


def offset(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", depth)
    with aic.loop("i", n + 3, start=3):
        emit(aic, at)
        aic.let("at", at + depth * 2 + 1)
    emit(aic, at)


def downwards(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 40)
    with aic.loop("i", n, step=3):
        aic.let("at", at - depth)
        emit(aic, at)
    emit(aic, at)


def wrapping(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", (slot + 1) % depth)
    emit(aic, slot)


def wrapping_from_elsewhere(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 5)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", (slot + 3) % depth)


def reset(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", select((slot + 1).eq(depth), 0, slot + 1))


def reset_behind(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        emit(aic, slot)
        with aic.when(slot < depth - 1):
            aic.let("slot", slot + 1)
        with aic.otherwise():
            aic.let("slot", 0)


def masked_by_a_number(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    slot = aic.let("slot", 9)
    with aic.loop("i", n):
        emit(aic, slot)
        aic.let("slot", binary("&", slot + depth, 3))


def of_the_last_turn(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    last = aic.let("last", 15)
    with aic.loop("i", n + 2, start=2, step=2):
        emit(aic, last)
        aic.let("last", binary("*", Var("i", CType.I64, VarKind.LOOP), 2))
    emit(aic, last)


def in_a_loop_within(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    count = aic.let("count", 0)
    slot = aic.let("slot", 0)
    with aic.loop("i", n):
        with aic.loop("j", depth):
            emit(aic, count)
            aic.let("count", count + 1)
        aic.let("slot", 1 - slot)
        emit(aic, slot, count)


def of_each_other(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 0)
    before = aic.let("before", 7)
    with aic.loop("i", n):
        emit(aic, at, before)
        aic.let("before", at)
        aic.let("at", at + 2)


def where_a_parameter_says(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 1)
    with aic.loop("i", n):
        emit(aic, at)
        with aic.when(depth > 2):
            aic.let("at", at + 2)


def within_a_turn(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    with aic.loop("i", n) as i:
        slot = aic.let("slot", i % depth)
        with aic.when(slot.eq(0)):
            aic.let("slot", depth)
        emit(aic, slot)


def a_few_states(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    state = aic.let("state", 1)
    with aic.loop("i", n):
        emit(aic, state)
        aic.let("state", (state * 3) % 7)


FORMS = [
    toggle, flipped_bit, negated, offset, downwards, wrapping, wrapping_from_elsewhere, reset, reset_behind,
    masked_by_a_number, of_the_last_turn, in_a_loop_within, of_each_other, where_a_parameter_says,
    within_a_turn, a_few_states,
]  # fmt: skip


@pytest.mark.parametrize("body", FORMS, ids=lambda body: body.__name__)
def test_forms(body: Body) -> None:
    both_ways(protocol(body))


def test_a_mask_of_a_power_of_two() -> None:
    def body(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
        slot = aic.let("slot", 0)
        with aic.loop("i", n):
            emit(aic, slot)
            aic.let("slot", binary("&", slot + 1, depth - 1))

    both_ways(protocol(body), ("depth",), (1, 2, 4, 8))
    assert unresolved(closed_forms(protocol(body))) == {"slot"}


def squared(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 2)
    with aic.loop("i", n):
        emit(aic, at)
        aic.let("at", at * at)


def summed_up(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 0)
    with aic.loop("i", n) as i:
        emit(aic, at)
        aic.let("at", at + i)


def now_and_then(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 0)
    with aic.loop("i", n) as i:
        emit(aic, at)
        with aic.when((i % depth).eq(0)):
            aic.let("at", at + 1)


def maybe_negative(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 0)
    with aic.loop("i", n):
        emit(aic, at)
        aic.let("at", (at - 1) % depth)


def behind_a_while(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    at = aic.let("at", 0)
    with aic.loop_while(at < n):
        aic.let("at", at + 1)
    emit(aic, at)


def not_assigned_before(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
    with aic.loop("i", n):
        emit(aic, Var("at", CType.I64, VarKind.LOCAL))
        aic.let("at", 1)


@pytest.mark.parametrize(
    "body", [squared, summed_up, now_and_then, maybe_negative, behind_a_while, not_assigned_before],
    ids=lambda body: body.__name__,
)  # fmt: skip
def test_what_has_no_form_keeps_its_name(body: Body) -> None:
    assert unresolved(closed_forms(protocol(body))) == {"at"}


def test_an_index_of_the_same_name_within() -> None:
    def body(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
        with aic.loop("i", n) as i:
            at = aic.let("at", i)
            with aic.loop("i", depth):
                emit(aic, at)

    assert unresolved(closed_forms(protocol(body))) == {"at"}


@pytest.mark.parametrize("ctype", [CType.U8, CType.I16, CType.U32, CType.I64, CType.U64])
def test_sums_wrap_as_in_c(ctype: CType) -> None:
    variable = Var("x", ctype, VarKind.LOCAL)
    step = Const(ctype.high // 3, ctype)
    after = cast(ctype, variable + step)
    change = Change(
        variable, Const(5, ctype), after, frozenset(), lambda e: e, Facts(frozenset(), frozenset())
    )
    found = closed(change)
    assert found is not None
    value = 5
    for turn in range(20):
        assert evaluate(found, {TURN.name: turn}) == value
        value = evaluate(after, {"x": value})


def test_a_narrower_type_on_the_way_is_no_sum() -> None:
    variable = Var("x", CType.I64, VarKind.LOCAL)
    after = cast(CType.I64, cast(CType.U8, variable + 1))
    change = Change(variable, Const(0), after, frozenset(), lambda e: e, NOTHING)
    assert closed(change) is None


# --- random programs --------------------------------------------------------------------------


class Random:
    """Makes programs with three locals, loops and branches, of few operations."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def value(self, names: list[Expr]) -> Expr:
        rng = self.rng
        x = rng.choice(names)
        y = rng.choice([*names, Const(rng.randrange(4))])
        forms: list[Callable[[], Expr]] = [
            lambda: x + rng.randrange(1, 4), lambda: x - 1, lambda: 1 - x, lambda: x + y,
            lambda: (x + rng.randrange(1, 3)) % rng.randrange(1, 5), lambda: binary("&", x + 1, 3),
            lambda: binary("^", x, 1), lambda: y, lambda: Const(rng.randrange(5)),
            lambda: select((x + 1).eq(3), 0, x + 1), lambda: select(x < y, x, y),
        ]  # fmt: skip
        return rng.choice(forms)()

    def block(self, aic: RoleBuilder, known: list[Expr], local: list[str], depth: int) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, 4)):
            kind = rng.random()
            if kind < 0.45:
                aic.let(rng.choice(local), self.value(known))
            elif kind < 0.75 or depth == 0:
                emit(aic, rng.choice(known))
            elif kind < 0.9:
                stop = rng.choice([Const(rng.randrange(4)), Var("n", CType.I64, VarKind.PARAMETER)])
                name, start, step = f"i{depth}{rng.randrange(3)}", rng.randrange(2), rng.choice((1, 1, 2))
                with aic.loop(name, stop, start=start, step=step) as i:
                    self.block(aic, [*known, i], local, depth - 1)
            else:
                with aic.when(self.value(known) < self.value(known)):
                    self.block(aic, known, local, depth - 1)
                with aic.otherwise():
                    self.block(aic, known, local, depth - 1)

    def protocol(self) -> Protocol:
        def body(aic: RoleBuilder, n: Expr, depth: Expr) -> None:
            local = ["a", "b", "c"]
            known: list[Expr] = [aic.let(name, self.rng.randrange(3)) for name in local]
            self.block(aic, [*known, n, depth], local, 3)
            emit(aic, *known)

        return protocol(body)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_programs(part: int) -> None:
    followed = 0
    for seed in range(300) if part == 0 else range(300, 6000):
        made = Random(seed).protocol()
        rewritten = closed_forms(made)
        if unresolved(rewritten):
            continue
        followed += 1
        for n in (0, 1, 2, 5):
            for depth in (1, 3):
                assert flags(rewritten, n=n, depth=depth) == flags(made, n=n, depth=depth), (seed, n, depth)
    assert followed > (150 if part == 0 else 2500)
