"""The C preprocessor, as far as a protocol needs it: conditions, includes, macros.

Used by `prepass` on text whose comments are already blank. Directives and inactive lines become
spaces, so that offsets and line numbers stay; every name that is a macro where it stands is noted. A
condition that the given defines do not decide is refused where its branches differ, never guessed.
Read `macros` and `conditions` next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import SourceError, UnsupportedError
from ..program import Span
from .attributes import ENTRY_WORDS, MEANINGFUL, after_parentheses, stands_for_nothing
from .conditions import evaluate_condition
from .lexical import Lexemes, Scope, blank, logical_lines, scope_after
from .macros import KEYWORDS, Macro, Macros, MacroUse, Truth, names_in


class Includer(Protocol):
    """Where quoted includes are looked for."""

    def resolves(self, name: str) -> bool:
        """Whether ``name`` is there to be read."""

    def read(self, name: str, place: Span) -> None:
        """Read ``name``, which is there, for the include at ``place``."""


class NoIncludes:
    """Finds nothing: every header is opaque."""

    def resolves(self, name: str) -> bool:
        """No."""
        return False

    def read(self, name: str, place: Span) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Protection:
    """What keeps a file from being read twice: ``#pragma once``, or the macro of its include guard."""

    once: bool = False
    guard: str = ""


@dataclass(slots=True)
class _Branch:
    """One #if … #endif: what was decided of it, and the texts of its undecided branches.

    Undecided branches begin at ``first``, the current one at ``start``.
    """

    line: int
    condition: str
    parent: bool
    active: bool
    taken: bool
    undecided: bool = False
    texts: list[str] = field(default_factory=list)
    first: int = 0
    start: int = 0
    has_else: bool = False


_DIRECTIVE = re.compile(rb"\s*#\s*(\w+)?(.*)", re.DOTALL)
_QUOTED_INCLUDE = re.compile(r'\s*"([^"]+)"')
_ANGLE_INCLUDE = re.compile(r"\s*<[^>]+>")
_DEFINE = re.compile(r"\s+([^\W\d]\w*)(\()?")
_NAME = re.compile(r"\s*([^\W\d]\w*)\s*")
_NOT_DEFINED = re.compile(r"\s*!\s*defined\s*\(\s*([^\W\d]\w*)\s*\)\s*")
_IGNORED = frozenset({"", "ident", "line", "pragma", "warning"})
_MACRO_PRAGMAS = re.compile(r"\s*(?:push_macro|pop_macro|redefine_extname)\b")
_MAY_DECLARE = re.compile(r"[{;]|##|\btemplate\b")


