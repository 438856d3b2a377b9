"""Take the rows that are added to a table of a database as events: `@source(type='cdc')`.

The table is asked every few seconds for rows whose polling column is beyond the last one. How far
was read is kept in the log, as the sequence of the append, so a restart loses and doubles nothing.
Rows that are changed without a new value in that column, and deleted ones, are not seen: for these
let Debezium write to Kafka. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import json
import logging
from pathlib import Path
from typing import Any

from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SourceSpec
from edgewise.log.api import LogWriter
from edgewise.stores.polling import TablePoller
from edgewise.stores.rdbms import open_engine
from edgewise.stores.spec import StoreSpec, StoreUnavailable, convert_jdbc

logger = logging.getLogger(__name__)
RETRY_S = (1.0, 2.0, 5.0, 30.0)


class CdcSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        options = spec.options
        self._interval_s = float(options["polling.interval"])
        self._producer = f"cdc:{options['table.name']}:{options['polling.column']}"
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        login = {name: options[name] for name in ("username", "password")}
        url = convert_jdbc(options["url"])[0]
        store = StoreSpec(options["table.name"], "rdbms", {"url": url, **login})
        self._poller = TablePoller(
            open_engine(store, Path()), options["table.name"], options["polling.column"]
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = self._ingest.supervise(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._ingest.close()

    async def _run(self) -> None:
        attempts = 0
        while True:
            after = self._ingest.writer.last_sequence(self._producer)
            try:
                rows = await asyncio.to_thread(self._poller.read, after)
            except StoreUnavailable as error:
                delay = RETRY_S[min(attempts, len(RETRY_S) - 1)]
                self.stats.failed = str(error)
                if attempts < len(RETRY_S):
                    logger.warning("source cdc: %s; again in %g s", error, delay)
                attempts += 1
                await asyncio.sleep(delay)
                continue
            attempts, self.stats.failed = 0, ""
            if rows:
                await self._append(rows)
            else:
                await asyncio.sleep(self._interval_s)

    async def _append(self, rows: list[tuple[int, dict[str, Any]]]) -> None:
        events = self._ingest.read_each(to_payload(columns) for _, columns in rows)
        if events is not None:
            await self._ingest.append(events, producer=self._producer, sequence=rows[-1][0])


def to_payload(columns: dict[str, Any]) -> bytes:
    """A JSON object of the columns of a row."""
    return json.dumps(columns, default=_to_json).encode()


def _to_json(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
