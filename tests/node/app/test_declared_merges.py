import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.server.server import Edge
from edgewise.edge.topics.merges import MergeRegistry
from edgewise.eep import Composite, First, Last, Max, Min, Stats, Sum, laws
from edgewise.errors import SetupError
from edgewise.node.app.declared_merges import AGGREGATES, merge_from_aggregate, register_aggregates

MERGES = register_aggregates(MergeRegistry())
NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1000, 1000), min_size=1, max_size=12)


def fold_records(conflate, records):
    merge = MERGES.parse(conflate)
    state, *rest = [merge.lift(r) for r in records]
    for later in rest:
        state = merge.merge(state, later)
    return merge.show(state)


@pytest.mark.parametrize("name", AGGREGATES)
@given(values=NUMBERS)
def test_a_merge_by_name_is_the_aggregate_over_all_values(name, values):
    found = fold_records(f"merge({name})", [{"v": v, "s": "x"} for v in values])
    wanted = AGGREGATES[name].of(values)
    assert found["s"] == "x"
    assert found["v"] == (wanted if wanted is None else pytest.approx(wanted, rel=1e-6, abs=1e-4))


def test_fields_have_merges_of_their_own_and_a_missing_value_adds_nothing():
    rows = [{"a": 1, "b": 10}, {"a": None, "b": 30}, {"a": 4, "b": 20}]
    found = fold_records("merge(mean(a), count(b))", rows)
    assert found == {"a": 2.5, "b": 3}
    assert fold_records("merge(sum)", rows)["a"] == 5


def test_an_aggregate_of_ones_own_is_registered_by_the_node():
    edge = Edge()
    spread = merge_from_aggregate("spread", Composite(low=Min(), high=Max()))
    edge.register_merge(spread, (1, 2.5, -3))
    merge = edge.fanout.merges.parse("merge(spread)")
    state = merge.merge(merge.lift({"v": 5}), merge.lift({"v": 2}))
    assert merge.show(state) == {"v": {"low": 2, "high": 5}}


def test_one_that_depends_on_order_does_not_pass_as_commutative():
    with pytest.raises(SetupError, match="not commutative"):
        MergeRegistry().register(merge_from_aggregate("oldest", First()), (1, 2))
    MergeRegistry().register(merge_from_aggregate("oldest", First(), commutative=False), (1, 2))


def test_the_standard_library_agrees():
    values = [3, 1, 4, 1, 5]
    rows = [{"v": v} for v in values]
    assert fold_records("merge(stddev)", rows)["v"] == pytest.approx(statistics.stdev(values))


STOCK_PAIRS = {"sum": Sum(), "min": Min(), "max": Max(), "first": First(), "last": Last()}


@pytest.mark.parametrize("name", STOCK_PAIRS)
@given(values=NUMBERS)
def test_a_stock_merge_gives_what_the_aggregate_of_its_name_gives(name, values):
    found = fold_records(f"merge({name})", [{"v": v} for v in values])["v"]
    assert laws.close(float(found), float(STOCK_PAIRS[name].of(values)))


@given(values=NUMBERS)
def test_the_stock_statistics_are_those_of_the_library(values):
    found = fold_records("merge(stats)", [{"v": v} for v in values])["v"]
    wanted = Stats().of(values)
    assert found["count"] == wanted["count"]
    for name in ("sum", "min", "max", "mean"):
        assert laws.close(float(found[name]), float(wanted[name]))
    if len(values) > 1:
        assert found["stdev"] == pytest.approx(wanted["stddev"], rel=1e-6, abs=1e-4)
