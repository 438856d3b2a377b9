"""Every aggregator against recomputation over a sliding window."""

import math
import statistics
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.kernel.apps import play
from tests.engines.kernel.plans import V, app_of, kernel_of, query, runs, window

from edgewise.engines.kernel.aggregates import aggregate, leave
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg, Compare, Const
from edgewise.plan.nodes import EventType

EVEN = Compare(">", V, Const(AttrType.INT, 2))
CASES = {
    "stdDev": (V, AttrType.DOUBLE, lambda vs: statistics.pstdev(vs) if vs else None),
    "distinctCount": (V, AttrType.LONG, lambda vs: len(set(vs))),
    "and": (EVEN, AttrType.BOOL, lambda vs: all(v > 2 for v in vs)),
    "or": (EVEN, AttrType.BOOL, lambda vs: any(v > 2 for v in vs)),
}


@pytest.mark.parametrize("name", CASES)
@given(st.lists(st.integers(-5, 9), max_size=20))
def test_an_aggregator_equals_recomputation(name, values):
    arg, kind, brute = CASES[name]
    agg = Agg(kind, name, (arg,))
    app = app_of(query({"x": agg}, win=window("length", 3), events=EventType.CURRENT))
    kernel = kernel_of(app)
    for run in runs([(1000 + i, ("a", v, None)) for i, v in enumerate(values)]):
        kernel.feed(run)
    for i, row in enumerate(kernel.take()):
        expected = brute(values[max(0, i - 2) : i + 1])
        found = row.data[0]
        assert found == expected or math.isclose(found, expected, abs_tol=1e-6)


@given(st.lists(st.integers(-5, 9), max_size=20))
def test_forever_survives_expiry(values):
    items = {n: Agg(AttrType.INT, n, (V,)) for n in ("minForever", "maxForever")}
    app = app_of(query(items, win=window("time", 10), events=EventType.CURRENT))
    kernel = kernel_of(app)
    for run in runs([(1000 + 3 * i, ("a", v, None)) for i, v in enumerate(values)]):
        kernel.feed(run)
    kernel.advance(2000, 0)
    rows = kernel.take()
    if values:
        assert rows[-1].data == (min(values), max(values))


def test_an_aggregator_that_is_not_known_is_named():
    with pytest.raises(LookupError, match="'moon'"):
        aggregate(Agg(AttrType.INT, "moon", ()), (), 1)


def test_what_was_pushed_out_does_not_come_back_where_rows_leave_out_of_order():
    """As in the original: 5 was pushed out by 9, and 9 is what a sorted window lets go."""
    events = [("A", 1000 + v, "x", v) for v in (5, 9, 2)]
    query = "from A#window.sort(2, v) select max(v) as m insert all events into O;"
    assert [row[2] for row in play(query, events)] == [5, 9, 2]


def test_a_value_leaves_from_anywhere_in_the_queue():
    queue = deque([9, 7, 7, 3])
    leave(queue, 7)
    assert list(queue) == [9, 7, 3]
    leave(queue, 4)
    assert list(queue) == [9, 7, 3]


def test_forever_ends_with_the_batch():
    query = "from A#window.lengthBatch(2) select minForever(v) as m insert into O;"
    events = [("A", 1000 + i, "x", v) for i, v in enumerate((1, 2, 5, 6))]
    assert [row[2] for row in play(query, events)] == [1, 5]
