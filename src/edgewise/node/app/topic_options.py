"""Parse `@sink(type='topic', ...)` and check its options and its merge.

A module of its own, because it loads the edge: `check` needs it only for apps with topics. Used by
`sources_sinks` and `source_sink_errors`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from edgewise.edge.topics.merges import Merge, MergeRegistry
from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.errors import SetupError
from edgewise.plan.nodes import Annotation

OPTIONS = (
    "type", "path", "conflate", "recovery", "ttl", "stale", "kind", "key", "keep", "body",
    "expired", "weight",
)  # fmt: skip


def read_options(annotation: Annotation) -> dict[str, str]:
    """The pairs of an annotation; keys are case-insensitive."""
    return {key.lower(): value for key, value in annotation.pairs if key}


def parse_topic_sink(annotation: Annotation, own: Iterable[Merge] = ()) -> TopicSink:
    """SetupError or ProtocolError where it cannot work; `own` are the user's merges."""
    options = read_options(annotation)
    for name, value in options.items():
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(OPTIONS)}"
            raise SetupError(f"{name}='{value}': a topic has no such option; {hint}")
    sink = TopicSink.parse(options)
    if sink.policy.conflate.startswith("merge"):
        from edgewise.node.app.declared_merges import register_aggregates  # brings numpy along

        register_aggregates(MergeRegistry(), own).validate_recovery(
            sink.policy.conflate, sink.policy.recovery
        )
    return sink
