"""Facts: what a verdict needs of a kernel that its given sources do not say.

Types and values of struct fields, sizes, constants, arithmetic helpers, memory regions, the
contracts of opaque kernel calls and the host program's rules (`host`), as a TOML file. The
reference kernel's ships beside this module.
Every fact that is used ends up as an assumption of the protocol (`lowering.Usage`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import msgspec

from ..cinteger import C_NAMES
from ..errors import SourceError
from ..program import RegionKind


class ConstantFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A constant that the sources use and do not define."""

    type: str
    value: int


class FieldFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The type of a field of an opaque struct, its domain, and its value if one is taken for granted."""

    type: str = "uint32_t"
    value: int | None = None
    low: int = 0
    high: int | None = None
    meaning: str = ""


class ParameterFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A parameter that only facts mention, and its value unless one is given, over the others."""

    default: str
    low: int = 0
    high: int | None = None
    meaning: str = ""


class FunctionFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that is plain arithmetic: C++ parameters, result type and value."""

    parameters: tuple[str, ...]
    result: str
    value: str


class RegionFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a pointer parameter of a kernel points to; ``bytes`` is over parameters of the protocol."""

    name: str
    kind: str
    bytes: str | None = None
    alignment: int | None = None
    covered: bool = False


class WindowFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes that an opaque call reads or writes; a read's origin is an input of ``origin_rank``."""

    address: str
    bytes: str
    guard: str = "true"
    origin_rank: str | None = None
    origin_address: str | None = None


class ContractFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An opaque call: for each ``segment`` below ``segments`` all ``reads``, then the ``writes``."""

    name: str
    parameters: tuple[str, ...]
    segments: str
    segment: str = "s"
    read_pipe: str = "MTE2"
    write_pipe: str = "FIX"
    reads: tuple[WindowFact, ...] = ()
    writes: tuple[WindowFact, ...] = ()


class HostValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that the host program computes on the way, over its arguments and earlier values."""

    name: str
    type: str
    value: str


class HostReject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shape of which the host program makes nothing; ``{name}`` in the reason is the value of that name."""

    when: str
    reason: str


class HostArea(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An area of the shared region: ``count`` pieces of ``bytes`` bytes, over the kernel's parameters."""

    name: str
    bytes: str
    count: str = "1"


class HostFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the host program gets from the shape of a problem to the kernel's parameters.

    Its arguments are ``M``, ``K``, ``N`` and ``ranks``, each an int. ``rejects`` are what it refuses,
    ``undefined`` where what it computes has no defined value (an int overflows); both are tried in
    order, before anything else is computed. ``parameters`` are those of the kernel, by their final
    names. ``choices``: constants among them that its author chose, which a user may choose
    otherwise. ``source``: where the rules were read. ``region``: the name of the shared region, which
    ``areas`` fill from its begin on; ``dropped``: rows that no tile covers. These two are over the
    kernel's parameters and ``ranks``.
    """

    source: str
    parameters: dict[str, str]
    region: str
    areas: tuple[HostArea, ...]
    values: tuple[HostValue, ...] = ()
    rejects: tuple[HostReject, ...] = ()
    undefined: tuple[HostReject, ...] = ()
    choices: tuple[str, ...] = ()
    dropped: str = "0"


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A facts file. The keys of each table are names as the sources write them.

    ``fields`` are keyed by the end of the path (``tiling.m``), ``field_order`` by opaque type
    (``"uint32_t rank"`` gives a field a type as well), ``regions`` by kernel parameter, ``contracts``
    by class (its call operator), ``Class::method`` or function. ``plain_types`` are those whose
    constructors and destructors do nothing; an object of any other unknown type is refused.
    ``parameters`` are those that only sizes and contracts here mention, by the name that they have
    in the protocol, int64_t; their defaults, and sizes, are over final names (``tile_cnt``).
    """

    file: str = "facts"
    sizes: dict[str, int] = {}
    constants: dict[str, ConstantFact] = {}
    fields: dict[str, FieldFact] = {}
    field_order: dict[str, tuple[str, ...]] = {}
    plain_types: tuple[str, ...] = ()
    functions: dict[str, FunctionFact] = {}
    parameters: dict[str, ParameterFact] = {}
    regions: dict[str, RegionFact] = {}
    contracts: dict[str, ContractFact] = {}
    host: HostFacts | None = None

    def field(self, path: str) -> tuple[str, FieldFact] | None:
        """The fact whose key is the longest end of ``path``, in whole names."""
        parts = path.split(".")
        for start in range(len(parts)):
            key = ".".join(parts[start:])
            if key in self.fields:
                return key, self.fields[key]
        return None


