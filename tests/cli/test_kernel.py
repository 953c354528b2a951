"""The command on a small kernel header: reading, macros, facts, and the errors of sources."""

from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = Path(__file__).with_name("handover.h")
ASKED = ("handover.h", "--ranks", 1, "--set", "round_cnt=3")


@pytest.fixture(autouse=True)
def header(tmp_path: Path) -> Path:
    target = tmp_path / "handover.h"
    target.write_text(HEADER.read_text(encoding="utf-8"), encoding="utf-8")
    return target


def test_show(run: Callable, snapshot: Callable) -> None:
    finished = run("show", "handover.h", "-U", "SKIP_FIRST")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("show-kernel", finished.stdout)


def test_macro_decides(run: Callable, snapshot: Callable, fails: Callable) -> None:
    assert run("prove", *ASKED, "-U", "SKIP_FIRST", "--property", "deadlock-freedom").returncode == 0
    finished = run("prove", *ASKED, "-D", "SKIP_FIRST")
    assert finished.returncode == 1
    snapshot("prove-kernel-deadlock", finished.stdout)
    assert "handover.h:" in fails(3, "prove", *ASKED)


def test_printed_replay_command_reads_the_sources_alike(run: Callable) -> None:
    finished = run("prove", *ASKED, "-D", "SKIP_FIRST", "-I", ".", "--entry", "HandOverKernel")
    [command] = [line.split()[2:] for line in finished.stdout.splitlines() if line.startswith("  replay ")]
    assert command[2:] == ["handover.h", "--entry", "HandOverKernel", "-D", "SKIP_FIRST", "-I", "."]
    assert run(*command).returncode == 1


def test_values_are_asked_for(fails: Callable) -> None:
    error = fails(2, "prove", "handover.h", "-U", "SKIP_FIRST", "--ranks", 1)
    assert error.startswith("error: round_cnt: no value given")


def test_option_for_a_parameter_that_the_kernel_lacks(fails: Callable) -> None:
    error = fails(2, "prove", *ASKED, "-U", "SKIP_FIRST", "--tile-cnt", 4)
    assert "tile_cnt = 4: no such parameter of HandOverKernel" in error
    assert "(it has ranks, blocks, round_cnt)" in error


@pytest.mark.parametrize(
    ("written", "instead", "code", "message"),
    [
        ("op.Process();", "op.Process(", 2, "handover.h:{line}: syntax error"),
        ("op.Process();", "op.Missing();", 3, "handover.h:{line}: unsupported: call of Missing"),
        ("void HandOverKernel", "void", 2, "handover.h"),
    ],
)
def test_faults_in_the_source_have_their_line(
    written: str, instead: str, code: int, message: str, header: Path, fails: Callable
) -> None:
    text = header.read_text()
    line = text[: text.index(written)].count("\n") + 1
    header.write_text(text.replace(written, instead))
    assert message.format(line=line) in fails(code, "show", "handover.h", "-U", "SKIP_FIRST")


def test_unknown_entry(fails: Callable) -> None:
    assert "HandOverKernel" in fails(2, "show", "handover.h", "-U", "SKIP_FIRST", "--entry", "HandOver")


@pytest.mark.parametrize("content", [b"[sizes]\nfoo = 'x'\n", b"[sizes\n", b"\xff", b"[no_such_table]\n"])
def test_facts_that_are_none(content: bytes, fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "facts.toml").write_bytes(content)
    assert "facts.toml" in fails(2, "show", "handover.h", "-U", "SKIP_FIRST", "--facts", "facts.toml")
