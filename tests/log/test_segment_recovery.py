import threading

import pytest

from edgewise.errors import LogError, LogLocked
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.log.api import Appended, LogConfig
from edgewise.log.files import segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

OLD = Schema.of("S", k="string", v="int")
NEW = Schema.of("S", k="string", v="int", level="long", note="string")
DEFAULTS = {"level": 7, "note": None}


def old_rows(count):
    values = list(range(count))
    return record_batch(to_arrow(OLD), values, values, [0] * count, [["a"] * count, values])


def new_rows(count):
    values = list(range(count))
    columns = [["b"] * count, values, values, ["x"] * count]
    return record_batch(to_arrow(NEW), values, values, [0] * count, columns)


@pytest.mark.parametrize("rows", [0, 3])
def test_an_attribute_is_added_with_a_default(tmp_path, rows):
    writer = SegmentWriter.open(tmp_path, OLD)
    writer.append(old_rows(rows))
    before = SegmentReader.open(tmp_path)
    writer.close()
    writer = SegmentWriter.open(tmp_path, NEW, defaults=DEFAULTS)
    assert writer.append(new_rows(2)) == Appended(rows, rows + 2)
    writer.close()
    table = read_all(SegmentReader.open(tmp_path))
    assert table.column("level").to_pylist() == [7] * rows + [0, 1]
    assert table.column("note").to_pylist() == [None] * rows + ["x", "x"]
    assert table.column("k").to_pylist() == ["a"] * rows + ["b", "b"]
    (batch,) = SegmentReader.open(tmp_path).read(rows, rows + 1, ["level"])
    assert batch.rows.column(0).to_pylist() == [0]
    assert read_all(before).schema.names[3:] == ["k", "v"], "an open reader keeps its schema"
    assert read_all(before).column("k").to_pylist() == ["a"] * rows + ["b", "b"]
    SegmentWriter.open(tmp_path, NEW).close()
    assert read_all(SegmentReader.open(tmp_path)).column("level").to_pylist()[:rows] == [7] * rows


@pytest.mark.parametrize(
    ("schema", "defaults", "says"),
    [
        (NEW, {"level": 7}, "attribute 'note' is new; give it a default"),
        (Schema.of("S", k="string"), {}, "attribute 'v' int32 is missing"),
        (Schema.of("S", v="int", k="string"), {}, "attribute 1 is 'v', not 'k'"),
        (Schema.of("S", k="string", v="long"), {}, "attribute 'v' is int64, not int32"),
    ],
)
def test_every_other_change_is_refused(tmp_path, schema, defaults, says):
    writer = SegmentWriter.open(tmp_path, OLD)
    writer.append(old_rows(3))
    writer.close()
    with pytest.raises(LogError, match=says):
        SegmentWriter.open(tmp_path, schema, defaults=defaults)
    assert read_all(SegmentReader.open(tmp_path)).num_rows == 3


def test_a_writer_that_lost_the_log_cannot_append(tmp_path):
    old = SegmentWriter.open(tmp_path, SCHEMA)
    old.append(make_rows([1]))
    new = SegmentWriter.open(tmp_path, SCHEMA, take_over=True)
    assert new.head.epoch > old.head.epoch
    with pytest.raises(LogLocked, match="took over from epoch 1; nothing was appended"):
        old.append(make_rows([2]))
    assert new.append(make_rows([3])) == Appended(1, 2)
    old.close()
    with pytest.raises(LogLocked):
        SegmentWriter.open(tmp_path, SCHEMA)
    new.close()
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    assert writer.head.epoch > new.head.epoch
    writer.close()
    assert read_all(SegmentReader.open(tmp_path)).column("_ts").to_pylist() == [1, 3]


def test_what_was_acknowledged_before_the_fence_is_there_and_nothing_after(tmp_path):
    config = LogConfig(segment_bytes_max=5_000)
    old = SegmentWriter.open(tmp_path, SCHEMA, config)
    acknowledged, refused = [], []
    begun = threading.Semaphore(0)

    def produce(number):
        try:
            for at in range(10_000):
                time = number * 10_000 + at
                old.append(make_rows([time]))
                acknowledged.append(time)
                begun.release()
        except LogLocked as error:
            refused.append(error)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        assert begun.acquire(timeout=20)
    new = SegmentWriter.open(tmp_path, SCHEMA, config, take_over=True)
    assert new.append(make_rows([77_777])).end == new.head.offset
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    old.close()
    new.append(make_rows([88_888]))
    new.close()
    times = read_all(SegmentReader.open(tmp_path)).column("_ts").to_pylist()
    assert set(acknowledged) <= set(times)
    assert len(times) == len(set(times))
    assert times[-2:] == [77_777, 88_888]


def test_a_segment_of_a_fenced_writer_is_removed(tmp_path, caplog):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=3_000))
    for at in range(0, 60, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    writer.close()
    stray = segment_path(tmp_path, segment_bases(tmp_path)[0]).read_bytes()
    again = SegmentWriter.open(tmp_path, SCHEMA)
    again.close()
    segment_path(tmp_path, 1000).write_bytes(stray)
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    assert "a writer created it after it was fenced" in caplog.text
    assert writer.append(make_rows([60])) == Appended(60, 61)
    writer.close()
    assert read_all(SegmentReader.open(tmp_path)).column("_ts").to_pylist() == list(range(61))
