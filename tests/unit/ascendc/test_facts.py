"""Facts files, and what the protocol says of them: parameters, regions, contracts, assumptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mc2proof.protocol.ascendc import load_facts, reference_facts
from mc2proof.protocol.ascendc.facts import parse_facts
from mc2proof.protocol.ascendc.naming import snake_case
from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.errors import SourceError, UnsupportedError
from mc2proof.protocol.program import Compute, Pipe, Protocol, RegionKind, Role

LoadText = Callable[..., Protocol]
Lower = Callable[..., list[str]]

HEAD = "[[bisheng::core_ratio(1, 1)]] __global__ void k(GM_ADDR heap, GM_ADDR in, GM_ADDR out, Tiling t) {\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes = 3", r"facts\.toml: Expected `object`, got `int` - at `\$\.sizes`"),
        ("[size]\na = 1", r"facts\.toml: Object contains unknown field `size`"),
        ("[constants.A]\ntype = 'int'", r"facts\.toml: Object missing required field `value`"),
        ("[regions.a]\nname = 'a'\nkind = 'heap'", r"regions\.a: kind heap is none of shared, input, output"),
        ("[constants.A]\ntype = 'word'\nvalue = 1", r"constants\.A: no integer type word"),
        ("[sizes]\na = 0", r"sizes\.a: 0 is no size"),
        ("[fields]\na = 3", r"facts\.toml: "),
        ("[fields", r"facts\.toml: Expected '\]'"),
    ],
)
def test_what_is_wrong_with_a_facts_file(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_facts(text, "facts.toml")


def test_facts_from_a_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.toml: No such file"):
        load_facts(tmp_path / "none.toml")
    (tmp_path / "f.toml").write_text("[sizes]\nfp8_t = 1\n")
    assert load_facts(tmp_path / "f.toml").sizes == {"fp8_t": 1}
    (tmp_path / "f.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SourceError, match=r"f\.toml: not UTF-8 text"):
        load_facts(tmp_path / "f.toml")


def test_the_shipped_facts_can_be_read() -> None:
    assert "QuantMatmulMxKernelSwat" in reference_facts().contracts


def test_the_longest_path_ending_decides() -> None:
    facts = parse_facts("[fields.m]\nvalue = 1\n[fields.'tile.m']\nvalue = 2", "f")
    assert [facts.field(p) for p in ("t.tile.m", "t.other.m", "t.xtile.m", "t.n")] == [
        ("tile.m", facts.fields["tile.m"]),
        ("m", facts.fields["m"]),
        ("m", facts.fields["m"]),
        None,
    ]


@pytest.mark.parametrize(
    ("name", "snake"),
    [("tileCnt", "tile_cnt"), ("bufferSize", "buffer_size"), ("m", "m"), ("axisM_", "axis_m"),
     ("scaleKL1", "scale_kl1"), ("nBufferNum", "n_buffer_num"), ("UBSize", "ub_size"), ("k_", "k")],
)  # fmt: skip
def test_parameter_names(name: str, snake: str) -> None:
    assert snake_case(name) == snake


FACTS = """
plain_types = ["Gemm", "Params"]
[sizes]
fp8_t = 1
[constants]
GROUP = { type = "uint64_t", value = 64 }
UNUSED = { type = "uint64_t", value = 1 }
[functions.CeilDiv]
parameters = ["uint64_t a", "uint64_t b"]
result = "uint64_t"
value = "ceil_div(a, b)"
[fields."tile.m"]
type = "uint16_t"
value = 512
low = 1
meaning = "rows"
[fields.tileCnt]
type = "uint32_t"
[regions.heap]
name = "ring"
kind = "shared"
bytes = "ranks * 1024"
alignment = 512
[regions.in]
name = "a"
kind = "input"
bytes = "tile_cnt * m * 2"
[contracts.Gemm]
name = "gemm"
parameters = ["p", "count"]
segments = "count"
read_pipe = "MTE2"
write_pipe = "FIX"
[[contracts.Gemm.reads]]
address = "p.from + s * 4"
bytes = "CeilDiv(p.rows, 3)"
guard = "s != rank"
origin_rank = "s"
origin_address = "p.source + rank"
[[contracts.Gemm.writes]]
address = "p.to"
bytes = "p.rows * 2"
"""


def test_parameters_come_from_fields_and_arguments(load_text: LoadText) -> None:
    text = (
        HEAD.replace("Tiling t", "Tiling t, uint32_t rounds, int64_t unused")
        + "CrossCoreSetFlag<2, PIPE_V>(t.tile.m + t.comm.tileCnt + rounds + t.x.depth + t.list[2]);\n}\n"
    )
    protocol = load_text(text, FACTS)
    found = [(p.name, p.type, p.default, p.low, p.from_facts) for p in protocol.parameters]
    assert found == [
        ("ranks", CType.I32, None, 1, False),
        ("blocks", CType.I64, None, 1, False),
        ("tile_cnt", CType.U32, None, 0, False),
        ("depth", CType.U32, None, 0, False),
        ("list_2", CType.U32, None, 0, False),
        ("m", CType.U16, 512, 1, True),
        ("rounds", CType.U32, None, 0, False),
    ]
    texts = [(a.code, a.text) for a in protocol.assumptions]
    assert ("field-type", "t.x.depth is taken to be a uint32_t") in texts
    assert ("fact", "facts.toml: m (t.tile.m) is 512 unless it is given") in texts
    assert not any("UNUSED" in text or "GROUP" in text for _, text in texts)


def test_fields_that_reach_nothing_are_no_parameters(load_text: LoadText) -> None:
    text = (
        HEAD + "uint32_t x = t.a * 2; if (t.b) { x = 3; } for (uint32_t i = 0; i < t.c; ++i) { x += i; }\n}\n"
    )
    assert [p.name for p in load_text(text, "").parameters] == ["ranks", "blocks"]


def test_two_fields_of_one_name(load_text: LoadText) -> None:
    def text(other: str) -> str:
        return HEAD + f"CrossCoreSetFlag<2, PIPE_V>(t.a.tileCnt + {other});\n" + "}\n"

    with pytest.raises(SourceError, match=r"tile_cnt: t\.a\.tileCnt and t\.b\.tile_cnt"):
        load_text(text("t.b.tile_cnt"), "")
    protocol = load_text(text("0 * t.b.tile_cnt"), "")  # only one of them matters
    assert protocol.parameter("tile_cnt") is not None


def test_regions(load_text: LoadText) -> None:
    text = HEAD + "aclshmemx_udma_put_nbi(out, in, (__ubuf__ uint8_t*)nullptr, 4, 1);\n}\n"
    protocol = load_text(text, FACTS)
    found = [(r.name, r.kind, str(r.bytes), r.alignment) for r in protocol.regions]
    assert found == [
        ("ring", RegionKind.SHARED, "ranks * 1024", 512),
        ("a", RegionKind.INPUT, "tile_cnt * m * 2", None),
        ("out", RegionKind.SHARED, "None", None),
    ]
    assert [p.name for p in protocol.parameters] == ["ranks", "blocks", "tile_cnt", "m"]
    assert all(r.bytes is None or r.bytes.type is CType.I64 for r in protocol.regions)
    assert ("region-kind", "out is taken to point to shared memory") in [
        (a.code, a.text) for a in protocol.assumptions
    ]


def test_a_region_size_over_an_unknown_parameter(load_text: LoadText) -> None:
    facts = '[regions.heap]\nname = "h"\nkind = "shared"\nbytes = "depth * 2"\n'
    with pytest.raises(UnsupportedError, match=r"^facts\.toml:1: .*name depth"):
        load_text(HEAD + "}", facts)


CALL = """
  lib::Gemm gemm; Params p;
  p.from = heap + 8; p.source = in; p.to = out; p.rows = t.tile.m;
  gemm(p, 3);
