"""On-demand queries: one look at, or one change of, what an app holds.

The query is compiled to a selector of its own, loaded beside the running kernel, run once over the
content of its store as one chunk, and forgotten.
"""

from __future__ import annotations

from typing import Any

from edgewise.engines.kernel.exprs import Exprs
from edgewise.engines.kernel.names import Names
from edgewise.engines.kernel.outputs import OutputCode
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.runtime import Chunk, Row, Runtime
from edgewise.engines.kernel.selector import SelectorCode
from edgewise.engines.kernel.tables import in_table, table_name
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


def ask(app: App, rt: Runtime, query: OnDemandQuery, space: dict[str, Any]) -> list[Row]:
    """The rows of the answer; none for a change."""
    rt.state(())
    source = _source(app, query)
    found: list[Any] = []
    names = {table_name(n): s for n, s in rt.stores.items()}
    scope = {**space, **names, "rt": rt, "emit": rt.emit, "found": found}
    exec(compile(source, "<on demand>", "exec"), scope)  # noqa: S102  our own text
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


def _source(app: App, query: OnDemandQuery) -> str:
    page = Page(app, Fragment("ask", ()), frozenset())
    output = query.output or Return()
    as_query = Query("ask", StreamInput(query.store, query.slot), query.select, output)
    page.queries = (as_query,)
    w = page.writer
    schema = page.schema(query.store).names if query.store else ()
    names = Names((query.slot, n, None) for n in schema)

    def tables(expr: Any, resolve: Any) -> str:
        return in_table(page, expr, resolve)

    select = SelectorCode(
        w, query.select, names, EventType.CURRENT, cell=2, only_current=True, tables=tables
    )
    exprs = Exprs(w, names.code, tables)
    OutputCode(page, as_query, "ask", page.root).write()
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
    return w.text()
