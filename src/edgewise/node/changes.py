"""What may change in an app while its node runs: its queries, and the topics they feed. Pure.

Doors hold connections and logs hold the shape of their events, so everything at the ends stays as
it is; for the rest the node is started again.
"""

from __future__ import annotations

from edgewise.node.ends import Ends
from edgewise.plan.nodes import App

RESTART = "start the node again to change that"


def unlike(old: tuple[App, Ends], new: tuple[App, Ends], engine: str) -> str:
    """Why one cannot become the other in a running node, '' where it can."""
    (was, had), (app, has) = old, new
    if engine != "embedded":
        return f"an app changes while it runs on the embedded engine only; {RESTART}"
    if was.name != app.name:
        return f"the app is called '{app.name}' now, not '{was.name}'; {RESTART}"
    shapes = {s.name: s.schema for s in was.streams}
    for stream in app.streams:
        if shapes.get(stream.name, stream.schema) != stream.schema:
            return (
                f"stream '{stream.name}' has other attributes now, and its log the old ones; "
                "give it another name"
            )
    inputs = [{s.name for s in a.inputs} for a in (was, app)]
    if inputs[0] != inputs[1]:
        names = ", ".join(sorted(inputs[0] ^ inputs[1]))
        return f"what comes from outside changed ({names}); {RESTART}"
    if (had.sources, had.sinks, had.dedup) != (has.sources, has.sinks, has.dedup):
        return f"a source or a sink changed; {RESTART}"
    return ""
