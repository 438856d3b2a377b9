"""Results say what runs where; a notebook shows the app."""

import pytest
from tests.spark.operator.test_api import S, build_events, build_frame

from edgewise import spark as ew

pytestmark = pytest.mark.spark

QUERIES = {
    "from S[v > 1] select k insert into O;": "query1: no state, no shuffle",
    "from S#window.time(1 sec) select k, count() as n group by k insert into O;": (
        "query1: 3 shards by k of S"
    ),
    "from S#window.length(2) select k, max(v) as m insert into O;": (
        "query1: 1 shard: query1: aggregates over all events, no group by"
    ),
}


@pytest.mark.parametrize("text", QUERIES)
def test_explain_says_shards_keys_and_why_one(spark, text):
    out = ew.app(S + text, S=build_frame(spark, build_events(1, 5)), time="ts", shards=3)
    assert QUERIES[text] in out.explain()
    assert "== Physical Plan ==" in out.explain(spark=True)
    assert repr(out) == "Results(O)"
    assert "<svg" in out._repr_html_()
