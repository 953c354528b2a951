"""Device and library functions: one table of what each becomes, every row with its source.

Used by `calls`. A function that is not here, not in the sources and not in facts is refused.
Signatures are those of the AscendC devkit and of CANN SHMEM's device headers (hardware.md 2 - 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from ..cinteger import CType, fits
from ..expr import Const, Expr, binary
from ..program import (
    Address,
    Barrier,
    Get,
    Mode,
    Pipe,
    PipeBarrier,
    Put,
    PutSignal,
    Quiet,
    Role,
    SetEvent,
    SetFlag,
    Signal,
    WaitEvent,
    WaitFlag,
    WaitUntil,
)
from .contracts import BLOCK, BLOCKS, RANK, RANKS, SUB
from .lexical import words
from .lowering import Lowering
from .parse import text_of
from .places import symbol
from .types import VOID, Type
from .values import NOTHING, Pointer, Value, convert, without_casts


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of an intrinsic: its name, argument nodes and template argument nodes."""

    node: Node
    name: str
    arguments: list[Node]
    templates: list[Node]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """How a function is lowered, how many arguments it takes, and where that is written."""

    lower: Callable[[Lowering, CallSite], Value]
    arguments: tuple[int, ...]
    source: str


# --- arguments --------------------------------------------------------------------------------


def _integer(lo: Lowering, node: Node) -> Expr:
    return lo.integer(lo.evaluate(node), node)


def _peer(lo: Lowering, node: Node) -> Expr:
    return convert(CType.I32, _integer(lo, node))  # shmem: int pe


def _address(lo: Lowering, node: Node) -> tuple[Address, Type | None]:
    value = lo.evaluate(node)
    address = lo.address(value, node)
    return address, value.target if isinstance(value, Pointer) else None


def _pipe(lo: Lowering, node: Node) -> Pipe:
    name = symbol(lo, node)
    pipe = next((p for p in Pipe if p.value == name), None)
    if pipe is None:
        raise lo.unsupported(f"pipe {name}", node)
    return pipe


EVENTS = words(
    """MTE2_MTE1 MTE1_MTE2 MTE1_M M_MTE1 MTE2_V V_MTE2 MTE3_V V_MTE3 M_V V_M MTE3_MTE1 MTE1_MTE3 MTE1_V
    MTE2_M M_MTE2 V_MTE1 M_FIX FIX_M MTE3_MTE2 MTE2_MTE3 S_V V_S S_MTE2 MTE2_S S_MTE3 MTE3_S MTE2_FIX
    FIX_MTE2 FIX_S M_S FIX_MTE3 MTE1_FIX FIX_MTE1"""
)
"""The events that there are (devkit HardEvent). V_V and FIX_FIX order a pipe with itself: refused."""


def _event(lo: Lowering, site: CallSite) -> tuple[Pipe, Pipe]:
    if len(site.templates) != 1:
        raise lo.unsupported(f"{site.name} without its event as template argument", site.node)
    name = symbol(lo, site.templates[0])
    if name not in EVENTS:
        raise lo.unsupported(f"event {name}", site.templates[0])
    source, _, target = name.partition("_")
    return Pipe[source], Pipe[target]


def _event_id(lo: Lowering, site: CallSite) -> Expr:
    return convert(CType.I32, _integer(lo, site.arguments[0]))  # devkit SetFlag: int32_t eventID


def _flag_id(lo: Lowering, site: CallSite) -> Expr:
    return convert(CType.U16, _integer(lo, site.arguments[0]))  # devkit CrossCoreSetFlag: uint16_t flagId


def _mode(lo: Lowering, site: CallSite) -> int:
    mode = constant_argument(lo, site.templates[0]) if site.templates else None
    if mode is None:
        raise lo.unsupported(f"{site.name} without a constant mode", site.node)
    if not fits(CType.U8, mode):
        raise lo.unsupported(f"mode {mode} of {site.name}, which is a uint8_t", site.templates[0])
    return mode


