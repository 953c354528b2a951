"""The commands that judge a schedule at given values or many, and those that tell of it.

Each imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Any

import click

from mc2proof import options
from mc2proof.group import READING, mc2proof_group, read_again, read_with
from mc2proof.options import output_file, text_or_json


@mc2proof_group.command()
@options.sources
@options.parameters
@options.all_values
@options.certified
@options.hardware
@options.engines
@text_or_json
@output_file
def prove(
    sources: tuple[str, ...],
    ranks: int | None,
    buffer_size: int | None,
    tile_cnt: int | None,
    blocks: int | None,
    shape: str | None,
    settings: tuple[str, ...],
    for_all: str | None,
    form: str,
    output: str | None,
    **rest: Any,
) -> int:
    """Decide every property at the given parameters.

    The built-in protocol has defaults for all of them; a kernel gets only the values you give, and
    those of its facts. With --for-all, for all values of the parameters named.
    """
    from mc2proof import face
    from mc2proof.inputs import files_read, spare_each_other, spare_inputs
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.render import render, summary
    from mc2proof.shape import parse_shape
    from mc2proof.text import line
    from mc2proof.values import given_values

    values = given_values(ranks, buffer_size, tile_cnt, blocks, settings)
    rest["for_all"] = tuple(filter(None, (for_all or "").split(",")))
    reading = {name: rest.pop(name) for name in READING}
    spare_inputs(output, sources, reading["facts"])
    spare_inputs(rest["certificate"], sources, reading["facts"])
    spare_each_other(output, rest["certificate"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **read_with(sources, reading, shape))
        spare_inputs(output, files_read(protocols))
        spare_inputs(rest["certificate"], files_read(protocols))
        report = face.prove(protocols, settings=values, progress=tell, **rest)
    write(
        [line(report.to_json())] if form == "json" else render(report, sources=read_again(sources, reading))
    )
    if output is not None:
        to_stdout([(*summary(report), *line(f"; written to {output}"))])
    return report.exit_code()


@mc2proof_group.command()
@click.argument("shape", nargs=3, type=int, metavar="M K N")
@click.argument("ranks", type=int, metavar="RANKS")
@options.sources
@click.option("--buffer-size", type=int, metavar="N", help="Depth of the ring.  [default: the host's]")
@click.option("--blocks", type=int, metavar="N", help="Blocks launched on each rank.  [default: ranks]")
@options.settings
@options.hardware
@text_or_json
@output_file
def plan(
    sources: tuple[str, ...],
    shape: tuple[int, int, int],
    settings: tuple[str, ...],
    form: str,
    output: str | None,
    **rest: Any,
) -> int:
    """Compute what the host program makes of a shape, and how far it may grow.

    M, K, N are those of the whole problem, as the host program takes them. Prints the parameters of
    the kernel, what is wrong at them, and the largest safe tile_cnt and buffer_size.

    Exit codes: 0 answered, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof import face
    from mc2proof.inputs import files_read, spare_inputs
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.plan import plan_summary, render_plan
    from mc2proof.text import line
    from mc2proof.values import merge, parse_setting

    reading = {name: rest.pop(name) for name in READING}
    spare_inputs(output, sources, reading["facts"])
    rest["settings"] = merge(("--set", *parse_setting(text)) for text in settings)
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **read_with(sources, reading, shape))
        spare_inputs(output, files_read(protocols))
        made = face.plan(shape, protocols=protocols, facts=reading["facts"], progress=tell, **rest)
    write([line(made.to_json())] if form == "json" else render_plan(made))
    if output is not None:
        to_stdout([(*plan_summary(made), *line(f"; written to {output}"))])
    return 0


