"""Opaque kernel calls: what facts say that they read and write, as a `Compute`.

Used by `calls`. A contract's expressions are C++ over the call's arguments, the segment and the
identities, evaluated by the same rules as the sources.
"""

from __future__ import annotations

from tree_sitter import Node

from ..cinteger import CType
from ..errors import SourceError
from ..expr import Expr, Var, VarKind
from ..program import Compute, Origin, Parameter, Pipe, Window
from .facts import ContractFact, WindowFact
from .lowering import Lowering
from .parse import parse_expression
from .state import Frame
from .types import Context
from .values import NOTHING, Value, convert

RANK = Var("rank", CType.I32, VarKind.IDENTITY)
BLOCK = Var("block", CType.I64, VarKind.IDENTITY)
SUB = Var("sub", CType.I64, VarKind.IDENTITY)
RANKS = Var("ranks", CType.I32, VarKind.PARAMETER)
BLOCKS = Var("blocks", CType.I64, VarKind.PARAMETER)


def lower_contract(lo: Lowering, contract: ContractFact, arguments: list[Value], node: Node) -> Value:
    """Emit the operation that ``contract`` makes of a call with ``arguments``."""
    if len(arguments) != len(contract.parameters):
        raise lo.unsupported(
            f"{contract.name} call with {len(arguments)} arguments, not as its contract has it", node
        )
    evaluator = _Evaluator(lo, contract, node)
    segment = lo.new_var(contract.segment, CType.I64, VarKind.LOOP)
    known = {"rank": RANK, "ranks": RANKS, "blocks": BLOCKS, **fact_parameters(lo)}
    evaluator.names = known | dict(zip(contract.parameters, arguments, strict=True))
    segments = evaluator.integer(contract.segments)
    writes = tuple(evaluator.window(window) for window in contract.writes)
    evaluator.names[contract.segment] = segment
    reads = tuple(evaluator.window(window) for window in contract.reads)
    span = lo.span(node)
    pipes = evaluator.pipe(contract.read_pipe), evaluator.pipe(contract.write_pipe)
    compute = Compute(contract.name, segment, segments, reads, writes, *pipes, span)
    lo.usage.contracts[span.place] = _sentence(compute, contract, lo.facts.file)
    lo.emit(compute)
    return NOTHING


def fact_parameters(lo: Lowering) -> dict[str, Expr]:
    """The parameters that only facts mention, by name; whoever ends up mentioned gets its default."""
    found: dict[str, Expr] = {}
    for name, fact in lo.facts.parameters.items():
        parameter = Parameter(name, fact.low, fact.high, None, CType.I64, fact.meaning, from_facts=True)
        lo.shared.parameters.setdefault(name, parameter)
        found[name] = Var(name, CType.I64, VarKind.PARAMETER)
    return found


class _Evaluator:
    """Evaluates expressions of facts at one place of the sources."""

    def __init__(self, lo: Lowering, contract: ContractFact, node: Node) -> None:
        self.lo = lo
        self.contract = contract
        self.node = node
        self.names: dict[str, Value] = {}

    def value(self, text: str) -> tuple[Value, Node, Frame]:
        lo = self.lo
        source, expression = parse_expression(text, lo.facts.file, lo.span(self.node))
        frame = Frame(Context(source), lo.frame.calls)
        with lo.entered(frame, self.node):
            for name, value in self.names.items():
                lo.assign(lo.declare(name, None), value, self.node)
            return lo.evaluate(expression), expression, frame

    def integer(self, text: str) -> Expr:
        value, expression, frame = self.value(text)
        with self.lo.entered(frame, self.node):
            return self.lo.integer(value, expression)

    def window(self, fact: WindowFact) -> Window:
        value, expression, frame = self.value(fact.address)
        with self.lo.entered(frame, self.node):
            address = self.lo.address(value, expression)
        guard = convert(CType.BOOL, self.integer(fact.guard))
        return Window(address, self.integer(fact.bytes), self.origin(fact), guard)

    def origin(self, fact: WindowFact) -> Origin | None:
        if fact.origin_rank is None or fact.origin_address is None:
            return None
        value, expression, frame = self.value(fact.origin_address)
        with self.lo.entered(frame, self.node):
            return Origin(self.integer(fact.origin_rank), self.lo.address(value, expression))

    def pipe(self, name: str) -> Pipe:
        if name not in Pipe.__members__:
            raise SourceError(f"{self.lo.facts.file}: contract {self.contract.name}: no pipe {name}")
        return Pipe[name]


def _sentence(compute: Compute, contract: ContractFact, file: str) -> str:
    def regions(windows: tuple[Window, ...]) -> str:
        return ", ".join(sorted({window.address.region for window in windows})) or "nothing"

    return (
        f"{file}: the {compute.contract} call at {compute.span.place} is assumed to read, segment by "
        f"segment on {compute.read_pipe.name}, from {regions(compute.reads)}, then to write "
        f"{regions(compute.writes)} on {compute.write_pipe.name} ({len(contract.reads)} windows a "
        f"segment)"
    )
