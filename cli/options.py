"""The options that commands share. Imported for ``--help``, so nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mc2proof.hints import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


class Choice(click.Choice[str]):
    """One of some words; a near miss is told what it is near to."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        words = ", ".join(self.choices)
        return f"{value!r} is not one of {words}{did_you_mean(str(value), self.choices)}"


def together(*decorators: Decorator[F]) -> Decorator[F]:
    """One decorator for several options, in the order in which ``--help`` lists them."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


sources = together(
    click.argument("sources", nargs=-1, metavar="[SOURCES]..."),
    click.option("--entry", metavar="NAME", help="Check this __global__ function only."),
    click.option(
        "--facts",
        metavar="FILE",
        help="TOML with what the sources lack. Default: the shipped facts of the reference kernel.",
    ),
    click.option(
        "--define", "-D", "defines", multiple=True, metavar="X[=V]", help="Define a macro (repeatable)."
    ),
    click.option(
        "--undefine", "-U", "undefines", multiple=True, metavar="X", help="A macro is undefined (repeatable)."
    ),
    click.option(
        "-I",
        "include_dirs",
        multiple=True,
        metavar="DIR",
        help="Search quoted includes here too (repeatable).",
    ),
)
"""What is checked, and how it is read."""

settings: Decorator[Callable[..., Any]] = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Give any parameter by name; an array as NAME=1,2,3 (repeatable).",
)
parameters = together(
    click.option("--ranks", type=int, metavar="N", help="Processing elements."),
    click.option("--buffer-size", type=int, metavar="N", help="Depth of the ring of buffers."),
    click.option("--tile-cnt", type=int, metavar="N", help="Tiles."),
    click.option(
        "--shape",
        metavar="M,K,N",
        help="Compute tiles, sizes and buffers from the shape, by the host program's rules (see plan).",
    ),
    click.option("--blocks", type=int, metavar="N", help="Blocks launched on each rank.  [default: ranks]"),
    settings,
)
"""At which parameters."""

_build = together(
    click.option(
        "--profile", default="ascend950", show_default=True, metavar="NAME", help="See `mc2proof list`."
    ),
    click.option(
        "--barrier-all",
        type=Choice(["vec", "mix", "soft"]),
        help="What aclshmem_barrier_all is in the build. Default: vec, with a warning.",
    ),
)
_strict_ids: Decorator[Callable[..., Any]] = click.option(
    "--strict-ids", is_flag=True, help="Allow the flag ids 0-10 only."
)
_device = together(
    click.option(
        "--launches",
        type=int,
        metavar="N",
        default=1,
        show_default=True,
        help="Launches of each rank, one after the other; nothing orders them across ranks.",
    ),
    click.option(
        "--clear-flags",
        is_flag=True,
        help="Counters are 0 at each launch. Default: what a launch leaves carries over.",
    ),
    click.option("--merge-flags", is_flag=True, help="A set of a flag that is already set is lost."),
    click.option(
        "--cores", type=int, metavar="N", help="AI cores of a device. Default: enough for all blocks."
    ),
    click.option(
        "--matmul-objects",
        type=int,
        metavar="N",
        help="Objects of the Matmul API, at most 4: they take the flag ids 0 .. 2N-1.",
    ),
    click.option(
        "--fault",
        "faults",
        multiple=True,
        metavar="NAME",
        help="Put in a fault: quiet-timeout, a quiet that gives up unnoticed (repeatable).",
    ),
)
hardware = together(_build, _strict_ids, _device)
"""On what hardware."""
to_run = together(_build, _device)
"""On what hardware, where the program is run: an id is what the hardware makes of it."""

_dtype: Decorator[Callable[..., Any]] = click.option(
    "--dtype",
    metavar="A:B",
    default="e4m3:e4m3",
    show_default=True,
    help="The formats of A and B, each e4m3 or e5m2.",
)
timings = together(
    click.option(
        "--examples", type=int, metavar="N", default=1000, show_default=True, help="How many timings are run."
    ),
    click.option(
        "--seed", type=int, metavar="N", default=0, show_default=True, help="Other timings, other data."
    ),
    _dtype,
    click.option(
        "--timing",
        type=Choice(["pct", "preempt", "uniform"]),
        default="pct",
        show_default=True,
        help="How timings are chosen: by priorities, by few preemptions, or evenly.",
    ),
    click.option("--reproduce", metavar="LINE", help="Run the timing alone for which a failure says this."),
)
"""Which timings are run, with which data."""

max_events: Decorator[Callable[..., Any]] = click.option(
    "--max-events", type=int, metavar="N", help="Stop before unrolling more events than this."
)
all_values = together(
    click.option(
        "--for-all",
        "for_all",
        metavar="NAMES",
        help="Decide for all values of these parameters: ranks,tile_cnt,launches.",
    ),
    click.option(
        "--assume",
        multiple=True,
        metavar="TEXT",
        help='With --for-all: of these values only, "tile_cnt <= 16" or "X power of 2" (repeatable).',
    ),
)
"""For all values of what."""

certified = together(
    click.option(
        "--certificate",
        metavar="FILE",
        help="With --for-all: write there why it holds; `mc2proof audit` checks it.",
    ),
    click.option(
        "--second-solver",
        is_flag=True,
        help="With --for-all: ask cvc5 too what Z3 finds impossible (mc2proof[cvc5]).",
    ),
)
"""What else is made of a proof for all values."""

engines = together(
    click.option(
        "--property", "properties", multiple=True, metavar="NAME", help="Check only this (repeatable)."
    ),
    click.option(
        "--engine",
        type=Choice(["auto", "happens-before", "z3", "explore", "parametric"]),
        default="auto",
        show_default=True,
        help="Who decides; auto asks happens-before and z3, with --for-all parametric.",
    ),
    click.option("--cross-check", is_flag=True, help="Let every engine answer alone, and compare."),
    max_events,
    click.option(
        "--rlimit",
        type=int,
        metavar="N",
        help="Z3's resource limit a question, 0 for none.  [default: 1000000000]",
    ),
)
"""Which questions, and who answers them."""

inputs = together(
    click.option(
        "--tagged",
        is_flag=True,
        help="Inputs in which every wrong segment shows, and is named: --kind tagged.",
    ),
    click.option(
        "--kind",
        type=Choice(["normal", "extreme", "special", "tagged"]),
        default="normal",
        show_default=True,
        help="What values: special has NaN, infinities and scales 0, 254, 255.",
    ),
    click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Other data."),
    _dtype,
)
"""Which data is made for a device."""
explained = together(
    click.option(
        "--tile-rows", type=int, metavar="N", default=512, show_default=True, help="Rows of a tile."
    ),
    click.option(
        "--input", "inputs", metavar="DIR", help="The folder of the inputs: tells what explains the errors."
    ),
    click.option("--before", metavar="DIR", help="The inputs of the launch before, if others."),
    click.option("--after", metavar="DIR", help="The inputs of the next launch, if others."),
    _dtype,
)
"""How the results of a device are judged."""

swept = together(
    click.option("--ranks", metavar="RANGE", help="Processing elements."),
    click.option("--buffer-size", metavar="RANGE", help="Depths of the ring of buffers."),
    click.option("--tile-cnt", metavar="RANGE", help="Tiles."),
    click.option("--shape", metavar="M,K,N", help="Compute the tiles and sizes by the host program's rules."),
    click.option("--blocks", type=int, metavar="N", help="Blocks launched on each rank.  [default: ranks]"),
    settings,
    click.option("--costs", metavar="FILE", help="TOML with what operations cost. Default: made-up costs."),
    click.option("--cache", metavar="DIR", help="Keep results there: an interrupted sweep goes on from it."),
    click.option("--jobs", type=int, metavar="N", help="Processes.  [default: as many as processors]"),
    click.option(
        "--format",
        "form",
        type=Choice(["text", "json", "csv", "html"]),
        default="text",
        show_default=True,
        help="Of the result.",
    ),
)
"""Which configurations, at what costs."""


def processors() -> int:
    """How many processors this process may use."""
    import os

    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else os.cpu_count() or 1


output_file = click.option(
    "--output", metavar="FILE", help="Write the result there, and only its last line here."
)
text_or_json = click.option(
    "--format",
    "form",
    type=Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Of the result.",
)
