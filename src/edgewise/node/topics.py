"""`@sink(type='topic', ...)` as a checked value: its options, and a merge that keeps its word."""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.edge.merge import Merge, Merges
from edgewise.edge.sink import TopicSink
from edgewise.plan.nodes import Annotation


def options(annotation: Annotation) -> dict[str, str]:
    """The pairs of an annotation as plain options; keys are case-insensitive."""
    return {key.lower(): value for key, value in annotation.pairs if key}


def topic_sink(annotation: Annotation, own: Iterable[Merge] = ()) -> TopicSink:
    """SetupError or ProtocolError where it cannot be kept; `own` are merges of the user."""
    sink = TopicSink.of(options(annotation))
    if sink.policy.conflate.startswith("merge"):
        from edgewise.node.merges import register_aggregates  # brings numpy along

        register_aggregates(Merges(), own).place(sink.policy.conflate, sink.policy.recovery)
    return sink
