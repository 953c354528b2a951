"""Findings about flags, events and barriers: how often they are used, under which ids, on which pipes."""

from __future__ import annotations

from .catalogue_entry import Entry, at, example, paragraph
from .report import Severity

_SET_FLAG = "asc-devkit: CrossCoreSetFlag"
_EVENT = "asc-devkit: SetFlag/WaitFlag"
_SYNC_ALL = "asc-devkit: SyncAll"
_STRICT = {"strict_ids": True}

BALANCE = (
    Entry(
        "set-without-wait",
        "flag-balance",
        "more sets than waits",
        _SET_FLAG,
        paragraph("""
            What is set and never waited for stays in the counter. The next launch may find it there and
            run ahead of the core that it should wait for, and after enough launches the counter passes
            its cap. Wait as often as is set: the finding names the statement that is left over, usually
            that of the first or the last round. Where several cores must set for one event (modes 0 and
            1, and mode 2 from two vector cores to their cube core), sets of only some of them count for
            nothing: let each of them set."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 1; i < n; ++i) {  // one round less
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              }
            }""",
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              }
            }""",
            at(n=3),
        ),
    ),
    Entry(
        "wait-without-set",
        "flag-balance",
        "more waits than sets",
        _SET_FLAG,
        paragraph("""
            A wait that has no set holds its pipe for ever once the other sets are used up; with it the
            core, and every core that waits for that one. Set as often as is waited for, also on the paths
            that do no work."""),
        example(
            """
            if ASCEND_IS_AIV {
              if (n > 1) {
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
              }
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);  // waits for n = 1, too
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
            at(n=1),
            mended_at=at(),
        ),
    ),
)

IDS = (
    Entry(
        "id-out-of-range",
        "flag-range",
        "a flag id is cut to another one",
        _SET_FLAG,
        paragraph("""
            The hardware keeps the low four bits of a flag id (five for a cube core in mode 4) and says
            nothing: 16 is 0, 17 is 1. Waits then see sets that were meant for another flag. Ids that grow
            with the tile stop working at the seventeenth. Reuse ids in turn, and release each before it
            is used again."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(n);  // 16 is flag 0
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(n);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(n % 8);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(n % 8);
            }""",
            at(n=16),
        ),
    ),
    Entry(
        "id-not-for-users",
        "flag-range",
        "a flag id that some documents keep from users",
        "asc-devkit: other editions",
        paragraph("""
            Some editions of the documents give users the ids 0-10 only and keep the others for the
            system. Asked for with `--strict-ids`. A kernel that is to run with every edition uses 0-10."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(12);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(12);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(2);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(2);
            }""",
            at(options=_STRICT),
        ),
    ),
    Entry(
        "id-reserved",
        "flag-range",
        "a flag id whose counter the system itself uses",
        _SYNC_ALL,
        paragraph("""
            A barrier, or the Matmul API, counts with this id on the very core whose counter the flag
            changes. A barrier may be left too early or never, a wait of the kernel may take a set of the
            barrier. Use an id that neither of them takes: which ones do is listed with SyncAll, and
            depends on the form of the barrier (`--barrier-all`) and on the number of Matmul objects
            (`--matmul-objects`)."""),
        example(
            """
            if ASCEND_IS_AIC {
              CrossCoreSetFlag<2, PIPE_FIX>(14);
            }
            if ASCEND_IS_AIV {
              CrossCoreWaitFlag<2, PIPE_MTE3>(14);  // the barrier counts with it on this core
              aclshmem_barrier_all();
            }""",
            """
            if ASCEND_IS_AIC {
              CrossCoreSetFlag<2, PIPE_FIX>(3);
            }
            if ASCEND_IS_AIV {
              CrossCoreWaitFlag<2, PIPE_MTE3>(3);
              aclshmem_barrier_all();
            }""",
        ),
    ),
    Entry(
        "id-reserved-elsewhere",
        "flag-range",
        "a flag id that the system uses on the other kind of core",
        _SYNC_ALL,
        paragraph("""
            The number is that of a flag of the barrier, but on the other kind of core, and counters are
            each core's own: nothing collides. A warning, because some documents reserve the number on
            both, and because a change of the barrier's form can make it a collision; an error with
            `--strict-ids`. Another id costs nothing."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(14);  // the barrier has its 14 on the vector cores
              aclshmem_barrier_all();
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(14);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(4);
              aclshmem_barrier_all();
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(4);
            }""",
        ),
        severity=Severity.WARNING,
        strict=Severity.ERROR,
    ),
    Entry(
        "event-id-out-of-range",
        "flag-range",
        "an event id that does not exist",
        _EVENT,
        paragraph("""
            A pair of pipes has eight events, 0-7. What a larger id does is not documented. Take ids in
            turn, or let the pipe allocate them."""),
        example(
            """
            if ASCEND_IS_AIV {
              SetFlag<HardEvent::MTE2_MTE3>(8);
              WaitFlag<HardEvent::MTE2_MTE3>(8);
            }""",
            """
            if ASCEND_IS_AIV {
              SetFlag<HardEvent::MTE2_MTE3>(0);
              WaitFlag<HardEvent::MTE2_MTE3>(0);
            }""",
        ),
    ),
    Entry(
        "event-id-of-system",
        "flag-range",
        "an event id that the system uses as well",
        _EVENT,
        paragraph("""
            The events 6 and 7 of a pair of pipes are used by the toolkit's own code. A kernel that calls
            such code between its set and its wait may find the event taken or set by it. A warning,
            because only the toolkit knows where it does; an error with `--strict-ids`. Use 0-5."""),
        example(
            """
            if ASCEND_IS_AIV {
              SetFlag<HardEvent::MTE2_MTE3>(6);
              WaitFlag<HardEvent::MTE2_MTE3>(6);
            }""",
            """
            if ASCEND_IS_AIV {
              SetFlag<HardEvent::MTE2_MTE3>(5);
              WaitFlag<HardEvent::MTE2_MTE3>(5);
            }""",
        ),
        severity=Severity.WARNING,
        strict=Severity.ERROR,
    ),
)
