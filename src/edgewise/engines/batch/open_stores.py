"""Open the databases behind the tables of a kernel, and write each batch to them once.

A kernel that is loaded gets a session. It says before each batch whether its writes are in
the database already (the batch is computed again after a crash), and commits them with the batch's
id when the batch is done, before its rows are appended to the logs. Used by `run` and `catch_up`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from edgewise.engines.batch.job import Job
from edgewise.errors import SetupError, name_missing_extra
from edgewise.event.schema import Schema
from edgewise.kernel.kernel import Kernel
from edgewise.kernel.operators.stored_table import Backend, StoredTable
from edgewise.stores.spec import StoreSpec, parse_store


class Database(Protocol):
    """Where tables are kept. All its writes since the last commit are one transaction."""

    def add_table(self, spec: StoreSpec, schema: Schema) -> Backend: ...

    def read_batch(self) -> int:
        """The last batch that was committed; -1 for none."""
        ...

    def commit(self, batch: int | None) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class OpenStores:
    """The databases of one kernel, each with its tables and the last batch it has."""

    def __init__(self, databases: Mapping[Database, Sequence[StoredTable]]) -> None:
        self._tables = databases
        self._committed = {database: database.read_batch() for database in databases}

    def begin(self, version: int) -> None:
        """Before the events of a batch; none of a batch that was committed are written again."""
        for database, tables in self._tables.items():
            database.rollback()
            for table in tables:
                table.writes = version > self._committed[database]

    def stop_writes(self) -> None:
        """While events are fed whose batches are done."""
        for tables in self._tables.values():
            for table in tables:
                table.writes = False

    def commit(self, version: int | None) -> None:
        """`version` is None for an on-demand query, which belongs to no batch."""
        for database, tables in self._tables.items():
            if version is None or version > self._committed[database]:
                database.commit(version)
            if version is not None:
                self._committed[database] = max(version, self._committed[database])
            for table in tables:
                table.count_refused()

    def close(self) -> None:
        for database in self._tables:
            database.close()


def open_stores(kernel: Kernel, job: Job) -> OpenStores | None:
    """Waits for a database that does not answer.

    None where the kernel has no such table, and for a job without `store_writer`: a replay keeps
    tables in memory.
    """
    tables = kernel.stored_tables
    if not tables or not job.store_writer:
        return None
    databases: dict[Any, Database] = {}
    held: dict[Database, list[StoredTable]] = {}
    for name, table in tables.items():
        declared = job.app.table(name)
        assert declared is not None
        spec = parse_store(declared.schema, declared.annotations, declared.primary_key)
        assert spec is not None
        if spec.unconnected:
            raise SetupError(f"the store of {name} is not connected: {spec.unconnected}")
        address = (spec.type, *(spec.options.get(key, "") for key in _ADDRESS))
        if address not in databases:
            databases[address] = _open_database(spec, job)
        database = databases[address]
        table.open(database.add_table(spec, declared.schema))
        held.setdefault(database, []).append(table)
    return OpenStores(held)


# Options that tell two databases apart.
_ADDRESS = ("url", "jdbc.url", "datasource", "username")


def _open_database(spec: StoreSpec, job: Job) -> Database:
    writer = f"{job.store_writer}:{job.fragment.name}"
    with name_missing_extra():
        from edgewise.stores.rdbms import SqlDatabase, open_engine

    engine = open_engine(spec, Path(job.store_directory))
    return SqlDatabase(engine, writer, spec.table)
