"""Flags, events, barriers and puts as calls: template arguments, defaults, types of ids, core ratios."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.protocol.errors import UnsupportedError
from mc2proof.protocol.expr import Const
from mc2proof.protocol.instance import Kind
from mc2proof.protocol.program import (
    Barrier,
    Block,
    PipeBarrier,
    Protocol,
    Put,
    Role,
    SetEvent,
    SetFlag,
    WaitEvent,
    WaitFlag,
    statements,
)
from mc2proof.protocol.unroll import unroll

LoadText = Callable[..., Protocol]
Program = Callable[..., Block]

PUT = "(heap, heap, (__ubuf__ uint8_t*)nullptr, n, 1);"


@pytest.fixture
def program(load_text: LoadText) -> Program:
    """The program of a kernel ``k(GM_ADDR heap, uint32_t n, int32_t s)`` with two AIVs per AIC."""

    def load(body: str, before: str = "", role: Role = Role.AIV, ratio: str = "__mix__(1, 2)") -> Block:
        head = f"__global__ {ratio} __aicore__ void k(GM_ADDR heap, uint32_t n, int32_t s)"
        return load_text(f"{before}\n{head} {{\n{body}\n}}\n").programs[role]

    return load


def outline(block: Block) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for statement in statements(block):
        match statement:
            case SetFlag(mode=mode, pipe=pipe, flag=flag):
                found.append(("set", mode, pipe.name, str(flag)))
            case WaitFlag(mode=mode, pipe=pipe, flag=flag):
                found.append(("wait", mode, pipe.name, str(flag)))
            case SetEvent(source=source, target=target, event=event):
                found.append(("set event", source.name, target.name, str(event)))
            case WaitEvent(source=source, target=target, event=event):
                found.append(("wait event", source.name, target.name, str(event)))
            case PipeBarrier(pipe=pipe):
                found.append(("pipe barrier", pipe.name))
            case Barrier(function=function):
                found.append((function,))
            case Put(staging=staging):
                found.append(("put", staging.name))
            case _:
                found.append((type(statement).__name__,))
    return found


# --- flags ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "before", "expected"),
    [
        ("CrossCoreSetFlag<0x0, PIPE_MTE3>(1);", "", ("set", 0, "MTE3", "1")),
        ("AscendC::CrossCoreSetFlag<1, PIPE_V>(2);", "", ("set", 1, "V", "2")),
        ("CrossCoreSetFlag<MODE, PIPE_MTE2>(n);", "constexpr uint8_t MODE = 2;", ("set", 2, "MTE2", "n")),
        ("CrossCoreSetFlag<MODE, P>(3);", "#define MODE 0x4\nconstexpr pipe_t P = PIPE_S;",
         ("set", 4, "S", "3")),
        ("CrossCoreSetFlag<M + 1, K::P>(3);",
         "constexpr uint8_t M = 1; struct K { static constexpr pipe_t P = PIPE_V; };", ("set", 2, "V", "3")),
        ("CrossCoreWaitFlag(5);", "", ("wait", 0, "S", "5")),
        ("CrossCoreWaitFlag<2>(5);", "", ("wait", 2, "S", "5")),
        ("CrossCoreWaitFlag<4, PIPE_MTE3>(5);", "", ("wait", 4, "MTE3", "5")),
    ],
)  # fmt: skip
def test_modes_and_pipes(program: Program, call: str, before: str, expected: tuple[object, ...]) -> None:
    assert outline(program(call, before)) == [expected]


def test_modes_and_pipes_of_a_template(program: Program) -> None:
    before = """
