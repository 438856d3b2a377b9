"""A finite run in event time: events from a file, rows out, the same on every engine.

Rows of one stream come in order. Between streams they are merged by time, so that the output of
two engines can be compared with `diff`.
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

from edgewise.engines.embedded import Embedded
from edgewise.errors import BadEvent, SetupError
from edgewise.event.event import Event, Kind
from edgewise.event.schema import Attribute, Schema
from edgewise.event.values import typed
from edgewise.node.layout import Layout
from edgewise.plan.nodes import App

ENGINES = ("embedded", "spark", "batch")
APPEND_ROWS = 10_000  # events per append while a file is loaded into a log


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """`{"stream": "S", "ts": 1000, "data": [..] or {..}}`, or `{"ts": 5000}` to move time."""

    ts: int
    stream: str | None = None
    data: list[Any] | dict[str, Any] | None = None


def read_events(lines: Iterable[bytes], app: App) -> Iterator[Event]:
    """Typed events; a mark carries no stream. BadEvent names the line."""
    decode = msgspec.json.Decoder(Line).decode
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadEvent(str(error), index=number) from None
        yield _event(line, app, number)


def _event(line: Line, app: App, number: int) -> Event:
    if line.stream is None:
        return Event("", line.ts, (), Kind.MARK)
    schema = next((s.schema for s in app.streams if s.name == line.stream), None)
    if schema is None:
        known = ", ".join(s.name for s in app.inputs)
        raise BadEvent(f"no stream '{line.stream}'; this app reads {known}", index=number)
    if line.data is None:
        raise BadEvent("an event of a stream needs 'data'", index=number)
    return Event(line.stream, line.ts, row(line.data, schema, number))


def row(data: list[Any] | dict[str, Any], schema: Schema, number: int) -> tuple[Any, ...]:
    """The attributes in order, each of its declared type."""
    if isinstance(data, dict):
        unknown = sorted(set(data) - set(schema.names))
        if unknown:
            raise BadEvent(
                f"'{schema.name}' has no such attribute", index=number, field=unknown[0]
            )
        missing = [name for name in schema.names if name not in data]
        if missing:
            raise BadEvent("is missing", index=number, field=missing[0])
        data = [data[name] for name in schema.names]
    if len(data) != len(schema.attributes):
        wanted = len(schema.attributes)
        raise BadEvent(f"'{schema.name}' has {wanted} attributes, got {len(data)}", index=number)
    return tuple(
        _value(value, a, number) for value, a in zip(data, schema.attributes, strict=True)
    )


def _value(value: Any, attribute: Attribute, number: int) -> Any:
    try:
        return typed(value, attribute.type)
    except ValueError as error:
        raise BadEvent(str(error), index=number, field=attribute.name) from None


def replay(app: App, events: Iterable[Event], engine: str, **spark: Any) -> Iterator[Event]:
    """Rows of every stream that a query writes."""
    if engine not in ENGINES:
        raise SetupError(f"no engine '{engine}': choose one of {', '.join(ENGINES)}")
    events = _until_let_go(app, events)
    rows = _embedded(app, events) if engine == "embedded" else _spark(app, events, engine, **spark)
    return merge(rows, [s.name for s in app.outputs])


def _until_let_go(app: App, events: Iterable[Event]) -> Iterator[Event]:
    """At the end of a finite run nothing later can come: what waits to be put in order goes on."""
    clock: int | None = None
    for event in events:
        clock = event.ts if clock is None else max(clock, event.ts)
        yield event
    if app.lateness_ms is not None and clock is not None:
        yield Event("", clock + app.lateness_ms, (), Kind.MARK)


def _embedded(app: App, events: Iterable[Event]) -> Iterator[Event]:
    engine = Embedded(app)
    for event in events:
        if event.kind is Kind.MARK:
            engine.advance(event.ts)
        else:
            engine.send(event.stream, event.ts, event.data)
        yield from engine.take()


def _spark(app: App, events: Iterable[Event], engine: str, **config: Any) -> Iterator[Event]:
    """Through real logs in a directory that is gone afterwards."""
    from edgewise.engines.inputs import demand_inputs

    demand_inputs(app)
    with tempfile.TemporaryDirectory(prefix="edgewise-replay-") as directory:
        layout = Layout(Path(directory))
        _load(app, events, layout)
        logs = {s.name: layout.log(s.name) for s in app.inputs}
        compute(app, layout, engine, config, logs=logs)
        for stream in app.outputs:
            yield from rows_of(layout.log(stream.name), stream.schema)


def _load(app: App, events: Iterable[Event], layout: Layout) -> None:
    """Events into input logs; capture time is the line, so that the file's order is kept."""
    from edgewise.event import arrow
    from edgewise.log.segment import SegmentWriter

    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.inputs}
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


def compute(
    app: App,
    layout: Layout,
    engine: str,
    config: dict[str, Any],
    *,
    logs: Mapping[str, Path],
    span: tuple[dict[str, int], dict[str, int]] | None = None,
) -> None:
    """On Spark, from `logs` into the logs of `layout`; `span` is where to begin and to end."""
    from edgewise.engines.spark.engine import SparkApp, SparkConfig
    from edgewise.engines.spark.session import start
    from edgewise.log.segment import SegmentWriter
    from edgewise.node.engine import reason

    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    try:
        spark = start(config.pop("master", "local[*]"))
        job = SparkApp(
            spark,
            app,
            logs=logs,
            writers=writers,
            checkpoint=layout.checkpoint(app.name),
            config=SparkConfig(**config),
        )
        if span is not None:
            job.begin_at(span[0])
        end = None if span is None else span[1]
        if engine == "batch":
            job.batch(end)
        elif said := job.run(end):
            raise SetupError(reason(said))
        job.close()
    finally:
        for writer in writers.values():
            writer.close()


def rows_of(log: Path, schema: Schema) -> Iterator[Event]:
    from edgewise.event.arrow import AT, KIND, TS, from_column
    from edgewise.log.segment import SegmentReader

    reader = SegmentReader.open(log)
    try:
        for batch in reader.read(reader.earliest(), reader.head().offset):
            columns = [batch.rows.column(n).to_pylist() for n in (TS, AT, KIND)]
            columns += [from_column(batch.rows.column(a.name), a.type) for a in schema.attributes]
            for ts, at, kind, *data in zip(*columns, strict=True):
                yield Event(schema.name, ts, tuple(data), Kind(kind), at)
    finally:
        reader.close()


def merge(rows: Iterable[Event], streams: Sequence[str]) -> Iterator[Event]:
    """By time; rows of one stream keep their order even where time goes back.

    Only rows of `streams`: named windows and triggers speak too, to those who ask.
    """
    lanes: dict[str, list[tuple[int, int, int, Event]]] = {name: [] for name in streams}
    for row in rows:
        lane = lanes.get(row.stream)
        if lane is None:
            continue
        clock = max(lane[-1][0], row.ts) if lane else row.ts
        lane.append((clock, streams.index(row.stream), len(lane), row))
    return (entry[3] for entry in heapq.merge(*lanes.values()))


def to_line(row: Event) -> bytes:
    """One line of output."""
    return msgspec.json.encode(
        {"stream": row.stream, "ts": row.ts, "data": row.data, "kind": row.kind.name.lower()}
    )
