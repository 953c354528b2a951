"""The Python face: complete, documented, typed; and what it refuses."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mc2proof
from mc2proof.protocol.errors import ParameterError, SourceError

EXPORTED = [name for name in mc2proof.__all__ if name != "__version__"]
HEAVY = {"z3", "numpy", "hypothesis", "rich", "click", "tree_sitter"}


def exported_callables() -> Iterator[tuple[str, Any]]:
    """Every exported function and class, and the public methods that the class itself defines."""
    for name in EXPORTED:
        value = getattr(mc2proof, name)
        if inspect.isfunction(value):
            yield name, value
        if inspect.isclass(value):
            yield name, value
            for member, method in vars(value).items():
                if not member.startswith("_") and (
                    inspect.isfunction(method) or isinstance(method, property)
                ):
                    yield f"{name}.{member}", method.fget if isinstance(method, property) else method


CALLABLES = dict(exported_callables())


def test_what_checkers_see_is_what_is_exported() -> None:
    tree = ast.parse(Path(mc2proof.__file__).read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If) and isinstance(n.test, ast.Name))
    seen = {
        alias.asname: (statement.module, alias.name)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert sorted(seen) == sorted(EXPORTED)
    for name, (module, original) in seen.items():
        assert name == original
        assert mc2proof._HOME[name] == module
    assert set(mc2proof.__all__) <= set(dir(mc2proof))


def test_what_exported_functions_raise_and_return_is_exported() -> None:
    """A name of ours in an exported signature is itself exported."""
    ours = {"Limits", "Expr", "Operand"} | set(EXPORTED)
    for name in ("load", "plan", "prove"):
        names = set(re.findall(r"\b[A-Z]\w+", str(inspect.signature(getattr(mc2proof, name)))))
        assert names - ours <= {"Source", "Sequence", "Mapping", "Callable", "None", "False"}, name


@pytest.mark.parametrize("name", CALLABLES)
def test_documented(name: str) -> None:
    text = inspect.getdoc(CALLABLES[name]) or ""
    assert text.strip(), f"{name} has no docstring"
    assert not text.startswith(f"{name.split('.')[-1]}("), f"{name} has a generated docstring only"


@pytest.mark.parametrize("name", [n for n, value in CALLABLES.items() if inspect.isfunction(value)])
def test_typed(name: str) -> None:
    signature = inspect.signature(CALLABLES[name])
    for parameter in signature.parameters.values():
        if parameter.name != "self":
            assert parameter.annotation is not inspect.Parameter.empty, f"{name}({parameter.name})"
            assert not re.search(r"\bAny\b", str(parameter.annotation)), f"{name}({parameter.name})"
    assert signature.return_annotation is not inspect.Signature.empty, name
    assert not re.search(r"\bAny\b", str(signature.return_annotation)), name


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'proof'"):
        _ = mc2proof.proof


@pytest.mark.parametrize("module", ["mc2proof", "mc2proof.protocol", "mc2proof.command", "mc2proof.face"])
def test_importing_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(finished.stdout.split())


def test_load_and_prove() -> None:
    [protocol] = mc2proof.load()
    report = mc2proof.prove(protocol, ranks=2, tile_cnt=3, settings={"m": 16}, barrier_all="vec")
    assert report.exit_code() == 0
    assert report.verdict("deadlock-freedom") is mc2proof.Verdict.PROVED
    assert report.parameters["m"] == 16
    assert not any(assumption.warning for assumption in report.assumptions)
    assert mc2proof.prove(tile_cnt=3, properties=["layout"]).results[0].property == "layout"


def test_setup_is_what_was_asked_for() -> None:
    """Each argument reaches the report's ``setup``; a profile that says more keeps what it says."""
    from dataclasses import replace

    from mc2proof.checker.report import RunSetup
    from mc2proof.protocol.profile import ASCEND950

    asked: dict[str, Any] = {
        "launches": 2, "clear_flags": True, "merge_flags": True, "cores": 9, "matmul_objects": 1,
        "faults": ["quiet-timeout"], "strict_ids": True, "barrier_all": "soft",
    }  # fmt: skip
    few: dict[str, Any] = {"ranks": 2, "tile_cnt": 1, "properties": ["layout"]}
    setup = mc2proof.prove(**asked, **few).setup
    assert setup == RunSetup("soft", True, 2, True, True, 9, 1, ["quiet-timeout"])
    assert mc2proof.prove(**few).setup == RunSetup()
    small = replace(ASCEND950, cores=7, flags_merge=True, matmul_objects=3)
    assert mc2proof.prove(profile=small, **few).setup == RunSetup(flags_merge=True, cores=7, matmul_objects=3)
    assert mc2proof.prove(profile=small, matmul_objects=0, **few).setup.matmul_objects == 0


