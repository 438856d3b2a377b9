"""Cases on Spark: the events go through real logs, the rows of queries come out of taps.

Batch boundaries, partitions, and whether batches run in the driver or in tasks are varied at
random, by a seed made of the case's id and EDGEWISE_SEED. Starting a streaming query takes
seconds, so a group of cases shares one: every micro-batch of it is one for each of their apps,
with the offsets that Spark wrote down. An on-demand query is asked when everything before it was
processed; what follows goes on from the same checkpoint, as after a restart. Half of the groups
forget their kernels after every batch and come back from the files.

A double that is sent for a float is a float in the log. An event for a stream that queries write
comes through a stream of its own: the log of the other belongs to the engine.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from tests.conformance.engines import (
    EPOCH,
    EXTENDED,
    UNTYPED,
    ZONES,
    Case,
    Outcome,
    Rows,
    _empty,
    _fits,
    _idle,
    _is_misfit,
    _kind,
    _stamp,
)

from edgewise.engines.batch.job import BatchRange, build_tap_stream
from edgewise.engines.batch.run import _live
from edgewise.errors import EdgewiseError, SetupError
from edgewise.event import arrow
from edgewise.event.event import EventKind
from edgewise.event.types import AttrType
from edgewise.event.values import convert_value
from edgewise.lang import compile_app
from edgewise.lang.compiler import compile_query
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import read_rows
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.nodes import App, Stream
from edgewise.spark.checkpoint import Checkpoint
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine
from edgewise.spark.session import start_session

if str(ROOT := Path(__file__).parents[2]) not in os.environ.get("PYTHONPATH", ""):
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{known}"  # workers see functions of the tests
SEED = os.environ.get("EDGEWISE_SEED", "")
STARTS_MAX = 3  # of a shared query
IN_DRIVER = 11  # cases in the driver for each one in tasks
SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # files that need no disk


@dataclass(slots=True)
class Feed:
    """Rows for the input logs, in order of capture."""

    app: App
    at: int = 0
    stride: int = 1  # between two moments of capture: cases are cut at different places
    clock: int = 0
    doors: dict[str, str] = field(default_factory=dict)  # of streams that queries write
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def mark(self, ts: int) -> None:
        self.at += self.stride
        self.clock = max(self.clock, ts)
        for stream in self.app.inputs:
            data = [None] * len(stream.schema.attributes)
            self.rows[stream.name].append((ts, self.at, EventKind.TICK, *data))

    def send(self, stream: str, stamps: list[int], events: list[list[Any]]) -> None:
        """Several are one chunk."""
        stream = self.doors.get(stream, stream)
        self.at += self.stride
        schema = self.app.stream(stream).schema
        for place, (ts, event) in enumerate(zip(stamps, events, strict=True), start=1):
            self.clock = max(self.clock, ts)
            data = [_stored(v, a.type) for v, a in zip(event, schema.attributes, strict=True)]
            kind = EventKind.MORE if place < len(events) else EventKind.CURRENT
            self.rows[stream].append((ts, self.at, kind, *data))

    def flush(self, writers: dict[str, SegmentWriter]) -> None:
        for stream, rows in self.rows.items():
            ts, at, kind, *columns = (list(c) for c in zip(*rows, strict=True))
            kinds = [int(k) for k in kind]
            writer = writers[stream]
            writer.append(arrow.record_batch(writer.schema, ts, at, kinds, columns))
        self.rows.clear()


@dataclass(slots=True)
class Play:
    """One case: its app, its logs, and how far it got."""

    case: Case
    app: App
    layout: DataDirectory
    job: SparkEngine
    feed: Feed
    outputs: list[Stream]
    writers: dict[str, SegmentWriter]
    steps: Iterator[str | None]
    answers: list[Rows] = field(default_factory=list)
    question: str | None = None
    ended: bool = False
    broke: Exception | None = None

    @classmethod
    def open(cls, case: Case, directory: Path) -> Play:
        app, doors = _compiled(case)
        if _is_untyped(case, app):
            raise SetupError(UNTYPED)
        dice = random.Random(f"{case['id']}{SEED}")
        layout = DataDirectory(directory)
        outputs = _outputs(app)
        writers = {
            s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema)
            for s in (*app.inputs, *outputs)
        }
        job = SparkEngine.open(
            start_session("local[2]"),
            app,
            logs={s.name: layout.log_directory(s.name) for s in app.inputs},
            writers={s.name: writers[s.name] for s in outputs},
            checkpoint=layout.checkpoint("case"),
            config=SparkConfig(
                partitions=dice.randint(1, 3),
                small_batch_rows=dice.choice([50_000] * IN_DRIVER + [0]),
            ),
            taps=tuple(q.name for q in app.queries),
            start=None if case["clock"] == "playback_native" else EPOCH,
        )
        feed = Feed(app, at=dice.randint(0, 20), stride=dice.randint(1, 3), doors=doors)
        return cls(case, app, layout, job, feed, outputs, writers, _steps(case, feed))

    def advance(self) -> None:
        """Events into the logs, up to the next question or the end."""
        self.question = next(self.steps)
        self.ended = self.question is None
        if not self.feed.rows and (self.job.progress.batches == 0 or self.ended):
            self.feed.mark(self.feed.clock or EPOCH)  # an answer comes after a batch
        self.feed.flush(self.writers)

    def ask(self) -> None:
        if self.question is not None:
            self.answers.append(_ask(self.job, self.question))

    def close(self) -> None:
        for part in (self.job, *self.writers.values()):
            part.close()

    def outcome(self) -> Outcome:
        outcome = _empty(self.app, {s.name for s in (*self.outputs, *self.app.inputs)})
        outcome.answers = self.answers
        for stream in (*self.outputs, *self.app.inputs):
            tapped = stream.name.startswith("@")
            rows = outcome.of("query" if tapped else "stream", stream.name.lstrip("@"))
            assert rows.current is not None
            for event in read_rows(self.layout.log_directory(stream.name), stream.schema):
                if event.kind is not EventKind.TICK:
                    expired = tapped and event.kind is EventKind.EXPIRED
                    (rows.expired if expired else rows.current).append(list(event.data))
        return outcome


def _steps(case: Case, feed: Feed) -> Iterator[str | None]:
    """Fills the feed; stops at every question and at the end."""
    native = case["clock"] == "playback_native"
    idle, increment = _idle(case["app"])
    now = EPOCH
    for step in case["steps"]:
        if "sleep_ms" in step:
            now += step["sleep_ms"]
            if not native:
                feed.mark(now)
            elif idle:
                feed.mark(feed.clock + step["sleep_ms"] // idle * increment)
        elif "query" in step:
            yield step["query"]
        else:
            stream = step.get("send") or step["send_batch"]
            events = step["events"] if "send_batch" in step else [step["data"]]
            stamps = step.get("timestamps") or [_stamp(step, now)] * len(events)
            feed.send(stream, stamps, events)
    yield None


def _stored(value: Any, kind: AttrType) -> Any:
    if kind is AttrType.OBJECT and value is not None:
        return json.dumps(value)
    return convert_value(value, kind)


def _compiled(case: Case) -> tuple[App, dict[str, str]]:
    """The app, and by name of a stream that a query writes the one its events are sent to."""
    zone = next((head for mark, head in ZONES.items() if mark in case["id"]), "")
    text = zone + case["app"]
    app = compile_app(text, functions=EXTENDED).app
    sent = {step.get("send") or step.get("send_batch") for step in case["steps"]} - {None}
    doors = {name: f"{name}_door" for name in sorted(sent - {s.name for s in app.inputs})}
    for name, door in doors.items():
        attributes = ", ".join(
            f"{a.name} {a.type.value}" for a in app.stream(name).schema.attributes
        )
        text = text.replace("define ", f"define stream {door} ({attributes}); define ", 1)
        text += f"; from {door} insert into {name}"
    return (compile_app(text, functions=EXTENDED).app, doors) if doors else (app, doors)


def as_logged(case: Case, outcome: Outcome) -> Case:
    """With what it expects in the types that its streams declare."""
    asserted = case["asserted_stream_or_query"]
    seen = case.get("expected_types")
    if not asserted or not seen:
        return case
    declared = outcome.of(asserted["type"], asserted["name"]).kinds
    kinds = [
        "float" if pair == ("float", "double") else pair[1]
        for pair in itertools.zip_longest(declared[: len(seen)], seen)
    ]
    return case | {"expected_types": kinds}


def _is_unbounded(value: Any) -> bool:
    """NaN and infinite numbers are made by functions; only a source refuses them."""
    return isinstance(value, float) and not math.isfinite(value)


def _is_untyped(case: Case, app: App) -> bool:
    """Whether it sends, or makes, values that its streams do not declare."""
    asserted = case["asserted_stream_or_query"] or {}
    name = asserted.get("name", "")
    kinds = _empty(app, {name}).of(asserted.get("type", ""), name).kinds
    rows = case.get("expected", []) + case.get("expected_removed", [])
    made = all(
        k is None or _fits(0.0 if _is_unbounded(v) else v, AttrType(k))
        for r in rows
        for v, k in zip(r, kinds, strict=False)
    )
    return _is_misfit(case, app) or not made


def play_group(cases: list[Case], mode: str) -> list[Outcome | Exception]:
    """An outcome or what broke, for each case."""
    dice = random.Random(f"{cases[0]['id']}{SEED}")
    _live._limit = dice.choice([0, 1000])  # state from files, or from memory
    directory = Path(tempfile.mkdtemp(prefix="edgewise-cases-", dir=SCRATCH))
    try:
        plays = [
            _attempt(lambda i=i, c=c: Play.open(c, directory / str(i)))
            for i, c in enumerate(cases)
        ]
        found = [p for p in plays if isinstance(p, Play)]
        run = _batch if mode == "batch" else Shared(found, directory, dice.randint(1, 6)).run
        while going := [p for p in found if not p.ended and p.broke is None]:
            for one in going:
                _guard(one, one.advance)
            run(going)
            for one in going:
                _guard(one, one.ask)
        return [_outcome(p) for p in plays]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _attempt(make: Any) -> Any:
    try:
        return make()
    except Exception as why:  # noqa: BLE001  one broken case must not hide the others
        return why


def _guard(play: Play, step: Any) -> None:
    if play.broke is None:
        found = _attempt(step)
        play.broke = found if isinstance(found, Exception) else None


def _outcome(play: Play | Exception) -> Outcome | Exception:
    if isinstance(play, Exception):
        return play
    play.close()
    return play.broke or _attempt(play.outcome)


def _batch(going: list[Play]) -> None:
    for one in going:
        _guard(one, one.job.run_history)


class Shared:
    """One streaming query over the logs of a group."""

    def __init__(self, plays: list[Play], directory: Path, batches: int) -> None:
        """About so many micro-batches."""
        self.plays = [p for p in plays if p.app.inputs]
        self.rows_max = sum(len(p.case["steps"]) for p in self.plays) // batches + 1
        self.checkpoint = Checkpoint(directory / "shared")
        self.logs = {
            f"{i}:{name}": path
            for i, p in enumerate(self.plays)
            for name, path in p.job.logs.items()
        }

    def run(self, _going: list[Play]) -> None:
        """Started again where it fails to start, as a node does it: a busy machine is no fault."""
        for attempt in range(STARTS_MAX):
            try:
                self._query().awaitTermination()
            except StreamingQueryException:
                if attempt == STARTS_MAX - 1:
                    raise
            else:
                return

    def _query(self) -> StreamingQuery:
        return (
            start_session("local[2]")
            .readStream.format("edgewise")
            .option("logs", json.dumps(self.logs))
            .option("max_rows", str(self.rows_max))
            .load()
            .writeStream.foreachBatch(self._on_batch)
            .option("checkpointLocation", str(self.checkpoint.spark))
            .trigger(availableNow=True)
            .start()
        )

    def _on_batch(self, _frame: Any, batch_id: int) -> None:
        end = self.checkpoint.read_offsets(batch_id)["offsets"]
        begin = self.checkpoint.read_offsets(batch_id - 1)["offsets"] if batch_id else {}
        for i, one in enumerate(self.plays):
            before = {name: begin.get(f"{i}:{name}", 0) for name in one.job.logs}
            places = {name: end[f"{i}:{name}"] for name in one.job.logs}
            if before != places:
                _guard(one, partial(_hand_on, one.job, before, places))


def _hand_on(job: SparkEngine, before: dict[str, int], places: dict[str, int]) -> None:
    """What the app's own query would give it: its rows, its offsets, its clock."""

    def frame() -> Any:
        reader = job.spark.read.format("edgewise").option("logs", json.dumps(job.logs))
        reader = reader.option("start", json.dumps(before))
        return reader.option("end", json.dumps(places)).load()

    clocks = (job.inputs.clock_at(before), job.inputs.clock_at(places))
    job.run_batch(frame, BatchRange(job.progress.batches, before, places, *clocks))


def _outputs(app: App) -> list[Stream]:
    """Everything a case may look at."""
    triggers = {t.name for t in app.triggers}
    return [
        *app.outputs,
        *(s for s in app.streams if s.name in triggers),
        *(Stream(w.schema) for w in app.windows),
        *(build_tap_stream(q) for q in app.queries),
    ]


def _ask(job: SparkEngine, text: str) -> Rows:
    try:
        query = compile_query(text, job.plan.app)
        rows = job.ask(query)
    except EdgewiseError:
        return Rows(None)
    kinds = [_kind(item.expr.type) for item in query.select.items]
    there = rows or query.output is not None
    return Rows([list(row) for row in rows] if there else None, kinds=kinds)
