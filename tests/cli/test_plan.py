"""`mc2proof plan` and `prove --shape`, as a user runs them."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

PLANS = {
    "usual": (2048, 8192, 3584, 4),
    "dropped-rows": (2100, 8192, 3584, 4),
    "flag-ids": (16384, 8192, 3584, 4),
    "small-scale": (512, 384, 64, 4),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan(name: str, run: Callable, snapshot: Callable) -> None:
    finished = run("plan", *PLANS[name])
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot(f"plan-{name}", finished.stdout)


def test_a_shape_that_the_host_rejects(fails: Callable) -> None:
    error = fails(2, "plan", 100, 200, 64, 4)
    assert "the host program (src/all_to_all_matmul.cpp) rejects it" in error
    assert "ceil(50/64) is odd" in error


def test_what_the_readme_shows(run: Callable) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.split("mc2proof plan 2100 8192 3584 4\n")[1].split("```")[0].splitlines()
    printed = run("plan", 2100, 8192, 3584, 4).stdout
    assert [line for line in shown if line != "…" and line not in printed] == []


def test_help(run: Callable, snapshot: Callable) -> None:
    finished = run("plan", "--help", COLUMNS="100")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("help-plan", finished.stdout)


def test_json_follows_the_schema(run: Callable, tmp_path: Path) -> None:
    schema = json.loads((files("mc2proof") / "plan_schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    finished = run("plan", *PLANS["dropped-rows"], "--format", "json", "--output", "plan.json")
    assert finished.returncode == 0
    assert (
        finished.stdout
        == "largest safe: tile_cnt 16, buffer_size none of those judged; written to plan.json\n"
    )
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [e.message for e in validator.iter_errors(plan)] == []
    assert (plan["dropped_rows"], plan["heap"]["used"]) == (52, 17_301_504)
    assert not validator.is_valid(plan | {"heap": None})


def test_a_shape_that_is_not_judged(run: Callable) -> None:
    printed = run("plan", 512 * 200, 8192, 64, 64).stdout
    found = printed.split("findings at this shape\n")[1].split("\n\n")[0]
    assert found.startswith("  the planned shape is not judged: a predicted size of ")
    assert "addressed  not known" in printed
    assert "largest safe tile_cnt     not known  tile_cnt 1: a predicted size of " in printed


def test_a_depth_by_name(run: Callable) -> None:
    depths = [
        json.loads(run("plan", *PLANS["usual"], *given, "--format", "json").stdout)["parameters"]
        for given in (("--set", "buffer_size=2"), ("--buffer-size", 2))
    ]
    assert depths[0] == depths[1]


def test_facts_for_the_rules_alone(run: Callable, tmp_path: Path) -> None:
    """A protocol without kernel sources takes facts for its shape."""
    (tmp_path / "facts.toml").write_bytes(
        (files("mc2proof.protocol.ascendc") / "reference_facts.toml").read_bytes()
    )
    finished = run("plan", *PLANS["usual"], "--facts", "facts.toml")
    assert "facts.toml, of src/all_to_all_matmul.cpp" in finished.stdout
    finished = run("prove", "--shape", "512,8192,64", "--facts", "facts.toml")
    assert finished.returncode == 0


def test_three_dots_where_there_is_no_ellipsis(run: Callable) -> None:
    printed = run("plan", 2048, 8192, 3584, 2, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").stdout
    assert "buffer_size = 1, 2, 4, 8, 12, 16, 20, 32, ... (others not tried)" in printed


def test_a_result_never_replaces_what_was_read(fails: Callable, protocols: Path, tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    inner = "#pragma once\n__global__ __aicore__ __mix__(1, 1) void Entry(GM_ADDR a) {}\n"
    (tmp_path / "inner.h").write_text(inner)
    (tmp_path / "facts.toml").write_text("")
    (tmp_path / "link.h").symlink_to("inner.h")
    (tmp_path / "module.py").write_text("from protocols import hand_over\n")
    header = ("prove", "outer.h", "--ranks", 2)
    refused = (
        (*header, "--output", "inner.h"),
        (*header, "--output", "link.h"),
        (*header, "--facts", "facts.toml", "--output", tmp_path / "facts.toml"),
        ("prove", "protocols.py:hand_over", "--output", "protocols.py"),
        ("prove", "module.py:hand_over", "--output", "protocols.py"),
        ("plan", *PLANS["usual"], "protocols.py:hand_over", "--output", "./protocols.py"),
    )
    for arguments in refused:
        assert "is read as an input" in fails(2, *arguments), arguments
    assert (tmp_path / "inner.h").read_text() == inner


def test_protocols_that_are_made_for_different_runs(fails: Callable, tmp_path: Path) -> None:
    text = (
        "from dataclasses import replace\nimport mc2proof\nring = mc2proof.ring_all_to_all()\n"
        "def of(n):\n    ps = [replace(p, default=n) if p.name == 'ranks' else p for p in ring.parameters]\n"
        "    return replace(ring, name=f'ring-{n}', parameters=tuple(ps))\ntwo, four = of(2), of(4)\n"
    )
    (tmp_path / "rings.py").write_text(text)
    both = ("prove", "rings.py:two", "rings.py:four")
    assert "ranks: is 2 for ring-2 and 4 for ring-4: give one value" in fails(2, *both)
    shaped = fails(2, *both, "--shape", "512,8192,64")
    assert "ranks: the defaults differ (ring-2 2, ring-4 4): give one value (--ranks N)" in shaped


def test_options_of_the_hardware(run: Callable) -> None:
    asked = ("--strict-ids", "--barrier-all", "vec", "--format", "json", "--buffer-size", 2, "--blocks", 4)
    plan = json.loads(run("plan", *PLANS["usual"], *asked).stdout)
    assert {r["parameter"]: r["largest"] for r in plan["reach"]}["tile_cnt"] == 11
    assert [p["name"] for p in plan["parameters"] if not p["host"]] == ["ranks", "blocks", "buffer_size"]
    assert not any(a["warning"] for a in plan["assumptions"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2048, 8192, 3584), "Missing argument"),
        ((2048, 8192, 3584, "four"), "'four' is not a valid integer"),
        ((2048, 8192, 3584, 0), "ranks = 0: must be at least 1"),
        ((-1, 8192, 3584, 4), "numbers that stand alone must be positive"),
        ((1 << 18, 8192, 64, 4), "cannot compute it on 4 ranks: the size of A, 262144 * 8192, overflows"),
        ((*PLANS["usual"], "--set", "m=256"), "m = 256: the host program computes it"),
        ((*PLANS["usual"], "--set", "rank=2"), "rank = 2: no such parameter of ring-all-to-all"),
        ((*PLANS["usual"], "--set", "blocks=1,2"), "blocks = 1,2: is one number, not an array"),
        ((*PLANS["usual"], "--output", ""), "--output: cannot be written: the name of the file is empty"),
        ((1 << 31, 8192, 3584, 4), "must fit an int"),
        ((*PLANS["usual"], "--buffer-size", 0), "buffer_size = 0: must be at least 1"),
        ((*PLANS["usual"], "--profile", "ascend"), "profile"),
        ((*PLANS["usual"], "protocols.py:hand_over"), "its host rules are not those of hand-over"),
        (
            (*PLANS["usual"], "protocols.py:hand_over", "protocols.py:missing_set"),
            "a plan is of one program, and these differ: hand-over, missing-set",
        ),
    ],
)
def test_what_a_plan_refuses(
    arguments: tuple[object, ...], message: str, fails: Callable, protocols: Path
) -> None:
    assert message in fails(2, "plan", *arguments)


# --- prove --shape ------------------------------------------------------------------------------


def verdicts(report: str) -> dict[str, str]:
    return {row["property"]: row["verdict"] for row in json.loads(report)["results"]}


@pytest.mark.parametrize(
    ("shape", "violated"),
    [
        ("2048,8192,3584", set()),
        ("2100,8192,3584", {"coverage", "no-read-before-write"}),
        ("512,384,64", {"layout"}),
        ("9216, 8192, 3584", {"flag-range"}),
    ],
)
def test_prove_a_shape(shape: str, violated: set[str], run: Callable) -> None:
    finished = run("prove", "--shape", shape, "--format", "json")
    found = {name for name, verdict in verdicts(finished.stdout).items() if verdict == "VIOLATED"}
    assert found == violated
    assert finished.returncode == (1 if violated else 0)
    codes = [a["code"] for a in json.loads(finished.stdout)["assumptions"]]
    assert "host-rules" in codes
    assert ("rows-dropped" in codes) == (shape == "2100,8192,3584")


def test_a_depth_that_is_given_replaces_the_hosts(run: Callable) -> None:
    finished = run("prove", "--shape", "2048,8192,3584", "--buffer-size", 3, "--format", "json")
    report = json.loads(finished.stdout)
    assert report["parameters"]["buffer_size"] == 3
    assert verdicts(finished.stdout)["no-overwrite-before-read"] == "VIOLATED"
    # what is computed from the tiles follows them to the smallest failing case
    (example,) = [
        f["counterexample"] for r in report["results"] for f in r["findings"] if f["counterexample"]
    ]
    values = example["parameters"]
    assert values["rows"] == values["tile_cnt"] * values["m"] < report["parameters"]["rows"]


def test_the_replay_of_a_shape(run: Callable) -> None:
    asked = ("--property", "no-read-before-write", "--format", "json")
    report = json.loads(run("prove", "--shape", "1600,8192,3584", *asked).stdout)
    traces = [f["counterexample"]["trace"] for r in report["results"] for f in r["findings"]]
    assert len(traces) == 2
    for trace in traces:
        assert run("replay", trace).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shape", "100,200,64"), "ceil(50/64) is odd"),
        (("--shape", "2048,8190,3584"), "K = 8190 is not divisible by 4 ranks"),
        (("--shape", "2048,8192"), "'2048,8192' is not of the form M,K,N"),
        (("--shape", "2048,8192,x"), "is not of the form M,K,N"),
        (("--shape", "2048,8192,3584", "--tile-cnt", 4), "tile_cnt = 4: the host program computes it"),
        (("--shape", "2048,8192,3584", "--set", "m=256"), "m = 256: the host program computes it"),
        (("--shape", "2048,8192,3584", "--set", "rows=9"), "rows = 9: the host program computes it"),
        (("--shape", f"{'1' * 5000},8192,64"), "11...' is not of the form M,K,N, three whole numbers"),
        (("--shape", "٣,8192,64"), "is not of the form M,K,N"),
        (("--shape", "512,8192,64", "--set", "ranks=2,4"), "ranks = 2,4: is one number, not an array"),
        (
            ("protocols.py:hand_over", "--shape", "2048,8192,3584"),
            "its host rules are not those of hand-over",
        ),
    ],
)
def test_what_a_shape_refuses(
    arguments: tuple[object, ...], message: str, fails: Callable, protocols: Path
) -> None:
    assert message in fails(2, "prove", *arguments)


def test_facts_without_a_host(fails: Callable, tmp_path: Path) -> None:
    header = Path(__file__).with_name("handover.h").read_text(encoding="utf-8")
    (tmp_path / "handover.h").write_text(header, encoding="utf-8")
    (tmp_path / "facts.toml").write_text("[sizes]\nfp8_t = 1\n")
    asked = ("handover.h", "-U", "SKIP_FIRST", "--facts", "facts.toml")
    expected = "facts.toml: has no [host] table"
    assert expected in fails(2, "plan", *PLANS["usual"], *asked)
    assert expected in fails(2, "prove", *asked, "--ranks", 2, "--shape", "2048,8192,3584")
