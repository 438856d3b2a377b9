import pickle
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.compiled_plans import refused

import edgewise
from edgewise.lang import compile_app
from edgewise.plan.exprs import Call

DEFINE = "define stream A (k string, v int, p double); define stream B (k string, v int);\n"
VALUES = st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), min_size=1, max_size=6)


def play(text, *values, last=0):
    """The rows of a pattern over events of A, then one of B."""
    app = edgewise.App(DEFINE + text)
    for at, value in enumerate(values):
        app.send("A", ("x", value, None), ts=1000 + at)
    return [row.data for row in app.send("B", ("x", last), ts=2000)]


@given(VALUES)
def test_aggregates_are_those_of_the_values_that_the_element_took(values):
    items = "sum(a.v) as s, avg(a.v) as m, min(a.v) as l, max(a.v) as h, count(a) as n"
    query = (
        f"from a=A<{len(values)}> -> b=B select {items}, distinctCount(a.v) as d insert into X;"
    )
    ((total, mean, low, high, rows, distinct),) = play(query, *values)
    known = [v for v in values if v is not None]
    assert total == (sum(known) if known else None)
    assert mean == (pytest.approx(statistics.fmean(known)) if known else None)
    assert (low, high) == (min(known, default=None), max(known, default=None))
    assert (rows, distinct) == (len(values), len(set(values)))


@pytest.mark.parametrize(("last", "rows"), [(7, [(7,)]), (5, [])])
def test_a_later_condition_sees_them(last, rows):
    query = "from a=A<3> -> b=B[v > sum(a.v) and count(a) == 3] select b.v as x insert into X;"
    assert play(query, 1, 2, 3, last=last) == rows


def test_an_element_that_took_nothing_has_no_sum_and_a_count():
    query = "from a=A<0:2> -> b=B select sum(a.v) as s, count(a) as n insert into X;"
    assert play(query) == [(None, 0)]


def test_an_aggregate_of_ones_own_works_too():
    class Product(edgewise.Aggregate):
        def init(self):
            return 1

        def accumulate(self, state, value):
            return state * value

        def emit(self, state):
            return state

    product = edgewise.aggregate("product", "int", returns="long")(Product)
    text = DEFINE + "from a=A<3> -> b=B select product(a.v) as x insert into X;"
    app = edgewise.App(text, functions=[product])
    for at in range(3):
        app.send("A", ("x", at + 2, None), ts=1000 + at)
    assert [row.data for row in app.send("B", ("x", 1), ts=2000)] == [(24,)]


def test_the_plan_travels():
    text = DEFINE + "from a=A<2> -> b=B select avg(a.v) as x insert into X;"
    call = pickle.loads(pickle.dumps(compile_app(text).app)).queries[0].select.items[0].expr
    assert isinstance(call, Call)
    assert call.body([1, 2, None]) == 1.5


def test_what_is_refused():
    pattern = "from a=A<2> -> b=B select {} as x insert into X;"
    assert refused(pattern.format("avg(a.k)")) == ["'avg' does not take string"]
    own = "from a=A[v > avg(a.v)]<2> -> b=B select 1 as x insert into X;"
    assert refused(own) == ["'avg' is an aggregate and not legal in a filter"]
