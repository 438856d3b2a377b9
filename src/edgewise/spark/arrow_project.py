"""Run a fragment without state over whole Arrow tables: no event becomes a Python value.

Several times faster than a kernel, but only for queries that `arrow_exprs` can translate and whose
rows come out in order by themselves: from a single log, each output stream written by one query.
Other fragments go through their kernel. Used by `tasks` in a log scan.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.arrow_exprs import (
    evaluate_condition,
    project_table,
    translate_condition,
    translate_to_arrow,
)
from edgewise.engines.batch.inputs import InputLogs, Offsets
from edgewise.engines.batch.job import Job
from edgewise.engines.batch.outputs import FragmentOutput
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS
from edgewise.event.event import EventKind
from edgewise.event.schema import Schema
from edgewise.plan.exprs import Expr, Field, walk
from edgewise.plan.rules.native_spark import Projection, build_projections

_TICK, _CURRENT = (
    pc.scalar(int(kind)).cast(pa.int8()) for kind in (EventKind.TICK, EventKind.CURRENT)
)


@dataclass(frozen=True, slots=True)
class ArrowProjection:
    """A filter and projection as Arrow expressions over the log's own columns."""

    target: str
    filter_columns: list[str]  # that the condition reads
    value_columns: list[str]  # that the values read
    condition: Any
    values: dict[str, Any]  # names of columns that stay as they are, or expressions

    def apply(self, table: Any) -> Any:
        """Copies only columns that are read, and those that stay as they are only once."""
        met = evaluate_condition(table.select(self.filter_columns), self.condition)
        kept = table.select(self.value_columns).filter(met)
        computed = {n: v for n, v in self.values.items() if not isinstance(v, str)}
        results = project_table(kept, list(computed), list(computed.values()))
        columns = {
            name: kept.column(value) if isinstance(value, str) else results.column(name)
            for name, value in self.values.items()
        }
        return pa.table(columns)


def compile_projections(job: Job) -> list[ArrowProjection]:
    """All of the fragment's queries; empty where one has to go through the kernel."""
    fragment, app = job.fragment, job.app
    ordered = any(app.stream(name).lateness_ms is not None for name in fragment.inputs)
    if not fragment.stateless or ordered or job.taps or len(app.inputs) != 1:
        return []
    found = build_projections(app, fragment)
    targets = {p.target for p in found}
    if len(targets) < len(found) or targets & set(job.streams):
        return []
    compiled = [_compile(p, app.stream(p.target).schema) for p in found]
    known = [c for c in compiled if c is not None]
    return known if len(known) == len(compiled) else []


def _compile(projection: Projection, schema: Schema) -> ArrowProjection | None:
    exprs = [projection.columns[name] for name in schema.names]
    if any(e.type is not a.type for e, a in zip(exprs, schema.attributes, strict=True)):
        return None
    conditions = [translate_condition(c, "") for c in projection.conditions]
    values = [translate_to_arrow(e) for e in exprs]
    if any(translated is None for translated in (*conditions, *values)):
        return None
    own = {
        a.name: expr.name if isinstance(expr, Field) else value.cast(ARROW_TYPES[a.type])
        for a, expr, value in zip(schema.attributes, exprs, values, strict=True)
    }
    return ArrowProjection(
        target=projection.target,
        filter_columns=[KIND, *_list_fields(projection.conditions)],
        value_columns=[TS, AT, *_list_fields(exprs)],
        condition=functools.reduce(operator.and_, conditions, pc.field(KIND) != _TICK),
        values={TS: TS, AT: AT, KIND: _CURRENT} | own,
    )


def _list_fields(exprs: Iterable[Expr]) -> list[str]:
    """Each name once."""
    nodes = (n for e in exprs for n in walk(e))
    return list(dict.fromkeys(n.name for n in nodes if isinstance(n, Field)))


def run_projections(
    inputs: InputLogs, start: Offsets, end: Offsets, projections: list[ArrowProjection]
) -> FragmentOutput:
    """The rows that they make of a range of the one log, in order."""
    [stream] = start
    reader = inputs.reader(stream)
    batches = [b.rows for b in reader.read(start[stream], end[stream])]
    table = pa.Table.from_batches(batches, schema=reader.schema)
    return FragmentOutput({p.target: [p.apply(table)] for p in projections})
