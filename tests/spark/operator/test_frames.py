"""Users' columns reach the operator as declared, whatever their names and values are."""

import pytest
from pyspark.sql import functions as sf

from edgewise import spark as ew

pytestmark = pytest.mark.spark


def test_names_that_differ_in_case_only_or_hold_quotes_are_kept_apart(spark):
    text = "define stream S (`a b` string, v int); from S select `a b` as x, v insert into O;"
    frame = spark.range(1).select(
        sf.timestamp_millis(sf.lit(1000)).alias("ts"),
        sf.lit("x").alias("a b"),
        sf.lit(7).alias("v"),
    )
    assert [tuple(r) for r in ew.query(text, S=frame, time="ts").collect()] == [("x", 7)]


def test_a_value_that_is_not_of_its_type_is_a_fault_row(spark):
    text = "define stream S (k string, v int); from S select k, v insert into O;"
    frame = spark.createDataFrame(
        [(1000, "a", "1"), (2000, "b", "no"), (3000, "c", None), (None, "d", "4")],
        "t long, k string, v string",
    ).select(sf.timestamp_millis("t").alias("ts"), "k", "v")
    out = ew.app(text, S=frame, time="ts")
    assert sorted(tuple(r) for r in out["O"].collect()) == [("a", 1), ("c", None)]
    faults = {r.error for r in out.faults.collect()}
    assert faults == {"'v' is not of type int", "the event has no time"}


def test_time_may_be_an_attribute_in_milliseconds(spark):
    text = (
        "define stream S (at long, k string); "
        "from S#window.externalTimeBatch(at, 1 sec) select k, count() as n insert into O;"
    )
    frame = spark.createDataFrame([(1000, "a"), (1500, "b"), (2500, "c")], "at long, k string")
    assert [tuple(r) for r in ew.query(text, S=frame, time="at").collect()] == [("b", 2)]
