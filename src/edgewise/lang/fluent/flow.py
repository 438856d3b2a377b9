"""Streams through windows, selections and joins, one call after the other.

A `Flow` never changes: each call gives a new one. It carries the definitions and queries before
it, so the last one of a chain compiles the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from edgewise.errors import AppError
from edgewise.event.types import AttrType
from edgewise.lang.compiler import Compiled, Functions, compile_app
from edgewise.lang.fluent.app import App
from edgewise.lang.fluent.rows import Rows
from edgewise.lang.fluent.terms import Term, Value, duration, expression, value
from edgewise.lang.layout import format_app
from edgewise.lang.syntax import app as tree
from edgewise.lang.syntax import query as q
from edgewise.lang.syntax.expr import AttrRef, Call, Expression, Literal
from edgewise.lang.unparse import unparse_app
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.picture import explain_svg
from edgewise.plan.procedures import Procedure

ROWS_NAME = "rows"  # where a flow without `insert_into` goes when it is run
UNFINISHED = "unfinished"  # and where it goes when it is printed


def stream(name: str, /, **attributes: str) -> Flow:
    """A stream to read: with attributes it is defined here, without it is known already."""
    columns = tuple(tree.Column(n, AttrType(kind)) for n, kind in attributes.items())
    defined = (tree.StreamDefinition(q.Name(name), columns),) if columns else ()
    return Flow(q.Source(q.Name(name)), Before(defined))


@dataclass(frozen=True, slots=True)
class Before:
    """What a flow stands on: definitions, queries in order, and the user's own procedures."""

    definitions: tuple[tree.Definition, ...] = ()
    executions: tuple[q.Query | q.Partition, ...] = ()
    procedures: tuple[Procedure, ...] = ()

    def and_(self, other: Before) -> Before:
        def merged(mine: tuple[object, ...], its: tuple[object, ...]) -> tuple[object, ...]:
            return (*mine, *(x for x in its if not any(x is y or x == y for y in mine)))

        return Before(
            merged(self.definitions, other.definitions),  # type: ignore[arg-type]
            merged(self.executions, other.executions),  # type: ignore[arg-type]
            merged(self.procedures, other.procedures),  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True, repr=False)
