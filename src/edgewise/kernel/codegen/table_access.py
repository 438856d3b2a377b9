"""Write what reads tables: their definition, conditions on their rows, `in`.

A condition that fixes the whole primary key looks up one row. Of a table with `@store` the parts
of a condition that compare a column with a value go to the database.
"""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.plan.durations import parse_duration
from edgewise.plan.exprs import (
    Compare,
    Expr,
    Field,
    InTable,
    SlotIsNull,
    SlotTime,
    conjuncts,
    walk,
)
from edgewise.plan.nodes import Table


def write_table(builder: FragmentBuilder, table: Table) -> None:
    """The line that makes a table; its state lives outside every partition."""
    key = tuple(table.schema.index(name) for name in table.primary_key)
    cell = builder.root.next_cell
    builder.stores[table.name] = cell
    name = builder.store_name(table.name)
    if is_stored(builder, table.name):
        builder.writer.line(f"{name} = sto.StoredTable(rt, {cell}, {key!r}, {_cache_text(table)})")
    else:
        builder.writer.line(f"{name} = tab.TableRows(rt, {cell}, {key!r})")
    builder.writer.line(f"rt.stores[{table.name!r}] = {builder.store_name(table.name)}")
    builder.root.cell(f"{builder.store_name(table.name)}.fresh()")


def is_stored(builder: FragmentBuilder, table: str) -> bool:
    declared = builder.app.table(table)
    return declared is not None and declared.annotated("store") is not None


def _cache_text(table: Table) -> str:
    """How many answers are kept, and for how many milliseconds."""
    store = table.annotated("store")
    for cache in () if store is None else store.nested:
        if cache.name.lower() == "cache":
            size, kept_ms = cache.get("size"), parse_duration(cache.get("retention.period"))
            return f"{int(size) if size.isdigit() else 0}, {kept_ms}"
    return "0, 0"


def table_resolve(builder: FragmentBuilder, table: str, row: str, resolve: Resolve) -> Resolve:
    """Fields of the slot named as the table are columns of `row`."""
    schema = builder.schema(table)

    def inner(expr: Expr) -> ExprText:
        if isinstance(expr, Field) and expr.slot == table:
            return ExprText(f"{row}[{schema.index(expr.name)}]")
        if isinstance(expr, SlotIsNull) and expr.slot == table:
            return ExprText("False", nullable=False)
        if isinstance(expr, SlotTime) and expr.slot == table:
            return ExprText("0", nullable=False)  # rows of a table have no time
        return resolve(expr)

    return inner


def test_text(
    builder: FragmentBuilder, table: str, condition: Expr | None, resolve: Resolve
) -> tuple[str, str]:
    """A test of a row as a lambda, and the primary key it fixes (or None), as text.

    For a table with `@store` what its database may test follows the key.
    """
    row = builder.writer.temporary()  # tests stand in one another: `(.. in U) in T`
    where = ""
    if is_stored(builder, table):
        where = f", {where_text(builder, table, table, condition, resolve)}"
    if condition is None:
        return f"lambda {row}: True", f"None{where}"
    inner = table_resolve(builder, table, row, resolve)

    def nested(expr: InTable, outer: Resolve) -> str:
        return in_table(builder, expr, outer)

    text = ExprWriter(builder.writer, inner, nested).condition(condition)
    return f"lambda {row}: {text}", _fixed_key(builder, table, condition, resolve) + where


def where_text(
    builder: FragmentBuilder, table: str, slot: str, condition: Expr | None, resolve: Resolve
) -> str:
    """What a database may test of a condition, as the text of a `stored_table.Where`.

    Not what compares floats: the database may hold them in another precision.
    """
    schema, exprs = builder.schema(table), ExprWriter(builder.writer, resolve)
    parts = []
    for node in () if condition is None else conjuncts(condition):
        if not isinstance(node, Compare) or node.op not in _TURNED:
            continue
        sides = ((node.left, node.op, node.right), (node.right, _TURNED[node.op], node.left))
        for mine, op, other in sides:
            if (
                isinstance(mine, Field)
                and mine.slot == slot
                and AttrType.FLOAT not in {mine.type, other.type}
                and AttrType.OBJECT not in {mine.type, other.type}
                and not any(isinstance(n, InTable) or _slot(n) == slot for n in walk(other))
            ):
                parts.append(f"({schema.index(mine.name)}, {op!r}, {exprs.value(other)})")
                break
    return f"({', '.join(parts)},)" if parts else "()"


_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _fixed_key(builder: FragmentBuilder, table: str, condition: Expr, resolve: Resolve) -> str:
    declared = builder.app.table(table)
    if declared is None or not declared.primary_key:
        return "None"
    fixed: dict[str, Expr] = {}
    for node in conjuncts(condition):
        if isinstance(node, Compare) and node.op == "==":
            for mine, other in ((node.left, node.right), (node.right, node.left)):
                if (
                    isinstance(mine, Field)
                    and mine.slot == table
                    and mine.type is other.type
                    and not _reads(other, table)
                ):
                    fixed.setdefault(mine.name, other)
    if not set(declared.primary_key) <= set(fixed):
        return "None"
    exprs = ExprWriter(builder.writer, resolve)
    values = [exprs.value(fixed[name]) for name in declared.primary_key]
    return f"({', '.join(values)},)"


def _slot(expr: Expr) -> str:
    return expr.slot if isinstance(expr, Field | SlotIsNull | SlotTime) else ""


def _reads(expr: Expr, slot: str) -> bool:
    return any(isinstance(n, Field) and n.slot == slot for n in walk(expr))


def in_table(builder: FragmentBuilder, expr: InTable, resolve: Resolve) -> str:
    """`condition in table` as text."""
    test, key = test_text(builder, expr.table, expr.condition, resolve)
    if builder.app.window(expr.table) is not None:
        source = f"(r for _, r in {builder.store_name(expr.table)}.content(rt.root))"
        return f"any(map({test}, {source}))"
    return f"any(map({test}, {builder.store_name(expr.table)}.rows({key})))"