def constant_argument(lo: Lowering, node: Node) -> int | None:
    """The value of a template argument that is a number; None for one that only a run decides."""
    base = node.child_by_field_name("type") if node.type == "type_descriptor" else None
    value = _integer(lo, base or node)
    return value.value if isinstance(value, Const) else None


def _choice(lo: Lowering, node: Node, table: dict[str, str]) -> str:
    name = symbol(lo, node)
    if name not in table:
        raise lo.unsupported(f"`{text_of(node)}`", node)
    return table[name]


# --- identities -------------------------------------------------------------------------------


def _block_index(lo: Lowering, site: CallSite) -> Value:
    ratio = lo.shared.vectors_per_cube
    if lo.role is Role.AIC or ratio == 1:
        return BLOCK
    return binary("+", binary("*", BLOCK, ratio), SUB)


def _sub_index(lo: Lowering, site: CallSite) -> Value:
    alone = lo.role is Role.AIC or lo.shared.vectors_per_cube == 1
    return Const(0, CType.I64) if alone else SUB


def _sub_number(lo: Lowering, site: CallSite) -> Value:
    return Const(1 if lo.role is Role.AIC else lo.shared.vectors_per_cube, CType.I64)


def _always(value: Expr) -> Callable[[Lowering, CallSite], Value]:
    return lambda lo, site: value


def _symmetric_address(lo: Lowering, site: CallSite) -> Value:
    """``aclshmem_ptr(base, own rank)`` is ``base``; of another rank it is an address we cannot name."""
    base = lo.as_pointer(lo.evaluate(site.arguments[0]), VOID, site.arguments[0])
    if without_casts(_integer(lo, site.arguments[1])) != RANK:
        raise lo.unsupported("aclshmem_ptr of another rank", site.node)
    return base


# --- flags, events, barriers ------------------------------------------------------------------


def _set_flag(lo: Lowering, site: CallSite) -> Value:
    if len(site.templates) != 2:
        raise lo.unsupported(f"{site.name} without mode and pipe as template arguments", site.node)
    flag = _flag_id(lo, site)
    lo.emit(SetFlag(_mode(lo, site), _pipe(lo, site.templates[1]), flag, lo.span(site.node)))
    return NOTHING


def _wait_flag(lo: Lowering, site: CallSite) -> Value:
    """Mode 0 and PIPE_S are the defaults of its template parameters (devkit CrossCoreWaitFlag)."""
    if len(site.templates) > 2:
        raise lo.unsupported(f"{site.name} with {len(site.templates)} template arguments", site.node)
    mode = _mode(lo, site) if site.templates else 0
    pipe = _pipe(lo, site.templates[1]) if len(site.templates) > 1 else Pipe.S
    lo.emit(WaitFlag(mode, pipe, _flag_id(lo, site), lo.span(site.node)))
    return NOTHING


def _set_event(lo: Lowering, site: CallSite) -> Value:
    source, target = _event(lo, site)
    lo.emit(SetEvent(source, target, _event_id(lo, site), lo.span(site.node)))
    return NOTHING


def _wait_event(lo: Lowering, site: CallSite) -> Value:
    source, target = _event(lo, site)
    lo.emit(WaitEvent(source, target, _event_id(lo, site), lo.span(site.node)))
    return NOTHING


def _pipe_barrier(lo: Lowering, site: CallSite) -> Value:
    if len(site.templates) != 1:
        raise lo.unsupported("PipeBarrier without its pipe as template argument", site.node)
    lo.emit(PipeBarrier(_pipe(lo, site.templates[0]), lo.span(site.node)))
    return NOTHING


def _barrier(lo: Lowering, site: CallSite) -> Value:
    if site.templates:
        raise lo.unsupported(f"{site.name} with template arguments", site.node)
    lo.emit(Barrier(site.name, lo.span(site.node)))
    return NOTHING


def _sync_all(lo: Lowering, site: CallSite) -> Value:
    """The hard form; AIVs only unless its first template argument is false (devkit SyncAll)."""
    if site.arguments:
        raise lo.unsupported("the soft form of SyncAll, which polls a workspace", site.node)
    if len(site.templates) > 1:
        raise lo.unsupported("SyncAll with a SyncAllConfig", site.node)
    vectors_only = constant_argument(lo, site.templates[0]) if site.templates else 1
    if vectors_only is None:
        raise lo.unsupported("SyncAll without a constant isAIVOnly", site.node)
    lo.emit(Barrier(f"SyncAll<{'true' if vectors_only else 'false'}>", lo.span(site.node)))
    return NOTHING


