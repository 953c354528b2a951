"""Results kept by content in a folder: written whole or not at all, read if they are whole.

Used by the processes of a `sweep`, which may write the same result at the same time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ..protocol.errors import SourceError

T = TypeVar("T")


class Cache(Generic[T]):
    """Files of one ``type`` each in ``folder``, named by key. Raises SourceError if it cannot be used."""

    def __init__(self, folder: str, kind: type[T]) -> None:
        self.folder = Path(folder)
        self.kind = kind
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(f"{folder}: cannot be a cache: {error.strerror}") from error

    def get(self, key: str) -> T | None:
        """What was kept under ``key``; None if nothing was, or it is damaged."""
        try:
            return msgspec.json.decode(self._path(key).read_bytes(), type=self.kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, key: str, item: T) -> None:
        """Keep ``item`` under ``key``."""
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(exist_ok=True)
            temporary.write_bytes(msgspec.json.encode(item))
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise SourceError(f"{self.folder}: cannot be written: {error.strerror}") from error

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
