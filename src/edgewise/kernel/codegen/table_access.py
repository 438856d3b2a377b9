"""Write what reads tables: their definition, conditions on their rows, `in`.

A condition that fixes the whole primary key looks up one row.
"""

from __future__ import annotations

from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
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
    builder.writer.line(f"{builder.store_name(table.name)} = tab.TableRows(rt, {cell}, {key!r})")
    builder.writer.line(f"rt.stores[{table.name!r}] = {builder.store_name(table.name)}")
    builder.root.cell(f"{builder.store_name(table.name)}.fresh()")


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
    """A test of a row as a lambda, and the primary key it fixes (or None), as text."""
    row = builder.writer.temporary()  # tests stand in one another: `(.. in U) in T`
    if condition is None:
        return f"lambda {row}: True", "None"
    inner = table_resolve(builder, table, row, resolve)

    def nested(expr: InTable, outer: Resolve) -> str:
        return in_table(builder, expr, outer)

    text = ExprWriter(builder.writer, inner, nested).condition(condition)
    return f"lambda {row}: {text}", _fixed_key(builder, table, condition, resolve)


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


def _reads(expr: Expr, slot: str) -> bool:
    return any(isinstance(n, Field) and n.slot == slot for n in walk(expr))


def in_table(builder: FragmentBuilder, expr: InTable, resolve: Resolve) -> str:
    """`condition in table` as text."""
    test, key = test_text(builder, expr.table, expr.condition, resolve)
    if builder.app.window(expr.table) is not None:
        source = f"(r for _, r in {builder.store_name(expr.table)}.content(rt.root))"
        return f"any(map({test}, {source}))"
    return f"any(map({test}, {builder.store_name(expr.table)}.rows({key})))"
