"""The hardware tables: complete, consistent, and with a document behind every row."""

import inspect
import re

import pytest

from mc2proof.protocol import profile as module
from mc2proof.protocol.profile import (
    ASCEND950,
    ATLAS_A2,
    BARRIERS,
    MIX_BARRIER,
    PROFILES,
    SOFT_BARRIER,
    VEC_BARRIER,
    BarrierAll,
    BarrierForm,
    Hold,
    Profile,
)
from mc2proof.protocol.program import Pipe, Role

FORMS = [VEC_BARRIER, MIX_BARRIER, SOFT_BARRIER]
DOCUMENTS = re.compile(r"devkit|shmem|SHMEM|same page")


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_every_profile_cites_its_document(profile: Profile) -> None:
    assert DOCUMENTS.search(profile.source)
    assert profile.title


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_every_barrier_form_cites_its_document(form: BarrierForm) -> None:
    assert DOCUMENTS.search(form.source)


def test_every_number_of_the_table_cites_its_document() -> None:
    source = inspect.getsource(Profile)
    rows = [line for line in source.splitlines() if re.search(r"= (\d|range|frozenset|True|False)", line)]
    assert len(rows) >= 7
    for row in rows:
        assert DOCUMENTS.search(row.partition("#")[2]), row


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_every_profile_knows_both_cores_and_every_reading(profile: Profile) -> None:
    assert set(profile.pipes) == set(Role)
    for pipes in profile.pipes.values():
        assert Pipe.S in pipes
        assert Pipe.ALL not in pipes
    for function, readings in profile.barriers.items():
        assert set(readings) == set(BarrierAll), function


def test_profiles_are_listed_by_their_names() -> None:
    assert {name: p.name for name, p in PROFILES.items()} == {n: n for n in ("ascend950", "atlas-a2")}


def test_the_table_is_that_of_the_documents() -> None:
    """hardware.md 1-4, written a second time."""
    assert ASCEND950.pipes[Role.AIV] == {Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3}
    assert ASCEND950.pipes[Role.AIC] == {Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.FIX}
    assert ATLAS_A2.pipes[Role.AIV] == ASCEND950.pipes[Role.AIV]
    assert ATLAS_A2.pipes[Role.AIC] == ASCEND950.pipes[Role.AIC] | {Pipe.MTE3}
    assert (ASCEND950.wait_holds, ATLAS_A2.wait_holds) == (Hold.PIPE, Hold.CORE)
    assert (ASCEND950.native_puts, ATLAS_A2.native_puts) == (True, False)
    for profile in PROFILES.values():
        assert (profile.flag_ids, profile.strict_ids) == (range(16), range(11))
        assert (profile.counter_cap, profile.event_ids) == (15, range(8))
        assert profile.put_limit == 256 * 1024 * 1024


@pytest.mark.parametrize(("flag", "counter"), [(0, 0), (15, 15), (16, 0), (17, 1), (33, 1), (-1, 15)])
def test_ids_are_cut_to_their_low_four_bits(flag: int, counter: int) -> None:
    for role, mode in ((Role.AIV, 2), (Role.AIC, 2), (Role.AIV, 4), (Role.AIC, 0)):
        assert flag % len(ASCEND950.ids(role, mode)) == flag & 0xF == counter


def test_an_aic_names_two_aivs_in_mode_4() -> None:
    assert ASCEND950.ids(Role.AIC, 4) == range(32)
    assert (ASCEND950.single_flags, ATLAS_A2.single_flags) == (True, False)


@pytest.mark.parametrize(
    ("profile", "ratio", "cube"),
    [
        (ASCEND950, 1, {11, 12, 13}),
        (ASCEND950, 2, {11, 12, 13, 28, 29}),
        (ATLAS_A2, 1, {11, 12, 13}),
        (ATLAS_A2, 2, {11, 12, 13}),
    ],
)
def test_a_barrier_of_both_roles_reserves_by_ratio(profile: Profile, ratio: int, cube: set[int]) -> None:
    for function in ("aclshmem_barrier_all", "SyncAll<false>"):
        form = profile.barriers[function][BarrierAll.MIX]
        assert form.reserved_on(Role.AIC, ratio) == cube
        assert form.reserved_on(Role.AIV, ratio) == {12, 13}


def test_barriers_are_what_the_library_makes_of_them() -> None:
    plain, vec = BARRIERS["aclshmem_barrier_all"], BARRIERS["aclshmemx_barrier_all_vec"]
    assert [plain[r] for r in BarrierAll] == [VEC_BARRIER, MIX_BARRIER, SOFT_BARRIER]
    assert [vec[r] for r in BarrierAll] == [VEC_BARRIER, VEC_BARRIER, SOFT_BARRIER]


def test_who_takes_part_drains_and_reserves() -> None:
    assert [f.participants for f in FORMS] == [{Role.AIV}, {Role.AIV, Role.AIC}, {Role.AIV}]
    assert [f.drains for f in FORMS] == [True, True, False]
    assert [dict(f.reserved) for f in FORMS] == [
        {Role.AIV: {14}},
        {Role.AIC: {11, 12, 13}, Role.AIV: {12, 13}},
        {},
    ]
    ids = {i for f in FORMS for taken in f.reserved.values() for i in taken}
    assert ids <= set(ASCEND950.flag_ids)


def test_the_module_holds_no_rule_by_name() -> None:
    """A rule of the hardware is a row, never a comparison with a profile's name."""
    assert not re.search(r"name *==|== *(ASCEND950|ATLAS_A2)", inspect.getsource(module))
