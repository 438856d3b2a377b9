"""Read a result stream from its log and publish it as topics: history first, then the tail.

History is read once, bounded, so that a new edge has the current values before the first client
asks: an edge listens when its feeds have caught up. The thread of a feed waits for the edge to
take each batch: the log is the queue, nothing piles up. Between batches it reads pages of older
rows for clients that were away for longer than the edge remembers. Nodes start a feed for each
topic sink of an app.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgewise.edge.server.server import Edge
from edgewise.edge.topics.topic_sink import TopicSink, demand_attributes
from edgewise.edge.topics.tree import HistoryPage, PageRequest, Publication, RowHistory
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, from_arrow
from edgewise.event.event import EventKind
from edgewise.event.types import AttrType
from edgewise.log.api import LogBatch, LogReader
from edgewise.wire import codec

HISTORY_ROWS_MAX = 1_000_000
BATCH_ROWS_MAX = 8192
WAIT_S = 0.25
REPLAY_WAIT_S = 0.005  # while a client reads on in the log
PAGE_ROWS_MAX = 512  # rows of one topic that are read at once for one client
PAGE_SCAN_MAX = 8192  # rows of the log that are read for one page, whatever they are
REQUESTS_MAX = 100_000  # pages that clients wait for at once; more of them say GAP
ACCEPT_S = 10.0


class LogFeed:
    """One result stream to its topics. `start`, later `stop`; `error` says why it ended early."""

    def __init__(
        self,
        edge: Edge,
        reader: LogReader,
        sink: TopicSink,
        *,
        history_rows_max: int = HISTORY_ROWS_MAX,
    ) -> None:
        edge.fanout.merges.validate_recovery(sink.policy.conflate, sink.policy.recovery)
        self.offset = 0
        self.rows = 0
        self.error: EdgewiseError | None = None
        self.caught_up = threading.Event()
        self._edge = edge
        self._reader = reader
        self._sink = sink
        self._history_rows_max = history_rows_max
        self._stop = threading.Event()
        self._requests: deque[PageRequest] = deque()
        self._rows = RowMapper(reader.schema, sink, self)
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
            self._publish_history()
            self.caught_up.set()
            while not self._stop.is_set():
                wait_s = REPLAY_WAIT_S if self._serve_request() else WAIT_S
                if self._reader.wait(self.offset, wait_s):
                    self._tail()
        except EdgewiseError as error:
            self.error = error
        finally:
            self.caught_up.set()
            for request in [*self._requests]:
                self._edge.deliver_threadsafe(request, None)

    def fetch(self, request: PageRequest) -> None:
        """Ask for past rows of a topic; the thread of the edge calls this."""
        ended = self._stop.is_set() or self.error is not None
        if ended or len(self._requests) >= REQUESTS_MAX:
            self._edge.deliver_threadsafe(request, None)
        else:
            self._requests.append(request)

    def _serve_request(self) -> bool:
        """Read one page; whether there was one to read."""
        if not self._requests:
            return False
        request = self._requests[0]
        page = self._read_page(request)
        self._requests.popleft()
        self._edge.deliver_threadsafe(request, page)
        return True

    def _read_page(self, request: PageRequest) -> HistoryPage | None:
        if self._reader.earliest() > request.start:
            return None
        rows: list[Publication] = []
        end = min(request.end, request.start + PAGE_SCAN_MAX)
        epoch = self._reader.head().epoch
        for batch in self._reader.read(request.start, end):
            for publication in self._rows.publications(batch, epoch):
                if publication.path == request.path:
                    rows.append(publication)
                    if len(rows) >= PAGE_ROWS_MAX:
                        return HistoryPage(rows, publication.offset + 1)
        return HistoryPage(rows, end)

    def _publish_history(self) -> None:
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
                path = publication.path
                if not publication.remove:
                    latest[path] = publication
                elif path in latest and latest[path].value == publication.value:
                    del latest[path]
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


async def wait_caught_up(feeds: Iterable[LogFeed]) -> None:
    """Until the topics of all feeds have their current values: then an edge may listen."""
    for feed in feeds:
        await asyncio.to_thread(feed.caught_up.wait)


class RowMapper:
    """Record batches of one stream to publications of its topics."""

    def __init__(self, schema: Any, sink: TopicSink, history: RowHistory | None = None) -> None:
        stream = from_arrow(schema)
        self.stream = stream.name
        self.whole_from = -1
        self.last_wins = (
            sink.policy.conflate == "replace" and not sink.policy.keep and not sink.key
        )
        self._sink = sink
        self._history = history
        self._names = stream.names
        self._objects = [i for i, a in enumerate(stream.attributes) if a.type is AttrType.OBJECT]
        demand_attributes(sink, stream)

    def publications(self, batch: LogBatch, epoch: int) -> Iterator[Publication]:
        """Current rows, and expired ones as the sink says. A row that takes itself away is a
        publication with its value that removes.
        """
        rows, names, policy, sink = batch.rows, self._names, self._sink.policy, self._sink
        at = rows.column(AT).to_pylist()
        kinds = rows.column(KIND).to_pylist()
        columns = [rows.column(SYSTEM_COUNT + i).to_pylist() for i in range(len(names))]
        takes_expired = sink.expired in {"update", "remove"}
        for i in self._objects:
            columns[i] = [_decode_object(text) for text in columns[i]]
        for index, values in enumerate(zip(*columns, strict=True)):
            expired = kinds[index] == EventKind.EXPIRED
            if (expired and not takes_expired) or kinds[index] == EventKind.TICK:
                continue
            row = dict(zip(names, values, strict=True))
            yield Publication(
                sink.format_path(row),
                _encode_body(row[sink.body]) if sink.body else row,
                offset=batch.first + index,
                at_us=at[index],
                epoch=epoch,
                policy=policy,
                key=str(row[sink.key]) if sink.key else "",
                remove=expired and sink.expired == "remove",
                whole_from=self.whole_from,
                history=self._history,
            )


def _encode_body(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _decode_object(text: str | None) -> Any:
    """An object attribute travels as JSON; what no frame can carry stays text."""
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
        codec.encode(value)
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return text
    return value
