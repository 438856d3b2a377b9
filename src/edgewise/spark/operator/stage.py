"""Describe one fragment as an operator: its inputs, its outputs, the columns between Spark and us.

Spark's column names are case-insensitive and attributes are not, and names that begin with an
underscore reach a stateful processor renamed. So columns on the way in and out are numbered:

    in    ew_shard, ew_stream, ew_ts, ew_bad, ew_nulls, ew_o<n>, s<i>_<j>   input i, attribute j
    out   ew_time, ew_ts, ew_stream, ew_kind, ew_clock, ew_phase, ew_seq, o<i>_<j>

`ew_time` is the app's time when a row was made, which Spark takes as its event time; `ew_ts` is
the time of the row itself, which may be older.

Pure: the shells for batches and streams and the frames around them use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from edgewise.event.arrow import ARROW_TYPES
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, streams_of
from edgewise.plan.rules.column_pruning import find_read_attributes
from edgewise.spark.operator.static_tables import is_table_stream

SHARD, STREAM, TS, TIME = "ew_shard", "ew_stream", "ew_ts", "ew_time"
BAD, NULLS, KIND = "ew_bad", "ew_nulls", "ew_kind"
CLOCK, PHASE, SEQ, BEAT = "ew_clock", "ew_phase", "ew_seq", "ew_beat"
NEVER = -(2**62)  # before all events: the time of rows of tables
TICK = -1  # the stream of a row that only moves time
START = -2  # the stream of a row that says when the app begins
ATTRIBUTES_MAX = 62  # numbers and bools of all inputs of a stage: their nulls are bits of a long
FAULTS = Schema.of("$faults", stream="string", ts="long", error="string", event="string")
LATE = Schema.of("$late", stream="string", ts="long", event="string")
STATS = Schema.of("$stats", events="long", waiting="long", keys="long")
_NULL_AS_ZERO = frozenset(AttrType) - {AttrType.STRING, AttrType.OBJECT}


@dataclass(frozen=True)
class OperatorStage:
    """One fragment of an app; travels to executors. `order` counts the columns that break ties.

    `close_ms` is how far a batch moves time beyond its last event; `shards` are the ids in use;
    `staged`: it reads the rows of another stage, which are never late.
    """

    app: App
    fragment: Fragment
    order: int = 0
    close_ms: int = 0
    shards: tuple[int, ...] = (0,)
    staged: bool = False

    @cached_property
    def inputs(self) -> tuple[Schema, ...]:
        return tuple(self.app.stream(name).schema for name in self.fragment.inputs)

    @cached_property
    def outputs(self) -> tuple[Schema, ...]:
        """Streams that the fragment writes, rows that failed or came too late, its counters."""
        queries = [q for q in self.app.queries if q.name in self.fragment.queries]
        targets = {q.output.target for q in queries}
        read = {name for q in queries for name in streams_of(q.input)}
        faults = {f"!{name}" for name in read | targets}
        named = [s.schema for s in self.app.streams if s.name in targets | faults]
        return (*named, FAULTS, LATE, STATS)

    @cached_property
    def kernel_fragment(self) -> Fragment:
        """What a shard's kernel is compiled from: with a table, one state for all its keys."""
        shared = any(map(is_table_stream, self.fragment.inputs))
        return replace(self.fragment, keys=()) if shared else self.fragment

    @cached_property
    def read(self) -> dict[str, tuple[str, ...]]:
        """The attributes of each input that some query looks at."""
        return find_read_attributes(self.app, self.fragment)

    def nullable(self) -> Iterator[tuple[int, str]]:
        """The bit in ew_nulls and the column of each attribute whose null travels as a bit."""
        columns = (
            column
            for column, attribute in self.input_attributes()
            if attribute.type in _NULL_AS_ZERO
        )
        return enumerate(columns)

    def input_attributes(self) -> Iterator[tuple[str, Attribute]]:
        for i, schema in enumerate(self.inputs):
            for j, attribute in enumerate(schema.attributes):
                yield f"s{i}_{j}", attribute

    def output_attributes(self) -> Iterator[tuple[str, Attribute]]:
        for i, schema in enumerate(self.outputs):
            for j, attribute in enumerate(schema.attributes):
                yield f"o{i}_{j}", attribute

    @cached_property
    def input_schema(self) -> Any:
        """The Arrow schema of rows on their way in."""
        fields: list[Any] = [
            pa.field(SHARD, pa.int32()),
            pa.field(STREAM, pa.int32()),
            pa.field(TS, pa.int64()),
            pa.field(BAD, pa.string()),
            pa.field(NULLS, pa.int64()),
            *(pa.field(f"ew_o{n}", pa.int64()) for n in range(self.order)),
            *(pa.field(c, ARROW_TYPES[a.type]) for c, a in self.input_attributes()),
        ]
        return pa.schema(fields)

    @cached_property
    def output_schema(self) -> Any:
        """The Arrow schema of rows on their way out."""
        fields: list[Any] = [
            pa.field(TIME, pa.timestamp("us", tz="UTC")),
            pa.field(TS, pa.int64()),
            pa.field(STREAM, pa.string()),
            pa.field(KIND, pa.int8()),
            pa.field(CLOCK, pa.int64()),
            pa.field(PHASE, pa.int64()),
            pa.field(SEQ, pa.int64()),
            *(pa.field(c, ARROW_TYPES[a.type]) for c, a in self.output_attributes()),
        ]
        return pa.schema(fields)

    def sort_keys(self) -> list[tuple[str, Any]]:
        """The order of events: time, stream, then the order columns, then the values themselves,
        so that the same rows give the same result whatever partitions they came in.
        """
        ties = [f"ew_o{n}" for n in range(self.order)] + [c for c, _ in self.input_attributes()]
        return [(name, "ascending") for name in (TS, STREAM, *ties)]