class Flow:
    """Rows on their way. `insert_into` ends a query and gives the stream it wrote.

    In a notebook a flow shows its picture; printed, it is its SiddhiQL.
    """

    source: q.QueryInput
    before: Before = Before()
    selection: q.Selection | None = None
    rate: q.Rate | None = None
    keys: tuple[q.PartitionKey, ...] = ()
    query_name: str = ""

    # What comes in.

    def where(self, condition: Term | str) -> Flow:
        """Keep events that satisfy it; after a window it limits what leaves."""
        handler = q.Filter(expression(condition))
        return self._handle(handler)

    def process(self, procedure: Procedure) -> Flow:
        """Every event through the procedure, which adds its attributes."""
        namespace, _, plain = procedure.name.rpartition(":")
        flow = self._handle(q.StreamFunction(Call(plain, (), namespace)))
        return replace(flow, before=flow.before.and_(Before(procedures=(procedure,))))

    @property
    def window(self) -> Windows:
        """The windows: `.window.time("10 min")`."""
        return Windows(self)

    def as_(self, alias: str) -> Flow:
        """Another name for this side of a join, or the reference of a pattern element."""
        return replace(self, source=replace(self._stream(), alias=alias))

    def join(self, other: Flow, on: Term | str | None = None, kind: str = "inner") -> Flow:
        """`kind` is inner, left, right or full."""
        condition = expression(on) if on is not None else None
        joined = q.Join(self._stream(), other._stream(), kind, "", condition)
        return Flow(joined, self.before.and_(other.before))

    def partition_by(self, *attributes: str) -> Flow:
        """One instance of the query per value of each input's attribute, in the order written."""
        names = _names(self.source)
        chosen = attributes if len(attributes) > 1 else attributes * len(names)
        keys = tuple(
            q.PartitionKey(name, AttrRef(a)) for name, a in zip(names, chosen, strict=True)
        )
        return replace(self, keys=keys)

    # What comes out.

    def select(self, *names: str, **named: Value) -> Flow:
        """Attributes by name, and expressions under a name of their own."""
        items = [q.SelectItem(_attribute(n)) for n in names]
        items += [q.SelectItem(value(given), alias) for alias, given in named.items()]
        return self._select(items=tuple(items))

    def group_by(self, *names: str) -> Flow:
        """Aggregate for each value of these attributes by itself."""
        return self._select(group_by=tuple(_attribute(n) for n in names))

    def having(self, condition: Term | str) -> Flow:
        """Keep rows whose selected values satisfy it."""
        return self._select(having=expression(condition))

    def order_by(self, name: str, *, descending: bool = False) -> Flow:
        """Order the rows that come out together; several calls, several terms."""
        before = self.selection.order_by if self.selection else ()
        return self._select(order_by=(*before, q.OrderItem(_attribute(name), descending)))

    def limit(self, rows: int, offset: int = 0) -> Flow:
        """At most so many of the rows that come out together, after `offset` of them."""
        skipped = Literal(AttrType.INT, offset) if offset else None
        return self._select(limit=Literal(AttrType.INT, rows), offset=skipped)

    def output(self, kind: str, every: str | int, *, events: bool = False) -> Flow:
        """`kind` is all, first, last or snapshot; `every` a time, or a number of events."""
        if events:
            return replace(self, rate=q.Rate(kind, None, int(every)))
        return replace(self, rate=q.Rate(kind, duration(every)))

    def named(self, name: str) -> Flow:
        """The name of the query in `explain` and in callbacks."""
        return replace(self, query_name=name)

    def insert_into(self, target: str, events: str = "current") -> Flow:
        """End the query: its rows are the stream `target`, which is what comes back.

        `events` is current, expired or all.
        """
        return self._end(q.Output("insert", q.Name(target), events))

    def _end(self, output: q.Output) -> Flow:
        info = (q.Annotation("info", (("name", self.query_name),)),) if self.query_name else ()
        query: q.Query | q.Partition
        query = q.Query(info, self.source, self.selection, self.rate, output)
        if self.keys:
            query = q.Partition((), self.keys, (query,))
        before = replace(self.before, executions=(*self.before.executions, query))
        assert output.target is not None
        return Flow(q.Source(output.target), before)

    # The whole.

    def tree(self, name: str = "") -> tree.App:
        """The syntax tree of the whole."""
        annotations = (q.Annotation("app:name", (("", name),)),) if name else ()
        return tree.App(annotations, self.before.definitions, self.before.executions)

    def text(self, name: str = "") -> str:
        """The same app in SiddhiQL."""
        return format_app(unparse_app(self.tree(name)))

    def run(
        self,
        events: Iterable[Any],
        *,
        stream: str = "",
        time: str = "",
        functions: Iterable[object] = (),
    ) -> Rows:
        """The rows of this flow, over some events, in this process.

        An event is a tuple, a dict, or an `Event`; `stream` and `time` as in `App.run`. A flow
        without `insert_into` gives what it would insert.

        >>> prices = edgewise.stream("prices", item="string", price="double")
        >>> dear = prices.where(edgewise.col.price > 2).select("item")
        >>> dear.run([("tea", 1.0), ("cake", 3.5)]).data()
        [('cake',)]
        """
        flow = self._finish()
        app = flow.app(functions=functions)
        return app.run(events, stream=stream, time=time).of(flow._target())  # noqa: SLF001

    def app(self, name: str = "", *, functions: Iterable[object] = ()) -> App:
        """The whole as an app that runs in this process and takes events one by one."""
        things = (*functions, *self.before.procedures)
        return App(self._finish().text(name), functions=things)

    def __repr__(self) -> str:
        return (self.insert_into(UNFINISHED) if self._is_open() else self).text()

    def _repr_html_(self) -> str:
        try:
            return explain_svg(self._finish().compile().app)
        except AppError as error:  # the author sees the text and what is wrong with it
            return f"<pre>{escape(repr(self))}\n{escape(str(error))}</pre>"

    def _finish(self) -> Flow:
        """Itself, or what it would insert as a stream of its own."""
        ended = self.before.executions and not self._is_open()
        return self if ended else self.insert_into(ROWS_NAME)

    def _is_open(self) -> bool:
        """A query was begun and not ended by `insert_into`."""
        plain = isinstance(self.source, q.Source) and self.source == q.Source(self.source.stream)
        return not plain or self.selection is not None or bool(self.keys)

    def _target(self) -> str:
        name = self._stream().stream
        assert isinstance(name, q.Name)
        return name.text

    def compile(self, name: str = "", functions: Functions = FUNCTIONS) -> Compiled:
        """The plan; AppError with places in `text()` where it has problems."""
        file = f"<{name or 'app'}>"
        procedures = self.before.procedures
        return compile_app(self.text(name), file, functions=functions, procedures=procedures)

    def also(self, *others: Flow) -> Flow:
        """This and what others have built, as one app."""
        before = self.before
        for other in others:
            before = before.and_(other.before)
        return replace(self, before=before)

    def _stream(self) -> q.Source:
        if not isinstance(self.source, q.Source):
            message = "this follows a stream only: write insert_into first"
            raise TypeError(message)
        return self.source

    def _handle(self, handler: q.Handler) -> Flow:
        source = self._stream()
        if source.window is None:
            return replace(self, source=replace(source, before=(*source.before, handler)))
        return replace(self, source=replace(source, after=(*source.after, handler)))

    def _select(self, **changes: object) -> Flow:
        selection = self.selection or q.Selection()
        return replace(self, selection=replace(selection, **changes))  # type: ignore[arg-type]


