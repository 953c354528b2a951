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
    assert finished.stdout == "largest safe: tile_cnt 16, buffer_size 64; written to plan.json\n"
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [e.message for e in validator.iter_errors(plan)] == []
    assert (plan["dropped_rows"], plan["heap"]["used"]) == (52, 17_301_504)
    assert not validator.is_valid(plan | {"heap": None})


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
