"""The partition of a key is the same wherever it is computed."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.partitioner import assign_key, assign_rows
from edgewise.plan.fragments import Fragment

keys = st.lists(
    st.tuples(
        st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.booleans(),
    ),
    max_size=20,
)


def columns(rows):
    kinds = (pa.string(), pa.int64(), pa.bool_())
    return [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]


@given(keys, st.integers(1, 9))
def test_keys_and_whole_columns_are_assigned_alike(rows, parts):
    expected = [assign_key(row, parts) for row in rows]
    assert assign_rows(columns(rows), parts).to_pylist() == expected
    chunked = [pa.chunked_array([c[:1], c[1:]], c.type) for c in columns(rows)]
    assert assign_rows(chunked, parts).to_pylist() == expected


@pytest.mark.spark
def test_spark_assigns_rows_to_the_same_key_partitions(spark):
    from edgewise.spark.tasks import build_key_partition_column

    texts = [None, "", "a", "ä\u2028x", "\x00", "\x1f", "a b", "😀"]
    rows = [(t, n, b) for t in texts for n in (None, 0, -1, 2**62) for b in (None, True, False)]
    names = ["s0_t", "s0_n", "s0_b", "_stream"]
    arrays = [*columns(rows), pa.array([0] * len(rows), pa.int32())]
    frame = spark.createDataFrame(pa.table(arrays, names=names))
    fragment = Fragment("f", ("q",), ("S",), keys=(("S", ("t", "n", "b")),))
    found = (
        frame.select(build_key_partition_column(fragment, ["S"], 7))
        .toArrow()
        .column(0)
        .to_pylist()
    )
    assert found == [assign_key(row, 7) for row in rows]
