import asyncio

import pytest
from tests.support.async_until import until

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import check_sink, load_sink_class
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec
from edgewise.log.memory import MemoryLog

SCHEMA = Schema.of("S", k="string", v="int")


@pytest.fixture
def place():
    log = MemoryLog()
    log.writer(SCHEMA)
    return log


def append(place, *values):
    zeros = [0] * len(values)
    columns = [[f"k{v}" for v in values], list(values)]
    place.owner.append(record_batch(to_arrow(SCHEMA), zeros, zeros, zeros, columns))


def run(place, path, size, mapping=MapSpec()):  # noqa: B008
    """Let the sink write until its file has `size` lines."""
    spec = check_sink(SinkSpec("S", "file", {"path": str(path)}, mapping))

    async def scenario():
        cursor = FileCursor(path.with_name("unused"))
        sink = load_sink_class("file")(spec, SCHEMA, place.reader(), cursor)
        await sink.start()
        await until(lambda: len(path.read_bytes().splitlines()) == size)
        await until(sink._cursor._position_file.exists)
        head = place.offset
        await until(lambda: sink._cursor._position_file.read_text().startswith(f"{head} "))
        await sink.stop()

    asyncio.run(scenario())
    return path.read_text()


def test_each_row_is_one_line_and_a_restart_goes_on(place, tmp_path):
    path = tmp_path / "new" / "out.json"
    append(place, 1, 2)
    run(place, path, 2)
    append(place, 3)
    text = run(place, path, 3)
    assert text == '{"k":"k1","v":1}\n{"k":"k2","v":2}\n{"k":"k3","v":3}\n'


def test_what_a_crash_left_behind_the_last_save_is_written_once(place, tmp_path):
    path = tmp_path / "out.csv"
    append(place, 1)
    run(place, path, 2, MapSpec("csv"))
    append(place, 2)
    with path.open("a") as file:
        file.write("k2,2\nk")
    assert run(place, path, 3, MapSpec("csv")) == "k,v\nk1,1\nk2,2\n"


def test_a_file_that_is_not_ours_is_left_alone(place, tmp_path):
    path = tmp_path / "precious"
    path.write_text("mine\n")
    with pytest.raises(SetupError, match="move it away"):
        run(place, path, 1)
    assert path.read_text() == "mine\n"


def test_a_file_that_became_shorter_is_said(place, tmp_path):
    path = tmp_path / "out"
    append(place, 1)
    run(place, path, 1)
    path.write_text("")
    with pytest.raises(SetupError, match="another program changed it"):
        run(place, path, 1)


def test_what_cannot_work_is_refused(place, tmp_path):
    with pytest.raises(BadSpec, match="is no file"):
        check_sink(SinkSpec("S", "file", {"path": "dir/"}))
    with pytest.raises(BadSpec, match="one of: json, csv, text, xml, keyvalue; not as binary"):
        run(place, tmp_path / "x", 1, MapSpec("binary", {"layout": "<4si"}))