REFERENCE = "reference_facts.toml"


def load_facts(path: Path) -> Facts:
    """Read a facts file. Raises SourceError that names the file and what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SourceError(f"{path}: {reason or error}") from error
    return parse_facts(text, str(path))


def reference_facts() -> Facts:
    """The facts about the reference kernel, as shipped."""
    return parse_facts((files(__package__) / REFERENCE).read_text(encoding="utf-8"), REFERENCE)


def parse_facts(text: str, name: str) -> Facts:
    """Facts from TOML text; ``name`` is what errors and assumptions call the file."""
    try:
        facts = msgspec.toml.decode(text, type=Facts)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SourceError(f"{name}: {error}") from error
    facts = msgspec.structs.replace(facts, file=name)
    _check(facts, name)
    return facts


def _check(facts: Facts, name: str) -> None:
    """Refuse values that the tables' types cannot rule out."""

    def expect(condition: bool, where: str, message: str) -> None:
        if not condition:
            raise SourceError(f"{name}: {where}: {message}")

    kinds = ", ".join(kind.name.lower() for kind in RegionKind)
    for key, size in facts.sizes.items():
        expect(size > 0, f"sizes.{key}", f"{size} is no size")
    for key, constant in facts.constants.items():
        expect(constant.type in C_NAMES, f"constants.{key}", f"no integer type {constant.type}")
    for key, field in facts.fields.items():
        expect(field.type in C_NAMES, f"fields.{key}", f"no integer type {field.type}")
    for key, function in facts.functions.items():
        expect(function.result in C_NAMES, f"functions.{key}", f"no integer type {function.result}")
    for key, region in facts.regions.items():
        expect(
            region.kind.upper() in RegionKind.__members__,
            f"regions.{key}",
            f"kind {region.kind} is none of {kinds}",
        )
        expect(
            region.alignment is None or region.alignment > 0,
            f"regions.{key}",
            f"alignment {region.alignment}",
        )
    if facts.host is not None:
        _check_host(facts.host, expect)


SHAPE = ("M", "K", "N")
"""The host's arguments that make a shape; with ``ranks`` they are all that its rules start from."""


def _check_host(host: HostFacts, expect: Callable[[bool, str, str], None]) -> None:
    expect(bool(host.source.strip()), "host.source", "is empty: say where the rules were read")
    expect(bool(host.areas), "host.areas", "is empty: say what the shared region is used for")
    taken = {*SHAPE, "ranks"}
    for value in host.values:
        place = f"host.values.{value.name}"
        expect(value.name.isidentifier(), place, "is no name")
        expect(value.name not in taken, place, "is the name of an argument or of an earlier value")
        expect(value.type in C_NAMES, place, f"no integer type {value.type}")
        taken.add(value.name)
    for number, reject in enumerate((*host.rejects, *host.undefined), 1):
        expect(bool(reject.reason.strip()), f"host.rejects, entry {number}", f"no reason for `{reject.when}`")
    expect("ranks" not in host.parameters, "host.parameters.ranks", "is given to the host, not computed")
    for name in host.choices:
        expect(name in host.parameters, "host.choices", f"{name} is none of host.parameters")
    for area in host.areas:
        expect(bool(area.name.strip()), "host.areas", "an area without a name")
