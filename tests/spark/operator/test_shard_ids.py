"""Ids of shards fall where Spark's hash puts them, evenly."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.spark.operator.shard_ids import hash_int, spread_shards


@given(st.integers(1, 64), st.integers(1, 64))
def test_shards_are_spread_evenly_over_partitions(count, partitions):
    ids = spread_shards(count, partitions)
    assert len(set(ids)) == count
    loads = Counter(hash_int(i) % partitions for i in ids)
    assert max(loads.values()) == -(-count // partitions)


@pytest.mark.spark
def test_the_hash_is_sparks(spark):
    frame = spark.range(-50, 50).selectExpr("cast(id as int) i", "hash(cast(id as int)) h")
    assert all(hash_int(row.i) == row.h for row in frame.collect())
