"""Warn about what is legal in a plan but hurts.

State without bound, patterns without a key, sequences that never match.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgewise.errors import Span
from edgewise.lang.report import Report
from edgewise.plan.inputs import ChainState, CountState, EveryState, State, StateKind
from edgewise.plan.nodes import App, Query, StateInput, state_leaves
from edgewise.plan.rules.keys import explain_unkeyed_pattern
from edgewise.plan.rules.pattern_cost import derive_pattern_costs
from edgewise.plan.rules.state_bounds import ENDLESS, derive_state_bounds


def advise(report: Report, app: App) -> None:
    found = derive_state_bounds(app)
    costs = derive_pattern_costs(app)
    partitions = {p.name: p.span for p in app.partitions}
    for query in app.queries:
        _check_bound(report, query, found[query.name].why, partitions.get(query.partition))
        _check_key(report, query)
        _check_sequence(report, query)
        cost = costs.get(query.name)
        if cost is not None and cost.why and found[query.name].why:
            text = f"an event costs more with every open match: {cost.why}"
            report.warn_at(query.span, text, cost.fix)


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


def _check_sequence(report: Report, query: Query) -> None:
    """As in the original, the second event of such an element breaks its own sequence."""
    found = query.input
    if not isinstance(found, StateInput) or found.kind is not StateKind.SEQUENCE:
        return
    for state in _list_counted(found.state):
        if state.least >= 2:
            slot = state.state.slot if not state.state.slot.startswith("@") else state.state.stream
            message = f"this sequence never matches: '{slot}' takes {state.least} events or more"
            hint = "write its events one by one (e1=S, e2=S), use '+', or a pattern with '->'"
            report.warn_at(query.span, message, hint)


def _list_counted(state: State) -> Iterator[CountState]:
    match state:
        case CountState():
            yield state
        case EveryState():
            yield from _list_counted(state.state)
        case ChainState():
            for part in state.states:
                yield from _list_counted(part)
