"""The commands. Each imports what it needs when it runs, so that ``--help`` is quick.

A command returns its exit code; errors leave as exceptions, which `command` prints.
"""

from __future__ import annotations

from typing import Any

import click

from mc2proof import options
from mc2proof.device import ScriptCommand
from mc2proof.options import output_file, text_or_json


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        import mc2proof
        from mc2proof.output import to_stdout
        from mc2proof.text import line

        to_stdout([line(f"mc2proof {mc2proof.__version__}")])
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version.",
)  # fmt: skip
def mc2proof_group() -> None:
    """Prove that the flags and barriers of a fused kernel cannot hang, or show the timing that does.

    SOURCES are kernel headers, or FILE.py:NAME for a protocol written in Python; without any, the
    built-in protocol is meant.

    Exit codes: 0 proved, 1 violated, 2 bad usage or input, 3 not decided, 4 engines disagree or
    internal error, 130 interrupted.
    """


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
    from mc2proof.inputs import files_read, spare_inputs
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.render import render, summary
    from mc2proof.shape import parse_shape
    from mc2proof.text import line
    from mc2proof.values import given_values

    values = given_values(ranks, buffer_size, tile_cnt, blocks, settings)
    rest["for_all"] = tuple(filter(None, (for_all or "").split(",")))
    reading = {name: rest.pop(name) for name in _READING}
    spare_inputs(output, sources, reading["facts"])
    spare_inputs(rest["certificate"], sources, reading["facts"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **(reading if shape is None else _read_with(sources, reading)))
        spare_inputs(output, files_read(protocols))
        spare_inputs(rest["certificate"], files_read(protocols))
        report = face.prove(protocols, settings=values, progress=tell, **rest)
    write([line(report.to_json())] if form == "json" else render(report, sources=_again(sources, reading)))
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

    reading = {name: rest.pop(name) for name in _READING}
    spare_inputs(output, sources, reading["facts"])
    rest["settings"] = merge(("--set", *parse_setting(text)) for text in settings)
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **_read_with(sources, reading))
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
    reading = {name: rest.pop(name) for name in _READING}
    spare_inputs(output, sources, reading["facts"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **(reading if shape is None else _read_with(sources, reading)))
        spare_inputs(output, files_read(protocols))
        answer = asked(protocols, settings=values, progress=tell, **rest)
    write([line(answer.to_json())] if form == "json" else render_minimized(answer))
    if output is not None:
        to_stdout([(*minimized_summary(answer), *line(f"; written to {output}"))])
    return 0


@mc2proof_group.command()
@click.argument("certificate")
@options.sources
@output_file
def audit(certificate: str, sources: tuple[str, ...], output: str | None, **reading: Any) -> int:
    """Check a CERTIFICATE of prove --for-all against the SOURCES it was made from.

    What every property needs, and each rule that a proof uses, is derived from the sources anew; no
    solver is asked.

    Exit codes: 0 valid, 1 invalid, 2 bad input, 3 the sources use what is not supported.
    """
    from mc2proof import certified, face
    from mc2proof.checker.audit import audit as check
    from mc2proof.inputs import spare_inputs
    from mc2proof.output import to_stdout, writer
    from mc2proof.text import line

    spare_inputs(output, (certificate, *sources), reading["facts"])
    write = writer(output)
    results = check(certified.read_certificate(certificate), face.load(*sources, **reading))
    lines = certified.render_audit(results)
    write(lines)
    if output is not None:
        to_stdout([(*lines[-1], *line(f"; written to {output}"))])
    return 0 if certified.is_valid(results) else 1


@mc2proof_group.command()
@click.argument("property_", metavar="PROPERTY")
@options.sources
@options.parameters
@options.all_values
@options.hardware
@output_file
def why(property_: str, sources: tuple[str, ...], output: str | None, **rest: Any) -> int:
    """Tell why PROPERTY holds for all values, as chains of source lines.

    The selection is that of prove --for-all; without --for-all, of the ranks, tiles and depth that have
    no value. Also tells which synchronisations no proof passes through; minimize tells what taking one
    out breaks.

    Exit codes: 0 answered, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof.asked import decided
    from mc2proof.output import progress, to_stdout, writer
    from mc2proof.text import line
    from mc2proof.why import why as told

    write = writer(output)
    with progress() as tell:
        protocols, named = _for_all(sources, output, rest)
        decision = decided(protocols, (), "why takes", progress=tell, first=property_, **named)
        lines = told(property_, decision, tell)
    write(lines)
    if output is not None:
        to_stdout([(*lines[0], *line(f"; written to {output}"))])
    return 0


@mc2proof_group.command()
@options.sources
@options.parameters
@options.all_values
@options.hardware
@click.option("--to", type=options.Choice(["smt2"]), required=True, help="The format.")
@click.option("--output", metavar="DIR", required=True, help="Write the files into this folder.")
def export(sources: tuple[str, ...], to: str, output: str, **rest: Any) -> int:
    """Write every question that prove --for-all puts to Z3, in SMT-LIB: one file each, numbered.

    What Z3 said stands in the file. The selection is that of why.

    Exit codes: 0 written, 2 refused, 3 the sources use what is not supported.
    """
    from mc2proof.asked import decided
    from mc2proof.output import progress, to_stdout, write_folder
    from mc2proof.text import line
    from mc2proof.why import exported

    del to
    with progress() as tell:
        protocols, named = _for_all(sources, None, rest)
        files = exported(decided(protocols, (), "export takes", keep=True, progress=tell, **named))
    write_folder(output, files)
    to_stdout([line(f"{len(files)} questions written to {output}")])
    return 0


def _for_all(
    sources: tuple[str, ...], output: str | None, rest: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The protocols and the arguments of `asked.decided`, of the options that `why` and `export` share."""
    from mc2proof import face
    from mc2proof.inputs import files_read, spare_inputs
    from mc2proof.shape import parse_shape
    from mc2proof.values import given_values

    reading = {name: rest.pop(name) for name in _READING}
    spare_inputs(output, sources, reading["facts"])
    numbers = [rest.pop(name) for name in ("ranks", "buffer_size", "tile_cnt", "blocks", "settings")]
    rest["settings"] = given_values(*numbers)
    rest["for_all"] = tuple(filter(None, (rest["for_all"] or "").split(",")))
    shape = rest.pop("shape")
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    protocols = face.load(*sources, **(reading if shape is None else _read_with(sources, reading)))
    spare_inputs(output, files_read(protocols))
    return protocols, rest


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
    reading = {name: rest.pop(name) for name in _READING}
    rest["settings"] = merge(("--set", *parse_setting(text)) for text in settings)
    rest["jobs"] = options.processors() if rest["jobs"] is None else rest["jobs"]
    spare_inputs(output, (*sources, *filter(None, [rest["costs"]])), reading["facts"])
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    write = writer(output)
    with progress() as tell:
        protocols = face.load(*sources, **(reading if shape is None else _read_with(sources, reading)))
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
    reading = {name: rest.pop(name) for name in _READING}
    with progress() as tell:
        protocols = face.load(*sources, **(reading if shape is None else _read_with(sources, reading)))
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
    to_stdout(render_found(results, asked, _again(sources, reading)))
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


_READING = ("entry", "facts", "defines", "undefines", "include_dirs")
"""The options that say how sources are read: the arguments of `face.load`."""


def _read_with(sources: tuple[str, ...], reading: dict[str, Any]) -> dict[str, Any]:
    """``reading`` where there is a shape: without kernel headers, facts are for the host's rules alone."""
    from mc2proof.face import has_headers

    return reading if has_headers(sources) else reading | {"facts": None}


def _again(sources: tuple[str, ...], reading: dict[str, Any]) -> list[str]:
    """The arguments that read the same sources in the same way."""
    again = list(sources)
    for name, option in (("entry", "--entry"), ("facts", "--facts")):
        if reading[name] is not None:
            again += [option, reading[name]]
    for name, option in (("defines", "-D"), ("undefines", "-U"), ("include_dirs", "-I")):
        for value in reading[name]:
            again += [option, value]
    return again
