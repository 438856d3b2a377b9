"""Send the log records of a Python program to a stream.

    from edgewise.gateway.logging_handler import EdgewiseHandler
    logging.getLogger().addHandler(EdgewiseHandler("http://127.0.0.1:8006", "app_log"))

`emit` never blocks: records go into a bounded queue, and those that do not fit are dropped and
counted (`handler.dropped`). A thread sends them in batches, each with an idempotency key, so that
a batch sent again after a broken connection is in the stream once. The definition of the stream
says which attributes are sent: those of FIELDS by name, any other from `extra={...}`.

Used by programs of users; nothing in a node imports it.
"""

from __future__ import annotations

import http.client
import logging
import os
import queue
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

QUEUE_MAX = 10_000
BATCH_MAX = 500
TEXT_CHARS_MAX = 32 * 1024  # of one attribute
BACKOFF_S = (0.1, 0.3, 1.0, 3.0)
_RETRY_STATUS = {408, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class _Record:
    """A record with what must be formatted at once: its arguments may change later."""

    record: logging.LogRecord
    message: str
    exception: str | None


FIELDS: Mapping[str, Callable[[_Record], Any]] = {
    "level": lambda line: line.record.levelname,
    "levelno": lambda line: line.record.levelno,
    "logger": lambda line: line.record.name,
    "message": lambda line: line.message,
    "exception": lambda line: line.exception,
    "module": lambda line: line.record.module,
    "function": lambda line: line.record.funcName,
    "file": lambda line: line.record.pathname,
    "line": lambda line: line.record.lineno,
    "process": lambda line: line.record.process,
    "thread": lambda line: line.record.threadName,
}


class EdgewiseHandler(logging.Handler):
    """`sent`, `dropped` and `refused` count records and may be read at any time."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8006",
        stream: str = "app_log",
        *,
        level: int = logging.NOTSET,
        queue_max: int = QUEUE_MAX,
        batch_max: int = BATCH_MAX,
        timeout_s: float = 5.0,
    ) -> None:
        super().__init__(level)
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"'{url}' is no http address of an Edgewise node")
        self._parts = parts
        self._stream = stream
        self._queue_max = queue_max
        self._batch_max = batch_max
        self._timeout_s = timeout_s
        self._exceptions = logging.Formatter()
        self.sent = self.dropped = self.refused = 0
        self._start()

    def emit(self, record: logging.LogRecord) -> None:
        if threading.current_thread() is self._thread:
            return  # records of the sending itself would be sent for ever
        if self._pid != os.getpid():
            self._start()  # a forked process has no thread
        try:
            error = record.exc_info
            text = self._exceptions.formatException(error) if error and error[0] else None
            self._queue.put_nowait(_Record(record, record.getMessage(), text))
        except queue.Full:
            self.dropped += 1
        except Exception:  # noqa: BLE001  logging's own rule: a error record must not raise
            self.handleError(record)

    def flush(self) -> None:
        """Does nothing: waiting would block the program. `close` waits, within limits."""

    def close(self) -> None:
        """Send what is left, for at most the timeout."""
        self._closing.set()
        if self._pid == os.getpid() and self._thread.is_alive():
            self._thread.join(self._timeout_s)
        super().close()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._queue: queue.Queue[_Record] = queue.Queue(self._queue_max)
        self._closing = threading.Event()
        self._client = _IngestClient(self._parts, self._stream, self._timeout_s)
        self._thread = threading.Thread(target=self._run, name="edgewise-log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._send(batch)
        finally:
            self._client.disconnect()

    def _next_batch(self) -> list[_Record]:
        """The next lines, at least one; none when the handler is closed and all are sent."""
        batch: list[_Record] = []
        while not batch:
            try:
                batch.append(self._queue.get(timeout=0.1))
            except queue.Empty:
                if self._closing.is_set():
                    return []
        while len(batch) < self._batch_max:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _send(self, batch: list[_Record]) -> None:
        attempts = 0
        while True:
            answer = self._client.post(batch)
            if answer is None:
                self.sent += len(batch)
                return
            if not answer.retry:
                self._refuse(len(batch), answer.message)
                return
            if self._closing.is_set() and attempts:
                self.dropped += len(batch)
                return
            self._closing.wait(BACKOFF_S[min(attempts, len(BACKOFF_S) - 1)])
            attempts += 1

    def _refuse(self, count: int, why: str) -> None:
        if not self.refused:
            sys.stderr.write(f"edgewise: stream {self._stream} refused log records: {why}\n")
        self.refused += count


@dataclass(frozen=True, slots=True)
class _Failure:
    retry: bool
    message: str


class _IngestClient:
    """One connection to the ingest endpoint; the stream's attributes, once they are known."""

    def __init__(self, parts: Any, stream: str, timeout_s: float) -> None:
        self._parts = parts
        self._stream = stream
        self._timeout_s = timeout_s
        self._producer = f"log-{os.getpid()}-{secrets.token_hex(8)}"
        self._sequence = 0
        self._attributes: dict[str, str] = {}
        self._connection: http.client.HTTPConnection | None = None

    def post(self, batch: list[_Record]) -> _Failure | None:
        """None when the batch is durable."""
        try:
            if not self._attributes and (failure := self._fetch_attributes()):
                return failure
            body = b"\n".join(
                msgspec.json.encode(self._event(line), enc_hook=str) for line in batch
            )
            status, answer = self._request("POST", f"/streams/{quote(self._stream)}", body)
        except (OSError, http.client.HTTPException) as error:
            self.disconnect()
            return _Failure(retry=True, message=str(error))
        if status == 200:
            self._sequence += 1
            return None
        retry = status in _RETRY_STATUS
        if not retry:
            self._attributes = {}  # the stream may have changed: ask again next time
            self._sequence += 1
        return _Failure(retry, answer.get("message", f"status {status}"))

    def _fetch_attributes(self) -> _Failure | None:
        status, answer = self._request("GET", "/streams")
        for stream in answer.get("streams", []):
            if stream["stream"] == self._stream:
                self._attributes = {a["name"]: a["type"] for a in stream["attributes"]}
                return None
        return _Failure(status != 200, f"no stream '{self._stream}' at {self._parts.netloc}")

    def _request(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
        if self._connection is None:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            self._connection = kind(
                self._parts.hostname, self._parts.port, timeout=self._timeout_s
            )
        headers = {"Content-Type": "application/x-ndjson"}
        if body:
            headers["Idempotency-Key"] = f"{self._producer}/{self._sequence}"
        self._connection.request(
            method, self._parts.path.rstrip("/") + path, body or None, headers
        )
        response = self._connection.getresponse()
        text = response.read()
        if response.will_close:
            self.disconnect()
        try:
            answer = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _event(self, line: _Record) -> dict[str, Any]:
        data = {}
        for name, kind in self._attributes.items():
            field = FIELDS.get(name)
            value = field(line) if field else line.record.__dict__.get(name)
            data[name] = None if value is None else _COERCE[kind](value)
        if "data" in self._attributes:
            return data
        return {"ts": int(line.record.created * 1000), "data": data}


def _to_text(value: Any) -> str:
    return str(value)[:TEXT_CHARS_MAX].encode(errors="replace").decode()


def _keep_int(low: int, high: int) -> Callable[[Any], int | None]:
    return lambda value: value if isinstance(value, int) and low <= value <= high else None


def _to_float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e38 else None


# A value of another type becomes text or null, so that no record is refused for it.
_COERCE: Mapping[str, Callable[[Any], Any]] = {
    "string": _to_text,
    "int": _keep_int(INT_MIN, INT_MAX),
    "long": _keep_int(LONG_MIN, LONG_MAX),
    "float": _to_float,
    "double": _to_float,
    "bool": bool,
    "object": _to_text,
}
