"""What `mc2proof fuzz` does and prints: random timings of each program, run with its data.

The search itself is `mc2proof.fuzz.search`; this reads the arguments that it shares with `prove`, and
lays out what was found.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mc2proof import checks, face
from mc2proof.fuzz import missing
from mc2proof.protocol.errors import ParameterError
from mc2proof.protocol.program import Barrier, Protocol
from mc2proof.render import parameters_text, sentences, steps_of
from mc2proof.shape import shaped
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places
from mc2proof.values import Value, check_names

if TYPE_CHECKING:
    from mc2proof.fuzz.replaying import DataReplay
    from mc2proof.fuzz.search import Found

ASSUMED = "aclshmem_barrier_all"
"""The function whose meaning depends on the build (see `BarrierAll`)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What `fuzz` was asked for besides the selection: printed, and enough to run it again."""

    examples: int
    seed: int
    timing: str
    dtype: str
    reproduce: str | None = None


def need_extra() -> None:
    """Raise ParameterError where what running needs is not installed."""
    try:
        import hypothesis  # noqa: F401
        import ml_dtypes  # noqa: F401
    except ImportError as error:
        raise ParameterError("fuzz", None, missing(error.name)) from error


@contextmanager
def _no_files_left() -> Iterator[None]:
    """Hypothesis keeps what it works out of a user's modules in a folder of the working directory."""
    from hypothesis.configuration import set_hypothesis_home_dir

    with TemporaryDirectory(prefix="mc2proof-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def run_programs(
    protocols: Sequence[Protocol],
    values: Mapping[str, Value],
    setup: Mapping[str, Any],
    asked: Asked,
    *,
    shape: tuple[int, int, int] | None = None,
    facts: str | None = None,
    max_events: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[list[str], Found]]:
    """What the search found on each program, with the names of all that are equal to it.

    ``setup`` are the arguments of `face.prove` about the hardware. Raises Mc2proofError for bad input.
    """
    need_extra()
    from mc2proof.fuzz.numerics import parse_dtypes
    from mc2proof.fuzz.reproduction import read_line
    from mc2proof.fuzz.search import search
    from mc2proof.fuzz.timings import TIMINGS

    checks.whole("examples", asked.examples, 1)
    checks.whole("seed", asked.seed, 0)
    checks.one_of("timing", "kind of timings", asked.timing, TIMINGS)
    dtypes = parse_dtypes(asked.dtype)
    reproduce = None if asked.reproduce is None else read_line(asked.reproduce)
    made = face.setup_of(**setup)
    limits = face.limits_of(max_events, None)
    check_names(values, protocols)
    if shape is not None:
        protocols, values, _, _ = shaped(protocols, values, shape, face.facts_of(facts))
    equal: dict[str, list[Protocol]] = {}
    for protocol in protocols:
        equal.setdefault(protocol.digest(), []).append(protocol)
    results = []
    for group in equal.values():
        with _no_files_left():
            found = search(
                group[0],
                values,
                made,
                examples=asked.examples,
                number=asked.seed,
                timing=asked.timing,
                dtypes=dtypes,
                limits=limits,
                reproduce=reproduce,
                progress=_teller(progress, group[0].name),
            )
        results.append(([name for p in group for name in (p.subjects or (p.name,))], found))
    return results


def _teller(progress: Callable[[str], None] | None, name: str) -> Callable[[str], None] | None:
    """Tells how far the search on ``name`` is."""
    if progress is None:
        return None
    return lambda text: progress(f"{name}: {text}")


def render_found(
    results: Sequence[tuple[Sequence[str], Found]], asked: Asked, sources: Sequence[str]
) -> list[Line]:
    """The lines of what was found; ``sources``: the arguments that read the same sources again."""
    lines: list[Line] = []
    for names, found in results:
        values = {n: list(v) if isinstance(v, tuple) else v for n, v in found.instance.values.items()}
        lines += [line(Piece(", ".join(names), "bold")), *indented([line(parameters_text(values))])]
        lines += [*indented(_taken(found)), BLANK]
        lines += indented(_found(found, asked, sources))
        lines += [*indented(_not_shown(found, strict_ids=False)), BLANK]
    examples = sum(found.examples for _, found in results)
    seconds = sum(found.seconds for _, found in results)
    failed = sum(found.fault is not None for _, found in results)
    rate = f", {examples / seconds:.0f} a second" if seconds else ""
    lines.append(line(f"{_count(examples, 'example')}, {_count(failed, 'failure')}{rate}"))
    return lines


