"""Warn about what is legal in a plan but costly: state without bound, patterns without key."""

from __future__ import annotations

from edgewise.errors import Span
from edgewise.lang.report import Report
from edgewise.plan.nodes import App, Query, StateInput, state_leaves
from edgewise.plan.rules.keys import explain_unkeyed_pattern
from edgewise.plan.rules.state_bounds import ENDLESS, derive_state_bounds


def advise(report: Report, app: App) -> None:
    found = derive_state_bounds(app)
    partitions = {p.name: p.span for p in app.partitions}
    for query in app.queries:
        _check_bound(report, query, found[query.name].why, partitions.get(query.partition))
        _check_key(report, query)


def _check_bound(report: Report, query: Query, why: str, partition: Span | None) -> None:
    """A partition is told of once; a query in it only where the query itself has no end."""
    if not why:
        return
    if partition is not None and "partition" in why:
        hint = "add @state(idle='1 hour') before 'partition', or a limit of keys"
        report.warn_at(partition, f"state grows without end: {why}", hint)
        return
    hint = "add 'within' and a time"
    if why == ENDLESS:
        hint += ", or @state(limit='1000') before the query"
    report.warn_at(query.span, f"state grows without end: {why}", hint)


def _check_key(report: Report, query: Query) -> None:
    if not isinstance(query.input, StateInput) or query.partition:
        return
    if len(state_leaves(query.input.state)) < 2:
        return
    why = explain_unkeyed_pattern(query.input)
    if why:
        hint = "tie its elements with an equality, or put it in a partition"
        report.warn_at(query.span, f"this pattern runs on one task: {why}", hint)
