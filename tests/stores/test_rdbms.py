"""A table in a database behaves as one in memory, whatever is asked of it and when it crashes."""

import math

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.kernel.operators.stored_table import StoredTable
from edgewise.kernel.operators.table_rows import TableRows
from edgewise.kernel.runtime import Runtime
from edgewise.stores.rdbms import SqlDatabase, connect, open_engine
from edgewise.stores.spec import BadStore, StoreSpec, StoreUnavailable

SCHEMA = Schema("T", (Attribute("k", AttrType.STRING), Attribute("v", AttrType.LONG)))
OPTIONS = {"url": "", "username": "", "password": "", "table.name": "", "field.length": ""}
OPTIONS |= {"datasource": "", "jdbc.url": ""}
KEYS, NUMBERS = st.sampled_from("abcd"), st.integers(0, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), KEYS, st.none() | NUMBERS),
        st.tuples(st.just("update"), KEYS, NUMBERS),
        st.tuples(st.just("raise"), NUMBERS, NUMBERS),
        st.tuples(st.just("delete"), NUMBERS, st.none()),
        st.tuples(st.just("find"), KEYS, NUMBERS),
    ),
    max_size=20,
)


def open_table(directory, key=(), schema=SCHEMA, **options):
    spec = StoreSpec("T", "rdbms", {**OPTIONS, **options}, key, (("v",),))
    database = SqlDatabase(open_engine(spec, directory), "app:f", "T")
    return database, database.add_table(spec, schema)


def build_tables(backend, key):
    tables = []
    for kind in (TableRows, StoredTable):
        rt = Runtime(keyed=False)
        table = kind(rt, 2, key)
        rt.fresh = lambda table=table: [table.fresh()]
        rt.state(())
        tables.append(table)
    tables[1].open(backend)
    return tables


def run_step(table, step, stored):
    """What it answers. `where` is what the database gets of the condition."""
    what, first, second = step

    def where(*parts):
        return (None, parts) if stored else (None,)

    if what == "insert":
        return table.insert((first, second))
    if what == "delete":
        return table.delete(lambda r: r[1] is not None and r[1] < first, *where((1, "<", first)))
    if what == "update":
        test = lambda r: r[0] == first  # noqa: E731
        return table.update(test, lambda r: (r[0], second), *where((0, "==", first)))
    if what == "raise":
        test = lambda r: r[1] is not None and r[1] >= first  # noqa: E731
        return table.update(test, lambda r: (r[0], r[1] + second), *where((1, ">=", first)))
    asked = (None, ((0, "==", first), (1, ">", second))) if stored else (None,)
    rows = table.rows(*asked)
    return sorted(r for r in rows if r[0] == first and r[1] is not None and r[1] > second)


def sort_rows(rows):
    return sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1]))


@pytest.mark.parametrize("key", [(), (0,)])
@settings(max_examples=15, deadline=None)
@given(steps=STEPS)
def test_a_stored_table_equals_one_in_memory(tmp_path_factory, key, steps):
    directory = tmp_path_factory.mktemp("db")
    database, backend = open_table(directory, tuple(SCHEMA.names[i] for i in key))
    plain, stored = build_tables(backend, key)
    for number, step in enumerate(steps):
        assert run_step(plain, step, stored=False) == run_step(stored, step, stored=True)
        if number % 3 == 0:
            database.commit(number)
    assert sort_rows(plain.rows()) == sort_rows(stored.rows(None, ()))
    stored.count_refused()
    assert plain.rt.faults == stored.rt.faults
    database.commit(99)
    database.close()
    again, backend = open_table(directory, tuple(SCHEMA.names[i] for i in key))
    assert sort_rows(backend.select(())) == sort_rows(plain.rows())
    assert again.read_batch() == 99
    again.close()


def test_writes_before_a_commit_are_lost_together_with_their_batch(tmp_path):
    database, backend = open_table(tmp_path)
    backend.insert(("a", 1))
    database.commit(3)
    backend.insert(("b", 2))
    assert len(backend.select(())) == 2
    database.close()
    database, backend = open_table(tmp_path)
    assert (database.read_batch(), list(backend.select(()))) == (3, [("a", 1)])
    database.rollback()
    database.close()


def test_every_type_comes_back_as_it_was(tmp_path):
    kinds = (*AttrType,)
    schema = Schema("T", tuple(Attribute(f"c{i}", kind) for i, kind in enumerate(kinds)))
    one = {
        AttrType.STRING: "x'; drop table T",
        AttrType.INT: 2**31 - 1,
        AttrType.LONG: -(2**63),
        AttrType.FLOAT: 1.100000023841858,
        AttrType.DOUBLE: 0.1,
        AttrType.BOOL: True,
        AttrType.OBJECT: {"a": [1, None]},
    }
    row = tuple(one[kind] for kind in kinds)
    spec = StoreSpec("T", "rdbms", OPTIONS)
    database = SqlDatabase(open_engine(spec, tmp_path), "app:f", "T")
    backend = database.add_table(spec, schema)
    backend.insert(row)
    backend.insert((None,) * len(kinds))
    found = backend.select(())
    assert list(found) == [row, (None,) * len(kinds)]
    assert type(found[0][kinds.index(AttrType.BOOL)]) is bool
    assert math.isclose(found[0][kinds.index(AttrType.FLOAT)], 1.1, rel_tol=1e-7)
    database.close()


def test_nothing_equals_null(tmp_path):
    database, backend = open_table(tmp_path)
    backend.insert(("a", None))
    assert list(backend.select(((1, "==", None),))) == []
    database.close()


def test_a_table_of_others_is_used_as_it_is(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/other.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("create table prices (id integer, k text, v integer)")
        connection.exec_driver_sql("insert into prices values (1, 'a', 7)")
    url = f"sqlite:///{tmp_path}/other.db"
    database, backend = open_table(tmp_path, url=url, **{"table.name": "prices"})
    assert list(backend.select(((0, "==", "a"),))) == [("a", 7)]
    database.close()


def test_a_database_that_is_away_is_waited_for(tmp_path):
    waits = []

    class Away(Exception):
        pass

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise Away

    engine = sa.create_engine(f"sqlite:///{tmp_path}/no/such/directory/x.db")
    with pytest.raises(Away):
        connect(engine, "T", wait)
    assert waits == [0.5, 1.0, 2.0]


def test_errors_of_the_database_name_the_table(tmp_path):
    database, backend = open_table(tmp_path)
    database.connection.exec_driver_sql("drop table T")
    with pytest.raises(StoreUnavailable, match="the store of T: no such table"):
        backend.select(())
    database.close()


def test_an_address_that_no_driver_has_is_refused(tmp_path):
    spec = StoreSpec("T", "rdbms", {**OPTIONS, "url": "nosuch://x"})
    with pytest.raises(BadStore, match="nosuch"):
        open_engine(spec, tmp_path)
