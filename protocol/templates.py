"""Compiled text, shared by texts that differ in numbers only.

`generate` makes one function a role and configuration; most of `sweep`'s configurations have the same
text but for the values of parameters. Numbers become global names here, so that Python compiles a text
once. Tuples of numbers stay constants: they would be made anew each time they are used.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from types import CodeType

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*" """.strip()  # strings stay as they are,
    + r"|(?<!\w)\((?:-?\d+, )*-?\d+,?\)"  # and so do tuples;
    + r"|(?<![\w.])(?P<number>\d+)(?![\w.])"
)


def compiled(text: str) -> tuple[CodeType, dict[str, int]]:
    """The code of ``text``, and the globals that it needs beside those that ``text`` names.

    Names in ``text`` must not begin with ``_number``.
    """
    found: list[int] = []

    def lifted(token: re.Match[str]) -> str:
        if token["number"] is None:
            return token[0]
        found.append(int(token["number"]))
        return f"_number{len(found) - 1}"

    template = _TOKEN.sub(lifted, text)
    return _code(template), {f"_number{n}": value for n, value in enumerate(found)}


_serial = itertools.count()


@lru_cache(maxsize=256)
def _code(template: str) -> CodeType:
    return compile(template, f"<unrolled {next(_serial)}>", "exec")
