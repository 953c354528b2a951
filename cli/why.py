"""The text of `mc2proof why`: chains of source lines, from the proofs for all values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mc2proof.asked import Decision
from mc2proof.text import BLANK, Line, Piece, heading, indented, line, table, with_places

if TYPE_CHECKING:
    from mc2proof.checker.parametric.certify import Certified
    from mc2proof.checker.parametric.why import Reason


def why(name: str, asked: Decision, progress: Callable[[str], None] | None = None) -> list[Line]:
    """Why property ``name`` holds; or that it does not."""
    from mc2proof.checker.parametric.certify import certify

    decision = asked.found.decisions[name]
    head = indented(_setting(asked))
    if not decision.proved:
        text = "there is nothing that it speaks of" if decision.nothing else decision.reason or ""
        if decision.holds_when is not None:
            text = f"it holds when {decision.holds_when}"
        told = [line(Piece(f"{name} is not proved", "bold yellow"), " for all values"), *head, BLANK]
        more = "mc2proof prove --for-all shows values at which it fails, where some are found"
        return [*told, line(text), line(Piece(more, "dim"))]
    proved = [other for other, row in asked.found.decisions.items() if row.proved]
    made = certify(
        asked.found,
        [asked.protocol.name],
        asked.values,
        proved,
        strict_ids=asked.strict_ids,
        progress=progress,
    )
    lines = [line(Piece(name, "bold"), " holds for all values"), *head, BLANK]
    if name in made.certificate.left_out:
        return [*lines, line(f"its proof is not taken apart: {made.certificate.left_out[name]}")]
    if name == "deadlock-freedom":
        lines += [*_ranks(made), BLANK]
    return [*lines, *_reasons(made, name), *_unneeded(made)]


def _setting(asked: Decision) -> list[Line]:
    domain = asked.found.program.domain
    free = ", ".join(f"{name} >= {low}" for name, (low, _) in domain.free.items())
    assumed = ", ".join(assumption.text for assumption in domain.assumptions)
    return table([["for all", free], ["assumed", assumed or "nothing"]])


def _reasons(made: Certified, name: str) -> list[Line]:
    from mc2proof.checker.parametric.why import reasons

    lines: list[Line] = []
    plain: list[str] = []
    for number, reason in enumerate(reasons(made, name), 1):
        if reason.chains:
            lines += [line(f"{number}  ", Piece(reason.title, "bold")), *indented(_chains(reason), 3), BLANK]
        else:
            plain.append(reason.title)
    if plain:
        lines += [
            heading("by arithmetic alone"),
            *indented([line(title) for title in dict.fromkeys(plain)]),
            BLANK,
        ]
    return lines


def _chains(reason: Reason) -> list[Line]:
    lines: list[Line] = []
    for place, chain in enumerate(reason.chains):
        if place:
            lines.append(line(Piece("or, where the other comes first", "dim")))
        cells = table([["-> " * bool(link.rule) + link.text, Piece(link.rule, "dim")] for link in chain])
        places = [link.span.place if link.span.line else "" for link in chain]  # the end has no line
        lines += with_places(list(zip(cells, places, strict=True)))
    return [*lines, *(line(Piece(f"since {fact}", "dim")) for fact in reason.facts)]


def _ranks(made: Certified) -> list[Line]:
    """The order of the sites that shows that nothing waits in a circle."""
    ranks = made.certificate.ranks
    assert ranks is not None
    sites = sorted(made.case.subject.sites, key=lambda s: (ranks.phase[s.number], ranks.offset[s.number]))
    rows = []
    for site in sites:
        offsets = list(map(str, ranks.offset[site.number]))
        for place, loop in enumerate(site.loops[1:]):
            offsets[place] = f"{ranks.factor} * {loop.index} + {offsets[place]}"
        rows.append([f"phase {ranks.phase[site.number]}", ", ".join(offsets),
                     site.role.name, site.kind.value])  # fmt: skip
    places = [site.span.place if site.span.line else "" for site in sites]
    return [
        heading("whatever waits has a larger rank than what it waits for"),
        *indented(with_places(list(zip(table(rows), places, strict=True)))),
    ]


def _unneeded(made: Certified) -> list[Line]:
    from mc2proof.checker.parametric.why import unneeded

    spare = unneeded(made)
    names = f"of {len(made.by_property)} properties"
    if not spare:
        return [line(f"every synchronisation is part of a proof ({names})")]
    rows = with_places([(line(f"{site.role.name} {site.kind.value}"), site.span.place) for site in spare])
    return [heading(f"no proof passes through ({names})"), *indented(rows)]


def exported(asked: Decision) -> Sequence[tuple[str, str]]:
    """Every question that was put to Z3: the name of a file, and its text."""
    files = []
    texts = asked.found.program.solver.texts
    width = max(3, len(str(len(texts))))
    status = {"IMPOSSIBLE": "unsat", "POSSIBLE": "sat"}
    for number, item in enumerate(texts, 1):
        name = "-".join("".join(c if c.isalnum() else " " for c in item.title).split())
        said = status.get(item.answer.name, "unknown")
        head = (
            f"; mc2proof: {asked.protocol.name} {asked.protocol.digest()}: {item.title}\n; Z3 says {said}\n"
        )
        text = item.text.replace("(set-info :status unknown)\n", f"(set-info :status {said})\n", 1)
        files.append((f"{number:0{width}}-{name}.smt2", head + text))
    return files
