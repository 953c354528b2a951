"""How cores, events and accesses are named to a reader: the one place that prints them."""

from __future__ import annotations

from collections.abc import Iterable

from .instance import Access, Event, Instance, Kind
from .machine import Phase
from .program import Barrier


def core_name(instance: Instance, core: int, event: Event) -> str:
    """``rank 1 AIV block 0``, with the launch where there is more than one."""
    launch = f", launch {event.launch + 1}" if instance.setup.launches > 1 else ""
    return f"{instance.cores[core].id}{launch}"


def place_of(event: Event) -> tuple[str, int]:
    """File and line of the event's statement; ("", 0) for the end of a core."""
    span = event.span
    return (span.file, span.line) if span is not None else ("", 0)


def access_name(access: Access) -> str:
    """``heap[0..1048576) of rank 0``."""
    return f"{access.region}[{access.begin}..{access.end}) of rank {access.rank}"


def origin_name(origin: tuple[int, str, int], size: int) -> str:
    """``a[4096..8192) of rank 1``: where bytes come from."""
    rank, region, offset = origin
    return f"{region}[{offset}..{offset + size}) of rank {rank}"


def flag_name(event: Event) -> str:
    """``flag 3``, ``flag 0 (id 16)`` where the id was cut, ``event 2 of MTE2_V``."""
    if event.link:
        return f"event {event.flag} of {event.link}"
    return f"flag {event.flag}" + (f" (id {event.raw})" if event.raw != event.flag else "")


def barrier_name(event: Event) -> str:
    """The function that a barrier call names in the source."""
    operation = event.operation
    return operation.function if isinstance(operation, Barrier) else f"the {event.barrier} barrier"


def describe_event(event: Event, phase: Phase) -> str:
    """What a core does at one end of an event, as a sentence without its subject."""
    match event.kind:
        case Kind.SET_FLAG | Kind.SET_EVENT:
            return f"sets {flag_name(event)}"
        case Kind.WAIT_FLAG | Kind.WAIT_EVENT:
            return f"gets {flag_name(event)}"
        case Kind.PIPE_BARRIER:
            return "passes a pipe barrier"
        case Kind.BARRIER:
            return f"calls {barrier_name(event)}"
        case Kind.PUT:
            size = event.writes[0].end - event.writes[0].begin
            source = event.reads[0]
            return (
                f"posts a put of {source.region}[{source.begin}..{source.begin + size}) "
                f"to {access_name(event.writes[0])}"
            )
        case Kind.QUIET:
            return f"finds all its requests to rank {event.peer} complete"
        case Kind.READ:
            return f"{phase.value}s reading {_accesses(event.reads)}"
        case Kind.WRITE:
            return f"{phase.value}s writing {_accesses(event.writes)}"
        case Kind.END:
            return "ends"


def describe_landing(event: Event) -> str:
    """What is shown when a put is complete."""
    return f"its put into {access_name(event.writes[0])} lands"


def describe_waiting(event: Event) -> str:
    """What a core that can go no further is waiting for."""
    match event.kind:
        case Kind.WAIT_FLAG | Kind.WAIT_EVENT:
            return f"waits for {flag_name(event)}"
        case Kind.BARRIER:
            if not isinstance(event.operation, Barrier):
                return f"waits for its rank's other cores to end launch {event.launch + 1}"
            return f"waits in {barrier_name(event)}"
        case Kind.END:
            return "has work left that never finishes"
        case _:
            return f"waits to do: {describe_event(event, Phase.BEGIN)}"


def _accesses(accesses: Iterable[Access]) -> str:
    return " and ".join(map(access_name, accesses)) or "nothing"


def numbers(values: Iterable[int]) -> str:
    """``0-3, 7``: a sorted list of numbers with runs folded."""
    ordered = sorted(set(values))
    runs: list[list[int]] = []
    for value in ordered:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    texts = []
    for low, high in runs:
        if high - low >= 2:
            texts.append(f"{low}-{high}")
        else:
            texts += [str(v) for v in range(low, high + 1)]
    return ", ".join(texts)
