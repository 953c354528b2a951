"""Findings that a timing shows: hangs, reads and writes that are not ordered, requests not complete."""

from __future__ import annotations

from .catalogue_entry import Entry, at, example, paragraph

_SHMEM = "CANN SHMEM device sources: put, quiet"
_MEMORY = "README, properties; CANN SHMEM device sources"

DEADLOCK = (
    Entry(
        "deadlock",
        "deadlock-freedom",
        "a timing stops before every core is done",
        "asc-devkit: CrossCoreWaitFlag, SyncAll",
        paragraph("""
            Some cores wait for flags, events or barriers that nobody can reach any more, and the kernel
            never returns. Either each waits for what the other does only later, or a set is missing, was
            made under another id, or compiles to nothing. The finding names who waits for what. Mend it
            where the shown timing stops: set before waiting, and on every path on which the other side
            waits."""),
        example(
            """
            if ASCEND_IS_AIV {
              CrossCoreWaitFlag<2, PIPE_MTE3>(1);
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_FIX>(0);  // set only after flag 1, which is set below
              CrossCoreSetFlag<2, PIPE_FIX>(1);
            }""",
            """
            if ASCEND_IS_AIV {
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
              CrossCoreWaitFlag<2, PIPE_MTE3>(1);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_FIX>(0);
              CrossCoreSetFlag<2, PIPE_FIX>(1);
            }""",
        ),
    ),
    Entry(
        "event-hang",
        "deadlock-freedom",
        "an event that was set twice hangs a pipe barrier",
        "asc-devkit: SetFlag/WaitFlag",
        paragraph("""
            An event is one bit. If a second SetFlag takes effect while the bit is still set, what the
            pipe does is undefined, and a later PipeBarrier<PIPE_ALL>, or a barrier that begins with one,
            waits for ever. It happens when the setting pipe is faster than the waiting one. Give the
            events that may be under way at once different ids, or let the waiting pipe send an event back
            before the next set."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                SetFlag<HardEvent::MTE2_MTE3>(0);  // MTE2 may set again before MTE3 has waited
                WaitFlag<HardEvent::MTE2_MTE3>(0);
              }
              PipeBarrier<PIPE_ALL>();
            }""",
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                SetFlag<HardEvent::MTE2_MTE3>(0);
                WaitFlag<HardEvent::MTE2_MTE3>(0);
                SetFlag<HardEvent::MTE3_MTE2>(0);
                WaitFlag<HardEvent::MTE3_MTE2>(0);
              }
              PipeBarrier<PIPE_ALL>();
            }""",
            at(n=2),
        ),
    ),
    Entry(
        "blocks-exceed-cores",
        "deadlock-freedom",
        "a barrier waits for blocks that cannot start",
        "asc-devkit: SyncAll",
        paragraph("""
            A block occupies its core until it ends. With more blocks than AI cores the last ones begin
            only when others have ended, and those wait in a barrier for the ones that have not begun. It
            needs no special timing. Launch no more blocks than the device has cores (`--cores`), and let
            a block do several pieces of work in a loop."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmem_barrier_all();  // 4 blocks on 2 cores: two of them never get here
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmem_barrier_all();  // the same, launched with 2 blocks
            }""",
            at(blocks=4, options={"cores": 2}),
            mended_at=at(blocks=2, options={"cores": 2}),
        ),
    ),
)

READS = (
    Entry(
        "read-before-write",
        "no-read-before-write",
        "a reader can begin before its data has landed",
        _MEMORY,
        paragraph("""
            The bytes that a reader needs are on their way when it begins, so it computes with what was
            there before. Nothing reports it; results differ from run to run. Usually the reader is
            released by its own rank, which knows that its own puts have arrived, but not that the peer's
            have. Let every rank wait for its requests (quiet), then meet in a barrier, and release the
            reader after it."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);  // our put has arrived; the peer's may not have
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              ReadTile(heap, 64, peer, input);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              CrossCoreSetFlag<2, PIPE_MTE3>(0);
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              ReadTile(heap, 64, peer, input);
            }""",
        ),
    ),
    Entry(
        "never-written",
        "no-read-before-write",
        "a reader needs bytes that nobody writes",
        "README, properties",
        paragraph("""
            In every timing the reader finds what memory happened to hold, because no write of the program
            touches those bytes: a put is too short, goes to another offset, or is not made on some path.
            Compare the range that the finding names with the ranges of the puts."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 128, peer, input);  // twice what was put
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 128, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 128, peer, input);
            }""",
        ),
    ),
    Entry(
        "foreign-data",
        "no-read-before-write",
        "a reader finds data of another origin",
        "README, properties",
        paragraph("""
            The bytes are written, but never with what the reader must find: with another input, another
            rank's segment, or another row block. No timing helps. Compare the origin that the reader
            expects with the source of the put: often a row stride or a rank differs between the two
            sides."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input + 64, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);  // the first segment, and the second was sent
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
        ),
    ),
)

