"""Expressions of facts: C++ text over named values, computed by the same rules as the sources.

Used by `entry`, for the sizes of regions and the defaults of parameters, and by `host`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..cinteger import CType
from ..expr import Expr
from .lowering import Lowering
from .parse import parse_expression
from .state import Frame
from .types import Context, IntType


def fact_expression(
    lo: Lowering, text: str, names: Mapping[str, Expr], types: Mapping[str, CType] | None = None
) -> Expr:
    """The integer that ``text`` is; each name has the type that ``types`` gives it, else int64_t."""
    source, expression = parse_expression(text, lo.facts.file, None)
    with lo.entered(Frame(Context(source)), expression):
        for name, value in names.items():
            ctype = (types or {}).get(name, CType.I64)
            lo.assign(lo.declare(name, IntType(ctype)), value, expression)
        return lo.integer(lo.evaluate(expression), expression)
