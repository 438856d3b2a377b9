"""Compare the recovery that sinks declare with what their sources, queries and types can keep.

The plan knows how a query behaves when it reads its events again, the gateway how a source or sink
delivers, and `ha.recovery_matrix` what each kind of recovery needs; the node brings them together.
Used by `check` and `explain`, and by `processes.engine_start`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgewise.errors import EdgewiseError, Problem
from edgewise.ha.recovery import STATEMENTS, SYNONYMS, Recovery
from edgewise.ha.recovery_matrix import (
    DELIVERIES,
    ONCE,
    SinkEnd,
    choose_default,
    explain_refusal,
    find_source_limits,
)
from edgewise.plan.nodes import Annotation, App, InsertInto, Query, Stream, streams_of
from edgewise.plan.rules.repeatability import Repeatability, classify_queries

TOPIC = "topic"
_KNOWN = {kind.value: kind for kind in Recovery} | dict(SYNONYMS)


@dataclass(frozen=True, slots=True)
class DeclaredSink:
    """A sink of a stream; `kind` is None where it declares no recovery, or no known one."""

    end: SinkEnd
    kind: Recovery | None


def describe_recovery(app: App) -> dict[str, tuple[str, ...]]:
    """For `explain`, by query: how it recovers, and what each of its sinks keeps."""
    found = classify_queries(app)
    return {q.name: tuple(_describe(app, q, found[q.name])) for q in app.queries}


def find_recovery_errors(app: App) -> tuple[Problem, ...]:
    """For `check`: sinks that declare more than their queries or they themselves can keep; and
    as warnings, sources that weaken what is declared.
    """
    found = classify_queries(app)
    return tuple(_find_unknown_words(app)) + tuple(
        problem
        for query in app.queries
        for sink in _sinks_of(app, query)
        if sink.kind is not None
        for problem in _check_sink(app, query, found[query.name], sink, sink.kind)
    )


def _find_unknown_words(app: App) -> Iterator[Problem]:
    """Of sinks of the gateway; the edge checks the options of a topic."""
    for query in app.queries:
        for stream in app.streams:
            if stream.name != query.output.target:
                continue
            for sink in stream.annotated("sink"):
                word = sink.get("recovery") or ""
                if word and word.lower() not in _KNOWN and sink.get("type") != TOPIC:
                    known = ", ".join(_KNOWN)
                    yield Problem(query.span, f"recovery='{word}': use one of {known}")


def _check_sink(
    app: App, query: Query, found: Repeatability, sink: DeclaredSink, kind: Recovery
) -> Iterator[Problem]:
    if reason := explain_refusal(kind, found.level, sink.end):
        why = f" ({found.why})" if found.level < STATEMENTS[kind].needs else ""
        yield Problem(query.span, f"{reason}{why}")
        return
    for limit in find_source_limits(kind, _sources_of(app, query)):
        yield Problem(
            query.span,
            f"recovery 'precise' holds from the log on: {limit}",
            "declare delivery='effectively-once' or dedup='...' where the source has it",
            "warning",
        )


def read_recovery(app: App) -> dict[str, tuple[Recovery, ...]]:
    """The kinds that the sinks of each stream declare, by name of the stream."""
    return {
        stream.name: tuple(
            _KNOWN[word]
            for sink in stream.annotated("sink")
            if (word := (sink.get("recovery") or "").lower()) in _KNOWN
        )
        for stream in app.streams
    }


def _describe(app: App, query: Query, found: Repeatability) -> Iterator[str]:
    why = f": {found.why}" if found.why else ""
    yield f"on replay it is {found.level.name.lower()}{why}"
    for sink in _sinks_of(app, query):
        kind = sink.kind or choose_default(found.level, sink.end.delivery)
        if sink.kind is None and sink.end.type == TOPIC:
            kind = Recovery.GAP  # a client that was away gets the current value
        word = "recovery" if sink.kind else "recovery, by default,"
        yield f"sink {sink.end.type}, {sink.end.delivery}: {word} {kind.value}"
        yield f"recovery {kind.value}: {STATEMENTS[kind].rows}"
        for limit in find_source_limits(kind, _sources_of(app, query)):
            yield f"before the log: {limit}"


def _sinks_of(app: App, query: Query) -> Iterator[DeclaredSink]:
    if not isinstance(query.output, InsertInto):
        return
    for stream in app.streams:
        if stream.name == query.output.target:
            for annotation in stream.annotated("sink"):
                end = _read_end(stream, annotation)
                if end is not None:
                    word = (annotation.get("recovery") or "").lower()
                    yield DeclaredSink(end, _KNOWN.get(word))


def _read_end(stream: Stream, annotation: Annotation) -> SinkEnd | None:
    """None for a sink that cannot work: `source_sink_errors` reports it."""
    kind = annotation.get("type") or ""
    if kind == TOPIC:  # a client that resumes gets each row once, from the log
        return SinkEnd(TOPIC, ONCE)
    from edgewise.gateway.connectors import find_sink_type, parse_sink

    try:
        spec = parse_sink(stream.name, annotation)
        if spec.unconnected:
            return None
        possible = tuple(g.value for g in find_sink_type(spec.type).guarantees)
    except EdgewiseError:
        return None
    return SinkEnd(spec.type, spec.options["delivery"], possible)


def _sources_of(app: App, query: Query) -> Iterator[tuple[str, str]]:
    """Type and delivery of every source whose events reach the query."""
    from edgewise.gateway.connectors import parse_source

    reached = _find_upstream(app, query)
    for stream in app.inputs:
        for annotation in stream.annotated("source") if stream.name in reached else ():
            try:
                delivery = parse_source(stream.name, annotation).options.get("delivery", "")
            except EdgewiseError:
                continue  # `source_sink_errors` reports it
            if delivery in DELIVERIES:
                yield annotation.get("type") or "", delivery


def _find_upstream(app: App, query: Query) -> set[str]:
    reached = set(streams_of(query.input))
    for _ in app.queries:  # a chain has at most as many links as there are queries
        before = len(reached)
        for each in app.queries:
            if each.output.target in reached:
                reached |= set(streams_of(each.input))
        if len(reached) == before:
            break
    return reached
