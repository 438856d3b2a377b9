"""Keep the rows of a table in a database instead of the kernel's state: `@store(...)`.

The generated code sees a table as before. What it asks for goes to a `Backend` as comparisons of
columns with values (`Where`), which the database answers with its own indexes; the test of the
query then looks at each row that comes back, so a database that compares otherwise than Siddhi
(text without case, padded blanks) gives too many candidates and never a wrong row.

Writes of a micro-batch are one transaction, which records the batch. A batch that is computed
again after a crash finds itself recorded and writes nothing; its reads see the database as it is
then. Until an engine opens the backend, as in `replay`, rows are kept as those of any table.
`codegen.table_access` writes the code that calls this, `engines.batch.open_stores` opens it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

from edgewise.kernel.operators.table_rows import Change, TableRows, Test
from edgewise.kernel.runtime import Row, Runtime, State

Where = tuple[tuple[int, str, object], ...]  # column, one of == < <= > >=, value; all must hold


class Backend(Protocol):
    """Rows of one table elsewhere. Reads see the writes of the open transaction."""

    def select(self, where: Where) -> Sequence[Row]:
        """At least the rows for which all of `where` holds, each value in the kernel's type."""
        ...

    def insert(self, row: Row) -> None: ...

    def replace(self, old: Row, new: Row) -> bool:
        """False where the primary key of `new` is that of another row."""
        ...

    def delete(self, row: Row) -> None: ...

    def take_refused(self) -> int:
        """How many inserted rows since the last call had the primary key of another row."""
        ...


class StoredTable(TableRows):
    """`cache_rows` answers are kept for at most `cache_ms` of the app's time; 0: for ever."""

    def __init__(
        self,
        rt: Runtime,
        cell: int,
        key: tuple[int, ...],
        cache_rows: int = 0,
        cache_ms: int = 0,
    ) -> None:
        super().__init__(rt, cell, key)
        self.backend: Backend | None = None
        self.writes = True  # False while events are fed whose writes are in the database
        self._cache_rows, self._cache_ms = cache_rows, cache_ms
        self._cache: OrderedDict[Where, tuple[int, Sequence[Row]]] = OrderedDict()

    def open(self, backend: Backend) -> None:
        self.backend = backend
        self._cache.clear()

    def rows(self, key: Row | None = None, where: Where = ()) -> Iterator[Row]:
        if self.backend is None:
            return super().rows(key)
        return iter(self._select(self.backend, where))

    def content(self, _state: State, where: Where = ()) -> Iterator[tuple[int, Row]]:
        return ((0, row) for row in self.rows(None, where))

    def insert(self, row: Row) -> None:
        if self.backend is None:
            super().insert(row)
        elif self.writes:
            self._cache.clear()
            self.backend.insert(row)

    def delete(self, test: Test, key: Row | None = None, where: Where = ()) -> None:
        if self.backend is None:
            super().delete(test, key)
        elif self.writes:
            for row in self._find_matching(self.backend, test, where):
                self.backend.delete(row)

    def update(
        self, test: Test, change: Change, key: Row | None = None, where: Where = ()
    ) -> bool:
        if self.backend is None:
            return super().update(test, change, key)
        if not self.writes:
            return True
        found = self._find_matching(self.backend, test, where)
        for row in found:
            if not self.backend.replace(row, change(row)):
                self._count_refused(1)
        return bool(found)

    def count_refused(self) -> None:
        """Count the inserts since the last call that the database refused."""
        if self.backend is not None:
            self._count_refused(self.backend.take_refused())

    def _find_matching(self, backend: Backend, test: Test, where: Where) -> list[Row]:
        self._cache.clear()
        return list(dict.fromkeys(row for row in backend.select(where) if test(row)))

    def _select(self, backend: Backend, where: Where) -> Sequence[Row]:
        if not self._cache_rows:
            return backend.select(where)
        now = self.rt.now
        kept = self._cache.get(where)
        if kept is not None and (not self._cache_ms or now - kept[0] < self._cache_ms):
            self._cache.move_to_end(where)
            return kept[1]
        rows = backend.select(where)
        self._cache[where] = (now, rows)
        while len(self._cache) > self._cache_rows:
            self._cache.popitem(last=False)
        return rows

    def _count_refused(self, count: int) -> None:
        if count:
            faults = self.rt.faults
            faults["duplicate key"] = faults.get("duplicate key", 0) + count
