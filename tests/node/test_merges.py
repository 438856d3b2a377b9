import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.merge import Merges
from edgewise.edge.server import Edge
from edgewise.eep import Composite, First, Max, Min
from edgewise.errors import SetupError
from edgewise.node.merges import AGGREGATES, merge_of, register_aggregates

MERGES = register_aggregates(Merges())
NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1000, 1000), min_size=1, max_size=12)


def folded(conflate, records):
    merge = MERGES.of(conflate)
    state, *rest = [merge.lift(r) for r in records]
    for later in rest:
        state = merge.merge(state, later)
    return merge.show(state)


@pytest.mark.parametrize("name", AGGREGATES)
@given(values=NUMBERS)
def test_a_merge_by_name_is_the_aggregate_over_all_values(name, values):
    found = folded(f"merge({name})", [{"v": v, "s": "x"} for v in values])
    wanted = AGGREGATES[name].of(values)
    assert found["s"] == "x"
    assert found["v"] == (wanted if wanted is None else pytest.approx(wanted, rel=1e-6, abs=1e-4))


def test_fields_have_merges_of_their_own_and_a_missing_value_adds_nothing():
    rows = [{"a": 1, "b": 10}, {"a": None, "b": 30}, {"a": 4, "b": 20}]
    found = folded("merge(mean(a), count(b))", rows)
    assert found == {"a": 2.5, "b": 3}
    assert folded("merge(sum)", rows)["a"] == 5


def test_an_aggregate_of_ones_own_is_registered_by_the_node():
    edge = Edge()
    spread = merge_of("spread", Composite(low=Min(), high=Max()))
    edge.register_merge(spread, (1, 2.5, -3))
    merge = edge.fanout.merges.of("merge(spread)")
    state = merge.merge(merge.lift({"v": 5}), merge.lift({"v": 2}))
    assert merge.show(state) == {"v": {"low": 2, "high": 5}}


def test_one_that_depends_on_order_does_not_pass_as_commutative():
    with pytest.raises(SetupError, match="not commutative"):
        Merges().register(merge_of("oldest", First()), (1, 2))
    Merges().register(merge_of("oldest", First(), commutative=False), (1, 2))


def test_the_standard_library_agrees():
    values = [3, 1, 4, 1, 5]
    rows = [{"v": v} for v in values]
    assert folded("merge(stddev)", rows)["v"] == pytest.approx(statistics.stdev(values))
