"""The catalogue of findings: every code is in it, and every example shows what it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mc2proof
from mc2proof import checker
from mc2proof.checker.catalogue import CATALOGUE, VOCABULARY, severity_of, source_of
from mc2proof.checker.catalogue_entry import Entry, Example, Run
from mc2proof.checker.properties import PROPERTIES
from mc2proof.checker.prove import ENGINES
from mc2proof.checker.report import Finding, Report, Severity, Verdict
from mc2proof.protocol.profile import PROFILES
from mc2proof.protocol.setup import Injected

KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;

__global__ __aicore__ __mix__(1, 1) void Example(
    GM_ADDR heap, GM_ADDR input, GM_ADDR other, GM_ADDR scratch, GM_ADDR result, uint32_t n)
{
  const int rank = aclshmem_my_pe();
  const int ranks = aclshmem_n_pes();
  const int peer = 1 - rank;
  const int block = GetBlockIdx();
  const int blocks = GetBlockNum();
  __ubuf__ uint8_t *ub = nullptr;
%s
}
"""
REGIONS = {
    "heap": '[regions.heap]\nname = "heap"\nkind = "shared"\nbytes = "1 << 30"\nalignment = 512\n',
    "input": '[regions.input]\nname = "input"\nkind = "input"\nbytes = "1 << 30"\n',
    "other": '[regions.other]\nname = "other"\nkind = "input"\nbytes = "1 << 30"\n',
    "scratch": '[regions.scratch]\nname = "scratch"\nkind = "private"\nbytes = "n * 64"\n',
    "result": '[regions.result]\nname = "result"\nkind = "output"\nbytes = "n * 64"\ncovered = true\n',
}
CONTRACTS = """
[contracts.ReadTile]
name = "read"
parameters = ["place", "size", "rank", "origin"]
segments = "1"
[[contracts.ReadTile.reads]]
address = "place"
bytes = "size"
origin_rank = "rank"
origin_address = "origin"

[contracts.WriteTile]
name = "write"
parameters = ["place", "size"]
segments = "0"
[[contracts.WriteTile.writes]]
address = "place"
bytes = "size"

[contracts.StoreTile]
name = "store"
parameters = ["place", "size"]
segments = "0"
write_pipe = "MTE3"
[[contracts.StoreTile.writes]]
address = "place"
bytes = "size"
"""
USES_HEAP = """
if ASCEND_IS_AIV {
  aclshmemx_udma_put_nbi(heap, input, ub, 64, peer);
  aclshmemx_udma_quiet(peer);
}
"""
Prove = Callable[[Example, str, Run], Report]


@pytest.fixture
def prove(tmp_path: Path) -> Prove:
    """Proves a text of an example in the frame that all of them share."""

    def proved(example: Example, text: str, run: Run) -> Report:
        body = USES_HEAP if example.in_facts else text
        regions = {name: fact for name, fact in REGIONS.items() if re.search(rf"\b{name}\b", body)}
        if example.in_facts:
            regions["heap"] = text
        kernel, facts = tmp_path / "example.h", tmp_path / "facts.toml"
        kernel.write_text(KERNEL % body)
        facts.write_text("\n".join(regions.values()) + CONTRACTS)
        loaded = mc2proof.load(kernel, facts=facts)
        options = {"barrier_all": "vec", **run.options}
        return mc2proof.prove(loaded, settings=run.parameters, **options)  # type: ignore[arg-type]

    return proved


def findings(report: Report, name: str) -> list[Finding]:
    return [finding for row in report.results if row.property == name for finding in row.findings]


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_faulty_example_has_the_finding(code: str, prove: Prove) -> None:
    entry = CATALOGUE[code]
    report = prove(entry.example, entry.example.faulty, entry.example.at)
    [*found] = [f for f in findings(report, entry.property) if f.code == code]
    assert found, [
        (row.property, row.verdict.value, [f.code for f in row.findings]) for row in report.results
    ]
    strict = bool(entry.example.at.options.get("strict_ids"))
    assert {f.severity for f in found} == {severity_of(code, strict_ids=strict)}
    assert {f.source_doc for f in found} == {source_of(code)}


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_mended_example_is_free_of_findings(code: str, prove: Prove) -> None:
    example = CATALOGUE[code].example
    report = prove(example, example.mended, example.mended_at)
    assert [(row.property, f.code, f.message) for row in report.results for f in row.findings] == []
    for row in report.results:
        # what forwarded bytes must be is not judged: a put whose source is no input has no origin
        forwards = row.verdict is Verdict.UNSUPPORTED and "forwards bytes" in (row.reason or "")
        expected = row.verdict in (Verdict.PROVED, Verdict.VACUOUS) or (forwards and code in FORWARDING)
        assert expected, (row.property, row.verdict, row.reason)


