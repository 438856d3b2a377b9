"""Read the rows that were added to a table of a database since a position, in order.

The position is the value of one column that only grows: a number, or a timestamp as microseconds.
Rows that share a value are read together, so none is left behind between two reads. Used by the
`cdc` source.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from edgewise.stores.spec import BadStore, StoreUnavailable

ROWS_MAX = 1000  # of one read, unless more of them share one value
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  as databases keep them
_MICROSECOND = dt.timedelta(microseconds=1)


class TablePoller:
    """One table; a connection for each read."""

    def __init__(self, engine: sa.Engine, table: str, column: str, limit: int = ROWS_MAX) -> None:
        self._engine, self._name, self._column_name = engine, table, column
        self._limit = limit
        self._table: sa.Table | None = None

    def read(self, after: int) -> list[tuple[int, dict[str, Any]]]:
        """Position and columns of rows beyond `after`; StoreUnavailable where it cannot be had."""
        try:
            with self._engine.connect() as connection:
                return self._read(connection, after)
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", error)).strip()
            raise StoreUnavailable(f"the table {self._name}: {reason}") from error

    def _read(self, connection: sa.Connection, after: int) -> list[tuple[int, dict[str, Any]]]:
        if self._table is None:
            self._table = sa.Table(self._name, sa.MetaData(), autoload_with=connection)
        column = self._find_column(self._table)
        query = sa.select(self._table).where(column > _to_value(column, after)).order_by(column)
        rows = self._fetch(connection, query.limit(self._limit), column)
        if len(rows) < self._limit:
            return rows
        last = rows[-1][0]
        if rows[0][0] < last:
            return [row for row in rows if row[0] < last]
        same = sa.select(self._table).where(column == _to_value(column, last))
        return self._fetch(connection, same, column)

    def _find_column(self, table: sa.Table) -> sa.Column[Any]:
        for column in table.columns:
            if column.name.lower() == self._column_name.lower():
                return column
        known = ", ".join(column.name for column in table.columns)
        raise BadStore(
            f"polling.column='{self._column_name}': {self._name} has the columns {known}",
            "polling.column",
        )

    def _fetch(
        self, connection: sa.Connection, query: Any, column: sa.Column[Any]
    ) -> list[tuple[int, dict[str, Any]]]:
        found = connection.execute(query).mappings()
        return [(_to_position(row[column.name]), dict(row)) for row in found]


def _to_position(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    if isinstance(value, int):
        return value
    raise BadStore(
        f"polling.column has '{value}': it must be a whole number or a timestamp", "polling.column"
    )


def _to_value(column: sa.Column[Any], position: int) -> Any:
    if isinstance(column.type, sa.DateTime):
        return _EPOCH + position * _MICROSECOND
    return position
