"""Hold what all writers of a fragment's source share: scopes, cells, timers, names, readers.

A scope is the fragment itself or one partition in it; each has its own cells and what must happen
when its state is created. Code inside a partition sees its instance as `S` and everything outside
as `rt.root`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgewise.errors import AppError, Problem, Span
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.codegen.name_allocator import Local, LocalNames, Stem
from edgewise.kernel.runtime import FIRST_CELL
from edgewise.plan.exprs import Agg, Call, Const, Expr, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    JoinInput,
    Partition,
    Query,
    StreamCall,
    StreamInput,
    handlers_of,
    streams_of,
)
from edgewise.plan.rules.map_expressions import map_query

TAP = "@"  # rows of a query itself, asked for by `taps`, come out under this sign and its name


@dataclass(slots=True)
class StateScope:
    """`fresh` is the text of each cell's empty value, `created` lines run on a new state."""

    name: str
    partition: Partition | None = None
    fresh: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)  # of each cell, by name
    owner: str = ""  # of the cells made now

    def cell(self, fresh: str) -> int:
        self.fresh.append(fresh)
        self.owners.append(self.owner)
        return FIRST_CELL + len(self.fresh) - 1

    @property
    def next_cell(self) -> int:
        return FIRST_CELL + len(self.fresh)

    def refill(self, cell: int, fresh: str) -> None:
        self.fresh[cell - FIRST_CELL] = fresh


