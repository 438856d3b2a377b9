"""Results say what runs where; a notebook shows the app."""

import pytest
from tests.spark.operator.test_api import S, build_events, build_frame

from edgewise import spark as ew

pytestmark = pytest.mark.spark


def test_explain_says_shards_keys_and_why_one(spark):
    text = (
        S + "from S[v > 1] select k insert into A; "
        "from S#window.time(1 sec) select k, count() as n group by k insert into B; "
        "from S#window.length(2) select k, max(v) as m insert into C;"
    )
    out = ew.app(text, S=build_frame(spark, build_events(1, 5)), time="ts", shards=3)
    said = out.explain(spark=True)
    assert "query1: no state, no shuffle" in said
    assert "query2: 3 shards by k of S" in said
    assert "query3: 1 shard: query3: what leaves #window.length depends on" in said
    assert "== Physical Plan ==" in said
    assert repr(out) == "Results(A, B, C)"
    assert out._repr_html_().startswith("<svg")
