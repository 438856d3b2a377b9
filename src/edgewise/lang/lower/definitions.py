"""Lower definitions of streams, tables, windows, triggers, functions and aggregations."""

from __future__ import annotations

import ast as python
from dataclasses import dataclass, field

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.lang.lower.annotations import (
    annotation_value,
    check_stream_annotations,
    find_annotation,
    lower_annotations,
    parse_duration_ms,
    parse_lateness_ms,
)
from edgewise.lang.lower.context import LoweringContext
from edgewise.lang.lower.inputs import lower_source
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.selection import build_output_schema, lower_selection
from edgewise.lang.lower.symbols import AGGREGATION, STREAM, TABLE, WINDOW, Entry
from edgewise.lang.lower.windows import lower_window
from edgewise.lang.report import Report, suggest_nearest
from edgewise.lang.syntax import app as written
from edgewise.lang.syntax.query import Annotation
from edgewise.plan import nodes
from edgewise.plan.exprs import Agg, Field, walk
from edgewise.plan.functions import ANY, Function
from edgewise.plan.javascript import JavaScript
from edgewise.plan.scripts import Script

TRIGGERED = (Attribute("triggered_time", AttrType.LONG),)
ERROR = Attribute("_error", AttrType.OBJECT)
AGG_TIMESTAMP = Attribute("AGG_TIMESTAMP", AttrType.LONG)
LANGUAGES = {"python": "Python", "javascript": "JavaScript"}
UNSUPPORTED = {
    "r": "do not run here: they need an installation of R in every worker",
    "scala": "do not run here: they need a Scala compiler in every worker",
}
DURATIONS = ("sec", "min", "hour", "day", "month", "year")
_SPELLED = {"second": "sec", "minute": "min"}
# What `@purge` does where it does not say: the original's values. Months and years stay.
PURGE_MS = 900_000
RETENTION_MS = {"sec": 120_000, "min": 86_400_000, "hour": 2_592_000_000, "day": 31_556_900_000}


@dataclass(slots=True)
class Stores:
    """What definitions make beside the symbols."""

    tables: list[nodes.Table] = field(default_factory=list)
    windows: list[nodes.NamedWindow] = field(default_factory=list)
    triggers: list[nodes.Trigger] = field(default_factory=list)
    aggregations: list[nodes.Aggregation] = field(default_factory=list)
    functions: list[nodes.ScriptFunction] = field(default_factory=list)


def lower_definition(draft: LoweringContext, stores: Stores, node: written.Definition) -> None:
    match node:
        case written.StreamDefinition():
            _lower_stream(draft, node)
        case written.TableDefinition():
            _lower_table(draft, stores, node)
        case written.WindowDefinition():
            _lower_window(draft, stores, node)
        case written.TriggerDefinition():
            _lower_trigger(draft, stores, node)
        case written.AggregationDefinition():
            _lower_aggregation(draft, stores, node)
        case written.FunctionDefinition():
            pass  # known before everything else: see `lower_script_functions`


def _lower_schema(report: Report, name: str, columns: tuple[written.Column, ...]) -> Schema:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            report.error(column.at, f"attribute '{column.name}' is defined twice")
        seen.add(column.name)
    return Schema(name, tuple(Attribute(c.name, c.type) for c in columns))


def _lower_stream(draft: LoweringContext, node: written.StreamDefinition) -> None:
    schema = _lower_schema(draft.report, node.name.text, node.columns)
    annotations = lower_annotations(node.annotations)
    check_stream_annotations(draft.report, node.annotations)
    name = node.name
    if name.prefix:
        draft.report.fail(name.at, "inner and fault streams are not defined, they follow from use")
    late = parse_lateness_ms(draft.report, node.annotations)
    entry = Entry(STREAM, name.text, schema, name.at, annotations, lateness_ms=late)
    draft.symbols.define(entry)
    if any(
        annotation_value(a, "action").upper() == "STREAM"
        for a in find_annotation(node.annotations, "OnError")
    ):
        faults = Schema(f"!{name.text}", (*schema.attributes, ERROR))
        draft.symbols.define(Entry(STREAM, faults.name, faults, name.at, implicit=True))


