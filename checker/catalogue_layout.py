"""Findings of counting and arithmetic over byte ranges: layout and coverage."""

from __future__ import annotations

from .catalogue_entry import Entry, at, example, paragraph

_LAYOUT = "README, properties: layout"
_COVERAGE = "README, properties: coverage"
_SHMEM = "CANN SHMEM device sources: put, quiet"

COVERAGE = (
    Entry(
        "never-delivered",
        "coverage",
        "a segment that is read is never delivered",
        _COVERAGE,
        paragraph("""
            A reader needs a segment of a peer's input, and no write of the program brings it. Often work
            is dealt out by block index, and the launch has fewer blocks than there are peers: no error,
            no hang, the readers of some ranks compute with what the memory held. Deal the peers out in a
            loop over blocks."""),
        example(
            """
            if ASCEND_IS_AIV {
              if (block < ranks && block != rank) {  // with 1 block nobody puts to rank 1
                aclshmemx_udma_put_nbi(heap, input, ub, 64, block);
                aclshmemx_udma_quiet(block);
              }
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
            """
            if ASCEND_IS_AIV {
              for (int target = block; target < ranks; target += blocks) {
                if (target != rank) {
                  aclshmemx_udma_put_nbi(heap, input, ub, 64, target);
                  aclshmemx_udma_quiet(target);
                }
              }
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
        ),
    ),
    Entry(
        "delivered-twice",
        "coverage",
        "a segment is delivered more than once",
        _COVERAGE,
        paragraph("""
            Two writes bring the same bytes to the same place. The data is right, but the traffic is
            doubled, and the second write may come when the reader is already at work. Usually two blocks
            do the same piece, or a loop visits a peer twice."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (uint32_t i = 0; i < n; ++i) {
                aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);  // does not depend on i
                aclshmemx_udma_quiet(peer);
              }
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
              aclshmem_barrier_all();
              ReadTile(heap, 64, peer, input);
            }""",
            at(n=2),
            mended_at=at(),
        ),
    ),
    Entry(
        "output-missing",
        "coverage",
        "bytes of an output are never written",
        _COVERAGE,
        paragraph("""
            The output keeps what the host allocated in some of its bytes. Usually a tail is dropped,
            because a division rounded down, or one block's share is not computed. Round up and clip the
            last tile, or refuse such sizes on the host."""),
        example(
            """
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n / 2; ++i) {  // n = 3: the last tile is dropped
                WriteTile(result + i * 128, 128);
              }
            }""",
            """
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                WriteTile(result + i * 64, 64);
              }
            }""",
            at(n=3),
        ),
    ),
    Entry(
        "output-twice",
        "coverage",
        "bytes of an output are written twice",
        _COVERAGE,
        paragraph("""
            Two writes go to the same bytes of an output, so that one result is lost, and which one may
            depend on the timing. Usually a tile's stride is smaller than the tile. Compare the strides
            with the sizes, also in the last round."""),
        example(
            """
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                WriteTile(result + i * 32, 64);
              }
            }""",
            """
            if ASCEND_IS_AIC {
              for (uint32_t i = 0; i < n; ++i) {
                WriteTile(result + i * 64, 64);
              }
            }""",
            at(n=3),
        ),
    ),
)

PLACES = (
    Entry(
        "out-of-bounds",
        "layout",
        "a range leaves its region",
        _LAYOUT,
        paragraph("""
            A read or write goes beyond the memory that the host allocated, or begins before it: other
            data is destroyed, or the device reports an address error far from the cause. The finding says
            by how many bytes; compare what the host allocates with the last offset that the kernel
            computes."""),
        example(
            """
            if ASCEND_IS_AIV {
              StoreTile(scratch + n * 64, 64);  // scratch has n * 64 bytes
            }""",
            """
            if ASCEND_IS_AIV {
              StoreTile(scratch + (n - 1) * 64, 64);
            }""",
            at(n=4),
        ),
    ),
    Entry(
        "areas-overlap",
        "layout",
        "areas for different inputs share bytes",
        _LAYOUT,
        paragraph("""
            Symmetric memory is divided by the kernel itself, and two of its areas overlap: what arrives
            for one destroys what has arrived for the other. Usually the second area begins behind the
            ring as computed from other sizes than the ring is used with. Compute the begin of each area
            from the end of the one before it."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 128, peer);
              aclshmemx_udma_put_nbi(heap + 64, other, ub, 64, peer);  // inside the first area
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 128, peer);
              aclshmemx_udma_put_nbi(heap + 128, other, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
            }""",
        ),
    ),
    Entry(
        "base-misaligned",
        "layout",
        "a symmetric region does not begin at a multiple of 512 bytes",
        _SHMEM,
        paragraph("""
            Requests go to symmetric memory, whose base is to be a multiple of 512 bytes, and every offset
            that a kernel computes is relative to it. What becomes of a request to another base is not
            documented. The alignment is what the facts, or the protocol, say about the region. Allocate
            it with 512 bytes or a multiple."""),
        example(
            """
            [regions.heap]
            name = "heap"
            kind = "shared"
            alignment = 64""",
            """
            [regions.heap]
            name = "heap"
            kind = "shared"
            alignment = 512""",
            in_facts=True,
        ),
    ),
    Entry(
        "negative-size",
        "layout",
        "a range has a negative size",
        _LAYOUT,
        paragraph("""
            The size of a read or write is computed and comes out below 0; as an unsigned number it is
            enormous. Usually a remainder is subtracted that is larger than the whole. Guard the case, or
            clip at 0."""),
        example(
            """
            if ASCEND_IS_AIV {
              const int64_t rest = static_cast<int64_t>(n) * 64 - 128;  // n = 1: -64
              StoreTile(scratch, rest);
            }""",
            """
            if ASCEND_IS_AIV {
              const int64_t rest = static_cast<int64_t>(n) * 64 - 128;
              if (rest > 0) {
                StoreTile(scratch, rest);
              }
            }""",
            at(n=1),
        ),
    ),
    Entry(
        "input-written",
        "layout",
        "an input is written",
        _LAYOUT,
        paragraph("""
            The facts, or the protocol, call this memory an input, and every verdict about data takes its
            bytes as given. A kernel that writes it changes what its peers and its next launch read. Write
            somewhere else, or declare the region for what it is."""),
        example(
            """
            if ASCEND_IS_AIV {
              StoreTile(input, 64);
            }""",
            """
            if ASCEND_IS_AIV {
              StoreTile(scratch, 64);
            }""",
            mended_at=at(n=1),
        ),
    ),
    Entry(
        "wrap-around",
        "layout",
        "an integer wraps around on the way to an address or a guard",
        "C++17 [conv.integral]",
        paragraph("""
            C computes in the width and signedness of its types: a product of two 32-bit numbers is cut to
            32 bits before it is added to a 64-bit offset, and an int minus an unsigned number is never
            negative, so that a guard like `a - b >= 0` is always true. The finding shows both the
            computed and the exact value. Widen the first operand, or compare without subtracting."""),
        example(
            """
            if ASCEND_IS_AIV {
              if (rank - n >= 0) {  // unsigned: 0 - 1 is 4294967295
                StoreTile(scratch, 64);
              }
            }""",
            """
            if ASCEND_IS_AIV {
              if (rank >= static_cast<int>(n)) {
                StoreTile(scratch, 64);
              }
            }""",
            at(n=1),
        ),
    ),
)

PUTS = (
    Entry(
        "target-not-shared",
        "layout",
        "a put goes to memory that is not symmetric",
        _SHMEM,
        paragraph("""
            The destination of a put is an address of symmetric memory, which is translated to the peer's.
            Of any other buffer the peer has no counterpart, and the request writes to an address that
            means something else there. Put into symmetric memory, and copy from it."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(scratch, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
              aclshmemx_udma_quiet(peer);
            }""",
            at(n=1),
            mended_at=at(),
        ),
    ),
    Entry(
        "no-such-rank",
        "layout",
        "a put or quiet names a rank that does not exist",
        _SHMEM,
        paragraph("""
            The peer is computed and leaves 0 .. ranks - 1, and there is no queue to such a rank. What the
            library does then is not documented. Usually a neighbour is taken without a modulo, or more
            blocks than ranks address peers by their block index."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, rank + 1);  // the last rank has no next one
              aclshmemx_udma_quiet(rank + 1);
            }""",
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, 64, (rank + 1) % ranks);
              aclshmemx_udma_quiet((rank + 1) % ranks);
            }""",
        ),
    ),
    Entry(
        "put-to-self",
        "layout",
        "a rank puts to itself",
        _SHMEM,
        paragraph("""
            The library does not allow a request from a rank to itself. Skip the own rank in the loop over
            peers, and read the own segment where it already is."""),
        example(
            """
            if ASCEND_IS_AIV {
              for (int target = 0; target < ranks; ++target) {
                aclshmemx_udma_put_nbi(heap + rank * 64, input, ub, 64, target);
                aclshmemx_udma_quiet(target);
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
        ),
    ),
    Entry(
        "put-too-large",
        "layout",
        "a request of more than 256 MB",
        _SHMEM,
        paragraph("""
            A request carries at most 256 MB; what happens to the rest is not documented. Divide the
            transfer into several requests, which one quiet completes together."""),
        example(
            """
            if ASCEND_IS_AIV {
              aclshmemx_udma_put_nbi(heap, input, ub, n << 20, peer);
              aclshmemx_udma_quiet(peer);
            }""",
            """
            if ASCEND_IS_AIV {
              const uint32_t half = n << 19;
              aclshmemx_udma_put_nbi(heap, input, ub, half, peer);
              aclshmemx_udma_put_nbi(heap + half, input + half, ub, half, peer);
              aclshmemx_udma_quiet(peer);
            }""",
            at(n=300),
        ),
    ),
)

ENTRIES = (*COVERAGE, *PLACES, *PUTS)
"""In the order in which reports print their properties."""
