"""`minimize`, for Python programs: which synchronisations are needed, and what mends a VIOLATED kernel.

The work is done in `checker.minimize`; here inputs are validated and named, as in `face`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mc2proof import checks
from mc2proof.face import Source, chosen_protocols, facts_of, limits_of, named_values, setup_of
from mc2proof.protocol.profile import BarrierAll, Profile
from mc2proof.protocol.program import Protocol
from mc2proof.shape import one_program, shaped
from mc2proof.values import check_names

if TYPE_CHECKING:
    from mc2proof.checker.minimize import Minimized


def minimize(
    protocols: Protocol | Source | Sequence[Protocol | Source] = (),
    *,
    ranks: int | None = None,
    buffer_size: int | None = None,
    tile_cnt: int | None = None,
    blocks: int | None = None,
    profile: str | Profile = "ascend950",
    barrier_all: str | BarrierAll | None = None,
    strict_ids: bool = False,
    launches: int = 1,
    clear_flags: bool = False,
    merge_flags: bool = False,
    cores: int | None = None,
    matmul_objects: int | None = None,
    faults: Sequence[str] = (),
    settings: Mapping[str, int | Sequence[int]] | None = None,
    shape: tuple[int, int, int] | None = None,
    facts: Source | None = None,
    max_events: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Minimized:
    """What each flag, barrier and quiet of ``protocols`` (of one program) is needed for.

    The arguments are those of `prove`. Each synchronisation, and those that belong together, are taken
    out and the rest is judged at the given values and at some beside them; a VIOLATED program is given
    the smallest edits that make it PROVED at the given values. Nothing is said of other values.

    Raises Mc2proofError for bad input, EngineDisagreement where two engines differ.
    """
    checks.caller("progress", progress)
    setup = setup_of(profile, barrier_all, launches, clear_flags, merge_flags, cores, matmul_objects, faults)
    checks.flag("strict_ids", strict_ids)
    limits = limits_of(max_events, None)
    chosen = one_program(chosen_protocols(protocols, facts, shaped=shape is not None), "minimize takes")
    values = named_values(
        {"ranks": ranks, "blocks": blocks, "buffer_size": buffer_size, "tile_cnt": tile_cnt}, settings
    )
    check_names(values, [chosen])
    if shape is not None:
        (chosen,), values, _, _ = shaped([chosen], values, shape, facts_of(facts))

    from mc2proof.checker.cases import Question
    from mc2proof.checker.minimize import minimized

    return minimized(chosen, values, Question(setup, strict_ids, limits), progress)
