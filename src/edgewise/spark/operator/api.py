"""Apply SiddhiQL to DataFrames: `query`, `app`, `siddhi`.

    from edgewise import spark as ew

    alerts = ew.query(TEXT, logins=frame, time="ts", lateness="5 seconds")

A streaming frame gives a streaming frame, a static one a static one. State, timers, checkpoints
and exactly once are Spark's own. The key to shuffle by is inferred from the queries; what needs
one order over all keys runs on one shard, and `explain` says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from edgewise.errors import SetupError
from edgewise.lang.compiler import compile_app
from edgewise.plan.explain import explain_text
from edgewise.plan.nodes import App
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.plan.rules.rewrite import rewrite
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.batch import build_batch_function
from edgewise.spark.operator.frames import (
    InputFrame,
    add_ticks,
    build_input,
    build_output_type,
    select_output,
)
from edgewise.spark.operator.shard_ids import spread_shards
from edgewise.spark.operator.stage import ATTRIBUTES_MAX, FAULTS, LATE, OperatorStage
from edgewise.spark.udf_shipping import ship_modules

DEFAULT_SHARDS = 0  # as many as Spark has shuffle partitions
NO_LATENESS = "0 seconds"

Names = str | Mapping[str, str]
OrderNames = tuple[str, ...] | list[str] | Mapping[str, Any]


class Results(Mapping[str, DataFrame]):
    """The results of an app by stream; `tagged` has all of them in one frame, computed once."""

    def __init__(self, app: App, parts: list[tuple[OperatorStage, DataFrame]]) -> None:
        self._app = app
        self._parts = parts

    def __getitem__(self, stream: str) -> DataFrame:
        frames = [
            select_output(stage, tagged, stream)
            for stage, tagged in self._parts
            if any(s.name == stream for s in stage.outputs)
        ]
        if not frames:
            known = ", ".join(self) or "none"
            raise KeyError(f"the app writes no stream '{stream}'; it writes: {known}")
        return reduce(DataFrame.unionByName, frames)

    def __iter__(self) -> Iterator[str]:
        names = (s.name for stage, _ in self._parts for s in stage.outputs)
        return iter(dict.fromkeys(n for n in names if not n.startswith(("$", "!"))))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def faults(self) -> DataFrame:
        """Events that failed: stream, time in ms, the error, the event as JSON."""
        return self[FAULTS.name]

    @property
    def late(self) -> DataFrame:
        """Events that came behind the watermark: stream, time in ms, the event as JSON."""
        return self[LATE.name]

    @property
    def tagged(self) -> DataFrame:
        """All rows: `stream`, `time`, and a JSON object of the attributes of that stream."""
        return reduce(DataFrame.unionByName, [_tag(s, frame) for s, frame in self._parts])

    def explain(self) -> str:
        """Our plan: fragments, keys, state bounds; Spark's is `frame.explain()`."""
        return explain_text(self._app)


def query(
    text: str | Path,
    *,
    time: Names = "",
    lateness: Names = NO_LATENESS,
    order: OrderNames = (),
    shards: int = DEFAULT_SHARDS,
    **frames: DataFrame,
) -> DataFrame:
    """The rows of an app's only result, as a frame with the attributes of that stream.

    `frames` are the inputs, by name of stream. `time` is the column with the event time, one for
    all inputs or one for each.
    """
    found = app(text, time=time, lateness=lateness, order=order, shards=shards, **frames)
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
    shards: int = DEFAULT_SHARDS,
    **frames: DataFrame,
) -> Results:
    """All results of an app, by name of stream."""
    plan = _compile(text)
    ship_modules(plan)
    _check_inputs(plan, frames)
    inputs = {
        name: InputFrame(
            frame,
            _pick_name(time, name),
            tuple(order.get(name, ())) if isinstance(order, Mapping) else tuple(order),
            _pick_name(lateness, name) or NO_LATENESS,
        )
        for name, frame in frames.items()
    }
    count = max(len(given.order) for given in inputs.values())
    parts = []
    for fragment in split_into_fragments(plan):
        stage = OperatorStage(plan, fragment, count)
        _check_stage(stage)
        parts.append((stage, _apply(stage, inputs, shards)))
    return Results(plan, parts)


