"""Apply SiddhiQL to DataFrames: `query`, `app`, `siddhi`, `state`.

    from edgewise import spark as ew

    alerts = ew.query(TEXT, logins=frame, time="ts", lateness="5 seconds")

A streaming frame gives a streaming frame, a static one a static one. State, timers, checkpoints
and exactly once are Spark's own. The key to shuffle by is inferred from the queries; what needs
one order over all keys runs on one shard, and `explain` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from edgewise.errors import SetupError
from edgewise.lang.compiler import compile_app
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.rewrite import rewrite
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.apply import AppState, Inputs, apply_stage, collect_state
from edgewise.spark.operator.close_time import find_close_ms
from edgewise.spark.operator.frames import InputFrame, find_span, select_output
from edgewise.spark.operator.results import Part, Results
from edgewise.spark.operator.shard_ids import spread_shards
from edgewise.spark.operator.stage import ATTRIBUTES_MAX, OperatorStage
from edgewise.spark.operator.static_tables import (
    add_table_streams,
    name_table_stream,
    split_with_tables,
)
from edgewise.spark.udf_shipping import ship_modules

DEFAULT_SHARDS = 0  # as many as Spark has shuffle partitions
NO_LATENESS = "0 seconds"
STREAM_NOTE = (
    "a stream: a row comes when the watermark has passed its event; real-time mode does not take "
    "stateful processors in Python"
)
STAGE_ORDER = (columns.CLOCK, columns.PHASE, columns.SEQ)  # of rows that go on to a next stage

Names = str | Mapping[str, str]
OrderNames = tuple[str, ...] | list[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Options:
    time: Names
    lateness: Names
    order: OrderNames
    idle: Names
    shards: int
    close: bool

    def build_input(self, stream: str, frame: DataFrame) -> InputFrame:
        order = self.order.get(stream, ()) if isinstance(self.order, Mapping) else self.order
        return InputFrame(
            frame,
            _pick_name(self.time, stream),
            tuple(order),
            _pick_name(self.lateness, stream) or NO_LATENESS,
            _pick_name(self.idle, stream),
        )


def query(
    text: str | Path,
    *,
    time: Names = "",
    lateness: Names = NO_LATENESS,
    order: OrderNames = (),
    idle: Names = "",
    shards: int = DEFAULT_SHARDS,
    close: bool = False,
    initial: AppState | None = None,
    **frames: DataFrame,
) -> DataFrame:
    """The rows of an app's only result, as a frame with the attributes of that stream.

    `frames` are the inputs, by name of stream or table. `time` is the column with the event time,
    one for all inputs or one for each; `app` has the other options.
    """
    found = app(
        text,
        time=time,
        lateness=lateness,
        order=order,
        idle=idle,
        shards=shards,
        close=close,
        initial=initial,
        **frames,
    )
    names = list(found)
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise SetupError(
            f"query() needs an app with one result, this one has: {listed}; use app()"
        )
    return found[names[0]]


def app(
    text: str | Path,
    *,
    time: Names = "",
    lateness: Names = NO_LATENESS,
    order: OrderNames = (),
    idle: Names = "",
    shards: int = DEFAULT_SHARDS,
    close: bool = False,
    initial: AppState | None = None,
    **frames: DataFrame,
) -> Results:
    """All results of an app, by name of stream.

    `lateness` is the delay of the watermark, `order` columns break ties of event time, `idle` is
    how far a silent stream is behind the clock at most. `close` moves a batch's time on until all
    that is open has closed. `initial` is what a stream begins with, from `state`.
    """
    options = _Options(time, lateness, order, idle, shards, close)
    plan, tables, inputs = _prepare(text, frames, options)
    parts, _ = _run(plan, tables, inputs, options, initial=initial)
    return Results(plan, parts, _list_notes(inputs))


def siddhi(
    text: str | Path, *, time: str = "", **options: Any
) -> Callable[[DataFrame], DataFrame]:
    """For `DataFrame.transform`: the frame is the app's only input; tables are options."""

    def apply(frame: DataFrame) -> DataFrame:
        names = [s.name for s in _compile(text).inputs]
        if len(names) != 1:
            raise SetupError(f"siddhi() needs an app with one input, this one reads: {names}")
        given: dict[str, Any] = {names[0]: frame}
        return query(text, time=time, **options, **given)

    return apply


def state(
    text: str | Path,
    *,
    time: Names = "",
    order: OrderNames = (),
    shards: int = DEFAULT_SHARDS,
    **frames: DataFrame,
) -> AppState:
    """What an app holds after a batch over history, for `initial=` of a stream.

    The stream goes on where the history ends: with the same app and the same number of shards.
    """
    options = _Options(time, NO_LATENESS, order, "", shards, close=False)
    plan, tables, inputs = _prepare(text, frames, options)
    if any(given.frame.isStreaming for given in inputs.values()):
        raise SetupError("state() reads history: its frames are static, not streams")
    _, states = _run(plan, tables, inputs, options, keep_state=True)
    return AppState(states)


