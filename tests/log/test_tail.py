import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import SetupError
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.memory import MemoryLog
from edgewise.log.tail import find_offset_at, parse_time, tail


def log_of(times):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    for at in range(0, len(times), 3):
        writer.append(make_rows(times[at : at + 3]))
    return log, writer


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(-1, 52))
def test_a_time_is_the_first_offset_that_reaches_it(times, wanted):
    reader = log_of(times)[0].reader()
    expected = next((at for at, ts in enumerate(times) if ts >= wanted), len(times))
    assert find_offset_at(reader, wanted) == expected


def test_rows_are_json_lines():
    reader = log_of([8])[0].reader()
    (line,) = tail(reader, 0)
    said = json.loads(line)
    assert (said["offset"], said["ts"], said["kind"]) == (0, 8, "current")
    assert said["data"]["k"] == "key 8"
    assert list(said["data"]) == list(SCHEMA.names)


def test_it_stops_at_the_count_or_at_the_end():
    reader = log_of(list(range(10)))[0].reader()
    assert len(list(tail(reader, 4, count=3))) == 3
    assert len(list(tail(reader, 4))) == 6
    assert list(tail(reader, 10)) == []


def test_following_waits_for_what_comes():
    log, writer = log_of([1])
    seen = []

    def follow():
        seen.extend(json.loads(line)["ts"] for line in tail(log.reader(), 0, count=3, follow=True))

    thread = threading.Thread(target=follow)
    thread.start()
    writer.append(make_rows([2]))
    writer.append(make_rows([3, 4]))
    thread.join(20)
    assert seen == [1, 2, 3]


def test_a_moment_is_a_number_or_a_date():
    assert parse_time("1500") == 1500
    assert parse_time("1970-01-01T00:00:02") == parse_time("1970-01-01T01:00:02+01:00") == 2000
    with pytest.raises(SetupError, match="not a time"):
        parse_time("yesterday")
