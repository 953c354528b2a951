"""Small kernels for the front end's tests: a body in, the lowered program as lines out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mc2proof.protocol.ascendc import Facts, load_sources
from mc2proof.protocol.ascendc.facts import parse_facts
from mc2proof.protocol.evaluate import evaluate
from mc2proof.protocol.program import (
    Assign,
    Barrier,
    Block,
    Compute,
    For,
    If,
    Load,
    Protocol,
    Put,
    Quiet,
    Role,
    SetFlag,
    WaitFlag,
    While,
)

FACTS = """
plain_types = ["Guard", "Kernel", "Local", "Pipe"]

[regions.heap]
name = "heap"
kind = "shared"
"""

Lower = Callable[..., list[str]]
LoadText = Callable[..., Protocol]


def lines_of(block: Block, indent: str = "") -> list[str]:
    """A program as lines that a test can compare."""
    lines: list[str] = []
    for statement in block:
        match statement:
            case For(index=index, start=start, stop=stop, step=step, body=body):
                head = f"for {index.type.c_name} {index} = {start} .. {stop}"
                lines.append(indent + head + (f" by {step}" if step != 1 else ""))
                lines += lines_of(body, indent + "  ")
            case While(condition=condition, body=body):
                lines.append(f"{indent}while {condition}")
                lines += lines_of(body, indent + "  ")
            case If(condition=condition, then=then, orelse=orelse):
                lines.append(f"{indent}if {condition}")
                lines += lines_of(then, indent + "  ")
                if orelse:
                    lines.append(f"{indent}else")
                    lines += lines_of(orelse, indent + "  ")
            case Assign(target=target, value=value):
                lines.append(f"{indent}{target} = {value}")
            case Load(target=target, word=word):
                lines.append(f"{indent}{target} = *({word})")
            case SetFlag(pipe=pipe, flag=flag):
                lines.append(f"{indent}set {pipe.name} {flag}")
            case WaitFlag(pipe=pipe, flag=flag):
                lines.append(f"{indent}wait {pipe.name} {flag}")
            case Put(peer=peer, target=target, source=source, bytes=size):
                lines.append(f"{indent}put {size} from {source} to {target} of {peer}")
            case Quiet(peer=peer):
                lines.append(f"{indent}quiet {peer}")
            case Barrier(function=function):
                lines.append(f"{indent}{function}")
            case Compute(contract=contract, segment=segment, segments=segments):
                lines.append(f"{indent}{contract} for {segment} below {segments}")
            case _:
                lines.append(f"{indent}{type(statement).__name__}")
    return lines


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    """Load one kernel from text; ``others`` are further files beside it, by name."""

    def load(
        text: str,
        facts: str = FACTS,
        others: Mapping[str, str] | None = None,
        **options: object,
    ) -> Protocol:
        for name, content in (others or {}).items():
            (tmp_path / name).write_text(content)
        path = tmp_path / "kernel.h"
        path.write_text(text)
        loaded: Facts = parse_facts(facts, "facts.toml")
        return load_sources([path], facts=loaded, **options)[0]  # type: ignore[arg-type]

    return load


@pytest.fixture
def lower(load_text: LoadText) -> Lower:
    """Lower the body of a kernel ``k(GM_ADDR heap, uint32_t n, int32_t s, Tiling tiling)``."""

    def run(body: str, before: str = "", role: Role = Role.AIV, **options: object) -> list[str]:
        text = f"""{before}
[[bisheng::core_ratio(1, 1)]]
extern "C" __global__ __aicore__ void k(GM_ADDR heap, uint32_t n, int32_t s, Tiling tiling) {{
{body}
}}
"""
        return lines_of(load_text(text, **options).programs[role])

    return run


@pytest.fixture
def value_of(load_text: LoadText) -> Callable[..., int]:
    """The value of a C++ expression in a kernel, at n, s and rank, block = 1, 3; via a local.

    The branch after it keeps the local: what its value is later only a run decides.
    """

    def compute(expression: str, before: str = "", body: str = "", **values: int) -> int:
        text = f"""{before}
[[bisheng::core_ratio(1, 1)]]
__global__ __aicore__ void k(GM_ADDR heap, uint32_t n, int32_t s, Tiling tiling) {{
{body}
auto the_value = ({expression});
if (n > 1000) {{ the_value = !the_value; CrossCoreSetFlag<2, PIPE_MTE3>(1); }}
CrossCoreSetFlag<2, PIPE_MTE3>(the_value);
}}
"""
        statement = load_text(text).programs[Role.AIV][-3]
        assert isinstance(statement, Assign)
        known = {"ranks": 4, "blocks": 4, "rank": 1, "block": 3, "sub": 0, "n": 7, "s": -5}
        return evaluate(statement.value, {**known, **values})

    return compute
