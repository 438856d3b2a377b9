"""New rows of a table, in order, none left behind between two reads."""

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.stores.polling import TablePoller
from edgewise.stores.spec import BadStore, StoreUnavailable


def build_engine(kind="integer"):
    engine = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"create table T (at {kind}, v text)")
    return engine


def insert(engine, *rows):
    with engine.begin() as connection:
        for at, value in rows:
            connection.exec_driver_sql("insert into T values (?, ?)", (at, value))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=20), st.integers(1, 5))
def test_all_rows_are_read_once_however_many_share_a_value(values, limit):
    engine = build_engine()
    insert(engine, *((at, str(number)) for number, at in enumerate(values)))
    poller, seen, after = TablePoller(engine, "T", "AT", limit), [], -1
    while rows := poller.read(after):
        seen += [row["at"] for _, row in rows]
        after = rows[-1][0]
    assert seen == sorted(values)
    engine.dispose()


def test_a_timestamp_is_a_position():
    engine = build_engine("datetime")
    insert(engine, ("2024-01-01 00:00:00.000001", "a"), ("2024-01-01 00:00:00.000002", "b"))
    poller = TablePoller(engine, "T", "at")
    (first, _), (second, _) = poller.read(-1)
    assert second - first == 1
    assert [row["v"] for _, row in poller.read(first)] == ["b"]
    engine.dispose()


def test_what_cannot_be_read_says_why():
    engine = build_engine("text")
    insert(engine, ("x", "a"))
    with pytest.raises(BadStore, match="must be a whole number"):
        TablePoller(engine, "T", "at").read(-1)
    with pytest.raises(BadStore, match="has the columns at, v"):
        TablePoller(engine, "T", "no").read(-1)
    with pytest.raises(StoreUnavailable, match="the table U"):
        TablePoller(engine, "U", "at").read(-1)
    engine.dispose()
