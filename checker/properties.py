"""The properties: what is asked, in the order in which reports print it.

To add one: add a row here, produce its obligations (`obligations`) or its findings (`static`), and
a faulty and a safe protocol to the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Method(Enum):
    """How a property is decided."""

    DEADLOCK = "by the engines' search for a stuck state, and by arithmetic"
    ORDER = "by the engines, obligation by obligation"
    STATIC = "by counting and arithmetic over the events"
    BOTH = "by arithmetic, and by the engines for what depends on timing"


@dataclass(frozen=True, slots=True)
class Property:
    """One row of the report. ``at_end``: it speaks of the end of a run.

    ``between_launches``: only of runs with more than one launch.
    """

    name: str
    question: str
    method: Method
    at_end: bool = False
    between_launches: bool = False


_ROWS = (
    Property("deadlock-freedom", "Can some timing stop before every core is done?", Method.DEADLOCK),
    Property(
        "no-read-before-write",
        "Can a reader begin before the write it needs is complete, or find other data?",
        Method.ORDER,
    ),
    Property(
        "no-overwrite-before-read",
        "Can a put begin into bytes that an earlier tile's reader still needs?",
        Method.ORDER,
    ),
    Property("no-write-conflict", "Can two writes of the same bytes overlap in time?", Method.ORDER),
    Property(
        "completion",
        "Is a request ordered before a reader, or its core's end, but its completion is not?",
        Method.ORDER,
        at_end=True,
    ),
    Property("flag-balance", "Do the sets and waits of some counter differ in number?", Method.STATIC),
    Property(
        "flag-range",
        "Can an id leave its domain or meet a reserved one, or a counter pass its cap?",
        Method.BOTH,
    ),
    Property("barrier-match", "Do participants call a barrier different numbers of times?", Method.STATIC),
    Property("coverage", "Is an output or segment never delivered, or twice?", Method.STATIC, at_end=True),
    Property(
        "layout",
        "Does a range leave its region, overlap another area, wrap, or exceed a limit?",
        Method.STATIC,
    ),
    Property(
        "relaunch",
        "Can an operation of one launch meet one of the next in a way that breaks a memory row?",
        Method.ORDER,
        between_launches=True,
    ),
)

PROPERTIES: Mapping[str, Property] = {p.name: p for p in _ROWS}
"""The properties, by name, in report order."""


def rows_for(launches: int, chosen: Sequence[str] = ()) -> list[str]:
    """The names of the rows that a report on so many launches has: all, or those ``chosen``."""
    return [
        name
        for name, prop in PROPERTIES.items()
        if (not chosen or name in chosen) and (launches > 1 or not prop.between_launches)
    ]
