"""What the README shows works as it says."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def verdicts(report: str) -> dict[str, str]:
    return dict(re.findall(r"^  ([a-z-]+) +([A-Z]+)  ", report, re.MULTILINE))


def test_protocol_in_python(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "exchange.py").write_text(BLOCKS[0])
    finished = run("prove", "exchange.py:exchange")
    found = verdicts(finished.stdout)
    assert set(found.values()) == {"PROVED", "VACUOUS"}
    assert found["no-read-before-write"] == "PROVED"
    assert finished.returncode == 3


def test_the_same_without_its_quiet(run: Callable, tmp_path: Path) -> None:
    broken = BLOCKS[0].replace("aiv.quiet(peer)\n", "")
    assert broken != BLOCKS[0]
    (tmp_path / "exchange.py").write_text(broken)
    finished = run("prove", "exchange.py:exchange")
    assert verdicts(finished.stdout)["no-read-before-write"] == "VIOLATED"
    assert finished.returncode == 1


def test_from_a_program(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", BLOCKS[1]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "no-overwrite-before-read VIOLATED" in finished.stdout


def test_every_option_and_property_is_mentioned(run: Callable) -> None:
    from mc2proof.checker.properties import PROPERTIES

    text = README.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z-]+", run("prove", "--help").stdout)) - {"--help"}
    assert [option for option in sorted(options) if option not in text] == []
    assert [name for name in PROPERTIES if f"| {name} |" not in text] == []
