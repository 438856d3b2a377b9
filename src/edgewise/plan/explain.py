"""Describe a plan: fragments, keys, state bounds, and what blocks a better choice.

One outline, three faces: a tree for the terminal, JSON for programs, SVG for the wall (`picture`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from edgewise.plan.durations import format_duration
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    InsertInto,
    Partition,
    Query,
    QueryOutput,
    Select,
    Table,
    streams_of,
)
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.column_pruning import find_read_attributes
from edgewise.plan.rules.native_spark import build_prefilter, explain_kernel_use
from edgewise.plan.rules.pattern_cost import derive_pattern_costs
from edgewise.plan.rules.rewrite import rewrite
from edgewise.plan.rules.state_bounds import StateBound, derive_state_bounds
from edgewise.plan.text import show, show_input

STORED = (
    "each batch is written once, in one transaction with its number; a batch that is computed "
    "again after a crash reads the database as it is then"
)
NO_NOTES: Mapping[str, tuple[str, ...]] = {}


@dataclass(frozen=True, slots=True)
class QueryOutline:
    """One query in words. `grows` says what its state has no bound on, '' for nothing."""

    name: str
    line: int
    reads: tuple[str, ...]
    writes: str
    source: str
    select: str
    output: str
    state: str
    grows: str
    cost: str = ""  # of an event of a pattern, as its open matches become many
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputOutline:
    """What of a stream reaches the kernel: these attributes, of events where `keeps` holds."""

    stream: str
    reads: tuple[str, ...]
    of: int
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class FragmentOutline:
    """`describe_execution` is native (Spark expressions) or kernel, `tasks` is any, keyed or one.

    `why` blocks a better choice of either, '' for nothing.
    """

    name: str
    runs: str
    tasks: str
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    why: str
    inputs: tuple[InputOutline, ...]
    queries: tuple[QueryOutline, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    app: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sinks: tuple[str, ...]
    stores: tuple[str, ...]
    order: str
    fragments: tuple[FragmentOutline, ...]


def build_outline(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> Outline:
    """What there is to say about a plan; `notes` adds lines to queries by name."""
    app = rewrite(app)
    held, partitions = derive_state_bounds(app), {p.name: p for p in app.partitions}
    costs = {name: cost.text for name, cost in derive_pattern_costs(app).items()}
    queries, streams = {q.name: q for q in app.queries}, {s.name: s for s in app.streams}
    fragments: list[FragmentOutline] = []
    for fragment in split_into_stages(app):
        own = [queries[name] for name in fragment.queries]
        touched = (n for q in own for n in (*streams_of(q.input), q.output.target))
        names = dict.fromkeys((*fragment.inputs, *touched))
        seen = [streams[n] for s in names for n in (s, f"!{s}") if n in streams]
        part = replace(app, queries=tuple(own), streams=tuple(seen))
        outlines = tuple(
            replace(
                _outline_query(q, partitions.get(q.partition), held[q.name]),
                cost=costs.get(q.name, ""),
                notes=notes.get(q.name, ()),
            )
            for q in own
        )
        fragments.append(_outline_fragment(part, fragment, outlines))
    stores = [
        *(_describe_table(t) for t in app.tables),
        *(f"window {w.name}" for w in app.windows),
    ]
    stores += [f"aggregation {a.name}" for a in app.aggregations]
    stores += [f"trigger {t.name}" for t in app.triggers]
    return Outline(
        app.name,
        tuple(s.name for s in app.inputs),
        tuple(s.name for s in app.outputs),
        tuple(s.name for s in app.streams if s.annotated("sink")),
        tuple(stores),
        _describe_order(app),
        tuple(fragments),
    )


def _describe_table(table: Table) -> str:
    store = table.annotated("store")
    return f"table {table.name}" + (f" in {store.get('type')}" if store is not None else "")


def _outline_fragment(
    part: App, at: Fragment, queries: tuple[QueryOutline, ...]
) -> FragmentOutline:
    """`part` is the app with the streams and queries of the fragment alone."""
    if not at.stateless:
        tasks = "keyed" if at.keyed else "one"
        inputs = _outline_inputs(part, at)
        return FragmentOutline(at.name, "kernel", tasks, at.keys, at.why, inputs, queries)
    why = explain_kernel_use(part, at)
    inputs = _outline_inputs(part, at) if why else ()
    return FragmentOutline(
        at.name, "kernel" if why else "native", "any", at.keys, why, inputs, queries
    )


def _outline_inputs(app: App, fragment: Fragment) -> tuple[InputOutline, ...]:
    found: list[InputOutline] = []
    for name, names in find_read_attributes(app, fragment).items():
        stream = app.stream(name)
        asked = build_prefilter(app, fragment, name) if stream.lateness_ms is None else None
        keeps = show(asked, name) if asked is not None else ""
        found.append(InputOutline(name, names, len(stream.schema.names), keeps))
    return tuple(found)


def _describe_order(app: App) -> str:
    """What waits to be put in order, '' where nothing does."""
    late = [(s.name, s.lateness_ms) for s in app.streams if s.lateness_ms is not None]
    if app.lateness_ms is None:
        return ""
    each = ", ".join(f"{name} up to {format_duration(ms)} late" for name, ms in late)
    return f"{each}; the app's time runs {format_duration(app.lateness_ms)} behind"


def _outline_query(query: Query, partition: Partition | None, held: StateBound) -> QueryOutline:
    source = show_input(query.input)
    if partition is not None:
        keys = ", ".join(f"{_describe_key(k.value)} of {k.stream}" for k in partition.keys)
        source = f"{source}  (per {keys})"
    return QueryOutline(
        query.name,
        query.span.line,
        streams_of(query.input),
        query.output.target,
        source,
        _describe_select(query.select, streams_of(query.input)),
        _describe_output(query),
        held.text,
        held.why,
    )


def _describe_key(value: object) -> str:
    return getattr(value, "name", "") or ("range" if value is None else "value")


def _describe_select(select: Select, streams: tuple[str, ...]) -> str:
    own = streams[0] if len(streams) == 1 else ""
    items = []
    for item in select.items:
        text = show(item.expr, own)
        items.append(text if text == item.name else f"{text} as {item.name}")
    parts = [", ".join(items)]
    if select.group_by:
        parts.append("group by " + ", ".join(show(f, own) for f in select.group_by))
    if select.having is not None:
        parts.append("having " + show(select.having, own))
    if select.order_by:
        order = (show(o.field, own) + (" desc" if o.descending else "") for o in select.order_by)
        parts.append("order by " + ", ".join(order))
    if select.limit is not None:
        parts.append(f"limit {select.limit}")
    if select.offset is not None:
        parts.append(f"offset {select.offset}")
    return " ".join(parts)


def _describe_output(query: Query) -> str:
    verb = type(query.output).__name__
    words = {"InsertInto": "insert into", "DeleteFrom": "delete", "UpdateTable": "update"}
    words |= {"UpdateOrInsert": "update or insert into", "Return": "return"}
    text = f"{words[verb]} {query.output.target}".strip()
    if query.output.events.value != "current":
        text += f" ({query.output.events.value} events)"
    return text + _describe_rate(query) + _describe_condition(query.output)


def _describe_rate(query: Query) -> str:
    if query.rate is None:
        return ""
    events, ms = query.rate.events, query.rate.every_ms
    span = f"{events} events" if events is not None else format_duration(ms or 0)
    return f", {query.rate.kind.value} every {span}"


def _describe_condition(output: QueryOutput) -> str:
    on = None if isinstance(output, InsertInto) else getattr(output, "on", None)
    return f" on {show(on)}" if on is not None else ""


# The tree.


def explain_text(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> str:
    found = build_outline(app, notes)
    lines = [f"app {found.app}"]
    heads: list[tuple[str, list[str]]] = []
    if found.stores:
        heads.append(("holds " + ", ".join(found.stores), []))
    if any(" in " in store for store in found.stores):
        heads.append((f"stores {STORED}", []))
    if found.order:
        heads.append((f"order {found.order}", []))
    heads += [
        (f"fragment {f.name}: {describe_execution(f)}", _draw_fragment(f)) for f in found.fragments
    ]
    for index, (head, body) in enumerate(heads):
        last = index == len(heads) - 1
        lines.append(f"{'└─' if last else '├─'} {head}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in body]
    return "\n".join(lines)


def describe_execution(fragment: FragmentOutline) -> str:
    if fragment.keys:
        keys = ", ".join(f"{stream} by {' and '.join(names)}" for stream, names in fragment.keys)
        return f"kernel, keyed: {keys}"
    tasks = {"any": "any number of tasks", "one": "one task"}[fragment.tasks]
    return f"{fragment.runs}, {tasks}" + (f": {fragment.why}" if fragment.why else "")


def describe_input(found: InputOutline) -> str:
    """What the kernel is given of an input, '' where that is all of it."""
    names = ", ".join(found.reads) or "no attribute"
    text = f" only {names}" if len(found.reads) < found.of else ""
    text += f" where {found.keeps}" if found.keeps else ""
    return f"{found.stream}{text}" if text else ""


def _draw_fragment(fragment: FragmentOutline) -> list[str]:
    lines = [f"├─ takes  {text}" for each in fragment.inputs if (text := describe_input(each))]
    for index, query in enumerate(fragment.queries):
        last = index == len(fragment.queries) - 1
        lines.append(f"{'└─' if last else '├─'} {query.name}, line {query.line}")
        state = query.state + (f", grows without end: {query.grows}" if query.grows else "")
        rows = [("from", query.source), ("select", query.select), ("state", state)]
        rows += [("cost", query.cost)] if query.cost else []
        rows += [("note", note) for note in query.notes]
        rows.append(("to", query.output))
        stem = "   " if last else "│  "
        for row, (word, text) in enumerate(rows):
            branch = "└─" if row == len(rows) - 1 else "├─"
            lines.append(f"{stem}{branch} {word:<6} {text}")
    return lines


def explain_json(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> str:
    return json.dumps(asdict(build_outline(app, notes)), indent=2)
