"""Decide from the plan what a topic does when rows leave the window of its query.

A topic shows the last row of its stream. Where that row was counted over a sliding window it is
not true for ever: rows expire, and nobody says so. The edge knows no queries, so this module reads
them once and completes the options of the sink; what the user wrote there stays.

    select        insert all events into           insert into (current rows only)
    aggregates    expired='update': an expired     stale = the length of the time window: after it
                  row has the new numbers          nothing of what was counted is left
    none          expired='remove': the row that   as written
                  is shown has left the window

`insert expired events into` is news by itself and always updates. Used by `sources_sinks`.
"""

from __future__ import annotations

from dataclasses import replace

from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.plan.exprs import Const
from edgewise.plan.nodes import App, EventType, InsertInto, Query, windows_of
from edgewise.plan.rules.keys import has_aggregates

# Sliding windows with a length in time, and which argument that is.
TIME_ARGUMENT = {"time": 0, "timeLength": 0, "externalTime": 1}


def complete_topic_sink(app: App, stream: str, sink: TopicSink) -> TopicSink:
    """The sink with `expired` and `stale` as the queries that write its stream demand."""
    writers = [
        query
        for query in app.queries
        if isinstance(query.output, InsertInto) and query.output.target == stream
    ]
    if not sink.expired:
        sink = replace(sink, expired=_choose_expired(writers))
    if not sink.policy.stale_ms and len(writers) == 1:
        stale_ms = _find_window_ms(writers[0])
        sink = replace(sink, policy=replace(sink.policy, stale_ms=stale_ms))
    return sink


def _choose_expired(writers: list[Query]) -> str:
    outputs = {
        (query.output.events, has_aggregates(query))
        for query in writers
        if isinstance(query.output, InsertInto)
    }
    if (EventType.ALL, True) in outputs or any(e is EventType.EXPIRED for e, _ in outputs):
        return "update"
    return "remove" if (EventType.ALL, False) in outputs else "ignore"


def _find_window_ms(query: Query) -> int:
    """How long what a query counted may be true after its last row; 0 where time does not tell."""
    output = query.output
    if not isinstance(output, InsertInto) or output.events is not EventType.CURRENT:
        return 0
    if not has_aggregates(query):
        return 0
    lengths = []
    for window in windows_of(query.input):
        at = TIME_ARGUMENT.get(window.name)
        argument = window.args[at] if at is not None and len(window.args) > at else None
        lengths.append(int(argument.value) if isinstance(argument, Const) else 0)
    return lengths[0] if len(lengths) == 1 else 0
