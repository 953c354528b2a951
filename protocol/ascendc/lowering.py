"""The state of symbolic execution: the store, the statements emitted so far, the current function.

`statements`, `expressions` and `objects` work on one `Lowering`; they are plugged in as its
`Language`, since each needs the others. Straight-line code is substituted forward
symbolically; what differs between branches or iterations is materialised in `flow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tree_sitter import Node

from ..cinteger import CType
from ..errors import LimitError, SourceError, UnsupportedError
from ..expr import Const, Expr, Var, VarKind
from ..program import Address, Load, Parameter, Role, Span, Statement
from .classes import own_copy
from .narrowing import may_change
from .parse import text_of
from .state import Frame, Language, Shared
from .types import (
    BUILTIN_SIZES,
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
    Foreign,
    InitList,
    Location,
    Memory,
    Null,
    Opaque,
    Outcome,
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


class Lowering:
    """Executes one role of one entry."""

    def __init__(self, shared: Shared, role: Role, language: Language) -> None:
        self.shared = shared
        self.role = role
        self.index = shared.index
        self.facts = shared.facts
        self.usage = shared.usage
        self.language = language
        self.store: dict[Location, Value] = {}
        self.names: dict[int, str] = {}
        self.out: list[Statement] = []
        self.frames: list[Frame] = []
        self.next_root = 0
        self.next_local = 0
        self.steps = 0
        self.starts: dict[str, int] = {}
        """The constants that loop indices start from; they only grow."""
        self.only_type = False
        """Whether an expression is evaluated for its type alone."""
        self.types = Types(
            shared.index,
            shared.facts,
            self.constant,
            self._note_size,
            lambda: self.frame.calls,
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

    def designate(self, node: Node) -> Outcome:
        """The place that an expression denotes, or its value if it has none."""
        return self.language.designate(self, node)

    def evaluate(self, node: Node) -> Value:
        """The value of an expression."""
        return self.value(self.designate(node), node)

    def execute(self, body: Node) -> None:
        """Run a function body."""
        self.language.execute(self, body)

    def copy_into(self, place: Place, value: Value, node: Node) -> None:
        """Initialise ``place`` with ``value``, constructing an object where its class says so."""
        self.language.copy_into(self, place, value, node)

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

    def value(self, outcome: Outcome, node: Node) -> Value:
        """The value of what an expression denotes; a word in memory is read into a local."""
        match outcome:
            case Place():
                return self.load(outcome, node)
            case Memory(pointer=pointer):
                if not isinstance(pointer.target, IntType):
                    raise self.unsupported(f"reading memory: `{text_of(node)}`", node)
                word = self.new_var("word", pointer.target.ctype, VarKind.LOCAL)
                self.emit(Load(word, self.address(pointer, node), self.span(node)))
                return word
        return outcome

    def load(self, place: Place, node: Node) -> Value:
        """What ``place`` holds. Raises SourceError where nothing was stored."""
        return self.readable(self.peek(place), node)

    def peek(self, place: Place) -> Value:
        """What ``place`` holds, a Poison where nothing was stored."""
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
        value = self.held(place)
        if value is None:
            if isinstance(place.type, ClassType | OpaqueType | ArrayType):
                return Record(place.type, {})
            value = Poison(f"{self.hint(location)} is read before it is assigned")
            if place.type is None and len(location) > 1:
                value = Poison(f"{self.hint(location)}, a member that the sources do not set", True)
        return value

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

    def held(self, place: Place) -> Value | None:
        """What is stored at ``place``, or what an enclosing object makes of it."""
        value = self.store.get(place.location)
        return value if value is not None else self.inherited(place)

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
        self._refuse_pointee(place, node)
        value = self.converted(value, place.type, node)
        if place.type is None and isinstance(value, Expr):
            value = self._untyped(place, value, node)
        if not isinstance(place.type, IntType | PointerType):
            for key in self.members(place.location):
                del self.store[(*place.location, *key)]
        self.store.pop(place.location, None)
        if isinstance(value, Record):
            for key, member in value.members.items():
                self.store[(*place.location, *key)] = member
        elif isinstance(value, InitList):
            raise self.unsupported(f"braces for an object of unknown type: `{text_of(node)}`", node)
        else:
            plain = replace(value, pointee=False) if isinstance(value, Opaque) else value
            self.store[place.location] = plain

    def _refuse_pointee(self, place: Place, node: Node) -> None:
        """A store through a pointer that the sources do not set reaches nobody knows what."""
        for length in range(1, len(place.location) + 1):
            outer = self.store.get(place.location[:length])
            if isinstance(outer, Opaque) and outer.pointee:
                raise self.unsupported(f"a store into {outer.path}, which the sources do not give", node)

    def _untyped(self, place: Place, value: Expr, node: Node) -> Value:
        """A number for a place without a declared type: that of what it holds already."""
        held = self.held(place)
        if isinstance(held, Opaque):
            return self.kept_as(self.parameter_type(held, node).ctype, value)
        if isinstance(held, Expr):
            return self.kept_as(held.type, value)
        if isinstance(place.location[-1], str):
            path = ".".join([self.names.get(int(place.location[0]), ""), *map(str, place.location[1:])])
            fact = self.facts.field(path)
            known = self.named_type(fact[1].type) if fact is not None else None
            if fact is not None and isinstance(known, IntType):
                self.usage.facts["field", fact[0]] = f"{fact[0]} is a {known}"
                return self.kept_as(known.ctype, value)
            return Foreign(f"the type of {self.hint(place.location)}, which the sources do not give")
        return value

    def named_type(self, name: str) -> Type:
        """A builtin type by name, as facts give it."""
        return BUILTIN_TYPES.get(name, OpaqueType(name))

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
                return self.kept_as(ctype, self.integer(value, node, ctype))
            case PointerType(target=target):
                return self.as_pointer(value, target, node)
            case ClassType():
                self._expect_object(value, wanted, node)
            case ArrayType():
                self.readable(value, node)
                if not isinstance(value, Record | Opaque) or value.type not in (wanted, None):
                    raise self.unsupported(f"`{text_of(node)}` as a {wanted}", node)
            case OpaqueType() if wanted != VOID:
                if isinstance(value, Expr):
                    return Foreign(f"type {wanted}")
                if isinstance(value, Opaque) and value.type is None:
                    return replace(value, type=wanted)
        return self.readable(value, node)

    def kept_as(self, ctype: CType, expr: Expr) -> Expr:
        """``expr`` converted to ``ctype``, which is printed as a cast where it may lose something."""
        shown = expr.type.bits > ctype.bits and may_change(ctype, expr, self.starts)
        return convert(ctype, expr, implicit=not shown)

    def _expect_object(self, value: Value, wanted: ClassType, node: Node) -> None:
        """Refuse anything but a plain copy of a ``wanted``."""
        self.readable(value, node)
        if not isinstance(value, Record | Opaque) or value.type not in (wanted, None):
            raise self.unsupported(f"`{text_of(node)}` as a {wanted}", node)
        own = own_copy(self.types, wanted)
        if own is not None:
            raise self.unsupported(f"a copy of {own}, which copies in its own way", node)

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
                self.assume_not_null(value)
                return Const(1, CType.BOOL)
            case Null() if wanted is CType.BOOL:
                return Const(0, CType.BOOL)
            case Foreign(type=foreign):
                raise self.unsupported(f"a number in {foreign}: `{text_of(node)}`", node)
        if isinstance(value, Expr):
            return value
        self.readable(value, node)
        what = "an address" if isinstance(value, Pointer | PlacePointer | Null) else "an object"
        raise self.unsupported(f"{what} as an integer: `{text_of(node)}`", node)

    def assume_not_null(self, value: Pointer | PlacePointer) -> None:
        """Note that a kernel argument which is compared with null is taken not to be null."""
        if isinstance(value, Pointer):
            self.usage.non_null.add(value.region)
        elif isinstance(self.store.get(value.place.location), Opaque):
            self.usage.non_null.add(self.hint(value.place.location))

    def condition(self, node: Node) -> Expr:
        """The value of ``node`` as a condition."""
        return convert(CType.BOOL, self.integer(self.evaluate(node), node, CType.BOOL))

    def parameter_type(self, opaque: Opaque, node: Node) -> IntType:
        """The type of the parameter that a field of a kernel argument is; uint32_t if nothing says it."""
        path, declared = opaque.path, opaque.type
        if path in self.shared.parameters:
            return IntType(self.shared.parameters[path].type)
        if isinstance(declared, IntType):
            return declared
        fact = self.facts.field(path)
        known = self.named_type(fact[1].type) if fact is not None else None
        number = declared is None or (isinstance(declared, OpaqueType) and fact is not None)
        if not number or str(declared) in BUILTIN_SIZES:
            raise self.unsupported(f"{path} of type {declared} as an integer", node)
        return known if isinstance(known, IntType) else IntType(CType.U32)

    def parameter(self, path: str, declared: Type | None, node: Node) -> Expr:
        """The parameter that field ``path`` of a kernel argument is."""
        fact = self.facts.field(path)
        ctype = self.parameter_type(Opaque(path, declared), node).ctype
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
