"""`load`, `prove` and `plan`: what the command line does, for Python programs.

`load` turns sources into protocols, `prove` checks protocols at given parameters, `plan` computes
them from a shape. The work is done in `protocol.ascendc`, `checker.prove` and `checker.plan`; here
inputs are validated and named.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mc2proof import checks
from mc2proof.hints import did_you_mean, shown_path
from mc2proof.protocol.errors import ParameterError, SourceError
from mc2proof.protocol.profile import PROFILES, BarrierAll, Profile
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Injected, Setup
from mc2proof.protocol.unroll import Limits
from mc2proof.pyfile import load_protocol, split_reference
from mc2proof.shape import one_program, one_setting, shaped
from mc2proof.values import Given, Value, check_names, checked_value, merge

if TYPE_CHECKING:
    from mc2proof.checker.plan import Plan
    from mc2proof.checker.report import Report
    from mc2proof.protocol.ascendc import Facts

Source = str | os.PathLike[str]

_MACRO = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RLIMIT_MAX = (1 << 32) - 1  # Z3 keeps the limit in an unsigned int
_MATMUL_OBJECTS_MAX = 4  # devkit SyncAll: at most 4 objects, with two flag ids each


def load(
    *sources: Source,
    entry: str | None = None,
    facts: Source | None = None,
    defines: Sequence[str] = (),
    undefines: Sequence[str] = (),
    include_dirs: Sequence[Source] = (),
) -> list[Protocol]:
    """The protocols of ``sources``; without any, the built-in one.

    A source is a kernel header, or ``FILE.py:NAME`` for a protocol (or a function without arguments
    that returns one) in a Python file, which is run. The other arguments are for kernel headers:
    ``entry`` names one ``__global__`` function instead of all, ``facts`` a TOML file with what the
    sources lack (default: the shipped facts of the all-to-all + matmul kernel), ``defines`` macros
    as ``X`` or ``X=V``, ``undefines`` those that are known to be undefined, ``include_dirs`` where
    quoted includes are searched besides the including file's folder.

    Raises SourceError for a source that cannot be read, UnsupportedError for a construct that is
    not decided, ParameterError for a bad argument.
    """
    written = [checks.path("source", source) for source in sources]
    references = [(source, split_reference(source)) for source in written]
    headers = [source for source, reference in references if reference is None]
    macros = _macros(checks.texts("define", defines), checks.texts("undefine", undefines))
    if entry is not None and not isinstance(entry, str):
        raise ParameterError("entry", repr(entry), "must be the name of a function")
    if not headers and (entry is not None or facts is not None or macros or include_dirs):
        name = next(
            name
            for name, given in (("entry", entry), ("facts", facts), ("define", macros), ("-I", include_dirs))
            if given
        )
        raise ParameterError(name, None, "applies to kernel sources, and none are given")
    if not written:
        from mc2proof.protocol.builtin import ring_all_to_all

        return [ring_all_to_all()]
    for source, reference in references:
        check_file(reference[0] if reference else source)
    protocols = [load_protocol(*reference) for _, reference in references if reference]
    if headers:
        protocols += _load_kernels(headers, entry, facts, macros, include_dirs)
    return protocols


def _load_kernels(
    headers: Sequence[str],
    entry: str | None,
    facts: Source | None,
    macros: Mapping[str, str | None],
    include_dirs: Sequence[Source],
) -> list[Protocol]:
    for folder in include_dirs:
        if not os.path.isdir(folder):
            raise SourceError(f"{os.fspath(folder)}: no such folder (-I)")
    known = facts_of(facts)
    from mc2proof.protocol.ascendc import load_sources

    return load_sources(
        [Path(header) for header in headers],
        entry=entry,
        facts=known,
        defines=macros,
        include_dirs=[Path(folder) for folder in include_dirs],
    )


def has_headers(sources: Sequence[Source]) -> bool:
    """Whether some of ``sources`` are kernel headers, which facts are read with."""
    return any(split_reference(checks.path("source", source)) is None for source in sources)


def facts_of(given: Source | None) -> Facts:
    """The facts in file ``given``; None: the shipped ones."""
    if given is not None:
        check_file(checks.path("facts", given))
    from mc2proof.protocol.ascendc import load_facts, reference_facts

    return reference_facts() if given is None else load_facts(Path(given))


def prove(
    protocols: Protocol | Source | Sequence[Protocol | Source] = (),
    *,
    ranks: int | None = None,
    buffer_size: int | None = None,
    tile_cnt: int | None = None,
    blocks: int | None = None,
    profile: str | Profile = "ascend950",
    barrier_all: str | BarrierAll | None = None,
    strict_ids: bool = False,
    launches: int = 1,
    clear_flags: bool = False,
    merge_flags: bool = False,
    cores: int | None = None,
    matmul_objects: int | None = None,
    faults: Sequence[str] = (),
    properties: Sequence[str] = (),
    engine: str = "auto",
    cross_check: bool = False,
    settings: Mapping[str, int | Sequence[int]] | None = None,
    shape: tuple[int, int, int] | None = None,
    facts: Source | None = None,
    max_events: int | None = None,
    rlimit: int | None = None,
    for_all: Sequence[str] = (),
    assume: Sequence[str] = (),
    certificate: Source | None = None,
    second_solver: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """The verdicts on ``protocols`` (what `load` returns, or sources for it) at the given values.

    A parameter without a value takes the default that its protocol declares, if it does;
    ``settings`` gives parameters that have no argument here; ``shape`` (M, K, N) computes those that
    the host program computes, by the rules in ``facts`` (default: the shipped ones; give the file
    that the sources were loaded with). ``barrier_all`` says what
    ``aclshmem_barrier_all`` is in the build; left out, ``vec`` is assumed with a warning.

    Each rank launches the kernel ``launches`` times, and nothing orders the launches of different
    ranks; what a launch leaves in the flags carries over unless ``clear_flags``. ``merge_flags``: a
    set of a flag that is already set is lost. ``cores`` is the number of AI cores of a device,
    ``matmul_objects`` (0 to 4) how many objects of the Matmul API take flag ids. ``faults`` are put
    in: ``quiet-timeout``, a quiet that gives up unnoticed.

    ``properties`` empty means all. ``max_events`` and ``rlimit`` (Z3's own count a question) bound
    the work; where one is reached the verdict is UNKNOWN. ``progress`` is told what is being done.

    ``for_all`` names parameters (and ``launches``) that have no value: the verdicts are for all of
    theirs, under the conditions ``assume`` ("tile_cnt <= 16", "buffer_size power of 2"). Why they
    hold is written to ``certificate``, which `audit` checks; ``second_solver``: cvc5 is asked as well
    what Z3 finds impossible.

    Raises Mc2proofError for bad input, EngineDisagreement where two engines differ.
    """
    checks.caller("progress", progress)
    setup = setup_of(profile, barrier_all, launches, clear_flags, merge_flags, cores, matmul_objects, faults)
    checks.flag("strict_ids", strict_ids)
    checks.flag("cross_check", cross_check)
    limits = limits_of(max_events, rlimit)
    chosen = chosen_protocols(protocols, facts, shaped=shape is not None)
    values = named_values(
        {"ranks": ranks, "blocks": blocks, "buffer_size": buffer_size, "tile_cnt": tile_cnt}, settings
    )
    check_names(values, chosen)
    if shape is not None:
        chosen, values, _, _ = shaped(chosen, values, shape, facts_of(facts))
    names = [str(name) for name in checks.several("for_all", for_all)]
    conditions = [str(text) for text in checks.several("assume", assume)]
    if not names:
        one_setting(chosen, values)

    from mc2proof.checker.properties import PROPERTIES
    from mc2proof.checker.prove import ENGINES, prove_protocols

    checks.one_of("engine", "engine", engine, (*ENGINES, "parametric"))
    asked = [
        checks.one_of("property", "property", p, PROPERTIES) for p in checks.several("properties", properties)
    ]
    checks.flag("second_solver", second_solver)
    if names or conditions or engine == "parametric":
        from mc2proof.certified import prove_certified

        return prove_certified(
            chosen, values, names, conditions, setup, strict_ids=strict_ids, limits=limits, progress=progress,
            properties=tuple(dict.fromkeys(asked)), second_solver=second_solver,
            certificate=None if certificate is None else checks.path("certificate", certificate),
        )  # fmt: skip
    for name, given in (("certificate", certificate), ("second_solver", second_solver)):
        if given:
            raise ParameterError(name, None, "applies to proofs for all values (--for-all)")
    return prove_protocols(
        chosen,
        values,
        setup,
        strict_ids=strict_ids,
        properties=tuple(dict.fromkeys(asked)),
        engine=engine,
        cross_check=cross_check,
        limits=limits,
        progress=progress,
    )


def plan(
    shape: tuple[int, int, int],
    ranks: int,
    protocols: Protocol | Source | Sequence[Protocol | Source] = (),
    *,
    buffer_size: int | None = None,
    blocks: int | None = None,
    profile: str | Profile = "ascend950",
    barrier_all: str | BarrierAll | None = None,
    strict_ids: bool = False,
    launches: int = 1,
    clear_flags: bool = False,
    merge_flags: bool = False,
    cores: int | None = None,
    matmul_objects: int | None = None,
    faults: Sequence[str] = (),
    settings: Mapping[str, int | Sequence[int]] | None = None,
    facts: Source | None = None,
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """What the host program makes of ``shape`` (M, K, N) on ``ranks`` ranks, and how far it may grow.

    ``facts`` has the host's rules (default: the shipped ones; give the file that the sources were
    loaded with). ``buffer_size`` replaces the host's own; ``settings`` gives parameters that the host
    does not compute. The other arguments are those of `prove`.
    Findings and limits are from counting and happens-before; `prove` has Z3 confirm them.

    Raises Mc2proofError for bad input, among it what the host program rejects.
    """
    checks.caller("progress", progress)
    setup = setup_of(profile, barrier_all, launches, clear_flags, merge_flags, cores, matmul_objects, faults)
    checks.flag("strict_ids", strict_ids)
    chosen = one_program(chosen_protocols(protocols, facts, shaped=True))
    checks.whole("ranks", ranks, 1)
    given = named_values({"ranks": ranks, "blocks": blocks, "buffer_size": buffer_size}, settings)
    check_names(given, [chosen])
    (noted,), _, rules, geometry = shaped([chosen], given, shape, facts_of(facts))

    from mc2proof.checker.plan import make_plan

    if progress is not None:
        progress("trying values")
    return make_plan(noted, rules, geometry, given, setup, strict_ids=strict_ids)


def check_file(path: str) -> None:
    """Raises SourceError unless ``path`` names something that can be read as a file."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{path!r}: the file's name is not valid UTF-8: rename it") from None
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):  # a pipe would lose its content
            open(path, "rb").close()
    except FileNotFoundError:
        raise SourceError(f"{shown_path(path)}: no such file{_neighbour(path)}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"{path}: cannot be read: {reason}") from error
    if stat.S_ISDIR(mode):
        raise SourceError(f"{path}: is a folder: name the files in it")


def _neighbour(path: str) -> str:
    try:
        names = os.listdir(os.path.dirname(path) or ".")
    except OSError:
        return ""
    return did_you_mean(os.path.basename(path), names)


def _macros(defines: Sequence[str], undefines: Sequence[str]) -> dict[str, str | None]:
    """Macros by name, None for undefined ones; as for compilers the last wins and X alone is 1."""
    macros: dict[str, str | None] = {}
    for text in defines:
        name, equals, value = text.partition("=")
        macros[_macro(text, name)] = value if equals else "1"
    for text in undefines:
        if macros.get(_macro(text, text)) is not None:
            raise ParameterError("define", None, f"{text} is both defined and undefined")
        macros[text] = None
    return macros


def _macro(text: str, name: str) -> str:
    if not _MACRO.fullmatch(name):
        raise ParameterError("define", None, f"{text!r} is not of the form NAME or NAME=VALUE")
    return name


def chosen_protocols(
    given: Protocol | Source | Sequence[Protocol | Source], facts: Source | None, *, shaped: bool
) -> list[Protocol]:
    """The protocols that are given, or read from what is; of a shape, facts may be for its rules alone."""
    if facts is not None:
        checks.path("facts", facts)
    items = [given] if isinstance(given, Protocol | str | os.PathLike) else given
    if not isinstance(items, Sequence) or isinstance(items, bytes):
        raise ParameterError("protocols", repr(given), "must be protocols, or paths of sources")
    ready = [item for item in items if isinstance(item, Protocol)]
    if ready and len(ready) != len(items):
        raise ParameterError("protocols", None, "give protocols or sources, not both")
    sources = [item for item in items if not isinstance(item, Protocol)]
    return ready or load(*sources, facts=None if shaped and not has_headers(sources) else facts)


def named_values(
    named: Mapping[str, object], settings: Mapping[str, int | Sequence[int]] | None
) -> dict[str, Value]:
    """The parameters' values by name, however they are given."""
    given: list[Given] = [
        (f"{name}=", name, checked_value(name, value)) for name, value in named.items() if value is not None
    ]
    more = checks.mapping("settings", settings)
    given += [("settings", name, checked_value(name, value)) for name, value in more.items()]
    return merge(given)


def _profile(given: str | Profile) -> Profile:
    if isinstance(given, Profile):
        return given
    return PROFILES[checks.one_of("profile", "profile", given, PROFILES)]


def setup_of(
    profile: str | Profile,
    barrier_all: str | BarrierAll | None,
    launches: int,
    clear_flags: bool,
    merge_flags: bool,
    cores: int | None,
    matmul_objects: int | None,
    faults: Sequence[str],
) -> Setup:
    """What an instance is made for, of the arguments that `prove` and `plan` share."""
    return Setup(
        _hardware(_profile(profile), checks.flag("merge_flags", merge_flags), cores, matmul_objects),
        _barrier_all(barrier_all),
        checks.whole("launches", launches, 1),
        checks.flag("clear_flags", clear_flags),
        frozenset(_fault(name) for name in checks.several("faults", faults)),
    )


def _hardware(profile: Profile, merge: bool, cores: int | None, matmul_objects: int | None) -> Profile:
    """``profile`` with what was said about the device and the build."""
    if merge:
        profile = replace(profile, flags_merge=True)
    if cores is not None:
        profile = replace(profile, cores=checks.whole("cores", cores, 1))
    if matmul_objects is not None:
        profile = replace(
            profile, matmul_objects=checks.whole("matmul_objects", matmul_objects, 0, _MATMUL_OBJECTS_MAX)
        )
    return profile


def _fault(given: object) -> Injected:
    return Injected(checks.one_of("fault", "fault", given, [fault.value for fault in Injected]))


def _barrier_all(given: str | BarrierAll | None) -> BarrierAll | None:
    if given is None or isinstance(given, BarrierAll):
        return given
    return BarrierAll(
        checks.one_of("barrier_all", "reading", given, [reading.value for reading in BarrierAll])
    )


def limits_of(max_events: int | None, rlimit: int | None) -> Limits:
    """The bounds of a run; None is the default."""
    limits = Limits()
    events = limits.max_events if max_events is None else checks.whole("max_events", max_events, 1)
    resources = limits.rlimit if rlimit is None else checks.whole("rlimit", rlimit, 0, _RLIMIT_MAX)
    return Limits(max_events=events, max_states=limits.max_states, rlimit=resources)
