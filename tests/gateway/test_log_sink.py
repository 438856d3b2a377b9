import asyncio
import io

import pytest
from tests.support.async_until import until

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import check_sink
from edgewise.gateway.log_sink import LogSink, format_event
from edgewise.gateway.sink_reader import FileCursor, Message
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec
from edgewise.log.memory import MemoryLog

SCHEMA = Schema.of("Alerts", k="string", v="int")


def print_rows(tmp_path, rows, mapping=MapSpec("passThrough"), **options):  # noqa: B008
    """The lines of a log sink for rows at 1000, 1001, ..., without the time of day."""
    spec = check_sink(SinkSpec("Alerts", "log", options, mapping))
    log, out = MemoryLog(), io.StringIO()
    log.writer(SCHEMA)
    times = [1000 + number for number in range(len(rows))]
    columns = [list(column) for column in zip(*rows, strict=True)]
    zeros = [0] * len(rows)
    log.owner.append(record_batch(to_arrow(SCHEMA), times, zeros, zeros, columns))
    cursor = FileCursor(tmp_path / "cursor")

    async def scenario():
        sink = LogSink(spec, SCHEMA, log.reader(), cursor, out)
        await sink.start()
        await until(lambda: cursor.load() == len(rows))
        await sink.stop()

    asyncio.run(scenario())
    return [line.partition(" ")[2] for line in out.getvalue().splitlines()]


def test_rows_are_printed_as_siddhi_prints_events(tmp_path):
    assert print_rows(tmp_path, [("a", 1), (None, 2)], prefix="LOG", priority="warn") == [
        "WARN LOG : Event{timestamp=1000, data=[a, 1], isExpired=false}",
        "WARN LOG : Event{timestamp=1001, data=[null, 2], isExpired=false}",
    ]


def test_without_options_a_line_begins_with_the_stream(tmp_path):
    (line,) = print_rows(tmp_path, [("a", 1)])
    assert line == "INFO Alerts : Event{timestamp=1000, data=[a, 1], isExpired=false}"


def test_with_a_mapping_a_line_has_the_payload(tmp_path):
    (line,) = print_rows(tmp_path, [("a", 1)], MapSpec("json"))
    assert line == 'INFO Alerts : {"k":"a","v":1}'


def test_a_value_cannot_begin_a_line_of_its_own(tmp_path):
    (line,) = print_rows(tmp_path, [("a\nINFO forged\x1b[2J", 1)])
    assert "data=[a\\nINFO forged\\x1b[2J, 1]" in line


def test_off_prints_nothing(tmp_path):
    assert print_rows(tmp_path, [("a", 1)], priority="OFF") == []


def test_values_are_written_as_java_does():
    message = Message(0, b"", (True, None, 1.5, "x"), 7)
    assert format_event(message) == (
        "Event{timestamp=7, data=[true, null, 1.5, x], isExpired=false}"
    )


def test_an_unknown_priority_is_refused():
    with pytest.raises(BadSpec, match="must be one of: DEBUG") as bad:
        check_sink(SinkSpec("S", "log", {"priority": "loud"}))
    assert bad.value.option == "priority"
