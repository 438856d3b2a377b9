"""The page a fragment is written on: scopes, cells, timers, and who reads which stream.

A scope is the fragment itself or one partition in it; each has its own cells and what must happen
when its state is made. Code inside a partition sees its instance as `S` and everything outside as
`rt.root`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.kernel.runtime import FIRST_CELL
from edgewise.engines.kernel.writer import Writer, local
from edgewise.errors import AppError, Problem, Span
from edgewise.event.schema import Schema
from edgewise.plan.exprs import Call, Const, Expr, walk
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
from edgewise.plan.rules.rewriting import map_query

TAP = "@"  # rows of a query itself, asked for by `taps`, come out under this mark and its name


@dataclass(slots=True)
class Scope:
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


class Page:
    """What every piece of a fragment's code knows about the others."""

    def __init__(
        self, app: App, fragment: Fragment, taps: frozenset[str], *, as_sent: bool = False
    ) -> None:
        self.app = app
        self.as_sent = as_sent
        self.fragment = fragment
        self.taps = taps
        self.writer = Writer()
        wanted = set(fragment.queries)
        self.queries = tuple(q for q in app.queries if q.name in wanted)
        self._fallible = self._find_fallible()
        self.root = Scope("")
        self.scopes: dict[str, Scope] = {"": self.root}
        for n, partition in enumerate(app.partitions):
            if any(q.partition == partition.name for q in self.queries):
                self.scopes[partition.name] = Scope(f"p{n}", partition)
        self.timers: list[str] = []
        self.timer_owners: list[str] = []
        self.stores: dict[str, int] = {}  # tables, named windows, aggregations: their root cell
        self.by_key: int | None = None  # the cell whose keys are the fragment's own
        self.readers_of_text: dict[str, Any] = {}  # of conditions that events bring, by name

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
        return f"q{self.queries.index(query)}_{local(query.name)}"

    def stream_name(self, stream: str, partition: str = "") -> str:
        if stream.startswith("#"):
            return f"{self.scopes[partition].name}_s_{local(stream[1:])}"
        return f"s_{local(stream.replace('!', 'fault_'))}"

    def readers(self, stream: str) -> list[Query]:
        return [q for q in self.queries if stream in streams_of(q.input)]

    def read(self) -> tuple[str, ...]:
        """Streams and named windows that queries read, in order."""
        names = dict.fromkeys(n for q in self.queries for n in streams_of(q.input))
        stores = {t.name for t in self.app.tables} | {a.name for a in self.app.aggregations}
        fed = dict.fromkeys(a.input.stream for a in self.app.aggregations if a.name in self.stores)
        return tuple(n for n in {**names, **fed} if n not in stores)

    def given(self, streams: Iterable[str]) -> bool:
        """Whether no query makes these streams: their events come at the app's time, or late."""
        made = {q.output.target for q in self.app.queries}
        return all(s[0] not in "#!" and s not in made for s in streams)

    def has_stream(self, name: str) -> bool:
        return any(s.name == name for s in self.app.streams)

    def guarded(self, stream: str) -> bool:
        """Whether handling an event of this stream may fail: it is then told, counted and dropped.

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
        places = [
            *((s.name, s.schema) for s in app.streams),
            *((s.name, s.schema) for s in (inner.streams if inner else ())),
            *((t.name, t.schema) for t in app.tables),
            *((w.name, w.schema) for w in app.windows),
            *((a.name, a.schema) for a in app.aggregations),
        ]
        found = dict(places).get(name) or dict(places).get(name.lstrip("#"))
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
    if any(isinstance(h, StreamCall) and h.procedure for h in handlers_of(query.input)):
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
    return any(isinstance(n, Call) and n.body is not None for n in walk(expr))
