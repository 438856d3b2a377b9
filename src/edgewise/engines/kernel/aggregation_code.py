"""Aggregations as text: what an event adds, and the rows a join or a question reads."""

from __future__ import annotations

from edgewise.engines.kernel.exprs import Exprs
from edgewise.engines.kernel.names import Names
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.writer import local
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg, Expr, walk
from edgewise.plan.nodes import Aggregation, Filter

KINDS = {"sum", "avg", "count", "min", "max", "distinctcount"}


def aggregation_name(name: str) -> str:
    return f"agg_{local(name)}"


def write_aggregation(page: Page, aggregation: Aggregation) -> None:
    w, name = page.writer, aggregation_name(aggregation.name)
    source = aggregation.input
    names = Names((source.slot, n, None) for n in page.schema(source.stream).names)
    exprs = Exprs(w, names.code)
    kinds, values = zip(*(_item(i.expr, exprs) for i in aggregation.select.items), strict=True)
    moment = f"acc.stamp({exprs.value(aggregation.by)})" if aggregation.by else "ts"
    group = ", ".join(exprs.value(f) for f in aggregation.select.group_by)
    used = [i.expr for i in aggregation.select.items]
    used += [*aggregation.select.group_by, *([aggregation.by] if aggregation.by else [])]
    filters = [h.condition for h in (*source.before, *source.after) if isinstance(h, Filter)]
    with w.block(f"def {name}_values(ts, row)"):
        text = names.unpack(names.used(*used))
        if text:
            w.line(text)
        w.line(f"return {moment}, ({group}{',' if group else ''}), ({', '.join(values)},)")
    cell = page.root.next_cell
    page.stores[aggregation.name] = cell
    args = f"rt, {cell}, {aggregation.durations!r}, {kinds!r}, {name}_values"
    by = ", by_attribute=True" if aggregation.by else ""
    zone = f", zone={aggregation.zone!r}" if aggregation.zone != "UTC" else ""
    purge = ""
    if aggregation.purge_ms is not None:
        node = page.node(f"{name}.timer")
        purge = f", purge=({node}, {aggregation.purge_ms}, {dict(aggregation.retention_ms)!r})"
    w.line(f"{name} = acc.Buckets({args}{by}{zone}{purge})")
    w.line(f"rt.stores[{aggregation.name!r}] = {name}")
    page.root.cell(f"{name}.fresh()")
    with w.block(f"def {name}_in(S, chunk)"), w.block("for _, ts, row in chunk"):
        text = names.unpack(names.used(*filters))
        if text:
            w.line(text)
        for condition in filters:
            with w.block(f"if not {exprs.condition(condition)}"):
                w.line("continue")
        w.line(f"{name}.add(S, ts, row)")


def _item(expr: Expr, exprs: Exprs) -> tuple[str, str]:
    """What is kept for a select item, and the text of the value an event adds."""
    if isinstance(expr, Agg):
        kind = expr.name.lower()
        if kind not in KINDS:
            raise LookupError(f"an aggregation does not keep '{expr.name}'")
        value = exprs.value(expr.args[0]) if expr.args else "None"
        whole = expr.args and expr.args[0].type in {AttrType.INT, AttrType.LONG}
        return ("avg of whole" if kind == "avg" and whole else kind), value
    if any(isinstance(n, Agg) for n in walk(expr)):
        raise LookupError("an aggregation keeps single aggregates, not expressions of them")
    return "last", exprs.value(expr)