OVERWRITES = (
    Entry(
        "overwrite",
        "no-overwrite-before-read",
        "a write can begin before an earlier reader has ended",
        _MEMORY,
        paragraph("""
            A slot is filled again while a slow reader still needs the tile that was in it, so the reader
            gets a mixture. It takes a fast writer and one slow core. Let the reader set a flag behind its
            reads, wait for that flag before the slot is used again, and let the ranks meet after the
            wait: the writer is another rank, which the flag alone does not reach."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                aclshmemx_udma_put_nbi(heap, input + i * 64, ub, 64, peer);
                aclshmemx_udma_quiet(peer);
                aclshmem_barrier_all();
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
                ReadTile(heap, 64, peer, input + i * 64);
              }
            }""",
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                aclshmemx_udma_put_nbi(heap, input + i * 64, ub, 64, peer);
                aclshmemx_udma_quiet(peer);
                aclshmem_barrier_all();
                CrossCoreSetFlag<2, PIPE_MTE3>(0);
                CrossCoreWaitFlag<2, PIPE_MTE3>(1);
                aclshmem_barrier_all();
              }
            }
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                CrossCoreWaitFlag<2, PIPE_MTE2>(0);
                ReadTile(heap, 64, peer, input + i * 64);
                CrossCoreSetFlag<2, PIPE_MTE2>(1);
              }
            }""",
            at(n=2),
        ),
    ),
    Entry(
        "source-overwritten",
        "no-overwrite-before-read",
        "bytes are written while a put or a read still needs them",
        _SHMEM,
        paragraph("""
            A put returns when its request is posted and reads its source until it is complete. Who writes
            the source before a quiet to that peer sends the new bytes, the old ones or both. Call quiet
            before the source is used again, or alternate between two sources."""),
        example(
            """
            if ASCEND_IS_AIV {
              StoreTile(scratch, 64);
              PipeBarrier<PIPE_ALL>();
              aclshmemx_udma_put_nbi(heap, scratch, ub, 64, peer);
              StoreTile(scratch, 64);  // the put may still be reading
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              StoreTile(scratch, 64);
              PipeBarrier<PIPE_ALL>();
              aclshmemx_udma_put_nbi(heap, scratch, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              StoreTile(scratch, 64);
            }""",
            at(n=1),
        ),
    ),
)

CONFLICTS = (
    Entry(
        "write-conflict",
        "no-write-conflict",
        "two writes of the same bytes are unordered",
        _MEMORY,
        paragraph("""
            Two ranks or pipes write the same bytes and nothing says which is last, so the result depends
            on the timing. Puts of one rank to one peer are unordered as well until a quiet. Give each
            writer a place of its own, or order the writes: quiet behind the first, then a barrier or a
            flag."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (int target = 0; target < ranks; ++target) {
                if (target != rank) {
                  aclshmemx_udma_put_nbi(heap, input, ub, 64, target);  // all ranks to one place
                  aclshmemx_udma_quiet(target);
                }
              }
            }""",
            """
            if ASCEND_IS_AIV {
              for (int target = 0; target < ranks; ++target) {
                if (target != rank) {
                  aclshmemx_udma_put_nbi(heap + rank * 64, input, ub, 64, target);
                  aclshmemx_udma_quiet(target);
                }
              }
            }""",
            at(ranks=3),
        ),
    ),
    Entry(
        "queue-race",
        "no-write-conflict",
        "two cores of a rank post to one peer at once",
        _SHMEM,
        paragraph("""
            A rank has one send queue for each peer, and posting to it uses no atomics. Two vector cores
            that post to the same peer at once can lose a request or damage one. Let one core a peer do
            the posting, or order the posts of the cores by a barrier."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap + block * 64, input + block * 64, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              if (block == 0) {
                aclshmemx_udma_put_nbi(heap, input, ub, 128, peer);
                aclshmemx_udma_quiet(peer);
              }
            }""",
            at(blocks=2),
        ),
    ),
)

COMPLETION = (
    Entry(
        "request-not-complete",
        "completion",
        "readers wait for a request, not for its completion",
        "CANN SHMEM device sources: barrier, put, quiet",
        paragraph("""
            The reader is ordered after the call of the put, but that call only posts the request, and a
            barrier does not complete it, whatever its name suggests: it polls no completion queue. The
            data may arrive long after the barrier. Call quiet for that peer before the barrier."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmem_barrier_all();  // completes no put
              ReadTile(heap, 64, peer, input);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
        ),
    ),
    Entry(
        "not-complete-at-end",
        "completion",
        "a core can end before its request is complete",
        _SHMEM,
        paragraph("""
            The kernel returns while a put is under way. The host, or the next kernel, may free or
            overwrite the source, and the peer's memory changes after the kernel that caused it has ended.
            Call quiet for every peer that was put to before the core ends."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
            }""",
        ),
    ),
)

ENTRIES = (*DEADLOCK, *READS, *OVERWRITES, *CONFLICTS, *COMPLETION)
"""In the order in which reports print their properties."""
