"""What the tests of the command share: running it as a user does, and snapshots of its text.

``MC2PROOF_UPDATE_SNAPSHOTS=1 make test ARGS=tests/cli`` writes the snapshots anew; read the
difference before keeping it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
COMMAND = Path(sys.executable).with_name("mc2proof")
QUIET = ("CI", "NO_COLOR", "TERM", "FORCE_COLOR", "MC2PROOF_TRACEBACK", "PYTHONIOENCODING")

Run = Callable[..., subprocess.CompletedProcess[str]]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command under test: what would change its output is left out."""
    kept = {name: value for name, value in os.environ.items() if name not in QUIET}
    return kept | {"PYTHONUTF8": "1"} | changes


@pytest.fixture(scope="session")
def command() -> SimpleNamespace:
    """The installed command, and the environment to run it in."""
    assert COMMAND.exists(), f"{COMMAND} is not installed"
    return SimpleNamespace(path=str(COMMAND), environment=environment)


@pytest.fixture
def run(tmp_path: Path, command: SimpleNamespace) -> Run:
    """Runs ``mc2proof`` with some arguments in an empty folder."""

    def runner(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command.path, *map(str, arguments)],
            cwd=tmp_path,
            env=environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return runner


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """Runs ``mc2proof`` expecting an exit code and one line on stderr, which is returned."""

    def runner(code: int, *arguments: object, **env: str) -> str:
        finished = run(*arguments, **env)
        assert finished.returncode == code, finished.stdout + finished.stderr
        assert finished.stdout == ""
        assert finished.stderr.endswith("\n")
        assert finished.stderr.count("\n") == 1, finished.stderr
        assert finished.stderr.startswith("mc2proof: ")
        return finished.stderr.removeprefix("mc2proof: ").rstrip("\n")

    return runner


@pytest.fixture
def protocols(tmp_path: Path) -> Path:
    """A Python file with protocols, beside where the command runs."""
    target = tmp_path / "protocols.py"
    target.write_text((HERE / "protocols.py").read_text(encoding="utf-8"), encoding="utf-8")
    return target


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compares text with ``snapshots/NAME.txt``, without what differs between equal runs."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        found = _without_accidents(text)
        if os.environ.get("MC2PROOF_UPDATE_SNAPSHOTS"):
            path.write_text(found, encoding="utf-8")
        assert found == path.read_text(encoding="utf-8"), f"differs from {path.name}"

    return compare


def _without_accidents(text: str) -> str:
    """Digests, traces and places in the shipped package change with what they identify."""
    text = re.sub(r"\b[0-9a-f]{16}\b", "<digest>", text)
    text = re.sub(r"v2:[\w=-]+", "<trace>", text)
    return re.sub(r" +\S*/builtin\.py:\d+", "  builtin.py:<line>", text)