def siddhi(
    text: str | Path, *, time: str = "", **options: Any
) -> Callable[[DataFrame], DataFrame]:
    """For `DataFrame.transform`: the frame is the app's only input."""

    def apply(frame: DataFrame) -> DataFrame:
        names = [s.name for s in _compile(text).inputs]
        if len(names) != 1:
            raise SetupError(f"siddhi() needs an app with one input, this one reads: {names}")
        given: dict[str, Any] = {names[0]: frame}
        return query(text, time=time, **options, **given)

    return apply


def _compile(text: str | Path) -> App:
    file = str(text) if isinstance(text, Path) else "<query>"
    source = text.read_text() if isinstance(text, Path) else text
    plan = rewrite(compile_app(source, file).app)
    streams = tuple(replace(s, lateness_ms=None) for s in plan.streams)
    return replace(plan, streams=streams)  # the watermark puts events in order


def _check_inputs(plan: App, frames: Mapping[str, DataFrame]) -> None:
    needed = {s.name for s in plan.inputs}
    if missing := sorted(needed - frames.keys()):
        raise SetupError(f"no frame for the stream {missing[0]}: pass {missing[0]}=frame")
    if unknown := sorted(frames.keys() - needed):
        known = ", ".join(sorted(needed))
        raise SetupError(f"the app reads no stream '{unknown[0]}'; it reads: {known}")


def _check_stage(stage: OperatorStage) -> None:
    if sum(1 for _ in stage.nullable()) > ATTRIBUTES_MAX:
        raise SetupError(
            f"the inputs of '{stage.fragment.name}' have more than {ATTRIBUTES_MAX} numbers and "
            "bools; define streams with the attributes that the queries read"
        )


def _pick_name(names: Names, stream: str) -> str:
    return names if isinstance(names, str) else names.get(stream, "")


def _apply(stage: OperatorStage, inputs: Mapping[str, InputFrame], shards: int) -> DataFrame:
    first = inputs[stage.fragment.inputs[0]].frame
    partitions = int(first.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    count = (shards or partitions) if stage.fragment.keyed or stage.fragment.stateless else 1
    ids = spread_shards(count, partitions)
    rows = build_input(stage, inputs, ids)
    streaming = [inputs[name].frame.isStreaming for name in stage.fragment.inputs]
    if any(streaming):
        if not all(streaming):
            raise SetupError("all inputs of a query are streams, or none of them is")
        return _apply_to_stream(stage, rows)
    rows = add_ticks(stage, rows, ids).drop(columns.TIME)
    keys = [name for name, _ in stage.sort_keys()]
    sorted_rows = rows.repartition(count, sf.col(columns.SHARD)).sortWithinPartitions(
        columns.SHARD, *keys
    )
    return sorted_rows.select(*stage.input_schema.names).mapInArrow(
        build_batch_function(stage), build_output_type(stage)
    )


def _apply_to_stream(stage: OperatorStage, rows: DataFrame) -> DataFrame:
    from edgewise.spark.operator.stream import ShardProcessor

    processor = ShardProcessor(stage, uuid.uuid4().hex)  # noqa: TID251  names this run
    # Without its time column, so that Spark leaves rows behind the watermark to us.
    named = rows.select(*stage.input_schema.names)
    return named.groupBy(columns.SHARD).transformWithStateInPandas(
        processor,
        build_output_type(stage),
        "append",
        "eventTime",
        eventTimeColumnName=columns.TIME,
    )


def _tag(stage: OperatorStage, frame: DataFrame) -> DataFrame:
    rows = sf.coalesce(
        *(
            sf.when(
                sf.col(columns.STREAM) == schema.name,
                sf.to_json(
                    sf.struct(
                        *(
                            sf.col(f"o{i}_{j}").alias(a.name)
                            for j, a in enumerate(schema.attributes)
                        )
                    ),
                    {"ignoreNullFields": "false"},
                ),
            )
            for i, schema in enumerate(stage.outputs)
        )
    )
    return frame.select(
        sf.col(columns.STREAM).alias("stream"),
        sf.col(columns.TIME).alias("time"),
        rows.alias("row"),
    )
