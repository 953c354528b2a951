"""Bad usage and bad input: one line that names the place and the mend, the right code, no traceback."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

USAGE = {
    "unknown command": (("prov",), "No such command 'prov'. Did you mean 'prove'? (see mc2proof --help)"),
    "unknown option": (("prove", "--rank", 4), "No such option '--rank'. Did you mean '--ranks'?"),
    "missing trace": (("replay",), "Missing argument 'TRACE'."),
    "extra argument": (("list", "x"), "Got unexpected extra argument (x)"),
    "not a number": (("prove", "--ranks", "x"), "Invalid value for '--ranks': 'x' is not a valid integer."),
    "engine": (
        ("prove", "--engine", "z"),
        "is not one of auto, happens-before, z3, explore, parametric; did you mean z3?",
    ),
    "barrier": (("prove", "--barrier-all", "vex"), "'vex' is not one of vec, mix, soft; did you mean vec?"),
    "format": (("prove", "--format", "jso"), "did you mean json?"),
    "profile": (("prove", "--profile", "ascend95"), "no profile 'ascend95'; did you mean ascend950?"),
    "property": (("prove", "--property", "deadlok"), "did you mean deadlock-freedom?"),
    "zero ranks": (("prove", "--ranks", 0), "ranks = 0: must be at least 1"),
    "ranks beyond 64 bits": (("prove", "--ranks", 10**30), "must be from 1"),
    "zero events": (("prove", "--max-events", 0), "max_events = 0: must be at least 1"),
    "negative rlimit": (("prove", "--rlimit", -1), "rlimit = -1: must be from 0"),
    "zero launches": (("prove", "--launches", 0), "launches = 0: must be at least 1"),
    "zero cores": (("prove", "--cores", 0), "cores = 0: must be at least 1"),
    "matmul objects": (("prove", "--matmul-objects", 5), "matmul_objects = 5: must be from 0 to 4"),
    "fault": (
        ("prove", "--fault", "quiet-timeot"),
        "fault: no fault 'quiet-timeot'; did you mean quiet-timeout?",
    ),
    "relaunch of one launch": (("prove", "--property", "relaunch"), "relaunch: "),
    "unknown name": (
        ("prove", "--set", "tile_count=3"),
        "tile_count = 3: no such parameter of ring-all-to-all; did you mean tile_cnt? (it has ranks, blocks,",
    ),
    "two values": (
        ("prove", "--set", "tile_cnt=3", "--tile-cnt", 4),
        "tile_cnt: given twice, as 4 (--tile-cnt) and 3 (--set)",
    ),
    "two settings": (("prove", "--set", "m=3", "--set", "m=4"), "m: given twice, as 3 (--set) and 4 (--set)"),
    "no value": (("prove", "--set", "m="), "--set: 'm=' is not of the form NAME=VALUE"),
    "no name": (("prove", "--set", "=3"), "--set: '=3' is not of the form NAME=VALUE"),
    "no equals": (("prove", "--set", "m"), "--set: 'm' is not of the form NAME=VALUE"),
    "no integer": (("prove", "--set", "m=1.5"), "'1.5' in 'm=1.5' is not a whole number"),
    "no integer in array": (("prove", "--set", "m=1,,2"), "'' in 'm=1,,2' is not a whole number"),
    "facts without sources": (("prove", "--facts", "f.toml"), "facts: applies to kernel sources"),
    "entry without sources": (("show", "--entry", "main"), "entry: applies to kernel sources"),
    "macro": (("prove", "a.h", "-D", "1X"), "define: '1X' is not of the form NAME or NAME=VALUE"),
    "macro both ways": (("prove", "a.h", "-D", "X", "-U", "X"), "define: X is both defined and undefined"),
    "no trace": (("replay", "x"), "a trace starts with 'v2:'"),
    "damaged trace": (("replay", "v2:AAAA"), "the trace is damaged or cut off: copy it whole"),
    "missing file": (("prove", "kernel.h"), "kernel.h: no such file"),
    "missing Python file": (("show", "mine.py:p"), "mine.py: no such file"),
    "empty name": (("prove", ""), "'': no such file"),
    "folder": (("prove", "."), ".: is a folder: name the files in it"),
    "file as a folder": (("prove", "--output", "/dev/null/x"), "cannot be written"),
}


@pytest.mark.parametrize("case", USAGE)
def test_one_line_names_the_mend(case: str, fails: Callable) -> None:
    arguments, message = USAGE[case]
    assert message in fails(2, *arguments)


def test_no_arguments_is_bad_usage_with_help(run: Callable) -> None:
    finished = run()
    assert finished.returncode == 2
    assert finished.stderr.startswith("Usage: mc2proof")


def test_missing_file_names_its_neighbour(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "kernel.hpp").write_text("")
    assert "did you mean kernel.hpp?" in fails(2, "prove", "kernel.h")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "kernel.h").write_text("")
    (tmp_path / "kernel.h").chmod(0)
    assert "kernel.h: cannot be read: Permission denied" in fails(2, "prove", "kernel.h")


def test_link_to_itself(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "kernel.h").symlink_to("kernel.h")
    assert "kernel.h: cannot be read: " in fails(2, "prove", "kernel.h")


def test_include_folder_must_exist(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "kernel.h").write_text("")
    assert "nowhere: no such folder (-I)" in fails(2, "prove", "kernel.h", "-I", "nowhere")


PYTHON = {
    "no name": ("", "protocols.py: say which protocol of the file: protocols.py:NAME (it has: hand_over,"),
    "near miss": (":hand_ovr", "protocols.py: no name 'hand_ovr'; did you mean hand_over?"),
    "takes arguments": (
        ":takes_arguments",
        "takes_arguments takes arguments: a function without any is needed",
    ),
    "no protocol": (":number", "number is no protocol but of type int"),
    "builder": (":builder", "builder is no protocol but of type ProtocolBuilder: call its build()"),
}


@pytest.mark.parametrize("case", PYTHON)
def test_reference_into_a_python_file(case: str, fails: Callable, protocols: Path) -> None:
    name, message = PYTHON[case]
    assert message in fails(2, "show", f"protocols.py{name}")


def test_what_a_python_file_raises_has_its_line(run: Callable, protocols: Path) -> None:
    finished = run("prove", "protocols.py:raises", "--format", "json")
    assert finished.returncode == 2
    assert finished.stdout == ""
    printed, error = finished.stderr.splitlines()
    assert printed == "on its way"  # not into the report
    line = 1 + protocols.read_text().splitlines().index('    raise ValueError("no\\nluck")')
    assert error == f"mc2proof: error: protocols.py:{line}: raised ValueError: no luck"


BROKEN = {
    "syntax": (b"x = (\n", "broken.py:1: no valid Python: "),
    "encoding": (b"x = '\xff'\n", "broken.py:1: no valid Python: "),
    "import": (b"import no_such_module\n", "broken.py:1: raised ModuleNotFoundError"),
    "exit": (b"\nraise SystemExit(0)\n", "broken.py:2: raised SystemExit: 0"),
    "recursion": (b"def f(): f()\nf()\n", "broken.py:1: raised RecursionError"),
    "builder": (
        b"import mc2proof\np = mc2proof.ProtocolBuilder('x').build()\n",
        "broken.py:2: raised ValueError: a protocol needs the parameters ranks and blocks",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_python_file(case: str, fails: Callable, tmp_path: Path) -> None:
    content, message = BROKEN[case]
    (tmp_path / "broken.py").write_bytes(content)
    assert message in fails(2, "prove", "broken.py:p")


def test_python_file_leaves_nothing_behind_and_finds_its_neighbours(run: Callable, protocols: Path) -> None:
    (protocols.parent / "main.py").write_text("from protocols import hand_over as chosen\n")
    finished = run("show", "main.py:chosen", PYTHONDONTWRITEBYTECODE="1")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert sorted(path.name for path in protocols.parent.iterdir()) == ["main.py", "protocols.py"]


def test_a_kernel_gets_no_silent_value(fails: Callable, protocols: Path) -> None:
    assert "error: ranks: no value given" in fails(2, "prove", "protocols.py:hand_over")


INTERNAL = """
import mc2proof.checker.prove
def fail(*arguments, **options):
    raise ZeroDivisionError("of ours")
