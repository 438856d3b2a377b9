"""The ends of an app: its `@source` and `@sink` annotations as doors and topics, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgewise.edge.merge import Merge
from edgewise.edge.sink import TopicSink
from edgewise.gateway.doors import sink_of, source_of
from edgewise.gateway.spec import Dedup, SinkSpec, SourceSpec, dedup_by_stream
from edgewise.node.topics import topic_sink
from edgewise.plan.nodes import App


@dataclass(frozen=True, slots=True)
class Ends:
    """`topics` go to the edge; `sources` and `sinks` to the gateway, HTTP among the sources."""

    sources: tuple[SourceSpec, ...]
    sinks: tuple[SinkSpec, ...]
    topics: tuple[tuple[str, TopicSink], ...]
    dedup: Mapping[str, Dedup]  # by stream

    @classmethod
    def of(cls, app: App, merges: Iterable[Merge] = ()) -> Ends:
        """BadSpec or SetupError where an annotation cannot be kept; `merges` are those added."""
        own = tuple(merges)
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
                (s.name, topic_sink(a, own)) for s, a in found if a.get("type") == "topic"
            ),
            dedup=dedup_by_stream(sources),
        )
