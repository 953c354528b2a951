"""The program form: walking, printing, and the digest that identifies what is checked."""

from dataclasses import replace

import pytest

from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.expr import Const, as_expr
from mc2proof.protocol.program import (
    Address,
    Assumption,
    For,
    If,
    Pipe,
    PipeBarrier,
    Protocol,
    Put,
    Region,
    RegionKind,
    Role,
    SetFlag,
    Span,
    While,
    expressions,
    statements,
)

HERE = Span("here.h", 1)
ELSEWHERE = Span("there.h", 99, 7, (HERE,))


def one(flag: int, *, span: Span = HERE, pipe: Pipe = Pipe.MTE3) -> SetFlag:
    return SetFlag(2, pipe, as_expr(flag), span)


def with_program(*body: SetFlag) -> Protocol:
    p = ProtocolBuilder("digested")
    p.parameter("ranks", low=1)
    p.parameter("blocks", low=1)
    for statement in body:
        p.role(Role.AIV).add(statement)
    return p.build()


def test_statements_come_outer_first_in_program_order() -> None:
    a, b, c, d, e = (one(i) for i in range(5))
    inner = If(as_expr(True), (b,), (c,), HERE)
    loop = While(as_expr(False), (a, inner, d), HERE)
    assert list(statements((loop, e))) == [loop, a, inner, b, c, d, e]


def test_expressions_of_a_statement_are_its_own() -> None:
    put = Put(as_expr(1), Address("h", as_expr(2)), Address("a", as_expr(3)), as_expr(4), HERE)
    assert list(expressions(put)) == [Const(1), Const(2), Const(3), Const(4)]
    branch = If(as_expr(5), (put,), (), HERE)
    assert list(expressions(branch)) == [Const(5)]


def test_the_digest_ignores_spans_names_and_texts() -> None:
    first, second = with_program(one(1)), with_program(one(1, span=ELSEWHERE))
    assert first.digest() == second.digest()
    renamed = replace(first, name="other", assumptions=(Assumption("x", "y"),), subjects=("z",), files=("f",))
    assert renamed.digest() == first.digest()


@pytest.mark.parametrize(
    "changed",
    [
        with_program(one(2)),
        with_program(one(1, pipe=Pipe.V)),
        with_program(one(1), one(1)),
        with_program(),
        replace(with_program(one(1)), regions=(Region("h", RegionKind.SHARED),)),
        replace(with_program(one(1)), vectors_per_cube=2),
        replace(with_program(one(1)), programs={Role.AIC: (one(1),)}),
        replace(with_program(one(1)), parameters=with_program(one(1)).parameters[:1]),
    ],
    ids=["flag", "pipe", "twice", "empty", "region", "ratio", "role", "parameter"],
)
def test_the_digest_sees_what_is_checked(changed: Protocol) -> None:
    assert changed.digest() != with_program(one(1)).digest()


def test_the_digest_has_16_hexadecimal_digits() -> None:
    digest = ring_all_to_all().digest()
    assert len(digest) == 16
    assert int(digest, 16) >= 0


def test_places_and_addresses_print_as_readers_write_them() -> None:
    assert ELSEWHERE.place == "there.h:99"
    assert str(Address("heap", as_expr(0))) == "heap"
    assert str(Address("heap", as_expr(8))) == "heap + 8"


def test_defaults_are_those_of_the_hardware() -> None:
    put = Put(as_expr(1), Address("h", as_expr(2)), Address("a", as_expr(3)), as_expr(4), HERE)
    assert put.staging is Pipe.MTE3
    assert PipeBarrier(Pipe.ALL, HERE).pipe is Pipe.ALL
    assert For.__doc__ is not None
