"""Keep the rows of a table in a relational database, through SQLAlchemy.

A table of the app is a table of the database; it is created where it is not there, with its
primary key and indexes. Inserts wait in memory and go out together, before the next read or with
the commit. The commit records the batch in `edgewise_progress`, in the same transaction, so that
each batch is written once. Loaded by `engines.batch.open_stores`, for apps with such a store.
"""

from __future__ import annotations

import json
import logging
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.stores.spec import BadStore, StoreSpec, StoreUnavailable, name_file

logger = logging.getLogger(__name__)
Row = tuple[Any, ...]
Where = tuple[tuple[int, str, object], ...]
KEY_CHARS = 254  # of text that is part of a key or an index, as Siddhi has it
INSERTS_MAX = 1000  # waiting in memory
RETRY_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_FLOAT = struct.Struct("f")


def open_engine(spec: StoreSpec, directory: Path) -> sa.Engine:
    """The database of a store; `directory` is for those that are files."""
    url = spec.options["url"]
    if not url:
        directory.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{directory / name_file(spec)}"
    try:
        address = sa.make_url(url)
        if not url.startswith("sqlite"):
            address = address.set(
                username=spec.options["username"] or address.username,
                password=spec.options["password"] or address.password,
            )
        engine = sa.create_engine(address, poolclass=sa.pool.NullPool)
    except (SQLAlchemyError, ImportError) as error:
        raise BadStore(f"the store of {spec.table} cannot be used: {error}", "url") from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _leave_transactions_to_us)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    """Python's driver begins transactions too late for a savepoint."""
    connection.isolation_level = None


def connect(engine: sa.Engine, name: str, wait: Callable[[float], None] = time.sleep) -> Any:
    """A connection, however long the database is away; says so with every attempt."""
    attempts = 0
    while True:
        try:
            return engine.connect()
        except SQLAlchemyError as error:
            delay = RETRY_S[min(attempts, len(RETRY_S) - 1)]
            reason = str(getattr(error, "orig", error)).strip().splitlines()[:1]
            logger.warning(
                "the store of %s does not answer (%s); trying again in %g s", name, reason, delay
            )
            attempts += 1
            wait(delay)


