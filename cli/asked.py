"""What `why` and `export` ask: one program for all values of some parameters, decided.

The selection is that of `prove --for-all`; parameters that are not named are free if no value is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mc2proof import checks
from mc2proof.face import Source, chosen_protocols, facts_of, named_values, setup_of
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.evaluate import Value
from mc2proof.protocol.program import Protocol
from mc2proof.shape import one_program, shaped
from mc2proof.values import check_names

if TYPE_CHECKING:
    from mc2proof.checker.parametric.decide import Decided

USUAL = ("ranks", "tile_cnt", "buffer_size")
"""What is free where nothing is named and no value is given."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One program, decided for all values."""

    protocol: Protocol
    values: dict[str, Value]
    strict_ids: bool
    found: Decided


def decided(
    protocols: Protocol | Source | Sequence[Protocol | Source], properties: Sequence[str], what: str,
    *, first: str | None = None, for_all: Sequence[str] = (), assume: Sequence[str] = (),
    strict_ids: bool = False, shape: tuple[int, int, int] | None = None, facts: Source | None = None,
    keep: bool = False, settings: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None, **hardware: Any,
) -> Decision:  # fmt: skip
    """Decide ``properties`` (all, if none are named) for all values. ``what`` begins the message of an error;
    ``first`` is a property that has to be among them.

    Raises Mc2proofError for bad input, and for what is not decided for all values.
    """
    setup = setup_of(**hardware)
    chosen = one_program(chosen_protocols(protocols, facts, shaped=shape is not None), what)
    values = named_values({}, settings)
    check_names(values, [chosen])
    if shape is not None:
        (chosen,), values, _, _ = shaped([chosen], values, shape, facts_of(facts))
    free = list(for_all) or [n for n in USUAL if chosen.parameter(n) is not None and n not in values]
    if not free:
        raise ParameterError("for-all", None, "name a parameter that has no value")

    from mc2proof.checker.parametric.decide import decide
    from mc2proof.checker.parametric.domain import domain_of
    from mc2proof.checker.parametric.forall import RLIMIT, check_possible
    from mc2proof.checker.parametric.sites import LAUNCHES
    from mc2proof.checker.properties import PROPERTIES, rows_for

    several = 2 if LAUNCHES in free else setup.launches
    for name in (*properties, *([first] if first is not None else [])):
        checks.one_of("property", "property", name, PROPERTIES)
        if not rows_for(several, [name]):
            raise ParameterError("property", name, "is about several launches (--for-all launches)")
    domain = domain_of(chosen, free, values, assume, setup.launches)
    check_possible(domain)
    found = decide(
        chosen, setup, domain, rows_for(several, properties), strict_ids=strict_ids,
        rlimit=RLIMIT, progress=progress, keep=keep,
    )  # fmt: skip
    return Decision(chosen, values, strict_ids, found)
