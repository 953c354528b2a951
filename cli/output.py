"""Where a command's result goes: standard output, or a file that appears complete or not at all.

Also what is shown of progress, on a terminal only. Used by `commands`; nothing here knows verdicts.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator

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


@contextlib.contextmanager
def opened(path: str | None) -> Iterator[Writer]:
    """A function that writes lines to ``path``, or to standard output if that is None.

    A file is prepared at once, so that a folder that cannot be written is found before the work
    starts, and put in its place when the block ends well. Raises OutputError.
    """
    if path is None:
        yield to_stdout
        return
    file = _NewFile(path)
    try:
        yield file.write
        file.finish()
    except BaseException:
        file.discard()
        raise


class _NewFile:
    """A file beside ``path`` that takes its place when it is finished.

    What exists at ``path`` and is no regular file (``/dev/null``, a pipe) is written to directly.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._naming_the_path():
            self.target: str = os.path.realpath(path)  # a link stays a link
            mode = os.stat(self.target).st_mode if os.path.exists(self.target) else None
            if mode is not None and not stat.S_ISREG(mode):
                self.temporary: str | None = None
                self.descriptor = os.open(self.target, os.O_WRONLY)
                return
            self.temporary = f"{self.target}.{os.getpid()}.tmp"
            self.descriptor = os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            if mode is not None:
                os.chmod(self.temporary, stat.S_IMODE(mode))

    @contextlib.contextmanager
    def _naming_the_path(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise OutputError(f"{shown_path(self.path)}: cannot be written: {reason}") from error

    def write(self, lines: list[Line]) -> None:
        data = plain(lines).encode("utf-8", "backslashreplace")
        with self._naming_the_path():
            while data:
                data = data[os.write(self.descriptor, data) :]

    def finish(self) -> None:
        with self._naming_the_path():
            os.close(self.descriptor)
            if self.temporary is not None:
                os.replace(self.temporary, self.target)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)
        if self.temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.temporary)


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
