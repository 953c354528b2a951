"""`mc2proof prove --certificate` and `mc2proof audit` as users run them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import mc2proof

PROVE = (
    "prove", "--for-all", "tile_cnt", "--ranks", 2, "--buffer-size", 2, "--barrier-all", "vec",
    "--property", "deadlock-freedom", "--property", "flag-balance", "--assume", "tile_cnt >= 1",
)  # fmt: skip


@pytest.fixture
def certificate(run: Callable, tmp_path: Path) -> Path:
    finished = run(*PROVE, "--certificate", "why.json")
    assert (finished.returncode, finished.stderr) == (0, "")
    return tmp_path / "why.json"


def test_a_valid_certificate(run: Callable, snapshot: Callable, certificate: Path) -> None:
    finished = run("audit", certificate)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("audit", finished.stdout)


def test_the_rows_name_what_is_in_it(run: Callable) -> None:
    report = json.loads(run(*PROVE, "--certificate", "why.json", "--format", "json").stdout)
    assert [row["certificate"] for row in report["results"]] == ["6 claims", "8 claims"]
    report = json.loads(run(*PROVE, "--format", "json").stdout)
    assert [row["certificate"] for row in report["results"]] == [None, None]


def test_a_changed_certificate(run: Callable, snapshot: Callable, certificate: Path) -> None:
    data = json.loads(certificate.read_text())
    offset = data["programs"][0]["ranks"]["offset"]
    offset["1"], offset["2"] = offset["2"], offset["1"]
    del data["programs"][0]["claims"][0]
    certificate.write_text(json.dumps(data))
    finished = run("audit", certificate)
    assert (finished.returncode, finished.stderr) == (1, "")
    snapshot("audit-invalid", finished.stdout)


def test_text_that_pretends_to_be_a_verdict(run: Callable, certificate: Path) -> None:
    data = json.loads(certificate.read_text())
    data["programs"][0] |= {"subjects": ["\x1b[2Jfoo\nvalid: 11"], "properties": ["x\nvalid: 12"]}
    certificate.write_text(json.dumps(data))
    finished = run("audit", certificate)
    assert finished.returncode == 1
    assert "\x1b" not in finished.stdout
    assert not any(text.startswith("valid") for text in finished.stdout.splitlines())


def test_other_sources(run: Callable, certificate: Path, protocols: Path) -> None:
    finished = run("audit", certificate, f"{protocols.name}:hand_over")
    assert finished.returncode == 1
    assert "the sources are" in finished.stdout


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": 1, "version": "", "programs": 3}'])
def test_what_is_no_certificate(content: str, fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(content)
    assert fails(2, "audit", "other.json").startswith("error: other.json: is no certificate")


def test_from_python(run: Callable, certificate: Path, protocols: Path) -> None:
    (found,) = mc2proof.audit(certificate)
    assert found.valid
    assert list(found.needed) == ["deadlock-freedom", "flag-balance"]
    (other,) = mc2proof.audit(str(certificate), f"{protocols}:hand_over")
    assert not other.valid
    with pytest.raises(mc2proof.ParameterError, match="path"):
        mc2proof.audit(3)  # type: ignore[arg-type]


def test_refused(fails: Callable, certificate: Path) -> None:
    assert "no such file" in fails(2, "audit", "missing.json")
    assert "--for-all" in fails(2, "prove", "--certificate", "out.json")
    assert "overwrite" in fails(2, "audit", certificate, "--output", certificate)
    assert "cannot be written" in fails(2, *PROVE, "--certificate", "missing/why.json")
    assert "the same file" in fails(2, *PROVE, "--certificate", "./out", "--output", "out")


def test_a_second_solver_that_is_not_there(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "cvc5.py").write_text("raise ImportError('cvc5')")
    said = fails(2, *PROVE, "--second-solver", PYTHONPATH=str(tmp_path))
    assert "mc2proof[cvc5]" in said


STUB = """
class Solver:
    def setOption(self, name, value): ...
    def setLogic(self, name): ...

class InputLanguage:
    SMT_LIB_2_6 = 0

class Command:
    def __init__(self, last): self.last = last
    def isNull(self): return self.last
    def invoke(self, solver, symbols): return {answer!r}

class InputParser:
    def __init__(self, solver): self.commands = [Command(True), Command(False)]
    def setStringInput(self, language, text, name): assert "(check-sat)" in text
    def nextCommand(self): return self.commands.pop()
    def getSymbolManager(self): ...
"""


@pytest.mark.parametrize(("answer", "code"), [("unsat", 0), ("unknown", 0), ("sat", 4)])
def test_a_second_solver(answer: str, code: int, run: Callable, tmp_path: Path) -> None:
    (tmp_path / "cvc5.py").write_text(STUB.format(answer=answer))
    finished = run(*PROVE, "--second-solver", PYTHONPATH=str(tmp_path))
    assert finished.returncode == code, finished.stderr
    assert ("cvc5 finds it possible" in finished.stderr) == (code == 4)
    assert bool(re.search(r"cvc5 confirms (\d+) of \1 questions", finished.stdout)) == (answer == "unsat")
    assert bool(re.search(r"leaves \d+ open, for which Z3 alone", finished.stdout)) == (answer == "unknown")


def test_cvc5_agrees(run: Callable) -> None:
    pytest.importorskip("cvc5")
    finished = run(*PROVE, "--second-solver")
    assert finished.returncode == 0
    assert re.search(r"cvc5 confirms (\d+) of \1 questions", finished.stdout)


def test_export(run: Callable, tmp_path: Path) -> None:
    finished = run(
        "export", "--to", "smt2", "--output", "questions", *PROVE[1:9], "--assume", "tile_cnt >= 1"
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    files = sorted((tmp_path / "questions").iterdir())
    assert finished.stdout == f"{len(files)} questions written to questions\n"
    assert files[0].name == "001-arithmetic-barriers-and-matching.smt2"
    assert all(file.name.startswith(f"{number:03}-") for number, file in enumerate(files, 1))
    text = files[0].read_text()
    assert text.startswith("; mc2proof: ring-all-to-all ")
    assert "(set-info :status unsat)" in text
    assert text.rstrip().endswith("(check-sat)")
