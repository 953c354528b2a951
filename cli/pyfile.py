"""Protocols written in Python: ``FILE.py:NAME`` from a user's own file.

NAME is a `Protocol`, or a function without arguments that returns one. Whatever the file raises
becomes one `SourceError` with the line of the user's file. What it prints goes to stderr, since
standard output belongs to the report.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TypeVar

from mc2proof.hints import one_line, unknown
from mc2proof.protocol.errors import Mc2proofError, SourceError
from mc2proof.protocol.program import Protocol, Span

T = TypeVar("T")

_REFERENCE = re.compile(r"(?P<file>.*\.py)(?::(?P<name>.*))?", re.DOTALL)


def split_reference(source: str) -> tuple[str, str | None] | None:
    """File and name of ``FILE.py:NAME`` (name None where it is missing), None for another source."""
    match = _REFERENCE.fullmatch(source)
    return (match["file"], match["name"] or None) if match else None


def load_protocol(file: str, name: str | None) -> Protocol:
    """The protocol ``name`` of the Python file ``file``, which is run. Raises SourceError."""
    scope = _run(file)
    if name is None:
        known = candidates(scope)
        listed = f" (it has: {', '.join(known)})" if known else ""
        raise SourceError(f"{file}: say which protocol of the file: {file}:NAME{listed}")
    if name not in scope:
        raise SourceError(f"{file}: {unknown('name', name, candidates(scope))}")
    value = scope[name]
    if not isinstance(value, Protocol) and callable(value):
        value = _call(file, name, value)
    if not isinstance(value, Protocol):
        is_builder = type(value).__name__ == "ProtocolBuilder"
        mend = "call its build()" if is_builder else "it must be a Protocol, or a function that returns one"
        raise SourceError(f"{file}: {name} is no protocol but of type {type(value).__name__}: {mend}")
    return value


def candidates(scope: dict[str, object]) -> list[str]:
    """Names of what may be meant: protocols, and functions of the file that need no argument."""
    home = scope.get("__name__")
    return [
        name
        for name, value in scope.items()
        if not name.startswith("_")
        and (
            isinstance(value, Protocol)
            or (inspect.isfunction(value) and value.__module__ == home and _needs_nothing(value))
        )
    ]


def _needs_nothing(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True


def _run(file: str) -> dict[str, object]:
    """What ``file`` defines. It can import modules that lie beside it; nothing is cached on disk."""
    path = Path(file).absolute()
    module = ModuleType(f"mc2proof_source_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickle look a module up by its name

    def execute() -> dict[str, object]:
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
        return module.__dict__

    return _guarded(file, execute)


def _call(file: str, name: str, function: Callable[..., object]) -> object:
    if not _needs_nothing(function):
        raise SourceError(f"{file}: {name} takes arguments: a function without any is needed")
    return _guarded(file, function)


def _guarded(file: str, action: Callable[[], T]) -> T:
    """The result of the user's code; raises SourceError for whatever it raises."""
    folder = str(Path(file).absolute().parent)
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return action()
    except Mc2proofError:
        raise
    except SyntaxError as error:
        line = error.lineno if error.filename == str(Path(file).absolute()) else None
        place = Span(file, line) if line else _line_of(error.__traceback__, file)
        raise SourceError(f"no valid Python: {error.msg}", place) from error
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        text = one_line(f"{type(error).__name__}: {error}").removesuffix(":")
        raise SourceError(f"raised {text}", _line_of(error.__traceback__, file)) from error
    finally:
        with contextlib.suppress(ValueError):  # the file may have changed the list
            sys.path.remove(folder)


def _line_of(trace: TracebackType | None, file: str) -> Span:
    """The innermost line of the user's file that was running."""
    path, line = str(Path(file).absolute()), 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return Span(file, line)
