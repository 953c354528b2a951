"""The shipped host rules against the host program that they were read from, and shapes of the kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mc2proof
from mc2proof.checker.report import Verdict
from mc2proof.protocol.ascendc import reference_facts
from mc2proof.protocol.ascendc.host import host_rules
from mc2proof.protocol.errors import ParameterError


@pytest.fixture(scope="module")
def host(kernels: Path) -> str:
    """The host program, without comments."""
    facts = reference_facts()
    assert facts.host is not None
    text = (kernels / "all_to_all_matmul" / facts.host.source).read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def test_the_values_are_computed_there_in_these_types(host: str) -> None:
    facts = reference_facts()
    assert facts.host is not None
    written = {"K": "k", "M": "m", "ranks": "rankNum"}
    for value in facts.host.values:
        text = re.sub(r"\w+", lambda match: written.get(match[0], match[0]), value.value)
        assert f"{value.type} {value.name} = {text};" in host, value.name


def test_what_the_kernel_is_given(host: str) -> None:
    assert "commTilingData.tileCnt = tileCnt;" in host
    assert "commTilingData.bufferSize = 4;" in host
    assert re.search(r"GetTilingData\(headMSize, n, ka,", host)  # m, n, k of a tile
    assert "SHMEM_SPACE_SIZE = 1024UL * 1024UL * 1024UL;" in host
    assert "PACKAGE_SIZE = 512UL;" in host
    for size in ("hostA(m * k, 0)", "hostB(k * n, 0)", "hostOutput(m * n, 0)"):  # of ints, unchecked
        assert size in host
    assert "usedCoreNum, nullptr, stream>>>" in host  # how many blocks, is the tiling's answer
    assert "hostScaleA(m * CeilDiv(k, 64) * 2, 0)" in host


def test_every_rejection_of_the_host_is_one_of_ours(host: str) -> None:
    conditions = re.findall(r"if \((.+)\) \{\s*throw std::invalid_argument\(\"ERROR: (.+)\"\)", host)
    of_shapes = [text for _, text in conditions if "mode" not in text and "Arguments" not in text]
    assert len(of_shapes) == 3  # positive, divisible, even
    rules = host_rules(reference_facts())
    for shape, ranks in (((0, 8192, 64), 4), ((512, 8190, 64), 4), ((100, 200, 64), 4)):
        with pytest.raises(ParameterError):
            rules.geometry(shape, ranks)


@pytest.mark.parametrize(
    ("shape", "violated"),
    [
        ((2048, 8192, 3584), set()),
        ((2100, 8192, 3584), {"coverage", "no-read-before-write"}),
        ((512, 384, 64), {"layout"}),
    ],
)
def test_shapes_of_the_kernel(reference: list[Path], shape: tuple[int, int, int], violated: set[str]) -> None:
    report = mc2proof.prove(reference, shape=shape, ranks=4)
    assert {r.property for r in report.results if r.verdict is Verdict.VIOLATED} == violated
    files = {Path(f.file).suffix for r in report.results for f in r.findings if f.severity.value == "error"}
    assert files <= {".h"}


def test_the_plan_of_the_kernel_is_that_of_the_builtin(reference: list[Path]) -> None:
    ours, theirs = mc2proof.plan((2100, 8192, 3584), 4), mc2proof.plan((2100, 8192, 3584), 4, reference)
    assert theirs.subject.count("AllToAllQuantMatmulKernel") == 4
    assert theirs.heap == ours.heap
    assert theirs.reach == ours.reach
    assert [(x.code, x.condition) for x in theirs.limits] == [(x.code, x.condition) for x in ours.limits]
    assert [(f.code, f.message) for f in theirs.findings] == [(f.code, f.message) for f in ours.findings]
    assert {(p.name, p.value) for p in theirs.parameters} == {(p.name, p.value) for p in ours.parameters}