def _matmul_object(lo: Lowering, site: CallSite) -> Value:
    """An object of the Matmul API sets and awaits flags of its own; how often is in no source here."""
    raise lo.unsupported(
        f"{site.name}: objects of the Matmul API use flags 0 and up that are not followed here", site.node
    )


# --- puts, gets, words ------------------------------------------------------------------------


def _bytes(lo: Lowering, count: Node, target: Type | None, node: Node) -> Expr:
    """``elem_size`` elements of the destination's type; the count is a uint32_t."""
    number = convert(CType.U32, _integer(lo, count))
    size = lo.types.size(target, lo.span(node)) if target is not None else 1
    return number if size == 1 else binary("*", number, Const(size, CType.U64))


def _unused(lo: Lowering, site: CallSite, *positions: int) -> None:
    """Evaluate arguments whose values do not matter: what they do does."""
    for position in positions:
        if position < len(site.arguments):
            lo.designate(site.arguments[position])


STAGING = frozenset({Pipe.MTE3, Pipe.S})
"""Pipes that a request can be posted from (shmem: ``template <typename T, pipe_t WQE_PIPE = PIPE_MTE3>``)."""


def _staging(lo: Lowering, site: CallSite) -> Pipe:
    if len(site.templates) > 2:
        raise lo.unsupported(f"{site.name} with {len(site.templates)} template arguments", site.node)
    for given in site.templates[:1]:
        if symbol(lo, given).startswith("PIPE_"):
            raise lo.unsupported(f"{site.name} with a pipe where its element type stands", given)
    pipe = _pipe(lo, site.templates[1]) if len(site.templates) > 1 else Pipe.MTE3
    if pipe not in STAGING:
        raise lo.unsupported(f"{site.name} on {pipe.value}", site.templates[1])
    return pipe


def _put(lo: Lowering, site: CallSite) -> Value:
    target, element = _address(lo, site.arguments[0])
    source, _ = _address(lo, site.arguments[1])
    _unused(lo, site, 2, 5)
    size = _bytes(lo, site.arguments[3], element, site.node)
    peer = _peer(lo, site.arguments[4])
    lo.emit(Put(peer, target, source, size, lo.span(site.node), staging=_staging(lo, site)))
    return NOTHING


def _get(lo: Lowering, site: CallSite) -> Value:
    target, element = _address(lo, site.arguments[0])
    source, _ = _address(lo, site.arguments[1])
    _unused(lo, site, 2, 5)
    size = _bytes(lo, site.arguments[3], element, site.node)
    if _staging(lo, site) is not Pipe.MTE3:
        raise lo.unsupported(f"{site.name} on {Pipe.S.value}", site.node)
    lo.emit(Get(_peer(lo, site.arguments[4]), target, source, size, lo.span(site.node)))
    return NOTHING


def _put_signal(lo: Lowering, site: CallSite) -> Value:
    target, element = _address(lo, site.arguments[0])
    source, _ = _address(lo, site.arguments[1])
    size = _bytes(lo, site.arguments[2], element, site.node)
    word, _ = _address(lo, site.arguments[3])
    value = convert(CType.U64, _integer(lo, site.arguments[4]))
    peer = _peer(lo, site.arguments[5])
    lo.emit(PutSignal(peer, target, source, size, word, value, Mode.STORE, lo.span(site.node)))
    return NOTHING


def _quiet(lo: Lowering, site: CallSite) -> Value:
    lo.emit(Quiet(_peer(lo, site.arguments[0]), lo.span(site.node)))
    return NOTHING


_SIGNAL_MODES = {"ACLSHMEM_SIGNAL_SET": "STORE", "ACLSHMEM_SIGNAL_ADD": "ADD"}
_COMPARISONS = {"ACLSHMEM_CMP_EQ": "==", "ACLSHMEM_CMP_NE": "!=", "ACLSHMEM_CMP_GE": ">="}


