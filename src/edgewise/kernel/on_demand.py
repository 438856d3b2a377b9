"""Answer an on-demand query: read, or change, what an app holds.

The query is compiled to a selector of its own, loaded beside the running kernel, run once over the
content of its store as one chunk, and forgotten.
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.codegen.expr_text import ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.query_output import OutputWriter
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.selector import SelectWriter
from edgewise.kernel.codegen.table_access import in_table
from edgewise.kernel.runtime import Chunk, Row, Runtime
from edgewise.plan.exprs import Const, Expr
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    EventType,
    OnDemandQuery,
    Query,
    Return,
    StoreKind,
    StreamInput,
)


def answer(app: App, rt: Runtime, query: OnDemandQuery, space: dict[str, Any]) -> list[Row]:
    """The rows of the answer; none for a change."""
    rt.state(())
    builder = _builder(app, query)
    found: list[Any] = []
    stores = {builder.store_name(name): store for name, store in rt.stores.items()}
    scope = {**space, **builder.writer.bound, **stores, "rt": rt, "emit": rt.emit, "found": found}
    exec(compile(builder.writer.text(), "<on demand>", "exec"), scope)  # noqa: S102  our own text
    state = [None, None, scope["cells"]()]
    scope["ask_in"](state, _content(rt, query))
    return [row[2] for row in found]


def _content(rt: Runtime, query: OnDemandQuery) -> Chunk:
    if not query.store:
        return [(0, rt.now, ())]
    store = rt.stores[query.store]
    if query.kind is StoreKind.AGGREGATION:
        within = tuple(_constant(e) for e in query.within)
        per = _constant(query.per) if query.per is not None else "seconds"
        return [(0, ts, row) for ts, row in store.rows(within, per)]
    return [(0, ts, row) for ts, row in store.content(rt.root)]


def _constant(expr: Expr) -> Any:
    assert isinstance(expr, Const), "there is no event to read 'within' and 'per' from"
    return expr.value


def _builder(app: App, query: OnDemandQuery) -> FragmentBuilder:
    builder = FragmentBuilder(app, Fragment("ask", ()), frozenset())
    output = query.output or Return()
    as_query = Query("ask", StreamInput(query.store, query.slot), query.select, output)
    builder.queries = (as_query,)
    w = builder.writer
    schema = builder.schema(query.store).names if query.store else ()
    names = RowLayout((query.slot, n, None) for n in schema)

    def tables(expr: Any, resolve: Any) -> str:
        return in_table(builder, expr, resolve)

    select = SelectWriter(
        w, query.select, names, EventType.CURRENT, cell=2, only_current=True, tables=tables
    )
    exprs = ExprWriter(w, names.code, tables)
    OutputWriter(builder, as_query, "ask", builder.root).write()
    with w.block("def ask_found(S, chunk)"):
        w.line("found.extend(chunk)" if query.output is None else "ask_out(S, chunk)")
    with w.block("def ask_in(S, chunk)"):
        select.before_loop()
        with w.block("for _, ts, row in chunk"):
            text = names.unpack(names.used(query.on, *select.expressions()))
            if text:
                w.line(text)
            if query.on is not None:
                with w.block(f"if not {exprs.condition(query.on)}"):
                    w.line("continue")
            select.body()
        select.after_loop("ask_found")
    grouped = "{}" if query.select.group_by else "None"
    cells = select.start_cells() if select.aggregates and not query.select.group_by else grouped
    w.line(f"cells = lambda: {cells}")
    return builder
