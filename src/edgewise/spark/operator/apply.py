"""Make a stage an operator of Spark's plan: over static frames, over streams, or without Python.

Used by `api`. A stage is native where Spark's expressions are equal, goes through `mapInArrow`
where it has no state, is sorted and walked by shard as a batch, and a stateful processor of Spark
as a stream.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StructType

from edgewise.errors import SetupError
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.batch import (
    build_batch_function,
    build_state_function,
    build_stateless_function,
)
from edgewise.spark.operator.frames import (
    InputFrame,
    add_ticks,
    build_input,
    build_output_type,
    build_tables,
)
from edgewise.spark.operator.native_stage import apply_native
from edgewise.spark.operator.results import Part, observe
from edgewise.spark.operator.shard_state import STATE_SCHEMA, pack_table_rows
from edgewise.spark.operator.stage import OperatorStage

Inputs = Mapping[str, InputFrame]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATE_TYPE: StructType = from_arrow_schema(STATE_SCHEMA)


@dataclass(frozen=True)
class AppState:
    """What an app holds after a batch over history, by stage; lazy, as all frames are."""

    parts: Mapping[str, Part] = field(default_factory=dict)


def apply_stage(
    stage: OperatorStage,
    inputs: Inputs,
    tables: Mapping[str, DataFrame],
    span: DataFrame | None,
    initial: AppState | None,
) -> DataFrame:
    """The tagged rows of a stage. `span` is given for a batch."""
    native = apply_native(stage, inputs)
    if native is not None:
        return native
    if stage.fragment.stateless:
        rows = build_input(stage, inputs).select(*stage.input_schema.names)
        return rows.mapInArrow(build_stateless_function(stage), build_output_type(stage))
    if span is None:
        return observe(stage, _apply_to_stream(stage, inputs, tables, initial))
    if initial is not None:
        raise SetupError("initial= is for streams: a batch begins with its first event")
    rows = _sort_by_shard(stage, inputs, tables, span)
    return rows.mapInArrow(build_batch_function(stage), build_output_type(stage))


def collect_state(
    stage: OperatorStage, inputs: Inputs, tables: Mapping[str, DataFrame], span: DataFrame
) -> DataFrame:
    """What the shards of a stage hold after all rows of a batch."""
    rows = _sort_by_shard(stage, inputs, tables, span)
    return rows.mapInArrow(build_state_function(stage), _STATE_TYPE)


def _sort_by_shard(
    stage: OperatorStage, inputs: Inputs, tables: Mapping[str, DataFrame], span: DataFrame
) -> DataFrame:
    rows = build_input(stage, inputs)
    held = build_tables(stage, tables)
    if held is not None:
        rows = rows.unionByName(held)
    rows = add_ticks(stage, rows, span).drop(columns.TIME)
    keys = [name for name, _ in stage.sort_keys()]
    placed = rows.repartition(len(stage.shards), sf.col(columns.SHARD))
    ordered = placed.sortWithinPartitions(columns.SHARD, *keys)
    return ordered.select(*stage.input_schema.names)


def _apply_to_stream(
    stage: OperatorStage,
    inputs: Inputs,
    tables: Mapping[str, DataFrame],
    initial: AppState | None,
) -> DataFrame:
    from edgewise.spark.operator.stream import ShardProcessor

    # Without its time column, so that Spark leaves rows behind the watermark to us.
    rows = build_input(stage, inputs).select(*stage.input_schema.names)
    provider = rows.sparkSession.conf.get(PROVIDER, "")
    if not str(provider).endswith(".RocksDBStateStoreProvider"):
        raise SetupError(
            f'streams with state need Spark\'s RocksDB store: spark.conf.set("{PROVIDER}", '
            f'"{ROCKSDB}")'
        )
    processor = ShardProcessor(stage, uuid.uuid4().hex)  # noqa: TID251  names this run
    first = _build_initial(stage, tables, initial)
    return rows.groupBy(columns.SHARD).transformWithStateInPandas(
        processor,
        build_output_type(stage),
        "append",
        "eventTime",
        initialState=first.groupBy(columns.SHARD) if first is not None else None,
        eventTimeColumnName=columns.TIME,
    )


def _build_initial(
    stage: OperatorStage, tables: Mapping[str, DataFrame], initial: AppState | None
) -> DataFrame | None:
    """What the shards of a stream begin with: a state that holds its tables, else the tables."""
    name = stage.fragment.name
    if initial is not None:
        if name not in initial.parts:
            raise SetupError(f"initial= has no state of {name}: make it with the same app")
        before, frame = initial.parts[name]
        if before.shards != stage.shards:
            raise SetupError(
                f"initial= was made with {len(before.shards)} shards and this stream has "
                f"{len(stage.shards)}: pass the same shards= to both"
            )
        return frame
    held = build_tables(stage, tables)
    if held is None:
        return None
    rows = held.select(*stage.input_schema.names)
    shard = sf.col(columns.SHARD).cast(IntegerType())
    return rows.withColumn(columns.SHARD, shard).mapInArrow(pack_table_rows, _STATE_TYPE)