def _signal(lo: Lowering, site: CallSite) -> Value:
    word, _ = _address(lo, site.arguments[0])
    value = convert(CType.I32, _integer(lo, site.arguments[1]))
    mode = Mode[_choice(lo, site.arguments[2], _SIGNAL_MODES)]
    lo.emit(Signal(_peer(lo, site.arguments[3]), word, value, mode, lo.span(site.node)))
    return NOTHING


def _wait_until(lo: Lowering, site: CallSite) -> Value:
    word, _ = _address(lo, site.arguments[0])
    comparison = _choice(lo, site.arguments[1], _COMPARISONS)
    value = convert(CType.I32, _integer(lo, site.arguments[2]))
    lo.emit(WaitUntil(word, comparison, value, lo.span(site.node)))
    return NOTHING


INTRINSICS: dict[str, Intrinsic] = {
    "GetBlockIdx": Intrinsic(_block_index, (0,), "devkit GetBlockIdx: int64_t, of an AIV block*ratio+sub"),
    "GetBlockNum": Intrinsic(_always(BLOCKS), (0,), "devkit GetBlockNum: int64_t, the blocks launched"),
    "GetSubBlockIdx": Intrinsic(_sub_index, (0,), "devkit GetSubBlockIdx: int64_t"),
    "GetSubBlockNum": Intrinsic(_sub_number, (0,), "devkit GetSubBlockNum: int64_t"),
    "GetTaskRation": Intrinsic(_sub_number, (0,), "devkit GetTaskRation: AIVs per AIC; on an AIC 1"),
    "GetTaskRatio": Intrinsic(_sub_number, (0,), "devkit GetTaskRatio: the same under its later name"),
    "aclshmem_n_pes": Intrinsic(_always(RANKS), (0,), "shmem aclshmem_n_pes: int"),
    "aclshmem_my_pe": Intrinsic(_always(RANK), (0,), "shmem aclshmem_my_pe: int"),
    "aclshmem_ptr": Intrinsic(_symmetric_address, (2,), "hardware.md 4: symmetric addresses"),
    "aclshmem_barrier_all": Intrinsic(_barrier, (0,), "hardware.md 3"),
    "aclshmemx_barrier_all_vec": Intrinsic(_barrier, (0,), "hardware.md 3"),
    "aclshmemx_udma_put_nbi": Intrinsic(_put, (5, 6), "hardware.md 4, put_nbi"),
    "aclshmemx_udma_get_nbi": Intrinsic(_get, (5, 6), "hardware.md 4, get"),
    "aclshmemx_udma_put_signal_nbi": Intrinsic(_put_signal, (6,), "hardware.md 4, put_signal_nbi"),
    "aclshmemx_udma_quiet": Intrinsic(_quiet, (1,), "hardware.md 4, quiet"),
    "aclshmemx_signal_op": Intrinsic(_signal, (4,), "hardware.md 4, signal_op"),
    "aclshmem_signal_wait_until": Intrinsic(_wait_until, (3,), "hardware.md 4, signal_wait_until"),
    "CrossCoreSetFlag": Intrinsic(_set_flag, (1,), "hardware.md 2, CrossCoreSetFlag"),
    "CrossCoreWaitFlag": Intrinsic(_wait_flag, (1,), "hardware.md 2, CrossCoreWaitFlag"),
    "SetFlag": Intrinsic(_set_event, (1,), "hardware.md 1, events"),
    "WaitFlag": Intrinsic(_wait_event, (1,), "hardware.md 1, events"),
    "PipeBarrier": Intrinsic(_pipe_barrier, (0,), "hardware.md 1, PipeBarrier"),
    "SyncAll": Intrinsic(_sync_all, (0, 2, 3), "devkit SyncAll: template <bool isAIVOnly = true>"),
    "REGIST_MATMUL_OBJ": Intrinsic(_matmul_object, tuple(range(2, 17)), "devkit SyncAll: ids it takes"),
}  # fmt: skip
"""What each known function becomes."""
