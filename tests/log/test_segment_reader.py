import subprocess
import sys
import threading
import time

import pytest

from edgewise.errors import LogCorrupt, LogError, OutOfRange
from edgewise.log import head as head_module
from edgewise.log.api import LogConfig
from edgewise.log.files import segment_bases, segment_path, write_all
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

TAIL = """
import sys
from pathlib import Path
from edgewise.log.segment_reader import SegmentReader
reader, at, seen = SegmentReader.open(Path(sys.argv[1])), 0, []
print("ready", flush=True)
while at < int(sys.argv[2]):
    assert reader.wait(at, 20)
    for batch in reader.read(at, reader.head().offset):
        assert batch.first == at
        seen += batch.rows.column("_ts").to_pylist()
        at += batch.rows.num_rows
print(seen == list(range(at)))
"""


def test_another_process_tails_while_this_one_writes_and_rolls(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=8_000))
    command = [sys.executable, "-c", TAIL, str(tmp_path), "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout.readline() == "ready\n"
        for at in range(0, 600, 6):
            writer.append(make_rows(list(range(at, at + 6))))
        assert tail.stdout.read() == "True\n"
    writer.close()
    assert len(segment_bases(tmp_path)) > 5


def test_several_threads_share_a_reader(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=8_000))
    reader = SegmentReader.open(tmp_path)
    results = []

    def tail():
        at, seen = 0, []
        while at < 400 and reader.wait(at, 20):
            for batch in reader.read(at, reader.head().offset):
                seen += batch.rows.column("_ts").to_pylist()
            at = len(seen)
        results.append(seen)

    threads = [threading.Thread(target=tail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for at in range(0, 400, 5):
        writer.append(make_rows(list(range(at, at + 5))))
    for thread in threads:
        thread.join()
    writer.close()
    assert results == [list(range(400))] * 4


def test_a_reader_never_sees_what_is_not_durable(tmp_path, monkeypatch):
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    writer.append(make_rows([1]))
    reader = SegmentReader.open(tmp_path)
    heads = []

    def written_not_synced(fd, buffers, position):
        write_all(fd, buffers, position)
        heads.append(reader.head().offset)

    monkeypatch.setattr("edgewise.log.active_segment.write_durably", written_not_synced)
    writer.append(make_rows([2, 3]))
    assert heads == [1]
    assert reader.head().offset == 3
    writer.close()


def test_after_a_power_loss_the_durable_rows_behind_an_old_head_are_seen(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    writer.append(make_rows([1]))
    old = (tmp_path / head_module.NAME).read_bytes()
    writer.append(make_rows([2, 3]))
    writer.close()
    (tmp_path / head_module.NAME).write_bytes(old)
    reader = SegmentReader.open(tmp_path)
    assert read_all(reader).column("_ts").to_pylist() == [1, 2, 3]
    again = SegmentWriter.open(tmp_path, SCHEMA)
    assert again.head.offset == 3
    again.append(make_rows([4]))
    assert reader.head() == again.head
    again.close()


def test_rows_outlive_their_reader_and_their_segment(tmp_path):
    writer = SegmentWriter.open(
        tmp_path, SCHEMA, LogConfig(segment_bytes_max=4_000, retain_bytes=1)
    )
    for at in range(0, 100, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    reader = SegmentReader.open(tmp_path)
    batches = [b.rows for b in reader.read(0, 100)]
    later = reader.read(0, 100)
    next(later)
    writer.retain(0)
    reader.close()
    writer.close()
    assert [t for rows in batches for t in rows.column("_ts").to_pylist()] == list(range(100))
    with pytest.raises(OutOfRange):
        list(SegmentReader.open(tmp_path).read(0, 100))


def test_no_log_and_a_missing_segment_are_said(tmp_path):
    with pytest.raises(LogError, match="there is no log here"):
        SegmentReader.open(tmp_path)
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=4_000))
    for at in range(0, 100, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    writer.close()
    bases = segment_bases(tmp_path)
    segment_path(tmp_path, bases[2]).unlink()
    with pytest.raises(LogCorrupt, match=f"offset {bases[2]} is missing"):
        list(SegmentReader.open(tmp_path).read(0, 100))


def test_closing_ends_a_wait(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    reader = SegmentReader.open(tmp_path)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(reader.wait(0, 60)))
    start = time.monotonic()
    thread.start()
    reader.close()
    thread.join()
    writer.close()
    assert answers == [False]
    assert time.monotonic() - start < 30
