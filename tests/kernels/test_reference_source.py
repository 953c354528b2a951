"""The reference kernel as the front end reads it: entries, parameters, operations in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from mc2proof.protocol.ascendc import load_sources, reference_facts
from mc2proof.protocol.errors import SourceError, UnsupportedError
from mc2proof.protocol.program import Compute, For, Put, Role, Statement, statements

ENTRIES = [f"AllToAllQuantMatmulKernel{a}{b}" for a, b in
           (("E4M3", "E4M3"), ("E5M2", "E5M2"), ("E4M3", "E5M2"), ("E5M2", "E4M3"))]  # fmt: skip


def outline(block: tuple[Statement, ...]) -> list[str]:
    return [type(s).__name__ for s in statements(block)]


def test_all_entries_are_found_and_equal(reference: list[Path]) -> None:
    protocols = load_sources(reference, facts=reference_facts())
    assert [p.name for p in protocols] == ENTRIES
    assert len({p.digest() for p in protocols}) == 1
    assert protocols[0].files == tuple(map(str, reference))
    assert protocols[0].vectors_per_cube == 1


def test_the_main_header_alone_finds_the_other(reference: list[Path]) -> None:
    both = load_sources(reference, facts=reference_facts(), entry=ENTRIES[0])
    alone = load_sources(reference[1:], facts=reference_facts(), entry=ENTRIES[0])
    assert alone[0].digest() == both[0].digest()
    assert alone[0].files == (str(reference[1]), str(reference[0]))


def test_parameters_and_regions(reference: list[Path]) -> None:
    protocol = load_sources(reference, facts=reference_facts())[0]
    assert [(p.name, str(p.default)) for p in protocol.parameters] == [
        ("ranks", "None"), ("blocks", "None"), ("buffer_size", "None"), ("tile_cnt", "None"),
        ("k", "2048"), ("m", "512"), ("n", "3584"), ("rows", "tile_cnt * m"),
    ]  # fmt: skip
    assert [(r.name, r.kind.name, str(r.bytes)) for r in protocol.regions] == [
        ("heap", "SHARED", "1073741824"),
        ("a", "INPUT", "ranks * rows * k"),
        ("scale_a", "INPUT", "rows * (ceil_div(ranks * k, 64) * 2)"),
        ("b", "INPUT", "None"),
        ("scale_b", "INPUT", "None"),
        ("c", "OUTPUT", "rows * n * 2"),
    ]


def test_operations_in_order(reference: list[Path]) -> None:
    protocol = load_sources(reference, facts=reference_facts())[0]
    assert outline(protocol.programs[Role.AIV]) == [
        "If", "Put", "For", "If", "WaitFlag", "Barrier", "If", "Put", "Quiet", "Barrier", "SetFlag",
    ]  # fmt: skip
    assert outline(protocol.programs[Role.AIC]) == ["For", "WaitFlag", "Compute", "If", "SetFlag"]


def test_expressions_read_as_in_the_source(reference: list[Path]) -> None:
    protocol = load_sources(reference, facts=reference_facts())[0]
    scale, _, data = (s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, Put | For))
    assert isinstance(scale, Put)
    assert isinstance(data, Put)
    assert str(scale.peer) == "block"
    assert str(scale.source) == "scale_a + block * (tile_cnt * m) * (ceil_div(k, 64) * 2)"
    assert str(data.target) == "heap + (mLoopIdx & (buffer_size - 1)) * (ranks * m * k) + rank * m * k"
    assert str(data.source) == "a + block * (tile_cnt * m) * k + mLoopIdx * m * k"
    assert str(data.bytes) == "m * k"


def test_the_base_address_survives_the_cast(reference: list[Path]) -> None:
    """Without it the scale would land at the heap's first byte, over the ring."""
    protocol = load_sources(reference, facts=reference_facts())[0]
    scale = next(s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, Put))
    assert str(scale.target).startswith("heap + buffer_size * (ranks * m * k) + rank * ")
    compute = next(s for s in statements(protocol.programs[Role.AIC]) if isinstance(s, Compute))
    assert str(compute.reads[1].address).startswith("heap + buffer_size * (ranks * m * k) + ")


def test_spans_point_at_the_calls(reference: list[Path]) -> None:
    protocol = load_sources(reference, facts=reference_facts())[0]
    texts = {str(path): path.read_text().splitlines() for path in reference}
    for role, program in protocol.programs.items():
        for statement in statements(program):
            line = texts[statement.span.file][statement.span.line - 1][statement.span.column - 1 :]
            assert line.startswith(("for", "if", "CrossCore", "aclshmem", "quantMatmulKernelImpl_(")), (
                role,
                line,
            )
            assert all(call.line for call in statement.span.calls)
    data = [s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, Put)][1]
    assert [texts[c.file][c.line - 1][c.column - 1 :].split("(")[0] for c in data.span.calls] == [
        "impl.Process", "AllToAllProcess", "allToAllComm_.PutToAllRanks", "PutSegmentToRank",
    ]  # fmt: skip


def test_facts_that_are_missing_are_refused_by_name(reference: list[Path]) -> None:
    kernel = r"\.h:\d+: unsupported: an object of type QuantMatmulMxKernelSwat"
    with pytest.raises(UnsupportedError, match=kernel):
        load_sources(reference)


def test_a_missing_brace(reference: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.h"
    text = reference[1].read_text()
    marker = "void AllToAllQuantMatmulImpl<AType, BType, CType, TransA, TransB>::AllToAllProcess()"
    start = text.index(marker)
    end = text.index("\n}\n", start)
    broken.write_text(text[:end] + "\n" + text[end + 3 :])
    with pytest.raises(SourceError, match=r"broken\.h:\d+: syntax error"):
        load_sources([reference[0], broken], facts=reference_facts())
