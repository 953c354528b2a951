"""`mc2proof fuzz` and `mc2proof replay --with-data` as users run them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

SMALL = ("--ranks", 2, "--tile-cnt", 5)


def settled(text: str) -> str:
    """``text`` without how fast it was, and without what depends on Hypothesis's version."""
    text = re.sub(r"\d+ a second", "N a second", text)
    return re.sub(r"reproduce_failure\('[^']*', b'[^']*'\)", "reproduce_failure(<version>, <blob>)", text)


def test_no_failure(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", *SMALL, "--examples", 40)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("fuzz-right", settled(finished.stdout))


def test_a_failure_is_shown_small_and_replays(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", *SMALL, "--buffer-size", 3, "--dtype", "e4m3:e5m2", "--seed", 1)
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("fuzz-depth-3", settled(finished.stdout))
    (trace,) = re.findall(r"mc2proof replay (\S+)", finished.stdout)
    again = run("replay", trace, "--with-data")
    assert (again.returncode, again.stderr) == (1, "")
    snapshot("replay-with-data", again.stdout)
    (pasted,) = re.findall(r'--reproduce "(.*)"', finished.stdout)
    arguments = (*SMALL, "--dtype", "e4m3:e5m2", "--seed", 1, "--reproduce")
    at_once = run("fuzz", *arguments, f"@{pasted}", "--buffer-size", 3)
    assert at_once.returncode == 1
    assert "example 1 (pct, seed 1, e4m3:e5m2)" in at_once.stdout
    assert trace in at_once.stdout
    right = run("fuzz", *arguments, pasted, "--buffer-size", 2)
    assert right.returncode == 0
    assert "NO FAILURE  in 1 timing" in right.stdout


def test_a_hang_in_python(run: Callable, snapshot: Callable, protocols: Path) -> None:
    finished = run("fuzz", "protocols.py:missing_set", "--ranks", 2, "--timing", "preempt")
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("fuzz-python-deadlock", settled(finished.stdout))


def test_a_proofs_trace_replays_with_data(run: Callable) -> None:
    proved = run("prove", *SMALL, "--buffer-size", 3, "--set", "m=2", "--set", "k=64", "--set", "n=2")
    (trace,) = re.findall(r"mc2proof replay (\S+)", proved.stdout)[:1]
    finished = run("replay", trace, "--with-data")
    assert finished.returncode == 1
    assert "changes while it is read" in finished.stdout or "is wrong" in finished.stdout
    assert "tagged inputs, e4m3:e4m3, seed 0 (the trace notes no data)" in finished.stdout


def test_shapes_and_sizes_are_taken(run: Callable) -> None:
    finished = run("fuzz", "--ranks", 2, "--shape", "1024,256,4", "--examples", 3)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "m 512, k 128, n 4" in finished.stdout
    finished = run("fuzz", *SMALL, "--set", "k=96", "--set", "m=3", "--set", "n=5", "--examples", 3)
    assert finished.returncode == 0
    assert "m 3, k 96, n 5" in finished.stdout


def test_no_folder_of_hypothesis_is_left(run: Callable, protocols: Path) -> None:
    assert run("fuzz", "protocols.py:hand_over", "--ranks", 2, "--examples", 2).returncode == 0
    assert not (protocols.parent / ".hypothesis").exists()


def test_what_was_run_is_told_as_it_was_taken(run: Callable) -> None:
    finished = run("fuzz", *SMALL, "--set", "n=1", "--dtype", "E5M2:e4m3", "--examples", 2)
    assert "(pct, seed 0, e5m2:e4m3, normal inputs as tags have no room)" in finished.stdout


def test_a_trace_of_other_sources(run: Callable, protocols: Path) -> None:
    failed = run("fuzz", "protocols.py:missing_set", "--ranks", 2, "--examples", 5)
    (trace,) = re.findall(r"mc2proof replay (\S+)", failed.stdout)
    finished = run("replay", trace)
    assert finished.returncode == 2
    assert re.search(
        r"not of ring-all-to-all \(\w+\): give the sources that it was made from; .* have changed since",
        finished.stderr,
    )


def test_help(run: Callable, snapshot: Callable) -> None:
    finished = run("fuzz", "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("help-fuzz", finished.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--examples", 0), "examples"),
        (("--seed", -1), "seed"),
        (("--dtype", "fp4:e4m3"), "fp4"),
        (("--timing", "random"), "pct"),
        (("--set", "ring=3"), "no such parameter"),
        (("--ranks", 0), "ranks"),
        (("--tile-cnt", 0), "tile_cnt = 0"),
        (("--seed", 1 << 63), "seed"),
        (("--reproduce", "AAEB"), "reproduce_failure(...)"),
        (("--reproduce", "reproduce_failure('6.0', b'AAEB')"), "different version of Hypothesis"),
    ],
)
def test_errors_are_one_line(arguments: tuple[object, ...], message: str, run: Callable) -> None:
    finished = run("fuzz", *arguments)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PLAIN, DRAWN = re.findall(
    r"```python\n(import mc2proof\n(?:(?!```).)*mc2proof\.fuzz.*?)```", README, re.DOTALL
)
"""The two files of the README's section: a plain test, and one with Hypothesis."""

