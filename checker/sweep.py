"""`sweep`: is each of many configurations safe, by which rule not, and how long does it take.

What depends on single cells (deadlock, flags, barriers, backlog, times) is judged on `cells.reduced`,
the rows of memory by `quick` on the whole instance, and only where nothing failed before: the rules
that are named are the first that fail. `answer` may say more, for all values at once. Results are
kept by content in a folder (`sweep_cache`), so that an interrupted sweep goes on where it was.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from multiprocessing import connection, get_context, parent_process
from os import _exit
from threading import Thread

import msgspec

from ..protocol.errors import LimitError, Mc2proofError, ParameterError, UnsupportedError
from ..protocol.evaluate import Value
from ..protocol.parameters import check_values
from ..protocol.program import Protocol
from ..protocol.setup import Setup
from ..protocol.sync import synchronise
from .analysis import collection_paused
from .ask import EngineDisagreement
from .cell_rules import OF_CELLS, CellRules, Rule
from .cells import Cells
from .costs import Costs
from .critical_path import launch_time, timed
from .engine import Declined
from .layout import extents
from .properties import PROPERTIES, rows_for
from .quick import judge
from .reach import reach
from .report import Severity, Verdict
from .steady import steady_time
from .sweep_cache import Cache

Answers = Mapping[str, Verdict | None]
Answer = Callable[[Protocol, Setup], Callable[[Mapping[str, Value]], Answers]]
"""Verdicts for all values at once: of a protocol and setup, at values, by property; None: ask by instance."""
TILES = "tile_cnt"
SWEEP_FORMAT = 1
"""Rises when cached results mean something else."""


class Configuration(msgspec.Struct, frozen=True):
    """What is known of one configuration; times in microseconds.

    ``verdict``: safe, violated, unknown or refused (``note`` says why). ``rules``: the first that
    fail, the binding one first. ``time_us`` of the launches, ``steady_us`` of one more tile in the
    long run; None where it never ends, or the timings share no one order. ``parametric``: the
    properties that were answered for all values.
    """

    values: dict[str, int]
    verdict: str
    rules: list[Rule] = []
    heap_bytes: int | None = None
    backlog: int | None = None
    time_us: float | None = None
    steady_us: float | None = None
    note: str | None = None
    parametric: list[str] = []


@dataclass(frozen=True, slots=True)
class Job:
    """What all configurations of a sweep share. ``cross_check``: ask both ways and compare."""

    protocol: Protocol
    setup: Setup
    costs: Costs
    strict_ids: bool = False
    answer: Answer | None = None
    cross_check: bool = False
    version: str = ""
    cache: str | None = None

    def content(self) -> str:
        """A hash of everything that a result depends on, but for the values."""
        parts = (SWEEP_FORMAT, self.version, self.protocol.digest(), self.strict_ids, self.cross_check)
        asked = "" if self.answer is None else f"{self.answer.__module__}.{self.answer.__qualname__}"
        text = "\n".join([*map(str, parts), asked, _plain(self.setup), _plain(self.costs)])
        return hashlib.sha256(text.encode()).hexdigest()


def sweep(
    job: Job,
    grid: Sequence[Mapping[str, Value]],
    *,
    jobs: int = 1,
    progress: Callable[[str], None] | None = None,
) -> list[Configuration]:
    """The results for the values of ``grid``, in its order, whatever is judged first."""
    order = _alike_together(grid)
    found: dict[int, Configuration] = {}
    for number, result in zip(order, _run(job, [grid[i] for i in order], jobs), strict=True):
        found[number] = result
        if progress is not None:
            progress(f"{len(found)} of {len(grid)} configurations")
    return [found[number] for number in range(len(grid))]


def _alike_together(grid: Sequence[Mapping[str, Value]]) -> list[int]:
    """The numbers of ``grid``, one after the other those that `CellRules` may find alike."""
    together: dict[tuple[Value | None, ...], list[int]] = {}
    for number, values in enumerate(grid):
        together.setdefault((values.get("buffer_size"), values.get(TILES)), []).append(number)
    return [number for numbers in together.values() for number in numbers]


def _run(job: Job, grid: Sequence[Mapping[str, Value]], jobs: int) -> Iterator[Configuration]:
    if jobs == 1 or len(grid) < 2:
        _start(job)
        yield from map(_configured, grid)
        return
    # a fresh process each: this one may have threads, which a fork would lose
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start_process, (job,)) as pool:
        yield from pool.map(_configured, grid, chunksize=max(1, min(_CHUNK, len(grid) // (4 * jobs))))


_CHUNK = 24
"""Configurations that a process is given at a time: few, so that none is idle at the end."""


class _Worker:
    """The job of this process, with what is made once for it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.content = job.content()
        self.cells = Cells(job.protocol, job.setup)
        self.rules = CellRules(strict_ids=job.strict_ids)
        self.cache = None if job.cache is None else Cache(job.cache, Configuration)
        self.answers = None if job.answer is None else job.answer(job.protocol, job.setup)
        self.steady: dict[object, float | None] = {}


_worker: _Worker | None = None


def _start(job: Job) -> None:
    global _worker
    _worker = _Worker(job)


