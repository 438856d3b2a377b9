"""Rows sorted by the order columns are in the order in which one kernel emits them."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.batch_jobs import build_batch, build_job

from edgewise.engines.batch.columns import MERGE_ORDER, ORDER
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.run import run_key_partition
from edgewise.event.schema import Schema
from edgewise.log.segment_writer import SegmentWriter

TIMED = (
    "define stream S (k string); "
    "from S#window.timeBatch(3) select k, count() as n group by k insert into O;"
)


@given(keys=st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=5))
def test_rows_of_a_kernel_ascend_by_the_order_columns(tmp_path_factory, keys):
    first, root = 0, tmp_path_factory.mktemp("state")
    for version, some in enumerate(keys):
        output = run_key_partition(
            build_job(version, root, TIMED), 0, [build_batch(*some, first=first)]
        )
        for table in output.rows.get("O", []):
            order = list(zip(*(table.column(name).to_pylist() for name in ORDER), strict=True))
            assert order == sorted(order)
        first += len(some)


def test_input_rows_have_the_columns_that_they_are_merged_by(tmp_path):
    SegmentWriter.open(tmp_path, Schema.of("S", k="string")).close()
    inputs = InputLogs({"S": str(tmp_path)})
    assert set(MERGE_ORDER) <= set(inputs.build_schema().names)
    inputs.close()