PYTEST = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "--hypothesis-seed=1")


@pytest.fixture
def own(tmp_path: Path, command: SimpleNamespace) -> Callable[..., str]:
    """Runs pytest on a file of one's own in an empty folder; returns what it prints."""

    def runner(text: str, *arguments: str) -> str:
        (tmp_path / "test_kernel.py").write_text(text, encoding="utf-8")
        finished = subprocess.run(
            [sys.executable, *PYTEST, "test_kernel.py", *arguments],
            cwd=tmp_path,
            env=command.environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return finished.stdout

    return runner


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def told(output: str) -> str:
    """What pytest marks as the failure."""
    rows = [row.removeprefix("E").strip() for row in output.splitlines() if re.match(r"E(  |$)", row)]
    text = re.sub(r"Explanation:\n.*?\n\n", "", "\n".join(rows), flags=re.DOTALL)  # lines of Python that ran
    return settled(f"{text}\n")


def test_the_readmes_file_has_ten_lines_and_passes(own: Callable[..., str]) -> None:
    assert len(PLAIN.splitlines()) == 10
    assert "1 passed" in own(PLAIN)


def test_the_readmes_file_with_a_wrong_depth(
    own: Callable[..., str], run: Callable, snapshot: Callable
) -> None:
    wrong = changed(PLAIN, '"buffer_size": 2', '"buffer_size": 3')
    output = own(wrong)
    assert "1 failed" in output
    snapshot("assert-matches-golden", told(output))
    (trace,) = re.findall(r"mc2proof replay (\S+)", output)
    assert "as the trace was found with" in run("replay", trace, "--with-data").stdout


def test_the_line_of_a_plain_test_reproduces_its_failure(own: Callable[..., str]) -> None:
    wrong = changed(PLAIN, '"buffer_size": 2', '"buffer_size": 3')
    first = own(wrong)
    assert "found       in timing 2 " in first
    (line,) = re.findall(r"temporarily add (reproduce=\S+ b'\S+'\)) to the call", first)
    again = own("import hypothesis\n" + changed(wrong, "examples=200", f"examples=200, {line}"))
    assert "1 failed" in again
    assert "found       in timing 1 " in again
    assert re.findall(r"mc2proof replay (\S+)", again) == re.findall(r"mc2proof replay (\S+)", first)
    mended = own("import hypothesis\n" + changed(PLAIN, "examples=200", f"examples=200, {line}"))
    assert "DidNotReproduce: the timing that failed is right now: take reproduce= away" in mended


def test_the_readmes_hypothesis_test(own: Callable[..., str]) -> None:
    assert "1 passed" in own(DRAWN)


def test_hypothesis_shrinks_and_its_line_reproduces(own: Callable[..., str], snapshot: Callable) -> None:
    wrong = changed(DRAWN, "max_buffer_size=2", "max_buffer_size=4")
    wrong = changed(wrong, "timing):\n", "timing):\n    print('drawn', dict(values), timing)\n")
    output = own(wrong, "-s")  # one run for all that follows: shrinking takes half a minute
    assert "1 failed" in output
    snapshot("assert-matches-golden-drawn", told(output))
    drawn = re.findall(r"^\.?F?(drawn .*)$", output, re.MULTILINE)
    assert len(drawn) > 1
    assert "'ranks': 2, 'buffer_size': 3, 'tile_cnt': 2," in drawn[-1]
    assert len(re.findall(r"\(\d+, \d+\)", drawn[-1])) <= 1  # switches
    (line,) = re.findall(r"@reproduce_failure\('\S+', b'\S+'\)", output)
    pasted = changed(wrong, "@given", f"{line}\n@given")
    pasted = changed(pasted, "import given", "import given, reproduce_failure")
    again = own(pasted, "-s", "--hypothesis-seed=7")
    assert "1 failed" in again
    assert re.findall(r"^\.?F?(drawn .*)$", again, re.MULTILINE) == [drawn[-1]]
