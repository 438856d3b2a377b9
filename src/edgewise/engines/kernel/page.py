"""The page a fragment is written on: scopes, cells, timers, and who reads which stream.

A scope is the fragment itself or one partition in it; each has its own cells and what must happen
when its state is made. Code inside a partition sees its instance as `S` and everything outside as
`rt.root`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.kernel.runtime import FIRST_CELL
from edgewise.engines.kernel.writer import Writer, local
from edgewise.errors import AppError, Problem, Span
from edgewise.event.schema import Schema
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, JoinInput, Partition, Query, StreamInput, streams_of

TAP = "@"  # rows of a query itself, asked for by `taps`, come out under this mark and its name


@dataclass(slots=True)
class Scope:
    """`fresh` is the text of each cell's empty value, `created` lines run on a new state."""

    name: str
    partition: Partition | None = None
    fresh: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)

    def cell(self, fresh: str) -> int:
        self.fresh.append(fresh)
        return FIRST_CELL + len(self.fresh) - 1

    @property
    def next_cell(self) -> int:
        return FIRST_CELL + len(self.fresh)

    def refill(self, cell: int, fresh: str) -> None:
        self.fresh[cell - FIRST_CELL] = fresh


class Page:
    """What every piece of a fragment's code knows about the others."""

    def __init__(self, app: App, fragment: Fragment, taps: frozenset[str]) -> None:
        self.app = app
        self.fragment = fragment
        self.taps = taps
        self.writer = Writer()
        wanted = set(fragment.queries)
        self.queries = tuple(q for q in app.queries if q.name in wanted)
        self.root = Scope("")
        self.scopes: dict[str, Scope] = {"": self.root}
        for n, partition in enumerate(app.partitions):
            if any(q.partition == partition.name for q in self.queries):
                self.scopes[partition.name] = Scope(f"p{n}", partition)
        self.timers: list[str] = []
        self.stores: dict[str, int] = {}  # tables, named windows, aggregations: their root cell
        self.readers_of_text: dict[str, Any] = {}  # of conditions that events bring, by name

    def node(self, on_timer: str) -> int:
        self.timers.append(on_timer)
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

    def has_stream(self, name: str) -> bool:
        return any(s.name == name for s in self.app.streams)

    def guard(self, stream: str) -> str:
        """What is caught while an event of this stream is handled; nothing where nothing can be.

        With `@OnError` everything is: the event is counted as a fault and dropped, or goes to the
        fault stream. Without it only an event whose own text cannot be read is.
        """
        if any(s.annotated("onerror") for s in self.app.streams if s.name == stream):
            return "Exception"
        told = any(_reads_text(query) for query in self.readers(stream))
        return "BadEvent" if told else ""

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


def _reads_text(query: Query) -> bool:
    """Whether events bring conditions for one of its windows."""
    match query.input:
        case StreamInput(window=window):
            windows = [window]
        case JoinInput(left=left, right=right):
            windows = [left.input.window, right.input.window]
        case _:
            return False
    return any(w is not None and w.reader is not None for w in windows)
