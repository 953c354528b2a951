"""The group of commands, and what several of them share about how sources are read.

A command returns its exit code; errors leave as exceptions, which `command` prints.
"""

from __future__ import annotations

from typing import Any

import click


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


READING = ("entry", "facts", "defines", "undefines", "include_dirs")
"""The options that say how sources are read: the arguments of `face.load`."""


def read_with(sources: tuple[str, ...], reading: dict[str, Any], shape: object) -> dict[str, Any]:
    """``reading``; where there is a shape and no kernel header, facts are for the host's rules alone."""
    from mc2proof.face import has_headers

    return reading if shape is None or has_headers(sources) else reading | {"facts": None}


def read_again(sources: tuple[str, ...], reading: dict[str, Any]) -> list[str]:
    """The arguments that read the same sources in the same way."""
    again = list(sources)
    for name, option in (("entry", "--entry"), ("facts", "--facts")):
        if reading[name] is not None:
            again += [option, reading[name]]
    for name, option in (("defines", "-D"), ("undefines", "-U"), ("include_dirs", "-I")):
        for value in reading[name]:
            again += [option, value]
    return again
