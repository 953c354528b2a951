"""What a run of the front end keeps: one `Frame` a call, and what the roles of an entry share.

Used by `lowering`, and by all modules that enter a frame of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tree_sitter import Node

from ..program import Parameter, Span
from .declarations import Index
from .facts import Facts
from .parse import Sources
from .types import Context
from .values import Outcome, Place, Value

if TYPE_CHECKING:
    from .lowering import Lowering

Scopes = list[dict[str, Place]]


@dataclass(slots=True)
class Frame:
    """One inlined call: where its names are looked up, its locals, its result, its call sites."""

    context: Context
    calls: tuple[Span, ...] = ()
    this: Place | None = None
    scopes: Scopes = field(default_factory=lambda: [{}])
    result: Place | None = None
    returns_reference: bool = False
    referred: Place | None = None
    """What a function that returns a reference has returned."""
    loops: int = 0
    function: object = None


@dataclass(slots=True)
class Usage:
    """What was used beyond the sources: facts by kind and key, with the sentence that reports them."""

    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    contracts: dict[str, str] = field(default_factory=dict)
    field_types: dict[str, str] = field(default_factory=dict)
    plain_types: set[str] = field(default_factory=set)
    non_null: set[str] = field(default_factory=set)
    """Regions and objects behind kernel pointers that are compared with null."""


@dataclass(slots=True)
class Shared:
    """What the roles of one entry share."""

    index: Index
    sources: Sources
    facts: Facts
    vectors_per_cube: int
    usage: Usage = field(default_factory=Usage)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    """Fields and scalar arguments that became parameters, by path."""


@dataclass(frozen=True, slots=True)
class Language:
    """What `Lowering` needs of the modules above it: expressions, function bodies, objects."""

    designate: Callable[[Lowering, Node], Outcome]
    execute: Callable[[Lowering, Node], None]
    copy_into: Callable[[Lowering, Place, Value, Node], None]
