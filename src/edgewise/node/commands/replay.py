"""Run an app over finite events in event time (`edgewise replay`), the same on every engine.

Events come from a file of JSON lines, rows go out. Rows of one stream keep their order; between
streams they are merged by time, so that the output of two engines can be compared with `diff`.
"""

from __future__ import annotations

import heapq
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import BadEvent, SetupError, name_missing_extra
from edgewise.event.event import Event, EventKind
from edgewise.event.schema import Schema
from edgewise.event.values import convert_row
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.nodes import App

ENGINES = ("embedded", "spark", "batch")
APPEND_ROWS = 10_000  # events per append while a file is loaded into a log


class EventLine(msgspec.Struct, forbid_unknown_fields=True):
    """`{"stream": "S", "ts": 1000, "data": [..] or {..}}`, or `{"ts": 5000}` to move time."""

    ts: int
    stream: str | None = None
    data: list[Any] | dict[str, Any] | None = None


def read_events(lines: Iterable[bytes], app: App) -> Iterator[Event]:
    """Typed events; a mark carries no stream. BadEvent names the line."""
    decode = msgspec.json.Decoder(EventLine).decode
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadEvent(str(error), index=number) from None
        yield _event(line, app, number)


def _event(line: EventLine, app: App, number: int) -> Event:
    if line.stream is None:
        return Event("", line.ts, (), EventKind.TICK)
    schema = next((s.schema for s in app.streams if s.name == line.stream), None)
    if schema is None:
        known = ", ".join(s.name for s in app.inputs)
        raise BadEvent(f"no stream '{line.stream}'; this app reads {known}", index=number)
    if line.data is None:
        raise BadEvent("an event of a stream needs 'data'", index=number)
    data = tuple(line.data) if isinstance(line.data, list) else line.data
    return Event(line.stream, line.ts, convert_row(data, schema, number))


def replay(
    app: App, events: Iterable[Event], engine: str = "embedded", **spark: Any
) -> Iterator[Event]:
    """The rows of every stream that a query writes, merged by time.

    `app` is a plan (`edgewise.compile_app(text).app`), `events` are in the order they came. With
    `engine` 'spark' or 'batch' the same rows come from Spark; `spark` are its options, such as
    `master`.
    """
    if engine not in ENGINES:
        raise SetupError(f"no engine '{engine}': choose one of {', '.join(ENGINES)}")
    events = _add_final_tick(app, events)
    rows = (
        _run_embedded(app, events)
        if engine == "embedded"
        else _run_spark(app, events, engine, **spark)
    )
    return merge_by_time(rows, [s.name for s in app.outputs])


def _add_final_tick(app: App, events: Iterable[Event]) -> Iterator[Event]:
    """Add a tick at the end: nothing later can come, so events that wait for late ones go on."""
    clock: int | None = None
    for event in events:
        clock = event.ts if clock is None else max(clock, event.ts)
        yield event
    if app.lateness_ms is not None and clock is not None:
        yield Event("", clock + app.lateness_ms, (), EventKind.TICK)


def _run_embedded(app: App, events: Iterable[Event]) -> Iterator[Event]:
    engine = InMemoryEngine(app)
    for event in events:
        if event.kind is EventKind.TICK:
            engine.advance(event.ts)
        else:
            engine.send(event.stream, event.ts, event.data)
        yield from engine.take()


def _run_spark(app: App, events: Iterable[Event], engine: str, **config: Any) -> Iterator[Event]:
    """Through logs in a directory that is removed afterwards."""
    from edgewise.engines.batch.inputs import require_inputs

    require_inputs(app)
    with tempfile.TemporaryDirectory(prefix="edgewise-replay-") as directory:
        data_dir = DataDirectory(Path(directory))
        load_logs(app, events, data_dir)
        logs = {s.name: data_dir.log_directory(s.name) for s in app.inputs}
        run_on_spark(app, data_dir, engine, config, logs=logs)
        for stream in app.outputs:
            yield from read_rows(data_dir.log_directory(stream.name), stream.schema)


