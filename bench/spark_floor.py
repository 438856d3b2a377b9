"""The floor: one event in the log to its row in the output log, on an idle system, by phase."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.event.arrow import record_batch
from edgewise.lang import compile_app
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.spark.execution import SparkEngine

HEAD = "define stream S (k string, v int, t long); "
QUERIES = {
    "filter": HEAD + "from S[v >= 0] select k, v insert into O;",
    "keyed running sum": HEAD + "from S select k, sum(v) as s group by k insert into O;",
}
PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
PATIENCE_S = 60.0
WARM = 10  # events that are not counted
PAUSE_S = 0.05  # the system is idle again before the next event


def floors(spark: Any, place: Path, events: int) -> None:
    print(f"\nfloor over {events} single events on an idle system, ms")
    header = "".join(f"{p:>15}" for p in PHASES)
    print(f"{'query':<26}{'p50':>8}{'p99':>8}{header}   (phases: p50)")
    for name, source in QUERIES.items():
        taken, phases = ours(spark, source, place / name.replace(" ", "-"), events)
        _line(name, taken, phases)
    taken, phases = smallest(spark, events)
    _line("smallest Spark query", taken, phases)


def _line(name: str, taken: list[float], phases: list[dict[str, int]]) -> None:
    p50, p99 = np.percentile(taken, [50, 99])
    middle = [float(np.median([p.get(phase, 0) for p in phases])) for phase in PHASES]
    print(f"{name:<26}{p50:>8.0f}{p99:>8.0f}" + "".join(f"{m:>15.0f}" for m in middle), flush=True)


@contextmanager
def stopped(query: Any) -> Iterator[Any]:
    try:
        yield query
    finally:
        query.stop()


def ours(
    spark: Any, source: str, place: Path, events: int
) -> tuple[list[float], list[dict[str, int]]]:
    """Milliseconds from the append of an event to its row, and Spark's phases of those batches."""
    app = compile_app(source).app
    inputs = SegmentWriter.open(place / "S", app.stream("S").schema)
    outputs = SegmentWriter.open(place / "O", app.stream("O").schema)
    running = SparkEngine.open(
        spark, app, logs={"S": place / "S"}, writers={"O": outputs}, checkpoint=place / "c"
    )
    reader = SegmentReader.open(place / "O")
    taken, phases = [], []
    with stopped(running.start_stream()) as query:
        for at in range(events + WARM):
            time.sleep(PAUSE_S)
            began = time.perf_counter()
            inputs.append(record_batch(inputs.schema, [at], [at], [0], [["k"], [1], [at]]))
            if not reader.wait(at, PATIENCE_S):
                raise SystemExit(f"no row after {PATIENCE_S:.0f} s: {query.exception()}")
            taken.append((time.perf_counter() - began) * 1000)
            if (progress := query.lastProgress) and "addBatch" in progress.durationMs:
                phases.append(progress.durationMs)
    for log in (inputs, outputs, reader):
        log.close()
    return taken[WARM:], phases[WARM:]


def smallest(spark: Any, events: int) -> tuple[list[float], list[dict[str, int]]]:
    """One row made by Spark itself to nowhere: what no Structured Streaming query is below."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    seen: dict[int, dict[str, int]] = {}
    with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
        writer = rows.writeStream.format("noop").option("checkpointLocation", place)
        with stopped(writer.start()) as query:
            deadline = time.monotonic() + PATIENCE_S
            while len(seen) < events + WARM and time.monotonic() < deadline:
                time.sleep(PAUSE_S)
                seen |= {p.batchId: p.durationMs for p in query.recentProgress}
    phases = list(seen.values())[WARM:]
    return [float(p["triggerExecution"]) for p in phases], phases
