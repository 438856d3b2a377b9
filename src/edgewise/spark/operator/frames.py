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
from edgewise.plan.nodes import App
from edgewise.plan.rules.native_spark import build_prefilter
from edgewise.spark.native import build_column
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.stage import NEVER, START, TICK, OperatorStage
from edgewise.spark.operator.static_tables import find_streams_read, is_table_stream

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
    of processing. `lateness` is the delay of its watermark, where it is a stream; a stream that is
    silent is taken to be at the clock less `idle`. Rows of an earlier stage are `staged`: they
    have their time and watermark already.
    """

    frame: DataFrame
    time: str
    order: tuple[str, ...] = ()
    lateness: str = "0 seconds"
    idle: str = ""
    staged: bool = False


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


def build_input(stage: OperatorStage, inputs: Mapping[str, InputFrame]) -> DataFrame:
    """The streams of a stage as one frame, each row with its shard; tables are apart."""
    frames = [
        _select_input(stage, index, inputs[schema.name])
        for index, schema in enumerate(stage.inputs)
        if not is_table_stream(schema.name)
    ]
    return reduce(DataFrame.unionByName, frames)


def add_time(schema: Schema, given: InputFrame) -> DataFrame:
    """The frame with the event time as `ew_time`, and its watermark where it is a stream."""
    if given.staged:
        return given.frame
    frame = given.frame.withColumn(columns.TIME, _time_column(schema, given.time))
    if not frame.isStreaming:
        return frame
    if not given.idle:
        return frame.withWatermark(columns.TIME, given.lateness)
    beats = frame.sparkSession.readStream.format("rate").load()
    late = sf.expr(f"INTERVAL '{given.idle}'")
    beats = beats.select((sf.col("timestamp") - late).alias(columns.TIME))
    marked = frame.withColumn(columns.BEAT, sf.lit(False)).unionByName(
        beats.withColumn(columns.BEAT, sf.lit(True)), allowMissingColumns=True
    )
    marked = marked.withWatermark(columns.TIME, given.lateness)
    # With its time in the condition, or Spark would filter before it looks at the time.
    return marked.where(
        ~sf.col(columns.BEAT) | (sf.col(columns.TIME) < sf.lit(0).cast("timestamp"))
    )


def _select_input(stage: OperatorStage, index: int, given: InputFrame) -> DataFrame:
    schema = stage.inputs[index]
    frame = add_time(schema, given)
    own = {a.name: quote(a.name).try_cast(TYPES[a.type]) for a in schema.attributes}
    condition = build_prefilter(stage.app, stage.fragment, schema.name)
    if condition is not None:
        met = build_column(condition, own)
        assert met is not None, "a prefilter is native"
        # Time in the condition, as in `add_time`: events that nobody needs still move it.
        kept = met | find_bad(stage, schema).isNotNull()
        if frame.isStreaming:
            kept |= sf.col(columns.TIME) < sf.lit(0).cast("timestamp")
        frame = frame.where(kept)
    return frame.select(
        sf.col(columns.TIME),
        _pick_shard(stage, schema, own).alias(columns.SHARD),
        *_select_row(stage, index, sf.unix_millis(sf.col(columns.TIME))),
        *(quote(name).cast(LongType()).alias(f"ew_o{n}") for n, name in enumerate(given.order)),
        *_select_values(stage, index, own),
    )


def _pick_shard(stage: OperatorStage, schema: Schema, own: Mapping[str, Column]) -> Column:
    keys = [own[name] for name in stage.fragment.key_of(schema.name)]
    if not keys:
        return sf.lit(stage.shards[0]).cast(IntegerType())
    number = sf.pmod(sf.xxhash64(*keys), sf.lit(len(stage.shards)))
    return _pick(stage.shards, number).cast(IntegerType())


def _select_row(stage: OperatorStage, index: int, ts: Column) -> list[Column]:
    schema = stage.inputs[index]
    return [
        sf.lit(index).cast(IntegerType()).alias(columns.STREAM),
        ts.alias(columns.TS),
        find_bad(stage, schema).alias(columns.BAD),
        _null_bits(stage, index, schema).alias(columns.NULLS),
    ]


def _select_values(stage: OperatorStage, index: int, own: Mapping[str, Column]) -> list[Column]:
    """The attributes of this input that somebody reads; all others are null."""
    read = stage.read[stage.inputs[index].name]
    found = []
    for column, attribute in stage.input_attributes():
        mine = column.startswith(f"s{index}_") and attribute.name in read
        kind = TYPES[attribute.type]
        value = own[attribute.name] if mine else sf.lit(None).cast(kind)
        zero = _ZEROS.get(attribute.type)
        if zero is not None:
            value = sf.coalesce(value, sf.lit(zero).cast(kind))
        found.append(value.alias(column))
    return found


def build_tables(stage: OperatorStage, tables: Mapping[str, DataFrame]) -> DataFrame | None:
    """The rows of all tables that a stage reads, a copy for each shard, before all events."""
    frames = []
    for index, schema in enumerate(stage.inputs):
        if not is_table_stream(schema.name):
            continue
        own = {a.name: quote(a.name).try_cast(TYPES[a.type]) for a in schema.attributes}
        rows = tables[schema.name].withColumn(columns.TIME, sf.lit(0).cast(TimestampType()))
        rows = rows.select(
            sf.col(columns.TIME),
            *_select_row(stage, index, sf.lit(NEVER).cast(LongType())),
            *(sf.lit(0).cast(LongType()).alias(f"ew_o{n}") for n in range(stage.order)),
            *_select_values(stage, index, own),
        )
        frames.append(rows.withColumn(columns.SHARD, _each_shard(stage)))
    return reduce(DataFrame.unionByName, frames) if frames else None


def find_span(app: App, inputs: Mapping[str, InputFrame]) -> DataFrame:
    """For a batch, in one row: when the first event is that a query reads, when the last one."""
    read = find_streams_read(app)
    frames = []
    for name, given in inputs.items():
        ts = sf.unix_millis(columns.TIME)
        first = ts if name in read else sf.lit(None).cast(LongType())
        rows = add_time(app.stream(name).schema, given)
        frames.append(rows.select(ts.alias("last"), first.alias("first")))
    rows = reduce(DataFrame.unionByName, frames)
    return rows.agg(sf.min("first").alias("first"), sf.max("last").alias("last"))


def add_ticks(stage: OperatorStage, rows: DataFrame, span: DataFrame) -> DataFrame:
    """For a batch: when the app begins and where it ends, for every shard."""
    marks = span.select(
        sf.inline(
            sf.array(
                _mark(START, sf.col("first")),
                _mark(TICK, sf.col("last")),
            )
        )
    )
    fill = [
        sf.lit(None).cast(TimestampType()).alias(columns.TIME),
        _each_shard(stage).alias(columns.SHARD),
        sf.col(columns.STREAM),
        sf.col(columns.TS),
        sf.lit(None).cast(StringType()).alias(columns.BAD),
        sf.lit(0).cast(LongType()).alias(columns.NULLS),
        *(sf.lit(None).cast(LongType()).alias(f"ew_o{n}") for n in range(stage.order)),
        *(sf.lit(None).cast(TYPES[a.type]).alias(c) for c, a in stage.input_attributes()),
    ]
    known = marks.where(sf.col(columns.TS).isNotNull())
    return rows.unionByName(known.select(*fill))


def _mark(stream: int, ts: Column) -> Column:
    kind = sf.lit(stream).cast(IntegerType())
    return sf.struct(kind.alias(columns.STREAM), ts.alias(columns.TS))


def _each_shard(stage: OperatorStage) -> Column:
    ids = sf.array(*(sf.lit(s).cast(IntegerType()) for s in stage.shards))
    return sf.explode(ids)


def select_output(stage: OperatorStage, tagged: DataFrame, stream: str, *more: str) -> DataFrame:
    """The rows of one stream with the names of its attributes, and `more` columns as they are."""
    index = next(i for i, s in enumerate(stage.outputs) if s.name == stream)
    schema = stage.outputs[index]
    named = [sf.col(f"o{index}_{j}").alias(a.name) for j, a in enumerate(schema.attributes)]
    return tagged.where(sf.col(columns.STREAM) == stream).select(*named, *more)


def _time_column(schema: Schema, time: str) -> Column:
    if not time:
        return sf.current_timestamp()
    attribute = next((a for a in schema.attributes if a.name == time), None)
    if attribute is not None and attribute.type is AttrType.LONG:
        return sf.timestamp_millis(quote(time))
    return quote(time).cast(TimestampType())


def quote(name: str) -> Column:
    return sf.col("`" + name.replace("`", "``") + "`")


def _pick(shards: Sequence[int], number: Column) -> Column:
    """The id of the shard with this number."""
    if list(shards) == list(range(len(shards))):
        return number
    return sf.element_at(sf.array(*(sf.lit(s) for s in shards)), (number + 1).cast(IntegerType()))


def find_bad(stage: OperatorStage, schema: Schema) -> Column:
    """Which attribute has a value that is not of its declared type, in words; else null."""
    reasons = [sf.when(sf.col(columns.TIME).isNull(), sf.lit("the event has no time"))]
    for attribute in schema.attributes:
        if attribute.name not in stage.read[schema.name]:
            continue
        value = quote(attribute.name)
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
        if attribute is None or attribute.name not in stage.read[schema.name]:
            bits.append(sf.lit(1 << bit).cast(LongType()))
            continue
        null = quote(attribute.name).try_cast(TYPES[attribute.type]).isNull()
        bits.append(sf.when(null, sf.lit(1 << bit).cast(LongType())).otherwise(sf.lit(0)))
    return reduce(operator.add, bits, sf.lit(0).cast(LongType()))
