"""Write aggregations: what an event adds, and the rows that a join or an on-demand query reads."""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.expr_text import ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.function_binding import aggregate_name
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.plan.exprs import Agg, Expr, walk
from edgewise.plan.nodes import Aggregation, Filter


def write_aggregation(builder: FragmentBuilder, aggregation: Aggregation) -> None:
    w, name = builder.writer, builder.store_name(aggregation.name)
    source = aggregation.input
    names = RowLayout((source.slot, n, None) for n in builder.schema(source.stream).names)
    exprs = ExprWriter(w, names.code)
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
    cell = builder.root.next_cell
    builder.stores[aggregation.name] = cell
    args = f"rt, {cell}, {aggregation.durations!r}, {kinds!r}, {name}_values"
    by = ", by_attribute=True" if aggregation.by else ""
    zone = f", zone={aggregation.zone!r}" if aggregation.zone != "UTC" else ""
    purge = ""
    if aggregation.purge_ms is not None:
        node = builder.node(f"{name}.timer")
        purge = f", purge=({node}, {aggregation.purge_ms}, {dict(aggregation.retention_ms)!r})"
    own = {
        i.expr.name.lower(): aggregate_name(w, i.expr, retaining=False)
        for i in aggregation.select.items
        if isinstance(i.expr, Agg) and i.expr.body is not None
    }
    bodies = ", ".join(f"{kind!r}: {body}" for kind, body in own.items())
    mine = f", own={{{bodies}}}" if own else ""
    w.line(f"{name} = acc.Buckets({args}{by}{zone}{purge}{mine})")
    w.line(f"rt.stores[{aggregation.name!r}] = {name}")
    builder.root.cell(f"{name}.fresh()")
    with w.block(f"def {name}_in(S, chunk)"), w.block("for _, ts, row in chunk"):
        text = names.unpack(names.used(*filters))
        if text:
            w.line(text)
        for condition in filters:
            with w.block(f"if not {exprs.condition(condition)}"):
                w.line("continue")
        w.line(f"{name}.add(S, ts, row)")


def _item(expr: Expr, exprs: ExprWriter) -> tuple[str, str]:
    """What is kept for a select item, and the text of the value an event adds."""
    if isinstance(expr, Agg):
        kind = expr.name.lower()
        if expr.body is not None:
            values = [exprs.value(a) for a in expr.args]
            return kind, values[0] if len(values) == 1 else f"agg.joined({', '.join(values)})"
        value = exprs.value(expr.args[0]) if kind != "count" else "True"  # it counts nulls too
        whole = expr.args and expr.args[0].type in {AttrType.INT, AttrType.LONG}
        return ("avg of whole" if kind == "avg" and whole else kind), value
    assert not any(isinstance(n, Agg) for n in walk(expr)), "refused when the app is compiled"
    return "last", exprs.value(expr)