"""


def test_a_contract_becomes_a_compute(load_text: LoadText) -> None:
    protocol = load_text(HEAD + CALL + "}", FACTS)
    (compute,) = protocol.programs[Role.AIC]
    assert isinstance(compute, Compute)
    assert (compute.contract, str(compute.segment), str(compute.segments)) == ("gemm", "s", "3")
    assert (compute.read_pipe, compute.write_pipe) == (Pipe.MTE2, Pipe.FIX)
    (read,), (write,) = compute.reads, compute.writes
    assert (str(read.address), str(read.bytes), str(read.guard), str(read.origin)) == (
        "ring + 8 + s * 4",
        "ceil_div(m, 3)",
        "s != rank",
        "a + rank of rank s",
    )
    assert (str(write.address), str(write.bytes)) == ("out", "m * 2")
    assert compute.span.line == 5
    codes = [a.code for a in protocol.assumptions]
    assert codes[-3:] == ["contract", "contract-arguments", "every-block-has-output"]
    contract = next(a.text for a in protocol.assumptions if a.code == "contract")
    assert "gemm call at" in contract
    assert "kernel.h:5" in contract


def test_a_contract_that_does_not_fit_the_call(load_text: LoadText) -> None:
    with pytest.raises(UnsupportedError, match=r"kernel\.h:5: .*gemm call with 1 arguments"):
        load_text(HEAD + CALL.replace("(p, 3)", "(p)") + "}", FACTS)
    with pytest.raises(UnsupportedError, match=r"kernel\.h:5: .*as an address in a memory region"):
        load_text(HEAD + CALL.replace("p.to = out", "p.to = 3") + "}", FACTS)
    with pytest.raises(SourceError, match=r"facts\.toml: contract gemm: no pipe MTE9"):
        load_text(HEAD + CALL + "}", FACTS.replace('"MTE2"', '"MTE9"'))
    with pytest.raises(SourceError, match=r"facts\.toml: cannot read the expression `p\.to \+`"):
        load_text(HEAD + CALL + "}", FACTS.replace('"p.to"', '"p.to +"'))


def test_contracts_of_methods_and_functions(load_text: LoadText) -> None:
    facts = FACTS.replace("contracts.Gemm", "contracts.'Gemm::Run'")
    assert load_text(HEAD + CALL.replace("gemm(", "gemm.Run(") + "}", facts).programs[Role.AIC]
    facts = FACTS.replace("contracts.Gemm", "contracts.RunGemm")
    assert load_text(HEAD + CALL.replace("gemm(", "lib::RunGemm(") + "}", facts).programs[Role.AIC]


def test_sources_come_before_facts(lower: Lower) -> None:
    before = "namespace lib { const uint32_t GROUP = 3; uint64_t CeilDiv(uint64_t a, int b) { return a; } }"
    body = "CrossCoreSetFlag<2, PIPE_V>(lib::CeilDiv(n, lib::GROUP) + CeilDiv(n, GROUP));"
    assert lower(body, before, facts=FACTS) == ["set V n + ceil_div(n, 64)"]


def test_equal_programs_have_equal_digests(load_text: LoadText) -> None:
    text = (
        "template <typename T> void f(GM_ADDR p, uint32_t n) {CrossCoreSetFlag<2, PIPE_V>(n * sizeof(T));}\n"
        "[[bisheng::core_ratio(1, 1)]] __global__ void a(GM_ADDR heap, uint32_t n) { f<uint8_t>(heap, n); }\n"
        "[[bisheng::core_ratio(1, 1)]] __global__ void b(GM_ADDR heap, uint32_t n) { f<int8_t>(heap, n); }\n"
        "[[bisheng::core_ratio(1, 1)]] __global__ void c(GM_ADDR heap, uint32_t n) { f<int16_t>(heap, n); }\n"
    )
    digests = [load_text(text, entry=name).digest() for name in "abc"]
    assert digests[0] == digests[1] != digests[2]
