"""Apply a function to every expression of an app, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from edgewise.plan.exprs import Call, Expr, Field, walk
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
)

Rewrite = Callable[[Expr], Expr]


def map_exprs(app: App, rewrite: Rewrite) -> App:
    return replace(app, queries=tuple(map_query(q, rewrite) for q in app.queries))


def with_fields(expr: Expr, change: Callable[[Field], Expr]) -> Expr:
    """The expression with each attribute replaced."""
    if isinstance(expr, Field):
        return change(expr)
    changes: dict[str, object] = {}
    for name in ("left", "right", "operand", "condition"):
        if hasattr(expr, name):
            changes[name] = with_fields(getattr(expr, name), change)
    if hasattr(expr, "args"):
        changes["args"] = tuple(with_fields(a, change) for a in expr.args)
    return replace(expr, **changes) if changes else expr  # type: ignore[arg-type]


def calls_of(app: App) -> list[Call]:
    """Every call of a scalar function, wherever it stands."""
    found: list[Call] = []

    def note(expr: Expr) -> Expr:
        found.extend(n for n in walk(expr) if isinstance(n, Call))
        return expr

    map_exprs(app, note)
    for partition in app.partitions:
        for key in partition.keys:
            for expr in (key.value, *(r.condition for r in key.ranges)):
                if expr is not None:
                    note(expr)
    for aggregation in app.aggregations:
        _stream(aggregation.input, note)
        _select(aggregation.select, note)
    return found


def map_query(query: Query, rewrite: Rewrite) -> Query:
    return replace(
        query,
        input=_input(query.input, rewrite),
        select=_select(query.select, rewrite),
        output=_output(query.output, rewrite),
    )


def _select(select: Select, rewrite: Rewrite) -> Select:
    items = tuple(replace(i, expr=rewrite(i.expr)) for i in select.items)
    having = None if select.having is None else rewrite(select.having)
    return replace(select, items=items, having=having)


def _input(query_input: QueryInput, rewrite: Rewrite) -> QueryInput:
    match query_input:
        case StreamInput():
            return _stream(query_input, rewrite)
        case JoinInput():
            on = None if query_input.on is None else rewrite(query_input.on)
            left, right = (_side(s, rewrite) for s in (query_input.left, query_input.right))
            within = tuple(rewrite(w) for w in query_input.within)
            per = None if query_input.per is None else rewrite(query_input.per)
            return replace(query_input, left=left, right=right, on=on, within=within, per=per)
        case StateInput():
            return replace(query_input, state=_state(query_input.state, rewrite))


def _side(side: JoinSide, rewrite: Rewrite) -> JoinSide:
    return replace(side, input=_stream(side.input, rewrite))


def _stream(source: StreamInput, rewrite: Rewrite) -> StreamInput:
    before, after = _handlers(source.before, rewrite), _handlers(source.after, rewrite)
    return replace(source, before=before, after=after)


def _handlers(handlers: tuple[Handler, ...], rewrite: Rewrite) -> tuple[Handler, ...]:
    return tuple(
        Filter(rewrite(h.condition))
        if isinstance(h, Filter)
        else replace(h, args=tuple(rewrite(a) for a in h.args))
        for h in handlers
    )


def _state(state: State, rewrite: Rewrite) -> State:
    match state:
        case StreamState():
            return replace(state, handlers=_handlers(state.handlers, rewrite))
        case AbsentState():
            return replace(state, handlers=_handlers(state.handlers, rewrite))
        case CountState():
            handlers = _handlers(state.state.handlers, rewrite)
            return replace(state, state=replace(state.state, handlers=handlers))
        case LogicalState():
            left = replace(state.left, handlers=_handlers(state.left.handlers, rewrite))
            right = replace(state.right, handlers=_handlers(state.right.handlers, rewrite))
            return replace(state, left=left, right=right)
        case EveryState():
            return EveryState(_state(state.state, rewrite))
        case ChainState():
            return ChainState(tuple(_state(s, rewrite) for s in state.states))


def _output(output: QueryOutput, rewrite: Rewrite) -> QueryOutput:
    match output:
        case InsertInto() | Return():
            return output
        case DeleteFrom():
            return output if output.on is None else replace(output, on=rewrite(output.on))
        case _:
            sets = tuple(replace(s, value=rewrite(s.value)) for s in output.assignments)
            return replace(output, on=rewrite(output.on), assignments=sets)