def _start_process(job: Job) -> None:
    """Begin in a process of the pool, which ends with its parent, however that ends.

    Ctrl-C reaches the pool too; one that lost a process to it would be waited for without end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _start(job)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        _exit(1)


def _configured(values: Mapping[str, Value]) -> Configuration:
    worker = _worker
    assert worker is not None
    shown = {name: value for name, value in values.items() if isinstance(value, int)}
    try:
        complete = check_values(worker.job.protocol, values)
    except ParameterError as error:
        return Configuration(shown, "refused", note=str(error))
    key = hashlib.sha256(f"{worker.content}\n{complete!r}\n{shown!r}".encode()).hexdigest()
    known = None if worker.cache is None else worker.cache.get(key)
    if known is not None:
        return known
    with collection_paused():
        result = _judged(worker, shown, complete)
    if worker.cache is not None:
        worker.cache.put(key, result)
    return result


def _judged(worker: _Worker, shown: dict[str, int], values: Mapping[str, Value]) -> Configuration:
    job = worker.job
    try:
        judged = worker.rules.judged(worker.cells.reduced(values))
        rules, order = dict.fromkeys(judged.rules), judged.order
        answers = {} if worker.answers is None else dict(worker.answers(values))
        known = {name for name, verdict in answers.items() if verdict is not None}
        named = {rule.property for rule in rules}
        failing = [name for name, verdict in answers.items() if verdict is Verdict.VIOLATED]
        rules |= {Rule(name, ""): None for name in failing if name not in named}
        opened: str | None = None
        left = set(rows_for(job.setup.launches)) - OF_CELLS - known
        if job.cross_check or order is None or (not rules and left):
            opened = _whole(worker, values, rules, answers)
        return Configuration(
            shown,
            "violated" if rules else "unknown" if opened else "safe",
            sorted(rules, key=lambda rule: list(PROPERTIES).index(rule.property)),
            _heap(worker, values),
            judged.backlog,
            None if order is None else _float(launch_time(timed(judged.sync, job.costs, order))),
            None if order is None else _steady(worker, values),
            opened,
            [name for name in PROPERTIES if name in known],
        )
    except (UnsupportedError, LimitError) as error:
        return Configuration(shown, "unknown", note=str(error))
    except Mc2proofError as error:
        return Configuration(shown, "refused", note=str(error))


def _whole(
    worker: _Worker, values: Mapping[str, Value], rules: dict[Rule, None], answers: Answers
) -> str | None:
    """Add the rules that fail in the whole instance; returns why some are not known."""
    job = worker.job
    try:
        instance = worker.cells.whole(values)
    except LimitError as error:
        return str(error)
    judgement = judge(instance, strict_ids=job.strict_ids)
    errors = [found for found in judgement.found if found.severity is Severity.ERROR]
    if job.cross_check and judgement.open is None:
        failing = {found.property for found in errors}
        for name, verdict in answers.items():
            if verdict in _SAID and _SAID[verdict] != (name in failing):
                raise EngineDisagreement(
                    f"the answer for all values and happens-before disagree on {name} at {dict(values)}",
                    None,
                )
    rules |= {Rule(found.property, found.code): None for found in errors}
    return judgement.open


_SAID: Mapping[Verdict | None, bool] = {Verdict.PROVED: False, Verdict.VIOLATED: True}
"""Whether a property fails, of the answers that `judge` can be compared with."""


def _heap(worker: _Worker, values: Mapping[str, Value]) -> int | None:
    """The bytes of symmetric memory that are addressed; None where the instance is too large to tell."""
    try:
        return reach(worker.job.protocol, values, worker.job.setup)
    except Declined:
        pass
    try:
        instance = worker.cells.whole(values)
    except LimitError:
        return None
    return max((extent.needed for extent in extents(instance)), default=0)


def _float(time: object) -> float | None:
    return None if time is None else float(time)  # type: ignore[arg-type]


def _steady(worker: _Worker, values: Mapping[str, Value]) -> float | None:
    """The time of one more tile in the long run, everything but the tiles as in ``values``."""
    job = worker.job
    if job.protocol.parameter(TILES) is None:
        return None
    others = {name: value for name, value in values.items() if name != TILES}
    fixed = {n: v for n, v in others.items() if not _is_computed(job.protocol, n)}
    key = tuple(fixed.items())
    if key not in worker.steady:
        depth = fixed.get("buffer_size", 1)
        many = 4 * (depth if isinstance(depth, int) else 1) + 16
        try:
            instance = worker.cells.reduced({**fixed, TILES: many})
            worker.steady[key] = _float(steady_time(timed(synchronise(instance), job.costs)))
        except (Mc2proofError, Declined):
            worker.steady[key] = None
    return worker.steady[key]


def _is_computed(protocol: Protocol, name: str) -> bool:
    parameter = protocol.parameter(name)
    return parameter is not None and not isinstance(parameter.default, int | None)


def _plain(item: object) -> str:
    """``item`` as text that is the same in every process."""
    if is_dataclass(item) and not isinstance(item, type):
        inner = ",".join(f"{f.name}={_plain(getattr(item, f.name))}" for f in fields(item))
        return f"{type(item).__name__}({inner})"
    if isinstance(item, Enum):
        return f"{type(item).__name__}.{item.name}"
    if isinstance(item, Mapping):
        return "{" + ",".join(sorted(f"{_plain(k)}:{_plain(v)}" for k, v in item.items())) + "}"
    if isinstance(item, frozenset | set):
        return "{" + ",".join(sorted(map(_plain, item))) + "}"
    return repr(item)
