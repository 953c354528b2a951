"""The reference kernel and its variants, from the folder beside the project; skipped where missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "kernels"
HEADERS = ("all_to_all_comm_udma.h", "all_to_all_matmul_impl.h")


@pytest.fixture(scope="session")
def kernels() -> Path:
    """The folder with the reference kernel. Skips the test where it does not lie beside the project."""
    if not (SHARED / "all_to_all_matmul").is_dir():
        pytest.skip("the reference kernel (../shared/kernels) is not here")
    return SHARED


@pytest.fixture(scope="session")
def reference(kernels: Path) -> list[Path]:
    """The two headers of the reference kernel."""
    return [kernels / "all_to_all_matmul" / "include" / "kernel" / name for name in HEADERS]


@pytest.fixture
def variant(kernels: Path, tmp_path: Path) -> Callable[[str], list[Path]]:
    """A function from a variant's number to the headers of a patched copy."""

    def make(number: str) -> list[Path]:
        (patch,) = (kernels / "variants").glob(f"{number}-*.patch")
        copy = tmp_path / f"variant-{number}"
        for header in HEADERS:
            target = copy / "include" / "kernel" / header
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kernels / "all_to_all_matmul" / "include" / "kernel" / header, target)
            target.chmod(0o644)
        apply_patch(patch.read_text(encoding="utf-8"), copy)
        return [copy / "include" / "kernel" / name for name in HEADERS]

    return make


def apply_patch(patch: str, folder: Path) -> None:
    """Apply a unified diff with ``a/`` and ``b/`` prefixes below ``folder``; its context must match."""
    path: Path | None = None
    lines: list[str] = []
    position = offset = 0
    for line in patch.splitlines(keepends=True):
        if line.startswith("+++ b/"):
            path = folder / line[len("+++ b/") :].strip()
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            offset = 0
        elif line.startswith("@@"):
            position = int(line.split()[1].lstrip("-").split(",")[0]) - 1 + offset
        elif path is None or line.startswith(("---", "#")):
            continue
        elif line.startswith("+"):
            lines.insert(position, line[1:])
            position, offset = position + 1, offset + 1
        else:
            assert lines[position] == line[1:] or not line.strip(), f"{path}: {line!r} does not match"
            if line.startswith("-"):
                del lines[position]
                offset -= 1
            else:
                position += 1
        if path is not None:
            path.write_text("".join(lines), encoding="utf-8")
