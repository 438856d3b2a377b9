"""A fragment without state over whole Arrow tables: no event becomes a Python value.

Only where the rows come out in order by themselves: from a single log, each output stream made by
a single query. Other fragments go through their kernel.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.asks import answered, asked, made_rows, met
from edgewise.engines.host import Job
from edgewise.engines.inputs import Inputs, Offsets
from edgewise.engines.results import Made
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.event.schema import Schema
from edgewise.plan.exprs import Expr, Field, walk
from edgewise.plan.rules.native import Projection, projections

_MARK, _CURRENT = (pc.scalar(int(k)).cast(pa.int8()) for k in (Kind.MARK, Kind.CURRENT))


@dataclass(frozen=True, slots=True)
class Columnar:
    """A projection in Arrow's expressions, over the log's own columns."""

    target: str
    asks: list[str]
    reads: list[str]
    condition: Any
    values: dict[str, Any]  # names of columns that stay as they are, or expressions

    def rows(self, table: Any) -> Any:
        """A column that is not looked at is not copied; nor is one again that stays as it is."""
        kept = table.select(self.reads).filter(met(table.select(self.asks), self.condition))
        made = {n: v for n, v in self.values.items() if not isinstance(v, str)}
        found = made_rows(kept, list(made), list(made.values()))
        columns = {
            name: kept.column(value) if isinstance(value, str) else found.column(name)
            for name, value in self.values.items()
        }
        return pa.table(columns)


def columnar(job: Job) -> list[Columnar]:
    """All of the fragment's queries; empty where one has to go through the kernel."""
    fragment, app = job.fragment, job.app
    ordered = any(app.stream(name).lateness_ms is not None for name in fragment.inputs)
    if not fragment.stateless or ordered or job.taps or len(app.inputs) != 1:
        return []
    found = projections(app, fragment)
    targets = {p.target for p in found}
    if len(targets) < len(found) or targets & set(job.streams):
        return []
    made = [_columnar(p, app.stream(p.target).schema) for p in found]
    known = [c for c in made if c is not None]
    return known if len(known) == len(made) else []


def _columnar(projection: Projection, schema: Schema) -> Columnar | None:
    exprs = [projection.columns[name] for name in schema.names]
    if any(e.type is not a.type for e, a in zip(exprs, schema.attributes, strict=True)):
        return None
    conditions = [asked(c, "") for c in projection.conditions]
    values = [answered(e) for e in exprs]
    if any(made is None for made in (*conditions, *values)):
        return None
    own = {
        a.name: expr.name if isinstance(expr, Field) else value.cast(ARROW_TYPES[a.type])
        for a, expr, value in zip(schema.attributes, exprs, values, strict=True)
    }
    return Columnar(
        target=projection.target,
        asks=[KIND, *_fields(projection.conditions)],
        reads=[TS, AT, *_fields(exprs)],
        condition=functools.reduce(operator.and_, conditions, pc.field(KIND) != _MARK),
        values={TS: TS, AT: AT, KIND: _CURRENT} | own,
    )


def _fields(exprs: Iterable[Expr]) -> list[str]:
    """Each name once."""
    nodes = (n for e in exprs for n in walk(e))
    return list(dict.fromkeys(n.name for n in nodes if isinstance(n, Field)))


def projected(inputs: Inputs, start: Offsets, end: Offsets, queries: list[Columnar]) -> Made:
    """What they make of a stretch of the one log, in order."""
    [stream] = start
    reader = inputs.reader(stream)
    batches = [b.rows for b in reader.read(start[stream], end[stream])]
    table = pa.Table.from_batches(batches, schema=reader.schema)
    return Made({query.target: [query.rows(table)] for query in queries})
