import asyncio
import json
import os
from contextlib import asynccontextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import file as module
from edgewise.gateway.connectors import check_source, load_source_class
from edgewise.gateway.spec import BadSpec, MapSpec, SourceSpec

SCHEMA = Schema.of("S", k="string", v="int")


def source(log, path, mapping=MapSpec(), **options):  # noqa: B008
    spec = check_source(SourceSpec("S", "file", {"path": str(path), **options}, mapping))
    return load_source_class("file")(spec, SCHEMA, log, ManualClock(1000))


def read_all(log, path, mapping=MapSpec(), **options):  # noqa: B008
    async def scenario():
        reading = source(log, path, mapping, follow="false", **options)
        await reading.start()
        await reading.finished()
        await reading.stop()
        return reading.stats

    return asyncio.run(scenario())


@asynccontextmanager
async def followed(log, path, **options):
    reading = source(log, path, **options)
    await reading.start()
    yield reading
    await reading.stop()


def lines(*values):
    return "".join(json.dumps({"k": "a", "v": v}) + "\n" for v in values)


def stored(log):
    return [r["v"] for r in log.rows()]


def test_json_lines_are_read_and_a_bad_one_does_not_take_the_others(tmp_path):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"
    path.write_text(lines(1, 2) + '{"k": 5}\n\n' + lines(3).strip())
    stats = read_all(log, path)
    assert stored(log) == [1, 2, 3]
    assert stats.refused_total == 1


def test_csv_with_a_header_in_every_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 64)
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.csv"
    path.write_text("v;k\n" + "".join(f"{i};x{i}\n" for i in range(100)))
    read_all(log, path, MapSpec("csv", {"header": "true", "delimiter": ";"}))
    assert stored(log) == list(range(100))


def test_a_line_that_is_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 64)
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"
    path.write_text(lines(1) + "x" * 500 + "\n" + lines(2))
    stats = read_all(log, path)
    assert stored(log) == [1, 2]
    assert stats.refused == {("S", "too_large"): 1}


def test_text_lines_are_one_event_each(tmp_path):
    schema = Schema.of("S", line="string")
    log = MemoryLog(schema)
    path = tmp_path / "a.log"
    path.write_text("one\n\ntwo\r\n")

    async def scenario():
        spec = check_source(
            SourceSpec("S", "file", {"path": str(path), "follow": "false"}, MapSpec("text"))
        )
        reading = load_source_class("file")(spec, schema, log, ManualClock())
        await reading.start()
        await reading.finished()
        await reading.stop()

    asyncio.run(scenario())
    assert [r["line"] for r in log.rows()] == ["one", "two"]


def test_parquet_files_of_a_pattern_are_read_in_order_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_MAX", 7)
    log = MemoryLog(SCHEMA)
    for name, start in (("b", 20), ("a", 0)):
        table = pa.table({"k": ["x"] * 20, "v": list(range(start, start + 20))})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    for _ in range(2):
        read_all(log, tmp_path / "*.parquet", format="parquet")
    assert stored(log) == list(range(40))


def test_a_growing_file_is_followed_and_a_restart_takes_no_line_twice(tmp_path):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"

    async def scenario():
        async with followed(log, path):
            path.write_text(lines(1)[:5])
            await asyncio.sleep(0)
            path.write_text(lines(1, 2))
            await until(lambda: stored(log) == [1, 2])
        with path.open("a") as file:
            file.write(lines(3))
        async with followed(log, path) as reading:
            await until(lambda: stored(log) == [1, 2, 3])
            path.rename(tmp_path / "a.json.1")
            path.write_text(lines(4))
            await until(lambda: stored(log) == [1, 2, 3, 4])
            path.write_text("")
            await until(lambda: not reading._open_files)
            path.write_text(lines(5))
            await until(lambda: stored(log)[-1] == 5)

    asyncio.run(scenario())


