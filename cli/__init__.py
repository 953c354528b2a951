"""mc2proof: a formal protocol checker for Ascend MC2 kernels.

The public face: everything a program that uses mc2proof needs, by name. Names are looked up at
first use, so that importing the package, or only `mc2proof.protocol`, loads no solver. Start at
`face` for what `load` and `prove` do; the command line is `command`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mc2proof.certified import audit as audit
    from mc2proof.checker.ask import EngineDisagreement as EngineDisagreement
    from mc2proof.checker.minimize import Minimized as Minimized
    from mc2proof.checker.plan import Plan as Plan
    from mc2proof.checker.report import AssumptionNote as AssumptionNote
    from mc2proof.checker.report import Counterexample as Counterexample
    from mc2proof.checker.report import Finding as Finding
    from mc2proof.checker.report import Report as Report
    from mc2proof.checker.report import Result as Result
    from mc2proof.checker.report import Severity as Severity
    from mc2proof.checker.report import Step as Step
    from mc2proof.checker.report import Verdict as Verdict
    from mc2proof.face import load as load
    from mc2proof.face import plan as plan
    from mc2proof.face import prove as prove
    from mc2proof.minimizing import minimize as minimize
    from mc2proof.protocol.builder import ProtocolBuilder as ProtocolBuilder
    from mc2proof.protocol.builder import RoleBuilder as RoleBuilder
    from mc2proof.protocol.builder import element as element
    from mc2proof.protocol.builder import segment_index as segment_index
    from mc2proof.protocol.builder import window as window
    from mc2proof.protocol.builtin import ring_all_to_all as ring_all_to_all
    from mc2proof.protocol.errors import LimitError as LimitError
    from mc2proof.protocol.errors import Mc2proofError as Mc2proofError
    from mc2proof.protocol.errors import ParameterError as ParameterError
    from mc2proof.protocol.errors import SourceError as SourceError
    from mc2proof.protocol.errors import TraceError as TraceError
    from mc2proof.protocol.errors import UnsupportedError as UnsupportedError
    from mc2proof.protocol.expr import Const as Const
    from mc2proof.protocol.expr import Expr as Expr
    from mc2proof.protocol.expr import both as both
    from mc2proof.protocol.expr import call as call
    from mc2proof.protocol.expr import either as either
    from mc2proof.protocol.expr import select as select
    from mc2proof.protocol.profile import BarrierAll as BarrierAll
    from mc2proof.protocol.profile import Profile as Profile
    from mc2proof.protocol.program import Address as Address
    from mc2proof.protocol.program import Mode as Mode
    from mc2proof.protocol.program import Origin as Origin
    from mc2proof.protocol.program import Pipe as Pipe
    from mc2proof.protocol.program import Protocol as Protocol
    from mc2proof.protocol.program import RegionKind as RegionKind
    from mc2proof.protocol.program import Role as Role
    from mc2proof.protocol.program import Window as Window
    from mc2proof.protocol.replay import Replay as Replay
    from mc2proof.protocol.replay import replay as replay
    from mc2proof.sweeping import sweep as sweep
    from mc2proof.swept import Sweep as Sweep

    __version__: str

_NAMES = {
    "mc2proof.certified": ("audit",),
    "mc2proof.checker.minimize": ("Minimized",),
    "mc2proof.checker.plan": ("Plan",),
    "mc2proof.minimizing": ("minimize",),
    "mc2proof.sweeping": ("sweep",),
    "mc2proof.swept": ("Sweep",),
    "mc2proof.face": ("load", "plan", "prove"),
    "mc2proof.checker.ask": ("EngineDisagreement",),
    "mc2proof.checker.report": (
        "AssumptionNote", "Counterexample", "Finding", "Report", "Result", "Severity", "Step",
        "Verdict",
    ),
    "mc2proof.protocol.builder": (
        "ProtocolBuilder", "RoleBuilder", "element", "segment_index", "window",
    ),
    "mc2proof.protocol.builtin": ("ring_all_to_all",),
    "mc2proof.protocol.errors": (
        "LimitError", "Mc2proofError", "ParameterError", "SourceError", "TraceError",
        "UnsupportedError",
    ),
    "mc2proof.protocol.expr": ("Const", "Expr", "both", "call", "either", "select"),
    "mc2proof.protocol.profile": ("BarrierAll", "Profile"),
    "mc2proof.protocol.program": (
        "Address", "Mode", "Origin", "Pipe", "Protocol", "RegionKind", "Role", "Window",
    ),
    "mc2proof.protocol.replay": ("Replay", "replay"),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "__version__",
    *sorted(_HOME),
]


if not TYPE_CHECKING:  # checkers know the names above; to them, others are errors

    def __getattr__(name: str) -> object:
        value: object
        if name == "__version__":
            from importlib.metadata import version

            value = version("mc2proof")
        elif name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
