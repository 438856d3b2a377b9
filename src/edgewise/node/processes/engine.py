"""Run the engine of a node as a process: read input logs, write output logs, report progress.

A process of its own, so that a query that takes all of a processor or memory does not stop ingest
and the edge. It ends on SIGTERM and when its parent has ended (stdin closes). Each line on stdout
is a JSON object for `engine_supervisor`: {"step": text}, {"progress": {...}}, {"ready": true} or
{"failed": text}.

It is started in two steps. First it prepares what needs no lease: it loads the app, and on Spark
it starts the JVM and warms it up. When its parent says `start`, it opens logs and state and
computes. A warm standby keeps an engine that has done the first step.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.outputs import FAULTS
from edgewise.engines.embedded.engine import BATCH_ROWS_MAX, EmbeddedEngine
from edgewise.engines.progress import Progress
from edgewise.engines.state.inspect_state import sum_disk_bytes
from edgewise.engines.state.migrate import require_own_checkpoint
from edgewise.engines.state.saver import summarize_saves
from edgewise.engines.state.storage import Storage, open_storage
from edgewise.errors import (
    EdgewiseError,
    LogError,
    RecoveryError,
    Unreachable,
    name_missing_extra,
)
from edgewise.log.api import LogConfig, LogWriter
from edgewise.log.locations import anchor_location, open_writer
from edgewise.node.app.attribute_defaults import read_defaults
from edgewise.node.app.load import load
from edgewise.node.config import NodeConfig
from edgewise.node.data_dir import RETAIN_EVERY_S, DataDirectory
from edgewise.node.isolation.isolated_pool import isolate_functions
from edgewise.node.log_locations import LogLocations
from edgewise.node.processes.children import (
    PERMANENT_ERROR,
    exit_with_parent,
    read_config,
    send_message,
)
from edgewise.node.processes.engine_start import EngineStart, plan_start
from edgewise.plan.nodes import App
from edgewise.spark.masters import Master, parse_settings

if TYPE_CHECKING:
    from edgewise.spark.choose import SparkConfig

IDLE_WAIT_S = 0.2
PROGRESS_EVERY_S = 1.0
STATE_EVERY_S = 15.0  # the size of state is a listing of files, maybe of a remote store
SPARK_MS = {
    "latestOffset": "offsets",
    "walCommit": "write-ahead",
    "commitOffsets": "commit",
    "triggerExecution": "trigger",
}  # what Spark does around our own phases


def main() -> int:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    permanent = False
    try:
        config = read_config(NodeConfig)
        started = exit_with_parent()
        app = load(config.app, config.functions).app
        if config.isolation is not None and (count := isolate_functions(app, config.isolation)):
            send_message(step=f"{count} functions of the app run isolated")
        data_dir = DataDirectory(config.data, LogLocations.parse(config.log_locations, app))
        with name_missing_extra():
            run = _prepare(app, data_dir, config, started)
        while not started.wait(IDLE_WAIT_S):
            if stopping.is_set():
                os._exit(0)  # the JVM takes seconds for an orderly end
        with ExitStack() as stack:
            permanent = True  # what fails here fails again in the same way
            require_own_checkpoint(data_dir.checkpoint(app.name), config.engine)
            permanent = False
            writers = _open_outputs(app, data_dir, config.log, stack)
            threading.Thread(target=_retain, args=(writers,), daemon=True).start()
            run(app, data_dir, config, writers, stopping)
    except EdgewiseError as error:
        send_message(failed=str(error))
        permanent = permanent or isinstance(error, RecoveryError | Unreachable)
        return PERMANENT_ERROR if permanent else 2
    except Exception as error:
        send_message(failed=f"{type(error).__name__}: {error}")
        raise
    return 0


RunEngine = Callable[[App, DataDirectory, NodeConfig, dict[str, LogWriter], threading.Event], None]


def _prepare(
    app: App, data_dir: DataDirectory, node: NodeConfig, started: threading.Event
) -> RunEngine:
    """Do what needs no lease; returns what runs the engine then."""
    if node.engine != "spark":
        return _run_embedded
    from edgewise.spark.session import start_session
    from edgewise.spark.warmup import warm_up

    send_message(step="starting the JVM (a few seconds)")
    settings = parse_settings(node.spark_settings, node.packages)
    spark = start_session(node.master, scratch=data_dir.scratch, settings=settings)
    send_message(step=f"Spark {spark.version} is up on {node.master}")
    if spark.sparkContext.uiWebUrl:
        send_message(step=f"Spark's page: {spark.sparkContext.uiWebUrl}")
    # After a restart the events that wait are the warm-up, on a cluster the look for reach; a
    # standby has the time for one.
    new = not started.is_set() or not data_dir.checkpoint(app.name).exists()
    if new and not Master.parse(node.master).elsewhere:
        send_message(step="warming up")
        warm_up(spark, app, _spark_config(node), data_dir.scratch)
    return partial(_run_spark, spark=spark)


def extract_reason(message: str) -> str:
    """The error behind Spark's message about a failed query: ours, or its first line.

    The whole message is in the engine's log file.
    """
    _, ours, rest = message.rpartition("Traceback (most recent call last):\n")
    lines = itertools.dropwhile(lambda line: line[:1].isspace(), rest.splitlines())
    trailers = ("=== ", " SQLSTATE")
    error = "\n".join(
        itertools.takewhile(lambda s: s.strip() and not s.startswith(trailers), lines)
    )
    words = error if ours and error else message.partition("\n=== ")[0].strip()
    return words.removeprefix("edgewise.errors.")


def _retain(writers: dict[str, LogWriter]) -> None:
    while True:
        time.sleep(RETAIN_EVERY_S)
        for writer in writers.values():
            with suppress(LogError):  # the engine reports it when it appends
                writer.retain(time.time_ns() // 1_000_000)


def _open_outputs(
    app: App, data_dir: DataDirectory, log_config: LogConfig, stack: ExitStack
) -> dict[str, LogWriter]:
    writers: dict[str, LogWriter] = {}
    for stream in (*app.outputs, FAULTS):
        writers[stream.name] = open_writer(
            data_dir.log_location(stream.name),
            stream.schema,
            log_config,
            defaults=read_defaults(stream),
        )
        stack.callback(writers[stream.name].close)
    return writers


class EngineReport:
    """Builds the progress report, once a second."""

    def __init__(self, progress: Progress, inputs: InputLogs, state: Storage) -> None:
        self._progress = progress
        self._inputs = inputs
        self._state = state
        self._last_s = time.monotonic()
        self._measured_s, self._bytes = -STATE_EVERY_S, 0
        self._known: int | None = None  # events read so far and those that wait

    def due(self) -> bool:
        return time.monotonic() - self._last_s >= PROGRESS_EVERY_S

    def build(self, spark_ms: dict[str, int]) -> dict[str, Any]:
        """`spark_ms` is the time of the phases of Spark's last batch."""
        now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        if now_s - self._measured_s >= STATE_EVERY_S:
            self._measured_s, self._bytes = now_s, sum_disk_bytes(self._state)
        report = self._progress.summarize(now_ms, self._inputs.heads(), self._bytes)
        known = report["rows_in"] + report["backlog_rows"]
        arrived = 0 if self._known is None else max(0, known - self._known)
        rate = arrived / max(now_s - self._last_s, 0.001)
        self._last_s, self._known = now_s, known
        report["batch_ms"] |= {
            name: spark_ms[key] for key, name in SPARK_MS.items() if key in spark_ms
        }
        return report | {"input_rows_per_s": round(rate, 1)}