def test_a_file_that_was_renamed_is_the_same_file(tmp_path):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"
    path.write_text(lines(1, 2))
    read_all(log, tmp_path / "*")
    path.rename(tmp_path / "a.json.1")
    path.write_text(lines(3))
    read_all(log, tmp_path / "*")
    assert stored(log) == [1, 2, 3]


def test_a_broken_parquet_file_is_said_once_and_the_others_are_read(tmp_path, caplog):
    log = MemoryLog(SCHEMA)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 torn")
    pq.write_table(pa.table({"k": ["x"], "v": [1]}), tmp_path / "b.parquet")
    read_all(log, tmp_path / "*.parquet", format="parquet")
    assert stored(log) == [1]
    assert caplog.text.count("a.parquet") == 1


def test_from_end_takes_only_what_comes_later(tmp_path):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"
    path.write_text(lines(1))

    async def scenario():
        options = {"from": "end"}
        async with followed(log, path, **options) as reading:
            await until(lambda: reading._open_files)
            with path.open("a") as file:
                file.write(lines(2))
            await until(lambda: stored(log))

    asyncio.run(scenario())
    assert stored(log) == [2]


def test_what_cannot_work_is_said(tmp_path):
    log = MemoryLog(SCHEMA)
    with pytest.raises(SetupError, match="no file matches"):
        read_all(log, tmp_path / "none")
    with pytest.raises(BadSpec, match="follow='maybe' must be one of: true, false"):
        source(log, "x", follow="maybe")
    with pytest.raises(BadSpec, match="one of: json, csv, text"):
        source(log, "x", MapSpec("binary", {"layout": "<4si"}))
    with pytest.raises(BadSpec, match="needs the option 'path'"):
        check_source(SourceSpec("S", "file"))


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        (MapSpec("xml"), "<event><k>a</k><v>{}</v></event>"),
        (MapSpec("keyvalue"), '{{"k": "a", "v": {}}}'),
        (MapSpec("text"), 'k:"a", v:{}'),
        (MapSpec("text", {"regex.a": r"(\w+) (\d+)"}, {"k": "A[1]", "v": "A[2]"}), "a {}"),
    ],
)
def test_a_line_is_a_payload_of_every_other_mapping(tmp_path, mapping, line):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.txt"
    path.write_text("".join(line.format(v) + "\n" for v in range(3)) + "bad\n" + line.format(3))
    stats = read_all(log, path, mapping)
    assert stored(log) == [0, 1, 2, 3]
    assert stats.refused_total == 1


def test_a_whole_file_is_one_payload_and_is_read_once(tmp_path):
    log = MemoryLog(SCHEMA)
    one = "<events>\n <event>\n <k>a</k>\n <v>{}</v>\n </event>\n</events>"
    for number in range(3):
        (tmp_path / f"{number}.xml").write_text(one.format(number))
    (tmp_path / "3.xml").write_text("bad")
    stats = read_all(log, tmp_path / "*.xml", MapSpec("xml"), format="whole")
    assert stored(log) == [0, 1, 2]
    assert stats.refused_total == 1
    (tmp_path / "4.xml").write_text(one.format(4))
    read_all(log, tmp_path / "*.xml", MapSpec("xml"), format="whole")
    assert stored(log) == [0, 1, 2, 4]


def test_a_whole_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BODY_BYTES_MAX", 10)
    log = MemoryLog(SCHEMA)
    (tmp_path / "a.json").write_text('{"k": "a",\n "v": 1}')
    stats = read_all(log, tmp_path / "*.json", format="whole")
    assert (stored(log), stats.refused_total) == ([], 1)


def test_a_whole_file_that_is_still_written_waits(tmp_path):
    log = MemoryLog(SCHEMA)
    path = tmp_path / "a.json"
    path.write_text('{"k": "a",\n "v": 1}')
    written = path.stat().st_mtime
    os.utime(path, (written + 1000, written + 1000))  # however slow this test is

    async def scenario():
        async with followed(log, path, format="whole") as reading:
            assert await reading._read_next(str(path)) is False
            os.utime(path, (written - 1000, written - 1000))
            await until(lambda: stored(log) == [1])

    asyncio.run(scenario())
