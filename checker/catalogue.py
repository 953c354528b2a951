"""Every code that a finding may have, in one table: what it belongs to, its document, what it means.

`source_of` and `severity_of` are asked where findings are made, so that a code which is not here
cannot be reported; `mc2proof explain CODE` prints an entry. The entries are in the modules
``catalogue_*``, by subject; `catalogue_entry` says what one consists of. A test runs every example.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import catalogue_counters, catalogue_flags, catalogue_layout, catalogue_relaunch, catalogue_timing
from .catalogue_entry import Entry
from .report import Severity

CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        entry.code: entry
        for entry in (
            *catalogue_timing.ENTRIES,
            *catalogue_flags.BALANCE,
            *catalogue_flags.IDS,
            *catalogue_counters.RANGE,
            *catalogue_counters.BARRIERS,
            *catalogue_layout.ENTRIES,
            *catalogue_relaunch.ENTRIES,
        )
    }
)
"""The entries by code, in the order in which reports print their properties."""

VOCABULARY = MappingProxyType(
    {
        "ReadTile(place, size, rank, origin)": "reads on MTE2, and must find there what rank has at origin",
        "WriteTile(place, size)": "writes on FIX",
        "StoreTile(place, size)": "writes on MTE3",
        "heap": "symmetric memory",
        "scratch": "private memory of n * 64 bytes",
        "input": "an input",
        "other": "another input",
        "result": "an output of n * 64 bytes",
        "ub": "a buffer of the vector core, which the put stages through",
        "n": "an argument of the kernel",
        "rank": "aclshmem_my_pe()",
        "ranks": "aclshmem_n_pes()",
        "peer": "1 - rank",
        "block": "GetBlockIdx()",
        "blocks": "GetBlockNum()",
    }
)
"""What the examples use besides Ascend C and SHMEM: the names of their frame, and their meanings."""


def source_of(code: str) -> str:
    """The document that the rule behind ``code`` comes from. Raises KeyError for an unknown code."""
    return CATALOGUE[code].source_doc


def severity_of(code: str, *, strict_ids: bool = False) -> Severity:
    """How much a finding ``code`` weighs, under strict ids or not. Raises KeyError."""
    entry = CATALOGUE[code]
    return entry.strict if strict_ids and entry.strict is not None else entry.severity
