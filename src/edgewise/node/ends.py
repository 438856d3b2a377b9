"""The ends of an app: its `@source` and `@sink` annotations as doors and topics, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.edge.merge import Merges
from edgewise.edge.sink import TopicSink
from edgewise.gateway.doors import sink_of, source_of
from edgewise.gateway.spec import Dedup, SinkSpec, SourceSpec, dedup_by_stream
from edgewise.node.apps import options
from edgewise.node.merges import register_aggregates
from edgewise.plan.nodes import App


def _topic(given: Mapping[str, str]) -> TopicSink:
    sink = TopicSink.of(given)
    register_aggregates(Merges()).place(sink.policy.conflate, sink.policy.recovery)
    return sink


@dataclass(frozen=True, slots=True)
class Ends:
    """`topics` go to the edge; `sources` and `sinks` to the gateway, HTTP among the sources."""

    sources: tuple[SourceSpec, ...]
    sinks: tuple[SinkSpec, ...]
    topics: tuple[tuple[str, TopicSink], ...]
    dedup: Mapping[str, Dedup]  # by stream

    @classmethod
    def of(cls, app: App) -> Ends:
        """BadSpec or SetupError where an annotation cannot be kept."""
        found = [(s, a) for s in app.streams for a in s.annotated("sink")]
        sources = tuple(
            source_of(s.name, a, s.schema) for s in app.inputs for a in s.annotated("source")
        )
        return cls(
            sources=sources,
            sinks=tuple(
                sink_of(s.name, a, s.schema) for s, a in found if a.get("type") != "topic"
            ),
            topics=tuple(
                (s.name, _topic(options(a))) for s, a in found if a.get("type") == "topic"
            ),
            dedup=dedup_by_stream(sources),
        )
