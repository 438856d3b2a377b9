"""Check that every annotation is known and stands where it has an effect.

A misspelt `@sinc` would leave a stream without its sink and nobody would notice. A name that is
close to a known one is an error with that name as the fix; a name that is close to none is a
warning, for the language leaves annotations free. So is a known one in front of something it has
no effect on, unless it carries events or holds rows: a `@sink` before a query is an error.
"""

from __future__ import annotations

import difflib

from edgewise.lang.report import Report
from edgewise.lang.syntax import app as written
from edgewise.lang.syntax.query import Annotation, Partition, Query

CLOSE = 0.7  # of `difflib`: `inof` is close to `info`, `foo` is not
APP, STREAM, TABLE, WINDOW = "the app", "a stream", "a table", "a window"
TRIGGER, FUNCTION, AGGREGATION = "a trigger", "a function", "an aggregation"
QUERY, PARTITION = "a query", "a partition"

# What each annotation may stand in front of.
TARGETS: dict[str, frozenset[str]] = {
    "app:name": frozenset({APP}),
    "app:description": frozenset({APP}),
    "app:version": frozenset({APP}),
    "app:playback": frozenset({APP}),
    "app:statistics": frozenset({APP}),
    "app:async": frozenset({APP}),
    "app:enforceorder": frozenset({APP}),
    "app:timezone": frozenset({APP}),
    "app:ignoreexpiredbatch": frozenset({APP}),
    "source": frozenset({STREAM}),
    "sink": frozenset({STREAM}),
    "async": frozenset({STREAM, WINDOW}),
    "onerror": frozenset({STREAM, TABLE}),
    "lateness": frozenset({STREAM}),
    "default": frozenset({STREAM}),
    "partitions": frozenset({STREAM}),
    "config": frozenset({STREAM}),
    "export": frozenset({STREAM}),
    "import": frozenset({STREAM}),
    "map": frozenset(),
    "store": frozenset({TABLE, AGGREGATION}),
    "cache": frozenset({TABLE}),
    "primarykey": frozenset({TABLE, AGGREGATION}),
    "index": frozenset({TABLE, AGGREGATION}),
    "indexby": frozenset({TABLE, AGGREGATION}),
    "partitionbyid": frozenset({AGGREGATION}),
    "purge": frozenset({AGGREGATION, PARTITION}),
    "state": frozenset({QUERY, PARTITION}),
    "info": frozenset({QUERY, PARTITION}),
    "synchronized": frozenset({QUERY}),
    "dist": frozenset({QUERY}),
}
SPELLED = {
    name.lower(): name
    for name in (
        "app:enforceOrder", "app:ignoreExpiredBatch", "OnError", "PrimaryKey", "Index", "IndexBy",
        "PartitionById",
    )
}  # fmt: skip
ESSENTIAL = frozenset({"source", "sink", "store", "map", "primarykey"})
_KINDS: tuple[tuple[type, str], ...] = (
    (written.StreamDefinition, STREAM),
    (written.TableDefinition, TABLE),
    (written.WindowDefinition, WINDOW),
    (written.TriggerDefinition, TRIGGER),
    (written.FunctionDefinition, FUNCTION),
    (written.AggregationDefinition, AGGREGATION),
)


def check_annotations_are_known(report: Report, tree: written.App) -> None:
    """Report annotations of the whole app that are unknown or misplaced."""
    _check_each(report, APP, tree.annotations)
    for definition in tree.definitions:
        target = next(name for kind, name in _KINDS if isinstance(definition, kind))
        _check_each(report, target, definition.annotations)
    for execution in tree.executions:
        _check_execution(report, execution)


def _check_execution(report: Report, execution: Query | Partition) -> None:
    if isinstance(execution, Query):
        _check_each(report, QUERY, execution.annotations)
        return
    _check_each(report, PARTITION, execution.annotations)
    for query in execution.queries:
        _check_each(report, QUERY, query.annotations)


def _check_each(report: Report, target: str, annotations: tuple[Annotation, ...]) -> None:
    for annotation in annotations:
        name = annotation.name.lower()
        allowed = TARGETS.get(name)
        if allowed is None:
            _report_unknown(report, target, annotation)
        elif target not in allowed:
            tell = report.error if name in ESSENTIAL else report.warn
            tell(annotation.at, f"@{annotation.name} has no effect on {target}", _say_where(name))


def _report_unknown(report: Report, target: str, annotation: Annotation) -> None:
    fitting = [name for name, targets in TARGETS.items() if target in targets]
    close = difflib.get_close_matches(annotation.name.lower(), fitting, n=1, cutoff=CLOSE)
    if close:
        hint = f"did you mean '@{SPELLED.get(close[0], close[0])}'?"
        report.error(annotation.at, f"there is no annotation '@{annotation.name}'", hint)
        return
    message = f"@{annotation.name} is not known here and has no effect"
    report.warn(annotation.at, message, "remove it, or check its name")


def _say_where(name: str) -> str:
    targets = sorted(TARGETS[name])
    if not targets:
        return "write it inside @source(...) or @sink(...)"
    return f"it belongs in front of {' or '.join(targets)}"
