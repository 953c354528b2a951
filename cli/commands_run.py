"""The commands that run a schedule, and those for data of a device: `fuzz`, `replay`, `gen-data`, `verify`.

Each imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Any

import click

from mc2proof import options
from mc2proof.device import ScriptCommand
from mc2proof.group import READING, mc2proof_group, read_again, read_with
from mc2proof.options import text_or_json


@mc2proof_group.command()
@options.sources
@options.parameters
@options.to_run
@options.timings
@options.max_events
def fuzz(
    sources: tuple[str, ...],
    ranks: int | None,
    buffer_size: int | None,
    tile_cnt: int | None,
    blocks: int | None,
    shape: str | None,
    settings: tuple[str, ...],
    max_events: int | None,
    **rest: Any,
) -> int:
    """Run random timings with data, and compare every result with the golden one.

    The selection is that of prove, but for sizes of the matrices that you do not give: they are small
    (m 2, k 64, n 2 or as many as blocks). Stops at the first timing that hangs or reads wrong bytes, and
    shows the smallest one like it. A run shows hangs and wrong data only: prove judges all properties.

    Exit codes: 0 no failure, 1 failure found, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof import face
    from mc2proof.fuzzing import Asked, render_found, run_programs
    from mc2proof.output import progress, to_stdout
    from mc2proof.shape import parse_shape
    from mc2proof.values import given_values

    values = given_values(ranks, buffer_size, tile_cnt, blocks, settings)
    asked = Asked(*(rest.pop(name) for name in ("examples", "seed", "timing", "dtype", "reproduce")))
    reading = {name: rest.pop(name) for name in READING}
    with progress() as tell:
        protocols = face.load(*sources, **read_with(sources, reading, shape))
        results = run_programs(
            protocols,
            values,
            rest,
            asked,
            shape=None if shape is None else parse_shape(shape),
            facts=reading["facts"],
            max_events=max_events,
            progress=tell,
        )
    to_stdout(render_found(results, asked, read_again(sources, reading)))
    return 1 if any(found.fault is not None for _, found in results) else 0


@mc2proof_group.command()
@click.argument("trace")
@options.sources
@click.option("--with-data", is_flag=True, help="Move bytes too: what the readers and the outputs hold.")
def replay(trace: str, sources: tuple[str, ...], with_data: bool, **reading: Any) -> int:
    """Run a counterexample's TRACE again on the SOURCES it was made from.

    Exit code 1 if it shows again what it claims, 0 if it does not.
    """
    from mc2proof import face
    from mc2proof.output import to_stdout
    from mc2proof.protocol.replay import replay as run
    from mc2proof.render import render_replay

    protocols = face.load(*sources, **reading)
    result = run(trace, protocols)
    lines = render_replay(result)
    if with_data:
        from mc2proof.fuzzing import data_lines

        lines += data_lines(trace, protocols)
    to_stdout(lines)
    return 1 if result.reproduced else 0


@mc2proof_group.command("gen-data")
@click.argument("shape", nargs=3, type=int, metavar="M K N")
@click.argument("ranks", type=int, metavar="RANKS")
@click.argument("folder", default=".", metavar="[DIR]")
@options.inputs
def gen_data(
    shape: tuple[int, int, int], ranks: int, folder: str, tagged: bool, kind: str, seed: int, dtype: str
) -> int:
    """Write inputs and golden results for a run on a device, below DIR.

    In the reference kernel's files: input/RANK/input_a.bin, input_b.bin, input_scaleA.bin and
    input_scaleB.bin, and output/RANK/cpu_output.bin.

    Exit codes: 0 written, 2 refused.
    """
    from mc2proof.device import need_arrays
    from mc2proof.output import progress, to_stdout

    need_arrays()
    from mc2proof.gen_data import generate

    if tagged and kind not in ("normal", "tagged"):
        raise click.UsageError(f"--tagged and --kind {kind} are two kinds: give one")
    kind = "tagged" if tagged else kind
    with progress() as tell:
        lines = generate(shape, ranks, folder, kind=kind, seed=seed, dtype=dtype, tell=tell)
    to_stdout(lines)
    return 0


@mc2proof_group.command(cls=ScriptCommand, context_settings={"allow_extra_args": True})
@click.argument("rows", type=int, metavar="M")
@click.argument("n", type=int, metavar="N")
@click.argument("ranks", type=int, metavar="RANKS")
@click.argument("base", default="./output", metavar="[BASE_DIR]")
@options.explained
@text_or_json
def verify(form: str, **asked: Any) -> int:
    """Judge the results of a run on a device: BASE_DIR/RANK/npu_out.bin against cpu_output.bin.

    Passes what the reference's verify_result.py passes, and tells in which tiles the errors are. With
    the inputs, best those of `gen-data --tagged`, also which segment was stale, torn or missing, and
    which property that violates; with those of the launch before or after, whether it was theirs.

    Exit codes, as of that script: 0 all ranks pass, 1 some do not, a file is missing or of a wrong size,
    or its arguments are missing or no numbers. Beyond it: 2 options or inputs that make no sense.
    """
    from mc2proof.device import need_arrays
    from mc2proof.output import progress, to_stdout

    need_arrays()
    from mc2proof.verify import Asked, as_json, as_text
    from mc2proof.verify import verify as judge

    with progress() as tell:
        found = judge(Asked(**asked), tell)
    to_stdout(as_json(found) if form == "json" else as_text(found))
    return 0 if found.passed else 1
