"""Apply a function to every expression of an app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from edgewise.plan.exprs import Agg, Call, Expr, Field, walk
from edgewise.plan.nodes import (
    AbsentState,
    App,
    ChainState,
    CountState,
    DeleteFrom,
    EveryState,
    Filter,
    Handler,
    InsertInto,
    JoinInput,
    JoinSide,
    LogicalState,
    Query,
    QueryInput,
    QueryOutput,
    Return,
    Select,
    State,
    StateInput,
    StreamInput,
    StreamState,
    windows_of,
)

Rewrite = Callable[[Expr], Expr]


def map_exprs(app: App, rewrite: Rewrite) -> App:
    return replace(app, queries=tuple(map_query(q, rewrite) for q in app.queries))


def replace_fields(expr: Expr, change: Callable[[Field], Expr]) -> Expr:
    """The expression with each attribute replaced."""
    if isinstance(expr, Field):
        return change(expr)
    changes: dict[str, object] = {}
    for name in ("left", "right", "operand", "condition"):
        if hasattr(expr, name):
            changes[name] = replace_fields(getattr(expr, name), change)
    if hasattr(expr, "args"):
        changes["args"] = tuple(replace_fields(a, change) for a in expr.args)
    return replace(expr, **changes) if changes else expr  # type: ignore[arg-type]


def find_calls(app: App) -> list[Call]:
    """Every call of a scalar function, wherever it stands."""
    return [node for node in _find_nodes(app) if isinstance(node, Call)]


def find_aggregates(app: App) -> list[Agg]:
    """Every aggregate, wherever it stands."""
    return [node for node in _find_nodes(app) if isinstance(node, Agg)]


def _find_nodes(app: App) -> list[Expr]:
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.extend(walk(expr))
        return expr

    map_exprs(app, note)
    for partition in app.partitions:
        for key in partition.keys:
            for expr in (key.value, *(r.condition for r in key.ranges)):
                if expr is not None:
                    note(expr)
    for aggregation in app.aggregations:
        _map_stream(aggregation.input, note)
        _map_select(aggregation.select, note)
    windows = [w for q in app.queries for w in windows_of(q.input)]
    for window in (*windows, *(w.window for w in app.windows)):
        if window.condition is not None:
            note(window.condition)
    return found


def map_query(query: Query, rewrite: Rewrite) -> Query:
    return replace(
        query,
        input=_map_input(query.input, rewrite),
        select=_map_select(query.select, rewrite),
        output=_map_output(query.output, rewrite),
    )


def _map_select(select: Select, rewrite: Rewrite) -> Select:
    items = tuple(replace(i, expr=rewrite(i.expr)) for i in select.items)
    having = None if select.having is None else rewrite(select.having)
    return replace(select, items=items, having=having)


def _map_input(query_input: QueryInput, rewrite: Rewrite) -> QueryInput:
    match query_input:
        case StreamInput():
            return _map_stream(query_input, rewrite)
        case JoinInput():
            on = None if query_input.on is None else rewrite(query_input.on)
            left, right = (_map_side(s, rewrite) for s in (query_input.left, query_input.right))
            within = tuple(rewrite(w) for w in query_input.within)
            per = None if query_input.per is None else rewrite(query_input.per)
            return replace(query_input, left=left, right=right, on=on, within=within, per=per)
        case StateInput():
            return replace(query_input, state=_map_state(query_input.state, rewrite))


def _map_side(side: JoinSide, rewrite: Rewrite) -> JoinSide:
    return replace(side, input=_map_stream(side.input, rewrite))


def _map_stream(source: StreamInput, rewrite: Rewrite) -> StreamInput:
    before, after = _map_handlers(source.before, rewrite), _map_handlers(source.after, rewrite)
    return replace(source, before=before, after=after)


def _map_handlers(handlers: tuple[Handler, ...], rewrite: Rewrite) -> tuple[Handler, ...]:
    return tuple(
        Filter(rewrite(h.condition))
        if isinstance(h, Filter)
        else replace(h, args=tuple(rewrite(a) for a in h.args))
        for h in handlers
    )


def _map_state(state: State, rewrite: Rewrite) -> State:
    match state:
        case StreamState():
            return replace(state, handlers=_map_handlers(state.handlers, rewrite))
        case AbsentState():
            return replace(state, handlers=_map_handlers(state.handlers, rewrite))
        case CountState():
            handlers = _map_handlers(state.state.handlers, rewrite)
            return replace(state, state=replace(state.state, handlers=handlers))
        case LogicalState():
            left = replace(state.left, handlers=_map_handlers(state.left.handlers, rewrite))
            right = replace(state.right, handlers=_map_handlers(state.right.handlers, rewrite))
            return replace(state, left=left, right=right)
        case EveryState():
            return EveryState(_map_state(state.state, rewrite))
        case ChainState():
            return ChainState(tuple(_map_state(s, rewrite) for s in state.states))


def _map_output(output: QueryOutput, rewrite: Rewrite) -> QueryOutput:
    match output:
        case InsertInto() | Return():
            return output
        case DeleteFrom():
            return output if output.on is None else replace(output, on=rewrite(output.on))
        case _:
            sets = tuple(replace(s, value=rewrite(s.value)) for s in output.assignments)
            return replace(output, on=rewrite(output.on), assignments=sets)
