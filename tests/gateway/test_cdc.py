"""Rows that are added to a table become events, each once, also after a restart."""

import asyncio
import datetime as dt
import decimal
import json
import sqlite3

import pytest
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import cdc
from edgewise.gateway.connectors import check_source
from edgewise.gateway.spec import BadSpec, MapSpec, SourceSpec

SCHEMA = Schema.of("S", item="string", n="int")
OPTIONS = {"mode": "polling", "table.name": "sales", "polling.column": "id"}


def test_new_rows_are_events_once_and_a_missing_table_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(cdc, "RETRY_S", (0.01,))
    file, log = tmp_path / "shop.db", MemoryLog(SCHEMA)
    options = {**OPTIONS, "url": f"jdbc:sqlite:{file}", "polling.interval": "0.01"}
    spec = check_source(SourceSpec("S", "cdc", options, MapSpec("keyvalue")))
    database = sqlite3.connect(file)

    def insert(*rows):
        with database:
            database.executemany("insert into sales (item, n) values (?, ?)", rows)

    async def scenario():
        source = cdc.CdcSource(spec, SCHEMA, log, ManualClock(1))
        await source.start()
        await until(lambda: "sales" in source.stats.failed)
        database.execute("create table sales (id integer primary key, item text, n integer)")
        insert(("tea", 1), ("milk", 2))
        await until(lambda: len(log.rows()) == 2)
        await source.stop()
        insert(("bread", 3))
        again = cdc.CdcSource(spec, SCHEMA, log, ManualClock(1))
        await again.start()
        await until(lambda: len(log.rows()) == 3)
        await again.stop()

    asyncio.run(scenario())
    database.close()
    rows = [(r["item"], r["n"]) for r in log.rows()]
    assert rows == [("tea", 1), ("milk", 2), ("bread", 3)]


def test_values_of_databases_are_written_as_json():
    columns = {
        "a": decimal.Decimal("1.50"),
        "b": decimal.Decimal(7),
        "c": dt.datetime(2024, 1, 2, 3, 4),  # noqa: DTZ001
        "d": dt.date(2024, 1, 2),
        "e": b"x",
        "f": None,
    }
    assert json.loads(cdc.to_payload(columns)) == {
        "a": 1.5,
        "b": 7,
        "c": "2024-01-02 03:04:00",
        "d": "2024-01-02",
        "e": "x",
        "f": None,
    }


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"url": "jdbc:h2:./x"}, "library of Java"),
        ({"url": "jdbc:mysql://h/d", "polling.interval": "x"}, "must be seconds"),
        ({"url": "jdbc:mysql://h/d", "polling.column": ""}, "no column"),
    ],
)
def test_options_are_checked(options, why):
    with pytest.raises(BadSpec, match=why):
        check_source(SourceSpec("S", "cdc", {**OPTIONS, **options}, MapSpec("keyvalue")))


def test_listening_says_what_to_do_instead():
    spec = check_source(SourceSpec("S", "cdc", {"url": "jdbc:mysql://h/d", "operation": "insert"}))
    assert "Debezium" in spec.unconnected