def _prepare(
    text: str | Path, frames: Mapping[str, DataFrame], options: _Options
) -> tuple[App, dict[str, DataFrame], Inputs]:
    """The plan, the frames that stand for tables, the inputs."""
    plan = _compile(text)
    ship_modules(plan)
    tables = [t.name for t in plan.tables if t.name in frames]
    _check_frames(plan, frames, tables)
    inputs = {
        name: options.build_input(name, frame)
        for name, frame in frames.items()
        if name not in tables
    }
    streaming = {given.frame.isStreaming for given in inputs.values()}
    if len(streaming) > 1:
        raise SetupError("all inputs of an app are streams, or none of them is")
    if options.close and True in streaming:
        raise SetupError("close=True is for batches: a stream goes on when its time does")
    given = {name_table_stream(t): frames[t] for t in tables}
    return add_table_streams(plan, tables), given, inputs


def _run(
    plan: App,
    tables: Mapping[str, DataFrame],
    inputs: Inputs,
    options: _Options,
    *,
    initial: AppState | None = None,
    keep_state: bool = False,
) -> tuple[list[Part], dict[str, Part]]:
    """The rows of each stage, and on demand the state after a batch."""
    session = next(iter(inputs.values())).frame.sparkSession
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    streaming = any(given.frame.isStreaming for given in inputs.values())
    span = None if streaming else find_span(plan, inputs)
    known = dict(inputs)
    parts: list[Part] = []
    states: dict[str, Part] = {}
    names = [t for t in (t.name for t in plan.tables) if name_table_stream(t) in tables]
    fragments = split_with_tables(plan, names)
    later = {name for fragment in fragments for name in fragment.inputs} - inputs.keys()
    for fragment in fragments:
        stage = _build_stage(plan, fragment, known, options, partitions)
        rows = apply_stage(stage, known, tables, span, initial)
        parts.append((stage, rows))
        if keep_state and span is not None and not fragment.stateless:
            states[fragment.name] = (stage, collect_state(stage, known, tables, span))
        for stream in later & {s.name for s in stage.outputs}:
            chained = select_output(stage, rows, stream, columns.TIME, *STAGE_ORDER)
            known[stream] = InputFrame(chained, columns.TIME, STAGE_ORDER, staged=True)
    return parts, states


def _build_stage(
    plan: App, fragment: Fragment, known: Inputs, options: _Options, partitions: int
) -> OperatorStage:
    if not fragment.inputs:
        raise SetupError(
            f"{fragment.name} waits for time alone, which begins with the first event that a "
            "query reads, and no query reads one: add a query on an input"
        )
    count = (options.shards or partitions) if fragment.keyed else 1
    given = [known[name] for name in fragment.inputs if name in known]
    stage = OperatorStage(
        plan,
        fragment,
        max(len(g.order) for g in given),
        find_close_ms(plan) if options.close else 0,
        tuple(spread_shards(count, partitions)),
        any(g.staged for g in given),
    )
    if sum(1 for _ in stage.nullable()) > ATTRIBUTES_MAX:
        raise SetupError(
            f"the inputs of '{fragment.name}' have more than {ATTRIBUTES_MAX} numbers and "
            "bools; define streams with the attributes that the queries read"
        )
    return stage


def _compile(text: str | Path) -> App:
    file = str(text) if isinstance(text, Path) else "<query>"
    source = text.read_text() if isinstance(text, Path) else text
    plan = rewrite(compile_app(source, file).app)
    streams = tuple(replace(s, lateness_ms=None) for s in plan.streams)
    return replace(plan, streams=streams)  # the watermark puts events in order


def _check_frames(plan: App, frames: Mapping[str, DataFrame], tables: list[str]) -> None:
    needed = [s.name for s in plan.inputs]
    missing = [name for name in needed if name not in frames]
    if missing:
        raise SetupError(f"no frame for the stream {missing[0]}: pass {missing[0]}=frame")
    known = {*needed, *(t.name for t in plan.tables)}
    if unknown := sorted(frames.keys() - known):
        listed = ", ".join(sorted(known))
        raise SetupError(f"the app reads no stream '{unknown[0]}'; it reads: {listed}")
    if not needed:
        raise SetupError("the app reads no stream: on DataFrames its time comes from events")
    for name in tables:
        if frames[name].isStreaming:
            raise SetupError(
                f"{name} is a table and its frame is a stream: pass a static frame, or define a "
                "stream and a query that writes the table"
            )


def _list_notes(inputs: Inputs) -> list[str]:
    if not any(given.frame.isStreaming for given in inputs.values()):
        return ["a batch: time ends with the last event of all inputs"]
    return [STREAM_NOTE]


def _pick_name(names: Names, stream: str) -> str:
    return names if isinstance(names, str) else names.get(stream, "")