class Windows:
    """Every window of the language; times are text such as "10 min", or milliseconds."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def time(self, span: str | int) -> Flow:
        return self._add("time", duration(span))

    def length(self, count: int) -> Flow:
        return self._add("length", value(count))

    def length_batch(self, count: int) -> Flow:
        return self._add("lengthBatch", value(count))

    def time_batch(self, span: str | int) -> Flow:
        return self._add("timeBatch", duration(span))

    def external_time(self, timestamp: str, span: str | int) -> Flow:
        return self._add("externalTime", AttrRef(timestamp), duration(span))

    def external_time_batch(self, timestamp: str, span: str | int) -> Flow:
        return self._add("externalTimeBatch", AttrRef(timestamp), duration(span))

    def time_length(self, span: str | int, count: int) -> Flow:
        return self._add("timeLength", duration(span), value(count))

    def session(self, gap: str | int, key: str = "") -> Flow:
        more = (AttrRef(key),) if key else ()
        return self._add("session", duration(gap), *more)

    def sort(self, count: int, *attributes: str) -> Flow:
        return self._add("sort", value(count), *(AttrRef(a) for a in attributes))

    def delay(self, span: str | int) -> Flow:
        return self._add("delay", duration(span))

    def batch(self) -> Flow:
        return self._add("batch")

    def expression(self, condition: str) -> Flow:
        return self._add("expression", value(condition))

    def expression_batch(self, condition: str) -> Flow:
        return self._add("expressionBatch", value(condition))

    def _add(self, name: str, *args: Expression) -> Flow:
        source = replace(self._flow._stream(), window=Call(name, tuple(args)))  # noqa: SLF001
        return replace(self._flow, source=source)


# Patterns and sequences.


@dataclass(frozen=True, slots=True)
class Repeated:
    """`every` in front of an element."""

    flow: Flow


def every(flow: Flow) -> Repeated:
    """The pattern begins again with each event that this element takes."""
    return Repeated(flow)


def pattern(*elements: Flow | Repeated, within: str | int | None = None) -> Flow:
    """One event after the other: `pattern(every(a.as_("e1")), b.as_("e2").where(...))`."""
    return _states("pattern", elements, within)


def sequence(*elements: Flow | Repeated, within: str | int | None = None) -> Flow:
    """As a pattern, with no other event in between."""
    return _states("sequence", elements, within)


def _states(kind: str, elements: Iterable[Flow | Repeated], within: str | int | None) -> Flow:
    states: list[q.State] = []
    before = Before()
    for element in elements:
        flow = element.flow if isinstance(element, Repeated) else element
        source = flow._stream()  # noqa: SLF001
        state: q.State = q.Element(replace(source, alias=""), source.alias)
        states.append(q.Every(state) if isinstance(element, Repeated) else state)
        before = before.and_(flow.before)
    bound = duration(within) if within is not None else None
    return Flow(q.StateInput(kind, q.Chain(tuple(states)), bound), before)


def _names(source: q.QueryInput) -> list[q.Name]:
    match source:
        case q.Source():
            sources = [source]
        case q.Join():
            sources = [source.left, source.right]
        case q.StateInput():
            sources = [e.source for e in _elements(source.state)]
    names = [s.stream for s in sources if isinstance(s.stream, q.Name)]
    return list(dict.fromkeys(names))


def _elements(state: q.State) -> list[q.Element]:
    match state:
        case q.Element():
            return [state]
        case q.Every():
            return _elements(state.state)
        case q.Chain():
            return [e for s in state.states for e in _elements(s)]
        case _:
            return []


def _attribute(name: str) -> AttrRef:
    found = expression(name) if "." in name else AttrRef(name)
    assert isinstance(found, AttrRef)
    return found
