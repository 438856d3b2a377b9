"""How each query answers when it is fed again; decides which recovery it may promise.

Kernels take time and even UUIDs from the event, so what we run is deterministic by construction.
What can break that is code we did not write. What forgets is better than that: it needs no state
to come back to the same rows. The file `event/repeat.py` has the scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from edgewise.event.repeat import Repeat
from edgewise.plan.exprs import Agg, Call
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.nodes import (
    App,
    EveryState,
    InsertInto,
    Query,
    StateInput,
    StreamCall,
    StreamInput,
    Window,
    streams_of,
)
from edgewise.plan.rules.keys import aggregates

# Windows whose content is only what came lately. Batches are not among them: where a batch
# begins depends on the first event ever seen.
FORGETTING_WINDOWS = frozenset(
    {"length", "time", "externaltime", "timelength", "session", "delay"}
)
ENDLESS_AGGREGATES = frozenset({"minforever", "maxforever"})


@dataclass(frozen=True, slots=True)
class Repeats:
    """`why` names what decides, '' where nothing stands in the way."""

    level: Repeat
    why: str = ""


BEST = Repeats(Repeat.REPEATABLE)


def own_repeats(app: App, query: Query) -> Repeats:
    """By the operators of the query alone."""
    scripts = {f.name.lower() for f in app.functions}
    for node in _inside(query):
        if isinstance(node, Call) and (node.name not in FUNCTIONS or node.name.lower() in scripts):
            return Repeats(Repeat.ARBITRARY, f"function {node.name} is not ours to foresee")
        if isinstance(node, StreamCall) and node.procedure is not None:
            return Repeats(Repeat.ARBITRARY, f"procedure {node.name} is not ours to foresee")
    endless = _never_forgets(app, query)
    if endless:
        return Repeats(Repeat.DETERMINISTIC, endless)
    if isinstance(query.input, StreamInput) and query.input.window is None:
        return BEST
    return Repeats(Repeat.CONVERGENT, "it holds recent events")


def repeats(app: App) -> dict[str, Repeats]:
    """By name of query, with everything upstream: no row is better than what it is made from."""
    found = {q.name: own_repeats(app, q) for q in app.queries}
    streams: dict[str, Repeats] = {}
    for _ in app.queries:  # a chain has at most as many links as there are queries
        before = dict(found)
        for query in app.queries:
            read = [streams.get(name, BEST) for name in streams_of(query.input)]
            worst = min((found[query.name], *read), key=_level)
            found[query.name] = worst
            if isinstance(query.output, InsertInto):
                target = query.output.target
                streams[target] = min(streams.get(target, BEST), worst, key=_level)
        if found == before:
            break
    return found


def _level(repeats: Repeats) -> Repeat:
    return repeats.level


def _never_forgets(app: App, query: Query) -> str:
    stores = {t.name for t in app.tables} | {w.name for w in app.windows}
    stores |= {a.name for a in app.aggregations}
    for name in streams_of(query.input):
        if name in stores:
            return f"'{name}' has a past of its own"
    if query.rate is not None:
        return "an output rate counts from the start"
    for node in _inside(query):
        if isinstance(node, Window) and node.name.lower() not in FORGETTING_WINDOWS:
            return f"window {node.name} depends on where it began"
        if isinstance(node, Agg) and node.name.lower() in ENDLESS_AGGREGATES:
            return f"{node.name} never forgets"
    return _unbounded(query)


def _unbounded(query: Query) -> str:
    match query.input:
        case StreamInput(window=None) if aggregates(query):
            return "an aggregate without a window never forgets"
        case StateInput(within_ms=None):
            return "a pattern without 'within' never forgets"
        case StateInput(state=state) if not _starts_anew(state):
            return "a pattern without 'every' matches once and never again"
        case _:
            return ""


def _starts_anew(state: object) -> bool:
    return any(isinstance(node, EveryState) for node in _inside(state))


def _inside(node: object) -> Iterator[object]:
    """A plan node and every node and expression below it."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, tuple):
            pending.extend(at)
        elif dataclasses.is_dataclass(at):
            yield at
            pending.extend(getattr(at, f.name) for f in dataclasses.fields(at))