mc2proof.checker.prove.prove_protocols = fail
protocol = mc2proof.ring_all_to_all()
"""
DISAGREE = INTERNAL.replace(
    'ZeroDivisionError("of ours")', 'mc2proof.EngineDisagreement("z3 and explore disagree", "/x/saved.json")'
)


def test_a_fault_of_ours_is_an_internal_error(run: Callable, fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(INTERNAL)
    error = fails(4, "prove", "fault.py:protocol")
    assert error.startswith("internal error: ZeroDivisionError: of ours")
    assert "MC2PROOF_TRACEBACK=1" in error
    finished = run("prove", "fault.py:protocol", MC2PROOF_TRACEBACK="1")
    assert finished.returncode == 4
    assert "Traceback (most recent call last)" in finished.stderr


def test_engines_that_disagree_name_the_reproducer(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(DISAGREE)
    error = fails(4, "prove", "fault.py:protocol")
    assert error.startswith("internal error: z3 and explore disagree")
    assert "/x/saved.json" in error


def test_unsupported_construct_in_a_source_exits_with_3(fails: Callable, tmp_path: Path) -> None:
    (tmp_path / "unsupported.py").write_text(
        "import mc2proof\ndef p():\n    raise mc2proof.UnsupportedError('teleport')\n"
    )
    assert "unsupported: teleport" in fails(3, "prove", "unsupported.py:p")


def test_the_output_must_not_be_a_source(fails: Callable, tmp_path: Path) -> None:
    """It was overwritten with the report once."""
    (tmp_path / "kernel.h").write_text("// precious\n")
    assert "kernel.h: is read as an input" in fails(2, "prove", "kernel.h", "--output", "kernel.h")
    assert (tmp_path / "kernel.h").read_text() == "// precious\n"
