"""Where a command's result goes: standard output, or a file that appears complete or not at all.

Also what is shown of progress, on a terminal only. Used by `commands`; nothing here knows verdicts.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator

from mc2proof.hints import shown_path
from mc2proof.protocol.errors import Mc2proofError
from mc2proof.text import Line, plain, print_styled

Writer = Callable[[list[Line]], None]


class OutputError(Mc2proofError):
    """A result that cannot be written where it was asked for."""


def use_styles(stream: object) -> bool:
    """Whether ``stream`` is a terminal that colours are welcome on (NO_COLOR, TERM=dumb)."""
    isatty = getattr(stream, "isatty", None)
    return (
        isatty is not None
        and isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def writer(path: str | None) -> Writer:
    """A function that writes lines to ``path``, or to standard output if that is None.

    Whether ``path`` can be written is found out now, before any long work. Raises OutputError.
    """
    if path is None:
        return to_stdout
    if not path:
        raise OutputError("--output: cannot be written: the name of the file is empty")
    file = _File(path)
    file.write_all(None)
    return lambda lines: file.write_all(plain(lines).encode("utf-8", "backslashreplace"))


class _File:
    """A file that appears whole or not at all: written beside its place, then put there.

    What exists at ``path`` and is no regular file (``/dev/null``, a pipe) is written to directly.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def write_all(self, data: bytes | None) -> None:
        """Make ``data`` the content; None only tries whether that will be possible."""
        try:
            target = os.path.realpath(self.path)  # a link stays a link
            mode = os.stat(target).st_mode if os.path.exists(target) else None
            if mode is None or stat.S_ISREG(mode):
                self._replace(target, mode, data)
            elif data is not None or not stat.S_ISFIFO(mode):  # a pipe would wait for its reader
                with open(target, "wb", buffering=0) as device:
                    device.write(data or b"")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise OutputError(f"{shown_path(self.path)}: cannot be written: {reason}") from error

    def _replace(self, target: str, mode: int | None, data: bytes | None) -> None:
        temporary = f"{target}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(data or b"")
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            if data is not None:
                os.replace(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_folder(path: str, files: Iterable[tuple[str, str]]) -> None:
    """Write files, each a name and its text, into the folder ``path``, made if it is missing.

    Raises OutputError.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{shown_path(path)}: cannot be written: {error.strerror}") from error
    for name, text in files:
        _File(os.path.join(path, name)).write_all(text.encode())


def to_stdout(lines: list[Line]) -> None:
    """Write ``lines`` to standard output; quietly drop them if nobody reads it any more."""
    stream = sys.stdout
    if stream is None:  # closed by the caller (`>&-`)
        return
    try:
        if use_styles(stream):
            print_styled(lines, stream)
        else:
            stream.write(plain(lines))
        stream.flush()
    except BrokenPipeError:
        _abandon_stdout()
    except OSError as error:
        _abandon_stdout()
        raise OutputError(f"standard output: cannot be written: {error.strerror}") from error


def _abandon_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """A function that shows what is being done, or None where nobody watches (no terminal, CI)."""
    if os.environ.get("CI") or not use_styles(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text("reading")) as status:
        yield lambda doing: status.update(Text(doing))
