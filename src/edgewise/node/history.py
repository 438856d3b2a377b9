"""A finite run over a range of what a data directory holds; nothing in it is changed.

The range is of event time: from the first event at which time has come to `start_ms` up to, and
without, the first at which it has come to `end_ms`. Queries start empty at the beginning of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.engines.embedded import Embedded
from edgewise.engines.inputs import CLOCK, STREAM, Inputs, Offsets, demand_inputs
from edgewise.errors import SetupError
from edgewise.event.arrow import AT, TS, from_value
from edgewise.event.event import Event
from edgewise.log.tail import offset_at
from edgewise.node.layout import Layout
from edgewise.node.replay import ENGINES, compute, merge, rows_of
from edgewise.plan.nodes import App


def history(
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
    demand_inputs(app)
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise SetupError(f"--to {end_ms} lies before --from {start_ms}")
    logs = {s.name: Layout(data).log(s.name) for s in app.inputs}
    missing = [str(path) for path in logs.values() if not path.is_dir()]
    if missing:
        raise SetupError(
            f"there is no log {missing[0]}: is {data} the data directory of this app?"
        )
    inputs = Inputs({name: str(path) for name, path in logs.items()})
    try:
        start, end = _place(inputs, start_ms), _place(inputs, end_ms, last=True)
        if engine == "embedded":
            rows = list(_embedded(app, inputs, start, end))
        else:
            rows = list(_spark(app, logs, engine, (start, end), spark))
    finally:
        inputs.close()
    return merge(rows, [s.name for s in app.outputs])


def _place(inputs: Inputs, ms: int | None, *, last: bool = False) -> Offsets:
    if ms is None:
        return inputs.heads() if last else inputs.earliest()
    return {stream: offset_at(inputs.reader(stream), ms) for stream in inputs.paths}


def _embedded(app: App, inputs: Inputs, start: Offsets, end: Offsets) -> Iterator[Event]:
    engine = Embedded(app)
    streams = list(inputs.paths)
    table = inputs.table(start, end, inputs.clock(start))
    for row in table.to_pylist():
        stream = app.stream(streams[row[STREAM]])
        data = [
            from_value(row[f"s{row[STREAM]}_{a.name}"], a.type) for a in stream.schema.attributes
        ]
        engine.send(stream.name, row[TS], data, at=row[AT], clock=row[CLOCK])
        yield from engine.take()
    engine.advance(inputs.clock(end))
    yield from engine.take()


def _spark(
    app: App,
    logs: dict[str, Path],
    engine: str,
    span: tuple[Offsets, Offsets],
    config: dict[str, Any],
) -> Iterator[Event]:
    with tempfile.TemporaryDirectory(prefix="edgewise-history-") as directory:
        layout = Layout(Path(directory))
        compute(app, layout, engine, config, logs=logs, span=span)
        for stream in app.outputs:
            yield from rows_of(layout.log(stream.name), stream.schema)
