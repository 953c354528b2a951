"""What C++ means: types and promotions, objects, templates, calls, branches, loops."""

from __future__ import annotations

import pytest
from conftest import LoadText, Lower, lines_of  # type: ignore[import-not-found]

from mc2proof.protocol.cinteger import CType
from mc2proof.protocol.evaluate import evaluate
from mc2proof.protocol.program import For, Role, SetFlag, Span


def flag(expression: str) -> str:
    return f"CrossCoreSetFlag<0x2, PIPE_MTE3>({expression});"