def _taken(found: Found) -> list[Line]:
    """What ``aclshmem_barrier_all`` is taken to be where nobody said so."""
    instance = found.instance
    functions = {
        event.operation.function
        for core in instance.cores
        for event in core.events
        if isinstance(event.operation, Barrier)
    }
    if instance.setup.barrier_all is not None or ASSUMED not in functions:
        return []
    reading = instance.setup.reading.value
    return [line(Piece(f"{ASSUMED} is taken as {reading}: say what it is with --barrier-all", "yellow"))]


def _not_shown(found: Found, *, strict_ids: bool) -> list[Line]:
    """What a run says nothing of: faults that counting finds, and bytes that nobody judges."""
    from mc2proof.checker.quick import count
    from mc2proof.checker.report import Severity

    told: list[tuple[Line, str]] = []
    if not found.judged:
        told.append((line(Piece("no reader or output states its bytes: only hangs can show", "yellow")), ""))
    for fault in count(found.instance, strict_ids=strict_ids):
        if fault.severity is Severity.ERROR and (found.fault is None or fault.code != found.fault.code):
            text = f"running does not show it: {fault.property} ({fault.code}): {fault.message}"
            told.append((line(Piece(text, "yellow")), f"{fault.file}:{fault.line}" if fault.line else ""))
    if told and found.judged:
        told.append((line("mc2proof prove judges all properties; a run shows hangs and wrong data"), ""))
    return with_places(told)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _found(found: Found, asked: Asked, sources: Sequence[str]) -> list[Line]:
    kind = "" if found.data.kind == "tagged" else f", {found.data.kind} inputs as tags have no room"
    how = f"{asked.timing}, seed {asked.seed}, {found.data.dtype}{kind}"
    fault = found.fault
    if fault is None:
        count = _count(found.examples, "timing")
        return [line(Piece("NO FAILURE", "green"), f"  in {count} ({how})")]
    values = {n: list(v) if isinstance(v, tuple) else v for n, v in fault.instance.values.items()}
    title = line(
        Piece("FAILED", "bold red"),
        f"  {fault.property} ({fault.code})   example {found.examples} ({how})",
    )
    rows: list[list[str | Piece]] = []
    if found.acceptance is not None:
        rows.append([Piece("outputs", "bold"), str(found.acceptance)])
    rows += [
        [Piece("smallest", "bold"), parameters_text(values)],
        [Piece("replay", "bold"), shlex.join(["mc2proof", "replay", fault.trace, *sources])],
    ]
    if found.reproduction is not None:
        rows.append([Piece("reproduce", "bold"), f'the same command --reproduce "{found.reproduction}"'])
    told = with_places([(line(fault.headline), ""), *sentences(fault.conflict)])
    steps = [heading("steps"), *indented(steps_of(fault.steps))] if fault.steps else []
    return [title, *indented([*told, *steps, *table(rows)])]


def data_lines(trace: str, protocols: Sequence[Protocol]) -> list[Line]:
    """What ``trace`` does to its data. Raises Mc2proofError where it cannot be run."""
    need_extra()
    from mc2proof.fuzz.replaying import replay_with_data

    replayed = replay_with_data(trace, protocols)
    told = list(replayed.readers) or ["every reader found the bytes that it needs"]
    if not replayed.outcome.finished:
        told.append("the run stops before every core is done")
    told += [
        f"rank {wrong.rank}: {wrong.count} bytes of {wrong.region} are wrong, from byte {wrong.first} on"
        for wrong in replayed.outcome.wrong_outputs
    ]
    if replayed.acceptance is not None:
        told.append(str(replayed.acceptance))
    return [BLANK, heading("with data"), *indented([line(text) for text in [_data_taken(replayed), *told]])]


def _data_taken(replayed: DataReplay) -> str:
    """Which inputs a trace was run with, and who says so."""
    from mc2proof.fuzz.contracts import is_matmul

    data = replayed.data
    whose = "as the trace was found with" if replayed.noted else "the trace notes no data"
    product = is_matmul(replayed.outcome.instance)
    what = f"{data.kind} inputs, {data.dtype}" if product else "random bytes"
    return f"{what}, seed {data.seed} ({whose})"
