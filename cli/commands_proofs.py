"""The commands about proofs for all values: `audit`, `why` and `export`.

Each imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Any

import click

from mc2proof import options
from mc2proof.group import READING, mc2proof_group, read_with
from mc2proof.options import output_file


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

    reading = {name: rest.pop(name) for name in READING}
    spare_inputs(output, sources, reading["facts"])
    numbers = [rest.pop(name) for name in ("ranks", "buffer_size", "tile_cnt", "blocks", "settings")]
    rest["settings"] = given_values(*numbers)
    rest["for_all"] = tuple(filter(None, (rest["for_all"] or "").split(",")))
    shape = rest.pop("shape")
    if shape is not None:
        rest |= {"shape": parse_shape(shape), "facts": reading["facts"]}
    protocols = face.load(*sources, **read_with(sources, reading, shape))
    spare_inputs(output, files_read(protocols))
    return protocols, rest
