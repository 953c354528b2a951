"""What operations cost, for a prediction of time: a table of numbers, from a TOML file or made up.

Read by `critical_path`. The defaults are no measurement of any machine.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from ..protocol.errors import ParameterError, SourceError

MADE_UP = "made up: no measurement of any machine (give your own with --costs FILE)"


@dataclass(frozen=True, slots=True)
class Costs:
    """Durations in microseconds, bandwidths in GB/s (1000 bytes a microsecond).

    A put lands ``put_latency_us`` after its bytes have left. The requests of a core to one peer
    leave in turn, those to different peers side by side (each has its own send queue, hardware.md
    4). A block's part of an opaque compute takes ``matmul_tile_us`` on its writing pipe, once all its
    segments are there; reading them costs nothing more. A Read or Write by hand moves its bytes at
    ``copy_bandwidth_gb_s``. Everything else takes no time.
    """

    put_latency_us: Fraction = Fraction(5)
    put_bandwidth_gb_s: Fraction = Fraction(50)
    matmul_tile_us: Fraction = Fraction(100)
    barrier_us: Fraction = Fraction(10)
    flag_us: Fraction = Fraction(1, 2)
    copy_bandwidth_gb_s: Fraction = Fraction(500)

    def put_bytes(self, count: int) -> Fraction:
        """How long ``count`` bytes take to leave."""
        return Fraction(count) / (1000 * self.put_bandwidth_gb_s)

    def copy(self, count: int) -> Fraction:
        """How long a read or write of ``count`` bytes takes."""
        return Fraction(count) / (1000 * self.copy_bandwidth_gb_s)

    def numbers(self) -> dict[str, float]:
        """The table, as it is printed."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self)}


DEFAULT = Costs()


def load_costs(path: Path) -> Costs:
    """The costs in TOML file ``path``; what it leaves out has the default.

    Raises SourceError where it cannot be read, ParameterError for a name or value that makes no sense.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SourceError(f"{path}: cannot be read: {reason}") from error
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, InvalidOperation) as error:
        raise SourceError(f"{path}: is no TOML: {error}") from error
    known = [f.name for f in fields(Costs)]
    for name in table:
        if name not in known:
            names = ", ".join(known)
            raise ParameterError(name, None, f"{path} has a cost of no such name (there are {names})")
    return Costs(**{name: _number(path, name, value) for name, value in table.items()})


def _number(path: Path, name: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not _is_usual(value):
        raise ParameterError(name, repr(value), f"must be a number, at most 10^12 ({path})")
    number = Fraction(value)
    if number < 0 or (number == 0 and "bandwidth" in name):
        least = "above 0" if number == 0 else "at least 0"
        raise ParameterError(name, str(value), f"must be {least} ({path})")
    return number


def _is_usual(value: int | Decimal) -> bool:
    return Decimal(value).is_finite() and abs(Decimal(value)) <= 10**12
