"""`sweep`, for Python programs: which of many configurations are safe, and how long they take.

The work is done in `checker.sweep`; here inputs are validated and named, as in `face`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mc2proof import checks
from mc2proof.face import Source, chosen_protocols, facts_of, named_values, setup_of
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.profile import BarrierAll, Profile
from mc2proof.protocol.program import Protocol
from mc2proof.shape import one_program, shaped
from mc2proof.values import check_names

if TYPE_CHECKING:
    from mc2proof.swept import Sweep


def sweep(
    axes: Mapping[str, Sequence[int]],
    protocols: Protocol | Source | Sequence[Protocol | Source] = (),
    *,
    shape: tuple[int, int, int] | None = None,
    costs: Source | None = None,
    cache: Source | None = None,
    jobs: int = 1,
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
    facts: Source | None = None,
    progress: Callable[[str], None] | None = None,
) -> Sweep:
    """What is safe, and how long it takes, at every combination of the values in ``axes``.

    ``axes`` are parameters by name, the last changing fastest. ``costs`` is a TOML file with the
    fields of `checker.costs.Costs`; without it, times are from made-up ones. ``cache``: a folder
    that keeps results; ``jobs``: processes (a program that asks for several must not begin work when
    it is imported). With ``shape`` the host's rules compute the other parameters. The other
    arguments are those of `prove`.

    Raises Mc2proofError for bad input.
    """
    from mc2proof import __version__
    from mc2proof.checker.costs import DEFAULT, load_costs
    from mc2proof.checker.parametric.answer import answer
    from mc2proof.checker.sweep import Job
    from mc2proof.checker.sweep import sweep as run
    from mc2proof.swept import grid_of, made

    checks.caller("progress", progress)
    setup = setup_of(profile, barrier_all, launches, clear_flags, merge_flags, cores, matmul_objects, faults)
    checks.flag("strict_ids", strict_ids)
    program = one_program(chosen_protocols(protocols, facts, shaped=shape is not None), "sweep takes")
    fixed = named_values({"blocks": blocks}, settings)
    twice = next((name for name in axes if name in fixed), None)
    if twice is not None:
        raise ParameterError(twice, None, "is swept, and given a value as well: leave one out")
    check_names({**fixed, **dict.fromkeys(axes, 0)}, [program])
    grid = grid_of(axes, fixed)
    if shape is not None:
        known = facts_of(facts)
        grid = [shaped([program], values, shape, known)[1] for values in grid]
    used = DEFAULT if costs is None else load_costs(Path(checks.path("costs", costs)))
    job = Job(
        program, setup, used, strict_ids, answer, version=__version__,
        cache=None if cache is None else checks.path("cache", cache),
    )  # fmt: skip
    found = run(job, grid, jobs=checks.whole("jobs", jobs, 1), progress=progress)
    subject = ", ".join(program.subjects or (program.name,))
    return made(subject, program.digest(), setup.profile.name, shape, used, costs is None, axes, found)