def _lower_table(draft: LoweringContext, stores: Stores, node: written.TableDefinition) -> None:
    report, name = draft.report, node.name
    schema = _lower_schema(report, name.text, node.columns)
    draft.symbols.define(Entry(TABLE, name.text, schema, name.at))
    _check_stores(report, node.annotations)
    keys = find_annotation(node.annotations, "PrimaryKey")
    if len(keys) > 1:
        report.error(keys[1].at, "a table has one @PrimaryKey", "list all its columns in one")
    primary = tuple(c for key in keys[:1] for c in _lower_columns(report, key, schema))
    indexes: list[str] = []
    for index in find_annotation(node.annotations, "Index"):
        columns = _lower_columns(report, index, schema)
        if find_annotation(node.annotations, "store"):
            continue  # its database has indexes of its own, also of several columns
        if len(columns) > 1:
            report.error(index.at, "an @Index has one column", "write one @Index for each")
        if any(c in indexes for c in columns):
            report.error(index.at, f"column '{columns[0]}' is indexed twice")
        indexes.extend(columns)
    annotations = lower_annotations(node.annotations)
    stores.tables.append(nodes.Table(schema, primary, tuple(indexes), annotations))


def _check_stores(report: Report, annotations: tuple[Annotation, ...]) -> None:
    for store in find_annotation(annotations, "store"):
        if not annotation_value(store, "type"):
            hint = "write @store(type='rdbms', ...); no configuration here defines a ref"
            report.error(store.at, "@store has no type", hint)


def _lower_columns(report: Report, annotation: Annotation, schema: Schema) -> list[str]:
    columns = [v for _, v in annotation.pairs if not v.startswith("{")]  # options of MongoDB
    if not columns:
        report.error(annotation.at, f"@{annotation.name} names no column")
    for column in columns:
        if schema.index(column) < 0:
            hint = suggest_nearest(column, schema.names)
            report.error(annotation.at, f"'{schema.name}' has no attribute '{column}'", hint)
    return columns


def _lower_window(draft: LoweringContext, stores: Stores, node: written.WindowDefinition) -> None:
    schema = _lower_schema(draft.report, node.name.text, node.columns)
    draft.symbols.define(Entry(WINDOW, node.name.text, schema, node.name.at))
    slot = Slot(schema.name, schema, (schema.name,))
    window = lower_window(draft.context((slot,), no_aggregates="in a window"), node.window)
    events = nodes.EventType(node.events)
    annotations = lower_annotations(node.annotations)
    stores.windows.append(nodes.NamedWindow(schema, window, events, annotations))


def _lower_trigger(
    draft: LoweringContext, stores: Stores, node: written.TriggerDefinition
) -> None:
    name = node.name.text
    entry = Entry(STREAM, name, Schema(name, TRIGGERED), node.name.at, implicit=True)
    draft.symbols.define(entry)
    at_start = node.when.strip().lower() == "start"
    cron = "" if at_start else node.when
    if node.every is None and not at_start and len(cron.split()) not in {6, 7}:
        hint = "write 'start', or six fields: sec min hour day month weekday"
        draft.report.error(node.at, f"'{cron}' is not a cron expression", hint)
    if node.every is not None and node.every.ms < 1:
        draft.report.error(node.every.at, "a trigger needs a time of 1 millisec or more")
    every_ms = node.every.ms if node.every else None
    stores.triggers.append(nodes.Trigger(name, every_ms, cron, at_start))


def _refuse_expressions_of_aggregates(
    report: Report, node: written.AggregationDefinition, select: nodes.Select
) -> None:
    """What is kept for each unit of time is an aggregate or the last value, nothing around it."""
    for item, lowered in zip(node.selection.items, select.items, strict=False):
        inner = walk(lowered.expr)[1:]
        if any(isinstance(n, Agg) for n in inner) and not isinstance(lowered.expr, Agg):
            hint = "keep the aggregate alone, and compute with it in the query that reads it"
            report.error(item.at, "an aggregation keeps single aggregates", hint)


