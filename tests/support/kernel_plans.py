"""Plans by hand, short enough to read in a test. Streams: S (k string, v int, p double)."""

import itertools

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.plan.exprs import Agg, Compare, Const, Field, OutField
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    EventType,
    Filter,
    InsertInto,
    Query,
    Select,
    SelectItem,
    Stream,
    StreamInput,
    Window,
)

SCHEMA = Schema.of("S", k="string", v="int", p="double")
K = Field(AttrType.STRING, "S", "k")
V = Field(AttrType.INT, "S", "v")
P = Field(AttrType.DOUBLE, "S", "p")
COUNT = Agg(AttrType.LONG, "count", ())
SUM = Agg(AttrType.LONG, "sum", (V,))
AVG = Agg(AttrType.DOUBLE, "avg", (P,))
MIN = Agg(AttrType.INT, "min", (V,))
MAX = Agg(AttrType.INT, "max", (V,))


def integer(value):
    return Const(AttrType.INT, value)


def out(name, kind=AttrType.LONG):
    return OutField(kind, name)


def greater(left, value):
    return Compare(">", left, integer(value))


def window(name, *args):
    return Window(name, tuple(Const(AttrType.LONG, a) for a in args))


def query(items, *, name="q", source="S", into="O", where=(), win=None, group=(), **more):
    events = more.pop("events", EventType.ALL)
    return Query(
        name,
        StreamInput(source, "S", tuple(Filter(c) for c in where), win),
        Select(tuple(SelectItem(n, e) for n, e in items.items()), tuple(group), **more),
        InsertInto(into, events),
    )


def app_of(*queries, streams=()):
    written = tuple(
        Stream(Schema.of(name, k="string", v="int", p="double"), implicit=True)
        for name in dict.fromkeys(q.output.target for q in queries)
    )
    return App("app", (Stream(SCHEMA), *streams, *written), tuple(queries))


def kernel_of(app, *, key=(), taps=()):
    keys = (("S", key),) if key else ()
    fragment = Fragment("f", tuple(q.name for q in app.queries), ("S",), keys)
    return compile_kernel(app, fragment, taps)


def runs(events, cuts=()):
    """Events `(ts, row)` as runs of S, cut after the given places."""
    clock, full = 0, []
    for offset, (ts, row) in enumerate(events):
        clock = max(clock, ts)
        full.append((ts, row, offset, clock))
    edges = [0, *sorted(cuts), len(full)]
    for low, high in itertools.pairwise(edges):
        part = full[low:high]
        if part:
            ts, rows, offsets, clocks = zip(*part, strict=True)
            yield EventRun("S", ts, list(zip(*rows, strict=True)), offsets, clocks, offsets)


def plain(rows):
    return [(r.stream, r.ts, int(r.kind), r.data) for r in rows]


def ordered(rows):
    return sorted(rows, key=lambda r: (r.clock, r.phase, r.offset, r.seq))
