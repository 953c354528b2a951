"""Hypothesis's own reproduction line: from a failed search to it, and back to the timing that failed.

Hypothesis says ``@reproduce_failure('6.170.17', b'...')`` of a failing test; the second part stands for
what was drawn. Its decorator only fits tests of Hypothesis, so that of a search is given to the search:
``assert_matches_golden(..., reproduce=reproduce_failure(...))`` or ``mc2proof fuzz --reproduce LINE``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import reproduce_failure

from ..protocol.errors import ParameterError

Reproduce = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What `hypothesis.reproduce_failure` returns."""

_LINE = re.compile(r"@?(reproduce_failure\(\s*'([^']+)'\s*,\s*b'([^']*)'\s*\))")


def line_of(failure: BaseException) -> str | None:
    """``reproduce_failure(...)`` as Hypothesis noted it on ``failure``; None where it did not."""
    found = _LINE.search("\n".join(getattr(failure, "__notes__", ())))
    return found[1] if found else None


def read_line(text: str) -> Reproduce:
    """The decorator that the line ``text`` stands for. Raises ParameterError."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        raise ParameterError("reproduce", repr(text), "must be the reproduce_failure(...) of a failure")
    decorator: Reproduce = reproduce_failure(found[2], found[3].encode("utf-8"))
    return decorator
