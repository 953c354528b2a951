"""The state of symbolic execution: the store, the statements emitted so far, the current function.

`statements`, `expressions` and `calls` work on one `Lowering`; they are plugged in as its
``evaluate`` and ``execute``, since each needs the others. Straight-line code is substituted forward
symbolically; what differs between branches or iterations is materialised in `flow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tree_sitter import Node

from ..cinteger import CType
from ..errors import LimitError, SourceError, UnsupportedError
from ..expr import Const, Expr, Var, VarKind
from ..program import Address, Parameter, Role, Span, Statement
from .declarations import FieldDecl, Index
from .facts import Facts
from .parse import Sources, text_of
from .types import (
    BUILTIN_TYPES,
    VOID,
    ArrayType,
    ClassType,
    Context,
    IntType,
    OpaqueType,
    PointerType,
    Type,
    Types,
)
from .values import (
    InitList,
    Location,
    Null,
    Opaque,
    Place,
    PlacePointer,
    Pointer,
    Poison,
    Record,
    Value,
    convert,
)

MAX_INLINE_DEPTH = 64
"""Calls inlined within each other before the front end gives up."""
MAX_STEPS = 100_000
"""Statements executed symbolically for one role; nested loops are executed several times each."""

Scopes = list[dict[str, Place]]


@dataclass(slots=True)
class Frame:
    """One inlined call: where its names are looked up, its locals, its result, its call sites."""

    context: Context
    calls: tuple[Span, ...] = ()
    this: Place | None = None
    scopes: Scopes = field(default_factory=lambda: [{}])
    result: Place | None = None
    loops: int = 0
    function: object = None


@dataclass(slots=True)
class Usage:
    """What was used beyond the sources: facts by kind and key, with the sentence that reports them."""

    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    contracts: dict[str, str] = field(default_factory=dict)
    field_types: dict[str, str] = field(default_factory=dict)


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


Evaluate = Callable[["Lowering", Node], Value]
Execute = Callable[["Lowering", Node], None]


class Lowering:
    """Executes one role of one entry."""

    def __init__(self, shared: Shared, role: Role, evaluate: Evaluate, execute: Execute) -> None:
        self.shared = shared
        self.role = role
        self.index = shared.index
        self.facts = shared.facts
        self.usage = shared.usage
        self._evaluate = evaluate
        self._execute = execute
        self.store: dict[Location, Value] = {}
        self.names: dict[int, str] = {}
        self.out: list[Statement] = []
        self.frames: list[Frame] = []
        self.next_root = 0
        self.next_local = 0
        self.steps = 0
        self.types = Types(
            shared.index,
            shared.facts,
            self.constant,
            self._note_size,
            lambda: self.frame.calls,
            lambda name: shared.sources.macros.text(name) is not None,
        )

    # --- where we are -----------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The innermost call."""
        return self.frames[-1]

    def span(self, node: Node) -> Span:
        """The place of ``node`` with the calls that led to it."""
        return self.frame.context.source.span(node, self.frame.calls)

    def unsupported(self, construct: str, node: Node) -> UnsupportedError:
        """The error that refuses ``construct`` at ``node``."""
        return UnsupportedError(construct, self.span(node))

    def evaluate(self, node: Node) -> Value:
        """The value of an expression."""
        return self._evaluate(self, node)

    def execute(self, body: Node) -> None:
        """Run a function body."""
        self._execute(self, body)

    def emit(self, statement: Statement) -> None:
        """Append a statement to the program."""
        self.out.append(statement)

    def step(self, node: Node) -> None:
        """Count an executed statement."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise LimitError("max-steps", MAX_STEPS, f"{self.span(node).place}: symbolic execution")

    @contextmanager
    def entered(self, frame: Frame, node: Node) -> Iterator[None]:
        """Run inside ``frame``."""
        if len(self.frames) >= MAX_INLINE_DEPTH:
            raise LimitError("max-inline-depth", MAX_INLINE_DEPTH, f"{self.span(node).place}: calls")
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

    def constant(self, node: Node, context: Context) -> Expr:
        """The integer value of ``node`` in another context: a template argument, a static constant."""
        calls = self.frame.calls if self.frames else ()
        with self.entered(Frame(context, calls), node):
            return self.integer(self.evaluate(node), node)

    # --- new variables ----------------------------------------------------------------------

    def new_place(self, name: str, place_type: Type | None) -> Place:
        """A place for a new variable."""
        root = self.next_root
        self.next_root += 1
        self.names[root] = name
        return Place((root,), place_type)

    def declare(self, name: str, place_type: Type | None) -> Place:
        """A new variable in the innermost scope."""
        place = self.new_place(name, place_type)
        self.frame.scopes[-1][name] = place
        return place

    def new_var(self, name: str, ctype: CType, kind: VarKind) -> Var:
        """A program variable; `naming` gives it its final name."""
        self.next_local += 1
        return Var(f"{name}#{self.next_local}", ctype, kind)

    def hint(self, location: Location) -> str:
        """The source's name of what lives at ``location``."""
        last = location[-1]
        return self.names.get(last, "value") if isinstance(last, int) else last

    # --- reading and writing ----------------------------------------------------------------

    def load(self, place: Place, node: Node) -> Value:
        """What ``place`` holds. Raises SourceError where nothing was stored."""
        location = place.location
        value = self.store.get(location)
        scalar = isinstance(place.type, IntType | PointerType)
        if not scalar:
            members = self.members(location)
            is_object = isinstance(place.type, ClassType | OpaqueType | ArrayType)
            if members or (is_object and isinstance(value, Poison)):
                if value is not None:
                    members[()] = value
                return Record(place.type, members)  # copying is no reading
        if value is None:
            value = self.inherited(place)
        if value is None:
            if isinstance(place.type, ClassType | OpaqueType | ArrayType):
                return Record(place.type, {})
            value = Poison(f"{self.hint(location)} is read before it is assigned")
            if place.type is None and len(location) > 1:
                value = Poison(f"{self.hint(location)}, a member that the sources do not set", True)
        return self.readable(value, node)

    def readable(self, value: Value, node: Node) -> Value:
        """``value``, unless nothing may be read there."""
        if isinstance(value, Poison):
            if value.unsupported:
                raise self.unsupported(value.reason, node)
            raise SourceError(value.reason, self.span(node))
        return value

    def inherited(self, place: Place) -> Value | None:
        """What an enclosing opaque object or unreadable one makes of a member."""
        location = place.location
        for length in range(len(location) - 1, 0, -1):
            outer = self.store.get(location[:length])
            if isinstance(outer, Opaque):
                names = (f".{name}" for name in map(str, location[length:]))
                return Opaque(outer.path + "".join(names).replace(".[", "["), place.type)
            if isinstance(outer, Poison):
                return outer
        return None

    def members(self, location: Location) -> dict[Location, Value]:
        """Everything stored inside ``location``, by the rest of its location."""
        size = len(location)
        return {
            key[size:]: value
            for key, value in self.store.items()
            if len(key) > size and key[:size] == location
        }

    def assign(self, place: Place, value: Value, node: Node) -> None:
        """Store ``value``, converted to the type of ``place``."""
        value = self.converted(value, place.type, node)
        if not isinstance(place.type, IntType | PointerType):
            for key in self.members(place.location):
                del self.store[(*place.location, *key)]
        self.store.pop(place.location, None)
        if isinstance(value, Record):
            for key, member in value.members.items():
                self.store[(*place.location, *key)] = member
        elif isinstance(value, InitList):
            self.initialise(place, value, node)
        else:
            self.store[place.location] = value

    def initialise(self, place: Place, values: InitList, node: Node) -> None:
        """Fill ``place`` from ``{…}``, member by member."""
        match place.type:
            case ArrayType(element=element, length=length):
                self._expect_count(values, length, place, node)
                for position in range(length):
                    item = values.items[position] if position < len(values.items) else None
                    self._initialise_member(place.member(f"[{position}]", element), item, node)
            case ClassType() as owner:
                self._initialise_class(place, owner, values, node)
            case OpaqueType(name=name):
                self._initialise_opaque(place, name, values, node)
            case None:
                self.store[place.location] = Poison("members of an object of unknown type", True)
            case _:
                self._expect_count(values, 1, place, node)
                item = values.items[0] if values.items else None
                self._initialise_member(place, item, node)

    def _initialise_member(self, place: Place, item: Value | None, node: Node) -> None:
        if item is not None:
            self.assign(place, item, node)
        elif isinstance(place.type, IntType):
            self.store[place.location] = Const(0, place.type.ctype)
        elif isinstance(place.type, PointerType):
            self.store[place.location] = Null()
        elif isinstance(place.type, ArrayType | ClassType):
            self.initialise(place, InitList((), self.span(node)), node)

    def _initialise_class(self, place: Place, owner: ClassType, values: InitList, node: Node) -> None:
        if owner.decl.bases and values.items:
            raise self.unsupported(f"braces for {owner}, which has a base class", node)
        self._expect_count(values, len(owner.decl.fields), place, node)
        for position, member in enumerate(owner.decl.fields):
            target = place.member(member.name, self.types.field_type(owner, member))
            if position < len(values.items):
                self.assign(target, values.items[position], node)
            elif member.default is not None:
                self.default_member(target, owner, member)
            else:
                self._initialise_member(target, None, node)

    def default_member(self, target: Place, owner: ClassType, member: FieldDecl) -> None:
        """Run the default initialiser of a data member."""
        assert member.default is not None
        this = Place(target.location[:-1], owner)
        frame = Frame(self.types.inside(owner), self.frame.calls, this)
        with self.entered(frame, member.default):
            self.assign(target, self.evaluate(member.default), member.default)

    def _initialise_opaque(self, place: Place, name: str, values: InitList, node: Node) -> None:
        order = self.facts.field_order.get(name)
        if not values.items:
            return
        if order is None or len(order) < len(values.items):
            self.store[place.location] = Poison(
                f"the order of the members of {name} (give it in facts, field_order)", True
            )
            return
        self.usage.facts["field_order", name] = f"the members of {name} are {', '.join(order)}"
        for declared, item in zip(order, values.items, strict=False):
            words = declared.split()
            member_type = self.named_type(words[0]) if len(words) > 1 else None
            self.assign(place.member(words[-1], member_type), item, node)

    def named_type(self, name: str) -> Type:
        """A builtin type by name, as facts give it."""
        return BUILTIN_TYPES.get(name, OpaqueType(name))

    def _expect_count(self, values: InitList, most: int, place: Place, node: Node) -> None:
        if len(values.items) > most:
            raise SourceError(
                f"{len(values.items)} values for {place.type}, which holds {most}", self.span(node)
            )

    def forget(self, first: int) -> None:
        """Drop the variables from number ``first`` on: their function has ended."""
        dead = [key for key in self.store if isinstance(key[0], int) and key[0] >= first]
        for key in dead:
            del self.store[key]

    # --- conversions ------------------------------------------------------------------------

    def converted(self, value: Value, wanted: Type | None, node: Node) -> Value:
        """``value`` as C++ converts it when it initialises a ``wanted``."""
        match wanted:
            case IntType(ctype=ctype):
                if isinstance(value, InitList) and len(value.items) <= 1:
                    value = value.items[0] if value.items else Const(0, ctype)
                return convert(ctype, self.integer(value, node, ctype))
            case PointerType(target=target):
                return self.as_pointer(value, target, node)
        if isinstance(value, Record) and isinstance(value.type, ClassType):
            self._refuse_own_copy(value.type, node)
        return self.readable(value, node)

    def _refuse_own_copy(self, owner: ClassType, node: Node) -> None:
        """Objects are copied member by member, so a class must not do that in its own way."""
        constructors = owner.decl.methods.get(owner.decl.name, [])
        own = any(
            len(c.parameters) == 1
            and text_of(c.parameters[0].child_by_field_name("type")).startswith(owner.decl.name)
            for c in constructors
        )
        if own or "operator=" in owner.decl.methods or "operator=" in owner.decl.declared:
            raise self.unsupported(f"a copy of {owner}, which copies in its own way", node)

    def as_pointer(self, value: Value, target: Type, node: Node) -> Value:
        """``value`` as a pointer to ``target``."""
        match value:
            case Pointer(region=region, offset=offset):
                return Pointer(region, offset, target)
            case Null():
                return value
            case PlacePointer(place=place):
                return PlacePointer(Place(place.location, self._pointee(place.type, target, node)))
            case Opaque(path=path):
                return Opaque(path, PointerType(target))
            case Const(value=0):
                return Null()
            case InitList(items=items) if len(items) <= 1:
                return self.as_pointer(items[0], target, node) if items else Null()
        self.readable(value, node)
        raise self.unsupported(f"`{text_of(node)}` as an address", node)

    def _pointee(self, have: Type | None, target: Type, node: Node) -> Type | None:
        """What a pointer to a ``have`` points to as a pointer to ``target``: no reinterpretation."""
        if have is None or have == target or isinstance(have, OpaqueType):
            return target if have is None else have
        if isinstance(target, OpaqueType):
            return have
        bases: list[Type] = [have]
        for base in bases:
            if base == target:
                return target
            bases += self.types.bases(base) if isinstance(base, ClassType) else []
        raise self.unsupported(f"a pointer to {have} as one to {target}", node)

    def integer(self, value: Value, node: Node, wanted: CType | None = None) -> Expr:
        """``value`` as an integer expression; a field of an opaque object becomes a parameter."""
        match value:
            case Opaque(path=path, type=declared):
                return self.parameter(path, declared, node)
            case Pointer() | PlacePointer() if wanted is CType.BOOL:
                return Const(1, CType.BOOL)
            case Null() if wanted is CType.BOOL:
                return Const(0, CType.BOOL)
        if isinstance(value, Expr):
            return value
        self.readable(value, node)
        what = "an address" if isinstance(value, Pointer | PlacePointer | Null) else "an object"
        raise self.unsupported(f"{what} as an integer: `{text_of(node)}`", node)

    def condition(self, node: Node) -> Expr:
        """The value of ``node`` as a condition."""
        return convert(CType.BOOL, self.integer(self.evaluate(node), node, CType.BOOL))

    def parameter(self, path: str, declared: Type | None, node: Node) -> Expr:
        """The parameter that field ``path`` of a kernel argument is."""
        fact = self.facts.field(path)
        ctype = CType.U32
        if isinstance(declared, IntType):
            ctype = declared.ctype
        elif isinstance(declared, PointerType | ArrayType | ClassType) or declared == VOID:
            raise self.unsupported(f"{path} of type {declared} as an integer", node)
        elif fact is not None:
            named = self.named_type(fact[1].type)
            ctype = named.ctype if isinstance(named, IntType) else ctype
        if path not in self.shared.parameters:
            known = fact[1] if fact is not None else None
            self.shared.parameters[path] = Parameter(
                name=path,
                low=known.low if known else ctype.low if ctype.signed else 0,
                high=known.high if known else None,
                default=known.value if known else None,
                type=ctype,
                meaning=known.meaning if known else "",
                from_facts=known is not None and known.value is not None,
            )
            if fact is None and not isinstance(declared, IntType):
                self.usage.field_types[path] = f"{path} is taken to be a {ctype.c_name}"
        return Var(path, self.shared.parameters[path].type, VarKind.PARAMETER)

    def address(self, value: Value, node: Node) -> Address:
        """``value`` as an address in a region."""
        match value:
            case Pointer(region=region, offset=offset):
                return Address(region, offset)
            case Null():
                raise SourceError("a null pointer is used as an address", self.span(node))
            case Opaque(path=path):
                raise self.unsupported(f"{path}, which the sources do not give, as an address", node)
        self.readable(value, node)
        raise self.unsupported(f"`{text_of(node)}` as an address in a memory region", node)

    def _note_size(self, name: str, size: int) -> None:
        self.usage.facts["size", name] = f"sizeof({name}) = {size}"
