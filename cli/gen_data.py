"""What `mc2proof gen-data` does: inputs and golden results for a device, in the reference's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mc2proof.fuzz.devicefiles import FOUND_FILE, device_geometry, write_case
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.numerics import parse_dtypes
from mc2proof.protocol.errors import ParameterError
from mc2proof.text import Line, Piece, line

MOST_PRODUCTS = 1 << 43
"""Multiplications of a case, over all ranks: more would take an hour and more."""

ROUGH = frozenset({"extreme", "special"})
"""Kinds whose sums cancel or overflow, so that their order shows."""


def generate(
    shape: tuple[int, int, int],
    ranks: int,
    folder: str,
    *,
    kind: str,
    seed: int,
    dtype: str,
    tell: Callable[[str], None] | None = None,
) -> list[Line]:
    """Write the files below ``folder``, and tell what they hold. Raises Mc2proofError."""
    geometry, dropped = device_geometry(shape, ranks, parse_dtypes(dtype))
    products = geometry.rows * geometry.k * geometry.n * ranks * ranks
    if products > MOST_PRODUCTS:
        raise ParameterError(
            "M K N RANKS",
            None,
            f"{products:.1e} products are too many to compute here: at most {MOST_PRODUCTS:.1e}",
        )
    inputs = make_inputs(kind, geometry, seed)
    written = write_case(Path(folder), inputs, tell)
    size = sum(path.stat().st_size for path in written)
    shown = f"M {shape[0]}, K {shape[1]}, N {shape[2]} on {ranks} rank{'s' if ranks > 1 else ''}"
    lines = [line(f"{len(written)} files, {size:,} B, in {folder}: {shown}, {kind}, {dtype}, seed {seed}")]
    if dropped:
        text = f"the kernel drops the last {dropped} of the {shape[0]} rows of each rank (see mc2proof plan)"
        lines.append(line(Piece(text, "yellow")))
    if kind in ROUGH:
        text = (
            f"a device that sums in another order may differ from the results of {kind} inputs and be right"
        )
        lines.append(line(Piece(text, "yellow")))
    stale = [path for path in written if (path.parent / FOUND_FILE).exists()]
    if stale:
        text = f"there is a {FOUND_FILE} of an earlier run in {stale[0].parent} already"
        lines.append(line(Piece(text, "yellow")))
    return lines
