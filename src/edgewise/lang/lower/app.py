"""Lower a whole app: definitions, then queries and partitions in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgewise.lang.lower.annotations import (
    check_app_annotations,
    find_app_name,
    find_app_zone,
    lower_annotations,
    lower_state_limit,
)
from edgewise.lang.lower.context import LoweringContext, PlanInProgress
from edgewise.lang.lower.definitions import Stores, lower_definition, lower_script_functions
from edgewise.lang.lower.known_annotations import check_annotations_are_known
from edgewise.lang.lower.queries import find_given_name, lower_inner, lower_query
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.symbols import STREAM, WINDOW, Symbols
from edgewise.lang.report import Report
from edgewise.lang.syntax import app as written
from edgewise.lang.syntax import query as written_query
from edgewise.plan import nodes
from edgewise.plan.functions import FunctionTable
from edgewise.plan.streamcalls import STREAM_FUNCTIONS, StreamFunction


def lower_app(
    report: Report,
    tree: written.App,
    functions: FunctionTable,
    stream_functions: Mapping[str, StreamFunction] = STREAM_FUNCTIONS,
) -> nodes.App:
    """The plan of a tree; worth something only if the report holds no errors."""
    scripts = lower_script_functions(report, tree.definitions)
    if scripts:
        functions = functions.with_(*(row for _, row in scripts))
    symbols, planned = Symbols(report), PlanInProgress()
    draft = LoweringContext(report, symbols, functions, planned, lower_inner, "", stream_functions)
    stores = Stores(functions=[script for script, _ in scripts])
    check_annotations_are_known(report, tree)
    check_app_annotations(report, tree.annotations)
    draft.planned.names.update(dict.fromkeys(_list_given_names(tree), False))
    for definition in _sort_readers_last(tree.definitions):
        if report.full:
            break
        with report.attempt():
            lower_definition(draft, stores, definition)
    partitions: list[nodes.Partition] = []
    number = 0
    for execution in tree.executions:
        if report.full:
            break
        if isinstance(execution, written_query.Query):
            number += 1
            lower_query(draft, execution, number)
        else:
            name = f"partition{len(partitions) + 1}"
            with report.attempt():
                partitions.append(_lower_partition(draft.inside(name), execution, number))
            number += len(execution.queries)
    _check_lateness(draft)
    return nodes.App(
        find_app_name(tree.annotations),
        build_streams(draft.symbols),
        tuple(draft.planned.queries),
        lower_annotations(tree.annotations),
        tuple(stores.tables),
        tuple(stores.windows),
        tuple(stores.triggers),
        tuple(replace(a, zone=find_app_zone(tree.annotations)) for a in stores.aggregations),
        tuple(stores.functions),
        tuple(partitions),
    )


def _check_lateness(draft: LoweringContext) -> None:
    """Rows of a query are in order by themselves."""
    written = {q.output.target for q in draft.planned.queries}
    for entry in draft.symbols.entries.values():
        if entry.lateness_ms is not None and entry.name in written:
            hint = "put @lateness on the streams that come from outside"
            draft.report.error(entry.at, f"a query writes '{entry.name}': it cannot be late", hint)


def _sort_readers_last(definitions: tuple[written.Definition, ...]) -> list[written.Definition]:
    """An aggregation reads a stream that may be defined after it."""
    return sorted(definitions, key=lambda d: isinstance(d, written.AggregationDefinition))


def _list_given_names(tree: written.App) -> set[str]:
    queries: list[written_query.Query] = []
    for execution in tree.executions:
        if isinstance(execution, written_query.Query):
            queries.append(execution)
        else:
            queries.extend(execution.queries)
    return {find_given_name(q) for q in queries} - {""}


def build_streams(symbols: Symbols) -> tuple[nodes.Stream, ...]:
    return tuple(
        nodes.Stream(
            entry.schema, entry.annotations, entry.implicit, entry.anonymous, entry.lateness_ms
        )
        for entry in symbols.entries.values()
        if entry.kind == STREAM and entry.schema is not None
    )


def _lower_partition(
    draft: LoweringContext, node: written_query.Partition, number: int
) -> nodes.Partition:
    keys: list[nodes.PartitionKey] = []
    for key in node.keys:
        with draft.report.attempt():
            keys.append(_lower_partition_key(draft, key))
    for query in node.queries:
        number += 1
        lower_query(draft, query, number)
    state = lower_state_limit(draft.report, node.annotations)
    annotations = lower_annotations(node.annotations)
    streams = build_streams(draft.symbols)
    span = draft.report.source.span((node.keys[0].at[0], node.keys[-1].at[1]))
    return nodes.Partition(draft.partition, tuple(keys), streams, state, annotations, span)


def _lower_partition_key(
    draft: LoweringContext, node: written_query.PartitionKey
) -> nodes.PartitionKey:
    _, schema = draft.symbols.find(node.stream, STREAM, WINDOW)
    slot = Slot(node.stream.full, schema, (node.stream.full,))
    context = draft.context((slot,), no_aggregates="in a partition key")
    value_of = context.lower(node.value) if node.value is not None else None
    ranges = tuple(
        nodes.RangeKey(context.boolean(r.condition, "a range"), r.label) for r in node.ranges
    )
    return nodes.PartitionKey(node.stream.full, value_of, ranges)
