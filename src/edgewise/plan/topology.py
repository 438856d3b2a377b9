"""Show an app as a topology of spouts and bolts, for those who come from Storm and Heron.

The same plan that `explain` prints, in their words: an input log is a spout, a stage of the plan a
bolt, an output log a bolt that writes; an edge between two says by what rows are grouped, and each
how many tasks it has. Used by `edgewise topology`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.rewrite import rewrite

SPOUT, BOLT = "spout", "bolt"


@dataclass(frozen=True, slots=True)
class Edge:
    """`grouping` is fields(a, b), shuffle or global."""

    source: str
    grouping: str


@dataclass(frozen=True, slots=True)
class Component:
    kind: str
    name: str
    tasks: int
    does: str
    reads: tuple[Edge, ...] = ()
    why: str = ""  # there is one task only


def build_topology(app: App, partitions: int) -> tuple[Component, ...]:
    """Spouts first, then bolts in the order of the flow."""
    app = rewrite(app)
    stages = split_into_stages(app)
    spouts = [Component(SPOUT, s.name, 1, f"reads the log of {s.name}") for s in app.inputs]
    bolts = [_build_bolt(stage, _list_sources(app, stages, stage), partitions) for stage in stages]
    writers = []
    for stream in app.outputs:
        made_by = [s for s in stages if stream.name in _list_targets(app, s)]
        reads = tuple(Edge(_name_bolt(stage), "global") for stage in made_by)
        does = f"appends to the log of {stream.name}"
        writers.append(Component(BOLT, f"{stream.name} log", 1, does, reads, "one writer"))
    return (*spouts, *bolts, *writers)


def _build_bolt(stage: Fragment, sources: dict[str, str], partitions: int) -> Component:
    spread = stage.keyed or stage.stateless
    edges = tuple(Edge(source, _describe_grouping(stage, s)) for s, source in sources.items())
    does = f"runs {', '.join(stage.queries)}"
    why = "" if spread else stage.why
    return Component(BOLT, _name_bolt(stage), partitions if spread else 1, does, edges, why)


def _describe_grouping(stage: Fragment, stream: str) -> str:
    if stage.keyed:
        return f"fields({', '.join(stage.key_of(stream))})"
    return "shuffle" if stage.stateless else "global"


def _name_bolt(stage: Fragment) -> str:
    return stage.queries[0] if stage.queries else stage.name


def _list_sources(app: App, stages: Iterable[Fragment], stage: Fragment) -> dict[str, str]:
    """By stream that the stage reads, the component that makes it."""
    inputs = {s.name for s in app.inputs}
    makers = {t: _name_bolt(s) for s in stages if s != stage for t in _list_targets(app, s)}
    return {name: name if name in inputs else makers.get(name, name) for name in stage.inputs}


def _list_targets(app: App, stage: Fragment) -> set[str]:
    return {q.output.target for q in app.queries if q.name in stage.queries}


def format_topology(name: str, components: Iterable[Component]) -> list[str]:
    lines = [f"topology {name}"]
    for component in components:
        tasks = f"{component.tasks} task{'s' if component.tasks > 1 else ''}"
        lines.append(f"  {component.kind:<5} {component.name} ({tasks}): {component.does}")
        lines += [f"          from {e.source}, {e.grouping} grouping" for e in component.reads]
        if component.why:
            lines.append(f"          one task: {component.why}")
    return lines


def encode_topology(name: str, components: Iterable[Component]) -> str:
    return json.dumps({"name": name, "components": [asdict(c) for c in components]}, indent=2)
