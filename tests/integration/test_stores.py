"""The example of docs/how-to/connect/rdbms.md as a person runs it, against real databases."""

import json
import re
import urllib.request

import pytest
import sqlalchemy as sa
from tests.integration.test_source_pages import example, running
from tests.support.databases import mariadb, postgres
from tests.support.program import until

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.plan.annotations import Annotation
from edgewise.stores.rdbms import SqlDatabase, open_engine
from edgewise.stores.spec import parse_store

WAIT_S = 60
SERVERS = {"postgresql": (postgres, "postgres", ""), "mariadb": (mariadb, "shop", "secret")}
TYPES = [
    (AttrType.STRING, "Zoë"),
    (AttrType.INT, -5),
    (AttrType.LONG, 2**62),
    (AttrType.FLOAT, 1.100000023841858),
    (AttrType.DOUBLE, 0.1),
    (AttrType.BOOL, True),
    (AttrType.OBJECT, {"a": [1]}),
]


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    start, user, password = SERVERS[request.param]
    with start() as jdbc:
        yield {"jdbc.url": jdbc, "username": user, "password": password}


def post(url, event):
    request = urllib.request.Request(url, json.dumps(event).encode())
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=10).close()


@pytest.mark.integration
def test_the_example_of_the_page(tmp_path, server):
    text = re.sub(
        r"url='[^']*', username='[^']*',\s*password='[^']*'",
        ", ".join(f"{name}='{value}'" for name, value in server.items()),
        example("rdbms"),
    )
    spec = parse_store(
        Schema("prices", ()), (Annotation("store", (("type", "rdbms"), *server.items())),)
    )
    database = open_engine(spec, tmp_path)

    def read(query):
        with database.connect() as connection:
            if not sa.inspect(connection).has_table("prices"):
                return []  # the engine creates it with the first batch
            return list(map(tuple, connection.execute(sa.text(query))))

    with running(tmp_path, text, "") as door:
        post(f"{door}/prices", {"item": "tea", "price": 2.5})
        until(lambda: read("select item, price from prices") == [("tea", 2.5)], WAIT_S)
        post(f"{door}/prices", {"item": "tea", "price": 3.5})
        until(lambda: read("select item, price from prices") == [("tea", 3.5)], WAIT_S)
        assert read("select batch from edgewise_progress where writer like 'embedded%'")
    database.dispose()


@pytest.mark.integration
def test_every_type_key_and_condition(tmp_path, server):
    schema = Schema("every_type", tuple(Attribute(f"c{i}", k) for i, (k, _) in enumerate(TYPES)))
    declared = Annotation("store", (("type", "rdbms"), *server.items()))
    index = Annotation("index", (("", "c1"), ("", "c2")))
    spec = parse_store(schema, (declared, index), ("c0", "c1"))
    database = SqlDatabase(open_engine(spec, tmp_path), "app:f", "every_type")
    backend = database.add_table(spec, schema)
    row = tuple(value for _, value in TYPES)
    other = (row[0], 7, *[None] * 5)
    for each in (row, row, other):
        backend.insert(each)
    assert list(backend.select(((0, "==", "Zoë"), (1, "<", 0)))) == [row]
    assert backend.take_refused() == 1
    assert not backend.replace(other, row)
    assert backend.replace(other, (*other[:2], 9, *[None] * 4))
    assert list(backend.select(((2, ">=", 9), (1, ">", 0)))) == [(*other[:2], 9, *[None] * 4)]
    database.commit(4)
    backend.delete(row)
    database.rollback()
    assert len(backend.select(())) == 2
    database.rollback()
    assert database.read_batch() == 4
    database.close()
