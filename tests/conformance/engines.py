"""What the runner asks of an engine: play an app with its steps and tell the rows.

`play(case)` gives an `Outcome`: for every query and stream of interest its current and expired
rows in order. To plug an engine in, add a function to ENGINES. An app that an engine does not run
raises `EdgewiseError`; the case then counts as failed, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.embedded import Embedded
from edgewise.errors import EdgewiseError
from edgewise.event.event import Kind
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.lang.compiler import compile_query
from edgewise.plan.functions import FUNCTIONS, scalar

EPOCH = 1599998400000  # the virtual start of every app

Case = dict[str, Any]


def _fault() -> int:
    raise RuntimeError("this function always fails")


# The functions that the original's suite brings along for its own tests.
EXTENDED = FUNCTIONS.with_(
    scalar("custom:fault", returns=lambda _args: AttrType.LONG, python=_fault, takes_null=True)
)


@dataclass(slots=True)
class Rows:
    """Rows of one query (current and expired apart) or of one stream (all in `current`)."""

    current: list[list[Any]] = field(default_factory=list)
    expired: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    queries: dict[str, Rows] = field(default_factory=dict)
    streams: dict[str, Rows] = field(default_factory=dict)
    answers: list[list[list[Any]] | None] = field(default_factory=list)

    def of(self, kind: str, name: str) -> Rows:
        return (self.queries if kind == "query" else self.streams).get(name, Rows())


def play_embedded(case: Case) -> Outcome:
    app = compile_app(case["app"], functions=EXTENDED).app
    native = case["clock"] == "playback_native"
    engine = Embedded(app, taps=[q.name for q in app.queries], start=None if native else EPOCH)
    idle, increment = _idle(case["app"])
    watched = [case["asserted_stream_or_query"] or {}, *(case.get("other_outputs") or ())]
    streams = {w["name"] for w in watched if w.get("type") == "stream"}
    outcome = Outcome()
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
            _send(engine, step, now, native=native)
        _collect(engine, outcome)
        stream = step.get("send") or step.get("send_batch")
        if stream in streams:
            sent = step["events"] if "send_batch" in step else [step["data"]]
            outcome.streams.setdefault(stream, Rows()).current += sent
    return outcome


def _idle(app: str) -> tuple[int, int]:
    """`@app:playback(idle.time=.., increment=..)`: the driver moves time when nothing comes."""
    units = {"millisec": 1, "sec": 1000, "min": 60_000}
    found = []
    for key in ("idle.time", "increment"):
        match = re.search(re.escape(key) + r"\s*=\s*'(\d+)\s*(millisec|sec|min)", app)
        found.append(int(match[1]) * units[match[2]] if match else 0)
    return found[0], found[1]


def _send(engine: Embedded, step: Case, now: int, *, native: bool) -> None:
    stream = step.get("send") or step["send_batch"]
    events = step["events"] if "send_batch" in step else [step["data"]]
    width = len(engine.app.stream(stream).schema.attributes)
    events = [
        (event + [None] * width)[:width] for event in events
    ]  # as the tests' arrays are read
    stamps = step.get("timestamps") or [_stamp(step, now)] * len(events)
    clock = None if native else now
    if "send_batch" in step:
        engine.send_chunk(stream, list(zip(stamps, events, strict=True)), clock=clock)
    else:
        engine.send(stream, stamps[0], events[0], clock=clock)


def _stamp(step: Case, now: int) -> int:
    if "timestamp" in step:
        return int(step["timestamp"])
    return now + int(step.get("timestamp_offset_ms", 0))


def _ask(engine: Embedded, text: str) -> list[list[Any]] | None:
    try:
        query = compile_query(text, engine.app)
        rows = engine.query(query)
    except EdgewiseError:
        return None  # refused, as the case expects where it holds null
    return [list(row) for row in rows] if rows or query.output is not None else None


def _collect(engine: Embedded, outcome: Outcome) -> None:
    for event in engine.take():
        if event.stream.startswith("@"):
            rows = outcome.queries.setdefault(event.stream[1:], Rows())
            kept = rows.current if event.kind is Kind.CURRENT else rows.expired
        else:
            kept = outcome.streams.setdefault(event.stream, Rows()).current
        kept.append(list(event.data))


def play_spark(case: Case) -> Outcome:
    from tests.conformance.on_spark import play

    return play(case, "stream")


def play_batch(case: Case) -> Outcome:
    from tests.conformance.on_spark import play

    return play(case, "batch")


ENGINES: dict[str, Callable[[Case], Outcome]] = {
    "embedded": play_embedded,
    "spark": play_spark,
    "batch": play_batch,
}