class SqlDatabase:
    """One connection for all tables of a fragment. `writer` counts its batches by name."""

    def __init__(self, engine: sa.Engine, writer: str, name: str) -> None:
        self._engine, self._writer, self._name = engine, writer, name
        self.connection = connect(engine, name)
        self.metadata = sa.MetaData()
        self.tables: list[SqlBackend] = []
        self._progress = sa.Table(
            "edgewise_progress",
            self.metadata,
            sa.Column("writer", sa.String(200), primary_key=True),
            sa.Column("batch", sa.BigInteger, nullable=False),
        )

    def add_table(self, spec: StoreSpec, schema: Schema) -> SqlBackend:
        """Create it where it is not there."""
        table = SqlBackend(self, spec, schema)
        self.tables.append(table)
        self.guard(self._create)
        return table

    def _create(self) -> None:
        self.metadata.create_all(self.connection, checkfirst=True)
        self.connection.commit()

    def guard(self, do: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return do(*arguments)
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", error)).strip()
            raise StoreUnavailable(f"the store of {self._name}: {reason}") from error

    def read_batch(self) -> int:
        """The last batch that was committed; -1 for none."""
        query = sa.select(self._progress.c.batch).where(self._progress.c.writer == self._writer)
        found = self.guard(lambda: self.connection.execute(query).scalar())
        self.guard(self.connection.rollback)
        return -1 if found is None else int(found)

    def commit(self, batch: int | None) -> None:
        """Make the writes durable, together with the batch they belong to, if there is one."""
        self.guard(self._commit, batch)

    def _commit(self, batch: int | None) -> None:
        for table in self.tables:
            table.flush()
        if batch is not None:
            self._record(batch)
        self.connection.commit()

    def _record(self, batch: int) -> None:
        table, mine = self._progress, self._progress.c.writer == self._writer
        found = self.connection.execute(sa.select(table.c.batch).where(mine)).first()
        if found is None:
            values = {"writer": self._writer, "batch": batch}
            self.connection.execute(table.insert().values(**values))
        else:
            self.connection.execute(table.update().where(mine).values(batch=batch))

    def rollback(self) -> None:
        """Drop the writes since the last commit; the next read sees the newest rows."""
        for table in self.tables:
            table.waiting.clear()
        self.guard(self.connection.rollback)

    def close(self) -> None:
        try:
            self.connection.close()
        except SQLAlchemyError as error:
            logger.debug("closing the store of %s: %s", self._name, error)
        self._engine.dispose()


class SqlBackend:
    """One table of a database."""

    def __init__(self, database: SqlDatabase, spec: StoreSpec, schema: Schema) -> None:
        self._database = database
        self._table = _describe_table(spec, schema, database.metadata)
        self._columns = [self._table.c[a.name] for a in schema.attributes]
        self._readers = [_READ.get(a.type) for a in schema.attributes]
        self._writers = [_WRITE.get(a.type) for a in schema.attributes]
        self._key = [schema.index(name) for name in spec.primary_key]
        self.waiting: list[dict[str, Any]] = []
        self._refused = 0

    def select(self, where: Where) -> Sequence[Row]:
        if any(value is None for _, _, value in where):
            return ()  # nothing is equal to null, nor less
        return self._database.guard(self._select, where)  # type: ignore[no-any-return]

    def _select(self, where: Where) -> list[Row]:
        self.flush()
        query = sa.select(*self._columns)
        for column, op, value in where:
            query = query.where(_OPERATORS[op](self._columns[column], value))
        if self._key:
            query = query.order_by(*(self._columns[i] for i in self._key))
        readers = self._readers
        if not any(readers):
            return [tuple(row) for row in self._database.connection.execute(query)]
        return [
            tuple(
                value if read is None or value is None else read(value)
                for value, read in zip(row, readers, strict=True)
            )
            for row in self._database.connection.execute(query)
        ]

    def insert(self, row: Row) -> None:
        self.waiting.append(self._values(row))
        if len(self.waiting) >= INSERTS_MAX:
            self._database.guard(self.flush)

    def replace(self, old: Row, new: Row) -> bool:
        return self._database.guard(self._replace, old, new)  # type: ignore[no-any-return]

    def _replace(self, old: Row, new: Row) -> bool:
        change = self._table.update().where(self._matches(old)).values(self._values(new))
        if not self._key or all(old[i] == new[i] for i in self._key):
            self._database.connection.execute(change)
            return True
        return self._try_alone(change)

    def delete(self, row: Row) -> None:
        self._database.guard(
            self._database.connection.execute, self._table.delete().where(self._matches(row))
        )

    def take_refused(self) -> int:
        refused, self._refused = self._refused, 0
        return refused

    def _matches(self, row: Row) -> Any:
        """The row by its primary key, or by all of its values."""
        values = self._values(row)
        indexes = self._key or range(len(row))
        parts = []
        for i in indexes:
            column, value = self._columns[i], values[self._columns[i].name]
            parts.append(column.is_(None) if value is None else column == value)
        return sa.and_(*parts)

    def _values(self, row: Row) -> dict[str, Any]:
        return {
            column.name: value if write is None or value is None else write(value)
            for column, value, write in zip(self._columns, row, self._writers, strict=True)
        }

    def flush(self) -> None:
        """Together; one by one where a primary key is taken, so that only that row is refused."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        try:
            with self._database.connection.begin_nested():
                self._database.connection.execute(self._table.insert(), waiting)
        except IntegrityError:
            for row in waiting:
                self._refused += not self._try_alone(self._table.insert().values(row))

    def _try_alone(self, statement: Any) -> bool:
        try:
            with self._database.connection.begin_nested():
                self._database.connection.execute(statement)
        except IntegrityError:
            return False
        return True


def _describe_table(spec: StoreSpec, schema: Schema, metadata: sa.MetaData) -> sa.Table:
    lengths = _parse_lengths(spec.options["field.length"])
    indexed = {*spec.primary_key, *(name for index in spec.indexes for name in index)}
    name = spec.options["table.name"] or spec.table
    columns = []
    for attribute in schema.attributes:
        kind: Any = _TYPES[attribute.type]
        if attribute.type is AttrType.STRING and (
            attribute.name in indexed or attribute.name in lengths
        ):
            kind = sa.String(lengths.get(attribute.name, KEY_CHARS))
        in_key = attribute.name in spec.primary_key
        columns.append(sa.Column(attribute.name, kind, primary_key=in_key, nullable=not in_key))
    for column in columns:
        column.autoincrement = False
    more = [sa.Index(f"{name}_{'_'.join(index)}"[:60], *index) for index in spec.indexes]
    return sa.Table(name, metadata, *columns, *more)


def _parse_lengths(text: str) -> Mapping[str, int]:
    """`symbol:100,name:20`."""
    pairs = (part.split(":", 1) for part in text.split(",") if ":" in part)
    return {name.strip(): int(size) for name, size in pairs if size.strip().isdigit()}


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
_TYPES: Mapping[AttrType, Any] = {
    AttrType.STRING: sa.Text,
    AttrType.INT: sa.Integer,
    AttrType.LONG: sa.BigInteger,
    AttrType.FLOAT: sa.Double,
    AttrType.DOUBLE: sa.Double,
    AttrType.BOOL: sa.Boolean,
    AttrType.OBJECT: sa.Text,
}
# How a value of the database becomes one of the kernel, and back, where they are not the same.
_READ: Mapping[AttrType, Callable[[Any], Any]] = {
    AttrType.STRING: str,
    AttrType.INT: int,
    AttrType.LONG: int,
    AttrType.FLOAT: lambda value: _FLOAT.unpack(_FLOAT.pack(value))[0],
    AttrType.DOUBLE: float,
    AttrType.BOOL: bool,
    AttrType.OBJECT: json.loads,
}
_WRITE: Mapping[AttrType, Callable[[Any], Any]] = {
    AttrType.OBJECT: lambda value: json.dumps(value, default=list)
}
