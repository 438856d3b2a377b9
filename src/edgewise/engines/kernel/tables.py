"""Tables: rows by number in order of insertion, and by primary key; and the text that asks them.

State: [next number, rows by number, numbers by key]. A row whose key is there already is not
inserted; the old one stays. A condition that fixes the whole primary key looks up one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from edgewise.engines.kernel.exprs import Code, Exprs, Resolve
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.runtime import Row, Runtime, State
from edgewise.engines.kernel.writer import local
from edgewise.plan.exprs import Compare, Expr, Field, InTable, conjuncts, walk
from edgewise.plan.nodes import Table

_NEXT, _ROWS, _KEYS = 0, 1, 2

Test = Callable[[Row], Any]
Change = Callable[[Row], Row]


class Rows:
    """A table as the generated code sees it."""

    def __init__(self, rt: Runtime, cell: int, key: tuple[int, ...]) -> None:
        self.rt, self.cell, self.key = rt, cell, key

    def fresh(self) -> list[Any]:
        return [0, {}, {}]

    def _state(self) -> list[Any]:
        return self.rt.root[self.cell]  # type: ignore[no-any-return]

    def _key(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def insert(self, row: Row) -> None:
        state = self._state()
        if self.key:
            key = self._key(row)
            if key in state[_KEYS]:
                faults = self.rt.faults
                faults["duplicate key"] = faults.get("duplicate key", 0) + 1
                return
            state[_KEYS][key] = state[_NEXT]
        state[_ROWS][state[_NEXT]] = row
        state[_NEXT] += 1

    def rows(self, key: Row | None = None) -> Iterator[Row]:
        """All rows, or the one that has this primary key."""
        state = self._state()
        if key is None and self.key:
            return iter([state[_ROWS][n] for n in self._in_order(state)])
        if key is None:
            return iter(list(state[_ROWS].values()))
        number = state[_KEYS].get(key)
        return iter(()) if number is None else iter((state[_ROWS][number],))

    def _in_order(self, state: list[Any]) -> list[int]:
        """Numbers of the rows by primary key; null first."""
        keys = state[_KEYS]
        return [keys[k] for k in sorted(keys, key=lambda k: [(v is not None, v) for v in k])]

    def content(self, _state: State) -> Iterator[tuple[int, Row]]:
        return ((0, row) for row in self.rows())

    def _matching(self, test: Test, key: Row | None) -> list[int]:
        state = self._state()
        if key is not None:
            number = state[_KEYS].get(key)
            return [number] if number is not None and test(state[_ROWS][number]) else []
        return [number for number, row in state[_ROWS].items() if test(row)]

    def delete(self, test: Test, key: Row | None = None) -> None:
        state = self._state()
        for number in self._matching(test, key):
            row = state[_ROWS].pop(number)
            if self.key:
                del state[_KEYS][self._key(row)]

    def update(self, test: Test, change: Change, key: Row | None = None) -> bool:
        """Whether any row was there to change."""
        state = self._state()
        changes = {n: change(state[_ROWS][n]) for n in self._matching(test, key)}
        if self.key and not self._rekey(state, changes):
            return True
        state[_ROWS].update(changes)
        return bool(changes)

    def _rekey(self, state: list[Any], changes: dict[int, Row]) -> bool:
        """Move the keys along, or refuse all changes where two rows would share one."""
        keys = {k: n for k, n in state[_KEYS].items() if n not in changes}
        for number, after in changes.items():
            if keys.setdefault(self._key(after), number) != number:
                self.rt.faults["duplicate key"] = self.rt.faults.get("duplicate key", 0) + 1
                return False
        state[_KEYS] = keys
        return True


def table_name(name: str) -> str:
    return f"table_{local(name)}"


def write_table(page: Page, table: Table) -> None:
    """The line that makes a table; its state lives outside every partition."""
    key = tuple(table.schema.index(name) for name in table.primary_key)
    cell = page.root.next_cell
    page.stores[table.name] = cell
    page.writer.line(f"{table_name(table.name)} = tab.Rows(rt, {cell}, {key!r})")
    page.writer.line(f"rt.stores[{table.name!r}] = {table_name(table.name)}")
    page.root.cell(f"{table_name(table.name)}.fresh()")


def table_resolve(page: Page, table: str, row: str, resolve: Resolve) -> Resolve:
    """Fields of the slot named as the table are columns of `row`."""
    schema = page.schema(table)

    def inner(expr: Expr) -> Code:
        if isinstance(expr, Field) and expr.slot == table:
            return Code(f"{row}[{schema.index(expr.name)}]")
        return resolve(expr)

    return inner


def test_text(page: Page, table: str, condition: Expr | None, resolve: Resolve) -> tuple[str, str]:
    """A test of a row as a lambda, and the primary key it fixes (or None), as text."""
    if condition is None:
        return "lambda t: True", "None"
    inner = table_resolve(page, table, "t", resolve)

    def nested(expr: InTable, outer: Resolve) -> str:
        return in_table(page, expr, outer)

    text = Exprs(page.writer, inner, nested).condition(condition)
    return f"lambda t: {text}", _fixed_key(page, table, condition, resolve)


def _fixed_key(page: Page, table: str, condition: Expr, resolve: Resolve) -> str:
    declared = page.app.table(table)
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
    exprs = Exprs(page.writer, resolve)
    values = [exprs.value(fixed[name]) for name in declared.primary_key]
    return f"({', '.join(values)},)"


def _reads(expr: Expr, slot: str) -> bool:
    return any(isinstance(n, Field) and n.slot == slot for n in walk(expr))


def in_table(page: Page, expr: InTable, resolve: Resolve) -> str:
    """`condition in table` as text."""
    test, key = test_text(page, expr.table, expr.condition, resolve)
    if page.app.window(expr.table) is not None:
        source = f"(r for _, r in window_{local(expr.table)}.content(rt.root))"
        return f"any(map({test}, {source}))"
    return f"any(map({test}, {table_name(expr.table)}.rows({key})))"
