"""`mc2proof explain`: entries and the list of codes, as text and JSON, and what it refuses."""

import json
from collections.abc import Callable

import pytest

SHOWN = ("overwrite", "id-reserved-elsewhere", "blocks-exceed-cores", "base-misaligned", "relaunch-overwrite")


@pytest.mark.parametrize("code", SHOWN)
def test_entry(code: str, run: Callable, snapshot: Callable) -> None:
    finished = run("explain", code)
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot(f"explain-{code}", finished.stdout)


def test_list_by_property(run: Callable, snapshot: Callable) -> None:
    finished = run("explain")
    assert (finished.returncode, finished.stderr) == (0, "")
    snapshot("explain", finished.stdout)


def test_json_has_every_code_in_the_same_form() -> None:
    from mc2proof.checker.catalogue import CATALOGUE
    from mc2proof.explain import explain_json
    from mc2proof.text import plain

    first = None
    for code, entry in CATALOGUE.items():
        content = json.loads(plain(explain_json(code)))
        first = first or list(content)
        assert list(content) == first
        assert (content["code"], content["property"], content["text"]) == (code, entry.property, entry.text)
        assert content["faulty"]["text"] == entry.example.faulty


def test_json(run: Callable) -> None:
    content = json.loads(run("explain", "id-not-for-users", "--format", "json").stdout)
    assert content["faulty"]["options"] == ["--strict-ids"]
    assert content["mended"]["parameters"] == {"ranks": 2, "blocks": 1}
    listed = json.loads(run("explain", "--format", "json").stdout)
    assert {"code", "property", "severity", "title"} == set(listed["codes"][0])
    assert "id-not-for-users" in {entry["code"] for entry in listed["codes"]}


def test_paragraphs_fit_the_width(run: Callable) -> None:
    from mc2proof.checker.catalogue import CATALOGUE
    from mc2proof.explain import WIDTH, explain_text
    from mc2proof.text import plain

    for code in CATALOGUE:
        assert [row for row in plain(explain_text(code)).splitlines() if len(row) > WIDTH] == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("overwrit", "code: no code 'overwrit'; did you mean overwrite? (mc2proof explain lists them)"),
        ("Counter_Cap", "did you mean counter-cap?"),
        ("???", "code: no code '???' (mc2proof explain lists them)"),
        ("coverage", "code: coverage is a property; its codes are never-delivered, delivered-twice, output-"),
    ],
)
def test_unknown_code(code: str, message: str, fails: Callable) -> None:
    assert message in fails(2, "explain", code)


def test_reports_with_findings_say_how_to_ask(run: Callable) -> None:
    asked = ("--tile-cnt", 17, "--property", "flag-range", "--barrier-all", "vec")
    assert "\nmc2proof explain CODE tells more about a finding\n\n" in run("prove", *asked).stdout
    assert "mc2proof explain" not in run("prove", "--property", "layout").stdout
