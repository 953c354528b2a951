"""What a proof run says: verdicts, findings, counterexamples. Plain data that becomes the JSON.

`prove` fills it in, the command line prints it. Field names and order are those of the published
schema (``schema_version``); change one only together with the schema and its version.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from ..protocol.setup import Setup

SCHEMA_VERSION = 3


class Verdict(Enum):
    """The answer to one property; never merged with another. In order of precedence of exit codes."""

    VIOLATED = "VIOLATED"  # some timing breaks it; there is a finding
    UNKNOWN = "UNKNOWN"  # a named limit was reached first
    UNSUPPORTED = "UNSUPPORTED"  # a construct on the way is not decided; the reason names it
    VACUOUS = "VACUOUS"  # the instance has nothing that the property speaks of
    PROVED = "PROVED"  # holds in every timing, under the printed assumptions

    @property
    def exit_code(self) -> int:
        """The exit code that a report with this as its first verdict ends with."""
        return {"VIOLATED": 1, "PROVED": 0}.get(self.value, 3)


class Severity(Enum):
    """How much a finding weighs: errors make a property VIOLATED, warnings do not."""

    ERROR = "error"
    WARNING = "warning"


class Step(msgspec.Struct, frozen=True):
    """One shown step of a timing."""

    core: str
    pipe: str
    operation: str
    file: str
    line: int


class Counterexample(msgspec.Struct, frozen=True):
    """The shortest bad timing found: its own parameters, its steps, and a trace to replay.

    ``conflict`` says in sentences what goes wrong at the end.
    """

    parameters: dict[str, int | list[int]]
    launches: int
    conflict: list[str]
    steps: list[Step]
    trace: str | None


class Finding(msgspec.Struct, frozen=True):
    """One fault, or one warning, with the place it points at and the document its rule is from."""

    code: str
    severity: Severity
    message: str
    file: str
    line: int
    source_doc: str
    counterexample: Counterexample | None = None


class RegionUse(msgspec.Struct, frozen=True):
    """How many bytes of a symmetric region would do, and how many it has (None: not known)."""

    region: str
    needed: int
    bytes: int | None


class Result(msgspec.Struct, frozen=True):
    """The verdict on one property for one group of subjects with equal programs.

    ``memory``, of the layout row only: the smallest sizes that suffice.
    """

    subjects: list[str]
    property: str
    verdict: Verdict
    scope: str
    engines: list[str]
    holds_when: str | None
    reason: str | None
    findings: list[Finding]
    certificate: str | None = None
    memory: list[RegionUse] = []


class AssumptionNote(msgspec.Struct, frozen=True):
    """Something the verdicts rest on."""

    code: str
    text: str
    warning: bool = False


class Tool(msgspec.Struct, frozen=True):
    """Which versions answered; ``z3`` is None where it was not asked."""

    version: str
    z3: str | None


class ProgramNote(msgspec.Struct, frozen=True):
    """What was checked. ``digest`` is that of the first group of subjects."""

    digest: str
    files: list[str]


class RunSetup(msgspec.Struct, frozen=True):
    """What a run was asked to assume besides its parameters and profile; the defaults are the usual.

    ``barrier_all`` None: not said. ``cores`` None: not known.
    """

    barrier_all: str | None = None
    strict_ids: bool = False
    launches: int = 1
    flags_cleared: bool = False
    flags_merge: bool = False
    cores: int | None = None
    matmul_objects: int = 0
    faults: list[str] = []


def run_setup(setup: Setup, *, strict_ids: bool) -> RunSetup:
    """``setup`` as a report says it."""
    return RunSetup(
        barrier_all=None if setup.barrier_all is None else setup.barrier_all.value,
        strict_ids=strict_ids,
        launches=setup.launches,
        flags_cleared=setup.flags_cleared,
        flags_merge=setup.profile.flags_merge,
        cores=setup.profile.cores,
        matmul_objects=setup.profile.matmul_objects,
        faults=sorted(fault.value for fault in setup.faults),
    )


class Range(msgspec.Struct, frozen=True):
    """All values of a parameter: from ``min`` to ``max`` (None: without end), or what ``equals`` computes."""

    min: int
    max: int | None
    equals: str | None = None


class Report(msgspec.Struct, frozen=True):
    """A whole run."""

    tool: Tool
    program: ProgramNote
    parameters: dict[str, int | list[int] | Range]
    profile: str
    setup: RunSetup
    assumptions: list[AssumptionNote]
    results: list[Result]
    timing: dict[str, float]
    schema_version: int = SCHEMA_VERSION

    def exit_code(self) -> int:
        """1 any VIOLATED; else 3 any UNKNOWN, UNSUPPORTED or VACUOUS; else 0."""
        return max((r.verdict.exit_code for r in self.results), key=_SEVERITY.index, default=0)

    def verdict(self, name: str) -> Verdict:
        """The verdict on property ``name`` of the first group. Raises KeyError."""
        for result in self.results:
            if result.property == name:
                return result.verdict
        raise KeyError(name)

    def to_json(self) -> str:
        """The report in the published format, keys in schema order."""
        first = ("schema_version",)
        plain: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_value)
        ordered = {k: plain[k] for k in first} | {k: v for k, v in plain.items() if k not in first}
        return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode()


_SEVERITY = [0, 3, 1]


def _value(item: object) -> object:
    if isinstance(item, Enum):
        return item.value
    raise TypeError(f"cannot encode {item!r}")
