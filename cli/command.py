"""`mc2proof`, the command: runs one of `commands` and turns whatever happens into an exit code.

Every error is one line on standard error. Nothing heavy is imported before `main`, so that an
interrupt at any time is caught too.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from mc2proof.interrupt import INTERRUPTED, end_on_interrupt

BAD_INPUT, INTERNAL = 2, 4
TRACEBACK = "MC2PROOF_TRACEBACK"
"""The environment variable that asks for the traceback of an internal error."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line ``arguments`` (default: the process's own) and exit."""
    end_on_interrupt()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line ``arguments``; returns the exit code."""
    try:
        _tolerate_any_text()
        return _dispatch(list(arguments))
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        # The only place that catches everything: whatever was not foreseen is a fault of ours.
        return _internal_error(error)


def _dispatch(arguments: list[str]) -> int:
    import click

    from mc2proof import commands, commands_proofs, commands_run  # noqa: F401 - they join the group
    from mc2proof.group import mc2proof_group
    from mc2proof.protocol.errors import Mc2proofError

    try:
        with mc2proof_group.make_context("mc2proof", arguments) as context:
            code = mc2proof_group.invoke(context)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:  # --help, --version
        return leaving.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return BAD_INPUT
    except click.NoSuchOption as error:
        number = re.fullmatch(r"-[0-9]+", error.option_name)
        text = "numbers that stand alone must be positive" if number else error.format_message()
        _complain(f"error: {text}{_help_of(error)}")
        return BAD_INPUT
    except click.UsageError as error:
        _complain(f"error: {error.format_message()}{_help_of(error)}")
        return error.exit_code  # BAD_INPUT, but for a command in place of a script
    except Mc2proofError as error:
        _complain(f"error: {error}")
        return error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        _complain(f"error: {where}{error.strerror or error}")
        return BAD_INPUT


def _help_of(error: object) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


def _internal_error(error: Exception) -> int:
    if type(error).__name__ == "EngineDisagreement":  # not imported: it would load the solver
        path = getattr(error, "path", None)
        saved = f" (all that is needed to look into it is in {path})" if path else ""
        _complain(f"internal error: {error}{saved}")
        return INTERNAL
    if os.environ.get(TRACEBACK):
        import traceback

        _complain("".join(traceback.format_exception(error)), fold=False)
    _complain(
        f"internal error: {type(error).__name__}: {error} "
        f"(a fault of mc2proof; {TRACEBACK}=1 in the environment shows where)"
    )
    return INTERNAL


def _complain(message: str, *, fold: bool = True) -> None:
    """One line on standard error, if there is one to write to."""
    text = " ".join(message.split()) if fold else message
    try:
        sys.stderr.write(f"mc2proof: {text}\n")
        sys.stderr.flush()
    except (OSError, AttributeError, ValueError):
        pass  # closed: the exit code still tells


def _tolerate_any_text() -> None:
    """Print what the terminal's encoding lacks as escapes instead of failing, an ellipsis as three dots."""
    codecs.register_error(_UNPRINTABLE, _printable)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_UNPRINTABLE)


_UNPRINTABLE = "mc2proof-printable"


def _printable(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError):
        if error.object[error.start] == "…":
            return "...", error.start + 1
        error.end = error.start + 1  # an ellipsis may follow
    return codecs.backslashreplace_errors(error)
