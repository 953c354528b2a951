"""Ctrl-C ends the process at once, wherever it is.

KeyboardInterrupt can be lost: Z3 has a handler of its own while it works, and what is raised in a
finaliser is printed and dropped. So the signal is blocked, and a thread waits for it. Nothing has
to be cleaned up behind it: results are written in one go (`output`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

INTERRUPTED = 130
MESSAGE = "mc2proof: interrupted\n"
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"
"""What undoes a progress line: clear it, and show the cursor that it hides."""


def end_on_interrupt() -> None:
    """From now on SIGINT ends the process with one line and code 130; unless the parent ignores it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    if not hasattr(signal, "pthread_sigmask"):
        return  # not a POSIX system: KeyboardInterrupt has to do
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    signal.sigwait({signal.SIGINT})
    with contextlib.suppress(OSError, ValueError, AttributeError):  # standard error may be closed
        sys.stderr.write((SHOW_CURSOR if sys.stderr.isatty() else "") + MESSAGE)
        sys.stderr.flush()
    os._exit(INTERRUPTED)
