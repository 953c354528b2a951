"""What the tests of data share: results as readers compute them that found other segments than their own."""

from collections.abc import Callable

import numpy as np
import pytest

from mc2proof.fuzz.golden import accumulate, segment_product
from mc2proof.fuzz.matrices import Inputs
from mc2proof.fuzz.numerics import Codes
from mc2proof.fuzz.substitutions import Launches, Substitution


def _with_faults(inputs: Inputs | Launches, right: Codes, *faults: Substitution) -> Codes:
    """``right``, the golden result, with the one tile of ``faults`` as its reader computes it."""
    launches = inputs if isinstance(inputs, Launches) else Launches(inputs)
    given, geometry, segment = launches.given, launches.geometry, faults[0].segment
    rows = np.arange(faults[0].segment_rows(geometry))
    of_source = {one.segment.source: one for one in faults}
    products = []
    for source in range(geometry.ranks):
        one = of_source.get(source)
        read = one.found(launches, rows) if one else given.a_segment(source, segment.rank, segment.tile)
        products.append(segment_product(*read, *given.b_segment(segment.rank, source), geometry.dtypes))
    result = right.copy()
    result[geometry.tile_span(segment.tile)] = accumulate(products)
    return result


@pytest.fixture(scope="session")
def with_faults() -> Callable[..., Codes]:
    """``with_faults(inputs, right, *faults)``: the result of a rank whose readers found other data."""
    return _with_faults
