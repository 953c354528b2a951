"""Small helpers of every message: one line, and what a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` for the closest of ``known``, or nothing."""
    folded = {k.lower().replace("-", "_"): k for k in known}
    close = get_close_matches(name.lower().replace("-", "_"), folded, n=1)
    return f"; did you mean {folded[close[0]]}?" if close else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """``no protocol 'x'; did you mean 'y'? (there is: …)``."""
    names = list(known)
    listed = f" (there is: {', '.join(names)})" if names else ""
    return f"no {what} {name!r}{did_you_mean(name, names)}{listed}"


def one_line(text: str) -> str:
    """``text`` with all white space, line ends included, as single spaces."""
    return " ".join(text.split())


def shown_path(path: str) -> str:
    """``path`` as a message names it: an empty one is quoted."""
    return path or "''"
