"""From a result stream in the log to topics: history first, then the tail, in a thread.

History is read once, bounded, so that a new edge has the current values before the first client
asks. The thread waits for the edge to take each batch: the log is the queue, nothing piles up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from edgewise.edge.puts import Publication
from edgewise.edge.server import Edge
from edgewise.edge.sink import TopicSink, demand_attributes
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, from_arrow
from edgewise.event.event import Kind
from edgewise.event.types import AttrType
from edgewise.log.api import LogBatch, LogReader
from edgewise.wire import codec

HISTORY_ROWS_MAX = 1_000_000
BATCH_ROWS_MAX = 8192
WAIT_S = 0.25
ACCEPT_S = 10.0


class Feed:
    """One result stream to its topics. `start`, later `stop`; `error` says why it ended early."""

    def __init__(
        self,
        edge: Edge,
        reader: LogReader,
        sink: TopicSink,
        *,
        history_rows_max: int = HISTORY_ROWS_MAX,
    ) -> None:
        edge.fanout.merges.place(sink.policy.conflate, sink.policy.recovery)
        self.offset = 0
        self.rows = 0
        self.error: EdgewiseError | None = None
        self.caught_up = threading.Event()
        self._edge = edge
        self._reader = reader
        self._sink = sink
        self._history_rows_max = history_rows_max
        self._stop = threading.Event()
        self._rows = Rows(reader.schema, sink)
        self._thread = threading.Thread(
            target=self._run, name=f"feed {self._rows.stream}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._history()
            self.caught_up.set()
            while not self._stop.is_set():
                if self._reader.wait(self.offset, WAIT_S):
                    self._tail()
        except EdgewiseError as error:
            self.error = error
            self.caught_up.set()

    def _history(self) -> None:
        head = self._reader.head()
        self.offset = max(self._reader.earliest(), head.offset - self._history_rows_max)
        self._rows.whole_from = self.offset
        oldest_us = 0
        if self._sink.policy.ttl_ms:
            oldest_us = time.time_ns() // 1000 - self._sink.policy.ttl_ms * 1000
        if not self._rows.last_wins:
            self._tail(oldest_us)
            return
        latest: dict[str, Publication] = {}
        for batch in self._reader.read(self.offset, head.offset):
            for publication in self._rows.publications(batch, head.epoch):
                latest[publication.path] = publication
            if self._stop.is_set():
                return
        self.offset = head.offset
        self._publish([p for p in latest.values() if p.at_us >= oldest_us])

    def _tail(self, oldest_us: int = 0) -> None:
        head = self._reader.head()
        while self.offset < head.offset and not self._stop.is_set():
            end = min(head.offset, self.offset + BATCH_ROWS_MAX)
            for batch in self._reader.read(self.offset, end):
                publications = self._rows.publications(batch, head.epoch)
                self._publish([p for p in publications if p.at_us >= oldest_us])
            self.offset = end

    def _publish(self, publications: list[Publication]) -> None:
        for first in range(0, len(publications), BATCH_ROWS_MAX):
            part = publications[first : first + BATCH_ROWS_MAX]
            done = self._edge.publish_threadsafe(part)
            while not done.wait(ACCEPT_S) and not self._stop.is_set():
                pass
            self.rows += len(part)


class Rows:
    """Record batches of one stream to publications of its topics."""

    def __init__(self, schema: Any, sink: TopicSink) -> None:
        stream = from_arrow(schema)
        self.stream = stream.name
        self.whole_from = -1
        self.last_wins = (
            sink.policy.conflate == "replace" and not sink.policy.keep and not sink.key
        )
        self._sink = sink
        self._names = stream.names
        self._objects = [i for i, a in enumerate(stream.attributes) if a.type is AttrType.OBJECT]
        demand_attributes(sink, stream)

    def publications(self, batch: LogBatch, epoch: int) -> Iterator[Publication]:
        """Current rows only: an expired row leaves a window, it is no news for a viewer."""
        rows, names, policy, sink = batch.rows, self._names, self._sink.policy, self._sink
        at = rows.column(AT).to_pylist()
        kinds = rows.column(KIND).to_pylist()
        columns = [rows.column(SYSTEM_COUNT + i).to_pylist() for i in range(len(names))]
        for i in self._objects:
            columns[i] = [_object(text) for text in columns[i]]
        for index, values in enumerate(zip(*columns, strict=True)):
            if kinds[index] != Kind.CURRENT:
                continue
            row = dict(zip(names, values, strict=True))
            yield Publication(
                sink.path_of(row),
                _bytes(row[sink.body]) if sink.body else row,
                offset=batch.first + index,
                at_us=at[index],
                epoch=epoch,
                policy=policy,
                key=str(row[sink.key]) if sink.key else "",
                whole_from=self.whole_from,
            )


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _object(text: str | None) -> Any:
    """An object attribute travels as JSON; what no frame can carry stays text."""
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
        codec.encode(value)
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return text
    return value
