"""Lower an on-demand query against the tables, named windows and aggregations of an app."""

from __future__ import annotations

from edgewise.lang.lower.context import LoweringContext, PlanInProgress
from edgewise.lang.lower.inputs import STORE_KINDS, lower_range
from edgewise.lang.lower.outputs import lower_output
from edgewise.lang.lower.queries import lower_inner
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.selection import build_output_schema, lower_selection
from edgewise.lang.lower.symbols import AGGREGATION, STREAM, TABLE, WINDOW, Entry, Symbols
from edgewise.lang.report import Report
from edgewise.lang.source import NOWHERE
from edgewise.lang.syntax.query import OnDemand
from edgewise.plan import nodes
from edgewise.plan.functions import FunctionTable


def lower_on_demand(
    report: Report, node: OnDemand, app: nodes.App, functions: FunctionTable
) -> nodes.OnDemandQuery:
    draft = LoweringContext(
        report, _build_symbols(report, app), functions, PlanInProgress(), lower_inner
    )
    slots: tuple[Slot, ...] = ()
    kind = nodes.StoreKind.TABLE
    if node.store is not None:
        entry, schema = draft.symbols.find(node.store, TABLE, WINDOW, AGGREGATION)
        kind = STORE_KINDS[entry.kind]
        label = node.alias or node.store.text
        slots = (Slot(label, schema, (label,)),)
    context = draft.context(slots)
    on = None
    if node.on is not None:
        on = context.without_aggregates("in 'on'").boolean(node.on, "'on'")
    aggregation = kind is nodes.StoreKind.AGGREGATION
    within, per = lower_range(context, node.within, node.per, aggregation, node.at)
    select = nodes.Select(())
    if node.store is not None or node.selection is not None:
        select = lower_selection(context, node.selection, node.at)
    output = None
    if node.output is not None:
        rows = build_output_schema("", select.items)
        if node.output.target is not None:
            draft.symbols.find(node.output.target, TABLE)
        output = lower_output(draft, node.output, rows)
    store = node.store.text if node.store else ""
    label = slots[0].name if slots else ""
    return nodes.OnDemandQuery(store, kind, label, select, on, within, per, output)


def _build_symbols(report: Report, app: nodes.App) -> Symbols:
    found = Symbols(report)
    held = [
        *((STREAM, s.schema) for s in app.streams),
        *((TABLE, t.schema) for t in app.tables),
        *((WINDOW, w.schema) for w in app.windows),
        *((AGGREGATION, a.schema) for a in app.aggregations),
    ]
    for kind, schema in held:
        found.define(Entry(kind, schema.name, schema, NOWHERE))
    return found
