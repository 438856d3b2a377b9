"""An event that failed is found in its own log, whatever came in between on other streams, and
told as a whole, whatever of it the query read.
"""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.columns import OFFSET
from edgewise.engines.batch.fault_rows import resolve_fault_offsets
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.outputs import FAULTS, build_fault_table
from edgewise.event.arrow import AT, record_batch
from edgewise.kernel.runtime import NO_TIME
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter

APP = compile_app(
    "define stream S (k int); define stream T (k int); define stream U (k int);"
    "from S insert into O; from T insert into O; from U insert into O;"
).app


@given(seed=st.integers(0, 1000))
def test_every_number_in_the_order_of_capture_resolves_to_its_offset(tmp_path_factory, seed):
    dice, root = random.Random(seed), tmp_path_factory.mktemp("logs")
    for stream in APP.inputs:
        writer = SegmentWriter.open(root / stream.name, stream.schema)
        count = dice.randint(0, 12)
        moments = sorted(dice.randint(0, 8) for _ in range(count))
        kinds = [dice.choice([0, 2]) for _ in moments]
        if count:
            batch = record_batch(writer.schema, moments, moments, kinds, [list(range(count))])
            writer.append(batch)
        writer.close()
    inputs = InputLogs({s.name: str(root / s.name) for s in APP.inputs})
    names = list(inputs.paths)
    rows = inputs.read_table(inputs.earliest(), inputs.heads(), 0).to_pylist()
    failed, expected = [], []
    for row in rows:
        stream = names[row["_stream"]]
        said = dice.choice([stream, NO_TIME])  # a window does not know whose event it was
        failed.append((said, 0, row[OFFSET], row[AT], "why", [(None,)]))
        offset = row[f"s{row['_stream']}_k"]  # the value is the offset
        expected.append((stream, offset, f"[{offset}]"))
    out = {FAULTS.name: [build_fault_table(failed)]}
    resolve_fault_offsets(out, inputs)
    columns = [out[FAULTS.name][0].column(n).to_pylist() for n in ("stream", "offset", "event")]
    assert list(zip(*columns, strict=True)) == expected
    inputs.close()


def test_an_event_that_disagrees_with_the_fault_is_not_shown(tmp_path):
    """Whatever the log has there now: what the query saw stays."""
    writer = SegmentWriter.open(tmp_path / "S", APP.inputs[0].schema)
    writer.append(record_batch(writer.schema, [1], [1], [0], [[5]]))
    writer.close()
    inputs = InputLogs({"S": str(tmp_path / "S")})
    failed = [("S", 0, 0, 1, "why", [(7,)]), ("S", 0, 9, 1, "why", [(8,)])]
    out = {FAULTS.name: [build_fault_table(failed)]}
    resolve_fault_offsets(out, inputs)
    assert out[FAULTS.name][0].column("event").to_pylist() == ["[7]", "[8]"]
    inputs.close()


def test_faults_of_streams_that_queries_write_keep_their_number(tmp_path):
    for stream in APP.inputs:
        SegmentWriter.open(tmp_path / stream.name, stream.schema).close()
    inputs = InputLogs({s.name: str(tmp_path / s.name) for s in APP.inputs})
    out = {FAULTS.name: [build_fault_table([("O", 0, 7, 1, "why", [()])])]}
    resolve_fault_offsets(out, inputs)
    assert out[FAULTS.name][0].column("offset").to_pylist() == [7]
    inputs.close()
