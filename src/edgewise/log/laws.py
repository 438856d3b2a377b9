"""State the laws of a log as one suite that every implementation must pass.

A test calls each law with a fresh location (`LogSubject`):

@pytest.mark.parametrize("law", LAWS)
def test_law(law, tmp_path):
    law(SegmentLogSubject(tmp_path))
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from edgewise.errors import LogError, LogLocked, OutOfRange
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.log.api import (
    CLOCK_NONE,
    Appended,
    EncodedBatchWriter,
    LogConfig,
    LogReader,
    LogWriter,
)
from edgewise.log.rows import encode_batches

SCHEMA = Schema.of("S", k="string", i="int", n="long", f="float", d="double", b="bool", o="object")
_ARROW = to_arrow(SCHEMA)
_TIMEOUT_S = 20.0


class LogSubject(Protocol):
    """One location of one log; opened again and again, it is the same log."""

    def writer(self, schema: Schema, config: LogConfig = ..., /) -> LogWriter: ...
    def reader(self) -> LogReader: ...


def make_rows(times: list[int]) -> Any:
    """Make rows with these event times; the other values follow from them, some are null."""
    columns: list[list[Any]] = [
        [None if t % 7 == 3 else f"key {t}" for t in times],
        [t % 1000 for t in times],
        [None if t % 5 == 1 else t * 1_000_003 for t in times],
        [t / 2 for t in times],
        [t / 3 for t in times],
        [None if t % 3 == 2 else t % 2 == 0 for t in times],
        [f'{{"t": {t}}}' for t in times],
    ]
    return record_batch(_ARROW, times, [t * 1000 for t in times], [0] * len(times), columns)


def read_all(reader: LogReader) -> Any:
    """Read all rows of a log as one table."""
    batches = list(reader.read(reader.earliest(), reader.head().offset))
    return pa.Table.from_batches([b.rows for b in batches], schema=reader.schema)


def _expect_error(error: type[LogError], action: Callable[[], object]) -> str:
    try:
        action()
    except error as raised:
        return str(raised)
    raise AssertionError(f"{error.__name__} was expected")


def offsets_are_dense_and_start_at_zero(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    assert writer.head.offset == 0
    expected = 0
    for count in (1, 5, 1, 200, 3):
        done = writer.append(make_rows(list(range(count))))
        assert done == Appended(expected, expected + count)
        expected += count
    assert writer.head.offset == expected
    reader = subject.reader()
    assert (reader.earliest(), reader.head()) == (0, writer.head)
    assert [b.first for b in reader.read(0, expected)] == [0, 1, 6, 7, 207]


def what_is_read_is_what_was_appended(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    batches = [make_rows(list(range(at, at + 17))) for at in range(0, 170, 17)]
    for batch in batches:
        writer.append(batch)
    reader = subject.reader()
    assert reader.schema.equals(_ARROW, check_metadata=True)
    assert read_all(reader).equals(pa.Table.from_batches(batches))
    writer.close()
    assert read_all(subject.reader()).equals(pa.Table.from_batches(batches))


def a_read_is_cut_exactly(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    at = 0
    for count in (1, 3, 2):
        writer.append(make_rows(list(range(at, at + count))))
        at += count
    reader = subject.reader()
    for start in range(at + 1):
        for end in range(start, at + 1):
            batches = list(reader.read(start, end))
            times = [t for b in batches for t in b.rows.column("_ts").to_pylist()]
            assert times == list(range(start, end)), (start, end)
            firsts = [b.first for b in batches]
            assert firsts == [b.rows.column("_ts")[0].as_py() for b in batches]


def a_read_takes_the_columns_asked(subject: LogSubject) -> None:
    subject.writer(SCHEMA).append(make_rows([1, 2, 3]))
    reader = subject.reader()
    (batch,) = reader.read(1, 3, ["n", "_ts"])
    assert batch.rows.schema.names == ["n", "_ts"]
    assert batch.rows.column("_ts").to_pylist() == [2, 3]
    assert "nothing" in _expect_error(LogError, lambda: list(reader.read(0, 1, ["nothing"])))


def offsets_that_are_not_there_are_refused(subject: LogSubject) -> None:
    subject.writer(SCHEMA).append(make_rows([1, 2, 3]))
    reader = subject.reader()
    for start, end in ((0, 4), (-1, 2), (3, 2), (7, 7)):
        _expect_error(OutOfRange, lambda s=start, e=end: list(reader.read(s, e)))  # type: ignore[misc]
    for offset in (-1, 4):
        _expect_error(OutOfRange, lambda o=offset: reader.clock(o))  # type: ignore[misc]
    assert list(reader.read(3, 3)) == []


def the_clock_is_known_at_every_offset(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    times = [50, 20, 60, 60, 10, 5, 90, -3, 91, 90]
    for at in range(0, len(times), 3):
        writer.append(make_rows(times[at : at + 3]))
    reader = subject.reader()
    for offset in range(len(times) + 1):
        expected = max(times[:offset], default=CLOCK_NONE)
        assert reader.clock(offset) == expected
        for batch in reader.read(offset, len(times)):
            assert batch.clock_before == max(times[: batch.first], default=CLOCK_NONE)


def a_sequence_is_appended_once(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    first = writer.append(make_rows([1, 2]), producer="p", sequence=1)
    second = writer.append(make_rows([3]), producer="p", sequence=2)
    other = writer.append(make_rows([4]), producer="q", sequence=1)
    assert (first, second, other) == (Appended(0, 2), Appended(2, 3), Appended(3, 4))
    assert writer.append(make_rows([3]), producer="p", sequence=2) == Appended(
        2, 3, duplicate=True
    )
    assert writer.append(make_rows([9]), producer="p", sequence=0).duplicate
    writer.close()
    writer = subject.writer(SCHEMA)
    assert writer.append(make_rows([3]), producer="p", sequence=2) == Appended(
        2, 3, duplicate=True
    )
    assert writer.append(make_rows([5]), producer="p", sequence=3) == Appended(4, 5)
    assert read_all(subject.reader()).column("_ts").to_pylist() == [1, 2, 3, 4, 5]


def no_rows_are_no_offsets(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    writer.append(make_rows([1]))
    assert writer.append(make_rows([])) == Appended(1, 1)
    assert writer.append(make_rows([]), producer="p", sequence=4) == Appended(1, 1)
    assert writer.append(make_rows([7]), producer="p", sequence=4).duplicate
    assert writer.append(make_rows([8])) == Appended(1, 2)
    assert read_all(subject.reader()).column("_ts").to_pylist() == [1, 8]


def a_second_writer_is_refused(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    writer.append(make_rows([1]))
    _expect_error(LogLocked, lambda: subject.writer(SCHEMA))
    assert writer.append(make_rows([2])) == Appended(1, 2)
    writer.close()
    subject.writer(SCHEMA)


def each_writer_opens_a_new_epoch(subject: LogSubject) -> None:
    epochs = []
    for at in range(3):
        writer = subject.writer(SCHEMA)
        assert writer.head.offset == at
        epochs.append(writer.head.epoch)
        assert writer.append(make_rows([at])) == Appended(at, at + 1)
        assert subject.reader().head() == writer.head
        writer.close()
    assert epochs == sorted(set(epochs))


def a_closed_writer_refuses(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    writer.append(make_rows([1]))
    writer.close()
    writer.close()
    _expect_error(LogError, lambda: writer.append(make_rows([2])))
    assert subject.reader().head().offset == 1


def another_schema_is_refused_by_name(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    writer.append(make_rows([1]))
    other = to_arrow(Schema.of("S", k="string", i="long"))
    rows = record_batch(other, [1], [1], [0], [["a"], [1]])
    assert "'i'" in _expect_error(LogError, lambda: writer.append(rows))
    writer.close()
    assert "'i'" in _expect_error(
        LogError, lambda: subject.writer(Schema.of("S", k="string", i="long"))
    )
    subject.writer(SCHEMA)


def a_large_append_is_cut_into_batches(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA, LogConfig(batch_rows_max=10))
    assert writer.append(make_rows(list(range(35))), producer="p", sequence=1) == Appended(0, 35)
    again = writer.append(make_rows(list(range(35))), producer="p", sequence=1)
    assert again == Appended(0, 35, duplicate=True)
    reader = subject.reader()
    assert [b.rows.num_rows for b in reader.read(0, 35)] == [10, 10, 10, 5]


def encoded_batches_are_appended_as_rows_are(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    if not isinstance(writer, EncodedBatchWriter):
        return
    batches = encode_batches(make_rows([5, 1, 9, 2, 2]), _ARROW, 3)
    for _ in range(2):  # the second time it is a duplicate
        done = writer.append_encoded(batches, producer="p", sequence=7)
        assert (done.first, done.end) == (0, 5)
    writer.append(make_rows([3]))
    reader = subject.reader()
    assert read_all(reader).column("_ts").to_pylist() == [5, 1, 9, 2, 2, 3]
    assert [reader.clock(at) for at in (3, 6)] == [9, 9]


def waiting_ends_when_the_head_moves(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    writer.append(make_rows([1]))
    reader = subject.reader()
    assert reader.wait(0, 0)
    assert not reader.wait(1, 0.01)
    woken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: woken.append(reader.wait(1, _TIMEOUT_S))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    writer.append(make_rows([2]))
    for thread in threads:
        thread.join()
    assert woken == [True, True, True]


def concurrent_appends_are_all_there_in_order(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    threads_count, each = 8, 12
    answers: dict[int, Appended] = {}

    def produce(number: int) -> None:
        for at in range(each):
            time = number * 1000 + at
            answers[time] = writer.append(make_rows([time]), producer=f"p{number}", sequence=at)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = read_all(subject.reader()).column("_ts").to_pylist()
    assert len(times) == threads_count * each
    assert all(times[done.first] == time for time, done in answers.items())
    for number in range(threads_count):
        mine = [t for t in times if t // 1000 == number]
        assert mine == [number * 1000 + at for at in range(each)]


def replay_equals_what_was_tailed(subject: LogSubject) -> None:
    writer = subject.writer(SCHEMA)
    total = 200
    reader = subject.reader()
    tailed: list[Any] = []

    def tail() -> None:
        at = 0
        while at < total and reader.wait(at, _TIMEOUT_S):
            head = reader.head().offset
            for batch in reader.read(at, head):
                assert batch.first == at
                tailed.append(batch.rows)
                at += batch.rows.num_rows

    thread = threading.Thread(target=tail)
    thread.start()
    for at in range(0, total, 4):
        writer.append(make_rows(list(range(at, at + 4))))
    thread.join()
    assert pa.Table.from_batches(tailed, schema=reader.schema).equals(read_all(subject.reader()))


def retention_moves_the_earliest_offset(subject: LogSubject) -> None:
    config = LogConfig(segment_bytes_max=20_000, retain_bytes=60_000)
    writer = subject.writer(SCHEMA, config)
    reader = subject.reader()
    for at in range(0, 3000, 100):
        writer.append(make_rows(list(range(at, at + 100))))
    assert writer.retain(0) > 0
    earliest = reader.earliest()
    assert 0 < earliest < 3000
    _expect_error(OutOfRange, lambda: list(reader.read(earliest - 1, 3000)))
    assert read_all(reader).column("_ts").to_pylist() == list(range(earliest, 3000))
    assert reader.clock(earliest) == earliest - 1
    assert writer.append(make_rows([1])) == Appended(3000, 3001)
    writer.close()
    writer = subject.writer(SCHEMA, config)
    assert subject.reader().earliest() >= earliest
    assert writer.retain(0) >= 0


LAWS: tuple[Callable[[LogSubject], None], ...] = (
    offsets_are_dense_and_start_at_zero,
    what_is_read_is_what_was_appended,
    a_read_is_cut_exactly,
    a_read_takes_the_columns_asked,
    offsets_that_are_not_there_are_refused,
    the_clock_is_known_at_every_offset,
    a_sequence_is_appended_once,
    no_rows_are_no_offsets,
    a_second_writer_is_refused,
    each_writer_opens_a_new_epoch,
    a_closed_writer_refuses,
    another_schema_is_refused_by_name,
    a_large_append_is_cut_into_batches,
    encoded_batches_are_appended_as_rows_are,
    waiting_ends_when_the_head_moves,
    concurrent_appends_are_all_there_in_order,
    replay_equals_what_was_tailed,
    retention_moves_the_earliest_offset,
)
