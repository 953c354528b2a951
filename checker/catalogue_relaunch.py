"""Findings between two launches: a fast rank is in its next launch, a slow one still in this one."""

from __future__ import annotations

from .catalogue_entry import Entry, at, example, paragraph

_SOURCE = "README, properties; CANN SHMEM device sources"
_TWICE = {"launches": 2}

ENTRIES = (
    Entry(
        "relaunch-overwrite",
        "relaunch",
        "the next launch of a fast rank writes what a slow rank still reads",
        _SOURCE,
        paragraph("""
            A stream orders the launches of its own rank only. A rank that has ended may begin its next
            launch and put into memory of a peer whose cube core is still reading the last tile of this
            one. A kernel that is right when it is launched once then computes wrong tiles when it is
            launched again and again. Let the readers release what they read and let all ranks meet once
            more before the kernel ends, or synchronise the ranks from the host between launches."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              CrossCoreSetFlag<2, PIPE_MTE3>(0);  // and the vector core ends
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
              CrossCoreWaitFlag<2, PIPE_MTE3>(1);
              aclshmem_barrier_all();
            }
            if ASCEND_IS_AIC {
              CrossCoreWaitFlag<2, PIPE_MTE2>(0);
              ReadTile(heap, 64, peer, input);
              CrossCoreSetFlag<2, PIPE_MTE2>(1);
            }""",
            at(options=_TWICE),
        ),
    ),
    Entry(
        "relaunch-source-overwritten",
        "relaunch",
        "the next launch of a fast rank writes the source of a slow rank's put",
        "CANN SHMEM device sources: put, quiet",
        paragraph("""
            A rank sends on bytes that a peer has put into its memory. The peer ends first, and its next
            launch puts new bytes there while the put that sends the old ones on is still reading. Let all
            ranks meet after the last quiet, before the kernel ends."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              aclshmemx_udma_put_nbi(heap + 64, heap, ub, 64, peer);  // reads what the peer puts next
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              aclshmemx_udma_put_nbi(heap + 64, heap, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
            }""",
            at(options=_TWICE),
        ),
    ),
    Entry(
        "relaunch-write-conflict",
        "relaunch",
        "writes of two launches to the same bytes are unordered",
        _SOURCE,
        paragraph("""
            Within a launch the writes are ordered, by a barrier between them. The rank that writes first
            may be a launch ahead, though, and write again before the other has written in this one: then
            the older bytes are the ones that stay. Let all ranks meet after the last write, before the
            kernel ends."""),
        example(
            """
            if ASCEND_IS_AIV {
              if (rank == 0) {
                aclshmemx_udma_put_nbi(heap, input, ub, 64, 2);
                aclshmemx_udma_quiet(2);
              }
              aclshmem_barrier_all();
              if (rank == 1) {
                aclshmemx_udma_put_nbi(heap, input, ub, 64, 2);  // rank 0 may be a launch ahead
                aclshmemx_udma_quiet(2);
              }
            }""",
            """
            if ASCEND_IS_AIV {
              if (rank == 0) {
                aclshmemx_udma_put_nbi(heap, input, ub, 64, 2);
                aclshmemx_udma_quiet(2);
              }
              aclshmem_barrier_all();
              if (rank == 1) {
                aclshmemx_udma_put_nbi(heap, input, ub, 64, 2);
                aclshmemx_udma_quiet(2);
              }
              aclshmem_barrier_all();
            }""",
            at(ranks=3, options=_TWICE),
        ),
    ),
)
"""Of the property ``relaunch``, which is asked with ``--launches`` of 2 or more."""
