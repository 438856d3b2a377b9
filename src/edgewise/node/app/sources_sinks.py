"""Parse the `@source` and `@sink` annotations of an app, and compare those of two versions.

Sources and sinks hold connections, and logs hold the attributes of their events; so a running node
takes another version of its app only where these stay as they are. Used by `serve` and `run`, and
by `processes.edge_only`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgewise.edge.topics.merges import Merge
from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.errors import SetupError
from edgewise.gateway.connectors import parse_sinks, parse_source
from edgewise.gateway.spec import DedupSpec, SinkSpec, SourceSpec, dedup_by_stream
from edgewise.node.app.topic_options import parse_topic_sink
from edgewise.node.app.window_topics import complete_topic_sink
from edgewise.plan.nodes import App
from edgewise.stores.spec import parse_store

RESTART = "start the node again to change that"


@dataclass(frozen=True, slots=True)
class SourcesAndSinks:
    """`topics` belong to the edge; `sources` (also HTTP) and `sinks` to the gateway."""

    sources: tuple[SourceSpec, ...]
    sinks: tuple[SinkSpec, ...]
    topics: tuple[tuple[str, TopicSink], ...]
    dedup: Mapping[str, DedupSpec]  # by stream

    @classmethod
    def parse(cls, app: App, merges: Iterable[Merge] = ()) -> SourcesAndSinks:
        """BadSpec or SetupError where one cannot work; `merges` are the user's own."""
        merges = tuple(merges)  # read once per topic
        found = [(s, a) for s in app.streams for a in s.annotated("sink")]
        sources = tuple(
            parse_source(s.name, a, s.schema) for s in app.inputs for a in s.annotated("source")
        )
        sinks = tuple(
            spec
            for s, a in found
            if a.get("type") != "topic"
            for spec in parse_sinks(s.name, a, s.schema)
        )
        _require_connected(app, sources, sinks)
        return cls(
            sources=sources,
            sinks=sinks,
            topics=tuple(
                (s.name, complete_topic_sink(app, s.name, parse_topic_sink(a, merges)))
                for s, a in found
                if a.get("type") == "topic"
            ),
            dedup=dedup_by_stream(sources),
        )


def _require_connected(app: App, sources: Iterable[SourceSpec], sinks: Iterable[SinkSpec]) -> None:
    """SetupError where a source, sink or store has no connector: such an app is only replayed."""
    for word, specs in (("source", sources), ("sink", sinks)):
        for spec in specs:
            if spec.unconnected:
                raise SetupError(
                    f"a {word} of {spec.stream} is not connected: {spec.unconnected}. "
                    "`edgewise replay` runs this app with events of a file"
                )
    for table in app.tables:
        store = parse_store(table.schema, table.annotations, table.primary_key)
        if store is not None and store.unconnected:
            raise SetupError(f"the store of {table.name} is not connected: {store.unconnected}")


def check_live_change(old: tuple[App, SourcesAndSinks], new: tuple[App, SourcesAndSinks]) -> str:
    """Why a running node cannot change from `old` to `new`; '' where it can."""
    (old_app, old_declared), (app, declared) = old, new
    if old_app.name != app.name:
        return f"the app is called '{app.name}' now, not '{old_app.name}'; {RESTART}"
    shapes = {s.name: s.schema for s in old_app.streams}
    for stream in app.streams:
        if shapes.get(stream.name, stream.schema) != stream.schema:
            return (
                f"stream '{stream.name}' has other attributes now, and its log the old ones; "
                "give it another name"
            )
    inputs = [{s.name for s in a.inputs} for a in (old_app, app)]
    if inputs[0] != inputs[1]:
        names = ", ".join(sorted(inputs[0] ^ inputs[1]))
        return f"the input streams changed ({names}); {RESTART}"
    old_parts = (old_declared.sources, old_declared.sinks, old_declared.dedup)
    if old_parts != (declared.sources, declared.sinks, declared.dedup):
        return f"a source or a sink changed; {RESTART}"
    return ""