def _plan_start(app: App, data_dir: DataDirectory, reached: Mapping[str, int]) -> EngineStart:
    """Plan the start, and report it where there is something to continue from."""
    inputs = InputLogs({s.name: data_dir.log_location(s.name) for s in app.inputs})
    try:
        start_plan = plan_start(app, inputs, reached)
    finally:
        inputs.close()
    for line in start_plan.describe():
        send_message(step=line)
    return start_plan


def _run_embedded(
    app: App,
    data_dir: DataDirectory,
    node: NodeConfig,
    writers: dict[str, LogWriter],
    stopping: threading.Event,
) -> None:
    checkpoint = data_dir.checkpoint(app.name)
    start_plan = _plan_start(app, data_dir, EmbeddedEngine.read_committed_offsets(checkpoint))
    engine = EmbeddedEngine.open(
        app,
        logs={s.name: data_dir.log_location(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=checkpoint,
        rows_max=min(node.rows_max, BATCH_ROWS_MAX),
        skip_to=start_plan.starts if start_plan.why else None,
        start_ms=node.start_ms,
        save_interval_s=node.save_interval_s,
    )
    if engine.location.change is not None:
        send_message(step=f"the app changed. {engine.location.change}")
    send_message(step="embedded engine running", ready=True)
    if replayed := engine.saver.stats.replayed_rows:
        send_message(step=f"read {replayed:,} rows again since the last save")
    report = EngineReport(
        engine.progress, InputLogs(engine.inputs.paths), open_storage(engine.state)
    )
    try:
        while not stopping.is_set():
            engine.run_batch(IDLE_WAIT_S)
            if report.due():
                send_message(progress={**report.build({}), **summarize_saves(engine.saver)})
    finally:
        engine.close()


def _spark_config(node: NodeConfig) -> SparkConfig:
    from edgewise.spark.choose import SparkConfig

    config = SparkConfig(
        partitions=node.partitions,
        rows_max=node.rows_max,
        trigger_ms=node.trigger_ms,
        state=node.state,
        save_interval_s=node.save_interval_s,
    )
    if node.small_batch_rows is not None:
        config = dataclasses.replace(config, small_batch_rows=node.small_batch_rows)
    return config


def _require_reach(spark: Any, app: App, data_dir: DataDirectory, node: NodeConfig) -> None:
    """Executors must reach what their tasks will need."""
    from edgewise.spark.checkpoint import Checkpoint
    from edgewise.spark.reach import list_needs, require_reach

    saved = Checkpoint(data_dir.checkpoint(app.name).absolute(), anchor_location(node.state))
    logs = {s.name: anchor_location(data_dir.log_location(s.name)) for s in app.inputs}
    require_reach(spark, Master.parse(node.master), list_needs(logs, saved.state, saved.staging))


def _run_spark(
    app: App,
    data_dir: DataDirectory,
    node: NodeConfig,
    writers: dict[str, LogWriter],
    stopping: threading.Event,
    *,
    spark: Any,
) -> None:
    from edgewise.spark.checkpoint import Checkpoint
    from edgewise.spark.execution import SparkEngine

    _require_reach(spark, app, data_dir, node)
    config = _spark_config(node)
    checkpoint = data_dir.checkpoint(app.name)
    saved = Checkpoint(checkpoint, config.state)
    start_plan = _plan_start(app, data_dir, saved.read_committed_offsets())
    if start_plan.why:
        saved.remove()
    send_message(step="starting the query")
    job = SparkEngine.open(
        spark,
        app,
        logs={s.name: data_dir.log_location(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=checkpoint,
        config=config,
    )
    if job.change is not None:
        send_message(step=f"the app changed. {job.change}")
    stores = str(checkpoint / "stores")
    job.stores = {"store_writer": job.producer, "store_directory": stores}
    if start_plan.why:
        job.start_from(start_plan.starts)
    if node.start_ms is not None:
        run_history(job, node.start_ms, stopping)
    query = job.start_stream()
    send_message(step="query running", ready=True)
    _follow_query(job, query, stopping)


def run_history(job: Any, start_ms: int, stopping: threading.Event) -> None:
    """Run what the logs have since `start_ms` as batches, and report progress meanwhile.

    The stream starts at exactly the offset where this ends. After a crash it goes on where it was,
    and an app whose stream has begun has no history left to run.
    """
    if job.checkpoint.spark.exists():
        send_message(step="--from has no effect: the app continues where it stopped")
        return
    if not job.record.offsets and job.record.pending is None:
        job.start_from(job.inputs.find_offsets_at(start_ms))
    failures: list[Exception] = []

    def run() -> None:
        try:
            job.run_history()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(error)

    report = EngineReport(job.progress, InputLogs(job.logs), open_storage(job.checkpoint.state))
    send_message(step=f"history as a batch, from offsets {job.record.offsets}", ready=True)
    batches = threading.Thread(target=run, name="history", daemon=True)
    batches.start()
    while batches.is_alive():
        batches.join(PROGRESS_EVERY_S)
        if stopping.is_set():
            os._exit(0)  # the batch that runs now is repeated at the next start
        send_message(progress=report.build({}))
    if failures:
        raise failures[0]
    send_message(step=f"history is done up to offsets {job.record.offsets}")


def _follow_query(job: Any, query: Any, stopping: threading.Event) -> None:
    """Report its progress until it fails or the node stops; then this process ends."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    report = EngineReport(job.progress, InputLogs(job.logs), open_storage(job.checkpoint.state))
    try:
        while not stopping.wait(PROGRESS_EVERY_S) and query.isActive:
            last = query.lastProgress
            send_message(progress=report.build(dict(last.durationMs) if last is not None else {}))
        failure = query.exception()
        if failure is not None:
            send_message(failed=extract_reason(str(failure)))
            os._exit(3)  # the supervisor decides; the JVM ends with this process
    except Py4JJavaError:
        raise  # an answer of the JVM: it is alive
    except (ConnectionError, Py4JError) as error:
        reason = f"Spark's JVM ended ({error}): it was killed, or the machine had no memory for it"
        send_message(failed=reason)
        os._exit(2)  # with another JVM it may run
    finally:
        if stopping.is_set():
            with suppress(EdgewiseError, OSError):
                job.close()
            os._exit(0)  # recovery needs no orderly end, and the JVM takes seconds for one


if __name__ == "__main__":
    sys.exit(main())
