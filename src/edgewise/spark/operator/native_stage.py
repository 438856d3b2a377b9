"""Compute a stage without state by Spark's own expressions, where they are proven equal.

No row enters Python, and Catalyst sees the filters and the columns: it prunes and pushes them down
to the source. `plan.rules.native_spark` says what is equal, `spark.native` builds it; here are the
frames around it. Used by `api`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ByteType, LongType

from edgewise.event.types import AttrType
from edgewise.plan.exprs import COMPARISONS, And, Compare, Expr
from edgewise.plan.rules.native_spark import Projection, build_projections
from edgewise.spark.native import build_column
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.frames import TYPES, InputFrame, add_time, find_bad, quote
from edgewise.spark.operator.stage import FAULTS, OperatorStage

_FLOATS = (AttrType.FLOAT, AttrType.DOUBLE)


def apply_native(stage: OperatorStage, inputs: Mapping[str, InputFrame]) -> DataFrame | None:
    """The tagged rows of a stage; None where it needs the kernel."""
    if not stage.fragment.stateless or any(s.name.startswith("!") for s in stage.outputs):
        return None
    found = build_projections(stage.app, stage.fragment)
    if not found:
        return None
    frames = {s.name: add_time(s, inputs[s.name]) for s in stage.inputs}
    rows = [_project(stage, p, frames[p.source]) for p in found]
    faults = [_select_faults(stage, name, frame) for name, frame in frames.items()]
    return reduce(DataFrame.unionByName, [*rows, *faults])


def _project(stage: OperatorStage, projection: Projection, frame: DataFrame) -> DataFrame:
    schema = stage.app.stream(projection.source).schema
    own = {a.name: quote(a.name).try_cast(TYPES[a.type]) for a in schema.attributes}
    for condition in projection.conditions:
        frame = frame.where(_build_filter(condition, own))
    frame = frame.where(find_bad(stage, schema).isNull())
    values = {name: _require(build_column(e, own)) for name, e in projection.columns.items()}
    return frame.select(*_tag(stage, projection.target, values))


def _build_filter(expr: Expr, own: Mapping[str, Column]) -> Column:
    """A condition that may be null where it is false: such a one Spark pushes down to a source."""
    match expr:
        case And():
            return _build_filter(expr.left, own) & _build_filter(expr.right, own)
        case Compare() if expr.op != "!=" and not _compares_floats(expr):
            sides = (_require(build_column(side, own)) for side in (expr.left, expr.right))
            return COMPARISONS[expr.op](*sides)  # type: ignore[no-any-return]
    return _require(build_column(expr, own))


def _compares_floats(expr: Compare) -> bool:
    return expr.left.type in _FLOATS or expr.right.type in _FLOATS


def _require(column: Column | None) -> Column:
    assert column is not None, "a projection is native"
    return column


def _select_faults(stage: OperatorStage, stream: str, frame: DataFrame) -> DataFrame:
    schema = stage.app.stream(stream).schema
    bad = find_bad(stage, schema)
    read = [quote(name).alias(name) for name in stage.read[stream]]
    values = {
        "stream": sf.lit(stream),
        "ts": sf.unix_millis(columns.TIME),
        "error": bad,
        "event": sf.to_json(sf.struct(*read), {"ignoreNullFields": "false"}),
    }
    return frame.where(bad.isNotNull()).select(*_tag(stage, FAULTS.name, values))


def _tag(stage: OperatorStage, stream: str, values: Mapping[str, Column]) -> list[Column]:
    ts, zero = sf.unix_millis(columns.TIME), sf.lit(0).cast(LongType())
    system = {
        columns.TS: ts,
        columns.STREAM: sf.lit(stream),
        columns.KIND: sf.lit(0).cast(ByteType()),
        columns.CLOCK: ts,
        columns.PHASE: zero,
        columns.SEQ: zero,
    }
    found = [sf.col(columns.TIME), *(value.alias(name) for name, value in system.items())]
    for index, schema in enumerate(stage.outputs):
        for j, attribute in enumerate(schema.attributes):
            mine = schema.name == stream
            value = values[attribute.name] if mine else sf.lit(None)
            found.append(value.cast(TYPES[attribute.type]).alias(f"o{index}_{j}"))
    return found