@mc2proof_group.command()
@options.sources
@options.parameters
@options.hardware
@options.max_events
@text_or_json
@output_file
def minimize(
    sources: tuple[str, ...],
    ranks: int | None,
    buffer_size: int | None,
    tile_cnt: int | None,
    blocks: int | None,
    shape: str | None,
    settings: tuple[str, ...],
    form: str,
    output: str | None,
    **rest: Any,
) -> int:
    """Tell what each flag, barrier and quiet is needed for, and what would mend.

    Each is taken out, sets also with their waits, and the rest is judged at the given values and some
    beside them. Prints what that violates, the minimal safe sets, and for a VIOLATED kernel the smallest
    insertions and moves that make it PROVED. Nothing is said of other values.

    Exit codes: 0 answered, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof import face
    from mc2proof.inputs import files_read, spare_inputs
    from mc2proof.minimized import minimized_summary, render_minimized
    from mc2proof.minimizing import minimize as asked
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.shape import parse_shape
    from mc2proof.text import line
    from mc2proof.values import given_values

    values = given_values(ranks, buffer_size, tile_cnt, blocks, settings)
    reading = {name: rest.pop(name) for name in READING}
    spare_inputs(output, sources, reading["facts"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **read_with(sources, reading, shape))
        spare_inputs(output, files_read(protocols))
        answer = asked(protocols, settings=values, progress=tell, **rest)
    write([line(answer.to_json())] if form == "json" else render_minimized(answer))
    if output is not None:
        to_stdout([(*minimized_summary(answer), *line(f"; written to {output}"))])
    return 0


@mc2proof_group.command()
@options.sources
@options.swept
@options.hardware
@output_file
def sweep(
    sources: tuple[str, ...],
    ranks: str | None,
    buffer_size: str | None,
    tile_cnt: str | None,
    shape: str | None,
    settings: tuple[str, ...],
    form: str,
    output: str | None,
    **rest: Any,
) -> int:
    """Judge many configurations: which are safe, by which rule not, and how long a launch takes.

    A range is 1..16, 1..64:4 (every fourth) or a list of these. Times are a prediction, the critical
    path of the order at the given costs. The rules named are the first that fail; prove decides one
    configuration fully.

    Exit codes: 0 answered, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof import face, sweeping, swept
    from mc2proof.inputs import files_read, spare_inputs
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.shape import parse_shape
    from mc2proof.text import line
    from mc2proof.values import merge, parse_setting

    given = {"ranks": ranks, "buffer_size": buffer_size, "tile_cnt": tile_cnt}
    axes = {
        name: swept.parse_range(f"--{name.replace('_', '-')}", text)
        for name, text in given.items()
        if text is not None
    }
    reading = {name: rest.pop(name) for name in READING}
    rest["settings"] = merge(("--set", *parse_setting(text)) for text in settings)
    rest["jobs"] = options.processors() if rest["jobs"] is None else rest["jobs"]
    spare_inputs(output, (*sources, *filter(None, [rest["costs"]])), reading["facts"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **read_with(sources, reading, shape))
        spare_inputs(output, files_read(protocols))
        result = sweeping.sweep(axes, protocols, progress=tell, **rest)
    if form == "json":
        write([line(result.to_json())])
    else:
        forms = {"text": swept.render_sweep, "csv": swept.sweep_csv, "html": swept.sweep_html}
        write(forms[form](result))
    if output is not None:
        to_stdout([(*swept.sweep_summary(result), *line(f"; written to {output}"))])
    return 0


@mc2proof_group.command("list")
@text_or_json
def list_(form: str) -> int:
    """List the built-in protocols, the hardware profiles and the properties."""
    from mc2proof.listing import list_json, list_text
    from mc2proof.output import to_stdout

    to_stdout(list_json() if form == "json" else list_text())
    return 0


@mc2proof_group.command()
@click.argument("code", required=False)
@text_or_json
def explain(code: str | None, form: str) -> int:
    """Explain a finding by its CODE: what goes wrong, in which timing, and the mend.

    With a faulty and a mended example. Without CODE: lists the codes by property.
    """
    from mc2proof import explain as catalogue
    from mc2proof.output import to_stdout

    if code is None:
        to_stdout(catalogue.list_codes_json() if form == "json" else catalogue.list_codes_text())
    else:
        to_stdout(catalogue.explain_json(code) if form == "json" else catalogue.explain_text(code))
    return 0


@mc2proof_group.command()
@options.sources
def show(sources: tuple[str, ...], **reading: Any) -> int:
    """Show what was read: parameters, memory, and each role's program with its places."""
    from mc2proof import face
    from mc2proof.output import to_stdout
    from mc2proof.show import show as lines_of

    to_stdout(lines_of(face.load(*sources, **reading)))
    return 0
