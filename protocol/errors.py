"""The errors that cross the package's boundary; the command line prints each as one line.

Used by every layer. Each carries what a reader needs to mend the input: a place, a name, a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import Span


class Mc2proofError(Exception):
    """Base of all errors that are the input's, not the tool's."""

    exit_code = 2


class SourceError(Mc2proofError):
    """A kernel source, facts file or protocol that cannot be read as it stands."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(f"{span.place}: {message}" if span else message)
        self.message = message
        self.span = span


class ParameterError(Mc2proofError):
    """A parameter or option whose value is missing, unknown or out of its domain."""

    def __init__(self, name: str, value: object, message: str) -> None:
        super().__init__(f"{name}: {message}" if value is None else f"{name} = {value}: {message}")
        self.name = name
        self.value = value
        self.message = message


class UnsupportedError(Mc2proofError):
    """A construct that is understood to exist but is not decided: an honest "unsupported, line 212"."""

    exit_code = 3

    def __init__(self, construct: str, span: Span | None = None) -> None:
        super().__init__(f"{span.place}: unsupported: {construct}" if span else f"unsupported: {construct}")
        self.construct = construct
        self.span = span


class LimitError(Mc2proofError):
    """A named bound was reached: the answer is UNKNOWN, and says which bound to raise."""

    exit_code = 3

    def __init__(self, limit: str, bound: int, needed: str) -> None:
        super().__init__(f"{needed} exceeds {limit} = {bound}")
        self.limit = limit
        self.bound = bound
        self.needed = needed


class TraceError(Mc2proofError):
    """A trace that does not fit the protocol it is replayed on."""
