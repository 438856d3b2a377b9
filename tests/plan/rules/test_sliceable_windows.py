"""Which windows are cut by the time of their events."""

import pytest

from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.plan.rules.sliceable_windows import TimeBatchWindow, find_time_batch_window

HEAD = "define stream S (k string, v int, t long);"


def found(query, head=HEAD):
    app = compile_app(f"{head} {query}").app
    return [find_time_batch_window(app, fragment) for fragment in split_into_fragments(app)]


def batches(args="t, 10", agg="sum", end="insert into O;"):
    window = f"from S#window.externalTimeBatch({args})"
    return f"{window} select k, {agg}(v) as s group by k {end}"


def test_sums_by_group_over_an_external_time_batch():
    assert found(batches("t, 1 sec")) == [TimeBatchWindow("S", "t", 1000)]


@pytest.mark.parametrize(
    "query",
    [
        batches("t, 10, 0"),
        batches(agg="max"),
        batches(end="having s > 3 insert into O;"),
        batches(end="insert all events into O;"),
        batches(end="output every 3 events insert into O;"),
        "from S#window.lengthBatch(5) select k, sum(v) as s group by k insert into O;",
        f"define stream T (t long); {batches()} from T select t insert into P;",
        "define aggregation A from S select k, sum(v) as s group by k aggregate every sec;",
    ],
)
def test_others_are_not(query):
    assert not any(found(query))