class FragmentBuilder:
    """What every piece of a fragment's code knows about the others."""

    def __init__(
        self, app: App, fragment: Fragment, taps: frozenset[str], *, as_sent: bool = False
    ) -> None:
        self.app = app
        self.as_sent = as_sent
        self.fragment = fragment
        self.taps = taps
        self.writer = CodeWriter()
        wanted = set(fragment.queries)
        self.queries = tuple(q for q in app.queries if q.name in wanted)
        self._fallible = self._find_fallible()
        self.root = StateScope("")
        self.scopes: dict[str, StateScope] = {"": self.root}
        for n, partition in enumerate(app.partitions):
            if any(q.partition == partition.name for q in self.queries):
                stem = self.writer.stems.allocate(Stem.PARTITION, n, partition.name)
                self.scopes[partition.name] = StateScope(stem, partition)
        self.timers: list[str] = []
        self.timer_owners: list[str] = []
        self.stores: dict[str, int] = {}  # tables, named windows, aggregations: their root cell
        self.by_key: int | None = None  # the cell whose keys are the fragment's own

    def own(self, owner: str) -> None:
        """What is written from here on, cells and timers, belongs to this owner."""
        for scope in self.scopes.values():
            scope.owner = owner

    def node(self, on_timer: str) -> int:
        self.timers.append(on_timer)
        self.timer_owners.append(self.root.owner)
        return len(self.timers) - 1

    @property
    def next_node(self) -> int:
        return len(self.timers)

    def query_name(self, query: Query) -> str:
        return self.writer.stems.allocate(Stem.QUERY, self.queries.index(query), query.name)

    def stream_name(self, stream: str, partition: str = "") -> str:
        """The function that gives a chunk of this stream to its readers.

        Inside a partition, to those there: its own streams, and others as its instances see them.
        """
        hint = stream.lstrip("#").replace("!", "fault_")
        return self.writer.stems.allocate(Stem.STREAM, (partition, stream), hint)

    def store_name(self, name: str) -> str:
        """A table, a named window or an aggregation: no two of them share a name."""
        letter = Stem.TABLE
        if self.app.window(name) is not None:
            letter = Stem.WINDOW
        elif any(a.name == name for a in self.app.aggregations):
            letter = Stem.AGGREGATION
        return self.writer.stems.allocate(letter, name, name)

    def event_locals(self, stream: str) -> dict[str, str]:
        """The local of each attribute of the event at hand, in a loop over columns."""
        return self._attribute_locals(stream, Local.EVENT)

    def array_locals(self, stream: str) -> dict[str, str]:
        """The local of each attribute's column as an array."""
        return self._attribute_locals(stream, Local.ARRAY)

    def _attribute_locals(self, stream: str, prefix: Local) -> dict[str, str]:
        locals_ = LocalNames(prefix)
        return {name: locals_.allocate(name, name) for name in self.schema(stream).names}

    def readers(self, stream: str) -> list[Query]:
        return [q for q in self.queries if stream in streams_of(q.input)]

    def read(self) -> tuple[str, ...]:
        """Streams and named windows that queries read, in order."""
        names = dict.fromkeys(n for q in self.queries for n in streams_of(q.input))
        stores = {t.name for t in self.app.tables} | {a.name for a in self.app.aggregations}
        fed = dict.fromkeys(a.input.stream for a in self.app.aggregations if a.name in self.stores)
        return tuple(n for n in {**names, **fed} if n not in stores)

    def reads_inside(self, stream: str, partition: str) -> bool:
        """Whether a query of this partition reads it: two partitions may have a `#stream`."""
        return any(q.partition == partition for q in self.readers(stream))

    def given(self, streams: Iterable[str]) -> bool:
        """Whether no query makes these streams: their events come at the app's time, or late."""
        made = {q.output.target for q in self.app.queries}
        return all(s[0] not in "#!" and s not in made for s in streams)

    def has_stream(self, name: str) -> bool:
        return any(s.name == name for s in self.app.streams)

    def guarded(self, stream: str) -> bool:
        """Whether handling an event of this stream may fail: it is then recorded and dropped.

        With `@OnError` it is caught whatever it is, and may go to the fault stream. Without it
        only where code runs that is not the language's own, or that reads what the event says.
        """
        if self.as_sent or any(
            s.annotated("onerror") for s in self.app.streams if s.name == stream
        ):
            return True
        return stream in self._fallible

    def _find_fallible(self) -> frozenset[str]:
        found = {n for q in self.queries if _may_fail(q) for n in streams_of(q.input)}
        for partition in self.app.partitions:
            for key in partition.keys:
                exprs = [key.value, *(r.condition for r in key.ranges)]
                if any(_calls(e) for e in exprs if e is not None):
                    found.add(key.stream)
        # A text as time may be none; an aggregation has no other reader to protect.
        found |= {a.input.stream for a in self.app.aggregations if a.by is not None}
        return frozenset(found)

    def schema(self, name: str, partition: str = "") -> Schema:
        """Of a stream, inner stream, table, named window or aggregation."""
        app = self.app
        inner = app.partition(partition)
        schemas = [
            *((s.name, s.schema) for s in app.streams),
            *((s.name, s.schema) for s in (inner.streams if inner else ())),
            *((t.name, t.schema) for t in app.tables),
            *((w.name, w.schema) for w in app.windows),
            *((a.name, a.schema) for a in app.aggregations),
        ]
        found = dict(schemas).get(name) or dict(schemas).get(name.lstrip("#"))
        if found is None:
            raise LookupError(f"nothing is named '{name}'")
        return found


def refuse(span: Span, message: str) -> AppError:
    return AppError((Problem(span, message),))


def _may_fail(query: Query) -> bool:
    """Whether it runs bodies of functions, or reads conditions and times that events bring."""
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    map_query(query, note)
    if any(_calls(expr) for expr in found):
        return True
    calls = [h for h in handlers_of(query.input) if isinstance(h, StreamCall)]
    if any(call.name.lower() != "log" for call in calls):
        return True
    match query.input:
        case StreamInput(window=window):
            windows = [window]
        case JoinInput(left=left, right=right, within=within, per=per):
            windows = [left.input.window, right.input.window]
            if any(not isinstance(e, Const) for e in (*within, *([per] if per else []))):
                return True
        case _:
            return False
    return any(w is not None and w.reader is not None for w in windows)


def _calls(expr: Expr) -> bool:
    return any(isinstance(n, Call | Agg) and _call_may_fail(n) for n in walk(expr))


def _call_may_fail(call: Call | Agg) -> bool:
    """Whether it has a body of its own, or says that a value is a bool which may be none."""
    casts = call.type is AttrType.BOOL and call.name == "cast"
    return call.body is not None or (casts and call.args[0].type is not AttrType.BOOL)
