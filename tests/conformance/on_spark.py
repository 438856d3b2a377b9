"""Cases on Spark: the events go through real logs, the rows of queries come out of taps.

Batch boundaries are varied at random, by a seed made of the case's id. What the log does not carry
(arrays of events as one chunk, on-demand queries) is not run, and says so.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.engines import EPOCH, Case, Outcome, Rows, _stamp

from edgewise.engines import host
from edgewise.engines.host import tap_stream
from edgewise.engines.spark.engine import SparkApp, SparkConfig
from edgewise.engines.spark.session import start
from edgewise.errors import SetupError
from edgewise.event.event import Event, Kind
from edgewise.event.values import typed
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import _load, _rows


def play(case: Case, mode: str) -> Outcome:
    app = compile_app(case["app"]).app
    events = list(_events(case, app))
    dice = random.Random(case["id"])
    # Half of the cases forget their kernels after every batch and come back from the files.
    host.LIVE_KERNELS_MAX = dice.choice([0, 64])
    taps = tuple(q.name for q in app.queries)
    outputs = [*app.outputs, *(tap_stream(q) for q in app.queries)]
    with tempfile.TemporaryDirectory(prefix="edgewise-case-") as directory:
        layout = Layout(Path(directory))
        _load(app, events, layout)
        writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in outputs}
        job = SparkApp(
            start("local[2]"),
            app,
            logs={s.name: layout.log(s.name) for s in app.inputs},
            writers=writers,
            checkpoint=layout.checkpoint("case"),
            config=SparkConfig(
                partitions=dice.randint(1, 3),
                rows_max=dice.choice([5, 20, 1000]),
                small_batch_rows=dice.choice([50_000] * 4 + [0]),
            ),
            taps=taps,
            start=None if case["clock"] == "playback_native" else EPOCH,
        )
        if mode == "batch":
            job.batch()
        else:
            job.stream(available_now=True).awaitTermination()
        for writer in writers.values():
            writer.close()
        return _outcome(outputs, layout)


def _events(case: Case, app: Any) -> Any:
    now = EPOCH
    for step in case["steps"]:
        if "sleep_ms" in step:
            now += step["sleep_ms"]
            if case["clock"] != "playback_native":
                yield Event("", now, (), Kind.MARK)
        elif "query" in step:
            raise SetupError("on-demand queries do not run on Spark yet")
        else:
            stream = step.get("send") or step["send_batch"]
            events = step["events"] if "send_batch" in step else [step["data"]]
            schema = app.stream(stream).schema
            stamps = step.get("timestamps") or [_stamp(step, now)] * len(events)
            for ts, event in zip(stamps, events, strict=True):
                if len(event) != len(schema.attributes):
                    raise SetupError(f"stream '{stream}' does not take {len(event)} values")
                data = [typed(v, a.type) for v, a in zip(event, schema.attributes, strict=True)]
                yield Event(stream, ts, tuple(data))


def _outcome(outputs: list[Any], layout: Layout) -> Outcome:
    outcome = Outcome()
    for stream in outputs:
        rows = Rows()
        for event in _rows(layout.log(stream.name), stream.schema):
            tapped = stream.name.startswith("@")
            kept = rows.expired if tapped and event.kind is Kind.EXPIRED else rows.current
            assert kept is not None
            kept.append(list(event.data))
        if stream.name.startswith("@"):
            outcome.queries[stream.name[1:]] = rows
        else:
            outcome.streams[stream.name] = rows
    return outcome
