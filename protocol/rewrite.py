"""Replacing variables in anything that a program is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar

from .expr import Expr, Var
from .program import Span

T = TypeVar("T")


def renamed(node: T, rename: Callable[[Var], Expr]) -> T:
    """``node`` (expression, statement, block, …) with every variable replaced by what ``rename`` gives."""
    if isinstance(node, Var):
        return rename(node)  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(renamed(item, rename) for item in node)  # type: ignore[return-value]
    if isinstance(node, Span | Enum) or not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {}
    for f in fields(node):
        old = getattr(node, f.name)
        new = renamed(old, rename)
        if new is not old:
            changes[f.name] = new
    return replace(node, **changes) if changes else node
