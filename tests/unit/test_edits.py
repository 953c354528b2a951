"""Places in programs, and edits carried out."""

from mc2proof.checker.edit_list import handshakes, listed, single_edits, where
from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.edits import Edit, EditKind, edited, gaps, sites, substituted, told_apart
from mc2proof.protocol.expr import Var, VarKind
from mc2proof.protocol.program import Barrier, For, If, Protocol, Quiet, Role, SetFlag, statements
from mc2proof.protocol.statement_text import statement_text


def heads(protocol: Protocol, role: Role) -> list[str]:
    return [type(s).__name__ for s in statements(protocol.programs[role])]


def test_sites_are_the_statements_in_program_order() -> None:
    protocol = ring_all_to_all()
    for role, program in protocol.programs.items():
        found = [statement for site, statement in sites(protocol) if site.role is role]
        assert [id(s) for s in found] == [id(s) for s in statements(program)]


def test_nothing_changes_without_edits() -> None:
    assert edited(ring_all_to_all(), []).digest() == ring_all_to_all().digest()


def test_edits_combine_in_any_order() -> None:
    protocol = ring_all_to_all()
    removals = [
        Edit(EditKind.REMOVE, "", s, removed=(site,))
        for site, s in sites(protocol)
        if isinstance(s, Barrier | Quiet)
    ]
    assert len(removals) == 3
    without = edited(protocol, removals)
    assert without == edited(protocol, removals[::-1])
    assert {"Barrier", "Quiet"}.isdisjoint(heads(without, Role.AIV))
    assert len(heads(protocol, Role.AIV)) == len(heads(without, Role.AIV)) + 3
    assert without.programs[Role.AIC] is protocol.programs[Role.AIC]


def test_a_move_keeps_everything_else() -> None:
    protocol = ring_all_to_all()
    before = heads(protocol, Role.AIV)
    for edit in single_edits(protocol):
        if edit.kind is EditKind.MOVE and edit.removed[0].role is Role.AIV:
            after = heads(edited(protocol, [edit]), Role.AIV)
            assert sorted(after) == sorted(before)


def test_gaps_know_which_indices_have_a_value() -> None:
    protocol = ring_all_to_all()
    (sent,) = (s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, SetFlag))
    for gap in gaps(protocol):
        assert gap.knows(sent) == any(isinstance(outer, For) for outer in gap.around)
    ends = [gap for gap in gaps(protocol) if gap.after is None]
    holders = sum(isinstance(s, For | If) for p in protocol.programs.values() for s in statements(p))
    assert len(ends) == holders + len(protocol.programs)


def test_a_gap_is_named_by_its_neighbour() -> None:
    known = listed(ring_all_to_all())
    texts = [where(gap) for gap in known.gaps if gap.site.role is Role.AIV]
    assert texts[0].startswith("before the whole if (block < ranks && block != rank) (builtin.py:")
    assert any(text.startswith("after quiet to rank block (builtin.py:") for text in texts)


def test_every_edit_changes_the_program() -> None:
    protocol = ring_all_to_all()
    same = [e.text for e in single_edits(protocol) if edited(protocol, [e]).digest() == protocol.digest()]
    assert same == []


def test_handshakes_join_two_roles() -> None:
    protocol = ring_all_to_all()
    for edit in handshakes(protocol):
        assert {site.role for site, _ in edit.inserted} == {Role.AIV, Role.AIC}


def test_synchronisations_are_told_apart() -> None:
    protocol = ring_all_to_all()
    barrier = next(s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, Barrier))
    (at,) = (site for site, s in sites(protocol) if s is barrier)
    doubled = edited(protocol, [Edit(EditKind.INSERT, "", barrier, inserted=((at, barrier),))])
    found = [s for _, s in sites(told_apart(doubled)) if isinstance(s, Barrier)]
    assert len({id(s) for s in found}) == len(found) == 3
    assert told_apart(doubled).digest() == doubled.digest()


def test_substituting_an_index() -> None:
    protocol = ring_all_to_all()
    (sent,) = (s for s in statements(protocol.programs[Role.AIV]) if isinstance(s, SetFlag))
    other = Var("j", sent.flag.type, VarKind.LOOP)
    assert str(substituted(sent.flag + 1, "tile", other)) == "j + 1"
    assert str(substituted(sent.flag + 1, "rank", other)) == "tile + 1"
    assert statement_text(sent) == "set flag tile on MTE3 (mode 2)"
