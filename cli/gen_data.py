"""What `mc2proof gen-data` does: inputs and golden results for a device, in the reference's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mc2proof.fuzz.devicefiles import device_geometry, write_case
from mc2proof.fuzz.kinds import make_inputs
from mc2proof.fuzz.numerics import parse_dtypes
from mc2proof.text import Line, Piece, line


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
    inputs = make_inputs(kind, geometry, seed)
    written = write_case(Path(folder), inputs, tell)
    size = sum(path.stat().st_size for path in written)
    shown = f"M {shape[0]}, K {shape[1]}, N {shape[2]} on {ranks} ranks"
    lines = [line(f"{len(written)} files, {size:,} B, in {folder}: {shown}, {kind}, {dtype}, seed {seed}")]
    if dropped:
        text = f"the kernel drops the last {dropped} of the {shape[0]} rows of each rank (see mc2proof plan)"
        lines.append(line(Piece(text, "yellow")))
    return lines