class Preprocessor:
    """One pass over one file's text, blanking in place; reads an include where it stands.

    ``shape`` is the same text with blanks for strings; ``uses`` are the macros in the active text.
    """

    def __init__(
        self,
        text: bytearray,
        lexemes: Lexemes,
        file: str,
        macros: Macros,
        includer: Includer,
        protection: Protection,
    ) -> None:
        self.text = text
        self.shape = lexemes.shape(text)
        self.file = file
        self.includer = includer
        self.macros = macros
        self.protection = protection
        self.uses: dict[int, MacroUse] = {}
        self.branches: list[_Branch] = []
        self.lines = logical_lines(text, lexemes.joined)
        self.protection.guard = self._guard()
        self.handlers = {
            "if": self._if,
            "ifdef": self._ifdef,
            "ifndef": self._ifndef,
            "elif": self._elif,
            "elifdef": self._elifdef,
            "elifndef": self._elifndef,
            "else": self._else,
            "endif": self._endif,
            "include": self._include,
            "define": self._define,
            "undef": self._undef,
            "pragma": self._pragma,
            "error": self._error,
        }

    def run(self) -> None:
        """Blank directives and inactive text; note the uses of macros."""
        for index, (start, end, line) in enumerate(self.lines):
            match = self._directive_at(start, end)
            if match is not None:
                self._directive(index, line, match)
                self._blank(start, end)
            elif not self._active() and not self.branches[-1].undecided:
                self._blank(start, end)
            else:
                self._note_uses(start, end)
        if self.branches:
            raise SourceError("#if without #endif", self._span(self.branches[-1].line))
        for offset in [o for o, use in self.uses.items() if not self._still_there(o, use)]:
            del self.uses[offset]

    def _directive_at(self, start: int, end: int) -> re.Match[bytes] | None:
        """The directive in a logical line; text inside a string is none."""
        if not self.shape[start:end].lstrip().startswith(b"#"):
            return None
        return _DIRECTIVE.match(self.text[start:end])

    def _directive(self, index: int, line: int, match: re.Match[bytes]) -> None:
        name = (match[1] or b"").decode()
        rest = re.sub(rb"\\\s*\n|\n", b" ", match[2]).decode()
        handler = self.handlers.get(name)
        if handler is not None:
            handler(index, line, rest)
        elif name not in _IGNORED and not name.isdigit() and (self._active() or self._undecided()):
            raise UnsupportedError(f"#{name}", self._span(line))

    # --- conditions -------------------------------------------------------------------------

    def _if(self, index: int, line: int, rest: str) -> None:
        value = self._evaluate(rest, line) if self._active() else 0
        guard = _NOT_DEFINED.fullmatch(rest)
        if value is None and guard is not None and self._is_guard(guard[1]):
            value = 1
        self._open(index, line, f"#if {rest.strip()}", value)

    def _ifdef(self, index: int, line: int, rest: str) -> None:
        known = self._defined("#ifdef", rest, line)
        self._open(index, line, f"#ifdef {rest.strip()}", known)

    def _ifndef(self, index: int, line: int, rest: str) -> None:
        name = rest.strip()
        known = self._defined("#ifndef", rest, line)
        if known is None and self._is_guard(name):
            known = 0
        self._open(index, line, f"#ifndef {name}", None if known is None else 1 - known)

    def _defined(self, directive: str, rest: str, line: int) -> Truth:
        if not self._active() and not self._undecided():
            return 0
        return self.macros.is_defined(self._name(directive, rest, line))

    def _open(self, index: int, line: int, condition: str, value: Truth) -> None:
        self._refuse_undecided(condition)
        parent = self._active()
        branch = _Branch(line, condition, parent, parent and value == 1, value == 1)
        branch.undecided = parent and value is None
        branch.first = branch.start = self.lines[index][1]
        self.branches.append(branch)

    def _elif(self, index: int, line: int, rest: str) -> None:
        self._next_branch(index, line, f"#elif {rest.strip()}", lambda: self._evaluate(rest, line))

    def _elifdef(self, index: int, line: int, rest: str) -> None:
        self._next_branch(
            index, line, f"#elifdef {rest.strip()}",
            lambda: self.macros.is_defined(self._name("#elifdef", rest, line)),
        )  # fmt: skip

    def _elifndef(self, index: int, line: int, rest: str) -> None:
        def value() -> Truth:
            known = self.macros.is_defined(self._name("#elifndef", rest, line))
            return None if known is None else 1 - known

        self._next_branch(index, line, f"#elifndef {rest.strip()}", value)

    def _next_branch(self, index: int, line: int, condition: str, evaluate: Callable[[], Truth]) -> None:
        branch = self._current(line, condition.split()[0])
        if branch.has_else:
            raise SourceError(f"{condition.split()[0]} after #else", self._span(line))
        if branch.undecided:
            self._close_undecided_text(branch, index)
        elif branch.taken or not branch.parent:
            branch.active = False
        else:
            value = evaluate()
            branch.active = branch.taken = value == 1
            branch.undecided = value is None
            branch.condition, branch.line = condition, line
            branch.first = branch.start = self.lines[index][1]

    def _else(self, index: int, line: int, rest: str) -> None:
        branch = self._current(line, "#else")
        if branch.has_else:
            raise SourceError("#else after #else", self._span(line))
        branch.has_else = True
        if branch.undecided:
            self._close_undecided_text(branch, index)
        else:
            branch.active = branch.parent and not branch.taken
            branch.taken = True

    def _endif(self, index: int, line: int, rest: str) -> None:
        branch = self._current(line, "#endif")
        if branch.undecided:
            self._close_undecided_text(branch, index)
            if not branch.has_else:
                branch.texts.append("")
            if len(set(branch.texts)) > 1:
                raise UnsupportedError(
                    f"{branch.condition}: not decided by the given defines, and its branches differ",
                    self._span(branch.line),
                )
        self.branches.pop()

    def _close_undecided_text(self, branch: _Branch, index: int) -> None:
        """Note the text of an undecided branch; keep the first, for all must turn out equal."""
        end = self.lines[index][0]
        text = self.text[branch.start : end].decode(errors="replace")
        branch.texts.append(" ".join(text.split()))
        if len(branch.texts) > 1:
            self._blank(branch.start, end)
        branch.start = self.lines[index][1]

    def _current(self, line: int, what: str) -> _Branch:
        if not self.branches:
            raise SourceError(f"{what} without #if", self._span(line))
        return self.branches[-1]

    def _active(self) -> bool:
        return all(branch.active for branch in self.branches)

    def _undecided(self) -> bool:
        """Whether this text may be active; undecided branches stand in no inactive one."""
        return bool(self.branches) and self.branches[-1].undecided

    def _is_guard(self, name: str) -> bool:
        return name == self.protection.guard and not self.branches

    def _guard(self) -> str:
        """The macro of the include guard that is around the whole file; "" for none."""
        words = []
        for start, end, _ in self.lines:
            match = self._directive_at(start, end)
            if match is not None:
                directive, rest = (match[1] or b"").decode(), match[2].decode()
                negated = _NOT_DEFINED.fullmatch(rest) if directive == "if" else None
                words.append(["ifndef", negated[1]] if negated else [directive, *rest.split()[:1]])
            elif self.shape[start:end].strip() and (not words or words[-1]):
                words.append([])
        words = [w for w in words if w != ["pragma", "once"]]
        if len(words) < 3 or words[-1][:1] != ["endif"]:
            return ""
        opening, defining = words[0], words[1]
        if opening[:1] != ["ifndef"] or len(opening) != 2 or defining != ["define", opening[1]]:
            return ""
        depth = 0
        for position, word in enumerate(words):
            name = word[0] if word else ""
            depth += name in ("if", "ifdef", "ifndef")
            if depth == 1 and (name == "else" or name.startswith("elif")):
                return ""
            depth -= name == "endif"
            if depth == 0 and position < len(words) - 1:
                return ""
        return opening[1]

    # --- other directives -------------------------------------------------------------------

    def _include(self, index: int, line: int, rest: str) -> None:
        if not self._active() and not self._undecided():
            return
        scope = scope_after(self._before(self.lines[index][0]))
        if scope in (Scope.DECLARATION, Scope.INSIDE):
            raise UnsupportedError("#include inside a declaration, class or function", self._span(line))
        match = _QUOTED_INCLUDE.match(rest)
        if match is None and _ANGLE_INCLUDE.match(rest) is None:
            raise UnsupportedError(f"#include {rest.strip()}", self._span(line))
        if match is None or not self.includer.resolves(match[1]):
            return  # opaque; so it changes nothing in an undecided branch either
        self._refuse_undecided("#include")
        if scope is not Scope.FILE:
            raise UnsupportedError("#include inside a namespace", self._span(line))
        self.includer.read(match[1], self._span(line))

    def _define(self, index: int, line: int, rest: str) -> None:
        if not self._active() and not self._undecided():
            return
        match = _DEFINE.match(rest)
        if match is None:
            raise SourceError(f"#define{rest}", self._span(line))
        name = match[1]
        self._refuse_undecided(f"#define {name}")
        text = rest[match.end() :]
        words = set(re.findall(r"\w+", text))
        if name in KEYWORDS or name in MEANINGFUL:
            raise UnsupportedError(f"#define {name}, a word of the language", self._span(line))
        if words & ENTRY_WORDS:
            raise UnsupportedError(f"#define {name} with {min(words & ENTRY_WORDS)}", self._span(line))
        self.macros.define(name, Macro(" ".join(text.split()), match[2] is not None, self._span(line).place))

    def _undef(self, index: int, line: int, rest: str) -> None:
        if not self._active() and not self._undecided():
            return
        self._refuse_undecided(f"#undef {rest.strip()}")
        self.macros.undefine(self._name("#undef", rest, line))

    def _pragma(self, index: int, line: int, rest: str) -> None:
        if not self._active() and not self._undecided():
            return
        if _MACRO_PRAGMAS.match(rest):
            raise UnsupportedError(f"#pragma {rest.strip()}", self._span(line))
        if rest.split() == ["once"]:
            self._refuse_undecided("#pragma once")
            self.protection.once = True

    def _error(self, index: int, line: int, rest: str) -> None:
        if self._active():
            raise SourceError(f"#error {rest.strip()}", self._span(line))

    def _refuse_undecided(self, what: str) -> None:
        for branch in self.branches:
            if branch.undecided:
                raise UnsupportedError(
                    f"{branch.condition}: not decided by the given defines, and {what} depends on it",
                    self._span(branch.line),
                )
            if not branch.active:
                return

    # --- macros in the text -----------------------------------------------------------------

    def _note_uses(self, start: int, end: int) -> None:
        for offset, name in names_in(self.shape, start, end):
            macro = self.macros.find(name)
            if macro is None or self.shape[offset : offset + 1].isspace():
                continue
            after = offset + len(name.encode())
            if macro.arguments:
                if not re.compile(rb"\s*(?:\(|#|\Z)").match(self.shape, after):
                    continue
                after = after_parentheses(self.shape, after)
            self._note_use(name, macro, offset, after)

    def _note_use(self, name: str, macro: Macro, start: int, end: int) -> None:
        use = self.macros.use(name)
        expansion = self.macros.expansion(name)
        words = set(re.findall(r"\w+", expansion))
        if use.number is None and name not in self.macros.clashing:
            body = macro.text.partition(")")[2] if macro.arguments else macro.text
            if stands_for_nothing(body, self.macros, frozenset({name})):
                self._blank(start, end)
                return
        if words & ENTRY_WORDS or (
            use.number is None
            and _MAY_DECLARE.search(expansion)
            and scope_after(self._before(start)) is not Scope.INSIDE
        ):
            line = self.text.count(b"\n", 0, start) + 1
            raise UnsupportedError(f"{use}, which may declare anything", self._span(line))
        self.uses[start] = use

    def _still_there(self, offset: int, use: MacroUse) -> bool:
        name = use.name.encode()
        return self.text[offset : offset + len(name)] == name

    # --- helpers ----------------------------------------------------------------------------

    def _before(self, offset: int) -> bytearray:
        """The code before ``offset``, with only the current branch of each undecided ``#if``."""
        before = self.shape[:offset]
        for branch in self.branches:
            if branch.undecided:
                blank(before, branch.first, min(branch.start, offset))
        return before

    def _name(self, directive: str, rest: str, line: int) -> str:
        match = _NAME.fullmatch(rest)
        if match is None:
            raise SourceError(f"{directive}{rest}", self._span(line))
        return match[1]

    def _evaluate(self, rest: str, line: int) -> Truth:
        return evaluate_condition(rest, self.macros, self._span(line))

    def _span(self, line: int) -> Span:
        return Span(self.file, line)

    def _blank(self, start: int, end: int) -> None:
        blank(self.text, start, end)
        blank(self.shape, start, end)
