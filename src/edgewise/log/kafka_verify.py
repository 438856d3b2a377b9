"""List and verify logs that live in Kafka, for `edgewise log list` and `edgewise log verify`.

The broker and the client check the bytes of each record; here it is checked that the records are
of this log, that none is missing, and that each holds what its header says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from edgewise.errors import LogCorrupt, LogError
from edgewise.log.api import CLOCK_NONE
from edgewise.log.kafka_reader import FETCH_RECORDS_MAX, REQUEST_S, LogTopic, client_config
from edgewise.log.kafka_record import Record, schema_of
from edgewise.log.ledger import Ledger
from edgewise.log.rows import compute_clock
from edgewise.log.verify import Finding, VerifyReport

_INTERNAL = "__"  # how the broker's own topics start


def find_log_topics(broker: str) -> list[str]:
    """The topics of a broker that are logs."""
    try:
        known = AdminClient(client_config(broker)).list_topics(timeout=REQUEST_S).topics
    except KafkaException as error:
        raise LogError(f"{broker}: {error.args[0].str()}") from error
    return [
        name for name in sorted(known) if not name.startswith(_INTERNAL) and _is_log(broker, name)
    ]


def _is_log(broker: str, name: str) -> bool:
    topic = LogTopic(broker, name)
    try:
        return topic.last() is not None
    except LogCorrupt:
        return False
    finally:
        topic.close()


def list_topic_ledgers(broker: str, name: str) -> list[Ledger]:
    """Oldest first. Retention drops whole ones, as it drops segment files."""
    topic = LogTopic(broker, name)
    found: list[Ledger] = []
    try:
        low, _ = topic.range()
        newest = topic.last()
        while newest is not None:
            start = topic.record(newest.checkpoint_at)
            found.append(_ledger(name, start, newest, sealed=bool(found)))
            newest = topic.last(start.position) if start.position > low else None
    finally:
        topic.close()
    if not found:
        raise LogError(f"{broker}: topic {name} is no log; a writer creates it")
    return found[::-1]


def _ledger(name: str, start: Record, newest: Record, *, sealed: bool) -> Ledger:
    first, last = start.header, newest.header
    some = last.next > first.first and last.clock_after != CLOCK_NONE
    return Ledger(
        Path(name), first.first, last.next, None, last.clock_after if some else None,
        (first.epoch, last.epoch), last.bytes_before + newest.size - first.bytes_before,
        sealed=sealed, sealed_ms=last.written_ms, storage="kafka",
    )  # fmt: skip


def verify_topic(broker: str, name: str) -> VerifyReport:
    """Every committed record. Goes on behind one that is damaged."""
    topic = LogTopic(broker, name)
    check = _TopicCheck(f"kafka://{broker}/{name}", topic)
    try:
        low, high = topic.range()
        if low == high and topic.last() is None:
            raise LogError(f"{check.location}: there is no log here; a writer creates it")
        at, count = low, FETCH_RECORDS_MAX
        while at < high:
            try:
                records, end = topic.fetch(at, count, REQUEST_S)
            except LogCorrupt as error:
                if count == 1:
                    check.found(str(error))
                    at = topic.doubtful + 1
                # One by one up to the record that is not one of ours.
                count = 1 if count > 1 else FETCH_RECORDS_MAX
                continue
            for record in records:
                check.step(record)
                at = record.position + 1
            if end or not records:
                break
    finally:
        topic.close()
    return check.report


class _TopicCheck:
    """The state of a check: the last record, and the schemas known so far."""

    def __init__(self, location: str, topic: LogTopic) -> None:
        self.location = location
        self.report = VerifyReport()
        self._topic = topic
        self._last: Record | None = None
        self._schemas: dict[int, Any] = {}

    def found(self, what: str) -> None:
        self.report.findings.append(Finding(self.location, -1, what))

    def step(self, record: Record) -> None:
        header, last = record.header, self._last
        self.report.events += header.rows
        self.report.bytes += record.size
        if last is not None:
            before = last.header
            if (header.first, header.clock_before) != (before.next, before.clock_after):
                self._wrong(record, f"offset {header.first} follows {before.next}, or the clock "
                                    "does not fit")  # fmt: skip
            if header.epoch < before.epoch:
                self._wrong(record, f"epoch {header.epoch} follows {before.epoch}")
        self._last = record
        try:
            if header.checkpoint < 0:
                self._schemas = {record.position: schema_of(record)}
            else:
                self._batch(record)
        except (pa.ArrowException, msgspec.MsgspecError, LogCorrupt) as error:
            self._wrong(record, f"its value cannot be read ({error})")

    def _batch(self, record: Record) -> None:
        schema = self._schemas.get(record.header.checkpoint)
        if schema is None:
            raise LogCorrupt(f"its checkpoint {record.header.checkpoint} does not precede it")
        rows = pa.ipc.read_record_batch(pa.py_buffer(record.value), schema)
        rows.validate(full=True)
        clock = compute_clock(rows, rows.num_rows, CLOCK_NONE)
        if (rows.num_rows, clock) != (record.header.rows, record.header.ts_max):
            self._wrong(record, f"{rows.num_rows} rows up to time {clock}, its header says "
                                f"{record.header.rows} and {record.header.ts_max}")  # fmt: skip

    def _wrong(self, record: Record, what: str) -> None:
        self.found(f"record {record.position}: {what}")
