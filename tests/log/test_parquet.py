import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

from edgewise.errors import LogCorrupt
from edgewise.log import parquet
from edgewise.log.api import CLOCK_NONE, LogConfig
from edgewise.log.files import parquet_path, segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.parquet import ParquetLedger, move_to_parquet
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

ROWS = 400


@pytest.fixture(params=[7, 10**6], ids=["many groups", "one group"])
def log(tmp_path, request, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_ROWS_MAX", request.param)
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=10_000))
    for at in range(0, ROWS, 10):
        writer.append(make_rows([(t * 37) % 100 for t in range(at, at + 10)]))
    writer.close()
    return tmp_path


def test_a_reader_does_not_see_the_difference(log):
    running = SegmentReader.open(log)
    before = read_all(running)
    clocks = [running.clock(at) for at in range(ROWS + 1)]
    bases = segment_bases(log)
    for base in bases[:-1]:
        assert move_to_parquet(log, base)
        assert not segment_path(log, base).exists()
        assert not move_to_parquet(log, base)
    for reader in (SegmentReader.open(log), running):
        assert read_all(reader).equals(before)
        assert [reader.clock(at) for at in range(ROWS + 1)] == clocks
        for start in range(0, ROWS, 23):
            for batch in reader.read(start, min(start + 50, ROWS)):
                wanted = max(before.column("_ts").to_pylist()[: batch.first], default=CLOCK_NONE)
                assert batch.clock_before == wanted
                assert batch.rows.schema.equals(reader.schema, check_metadata=True)
    writer = SegmentWriter.open(log, SCHEMA)
    assert writer.append(make_rows([5])).first == ROWS
    writer.close()


def test_other_tools_read_the_file_as_it_is(log):
    base, end = segment_bases(log)[:2]
    rows = read_all(SegmentReader.open(log)).slice(base, end - base)
    move_to_parquet(log, base)
    frame = pd.read_parquet(parquet_path(log, base))
    assert list(frame.columns) == rows.schema.names
    assert frame["_ts"].tolist() == rows.column("_ts").to_pylist()
    assert pq.read_table(parquet_path(log, base)).equals(rows)


def test_retention_drops_moved_ledgers_too(log):
    bases = segment_bases(log)
    move_to_parquet(log, bases[0])
    writer = SegmentWriter.open(log, SCHEMA, LogConfig(retain_bytes=1))
    assert writer.retain(0) == len(bases) - 1
    assert segment_bases(log) == bases[-1:]
    writer.close()


def test_a_flipped_byte_is_found(log):
    base = segment_bases(log)[0]
    move_to_parquet(log, base)
    path = parquet_path(log, base)
    whole = path.read_bytes()
    for at in range(40, len(whole), len(whole) // 9):
        data = bytearray(whole)
        data[at] ^= 8
        path.write_bytes(data)
        try:
            rows = read_all(SegmentReader.open(log))
        except LogCorrupt as error:
            assert path.name in str(error)
        else:
            path.write_bytes(whole)
            assert rows.equals(read_all(SegmentReader.open(log))), at


def test_a_move_that_comes_back_different_keeps_the_segment(log, monkeypatch):
    base = segment_bases(log)[0]
    monkeypatch.setattr(ParquetLedger, "batches", lambda *_: iter([SegmentBatch]))
    with pytest.raises(LogCorrupt, match="came back different"):
        move_to_parquet(log, base)
    assert segment_path(log, base).exists()
    assert not parquet_path(log, base).exists()


class SegmentBatch:
    first, clock_before, rows = -1, 0, make_rows([1])


def test_a_file_that_is_no_ledger_is_said(tmp_path):
    path = parquet_path(tmp_path, 0)
    path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(LogCorrupt, match="the metadata is damaged"):
        ParquetLedger(path)


@pytest.mark.spark
def test_spark_reads_the_file_as_it_is(log):
    from edgewise.spark.session import start_session

    rows = read_all(SegmentReader.open(log))
    bases = segment_bases(log)
    for base in bases[:-1]:
        move_to_parquet(log, base)
    frame = start_session("local[1]").read.parquet(str(log / "*.parquet"))
    assert frame.columns == rows.schema.names
    expected = rows.slice(0, bases[-1])
    assert frame.count() == expected.num_rows
    found = sorted(r["n"] for r in frame.select("n").where("n is not null").collect())
    assert found == sorted(n for n in expected.column("n").to_pylist() if n is not None)


def test_other_tools_read_a_moved_ledger_as_it_is(log):
    bases = segment_bases(log)[:-1]
    before = read_all(SegmentReader.open(log))
    for base in bases:
        move_to_parquet(log, base)
    end = ParquetLedger(parquet_path(log, bases[-1])).footer.end
    wanted = before.slice(0, end)
    rows = f"read_parquet('{log}/*.parquet', filename=true, file_row_number=true)"
    found = duckdb.sql(f"select * from {rows} order by filename, file_row_number")
    own = found.to_arrow_table().select(wanted.column_names)
    assert own.to_pylist() == wanted.to_pylist()
    (counted,) = duckdb.sql(f"select count(*), max(_ts) from '{log}/*.parquet'").fetchall()
    assert counted == (end, max(wanted.column("_ts").to_pylist()))
    files = [parquet_path(log, base) for base in bases]
    frame = pd.concat([pd.read_parquet(file) for file in files])
    assert frame["_ts"].tolist() == wanted.column("_ts").to_pylist()
