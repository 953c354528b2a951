"""What an engine is: something that decides deadlock and obligations over one instance.

Engines are independent of each other and of properties; `prove` asks them and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .obligations import Obligation


class Declined(Exception):
    """An engine cannot decide this instance (or ran into a named limit); ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stuck:
    """A timing stops before every core is done: (core, event) that never happen, heads only."""

    waiting: tuple[tuple[int, int], ...]


class Engine(Protocol):
    """Decides questions about one instance; raises `Declined` where it cannot."""

    name: str

    def stuck(self) -> Stuck | None:
        """A reachable state in which nothing can happen and some core is not done, if there is one."""

    def completes(self) -> bool:
        """Whether some timing runs to its end."""

    def violated(self, obligations: Sequence[Obligation], *, one_each: bool = False) -> list[int]:
        """Indices of the obligations that some timing violates, ascending.

        With ``one_each`` an engine may stop at the first of each property and code.
        """
