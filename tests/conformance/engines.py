"""What the runner asks of an engine: play an app with its steps and tell the rows.

`play(case)` gives an `Outcome`: for every query and stream of interest its current and expired
rows in order. An app that an engine does not run raises `EdgewiseError`; the case then counts as
failed, with the reason. Spark plays groups of cases: `on_spark`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import EdgewiseError
from edgewise.event.event import EventKind
from edgewise.event.types import AttrType
from edgewise.event.values import convert_value
from edgewise.lang import compile_app
from edgewise.lang.compiler import compile_query
from edgewise.plan.functions import FUNCTIONS, scalar
from edgewise.plan.nodes import App

EPOCH = 1599998400000  # the virtual start of every app
UNTYPED = "their events or rows are not of the types their streams declare; no log holds those"

Case = dict[str, Any]
Kinds = list[str | None]


def _fault() -> int:
    raise RuntimeError("this function always fails")


# The functions that the original's suite brings along for its own tests.
EXTENDED = FUNCTIONS.with_(
    scalar("custom:fault", returns=lambda _args: AttrType.LONG, python=_fault, takes_null=True)
)


@dataclass(slots=True)
class Rows:
    """Rows of one query (current and expired apart), of one stream or answer (all `current`).

    `current_at` and `expired_at` are the moments they came, in ms of the virtual clock; None
    where the engine does not tell. An answer without rows is None.
    """

    current: list[list[Any]] | None = field(default_factory=list)
    expired: list[list[Any]] = field(default_factory=list)
    current_at: list[int] | None = None
    expired_at: list[int] | None = None
    kinds: Kinds = field(default_factory=list)

    def add(self, row: list[Any], kind: EventKind, at_ms: int) -> None:
        if self.current is None or self.current_at is None or self.expired_at is None:
            self.current, self.current_at, self.expired_at = [], [], []
        if kind is EventKind.EXPIRED:
            self.expired.append(row)
            self.expired_at.append(at_ms)
        else:
            self.current.append(row)
            self.current_at.append(at_ms)


@dataclass(slots=True)
class Outcome:
    queries: dict[str, Rows] = field(default_factory=dict)
    streams: dict[str, Rows] = field(default_factory=dict)
    answers: list[Rows] = field(default_factory=list)

    def sorted_lists(self, sort: Callable[[list[Any]], list[Any]]) -> Outcome:
        """The same outcome, each row as `sort` gives it."""
        for rows in (*self.queries.values(), *self.streams.values()):
            rows.current = None if rows.current is None else [sort(r) for r in rows.current]
            rows.expired = [sort(r) for r in rows.expired]
        return self

    def of(self, kind: str, name: str) -> Rows:
        return (self.queries if kind == "query" else self.streams).get(name, Rows())


# The original's suite sets the zone of days by a property of the engine; the id names it.
ZONES = {"SGTTimeZone": "@app:timezone('Asia/Singapore') "}


def play_embedded(case: Case) -> Outcome:
    zone = next((head for mark, head in ZONES.items() if mark in case["id"]), "")
    app = compile_app(zone + case["app"], functions=EXTENDED).app
    native = case["clock"] == "playback_native"
    start = None if native else EPOCH
    taps = [q.name for q in app.queries]
    engine = InMemoryEngine(app, taps, start, as_sent=_is_loose(case, app))
    idle, increment = _idle(case["app"])
    watched = [case["asserted_stream_or_query"] or {}, *(case.get("other_outputs") or ())]
    outcome = _empty(app, {w["name"] for w in watched if w.get("type") == "stream"})
    now = EPOCH
    for step in case["steps"]:
        if "sleep_ms" in step:
            now += step["sleep_ms"]
            if not native:
                engine.advance(now)
            elif idle:
                engine.advance(engine.clock + step["sleep_ms"] // idle * increment)
        elif "query" in step:
            outcome.answers.append(_ask(engine, step["query"]))
        else:
            _send(engine, step, now, outcome, native=native)
        _collect(engine, outcome)
    return outcome


def _is_loose(case: Case, app: App) -> bool:
    """Whether it sends what its streams do not declare: values of other types, or other widths.

    A double sent for a float looks like a float in the case; its result is recorded as a double.
    """
    if _is_misfit(case, app):
        return True
    asserted = case["asserted_stream_or_query"] or {}
    declared = _empty(app, {asserted.get("name", "")}).of(
        asserted.get("type", ""), asserted.get("name", "")
    )
    seen = case.get("expected_types") or declared.kinds
    return ("float", "double") in zip(declared.kinds, seen, strict=False)


def _is_misfit(case: Case, app: App) -> bool:
    """Whether a log cannot hold what it sends."""
    for step in case["steps"]:
        stream = step.get("send") or step.get("send_batch")
        if stream is None:
            continue
        kinds = [a.type for a in app.stream(stream).schema.attributes]
        for event in step["events"] if "send_batch" in step else [step["data"]]:
            if len(event) != len(kinds) or not all(map(_fits, event, kinds)):
                return True
    return False


def _fits(value: Any, kind: AttrType) -> bool:
    try:
        convert_value(value, kind)
    except ValueError:
        return False
    return True


def _empty(app: App, streams: set[str]) -> Outcome:
    outcome = Outcome()
    for query in app.queries:
        kinds = [_kind(item.expr.type) for item in query.select.items]
        outcome.queries[query.name] = Rows(kinds=kinds)
    schemas = [*(s.schema for s in app.streams), *(w.schema for w in app.windows)]
    for schema in schemas:
        if schema.name in streams:
            kinds = [_kind(a.type) for a in schema.attributes]
            outcome.streams[schema.name] = Rows(kinds=kinds)
    return outcome


def _kind(wanted: AttrType) -> str | None:
    return None if wanted is AttrType.OBJECT else wanted.value


def _idle(app: str) -> tuple[int, int]:
    """`@app:playback(idle.time=.., increment=..)`: the driver moves time when nothing comes."""
    units = {"millisec": 1, "sec": 1000, "min": 60_000}
    found = []
    for key in ("idle.time", "increment"):
        match = re.search(re.escape(key) + r"\s*=\s*'(\d+)\s*(millisec|sec|min)", app)
        found.append(int(match[1]) * units[match[2]] if match else 0)
    return found[0], found[1]


def _send(engine: InMemoryEngine, step: Case, now: int, outcome: Outcome, *, native: bool) -> None:
    stream = step.get("send") or step["send_batch"]
    events = step["events"] if "send_batch" in step else [step["data"]]
    stamps = step.get("timestamps") or [_stamp(step, now)] * len(events)
    clock = None if native else now
    if "send_batch" in step:
        engine.send_chunk(stream, list(zip(stamps, events, strict=True)), clock=clock)
    else:
        engine.send(stream, stamps[0], events[0], clock=clock)
    if stream in outcome.streams:
        for event in events:
            row = engine.convert_row(stream, event)
            outcome.streams[stream].add(row, EventKind.CURRENT, now - EPOCH)


def _stamp(step: Case, now: int) -> int:
    if "timestamp" in step:
        return int(step["timestamp"])
    return now + int(step.get("timestamp_offset_ms", 0))


def _ask(engine: InMemoryEngine, text: str) -> Rows:
    try:
        query = compile_query(text, engine.app)
        rows = engine.query(query)
    except EdgewiseError:
        return Rows(None)  # refused, as the case expects where it holds null
    kinds = [_kind(item.expr.type) for item in query.select.items]
    there = rows or query.output is not None
    return Rows([list(row) for row in rows] if there else None, kinds=kinds)


def _collect(engine: InMemoryEngine, outcome: Outcome) -> None:
    for row in engine.kernel.take():
        if row.stream.startswith("@"):
            rows, kind = outcome.queries[row.stream[1:]], row.kind
        else:
            rows, kind = outcome.streams.setdefault(row.stream, Rows()), EventKind.CURRENT
        rows.add(list(row.data), kind, row.clock - EPOCH)
