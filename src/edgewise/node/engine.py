"""The engine as a process of its own: input logs in, output logs out, steps told on stdout.

It ends when told (SIGTERM) and when its parent is gone (stdin closes), so nothing is left behind.
Each line on stdout is a JSON object: {"step": text} or {"progress": {...}}.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from edgewise.engines.carry import demand_own
from edgewise.engines.homes import Home, home
from edgewise.engines.inputs import Inputs
from edgewise.engines.live import STEP_ROWS_MAX, LiveApp
from edgewise.engines.looks import disk_bytes
from edgewise.engines.progress import Progress
from edgewise.engines.results import FAULTS
from edgewise.errors import EdgewiseError, LogError, SetupError
from edgewise.log.api import LogConfig, LogWriter
from edgewise.log.places import open_writer
from edgewise.node import apps
from edgewise.node.children import end_with_parent
from edgewise.node.defaults import defaults_of
from edgewise.node.homes import Homes
from edgewise.node.layout import RETAIN_EVERY_S, Layout
from edgewise.node.start import Start, start_of
from edgewise.plan.nodes import App

IDLE_WAIT_S = 0.2
PROGRESS_EVERY_S = 1.0
STATE_EVERY_S = 15.0  # its size is a listing of files, maybe far away
SPARK_MS = {
    "latestOffset": "offsets",
    "walCommit": "write-ahead",
    "commitOffsets": "commit",
    "triggerExecution": "trigger",
}  # what Spark spends around our own phases


def tell(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="edgewise.node.engine")
    parser.add_argument("app", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--engine", choices=("spark", "embedded"), default="spark")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--functions", action="append", default=[])
    parser.add_argument("--trigger", type=int, default=0, help="ms between micro-batches")
    parser.add_argument("--state", default="", help="where kernel state lives, a path or URI")
    parser.add_argument("--max-rows", type=int, default=1_000_000, help="per micro-batch")
    parser.add_argument("--small-batch-rows", type=int, help="so many run in the driver")
    parser.add_argument("--retain-bytes", type=int, default=0, help="of each output log")
    parser.add_argument("--retain-ms", type=int, default=0, help="of each output log")
    parser.add_argument("--log", action="append", default=[], help="as for `edgewise run`")
    arguments = parser.parse_args(argv)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    try:
        app = apps.load(arguments.app, arguments.functions).app
        with ExitStack() as stack:
            kept = LogConfig(retain_bytes=arguments.retain_bytes, retain_ms=arguments.retain_ms)
            layout = Layout(arguments.data, Homes.of(arguments.log, app))
            writers = _open_outputs(app, layout, kept, stack)
            threading.Thread(target=_retain, args=(writers,), daemon=True).start()
            run = _spark if arguments.engine == "spark" else _embedded
            run(app, layout, arguments, writers, stopping)
    except EdgewiseError as error:
        tell(failed=str(error))
        return 2
    except Exception as error:
        tell(failed=f"{type(error).__name__}: {error}")
        raise
    return 0


def reason(said: str) -> str:
    """Of what Spark says about a query that failed: the error of our side, or the first words.

    The whole of it is in the engine's log file.
    """
    _, ours, rest = said.rpartition("Traceback (most recent call last):\n")
    lines = itertools.dropwhile(lambda line: line[:1].isspace(), rest.splitlines())
    ends = ("=== ", " SQLSTATE")
    error = "\n".join(itertools.takewhile(lambda s: s.strip() and not s.startswith(ends), lines))
    words = error if ours and error else said.partition("\n=== ")[0].strip()
    return words.removeprefix("edgewise.errors.")


def _retain(writers: dict[str, LogWriter]) -> None:
    while True:
        time.sleep(RETAIN_EVERY_S)
        for writer in writers.values():
            with suppress(LogError):  # whoever appends is told
                writer.retain(time.time_ns() // 1_000_000)


def _open_outputs(
    app: App, layout: Layout, kept: LogConfig, stack: ExitStack
) -> dict[str, LogWriter]:
    writers: dict[str, LogWriter] = {}
    for stream in (*app.outputs, FAULTS):
        writers[stream.name] = open_writer(
            layout.place(stream.name), stream.schema, kept, defaults=defaults_of(stream)
        )
        stack.callback(writers[stream.name].close)
    return writers


class Told:
    """What the engine tells of itself once a second."""

    def __init__(self, progress: Progress, inputs: Inputs, state: Home) -> None:
        self._progress = progress
        self._inputs = inputs
        self._state = state
        self._last_s = time.monotonic()
        self._looked_s, self._bytes = -STATE_EVERY_S, 0
        self._known: int | None = None  # events read so far and those that wait

    def due(self) -> bool:
        return time.monotonic() - self._last_s >= PROGRESS_EVERY_S

    def view(self, spark_ms: dict[str, int]) -> dict[str, Any]:
        """`spark_ms` is where Spark says its last batch spent its time."""
        now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        if now_s - self._looked_s >= STATE_EVERY_S:
            self._looked_s, self._bytes = now_s, disk_bytes(self._state)
        view = self._progress.view(now_ms, self._inputs.heads(), self._bytes)
        known = view["rows_in"] + view["backlog_rows"]
        came = 0 if self._known is None else max(0, known - self._known)
        rate = came / max(now_s - self._last_s, 0.001)
        self._last_s, self._known = now_s, known
        view["batch_ms"] |= {
            name: spark_ms[key] for key, name in SPARK_MS.items() if key in spark_ms
        }
        return view | {"input_rows_per_s": round(rate, 1)}


def _start_of(app: App, layout: Layout, reached: Mapping[str, int]) -> Start:
    """Told only where there is something to go on from."""
    inputs = Inputs({s.name: layout.place(s.name) for s in app.inputs})
    try:
        first = start_of(app, inputs, reached)
    finally:
        inputs.close()
    for line in first.lines():
        tell(step=line)
    return first


def _embedded(
    app: App,
    layout: Layout,
    arguments: argparse.Namespace,
    writers: dict[str, LogWriter],
    stopping: threading.Event,
) -> None:
    checkpoint = layout.checkpoint(app.name)
    first = _start_of(app, layout, LiveApp.reached(checkpoint))
    live = LiveApp(
        app,
        logs={s.name: layout.place(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=checkpoint,
        rows_max=min(arguments.max_rows, STEP_ROWS_MAX),
        skip_to=first.heads if first.why else None,
    )
    if live.home.change is not None:
        tell(step=f"the app changed. {live.home.change}")
    tell(step="embedded engine running", ready=True)
    told = Told(live.progress, Inputs(live.inputs.paths), home(live.state))
    try:
        while not stopping.is_set():
            live.step(IDLE_WAIT_S)
            if told.due():
                tell(progress=told.view({}))
    finally:
        live.close()


def _spark(
    app: App,
    layout: Layout,
    arguments: argparse.Namespace,
    writers: dict[str, LogWriter],
    stopping: threading.Event,
) -> None:
    demand_own(layout.checkpoint(app.name), "spark")
    tell(step="starting the JVM (a few seconds)")
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    from edgewise.engines.spark.checkpoint import Checkpoint
    from edgewise.engines.spark.engine import SparkApp, SparkConfig
    from edgewise.engines.spark.session import start
    from edgewise.engines.spark.warm import warm_up

    spark = start(arguments.master, scratch=layout.scratch)
    tell(step=f"Spark {spark.version} is up on {arguments.master}")
    config = SparkConfig(
        partitions=arguments.partitions,
        rows_max=arguments.max_rows,
        trigger_ms=arguments.trigger,
        state=arguments.state,
    )
    if arguments.small_batch_rows is not None:
        config = dataclasses.replace(config, small_batch_rows=arguments.small_batch_rows)
    checkpoint = layout.checkpoint(app.name)
    kept = Checkpoint(checkpoint, config.state)
    first = _start_of(app, layout, kept.reached())
    if first.why:
        kept.abandon()
    if not checkpoint.exists():  # after a restart events wait already: they are the warm-up
        tell(step="warming up")
        warm_up(spark, app, config, layout.scratch)
    tell(step="starting the query")
    job = SparkApp(
        spark,
        app,
        logs={s.name: layout.place(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=checkpoint,
        config=config,
    )
    if first.why:
        job.begin_at(first.heads)
    query = job.stream()
    tell(step="query running", ready=True)
    told = Told(job.progress, Inputs(job.logs), home(job.checkpoint.state))
    try:
        while not stopping.wait(PROGRESS_EVERY_S) and query.isActive:
            last = query.lastProgress
            tell(progress=told.view(dict(last.durationMs) if last is not None else {}))
        failure = query.exception()
        if failure is not None:
            tell(failed=reason(str(failure)))
            os._exit(3)  # the supervisor decides; the JVM goes with us
    except Py4JJavaError:
        raise  # the JVM has answered
    except (ConnectionError, Py4JError) as error:
        raise SetupError(
            f"Spark's JVM is gone ({error}): it was killed, or the machine had no memory for it"
        ) from error
    finally:
        if stopping.is_set():
            os._exit(0)  # exactly once does not need a goodbye, and the JVM is slow to say one


if __name__ == "__main__":
    sys.exit(main())
