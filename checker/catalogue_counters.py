"""Findings about what flags do in some timing: counters that overflow, bits set twice, lost sets."""

from __future__ import annotations

from .catalogue_entry import Entry, at, example, paragraph

_SET_FLAG = "asc-devkit: CrossCoreSetFlag"

RANGE = (
    Entry(
        "counter-cap",
        "flag-range",
        "a counter can pass its cap",
        _SET_FLAG,
        paragraph("""
            A flag's counter holds 0-15; one set more stops the core. What counts is the backlog, the sets
            that are not yet waited for, in the worst timing: a setter that never waits can be sixteen
            ahead of a slow waiter. Let the other side answer, so that the setter is never far ahead."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreSetFlag<2, PIPE_MTE3>(0);  // 16 sets before the first wait
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              }
            }""",
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
                CrossCoreWaitFlag<2, PIPE_MTE3>(1);
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
                CrossCoreSetFlag<2, PIPE_MTE2>(1);
              }
            }""",
            at(n=16),
        ),
    ),
    Entry(
        "event-set-twice",
        "flag-range",
        "an event can be set again before it is awaited",
        "asc-devkit: SetFlag/WaitFlag",
        paragraph("""
            An event is one bit, and setting it while it is set is undefined. WaitFlag holds only the
            second pipe of the pair, so that nothing keeps the first from running on to the next SetFlag.
            Send an event back before the next set, or use another id for it."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                SetFlag<HardEvent::MTE2_V>(0);
                WaitFlag<HardEvent::MTE2_V>(0);  // holds V, not MTE2
              }
            }""",
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                SetFlag<HardEvent::MTE2_V>(0);
                WaitFlag<HardEvent::MTE2_V>(0);
                SetFlag<HardEvent::V_MTE2>(0);
                WaitFlag<HardEvent::V_MTE2>(0);
              }
            }""",
            at(n=2),
        ),
    ),
    Entry(
        "absent-pipe",
        "flag-range",
        "a set or wait on a pipe that the core lacks",
        "asc-devkit: CrossCoreSetFlag, dav_3510",
        paragraph("""
            On dav-3510 a set or wait that names a pipe which the core does not have compiles to nothing:
            a vector core has no FIX, M and MTE1, a cube core no MTE3 and V. A wait that is gone orders
            nothing, a set that is gone hangs the other side. Name the pipe that does the work on that
            core."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_FIX>(0);  // a vector core has no FIX
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
        ),
    ),
    Entry(
        "mode-change",
        "flag-range",
        "an id is used in another mode before it is done with the first",
        _SET_FLAG,
        paragraph("""
            Modes 0, 1 and 2 count on one counter for each id. A core may use an id in another mode only
            when its earlier sets and waits of that id are done; else a wait can take the set of the other
            mode. Use different ids for different modes."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
              CrossCoreSetFlag<0, PIPE_MTE3>(0);  // the same id among all vector cores
              CrossCoreWaitFlag<0, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
              CrossCoreSetFlag<0, PIPE_MTE3>(1);
              CrossCoreWaitFlag<0, PIPE_MTE3>(1);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
        ),
    ),
    Entry(
        "flag-merged",
        "flag-range",
        "a set is lost in one that nobody has waited for yet",
        "outside the devkit: a report on unconsumed flags",
        paragraph("""
            Only with `--merge-flags`, for hardware on which a set of a flag that is already set has no
            effect: a fast setter's second set is lost, and the second wait hangs. The documents say that
            counters count; one report says otherwise. A protocol in which every set is awaited before the
            next one works on both."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
              CrossCoreSetFlag<2, PIPE_MTE3>(1);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              CrossCoreWaitFlag<2, PIPE_MTE2>(1);
            }""",
            at(options={"merge_flags": True}),
        ),
    ),
)

BARRIERS = (
    Entry(
        "barrier-mismatch",
        "barrier-match",
        "participants call a barrier different numbers of times",
        "CANN SHMEM: aclshmem_barrier_all; asc-devkit: SyncAll",
        paragraph("""
            A barrier opens when every participant has called it: every vector core of every rank, also of
            blocks that have nothing to do, and in a mixed build (`--barrier-all mix`) every cube core
            too. One that calls it less often leaves the others waiting, or lets them through a barrier
            too early. Call it outside of conditions that differ between cores or ranks."""),
        example(
            """
            if ASCEND_IS_AIV {
              if (rank == 0) {
                aclshmem_barrier_all();  // the other rank never comes
              }
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmem_barrier_all();
            }""",
        ),
    ),
)
