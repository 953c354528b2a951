"""Expressions of facts: C++ text over named values, computed by the same rules as the sources.

Used by `entry`, for the sizes of regions and the defaults of parameters, and by `host`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..cinteger import CType
from ..errors import SourceError
from ..expr import Expr
from .lowering import Lowering
from .parse import parse_expression
from .state import Frame
from .types import Context, IntType


def fact_expression(
    lo: Lowering, text: str, names: Mapping[str, Expr], types: Mapping[str, CType] | None = None
) -> Expr:
    """The integer that ``text`` is; each name has the type that ``types`` gives it, else int64_t.

    Raises SourceError with the facts file and the expression.
    """
    if not _balanced(text):
        raise SourceError(f"{lo.facts.file}: cannot read the expression `{text}`")
    try:
        return _lowered(lo, text, names, types or {})
    except SourceError as error:
        if error.span is None or error.span.file != lo.facts.file:
            raise
        # its line is one of the expression, not of the file
        raise SourceError(f"{lo.facts.file}: `{text}`: {error.message}") from error


def _lowered(lo: Lowering, text: str, names: Mapping[str, Expr], types: Mapping[str, CType]) -> Expr:
    source, expression = parse_expression(text, lo.facts.file, None)
    with lo.entered(Frame(Context(source)), expression):
        for name, value in names.items():
            lo.assign(lo.declare(name, IntType(types.get(name, CType.I64))), value, expression)
        return lo.integer(lo.evaluate(expression), expression)


def _balanced(text: str) -> bool:
    """Whether ``text`` closes only parentheses that it opens: it is read inside a pair of them."""
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return True
