"""Where results go: standard output, files, terminals; and what an interrupt leaves behind."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

LONG = ("prove", "--ranks", "8", "--tile-cnt", "60", "--buffer-size", "8")


def test_output_file_holds_what_stdout_would(run: Callable, tmp_path: Path) -> None:
    plain = run("prove", "--buffer-size", 3)
    finished = run("prove", "--buffer-size", 3, "--output", "report.txt")
    assert finished.returncode == plain.returncode == 1
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == plain.stdout
    assert finished.stdout == "9 proved, 1 violated; written to report.txt\n"
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]


def test_output_file_is_replaced_whole_and_keeps_its_mode(run: Callable, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    assert run("prove", "--ranks", 0, "--output", "report.json").returncode == 2
    assert target.read_text() == "old"
    assert run("prove", "--format", "json", "--output", "report.json").returncode == 0
    assert json.loads(target.read_text())["schema_version"] == 3
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_output_through_a_link_and_into_a_device(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    assert run("prove", "--output", "link.txt").returncode == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text().endswith("10 proved, 0 violated\n")
    assert run("prove", "--output", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("target", [".", "missing/report.txt", "file/report.txt", ""])
def test_output_that_cannot_be_written(target: str, fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written: " in fails(2, "prove", "--output", target)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_folder(fails: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    assert "Permission denied" in fails(2, "prove", "--output", "folder/report.txt")


def test_nothing_is_needed_of_the_folder_it_runs_in(run: Callable, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert run("prove", "--property", "layout").returncode == 0
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(("option", "code"), [((), 0), (("--buffer-size", "3"), 1)])
def test_a_reader_that_went_away_changes_no_verdict(
    option: tuple[str, ...], code: int, command: SimpleNamespace, tmp_path: Path
) -> None:
    read, write = os.pipe()
    os.close(read)
    finished = subprocess.run(
        [command.path, "prove", *option], stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, check=False,
        env=command.environment(),
    )  # fmt: skip
    os.close(write)
    assert (finished.returncode, finished.stderr) == (code, b"")


def shell(script: str, command: SimpleNamespace, tmp_path: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", script, "sh", command.path],
        cwd=tmp_path,
        env=command.environment(),
        capture_output=True,
        check=False,
    )


def test_closed_streams(command: SimpleNamespace, tmp_path: Path) -> None:
    assert shell('"$1" prove >&-', command, tmp_path).returncode == 0
    assert shell('"$1" prove --ranks 0 2>&-', command, tmp_path).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk(command: SimpleNamespace, tmp_path: Path) -> None:
    finished = shell('"$1" prove >/dev/full', command, tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.decode().startswith("mc2proof: error: standard output: cannot be written: ")
    assert finished.stderr.count(b"\n") == 1


def test_names_outside_the_encoding_are_escaped(run: Callable, tmp_path: Path) -> None:
    finished = run("prove", "内核.h", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert finished.returncode == 2
    assert "\\u5185\\u6838.h: no such file" in finished.stderr


# --- terminals and interrupts -----------------------------------------------------------------


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, command: SimpleNamespace, arguments: tuple[str, ...], cwd: Path, **env: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [command.path, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=command.environment(**({"TERM": "xterm-256color"} | env)),
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def read(self, until: str | None = None, seconds: float = 60) -> str:
        """Everything written until ``until`` is, or the process ends."""
        deadline = time.monotonic() + seconds
        while until is None or until not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"nothing came in {seconds} s after: {self.text!r}"
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                piece = b""
            if not piece:
                break
            self.text += piece.decode(errors="replace")
        return self.text

    def finish(self) -> int:
        self.read()
        os.close(self.master)
        return self.process.wait(60)


def test_terminal_has_colours_and_progress(command: SimpleNamespace, tmp_path: Path) -> None:
    terminal = Terminal(command, ("prove",), tmp_path)
    assert terminal.finish() == 0
    assert "\x1b[32mPROVED" in terminal.text
    assert "asking z3" in terminal.text


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminal_without_colours(env: dict[str, str], command: SimpleNamespace, tmp_path: Path) -> None:
    terminal = Terminal(command, ("prove",), tmp_path, **env)
    assert terminal.finish() == 0
    assert "\x1b" not in terminal.text
    assert "10 proved, 0 violated" in terminal.text


def test_no_progress_in_ci(command: SimpleNamespace, tmp_path: Path) -> None:
    terminal = Terminal(command, ("prove",), tmp_path, CI="true")
    assert terminal.finish() == 0
    assert "asking" not in terminal.text


@pytest.mark.parametrize("engine", ["happens-before", "z3"])
def test_interrupt(engine: str, command: SimpleNamespace, tmp_path: Path) -> None:
    arguments = (*LONG, "--engine", engine, "--output", "report.txt")
    terminal = Terminal(command, arguments, tmp_path)
    terminal.read("asking" if engine == "z3" else "reading")
    time.sleep(3 if engine == "z3" else 0)  # long enough to be inside the solver
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 130
    assert "mc2proof: interrupted" in terminal.text
    assert "Traceback" not in terminal.text
    assert list(tmp_path.iterdir()) == []


def test_interrupt_without_a_terminal_is_one_line(command: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import sys, time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [command.path, "prove", "slow.py:p"],
        cwd=tmp_path,
        env=command.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, "", "mc2proof: interrupted\n")


def test_help_is_quick(tmp_path: Path) -> None:
    """Nothing heavy is loaded for it."""
    script = "import sys; from mc2proof.command import run; run(['prove', '--help']); print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(finished.stdout.splitlines()[-1].split())
    assert not loaded & {"z3", "numpy", "hypothesis", "rich", "tree_sitter", "msgspec"}