def _lower_aggregation(
    draft: LoweringContext, stores: Stores, node: written.AggregationDefinition
) -> None:
    report, name = draft.report, node.name.text
    _check_stores(report, node.annotations)
    for shards in find_annotation(node.annotations, "PartitionById"):
        hint = "remove it: the engine spreads an aggregation over its tasks by key"
        report.error(shards.at, "aggregations by shard are not supported", hint)
    entry = Entry(AGGREGATION, name, None, node.name.at)
    draft.symbols.define(entry)
    if node.source.window is not None:
        report.error(node.source.window.at, "an aggregation takes no window")
    source, slot = lower_source(draft, node.source)
    context = draft.context((slot,))
    select = lower_selection(context, node.selection, node.at)
    _refuse_expressions_of_aggregates(report, node, select)
    by = None
    if node.by is not None:
        found = context.lower(node.by)
        if found.type not in {AttrType.LONG, AttrType.STRING}:
            report.fail(
                node.by.at, f"'aggregate by' needs a long or a string, not {found.type.value}"
            )
        assert isinstance(found, Field)
        by = found
    durations = _lower_durations(report, node)
    schema = build_output_schema(name, select.items)
    schema = Schema(name, (AGG_TIMESTAMP, *schema.attributes))
    entry.schema = schema
    annotations = lower_annotations(node.annotations)
    purge_ms, retention_ms = _lower_purge(report, node)
    stores.aggregations.append(
        nodes.Aggregation(
            schema, source, select, durations, by, annotations,
            purge_ms=purge_ms, retention_ms=retention_ms,
        )
    )  # fmt: skip


def _lower_purge(
    report: Report, node: written.AggregationDefinition
) -> tuple[int | None, tuple[tuple[str, int], ...]]:
    """`@purge(enable='true', interval='1 min', @retentionPeriod(sec='120 sec', day='all'))`."""
    for purge in find_annotation(node.annotations, "purge"):
        if annotation_value(purge, "enable", "true").lower() != "true":
            continue
        interval = parse_duration_ms(report, purge, "interval") or PURGE_MS
        kept = dict(RETENTION_MS)
        for period in find_annotation(purge.nested, "retentionPeriod"):
            for word, text in period.pairs:
                unit = _SPELLED.get(word.lower().rstrip("s"), word.lower().rstrip("s"))
                if unit not in DURATIONS:
                    hint = f"name {', '.join(DURATIONS)}"
                    report.fail(period.at, f"'{word}' is no unit of an aggregation", hint)
                if text.lower() == "all":
                    kept.pop(unit, None)
                else:
                    kept[unit] = parse_duration_ms(report, period, word) or 0
        return interval, tuple(kept.items())
    return None, ()


def _lower_durations(report: Report, node: written.AggregationDefinition) -> tuple[str, ...]:
    places = [DURATIONS.index(d) for d in node.durations]
    if node.is_range:
        first, last = places
        if first > last:
            report.error(node.at, "a range of durations runs from fine to coarse")
        return DURATIONS[first : last + 1]
    return tuple(DURATIONS[p] for p in sorted(set(places)))


def lower_script_functions(
    report: Report, definitions: tuple[written.Definition, ...]
) -> list[tuple[nodes.ScriptFunction, Function]]:
    """Functions an app defines itself, with their rows for the table of functions."""
    found: list[tuple[nodes.ScriptFunction, Function]] = []
    names: set[str] = set()
    for node in definitions:
        if not isinstance(node, written.FunctionDefinition):
            continue
        name = node.name.text
        if name.lower() in names:
            report.error(node.name.at, f"function '{name}' is defined twice")
        names.add(name.lower())
        language = node.language.lower()
        script = nodes.ScriptFunction(name, language, node.returns, node.body)
        body = _compile_body(report, node, language)
        row = Function(
            name,
            (ANY,),
            node.returns,
            optional=1,
            variadic=True,
            python=body,
            takes_null=True,
        )
        found.append((script, row))
    return found


def _compile_body(
    report: Report, node: written.FunctionDefinition, language: str
) -> Script | JavaScript:
    """What is called; a body that is no text of its language is an error here."""
    name = node.name.text
    body: Script | JavaScript = Script(name, node.body)
    if language == "javascript":
        body = JavaScript(name, node.body, node.returns)
    elif language != "python":
        hint = "write the body in javascript or python; its arguments are in 'data'"
        why = UNSUPPORTED.get(language, "are not supported")
        report.error(node.at, f"functions in {node.language} {why}", hint)
        return body
    try:
        if isinstance(body, JavaScript):
            body.compile()
        else:
            python.parse(body.source())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        hint = getattr(problem, "msg", "") or str(problem)
        report.error(node.at, f"the body of '{name}' is not {LANGUAGES[language]}", hint)
    return body
