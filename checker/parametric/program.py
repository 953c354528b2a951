"""A `Program`: a protocol for all values of a domain, its sites, and what is proved of them first.

Before anything about order can be asked: that C computes what the expressions say, that all members call
the barriers alike, and which set releases which wait. Proved by `study`, step by step; where a step is
declined with a reason, only what rests on the steps before it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...protocol.closed_forms import closed_forms
from ...protocol.errors import UnsupportedError
from ...protocol.expr import Expr, Var, variables
from ...protocol.instance import Kind
from ...protocol.profile import STREAM_ORDER
from ...protocol.program import Origin, Protocol, Put, Quiet, Role, SetFlag, WaitFlag, Window
from ...protocol.setup import Setup
from ...protocol.unroll import barrier_forms, launched_roles
from .domain import Domain
from .polynomial import Poly
from .sites import Site, absent_of, sites_of
from .solve import Solver
from .translate import flag_id


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The event of ``set`` whose turns are those of an event of ``wait`` less ``shift`` releases it.

    ``balanced``: every set releases a wait.
    """

    set: Site
    wait: Site
    shift: tuple[Poly, ...]
    balanced: bool = True


@dataclass(slots=True)
class Program:
    """``sites`` in program order of each role; ``roles`` those that have cores.

    ``absent``: sets and waits that compile to nothing, of which the arithmetic is looked at.
    """

    protocol: Protocol
    setup: Setup
    domain: Domain
    roles: tuple[Role, ...]
    sites: tuple[Site, ...]
    solver: Solver
    matches: list[Match] = field(default_factory=list)
    absent: tuple[Site, ...] = ()

    def sites_of(self, role: Role) -> list[Site]:
        """The sites of ``role``."""
        return [site for site in self.sites if site.role is role]

    def of_kind(self, *kinds: Kind) -> list[Site]:
        """The sites of some kinds."""
        return [site for site in self.sites if site.kind in kinds]

    def barriers(self) -> list[Site]:
        """The barriers that the program calls."""
        return [s for s in self.of_kind(Kind.BARRIER) if s.barrier is not STREAM_ORDER]


def numbers_of(site: Site) -> Iterator[Expr]:
    """The expressions of an operation, but for those of its windows."""
    match site.operation:
        case SetFlag(flag=flag) | WaitFlag(flag=flag):
            yield flag_id(flag)
        case Put(peer=peer, target=target, source=source, bytes=size):
            yield from (peer, target.offset, source.offset, size)
        case Quiet(peer=peer):
            yield peer


def numbers_in(window: Window) -> Iterator[Expr]:
    """Those of a window, but for its guard."""
    yield from (window.address.offset, window.bytes)
    if isinstance(window.origin, Origin):
        yield from (window.origin.rank, window.origin.address.offset)


def _check_alike(sites: Sequence[Site]) -> None:
    """Refuse AIVs of one block that differ, or that write: one of them is looked at for all."""
    for site in sites:
        if site.role is Role.AIV and site.kind in (Kind.PUT, Kind.QUIET, Kind.WRITE):
            raise UnsupportedError("what is written by several AIVs a block, for all values,", site.span)
        bounds = [(bound, loop.span) for loop in site.loops for bound in (loop.start, loop.stop)]
        guards = [(guard.condition, guard.span) for guard in site.guards]
        inner = [(expr, site.span) for expr in numbers_of(site)]
        for window in site.windows:
            inner += [(expr, site.span) for expr in (window.guard, *numbers_in(window))]
        for expr, span in (*bounds, *guards, *inner):
            if any(isinstance(v, Var) and v.name == "sub" for v in variables(expr)):
                raise UnsupportedError("what differs among several AIVs a block, for all values,", span)


_HANDLED_MODES = frozenset({2})


def read_program(protocol: Protocol, setup: Setup, domain: Domain, rlimit: int) -> Program:
    """The program of ``protocol``, not yet studied.

    Raises UnsupportedError, with the place, for what the parametric engine does not follow.
    """
    forms = barrier_forms(protocol, setup)
    roles = tuple(launched_roles(protocol, forms))
    closed = closed_forms(protocol, domain.power_names)
    sites = sites_of(closed, setup, forms, roles)
    absent = absent_of(closed, setup, forms, roles)
    if protocol.vectors_per_cube > 1:
        _check_alike((*sites, *absent))
    for site in sites:
        mode = getattr(site.operation, "mode", None)
        if site.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) and mode not in _HANDLED_MODES:
            raise UnsupportedError(f"a flag of mode {mode} for all values", site.span)
    if setup.faults:
        raise UnsupportedError("an injected fault for all values")
    if setup.profile.flags_merge:
        raise UnsupportedError("merging flags for all values")
    return Program(protocol, setup, domain, roles, tuple(sites), Solver(rlimit), absent=tuple(absent))
