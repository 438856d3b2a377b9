"""Hold the rows of a table: by number in order of insertion, and by primary key.

State: [next number, rows by number, numbers by key]. A row whose key is there already is not
inserted; the old one stays. `codegen.table_access` writes the code that calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from edgewise.kernel.runtime import Row, Runtime, State

_NEXT, _ROWS, _KEYS = 0, 1, 2

Test = Callable[[Row], Any]
Change = Callable[[Row], Row]


class TableRows:
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
