"""What `gen-data` and `verify` share: what they need installed, and arguments taken as a script does."""

from __future__ import annotations

import re
from importlib import import_module

import click

from mc2proof.protocol.errors import ParameterError

NEEDED = ("numpy", "ml_dtypes")
"""Enough for files of a device; timings need Hypothesis too (see `fuzzing.need_extra`)."""
_NUMBER = re.compile(r"-[0-9]+")


def need_arrays() -> None:
    """Raise ParameterError where what the data is made with is not installed."""
    for name in NEEDED:
        try:
            import_module(name)
        except ImportError as error:
            raise ParameterError(
                "fuzz", None, f"needs {name}: install mc2proof with its extra, pip install 'mc2proof[fuzz]'"
            ) from error


class ScriptUsageError(click.UsageError):
    """Bad usage of a command that stands for a script: that exits with 1."""

    exit_code = 1


class ScriptCommand(click.Command):
    """A command in place of the reference's script: bad usage is 1, and a negative number is an argument."""

    ignore_unknown_options = True  # what is one is told by `parse_args`

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As of any command, but for the exit code and negative numbers."""
        try:
            for name in self._unknown(ctx, args):
                raise click.NoSuchOption(name, ctx=ctx)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise ScriptUsageError(error.format_message(), ctx=error.ctx) from error

    def _unknown(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        given = args[: args.index("--")] if "--" in args else args
        return [
            name
            for name in (arg.partition("=")[0] for arg in given if arg.startswith("-") and arg != "-")
            if name not in known and not _NUMBER.fullmatch(name)
        ]