FORWARDING = {"source-overwritten", "relaunch-source-overwritten"}
"""Codes whose examples send on what is no input, so that rows about data are not decided."""


# --- the table ----------------------------------------------------------------------------------


def test_every_entry_is_complete() -> None:
    order = list(PROPERTIES)
    for code, entry in CATALOGUE.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
        assert entry.code == code
        assert entry.property in PROPERTIES, code
        for text in (entry.title, entry.source_doc, entry.text, entry.example.faulty, entry.example.mended):
            assert text.strip() == text != "", code
        assert "\n" not in entry.text, code
        assert entry.text.endswith("."), code
        assert not entry.title.endswith("."), code
        differs = entry.example.faulty != entry.example.mended or entry.example.at != entry.example.mended_at
        assert differs, code
    places = [order.index(entry.property) for entry in CATALOGUE.values()]
    assert places == sorted(places), "the order is that of the properties"
    assert {entry.property for entry in CATALOGUE.values()} == set(PROPERTIES)


def test_every_code_is_in_one_table_only() -> None:
    from mc2proof.checker import catalogue

    tables = [
        getattr(module, name)
        for module in vars(catalogue).values()
        if getattr(module, "__name__", "").startswith(f"{checker.__name__}.catalogue_")
        for name in vars(module)
        if name == "ENTRIES" or (name.isupper() and not hasattr(module, "ENTRIES"))
    ]
    codes = [e.code for table in tables if isinstance(table, tuple) for e in table if isinstance(e, Entry)]
    assert sorted(codes) == sorted(CATALOGUE)


def test_questions_about_a_code() -> None:
    assert source_of("counter-cap") == "asc-devkit: CrossCoreSetFlag"
    assert severity_of("counter-cap") is severity_of("counter-cap", strict_ids=True) is Severity.ERROR
    assert severity_of("event-id-of-system") is Severity.WARNING
    assert severity_of("event-id-of-system", strict_ids=True) is Severity.ERROR
    with pytest.raises(KeyError):
        source_of("no-such-code")


# --- the codes of the sources -------------------------------------------------------------------


def codes_in_the_sources() -> Iterator[tuple[str, str]]:
    """Words with a hyphen that `checker` uses as values, with the file; the catalogue's apart."""
    for path in sorted(Path(checker.__file__).parent.glob("*.py")):
        if path.name.startswith("catalogue"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        others = {id(node) for part in ast.walk(tree) if is_prose(part) for node in ast.walk(part)}
        for node in ast.walk(tree):
            value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and id(node) not in others and re.fullmatch(r"[a-z]+(-[a-z]+)+", value):
                yield value, path.name


def is_prose(node: ast.AST) -> bool:
    """Whether words with a hyphen below ``node`` are no codes of findings."""
    calls = {"AssumptionNote", "LimitError", "ParameterError"}
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Call) and getattr(node.func, "id", "") in calls
    )


NO_CODES = {
    "set-alone",  # a case of set-without-wait that has its own words
    "host-rules",  # of `mc2proof plan`: a value that the host program makes no kernel of
}


def test_every_code_that_the_checker_uses_is_in_the_catalogue() -> None:
    known = {*CATALOGUE, *PROPERTIES, *ENGINES, *PROFILES, *NO_CODES, *(f.value for f in Injected)}
    found = list(codes_in_the_sources())
    assert [where for where in found if where[0] not in known] == []
    assert len({code for code, _ in found} & set(CATALOGUE)) > 20  # the search does find codes


def test_examples_use_only_names_that_are_explained() -> None:
    spoken = {name.partition("(")[0] for name in VOCABULARY}
    declared = set(re.findall(r"\b(\w+) =", KERNEL)) | set(REGIONS) | {"n"}
    contracts = set(re.findall(r"\[contracts\.(\w+)\]", CONTRACTS))
    assert spoken == declared | contracts
