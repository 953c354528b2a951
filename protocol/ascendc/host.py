"""The host program's rules: from the shape of a problem to the parameters of its kernel.

`host_rules` reads the ``[host]`` table of facts; `HostRules.geometry` then rejects what the host
rejects and computes what it computes, by C's rules. Used by ``mc2proof plan`` and ``--shape``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..cinteger import C_NAMES, CType, fits
from ..errors import ParameterError, SourceError, UnsupportedError
from ..evaluate import evaluate
from ..expr import Expr, Var, VarKind, variables
from ..program import Role
from .declarations import Index
from .facts import SHAPE, Facts, HostFacts, HostReject
from .lowering import Lowering
from .parse import Sources
from .state import Shared
from .statements import LANGUAGE
from .texts import fact_expression
from .values import convert


class ShapeRefused(ParameterError):
    """A shape that the host program rejects, or of which nobody can say what it makes."""


class AreaWraps(SourceError):
    """Areas so large that their size does not fit the type that the rules compute it in."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the host makes of a shape: its own ``named`` values, and the kernel's ``parameters``."""

    shape: tuple[int, int, int]
    ranks: int
    named: Mapping[str, int]
    parameters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Area:
    """``count`` pieces of ``bytes`` bytes of the shared region."""

    name: str
    count: int
    bytes: int

    @property
    def total(self) -> int:
        """The bytes of all pieces."""
        return self.count * self.bytes


@dataclass(frozen=True, slots=True)
class HostRules:
    """The rules of one host program, ready to be computed. ``file`` is the facts file they are from."""

    file: str
    source: str
    region: str
    choices: frozenset[str]
    rejects: tuple[tuple[Expr, str], ...]
    undefined: tuple[tuple[Expr, str], ...]
    named: Mapping[str, Expr]
    parameters: Mapping[str, Expr]
    areas: tuple[tuple[str, Expr, Expr], ...]
    dropped: Expr

    def geometry(self, shape: tuple[int, int, int], ranks: int) -> Geometry:
        """What the host computes for ``shape``. Raises ShapeRefused where it computes nothing."""
        given = dict(zip((*SHAPE, "ranks"), (*shape, ranks), strict=True))
        for name, value in given.items():
            if not fits(CType.I32, value):
                raise ShapeRefused(name, value, "must fit an int, which the host program keeps it in")
        for rules, what in ((self.rejects, "rejects it"), (self.undefined, "cannot compute it")):
            for condition, reason in rules:
                if self._value(condition, given):
                    raise self._refused(shape, ranks, what, self._filled(reason, given))
        named, parameters = (
            {name: self._unwrapped(name, expr, given, shape, ranks) for name, expr in exprs.items()}
            for exprs in (self.named, self.parameters)
        )
        return Geometry(shape, ranks, named, parameters)

    def heap_areas(self, parameters: Mapping[str, int]) -> tuple[Area, ...]:
        """The areas of the shared region at the kernel's ``parameters``, in its order.

        Raises AreaWraps where a size does not fit its type, SourceError where one makes no sense.
        """
        return tuple(
            Area(
                name,
                self._size(f"the count of area {name}", count, parameters),
                self._size(f"the size of area {name}", size, parameters),
            )
            for name, count, size in self.areas
        )

    def dropped_rows(self, parameters: Mapping[str, int]) -> int:
        """The rows of A for each rank that no tile covers."""
        return self._size("the number of dropped rows", self.dropped, parameters)

    def _size(self, what: str, expr: Expr, given: Mapping[str, int]) -> int:
        value = self._value(expr, given)
        if value != self._value(expr, given, exact=True):
            raise AreaWraps(f"{self.file}: host: {what}, `{expr}`, wraps around")
        if value < 0:
            raise SourceError(f"{self.file}: host: {what}, `{expr}`, is negative: {value}")
        return value

    def _unwrapped(
        self, name: str, expr: Expr, given: Mapping[str, int], shape: tuple[int, int, int], ranks: int
    ) -> int:
        value, exact = self._value(expr, given), self._value(expr, given, exact=True)
        if value != exact:
            reason = f"{name} wraps around: C computes {value}, the exact value is {exact}"
            raise self._refused(shape, ranks, "makes no sense of it", reason)
        return value

    def _refused(self, shape: tuple[int, int, int], ranks: int, what: str, reason: str) -> ShapeRefused:
        text = f"the host program ({self.source}) {what} on {ranks} ranks: {reason}"
        return ShapeRefused("shape", ",".join(map(str, shape)), text)

    def _value(self, expr: Expr, given: Mapping[str, int], *, exact: bool = False) -> int:
        try:
            return evaluate(expr, given, exact=exact)
        except (ZeroDivisionError, ValueError) as error:
            reason = "division by zero" if isinstance(error, ZeroDivisionError) else error
            raise SourceError(f"{self.file}: host: `{expr}` cannot be computed: {reason}") from error

    def _filled(self, reason: str, given: Mapping[str, int]) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1]
            return str(given[name] if name in given else self._value(self.named[name], given))

        return _PLACEHOLDER.sub(value, reason)