template <uint8_t M, pipe_t P>
void Pair(uint16_t id) { CrossCoreSetFlag<M, P>(id); CrossCoreWaitFlag<M>(id); }
"""
    assert outline(program("Pair<1, PIPE_V>(n);", before)) == [("set", 1, "V", "n"), ("wait", 1, "S", "n")]


@pytest.mark.parametrize(
    ("flag", "values", "raw"),
    [("70000", {"n": 0}, 4464), ("n", {"n": 70000}, 4464), ("n - 1", {"n": 0}, 65535), ("n", {"n": 15}, 15)],
)
def test_an_id_is_a_uint16(load_text: LoadText, flag: str, values: dict[str, int], raw: int) -> None:
    head = "__global__ __mix__(1, 1) __aicore__ void k(GM_ADDR heap, uint32_t n)"
    protocol = load_text(f"{head} {{ CrossCoreSetFlag<2, PIPE_MTE3>({flag}); CrossCoreWaitFlag<2>(n); }}")
    known = {p.name for p in protocol.parameters}
    instance = unroll(protocol, {"ranks": 1, "blocks": 1} | {k: v for k, v in values.items() if k in known})
    (event,) = (e for e in instance.cores[0].events if e.kind is Kind.SET_FLAG)
    assert event.raw == raw
    assert event.flag == raw % 16
    # that C cuts a value which only the parameters give is a finding of its own
    assert bool([w for w in instance.wraps if w.value == raw]) is (flag != "70000" and raw > 15)


@pytest.mark.parametrize(
    ("call", "construct"),
    [
        ("CrossCoreSetFlag<n, PIPE_V>(1);", "CrossCoreSetFlag without a constant mode"),
        ("CrossCoreSetFlag<300, PIPE_V>(1);", "mode 300 of CrossCoreSetFlag, which is a uint8_t"),
        ("CrossCoreSetFlag<2>(1);", "CrossCoreSetFlag without mode and pipe as template arguments"),
        ("CrossCoreSetFlag<2, PIPE_V, 1>(1);",
         "CrossCoreSetFlag without mode and pipe as template arguments"),
        ("CrossCoreSetFlag<2, (pipe_t)3>(1);", "pipe (pipe_t)3"),
        ("CrossCoreWaitFlag<2, PIPE_V, 1>(1);", "CrossCoreWaitFlag with 3 template arguments"),
        ("CrossCoreWaitFlag<n>(1);", "CrossCoreWaitFlag without a constant mode"),
        ("CrossCoreWaitFlag<2>();", "CrossCoreWaitFlag with 0 arguments"),
        ("SetFlag<HardEvent::V_V>(0);", "event V_V"),
        ("SetFlag<HardEvent::S_M>(0);", "event S_M"),
        ("WaitFlag(0);", "WaitFlag without its event as template argument"),
        ("PipeBarrier();", "PipeBarrier without its pipe as template argument"),
        ("SyncAll(heap, heap);", "the soft form of SyncAll, which polls a workspace"),
        ("AscendC::SyncAll<false>(heap, heap, 3);", "the soft form of SyncAll, which polls a workspace"),
        ("SyncAll<true, CONFIG>();", "SyncAll with a SyncAllConfig"),
        ("SyncAll<n>();", "SyncAll without a constant isAIVOnly"),
        ("aclshmem_barrier_all<true>();", "aclshmem_barrier_all with template arguments"),
        ("aclshmemx_udma_put_nbi<uint8_t, PIPE_V>" + PUT, "aclshmemx_udma_put_nbi on PIPE_V"),
        ("aclshmemx_udma_put_nbi<PIPE_S>" + PUT,
         "aclshmemx_udma_put_nbi with a pipe where its element type stands"),
        ("aclshmemx_udma_put_nbi<uint8_t, PIPE_S, 1>" + PUT,
         "aclshmemx_udma_put_nbi with 3 template arguments"),
        ("aclshmemx_udma_get_nbi<uint8_t, PIPE_S>" + PUT, "aclshmemx_udma_get_nbi on PIPE_S"),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);", "call of KERNEL_TASK_TYPE_DEFAULT"),
        ("REGIST_MATMUL_OBJ(&n, heap, n, s);",
         "REGIST_MATMUL_OBJ: objects of the Matmul API use flags 0 and up that are not followed here"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_refused_with_its_line(program: Program, call: str, construct: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        program("\n" + call)
    assert error.value.construct == construct
    assert error.value.span is not None
    assert error.value.span.line == 4


# --- events and barriers ----------------------------------------------------------------------


def test_events_inside_a_core(program: Program) -> None:
    body = """
AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID3); WaitFlag<HardEvent::MTE2_V>(EVENT_ID3);
SetFlag<E>(n); WaitFlag<E>(static_cast<event_t>(n));
"""
    assert outline(program(body, "constexpr HardEvent E = HardEvent::MTE3_S;")) == [
        ("set event", "MTE2", "V", "3"), ("wait event", "MTE2", "V", "3"),
        ("set event", "MTE3", "S", "n"), ("wait event", "MTE3", "S", "n"),
    ]  # fmt: skip


def test_an_event_id_is_an_int32(program: Program) -> None:
    (statement,) = program("SetFlag<HardEvent::MTE2_V>(0u - 1);")
    assert isinstance(statement, SetEvent)
    assert isinstance(statement.event, Const)
    assert statement.event.value == -1


def test_pipe_barriers(program: Program) -> None:
    body = "PipeBarrier<PIPE_ALL>(); AscendC::PipeBarrier<PIPE_V>(); PipeBarrier<P>();"
    assert outline(program(body, "constexpr pipe_t P = PIPE_MTE3;")) == [
        ("pipe barrier", "ALL"), ("pipe barrier", "V"), ("pipe barrier", "MTE3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "before", "form"),
    [
        ("SyncAll();", "", "true"),
        ("AscendC::SyncAll();", "", "true"),
        ("SyncAll<true>();", "", "true"),
        ("AscendC::SyncAll<false>();", "", "false"),
        ("SyncAll<ONLY>();", "constexpr bool ONLY = false;", "false"),
        ("SyncAll<!K::MIX>();", "struct K { static constexpr bool MIX = true; };", "false"),
        ("Meet<false>();", "template <bool V> void Meet() { SyncAll<V>(); }", "false"),
    ],
)
def test_barriers_of_one_rank(program: Program, call: str, before: str, form: str) -> None:
    assert outline(program(call, before)) == [(f"SyncAll<{form}>",)]


def test_a_function_of_the_sources_comes_before_the_library(program: Program) -> None:
    before = "namespace own { void SyncAll() { CrossCoreSetFlag<2, PIPE_V>(1); } }"
    assert outline(program("own::SyncAll();", before)) == [("set", 2, "V", "1")]


# --- puts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("templates", "before", "pipe"),
    [
        ("", "", "MTE3"),
        ("<uint8_t>", "", "MTE3"),
        ("<uint8_t, PIPE_MTE3>", "", "MTE3"),
        ("<uint8_t, PIPE_S>", "", "S"),
        ("<uint8_t, P>", "constexpr pipe_t P = PIPE_S;", "S"),
    ],
)
def test_the_pipe_that_a_put_is_posted_from(program: Program, templates: str, before: str, pipe: str) -> None:
    assert outline(program(f"aclshmemx_udma_put_nbi{templates}{PUT}", before)) == [("put", pipe)]


# --- two AIVs per AIC -------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", ["__mix__(1, 2)", "[[bisheng::core_ratio(1, 2)]]"])
def test_identities_at_one_to_two(load_text: LoadText, ratio: str) -> None:
    functions = ("GetBlockIdx", "GetSubBlockIdx", "GetSubBlockNum", "GetTaskRation", "GetTaskRatio")
    body = "".join(f"CrossCoreSetFlag<2, PIPE_MTE2>({name}());" for name in functions)
    mark = ratio if ratio.startswith("[[") else ""
    word = "" if mark else ratio
    protocol = load_text(f"{mark} __global__ {word} __aicore__ void k(GM_ADDR heap) {{ {body} }}")
    assert protocol.vectors_per_cube == 2
    instance = unroll(protocol, {"ranks": 1, "blocks": 2})
    got = {
        str(core.id): [event.raw for event in core.events if event.kind is Kind.SET_FLAG]
        for core in instance.cores
    }
    assert got == {
        "rank 0 AIV block 0": [0, 0, 2, 2, 2],
        "rank 0 AIV block 0.1": [1, 1, 2, 2, 2],
        "rank 0 AIC block 0": [0, 0, 1, 1, 1],
        "rank 0 AIV block 1": [2, 0, 2, 2, 2],
        "rank 0 AIV block 1.1": [3, 1, 2, 2, 2],
        "rank 0 AIC block 1": [1, 0, 1, 1, 1],
    }


def test_guards_that_choose_one_aiv(load_text: LoadText) -> None:
    text = """
__global__ __mix__(1, 2) __aicore__ void k(GM_ADDR heap) {
  if ASCEND_IS_AIV {
    if (GetSubBlockIdx() == 0) { CrossCoreSetFlag<4, PIPE_MTE3>(1); }
    if (GetBlockIdx() % GetTaskRation() != 0) { CrossCoreSetFlag<4, PIPE_MTE3>(2); }
  } else {
    CrossCoreWaitFlag<4, PIPE_MTE2>(1);
    CrossCoreWaitFlag<4, PIPE_MTE2>(16 + 2);
  }
}
"""
    instance = unroll(load_text(text), {"ranks": 1, "blocks": 1})
    flags = [[e.flag for e in core.events if e.kind is not Kind.END] for core in instance.cores]
    assert flags == [[1], [2], [1, 18]]
