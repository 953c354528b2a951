"""From an entry function to a `Protocol`: arguments, both roles, parameters, regions, assumptions.

Used by the package's `load_sources`. Read `lowering` for how a role is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..cinteger import CType
from ..errors import SourceError, UnsupportedError
from ..expr import Expr
from ..program import (
    Address,
    Assumption,
    Block,
    Compute,
    Get,
    Parameter,
    Protocol,
    Put,
    PutSignal,
    Region,
    RegionKind,
    Reset,
    Role,
    Signal,
    Span,
    WaitUntil,
    Write,
    statements,
)
from ..rewrite import renamed
from .contracts import BLOCKS, RANKS, fact_parameters
from .declarations import FunctionDecl, Index
from .facts import Facts, RegionFact
from .inline import parameter_type
from .lowering import Lowering
from .naming import final_names, mentioned_parameters, parameter_names, pruned, snake_case
from .parse import Sources
from .state import Frame, Shared
from .statements import LANGUAGE
from .texts import fact_expression
from .types import VOID, ClassType, Context, IntType, OpaqueType, PointerType, Type
from .values import ZERO, Opaque, PlacePointer, Pointer, Value

FIRST = ("ranks", "blocks", "buffer_size", "tile_cnt")
"""Parameters that come first; the others follow by name."""

RATIOS = {(1, 1): 1, (1, 2): 2}
"""Core ratios (cubes, vectors) with both roles; an entry for one role has only that one."""


def protocol_of(entry: FunctionDecl, index: Index, sources: Sources, facts: Facts) -> Protocol:
    """The protocol that ``entry`` runs."""
    entry.check()
    if entry.templates:
        raise UnsupportedError(f"{entry.name}, an entry that is a template", entry.span)
    roles, ratio, assumptions = _roles(entry)
    shared = Shared(index, sources, facts, ratio)
    builder = _Builder(entry, shared)
    programs = {role: builder.program(role) for role in roles}
    return builder.protocol(programs, assumptions)


def _roles(entry: FunctionDecl) -> tuple[tuple[Role, ...], int, list[Assumption]]:
    """The roles that run ``entry``, its AIVs per AIC, and what was assumed about them."""
    start = entry.declarator.start_byte
    text = entry.source.prepared.text
    given = [
        ratio
        for offset, ratio in entry.source.prepared.ratios
        if offset < start and not any(mark in text[offset:start] for mark in b";{}")
    ]
    elsewhere = _declared_ratio(entry)
    if elsewhere is not None:
        raise UnsupportedError(f"a core ratio of {entry.name} before a mere declaration", elsewhere)
    if not given:
        note = f"{entry.name} has no core ratio: taken as 1 AIC with 1 AIV"
        return (Role.AIV, Role.AIC), 1, [Assumption("core-ratio", note)]
    if len(set(given)) > 1:
        raise SourceError(f"{entry.name} has more than one core ratio", entry.span)
    if given[-1] in ((0, 1), (1, 0)):
        return (Role.AIV if given[-1] == (0, 1) else Role.AIC,), 1, []
    if given[-1] not in RATIOS:
        cubes, vectors = given[-1]
        raise SourceError(f"core ratio {cubes}:{vectors}", entry.span)
    return (Role.AIV, Role.AIC), RATIOS[given[-1]], []


def _declared_ratio(entry: FunctionDecl) -> Span | None:
    """Where a core ratio stands before a declaration of ``entry`` without body, in its file."""
    name = re.compile(rb"\b" + re.escape(entry.name.encode()) + rb"\s*\(")
    text = entry.source.prepared.text
    for offset, _ in entry.source.prepared.ratios:
        head = re.compile(rb"[^;{}]*").match(text, offset)
        if head is not None and name.search(head[0]) and text[head.end() : head.end() + 1] == b";":
            return entry.source.span_at(offset)
    return None


class _Builder:
    """Collects what the roles of one entry need."""

    def __init__(self, entry: FunctionDecl, shared: Shared) -> None:
        self.entry = entry
        self.shared = shared
        self.regions: dict[str, tuple[str, RegionFact | None]] = {}
        self.guessed_kinds: list[str] = []

    # --- roles ------------------------------------------------------------------------------

    def program(self, role: Role) -> Block:
        """Execute the entry as ``role``."""
        lo = Lowering(self.shared, role, LANGUAGE)
        context = Context(self.entry.source, self.entry.namespace)
        frame = Frame(context, function=self.entry)
        with lo.entered(frame, self.entry.node):
            for parameter in self.entry.parameters:
                name, wanted, _ = parameter_type(lo, parameter, context)
                place = lo.declare(name, wanted)
                lo.store[place.location] = self.argument(lo, name, wanted)
            lo.execute(self.entry.body)
        return pruned(tuple(lo.out))

    def argument(self, lo: Lowering, name: str, wanted: Type | None) -> Value:
        """What a kernel argument is: a region, an object whose fields are parameters, a number."""
        if isinstance(wanted, PointerType):
            target = wanted.target
            if self.is_memory(target):
                return Pointer(self.region(name), ZERO, target)
            place = lo.new_place(name, target)
            lo.store[place.location] = Opaque(name, target)
            return PlacePointer(place)
        if isinstance(wanted, IntType):
            return lo.parameter(name, wanted, self.entry.node)
        return Opaque(name, wanted)

    def is_memory(self, target: Type) -> bool:
        """Whether a pointer to ``target`` is to bytes, rather than to a struct of numbers."""
        if isinstance(target, OpaqueType):
            return target == VOID or target.name in ("half", "float", *self.shared.facts.sizes)
        return not isinstance(target, ClassType)

    def region(self, parameter: str) -> str:
        """The region that pointer ``parameter`` points to."""
        fact = self.shared.facts.regions.get(parameter)
        if parameter not in self.regions:
            name = fact.name if fact is not None else snake_case(parameter)
            taken = [p for p, (other, _) in self.regions.items() if other == name]
            if taken:
                raise SourceError(
                    f"two regions would be called {name}: {taken[0]} and {parameter}",
                    self.entry.span,
                )
            self.regions[parameter] = (name, fact)
        return self.regions[parameter][0]

    # --- the whole --------------------------------------------------------------------------

    def protocol(self, programs: dict[Role, Block], assumptions: list[Assumption]) -> Protocol:
        """Put the protocol together and give everything its name."""
        used = mentioned_parameters(programs.values())
        sizes = {parameter: self.size(parameter, used) for parameter in self.regions}
        nodes: list[object] = [*programs.values(), *(s for s in sizes.values() if s is not None)]
        defaults = self.defaults(mentioned_parameters(nodes))
        names = parameter_names(mentioned_parameters([*nodes, *defaults.values()]))
        kinds = region_kinds(programs.values())
        regions = tuple(
            self.final_region(parameter, sizes[parameter], names, kinds) for parameter in self.regions
        )
        return Protocol(
            name=self.entry.name,
            parameters=self.parameters(names, defaults),
            regions=regions,
            programs={role: final_names(block, names) for role, block in programs.items()},
            vectors_per_cube=self.shared.vectors_per_cube,
            assumptions=(*assumptions, *self.assumptions(names)),
            files=tuple(file.name for file in self.shared.sources.files),
            subjects=(self.entry.name,),
        )

    def size(self, parameter: str, used: list[str]) -> Expr | None:
        """The bytes of a region."""
        fact = self.regions[parameter][1]
        return None if fact is None or fact.bytes is None else self.fact_value(fact.bytes, used)

    def defaults(self, paths: list[str]) -> dict[str, Expr]:
        """The default of each parameter that only facts mention."""
        facts = self.shared.facts.parameters
        return {path: self.fact_value(facts[path].default, paths) for path in paths if path in facts}

    def fact_value(self, text: str, used: list[str]) -> Expr:
        """An expression of the facts, computed in int64_t over parameters of the protocol."""
        lo = Lowering(self.shared, Role.AIV, LANGUAGE)
        # by final name: what facts alone know, then the sources' fields, then those in use
        paths = (*self.shared.facts.fields, *self.shared.parameters, *used)
        names = {snake_case(p.rsplit(".", 1)[-1]): lo.parameter(p, None, self.entry.node) for p in paths}
        own = fact_parameters(lo)
        return fact_expression(lo, text, {"ranks": RANKS, "blocks": BLOCKS, **own, **names})

    def final_region(
        self,
        parameter: str,
        size: Expr | None,
        names: dict[str, str],
        kinds: dict[str, RegionKind],
    ) -> Region:
        """The region as it is reported; without a fact its kind is what the programs do with it."""
        name, fact = self.regions[parameter]
        if fact is None:
            guess = kinds.get(name, RegionKind.INPUT)
            self.guessed_kinds.append(f"{parameter} is taken to point to {guess.name.lower()} memory")
            return Region(name, guess)
        kind = RegionKind[fact.kind.upper()]
        if size is not None:
            size = in_final_names(size, names)
        self.shared.usage.facts["region", parameter] = (
            f"{parameter} is the {kind.name.lower()} region {name}"
            + (f" of {fact.bytes} bytes" if fact.bytes else "")
            + (f", aligned to {fact.alignment}" if fact.alignment else "")
        )
        return Region(name, kind, size, fact.alignment, fact.covered)

    def parameters(self, names: dict[str, str], defaults: dict[str, Expr]) -> tuple[Parameter, ...]:
        """The parameters that the protocol mentions, in the order that reports have."""
        found = {
            "ranks": Parameter("ranks", low=1, type=CType.I32, meaning="processing elements"),
            "blocks": Parameter("blocks", low=1, meaning="blocks launched on each rank; ranks by default"),
        }
        for path, name in names.items():
            found[name] = replace(self.shared.parameters[path], name=name)
            if path in defaults:
                found[name] = replace(found[name], default=in_final_names(defaults[path], names))
        order = {name: position for position, name in enumerate(FIRST)}
        return tuple(found[n] for n in sorted(found, key=lambda n: (order.get(n, len(order)), n)))

    def assumptions(self, names: dict[str, str]) -> Iterable[Assumption]:
        """What the protocol rests on beyond the sources, in a fixed order."""
        usage, file = self.shared.usage, self.shared.facts.file
        missing = self.shared.sources.missing
        if missing:
            listed = ", ".join(f'"{name}"' for name in missing)
            yield Assumption("include-not-found", f"nothing that matters is in {listed} (see -I)")
        for path in sorted(names):
            parameter = self.shared.parameters[path]
            if path in self.shared.facts.parameters:
                default = self.shared.facts.parameters[path].default
                yield Assumption("fact", f"{file}: {names[path]} is {default} unless it is given")
            elif parameter.from_facts:
                yield Assumption(
                    "fact", f"{file}: {names[path]} ({path}) is {parameter.default} unless it is given"
                )
            elif path in usage.field_types:
                yield Assumption("field-type", usage.field_types[path])
        for text in self.guessed_kinds:
            yield Assumption("region-kind", text)
        for key in sorted(usage.facts):
            yield Assumption("fact", f"{file}: {usage.facts[key]}")
        for pointer in sorted(usage.non_null):
            yield Assumption("non-null", f"the address of {pointer} that the kernel is given is not null")
        for place in sorted(usage.contracts):
            yield Assumption("contract", usage.contracts[place])
        if usage.contracts:
            text = "which rows, segments and buffers an opaque call means is taken from its own arguments"
            yield Assumption("contract-arguments", text)
            yield Assumption("every-block-has-output", "every launched block has output in every opaque call")


def in_final_names(expr: Expr, names: dict[str, str]) -> Expr:
    """``expr`` with the parameters called as the protocol calls them."""
    return renamed(expr, lambda v: replace(v, name=names.get(v.name, v.name)))


def region_kinds(programs: Iterable[Block]) -> dict[str, RegionKind]:
    """What the programs' use of each region says: reached by peers it is shared, written an output."""
    kinds: dict[str, RegionKind] = {}
    for program in programs:
        for statement in statements(program):
            shared: tuple[Address, ...] = ()
            written: tuple[Address, ...] = ()
            match statement:
                case Put(target=target):
                    shared = (target,)
                case PutSignal(target=target, word=word):
                    shared = (target, word)
                case Get(target=target, source=source):
                    shared, written = (source,), (target,)
                case Signal(word=word) | WaitUntil(word=word) | Reset(word=word):
                    shared = (word,)
                case Write(window=window):
                    written = (window.address,)
                case Compute(writes=windows):
                    written = tuple(window.address for window in windows)
            for address in written:
                kinds.setdefault(address.region, RegionKind.OUTPUT)
            for address in shared:
                kinds[address.region] = RegionKind.SHARED
    return kinds
