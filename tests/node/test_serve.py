"""What only shows between the rooms: marks carry time through a silent stream."""

from edgewise.event.schema import Schema
from edgewise.log.segment import SegmentReader, SegmentWriter
from edgewise.node.serve import mark


def test_a_mark_moves_the_clock_of_a_log_and_holds_no_event(tmp_path):
    writer = SegmentWriter.open(tmp_path / "S", Schema.of("S", k="string", v="int"))
    mark(writer, 5_000)
    reader = SegmentReader.open(tmp_path / "S")
    [batch] = reader.read(0, 1)
    [row] = batch.rows.to_pylist()
    assert reader.clock(1) == 5_000
    assert (row["_kind"], row["k"], row["v"]) == (2, None, None)
    reader.close()
    writer.close()
