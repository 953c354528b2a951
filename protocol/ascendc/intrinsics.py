"""Device and library functions: one table of what each becomes, every row with its source.

Used by `calls`. A function that is not here, not in the sources and not in facts is refused.
Signatures are those of the AscendC devkit and of CANN SHMEM's device headers (hardware.md 2 - 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from ..cinteger import CType
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


def _event(lo: Lowering, site: CallSite) -> tuple[Pipe, Pipe]:
    if len(site.templates) != 1:
        raise lo.unsupported(f"{site.name} without its event as template argument", site.node)
    name = symbol(lo, site.templates[0])
    source, _, target = name.partition("_")
    if source not in Pipe.__members__ or target not in Pipe.__members__:
        raise lo.unsupported(f"event {name}", site.templates[0])
    return Pipe[source], Pipe[target]


def _mode(lo: Lowering, site: CallSite) -> int:
    mode = _integer(lo, site.templates[0]) if site.templates else None
    if not isinstance(mode, Const):
        raise lo.unsupported(f"{site.name} without a constant mode", site.node)
    return mode.value


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


def _ratio(lo: Lowering, site: CallSite) -> Value:
    return Const(lo.shared.vectors_per_cube, CType.I64)


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
    flag = _integer(lo, site.arguments[0])
    lo.emit(SetFlag(_mode(lo, site), _pipe(lo, site.templates[1]), flag, lo.span(site.node)))
    return NOTHING


def _wait_flag(lo: Lowering, site: CallSite) -> Value:
    mode = _mode(lo, site)
    pipe = _pipe(lo, site.templates[1]) if len(site.templates) > 1 else Pipe.S
    lo.emit(WaitFlag(mode, pipe, _integer(lo, site.arguments[0]), lo.span(site.node)))
    return NOTHING


def _set_event(lo: Lowering, site: CallSite) -> Value:
    source, target = _event(lo, site)
    lo.emit(SetEvent(source, target, _integer(lo, site.arguments[0]), lo.span(site.node)))
    return NOTHING


def _wait_event(lo: Lowering, site: CallSite) -> Value:
    source, target = _event(lo, site)
    lo.emit(WaitEvent(source, target, _integer(lo, site.arguments[0]), lo.span(site.node)))
    return NOTHING


def _pipe_barrier(lo: Lowering, site: CallSite) -> Value:
    if len(site.templates) != 1:
        raise lo.unsupported("PipeBarrier without its pipe as template argument", site.node)
    lo.emit(PipeBarrier(_pipe(lo, site.templates[0]), lo.span(site.node)))
    return NOTHING


def _barrier(lo: Lowering, site: CallSite) -> Value:
    lo.emit(Barrier(site.name, lo.span(site.node)))
    return NOTHING


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


def _staging(lo: Lowering, site: CallSite) -> Pipe:
    pipes = [t for t in site.templates if symbol(lo, t).startswith("PIPE_")]
    return _pipe(lo, pipes[0]) if pipes else Pipe.MTE3


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
    "GetTaskRation": Intrinsic(_ratio, (0,), "devkit GetTaskRation: AIVs per AIC"),
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
}  # fmt: skip
"""What each known function becomes."""
