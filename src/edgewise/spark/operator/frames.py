"""Build the frames around an operator: users' columns in, users' columns out.

Everything is a lazy expression over names and declared types, nothing looks at a frame's schema:
that would start a job, and Declarative Pipelines refuse it. Types come from `define stream`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.stage import TICK, OperatorStage

TYPES: dict[AttrType, DataType] = {
    AttrType.STRING: StringType(),
    AttrType.INT: IntegerType(),
    AttrType.LONG: LongType(),
    AttrType.FLOAT: FloatType(),
    AttrType.DOUBLE: DoubleType(),
    AttrType.BOOL: BooleanType(),
    AttrType.OBJECT: StringType(),
}
_ZEROS: dict[AttrType, object] = {
    AttrType.INT: 0,
    AttrType.LONG: 0,
    AttrType.FLOAT: 0.0,
    AttrType.DOUBLE: 0.0,
    AttrType.BOOL: False,
}


@dataclass(frozen=True, slots=True)
class InputFrame:
    """A user's frame for one stream: where its event time is, what orders equal times.

    `time` is a column of timestamps, or an attribute of type long in milliseconds; '' for the time
    of processing. `lateness` is the delay of its watermark, where it is a stream.
    """

    frame: DataFrame
    time: str
    order: tuple[str, ...] = ()
    lateness: str = "0 seconds"


def build_output_type(stage: OperatorStage) -> StructType:
    """The type of rows on their way out."""
    fields = [
        StructField(columns.TIME, TimestampType()),
        StructField(columns.TS, LongType()),
        StructField(columns.STREAM, StringType()),
        StructField(columns.KIND, ByteType()),
        *(StructField(name, LongType()) for name in (columns.CLOCK, columns.PHASE, columns.SEQ)),
        *(StructField(name, TYPES[a.type]) for name, a in stage.output_attributes()),
    ]
    return StructType(fields)


def build_input(
    stage: OperatorStage, inputs: Mapping[str, InputFrame], shards: Sequence[int]
) -> DataFrame:
    """All inputs of a stage as one frame, each row with its shard."""
    frames = [
        _select_input(stage, index, inputs[schema.name], shards)
        for index, schema in enumerate(stage.inputs)
    ]
    return reduce(DataFrame.unionByName, frames)


def _select_input(
    stage: OperatorStage, index: int, given: InputFrame, shards: Sequence[int]
) -> DataFrame:
    schema = stage.inputs[index]
    time = _time_column(schema, given.time)
    frame = given.frame.withColumn(columns.TIME, time)
    if given.frame.isStreaming:
        frame = frame.withWatermark(columns.TIME, given.lateness)
    key = stage.fragment.key_of(schema.name)
    types = {a.name: TYPES[a.type] for a in schema.attributes}
    keys = [_quote(name).try_cast(types[name]) for name in key]
    shard = _pick(shards, sf.pmod(sf.xxhash64(*keys), sf.lit(len(shards)))) if keys else sf.lit(0)
    selected = [
        sf.col(columns.TIME),
        shard.cast(IntegerType()).alias(columns.SHARD),
        sf.lit(index).cast(IntegerType()).alias(columns.STREAM),
        sf.unix_millis(sf.col(columns.TIME)).alias(columns.TS),
        _find_bad(schema).alias(columns.BAD),
        _null_bits(stage, index, schema).alias(columns.NULLS),
        *(_quote(name).cast(LongType()).alias(f"ew_o{n}") for n, name in enumerate(given.order)),
    ]
    for column, attribute in stage.input_attributes():
        mine = column.startswith(f"s{index}_")
        kind = TYPES[attribute.type]
        value = _quote(attribute.name).try_cast(kind) if mine else sf.lit(None).cast(kind)
        zero = _ZEROS.get(attribute.type)
        if zero is not None:
            value = sf.coalesce(value, sf.lit(zero).cast(kind))
        selected.append(value.alias(column))
    return frame.select(*selected)


def add_ticks(stage: OperatorStage, rows: DataFrame, shards: Sequence[int]) -> DataFrame:
    """For a batch: a tick at the last event of all, for every shard."""
    ends = rows.agg(sf.max(columns.TS).alias("last"))
    ticks = ends.select(
        sf.explode(sf.array(*(sf.lit(s) for s in shards))).alias(columns.SHARD),
        sf.col("last").alias(columns.TS),
    )
    ticks = ticks.where(sf.col(columns.TS).isNotNull())
    fill = [
        sf.lit(None).cast(TimestampType()).alias(columns.TIME),
        sf.col(columns.SHARD).cast(IntegerType()),
        sf.lit(TICK).cast(IntegerType()).alias(columns.STREAM),
        sf.col(columns.TS),
        sf.lit(None).cast(StringType()).alias(columns.BAD),
        sf.lit(0).cast(LongType()).alias(columns.NULLS),
        *(sf.lit(None).cast(LongType()).alias(f"ew_o{n}") for n in range(stage.order)),
        *(sf.lit(None).cast(TYPES[a.type]).alias(c) for c, a in stage.input_attributes()),
    ]
    return rows.unionByName(ticks.select(*fill))


def select_output(
    stage: OperatorStage, tagged: DataFrame, stream: str, time: str = ""
) -> DataFrame:
    """The rows of one stream with the names of its attributes, and its event time as `time`."""
    index = next(i for i, s in enumerate(stage.outputs) if s.name == stream)
    schema = stage.outputs[index]
    named = [sf.col(f"o{index}_{j}").alias(a.name) for j, a in enumerate(schema.attributes)]
    if time:
        named.append(sf.col(columns.TIME).alias(time))
    return tagged.where(sf.col(columns.STREAM) == stream).select(*named)


def _time_column(schema: Schema, time: str) -> Column:
    if not time:
        return sf.current_timestamp()
    attribute = next((a for a in schema.attributes if a.name == time), None)
    if attribute is not None and attribute.type is AttrType.LONG:
        return sf.timestamp_millis(_quote(time))
    return _quote(time).cast(TimestampType())


def _quote(name: str) -> Column:
    return sf.col("`" + name.replace("`", "``") + "`")


def _pick(shards: Sequence[int], number: Column) -> Column:
    """The id of the shard with this number."""
    if list(shards) == list(range(len(shards))):
        return number
    return sf.element_at(sf.array(*(sf.lit(s) for s in shards)), (number + 1).cast(IntegerType()))


def _find_bad(schema: Schema) -> Column:
    """Which attribute has a value that is not of its declared type, in words; else null."""
    reasons = [sf.when(sf.col(columns.TIME).isNull(), sf.lit("the event has no time"))]
    for attribute in schema.attributes:
        value = _quote(attribute.name)
        broken = value.isNotNull() & value.try_cast(TYPES[attribute.type]).isNull()
        reasons.append(
            sf.when(broken, sf.lit(f"'{attribute.name}' is not of type {attribute.type.value}"))
        )
    return sf.coalesce(*reasons, sf.lit(None).cast(StringType()))


def _null_bits(stage: OperatorStage, index: int, schema: Schema) -> Column:
    """One bit for each number or bool that is null."""
    bits: list[Column] = []
    own = {f"s{index}_{j}": a for j, a in enumerate(schema.attributes)}
    for bit, column in stage.nullable():
        attribute = own.get(column)
        if attribute is None:
            bits.append(sf.lit(1 << bit).cast(LongType()))
            continue
        null = _quote(attribute.name).try_cast(TYPES[attribute.type]).isNull()
        bits.append(sf.when(null, sf.lit(1 << bit).cast(LongType())).otherwise(sf.lit(0)))
    return reduce(operator.add, bits, sf.lit(0).cast(LongType()))
