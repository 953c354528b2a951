"""The files of a run on a device: inputs and results in the folders of the reference kernel.

``input/RANK/input_*.bin`` hold the buffers of `Inputs` row by row, ``output/RANK/cpu_output.bin`` and
``npu_out.bin`` results in bf16 as 16-bit words of the machine (hardware.md 5). `judge` compares the
two results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ..protocol.ascendc import reference_facts
from ..protocol.ascendc.host import host_rules
from ..protocol.errors import Mc2proofError, ParameterError
from .golden import golden
from .matrices import Geometry, Inputs, RankInputs
from .numerics import GROUP, SCALE_PAIR, Bytes, Dtypes, scale_bytes

INPUT_FILES: Mapping[str, str] = MappingProxyType(
    {
        "a": "input_a.bin",
        "b": "input_b.bin",
        "scale_a": "input_scaleA.bin",
        "scale_b": "input_scaleB.bin",
    }
)
"""The file of each buffer of `Inputs`."""
GOLDEN_FILE, FOUND_FILE = "cpu_output.bin", "npu_out.bin"


class DeviceFileError(Mc2proofError):
    """A file that cannot be read or written, or whose size is not that of the problem."""


def device_geometry(shape: tuple[int, int, int], ranks: int, dtypes: Dtypes) -> tuple[Geometry, int]:
    """The geometry of M, K, N by the reference's host program, and the rows that its kernel drops.

    Raises ParameterError for what the host rejects, and where its files cannot hold what its kernel
    reads.
    """
    rules = host_rules(reference_facts())
    host = rules.geometry(shape, ranks)
    k = host.parameters["k"]
    read, held = ranks * scale_bytes(k), scale_bytes(shape[1])
    if read != held:
        raise ParameterError(
            "K",
            shape[1],
            f"is {k} for each of {ranks} ranks, no multiple of {GROUP * SCALE_PAIR}: the host program holds "
            f"{held} scales a row of A, its kernel reads {read}, so that its results mean nothing "
            "(see mc2proof plan)",
        )
    geometry = Geometry(ranks, shape[0], k, shape[2], host.parameters["m"], dtypes)
    return geometry, rules.dropped_rows({**host.parameters, "ranks": ranks})


def write_case(folder: Path, inputs: Inputs, tell: Callable[[str], None] | None = None) -> list[Path]:
    """Write inputs and golden results below ``folder``; the paths. Raises DeviceFileError."""
    written: list[Path] = []
    ranks = inputs.geometry.ranks
    for rank in range(ranks):
        if tell is not None:
            tell(f"rank {rank} of {ranks}")
        buffers = inputs.buffers(rank)
        for name, file in INPUT_FILES.items():
            written.append(_write(folder / "input" / str(rank) / file, buffers[name]))
        written.append(_write(folder / "output" / str(rank) / GOLDEN_FILE, golden(inputs, rank)))
    return written


def read_inputs(folder: Path, *, ranks: int, rows: int, n: int, tile_rows: int, dtypes: Dtypes) -> Inputs:
    """The inputs in ``folder``/RANK; K is told by the size of A. Raises DeviceFileError."""
    size = _read(folder / "0" / INPUT_FILES["a"]).size
    k, rest = divmod(size, ranks * rows)
    if rest or not k:
        place = folder / "0" / INPUT_FILES["a"]
        raise DeviceFileError(f"{place}: {size} bytes are no whole number of {ranks} x {rows} rows of A")
    geometry = Geometry(ranks, rows, k, n, tile_rows, dtypes)
    return Inputs(geometry, [_rank_inputs(folder / str(rank), geometry) for rank in range(ranks)])


def _rank_inputs(folder: Path, geometry: Geometry) -> RankInputs:
    buffers: dict[str, Bytes] = {}
    for name, shape in geometry.shapes.items():
        path = folder / INPUT_FILES[name]
        data = _read(path)
        if data.size != shape[0] * shape[1]:
            raise DeviceFileError(f"{path}: has {data.size} bytes, not {shape[0]} rows of {shape[1]}")
        buffers[name] = data.reshape(shape)
    return RankInputs(**buffers)


def _read(path: Path) -> Bytes:
    try:
        return np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise DeviceFileError(f"{path}: cannot be read: {error.strerror}") from error


def _write(path: Path, data: np.ndarray) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(np.ascontiguousarray(data).data)
    except OSError as error:
        raise DeviceFileError(f"{path}: cannot be written: {error.strerror}") from error
    return path
