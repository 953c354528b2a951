"""What the unit tests share: hypothesis settings, mutants of the base protocols, small instances."""

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import settings

from mc2proof.checker.analysis import Analysis, analyse
from mc2proof.fuzz.bases import BASES
from mc2proof.fuzz.mutations import Mutant, mutate
from mc2proof.protocol.builder import ProtocolBuilder
from mc2proof.protocol.errors import Mc2proofError
from mc2proof.protocol.instance import Instance
from mc2proof.protocol.profile import ASCEND950, BarrierAll, Profile
from mc2proof.protocol.program import Protocol
from mc2proof.protocol.setup import Setup
from mc2proof.protocol.unroll import unroll

# The same examples in every run, no files left behind, no verdict by the clock.
settings.register_profile("unit", derandomize=True, database=None, deadline=None, max_examples=100)
settings.load_profile("unit")

SMALL = {"ranks": 2, "blocks": 1, "buffer_size": 1, "tile_cnt": 3}
TWO_BLOCKS = {"ranks": 2, "blocks": 2, "buffer_size": 1, "tile_cnt": 2}
READINGS = (BarrierAll.VEC, BarrierAll.VEC, BarrierAll.SOFT, BarrierAll.MIX)


def mutants_of(
    seed: int, count: int, *, changes: int = 2, launches: int = 1
) -> Iterator[tuple[Mutant, Instance]]:
    """``count`` mutants of the base protocols that unroll, with their instances."""
    random = Random(seed)
    made = 0
    while made < count:
        mutant = mutate(random.choice(list(BASES.values())), random, changes=random.randint(0, changes))
        values = random.choice((SMALL, SMALL, TWO_BLOCKS))
        try:
            instance = unroll(
                mutant.protocol, values, Setup(barrier_all=random.choice(READINGS), launches=launches)
            )
        except Mc2proofError:
            continue
        made += 1
        yield mutant, instance


@pytest.fixture(scope="session")
def mutants() -> list[tuple[Mutant, Instance]]:
    """120 mutants, the same in every run."""
    return list(mutants_of(20251130, 120))


@pytest.fixture(scope="session")
def analyses(mutants: list[tuple[Mutant, Instance]]) -> list[Analysis]:
    """The analysis of every mutant."""
    return [analyse(instance) for _, instance in mutants]


@pytest.fixture(scope="session")
def relaunched() -> list[Analysis]:
    """The analyses of 90 other mutants, launched twice."""
    return [analyse(instance) for _, instance in mutants_of(4, 90, launches=2)]


@pytest.fixture
def start() -> Callable[..., ProtocolBuilder]:
    """A builder with ranks and blocks declared."""

    def started(name: str = "small", **options: int) -> ProtocolBuilder:
        p = ProtocolBuilder(name, **options)
        p.parameter("ranks", low=1)
        p.parameter("blocks", low=1)
        return p

    return started


@pytest.fixture
def instantiate() -> Callable[..., Instance]:
    """Unrolls a protocol at parameters given by keyword; one rank and one block by default."""

    def made(
        protocol: Protocol,
        *,
        profile: Profile = ASCEND950,
        barrier_all: BarrierAll = BarrierAll.VEC,
        **values: int | tuple[int, ...],
    ) -> Instance:
        return unroll(protocol, {"ranks": 1, "blocks": 1} | values, Setup(profile, barrier_all))

    return made
