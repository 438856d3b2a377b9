"""Describe an app for the topic `$sys/app`: its name, its engine, and its topic sinks.

Pages are built from it: the path, the kind and the attributes of each sink say what there is to
show. Used by `serve` and by `processes.edge_only`.
"""

from __future__ import annotations

from typing import Any

from edgewise.node.app.sources_sinks import SourcesAndSinks
from edgewise.plan.nodes import App

APP_TOPIC = "$sys/app"


def describe_app(app: App, declared: SourcesAndSinks, engine: str) -> dict[str, Any]:
    """`engine` is '' where none runs beside the edge."""
    schemas = {stream.name: stream.schema for stream in app.streams}
    topics = [
        {
            "stream": name,
            "path": sink.path,
            "kind": sink.policy.kind.name.lower(),
            "attributes": [[a.name, a.type.value] for a in schemas[name].attributes],
        }
        for name, sink in declared.topics
    ]
    return {"name": app.name, "engine": engine, "topics": topics}
