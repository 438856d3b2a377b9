"""Find the `@store` annotations of an app that cannot work, with their position in its text.

Used by `load`, before anything starts.
"""

from __future__ import annotations

from edgewise.errors import Problem
from edgewise.node.app.source_sink_errors import locate_option
from edgewise.plan.nodes import App
from edgewise.stores.spec import BadStore, StoreSpec, parse_store

KEPT = (
    "an aggregation is kept with the state of the app, not in a database; on-demand queries and "
    "joins read it there"
)


def find_store_errors(app: App, text: str) -> tuple[Problem, ...]:
    """Errors, and warnings for options that do nothing here and types without a connector."""
    problems: list[Problem] = []
    for table in app.tables:
        try:
            spec = parse_store(table.schema, table.annotations, table.primary_key)
        except BadStore as error:
            at = locate_option(text, table.name, "store", 0, error.option)
            problems.append(Problem(at, str(error)))
            continue
        if spec is not None:
            problems += _list_warnings(spec, text)
    for aggregation in app.aggregations:
        if any(a.name.lower() == "store" for a in aggregation.annotations):
            at = locate_option(text, aggregation.name, "store", 0, "type")
            problems.append(Problem(at, KEPT, "", "warning"))
    return tuple(problems)


def _list_warnings(spec: StoreSpec, text: str) -> list[Problem]:
    if spec.unconnected:
        at = locate_option(text, spec.table, "store", 0, "type")
        hint = "check and replay work, run does not start"
        return [Problem(at, f"not connected: {spec.unconnected}", hint, "warning")]
    return [
        Problem(locate_option(text, spec.table, "store", 0, option), message, "", "warning")
        for option, message in spec.notes
    ]
