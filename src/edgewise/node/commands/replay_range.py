"""Run an app over a range of the events in a data directory (`edgewise replay --data`).

The range is of event time: from the first event at which time has reached `start_ms` up to, and
without, the first at which it has reached `end_ms`. Queries start without state. Nothing in the
data directory is changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.engines.batch.columns import CLOCK, STREAM
from edgewise.engines.batch.inputs import InputLogs, Offsets, require_inputs
from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import SetupError
from edgewise.event.arrow import AT, TS, from_value
from edgewise.event.event import Event
from edgewise.node.commands.replay import ENGINES, merge_by_time, read_rows, run_on_spark
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.nodes import App


def replay_range(
    app: App,
    data: Path,
    engine: str,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    **spark: Any,
) -> Iterator[Event]:
    """Rows of every stream that a query writes."""
    if engine not in ENGINES:
        raise SetupError(f"no engine '{engine}': choose one of {', '.join(ENGINES)}")
    require_inputs(app)
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise SetupError(f"--to {end_ms} lies before --from {start_ms}")
    logs = {s.name: DataDirectory(data).log_directory(s.name) for s in app.inputs}
    missing = [str(path) for path in logs.values() if not path.is_dir()]
    if missing:
        raise SetupError(
            f"there is no log {missing[0]}: is {data} the data directory of this app?"
        )
    inputs = InputLogs({name: str(path) for name, path in logs.items()})
    try:
        start, end = (
            _resolve_offsets(inputs, start_ms),
            _resolve_offsets(inputs, end_ms, last=True),
        )
        if engine == "embedded":
            rows = list(_run_embedded(app, inputs, start, end))
        else:
            rows = list(_run_spark(app, logs, engine, (start, end), spark))
    finally:
        inputs.close()
    return merge_by_time(rows, [s.name for s in app.outputs])


def _resolve_offsets(inputs: InputLogs, ms: int | None, *, last: bool = False) -> Offsets:
    if ms is None:
        return inputs.heads() if last else inputs.earliest()
    return inputs.find_offsets_at(ms)


def _run_embedded(app: App, inputs: InputLogs, start: Offsets, end: Offsets) -> Iterator[Event]:
    engine = InMemoryEngine(app)
    streams = list(inputs.paths)
    table = inputs.read_table(start, end, inputs.clock_at(start))
    for row in table.to_pylist():
        stream = app.stream(streams[row[STREAM]])
        data = [
            from_value(row[f"s{row[STREAM]}_{a.name}"], a.type) for a in stream.schema.attributes
        ]
        engine.send(stream.name, row[TS], data, at=row[AT], clock=row[CLOCK])
        yield from engine.take()
    engine.advance(inputs.clock_at(end))
    yield from engine.take()


def _run_spark(
    app: App,
    logs: dict[str, Path],
    engine: str,
    span: tuple[Offsets, Offsets],
    config: dict[str, Any],
) -> Iterator[Event]:
    with tempfile.TemporaryDirectory(prefix="edgewise-history-") as directory:
        data_dir = DataDirectory(Path(directory))
        run_on_spark(app, data_dir, engine, config, logs=logs, span=span)
        for stream in app.outputs:
            yield from read_rows(data_dir.log_directory(stream.name), stream.schema)
