"""A plan for people: fragments, keys, bounds, and what blocks a better choice.

One outline, three faces: a tree for the terminal, JSON for programs, SVG for the wall (`picture`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from edgewise.plan.durations import spell
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    InsertInto,
    Partition,
    Query,
    QueryOutput,
    Select,
    streams_of,
)
from edgewise.plan.rules.bounds import Bound, bounds
from edgewise.plan.rules.chain import staged
from edgewise.plan.rules.native import kernel_because, prefix
from edgewise.plan.rules.order import rewrite
from edgewise.plan.rules.projection import reads
from edgewise.plan.text import show, show_input

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
    """`runs` is native (Spark expressions) or kernel, `tasks` is any, keyed or one.

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


def outline(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> Outline:
    """What there is to say about a plan; `notes` adds lines to queries by name."""
    app = rewrite(app)
    held, partitions = bounds(app), {p.name: p for p in app.partitions}
    queries, streams = {q.name: q for q in app.queries}, {s.name: s for s in app.streams}
    fragments: list[FragmentOutline] = []
    for fragment in staged(app):
        own = [queries[name] for name in fragment.queries]
        touched = (n for q in own for n in (*streams_of(q.input), q.output.target))
        names = dict.fromkeys((*fragment.inputs, *touched))
        seen = [streams[n] for s in names for n in (s, f"!{s}") if n in streams]
        part = replace(app, queries=tuple(own), streams=tuple(seen))
        outlines = tuple(
            _query(q, partitions.get(q.partition), held[q.name], notes.get(q.name, ()))
            for q in own
        )
        fragments.append(_fragment(part, fragment, outlines))
    stores = [*(f"table {t.name}" for t in app.tables), *(f"window {w.name}" for w in app.windows)]
    stores += [f"aggregation {a.name}" for a in app.aggregations]
    stores += [f"trigger {t.name}" for t in app.triggers]
    return Outline(
        app.name,
        tuple(s.name for s in app.inputs),
        tuple(s.name for s in app.outputs),
        tuple(s.name for s in app.streams if s.annotated("sink")),
        tuple(stores),
        _order(app),
        tuple(fragments),
    )


def _fragment(part: App, at: Fragment, queries: tuple[QueryOutline, ...]) -> FragmentOutline:
    """`part` is the app with the streams and queries of the fragment alone."""
    if not at.stateless:
        tasks = "keyed" if at.keyed else "one"
        inputs = _inputs(part, at)
        return FragmentOutline(at.name, "kernel", tasks, at.keys, at.why, inputs, queries)
    why = kernel_because(part, at)
    inputs = _inputs(part, at) if why else ()
    return FragmentOutline(
        at.name, "kernel" if why else "native", "any", at.keys, why, inputs, queries
    )


def _inputs(app: App, fragment: Fragment) -> tuple[InputOutline, ...]:
    found: list[InputOutline] = []
    for name, names in reads(app, fragment).items():
        stream = app.stream(name)
        asked = prefix(app, fragment, name) if stream.lateness_ms is None else None
        keeps = show(asked, name) if asked is not None else ""
        found.append(InputOutline(name, names, len(stream.schema.names), keeps))
    return tuple(found)


def _order(app: App) -> str:
    """What waits to be put in order, '' where nothing does."""
    late = [(s.name, s.lateness_ms) for s in app.streams if s.lateness_ms is not None]
    if app.lateness_ms is None:
        return ""
    each = ", ".join(f"{name} up to {spell(ms)} late" for name, ms in late)
    return f"{each}; the app's time runs {spell(app.lateness_ms)} behind"


def _query(
    query: Query, partition: Partition | None, held: Bound, notes: tuple[str, ...]
) -> QueryOutline:
    source = show_input(query.input)
    if partition is not None:
        keys = ", ".join(f"{_key(k.value)} of {k.stream}" for k in partition.keys)
        source = f"{source}  (per {keys})"
    return QueryOutline(
        query.name,
        query.span.line,
        streams_of(query.input),
        query.output.target,
        source,
        _select(query.select, streams_of(query.input)),
        _output(query),
        held.text,
        held.why,
        notes,
    )


def _key(value: object) -> str:
    return getattr(value, "name", "") or ("range" if value is None else "value")


def _select(select: Select, streams: tuple[str, ...]) -> str:
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


def _output(query: Query) -> str:
    verb = type(query.output).__name__
    words = {"InsertInto": "insert into", "DeleteFrom": "delete", "UpdateTable": "update"}
    words |= {"UpdateOrInsert": "update or insert into", "Return": "return"}
    text = f"{words[verb]} {query.output.target}".strip()
    if query.output.events.value != "current":
        text += f" ({query.output.events.value} events)"
    return text + _rate(query) + _condition(query.output)


def _rate(query: Query) -> str:
    if query.rate is None:
        return ""
    events, ms = query.rate.events, query.rate.every_ms
    span = f"{events} events" if events is not None else spell(ms or 0)
    return f", {query.rate.kind.value} every {span}"


def _condition(output: QueryOutput) -> str:
    on = None if isinstance(output, InsertInto) else getattr(output, "on", None)
    return f" on {show(on)}" if on is not None else ""


# The tree.


def explain_text(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> str:
    found = outline(app, notes)
    lines = [f"app {found.app}"]
    heads: list[tuple[str, list[str]]] = []
    if found.stores:
        heads.append(("holds " + ", ".join(found.stores), []))
    if found.order:
        heads.append((f"order {found.order}", []))
    heads += [(f"fragment {f.name}: {runs(f)}", _tree(f)) for f in found.fragments]
    for place, (head, body) in enumerate(heads):
        last = place == len(heads) - 1
        lines.append(f"{'└─' if last else '├─'} {head}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in body]
    return "\n".join(lines)


def runs(fragment: FragmentOutline) -> str:
    if fragment.keys:
        keys = ", ".join(f"{stream} by {' and '.join(names)}" for stream, names in fragment.keys)
        return f"kernel, keyed: {keys}"
    tasks = {"any": "any number of tasks", "one": "one task"}[fragment.tasks]
    return f"{fragment.runs}, {tasks}" + (f": {fragment.why}" if fragment.why else "")


def feeds(found: InputOutline) -> str:
    """What the kernel is given of an input, '' where that is all of it."""
    names = ", ".join(found.reads) or "no attribute"
    text = f" only {names}" if len(found.reads) < found.of else ""
    text += f" where {found.keeps}" if found.keeps else ""
    return f"{found.stream}{text}" if text else ""


def _tree(fragment: FragmentOutline) -> list[str]:
    lines = [f"├─ takes  {text}" for each in fragment.inputs if (text := feeds(each))]
    for place, query in enumerate(fragment.queries):
        last = place == len(fragment.queries) - 1
        lines.append(f"{'└─' if last else '├─'} {query.name}, line {query.line}")
        state = query.state + (f", grows without end: {query.grows}" if query.grows else "")
        rows = [("from", query.source), ("select", query.select), ("state", state)]
        rows += [("note", note) for note in query.notes]
        rows.append(("to", query.output))
        stem = "   " if last else "│  "
        for row, (word, text) in enumerate(rows):
            branch = "└─" if row == len(rows) - 1 else "├─"
            lines.append(f"{stem}{branch} {word:<6} {text}")
    return lines


def explain_json(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> str:
    return json.dumps(asdict(outline(app, notes)), indent=2)