def test_prove_takes_sources(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import mc2proof\nring = mc2proof.ring_all_to_all()\n")
    told: list[str] = []
    report = mc2proof.prove(f"{file}:ring", ranks=2, buffer_size=3, tile_cnt=2, progress=told.append)
    assert report.verdict("no-overwrite-before-read") is mc2proof.Verdict.VIOLATED
    assert any("z3" in doing for doing in told)
    [finding] = next(r for r in report.results if r.property == "no-overwrite-before-read").findings
    assert finding.counterexample is not None
    assert finding.counterexample.trace is not None
    assert mc2proof.replay(finding.counterexample.trace, mc2proof.load(f"{file}:ring")).reproduced


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": "4"}, "ranks = '4': must be an integer"),
        ({"ranks": True}, "ranks = True: must be an integer"),
        ({"settings": {"m": 1.5}}, "m = 1.5: must be an integer"),
        ({"settings": {"m": "15"}}, "m = '15': must be an integer"),
        ({"ranks": 2, "settings": {"ranks": 3}}, "ranks: given twice, as 2 (ranks=) and 3 (settings)"),
        ({"engine": "z-3"}, "no engine 'z-3'; did you mean z3?"),
        ({"profile": "ascend"}, "no profile 'ascend'; did you mean ascend950?"),
        ({"barrier_all": "v"}, "barrier_all: no reading 'v'"),
        ({"properties": ["layuot"]}, "did you mean layout?"),
        ({"launches": 0}, "launches = 0: must be at least 1"),
        ({"launches": True}, "launches = True: must be an integer"),
        ({"launches": 1.5}, "launches = 1.5: must be an integer"),
        ({"cores": -1}, "cores = -1: must be at least 1"),
        ({"matmul_objects": 5}, "matmul_objects = 5: must be from 0 to 4"),
        ({"matmul_objects": "2"}, "matmul_objects = '2': must be an integer"),
        ({"faults": ["quiet-timeot"]}, "fault: no fault 'quiet-timeot'; did you mean quiet-timeout?"),
        ({"max_events": 0}, "max_events = 0: must be at least 1"),
        ({"rlimit": 1 << 32}, "rlimit = 4294967296: must be from 0"),
        ({"tile_cnt": 1, "settings": {"tiles": 3}}, "tiles = 3: no such parameter"),
    ],
)
def test_bad_arguments_are_named_with_their_value(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        mc2proof.prove(**arguments)


def test_load_hands_kernel_sources_to_the_front_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mc2proof.protocol import ascendc

    header, facts = tmp_path / "kernel.h", tmp_path / "facts.toml"
    header.write_text("")
    facts.write_text("")
    given: dict[str, Any] = {}

    def load_sources(paths: list[Path], **options: Any) -> list[mc2proof.Protocol]:
        given.update(options, paths=paths)
        return [mc2proof.ring_all_to_all()]

    monkeypatch.setattr(ascendc, "load_sources", load_sources, raising=False)
    monkeypatch.setattr(ascendc, "load_facts", lambda path: ("facts of", path), raising=False)
    loaded = mc2proof.load(
        str(header),
        entry="main",
        facts=facts,
        defines=["A", "B=2", "C=", "B=3"],
        undefines=["D"],
        include_dirs=[str(tmp_path)],
    )
    assert [protocol.name for protocol in loaded] == ["ring-all-to-all"]
    assert given == {
        "paths": [header],
        "entry": "main",
        "facts": ("facts of", facts),
        "defines": {"A": "1", "B": "3", "C": "", "D": None},
        "include_dirs": [tmp_path],
    }


def test_protocols_and_sources_do_not_mix() -> None:
    with pytest.raises(ParameterError, match="not both"):
        mc2proof.prove([mc2proof.ring_all_to_all(), "kernel.h"])


def test_name_that_is_no_text() -> None:
    with pytest.raises(SourceError, match="not valid UTF-8"):
        mc2proof.load("kernel\udcff.h")


WRONG: list[tuple[str, object, str]] = [
    ("ranks", True, "must be an integer"),
    ("ranks", 4.0, "must be an integer"),
    ("ranks", "4", "must be an integer"),
    ("blocks", (1, 2), "is one number, not an array"),
    ("launches", None, "must be an integer"),
    ("cores", "4", "must be an integer"),
    ("strict_ids", 1, "must be True or False"),
    ("clear_flags", "yes", "must be True or False"),
    ("merge_flags", None, "must be True or False"),
    ("profile", None, "must be one of ascend950"),
    ("barrier_all", 4, "must be one of vec"),
    ("faults", "quiet-timeout", "must be a sequence of names"),
    ("faults", [None], "must be one of quiet-timeout"),
    ("settings", [("m", 2)], "must map names"),
    ("facts", 5, "must be a path"),
    ("progress", 5, "must be a function"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG, ids=str)
def test_arguments_of_the_wrong_type(name: str, value: object, message: str) -> None:
    shape: dict[str, object] = {"shape": (2048, 8192, 3584), "ranks": 4, "facts": None}
    for asked in (mc2proof.plan, mc2proof.prove):
        with pytest.raises(mc2proof.ParameterError, match=message) as raised:
            asked(**(shape | {name: value}))  # type: ignore[operator]
        assert raised.value.name.startswith(name.removesuffix("s"))


@pytest.mark.parametrize("shape", ["2048,8192,64", (1, 2), (1.0, 2, 3), (True, 2, 3), 5, None])
def test_what_is_no_shape(shape: object) -> None:
    with pytest.raises(mc2proof.ParameterError, match="must be three integers"):
        mc2proof.plan(shape, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [("cross_check", 1), ("properties", "layout"), ("engine", None), ("max_events", True), ("rlimit", "1")],
)
def test_arguments_of_a_proof_of_the_wrong_type(name: str, value: object) -> None:
    with pytest.raises(mc2proof.ParameterError, match=f"{name} = .*: must be"):
        mc2proof.prove(tile_cnt=1, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("protocols", [5, [5], b"a.h", None])
def test_what_is_no_protocol(protocols: object) -> None:
    with pytest.raises(mc2proof.ParameterError, match="must be"):
        mc2proof.prove(protocols)  # type: ignore[arg-type]
