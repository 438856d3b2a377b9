"""Classify what each query gives when its input is replayed; decides which recovery it can keep.

Kernels take time and even UUIDs from the event, so what we run is deterministic by construction.
What can break that is code we did not write. What forgets is better than that: it needs no state
to come back to the same rows. The file `event/repeat_level.py` has the scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from edgewise.event.repeat_level import RepeatLevel
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
from edgewise.plan.rules.keys import has_aggregates

# Windows whose content is only what came lately. Batches are not among them: where a batch
# begins depends on the first event ever seen.
FORGETTING_WINDOWS = frozenset(
    {"length", "time", "externaltime", "timelength", "session", "delay"}
)
ENDLESS_AGGREGATES = frozenset({"minforever", "maxforever"})


@dataclass(frozen=True, slots=True)
class Repeatability:
    """`why` names what decides, '' where nothing stands in the way."""

    level: RepeatLevel
    why: str = ""


BEST = Repeatability(RepeatLevel.REPEATABLE)


def _is_ours(agg: Agg) -> bool:
    """Whether its body is the one of the table of functions."""
    row = FUNCTIONS.get(agg.name)
    return row is not None and row.body is agg.body


def _is_foreign(call: Call, scripts: set[str]) -> bool:
    """Is it code of the user that is not declared deterministic?"""
    own = call.name not in FUNCTIONS or call.name.lower() in scripts
    return own and not call.deterministic


def classify_query(app: App, query: Query) -> Repeatability:
    """By the operators of the query alone."""
    scripts = {f.name.lower() for f in app.functions}
    for node in _walk_plan(query):
        if isinstance(node, Call) and _is_foreign(node, scripts):
            return Repeatability(
                RepeatLevel.ARBITRARY, f"function {node.name} is not ours to foresee"
            )
        if isinstance(node, Agg) and node.body is not None and not _is_ours(node):
            return Repeatability(
                RepeatLevel.ARBITRARY, f"aggregate {node.name} is not ours to foresee"
            )
        if isinstance(node, StreamCall) and not getattr(node.procedure, "deterministic", True):
            return Repeatability(
                RepeatLevel.ARBITRARY, f"procedure {node.name} is not ours to foresee"
            )
    endless = _explain_endless_state(app, query)
    if endless:
        return Repeatability(RepeatLevel.DETERMINISTIC, endless)
    if isinstance(query.input, StreamInput) and query.input.window is None:
        return BEST
    return Repeatability(RepeatLevel.CONVERGENT, "it holds recent events")


def classify_queries(app: App) -> dict[str, Repeatability]:
    """By name of query, with everything upstream: no row is better than what it is made from."""
    found = {q.name: classify_query(app, q) for q in app.queries}
    streams: dict[str, Repeatability] = {}
    for _ in app.queries:  # a chain has at most as many links as there are queries
        before = dict(found)
        for query in app.queries:
            read = [streams.get(name, BEST) for name in streams_of(query.input)]
            worst = min((found[query.name], *read), key=_repeat_level)
            found[query.name] = worst
            if isinstance(query.output, InsertInto):
                target = query.output.target
                streams[target] = min(streams.get(target, BEST), worst, key=_repeat_level)
        if found == before:
            break
    return found


def _repeat_level(repeats: Repeatability) -> RepeatLevel:
    return repeats.level


def _explain_endless_state(app: App, query: Query) -> str:
    stores = {t.name for t in app.tables} | {w.name for w in app.windows}
    stores |= {a.name for a in app.aggregations}
    for name in streams_of(query.input):
        if name in stores:
            return f"'{name}' has a past of its own"
    if query.rate is not None:
        return "an output rate counts from the start"
    for node in _walk_plan(query):
        if isinstance(node, Window) and node.name.lower() not in FORGETTING_WINDOWS:
            return f"window {node.name} depends on where it began"
        if isinstance(node, Agg) and node.name.lower() in ENDLESS_AGGREGATES:
            return f"{node.name} never forgets"
    return _explain_unbounded_input(query)


def _explain_unbounded_input(query: Query) -> str:
    match query.input:
        case StreamInput(window=None) if has_aggregates(query):
            return "an aggregate without a window never forgets"
        case StateInput(within_ms=None):
            return "a pattern without 'within' never forgets"
        case StateInput(state=state) if not _restarts(state):
            return "a pattern without 'every' matches once and never again"
        case _:
            return ""


def _restarts(state: object) -> bool:
    return any(isinstance(node, EveryState) for node in _walk_plan(state))


def _walk_plan(node: object) -> Iterator[object]:
    """A plan node and every node and expression below it."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, tuple):
            pending.extend(at)
        elif dataclasses.is_dataclass(at):
            yield at
            pending.extend(getattr(at, f.name) for f in dataclasses.fields(at))
