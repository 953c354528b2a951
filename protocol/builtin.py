"""The built-in protocol: all-to-all over a ring of buffers, overlapped with a matmul.

The schedule that fused kernels of this family share, written with `builder`: the AIVs put tile i
into slot i mod buffer_size of every peer, the AICs multiply it. It is what ``mc2proof prove``
checks without sources, what the tests mutate, and an example of a protocol written by hand.
"""

from __future__ import annotations

from .builder import ProtocolBuilder, segment_index, window
from .expr import Expr, both, call
from .program import Address, Origin, Pipe, Protocol, RegionKind, Role

GROUP = 64
"""Elements of K that share two scale bytes in the MXFP8 layout (hardware.md 5)."""


def ring_all_to_all() -> Protocol:
    """All-to-all + matmul over a ring of ``buffer_size`` slots.

    Sizes in bytes; a tile is ``m`` rows of ``k`` one-byte elements of A from every rank, giving
    ``m`` x ``n`` two-byte elements of C. ``rows`` that are no whole number of tiles have a tail
    which is never sent.
    """
    p = ProtocolBuilder("ring-all-to-all")
    ranks = p.parameter("ranks", low=1, default=4, meaning="processing elements")
    p.parameter("blocks", low=1, meaning="blocks launched on each rank; ranks by default")
    depth = p.parameter("buffer_size", low=1, default=4, meaning="slots of the ring")
    tiles = p.parameter("tile_cnt", default=8, meaning="tiles of rows")
    m = p.parameter("m", low=1, default=512, meaning="rows of a tile")
    k = p.parameter("k", low=1, default=2048, meaning="columns of A on one rank")
    n = p.parameter("n", low=1, default=3584, meaning="columns of C")

    sent = tiles * m
    rows = p.parameter("rows", default=sent, meaning="rows of A that each rank receives")

    scale_row = call("ceil_div", k, GROUP) * 2
    segment_bytes = m * k
    slot_bytes = ranks * segment_bytes
    heap = p.region("heap", RegionKind.SHARED, 1 << 30, alignment=512)
    a = p.region("a", RegionKind.INPUT, ranks * rows * k)
    # the host allocates whole groups of all of K, the kernel sends whole groups of each rank's part
    scale_a = p.region("scale_a", RegionKind.INPUT, rows * (call("ceil_div", ranks * k, GROUP) * 2))
    p.region("b", RegionKind.INPUT)
    p.region("scale_b", RegionKind.INPUT)
    c = p.region("c", RegionKind.OUTPUT, rows * n * 2, covered=True)
    p.assume("contract", "the matmul reads, for every source rank, one data and one scale segment of "
             "the tile on MTE2, then writes the tile of C on FIX")  # fmt: skip
    p.assume("every-block-has-output", "every launched block has output in every tile")

    def slot(tile: Expr) -> Expr:
        # the mask is a ring only for powers of two: part of what is checked
        return (tile & (depth - 1)) * slot_bytes

    scale_base = depth * slot_bytes

    aiv = p.role(Role.AIV)
    sends = both(p.block < ranks, p.block.ne(p.rank))
    with aiv.when(sends):
        aiv.put(
            p.block,
            Address(heap, scale_base + p.rank * sent * scale_row),
            Address(scale_a, p.block * sent * scale_row),
            sent * scale_row,
        )
    with aiv.loop("tile", tiles) as tile:
        with aiv.when(tile >= depth):
            aiv.wait_flag(Pipe.MTE3, tile - depth)  # this rank has multiplied what the slot holds
            aiv.barrier()  # and so has every other
        with aiv.when(sends):
            aiv.put(
                p.block,
                Address(heap, slot(tile) + p.rank * segment_bytes),
                Address(a, p.block * sent * k + tile * m * k),
                segment_bytes,
            )
            aiv.quiet(p.block)
        aiv.barrier()
        aiv.set_flag(Pipe.MTE3, tile)

    aic = p.role(Role.AIC)
    s = segment_index("source")
    with aic.loop("tile", tiles) as tile:
        data_at = Address(a, p.rank * sent * k + tile * m * k)
        scale_at = Address(scale_a, p.rank * sent * scale_row + tile * m * scale_row)
        # the host lays the inputs out by all rows, the kernel strides by those that it sends
        data_origin = Origin(s, Address(a, p.rank * rows * k + tile * m * k))
        scale_origin = Origin(s, Address(scale_a, p.rank * rows * scale_row + tile * m * scale_row))
        scale_landed = scale_base + s * sent * scale_row + tile * m * scale_row
        remote, own = s.ne(p.rank), s.eq(p.rank)
        aic.wait_flag(Pipe.MTE2, tile)
        aic.compute(
            "matmul",
            "source",
            ranks,
            reads=[
                window(Address(heap, slot(tile) + s * segment_bytes), segment_bytes,
                       origin=data_origin, guard=remote),
                window(Address(heap, scale_landed), m * scale_row, origin=scale_origin, guard=remote),
                window(data_at, segment_bytes, origin=data_origin, guard=own),
                window(scale_at, m * scale_row, origin=scale_origin, guard=own),
            ],
            writes=[window(Address(c, tile * m * n * 2), m * n * 2)],
        )  # fmt: skip
        with aic.when(both(tiles > depth, tile < tiles - depth)):
            aic.set_flag(Pipe.FIX, tile)
    return p.build()


BUILTIN = {"ring-all-to-all": ring_all_to_all}
"""The shipped protocols by name."""