_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def host_rules(facts: Facts) -> HostRules:
    """The rules in ``facts``. Raises SourceError if it has none, or one cannot be computed."""
    if facts.host is None:
        raise SourceError(
            f"{facts.file}: has no [host] table, so nothing says which parameters a shape gives: "
            "add one, or give the parameters themselves"
        )
    return _Reader(facts, facts.host).rules()


class _Reader:
    """Turns the texts of a ``[host]`` table into expressions."""

    def __init__(self, facts: Facts, host: HostFacts) -> None:
        self.facts = facts
        self.host = host
        self.lo = Lowering(Shared(Index(), Sources(), facts, 1), Role.AIV, LANGUAGE)
        self.names: dict[str, Expr] = {
            name: Var(name, CType.I32, VarKind.PARAMETER) for name in (*SHAPE, "ranks")
        }
        self.types: dict[str, CType] = dict.fromkeys(self.names, CType.I32)

    def rules(self) -> HostRules:
        host = self.host
        for value in host.values:
            ctype = C_NAMES[value.type]
            self.names[value.name] = convert(ctype, self.expression(value.value))
            self.types[value.name] = ctype
        kernel = {name: Var(name, CType.I64, VarKind.PARAMETER) for name in ("ranks", *host.parameters)}
        return HostRules(
            file=self.facts.file,
            source=host.source,
            region=host.region,
            choices=frozenset(host.choices),
            rejects=tuple(map(self.rule, host.rejects)),
            undefined=tuple(map(self.rule, host.undefined)),
            named={v.name: self.names[v.name] for v in host.values},
            parameters={name: self.parameter(name) for name in host.parameters},
            areas=tuple(
                (a.name, self.expression(a.count, kernel), self.expression(a.bytes, kernel))
                for a in host.areas
            ),
            dropped=self.expression(host.dropped, kernel),
        )

    def rule(self, reject: HostReject) -> tuple[Expr, str]:
        """The condition of ``reject`` and its reason."""
        for name in _PLACEHOLDER.findall(reject.reason):
            if name not in self.names:
                raise SourceError(f"{self.facts.file}: host.rejects: no value {{{name}}} to tell")
        return self.expression(reject.when), reject.reason

    def parameter(self, name: str) -> Expr:
        """What parameter ``name`` is; a choice is no choice where the shape decides."""
        expr = self.expression(self.host.parameters[name])
        if name in self.host.choices and any(True for _ in variables(expr)):
            raise SourceError(f"{self.facts.file}: host.choices: {name} is computed from the shape, `{expr}`")
        return expr

    def expression(self, text: str, names: Mapping[str, Expr] | None = None) -> Expr:
        """The expression that ``text`` is over the host's names, or over the kernel's parameters."""
        try:
            if names is not None:
                return fact_expression(self.lo, text, names)
            return fact_expression(self.lo, text, self.names, self.types)
        except UnsupportedError as error:
            raise SourceError(f"{self.facts.file}: host: `{text}`: {error.construct}") from error