def load_logs(app: App, events: Iterable[Event], data_dir: DataDirectory) -> None:
    """Write events to input logs. The line number is the capture time: it keeps their order."""
    from edgewise.event import arrow
    from edgewise.log.segment_writer import SegmentWriter

    writers = {
        s.name: SegmentWriter.open(data_dir.log_directory(s.name), s.schema) for s in app.inputs
    }
    numbered = enumerate(events, start=1)
    try:
        while chunk := list(itertools.islice(numbered, APPEND_ROWS)):
            by_stream: dict[str, list[tuple[int, Event]]] = defaultdict(list)
            for number, event in chunk:
                for name in [event.stream] if event.stream else writers:
                    if name not in writers:
                        raise BadEvent(f"'{name}' is written by a query", index=number)
                    by_stream[name].append((number, event))
            for name, rows in by_stream.items():
                kinds = [a.type for a in app.stream(name).schema.attributes]
                data = [e.data or (None,) * len(kinds) for _, e in rows]
                columns = zip(kinds, zip(*data, strict=True), strict=True)
                batch = arrow.record_batch(
                    writers[name].schema,
                    [e.ts for _, e in rows],
                    [number for number, _ in rows],
                    [int(e.kind) for _, e in rows],
                    [arrow.to_stored(values, kind) for kind, values in columns],
                )
                writers[name].append(batch)
    finally:
        for writer in writers.values():
            writer.close()


def run_on_spark(
    app: App,
    data_dir: DataDirectory,
    engine: str,
    config: dict[str, Any],
    *,
    logs: Mapping[str, Path],
    span: tuple[dict[str, int], dict[str, int]] | None = None,
) -> None:
    """Read `logs`, write the logs of `data_dir`; `span` has the start and end offsets."""
    from edgewise.log.segment_writer import SegmentWriter
    from edgewise.node.processes.engine import extract_reason

    with name_missing_extra():
        from edgewise.spark.choose import SparkConfig
        from edgewise.spark.execution import SparkEngine
        from edgewise.spark.session import start_session

    writers = {
        s.name: SegmentWriter.open(data_dir.log_directory(s.name), s.schema) for s in app.outputs
    }
    try:
        spark = start_session(config.pop("master", "local[*]"))
        job = SparkEngine.open(
            spark,
            app,
            logs=logs,
            writers=writers,
            checkpoint=data_dir.checkpoint(app.name),
            config=SparkConfig(**config),
        )
        if span is not None:
            job.start_from(span[0])
        end = None if span is None else span[1]
        if engine == "batch":
            job.run_history(end)
        elif failure := job.run_stream(end):
            raise SetupError(extract_reason(failure))
        job.close()
    finally:
        for writer in writers.values():
            writer.close()


def read_rows(log: Path, schema: Schema) -> Iterator[Event]:
    from edgewise.event.arrow import AT, KIND, TS, from_column
    from edgewise.log.segment_reader import SegmentReader

    reader = SegmentReader.open(log)
    try:
        for batch in reader.read(reader.earliest(), reader.head().offset):
            columns = [batch.rows.column(n).to_pylist() for n in (TS, AT, KIND)]
            columns += [from_column(batch.rows.column(a.name), a.type) for a in schema.attributes]
            for ts, at, kind, *data in zip(*columns, strict=True):
                yield Event(schema.name, ts, tuple(data), EventKind(kind), at)
    finally:
        reader.close()


def merge_by_time(rows: Iterable[Event], streams: Sequence[str]) -> Iterator[Event]:
    """Merge by time; rows of one stream keep their order even where time goes back.

    Only rows of `streams`: engines also return those of named windows and triggers.
    """
    by_stream_rows: dict[str, list[tuple[int, int, int, Event]]] = {name: [] for name in streams}
    for row in rows:
        stream_rows = by_stream_rows.get(row.stream)
        if stream_rows is None:
            continue
        clock = max(stream_rows[-1][0], row.ts) if stream_rows else row.ts
        stream_rows.append((clock, streams.index(row.stream), len(stream_rows), row))
    return (entry[3] for entry in heapq.merge(*by_stream_rows.values()))


def encode_row(row: Event) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(
        {"stream": row.stream, "ts": row.ts, "data": row.data, "kind": row.kind.name.lower()}
    )
