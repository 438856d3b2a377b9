"""Run an app inside this process: text or plan in, events in, rows out. No server, no Spark.

This is the embedded engine with hands for people: it takes events as tuples or dicts, checks each
value against its attribute, and gives the rows of every call back as a list. Time is data here as
everywhere: an event comes at its `ts`, or at the app's time now, and nothing reads a clock. Used
by library users (`edgewise.App`) and by `Flow.run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.engines.embedded.in_memory import InMemoryEngine
from edgewise.errors import BadEvent, SetupError
from edgewise.event.event import Event
from edgewise.event.schema import Schema
from edgewise.event.values import convert_row
from edgewise.lang.compiler import NO_VARIABLES, compile_app, compile_query
from edgewise.lang.fluent.rows import Rows
from edgewise.plan.nodes import App as Plan
from edgewise.plan.picture import explain_svg


class App:
    """An app, running in memory.

    >>> app = edgewise.App('''
    ...     define stream Sales (item string, price double);
    ...     from Sales select item, sum(price) as total group by item insert into Totals;
    ... ''')
    >>> app.send("Sales", ("tea", 2.5)).data()
    [('tea', 2.5)]
    >>> app.send("Sales", {"item": "tea", "price": 1.0}, ts=1000).dicts()
    [{'item': 'tea', 'total': 3.5}]

    `functions` are functions, aggregates and procedures of one's own; `variables` the values of
    `${NAME}` in the text; `start` the time at which the app begins, in milliseconds. AppError with
    every problem of the text, where it has some.
    """

    def __init__(
        self,
        text: str | Plan,
        *,
        functions: Iterable[object] = (),
        variables: Mapping[str, str] = NO_VARIABLES,
        start: int | None = None,
    ) -> None:
        self._functions = tuple(functions)
        if isinstance(text, str):
            text = compile_app(text, "<app>", variables, self._functions).app
        self.plan: Plan = text
        self._engine = InMemoryEngine(text, start=start)
        self._inputs = {s.name: s.schema for s in text.streams}
        self._outputs = {s.name: s.schema for s in text.outputs}
        self._sent = 0

    @property
    def now(self) -> int:
        """The app's time: the largest that an event or `advance` brought."""
        return max(0, self._engine.clock)

    def send(self, stream: str, events: Any, *, ts: int | None = None) -> Rows:
        """One event, a tuple or a dict, or a list of them; the rows that they brought.

        Without `ts` they come at the app's time now. BadEvent where a value does not fit.
        """
        schema = self._schema(stream)
        for event in events if isinstance(events, list) else [events]:
            self._send_one(schema, event, self.now if ts is None else ts)
        return self._take()

    def run(self, events: Iterable[Any], *, stream: str = "", time: str = "") -> Rows:
        """Many events of one stream, or `Event`s of any; the rows of all of them.

        `stream` may be left out where the app reads one stream only. `time` names the attribute
        that carries the event time in milliseconds; without it they come at the app's time.
        """
        schema: Schema | None = None
        for event in events:
            if isinstance(event, Event):
                self._send_one(self._schema(event.stream), event.data, event.ts)
                continue
            schema = schema or self._schema(stream or self._only_input())
            self._send_one(schema, event, None if time else self.now, time)
        return self._take()

    def advance(self, ts: int) -> Rows:
        """Time passes without an event; the rows of timers that were due."""
        self._engine.advance(ts)
        return self._take()

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """One on-demand query against what the app holds: `from Table select ...`."""
        asked = compile_query(text, self.plan, functions=self._functions)
        return self._engine.query(asked)

    def __repr__(self) -> str:
        reads = ", ".join(str(s.schema.name) for s in self.plan.inputs) or "nothing"
        writes = ", ".join(self._outputs) or "nothing"
        return f"App({self.plan.name!r}: reads {reads}; writes {writes})"

    def _repr_html_(self) -> str:
        return explain_svg(self.plan)

    def _send_one(self, schema: Schema, event: Any, ts: int | None, time: str = "") -> None:
        self._sent += 1
        row = convert_row(_unbox(event), schema, self._sent)
        if ts is None:
            ts = row[_place(schema, time)]
            if type(ts) is not int:
                raise BadEvent("a time is a whole number", index=self._sent, field=time)
        self._engine.send(schema.name, ts, row)

    def _take(self) -> Rows:
        rows = (row for row in self._engine.take() if row.stream in self._outputs)
        return Rows(rows, self._outputs)

    def _schema(self, stream: str) -> Schema:
        if stream not in self._inputs:
            known = ", ".join(s.name for s in self.plan.inputs)
            raise SetupError(f"the app has no stream '{stream}'; it reads {known}")
        return self._inputs[stream]

    def _only_input(self) -> str:
        names = [s.name for s in self.plan.inputs]
        if len(names) != 1:
            known = ", ".join(names) or "no stream"
            raise SetupError(f"the app reads {known}: say stream='...', or send Events")
        return names[0]


def _unbox(event: Any) -> Any:
    """Values of numpy, as rows of a frame have them, as Python's own."""
    if isinstance(event, dict):
        return {name: _unbox_value(value) for name, value in event.items()}
    return tuple([_unbox_value(v) for v in event]) if isinstance(event, tuple) else event


def _unbox_value(value: Any) -> Any:
    return value.item() if type(value).__module__ == "numpy" else value


def _place(schema: Schema, name: str) -> int:
    index = schema.index(name)
    if index < 0:
        known = ", ".join(schema.names)
        raise SetupError(f"time='{name}': {schema.name} has no such attribute; it has {known}")
    return index
