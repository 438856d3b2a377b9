import pickle

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.columns import CLOCK, OFFSET
from edgewise.engines.batch.inputs import InputLogs
from edgewise.event import arrow
from edgewise.event.schema import Schema
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("S", v="long")


@given(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=5), min_size=1, max_size=6))
def test_every_row_has_its_offset_and_the_clock(tmp_path_factory, batches):
    path = tmp_path_factory.mktemp("log") / "S"
    writer = SegmentWriter.open(path, SCHEMA)
    for times in batches:
        size = len(times)
        writer.append(arrow.record_batch(writer.schema, times, [0] * size, [0] * size, [times]))
    writer.close()
    times = [t for batch in batches for t in batch]
    start = len(times) // 2
    inputs = pickle.loads(pickle.dumps(InputLogs({"S": str(path)})))
    rows = [r for b in inputs.read_batches("S", start, len(times)) for r in b.to_pylist()]
    assert inputs.heads() == {"S": len(times)}
    assert inputs.clock_at(inputs.heads()) == max(times)
    inputs.close()
    assert [r[OFFSET] for r in rows] == list(range(start, len(times)))
    assert [r[CLOCK] for r in rows] == [max(times[: i + 1]) for i in range(start, len(times))]


def test_an_idle_stream_does_not_hold_time_back(tmp_path):
    paths = {}
    for name, times in (("S", [5000]), ("T", [7, 9000])):
        paths[name] = str(tmp_path / name)
        writer = SegmentWriter.open(tmp_path / name, Schema.of(name, v="long"))
        size = len(times)
        writer.append(arrow.record_batch(writer.schema, times, times, [0] * size, [times]))
        writer.close()
    inputs = InputLogs(paths)
    assert inputs.clock_at(inputs.heads()) == 9000
    assert inputs.clock_at({"S": 1, "T": 1}) == 5000
    inputs.close()
