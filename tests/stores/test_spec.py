"""Options of stores: Siddhi's names, ours, and a word about each that has no effect."""

from pathlib import Path

import pytest

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.plan.annotations import Annotation
from edgewise.stores.spec import RDBMS, STORES, BadStore, name_file, parse_store

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "connect" / "rdbms.md"
SCHEMA = Schema("T", (Attribute("k", AttrType.STRING), Attribute("v", AttrType.LONG)))


def parse(*pairs, nested=(), more=()):
    store = Annotation("Store", pairs, nested)
    return parse_store(SCHEMA, (store, *more), ("k",))


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("jdbc:mysql://h:3306/db?useSSL=false", "mysql+pymysql://h:3306/db"),
        ("jdbc:mariadb://h/db", "mysql+pymysql://h/db"),
        ("jdbc:postgresql://h:5432/db", "postgresql+psycopg://h:5432/db"),
        ("jdbc:sqlserver://h:1433;databaseName=d;x=1", "mssql+pymssql://h:1433/d"),
        ("jdbc:oracle:thin:@h:1521/xe", "oracle+oracledb://h:1521/?service_name=xe"),
        ("jdbc:sqlite:/tmp/a.db", "sqlite:////tmp/a.db"),
        ("jdbc:h2:./stocks", ""),
    ],
)
def test_addresses_of_java_become_those_of_sqlalchemy(jdbc, url):
    assert parse(("type", "rdbms"), ("jdbc.url", jdbc)).options["url"] == url


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("jdbc.url", "jdbc:h2:./stocks;AUTO_SERVER=TRUE", "stocks.db"),
        ("jdbc.url", "jdbc:h2:mem:x/../y", "y.db"),
        ("datasource", "SweetFactoryDB", "SweetFactoryDB.db"),
        ("datasource", "../../etc", "etc.db"),
        ("table.name", "x", "tables.db"),
    ],
)
def test_stores_without_a_server_are_files_with_a_safe_name(option, value, name):
    assert name_file(parse(("type", "rdbms"), (option, value))) == name


def test_options_without_effect_are_told_with_their_reason():
    spec = parse(("type", "RDBMS"), ("jdbc.driver.name", "x"), ("pool.properties", "y"))
    assert [option for option, _ in spec.notes] == ["jdbc.driver.name", "pool.properties"]
    assert all("has no effect: " in message for _, message in spec.notes)


def test_indexes_may_have_several_columns_and_options():
    index = Annotation("Index", (("", "k"), ("", "v"), ("", "{background:true}")))
    assert parse(("type", "rdbms"), more=(index,)).indexes == (("k", "v"),)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ((("type", "rdmbs"),), "did you mean 'rdbms'"),
        ((("type", "rdbms"), ("jdbc.ulr", "x")), "did you mean 'jdbc.url'"),
        ((("type", "rdbms"), ("jdbc.url", "jdbc:x://x")), "is unknown"),
    ],
)
def test_slips_are_errors_with_the_fix(pairs, message):
    with pytest.raises(BadStore, match=message):
        parse(*pairs)


@pytest.mark.parametrize(
    ("pair", "message"), [(("sise", "1"), "did you mean 'size'"), (("size", "x"), "a number")]
)
def test_caches_are_checked(pair, message):
    with pytest.raises(BadStore, match=message):
        parse(("type", "rdbms"), nested=(Annotation("cache", (pair,)),))


def test_a_policy_that_is_not_kept_is_told():
    spec = parse(
        ("type", "rdbms"),
        nested=(Annotation("Cache", (("size", "10"), ("cache.policy", "FIFO"))),),
    )
    assert spec.notes == (
        ("cache.policy", "cache.policy='FIFO': the least recently used answers go"),
    )


def test_what_has_no_connector_says_what_to_do():
    assert "rdbms" in parse(("type", "influxdb")).unconnected
    assert parse_store(SCHEMA, ()) is None


def test_every_option_has_a_meaning_or_a_reason():
    for options in STORES.values():
        assert all(option.doc or option.reason for option in options.values())
    assert RDBMS["jdbc.url"].doc


def test_the_page_has_every_option(generated_block):
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for name, option in RDBMS.items():
        meaning = option.doc if not option.reason else f"no effect: {option.reason}"
        lines.append(f"| `{name}` | {option.default} | {meaning} |")
    generated_block(PAGE, "store options", "\n".join(lines))
