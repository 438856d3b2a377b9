"""A query without state is Spark's own expressions, and they reach the source."""

import contextlib
import io

import pytest
from tests.spark.operator.test_api import APPS, S, build_events, build_frame

from edgewise import spark as ew

pytestmark = pytest.mark.spark


def explain(frame):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()


def test_filters_and_columns_are_pushed_down_to_the_source(spark, tmp_path):
    build_frame(spark, build_events(1)).write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in"))
    plan = explain(ew.query(APPS["filter"], S=frame, time="ts"))
    assert "MapInArrow" not in plan
    assert "GreaterThan(v,4)" in plan
    assert "ReadSchema: struct<ts:timestamp,k:string,v:int>" in plan


def test_a_stage_with_state_reads_only_what_its_queries_need(spark, tmp_path):
    build_frame(spark, build_events(1)).write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in"))
    text = S + "from S[v > 4]#window.time(1 sec) select k, count() as n group by k insert into O;"
    plan = explain(ew.query(text, S=frame, time="ts"))
    assert "MapInArrow" in plan
    assert "p:double" not in plan
