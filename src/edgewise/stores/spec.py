"""Declare the options of `@store(...)` and parse them. Pure.

One table for each type says what an option means, its default, and why it has no effect here where
it has none: `check`, the error messages and the page of a store are made from it. JDBC addresses
become those of SQLAlchemy; a data source that another product's configuration defines, and H2,
which is a library of Java, become a SQLite file in the data directory. Used by `node.app` (check),
`engines.batch.open_stores` (run) and the documentation.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edgewise.errors import EdgewiseError
from edgewise.event.schema import Schema


class StoreAnnotation(Protocol):
    """An annotation of the plan, which this room does not know."""

    @property
    def name(self) -> str: ...
    @property
    def pairs(self) -> Sequence[tuple[str, str]]: ...
    @property
    def nested(self) -> Sequence[StoreAnnotation]: ...


class BadStore(EdgewiseError):
    """A `@store` that cannot work; `option` is the element at fault."""

    def __init__(self, message: str, option: str = "") -> None:
        self.option = option
        super().__init__(message)


class StoreUnavailable(EdgewiseError):
    """The database does not answer; the engine starts again and waits for it."""


@dataclass(frozen=True, slots=True)
class StoreOption:
    """`reason`: why it has no effect here. A `default` of None makes it required."""

    doc: str
    default: str | None = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """What one `@store` declares, under our names and with all defaults."""

    table: str  # as the app calls it
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    notes: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # option, message
    unconnected: str = ""  # why it cannot run


_POOL = "the engine has one connection for each table"
RDBMS: Mapping[str, StoreOption] = {
    "url": StoreOption(
        "SQLAlchemy's address, such as postgresql+psycopg://host/db; default: a SQLite file in "
        "the data directory"
    ),
    "jdbc.url": StoreOption("Siddhi's address: jdbc:postgresql://, jdbc:mysql://, jdbc:h2: ..."),
    "datasource": StoreOption("name of the SQLite file in the data directory"),
    "username": StoreOption("of the database"),
    "password": StoreOption("of the database"),
    "table.name": StoreOption("in the database; default: as in the app"),
    "field.length": StoreOption("'column:length,...' of text columns that are created"),
    "allow.null.values": StoreOption("null is stored as NULL", reason="null is always stored"),
    "jdbc.driver.name": StoreOption("", reason="the driver is chosen by the address"),
    "pool.properties": StoreOption("", reason=_POOL),
    "jndi.resource": StoreOption("", reason="there is no JNDI: say url='...'"),
    "table.check.query": StoreOption("", reason="SQLAlchemy asks whether the table is there"),
    "ref": StoreOption("", reason="no configuration here defines one"),
    "isautocommit": StoreOption("", reason="the writes of a batch are one transaction"),
    "on.error": StoreOption("", reason="a database that does not answer is waited for"),
    "use.collation": StoreOption("", reason="rows are compared again as Siddhi does"),
}
STORES: Mapping[str, Mapping[str, StoreOption]] = {
    "rdbms": RDBMS,
}
_UNCONNECTED = (
    "cassandra", "elasticsearch", "hazelcast", "hbase", "influxdb", "mongodb", "redis", "solr",
)  # fmt: skip
_CACHE = ("size", "cache.policy", "retention.period", "purge.interval")
_JDBC = re.compile(
    r"jdbc:(?P<kind>postgresql|mysql|mariadb)://(?P<host>[^/?;]+)(?:/(?P<db>[^?;]*))?"
)
_SQLSERVER = re.compile(r"jdbc:sqlserver://(?P<host>[^;/]+);?(?P<rest>.*)", re.IGNORECASE)
_ORACLE = re.compile(r"jdbc:oracle:thin:@(?://)?(?P<host>[^:/]+):(?P<port>\d+)[:/](?P<db>\w+)")
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}


def parse_store(
    schema: Schema, annotations: Sequence[StoreAnnotation], primary_key: tuple[str, ...] = ()
) -> StoreSpec | None:
    """The store of a table, checked; None where it has none. BadStore where it cannot work."""
    declared = [a for a in annotations if a.name.lower() == "store"]
    if not declared:
        return None
    store = declared[0]
    given = {key.lower(): value for key, value in store.pairs}
    kind = given.pop("type", "")
    known = STORES.get(kind.lower())
    if known is None:
        if kind.lower() in _UNCONNECTED:
            why = f"there is no store of type '{kind}': known are {', '.join(STORES)}; without "
            why += "@store the table is kept with the state of the app"
            return StoreSpec(schema.name, kind, unconnected=why)
        raise BadStore(f"no store of type '{kind}'; {_suggest(kind, STORES)}", "type")
    kind = kind.lower()
    for name in given:
        if name not in known:
            raise BadStore(f"'{kind}' has no option '{name}'; {_suggest(name, known)}", name)
    options = {name: given.get(name, option.default or "") for name, option in known.items()}
    for name, option in known.items():
        if option.default is None and not options[name]:
            raise BadStore(f"'{kind}' needs the option '{name}': {option.doc}", name)
    notes = [
        (name, f"{name}='{value}' has no effect: {known[name].reason}")
        for name, value in given.items()
        if known[name].reason
    ]
    notes += _check_cache(store)
    if kind == "rdbms":
        options["url"], more = _find_url(options)
        notes += more
    indexes = _list_indexes(schema, annotations)
    return StoreSpec(schema.name, kind, options, primary_key, indexes, tuple(notes))


def _list_indexes(
    schema: Schema, annotations: Sequence[StoreAnnotation]
) -> tuple[tuple[str, ...], ...]:
    """`@index('a', 'b')` is one index of two columns."""
    found = [a for a in annotations if a.name.lower() in {"index", "indexby"}]
    columns = [tuple(v for _, v in a.pairs if schema.index(v) >= 0) for a in found]
    return tuple(c for c in columns if c)


def _check_cache(store: StoreAnnotation) -> list[tuple[str, str]]:
    notes = []
    for cache in store.nested:
        if cache.name.lower() != "cache":
            continue
        for key, value in cache.pairs:
            if key.lower() not in _CACHE:
                near = _suggest(key, dict.fromkeys(_CACHE))
                raise BadStore(f"@cache has no option '{key}'; {near}", key)
            if key.lower() == "size" and not value.isdigit():
                raise BadStore(f"size='{value}' of @cache must be a number", "size")
            if key.lower() == "cache.policy" and value.upper() != "LRU":
                notes.append((key, f"{key}='{value}': the least recently used answers go"))
    return notes


def _suggest(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"


def _find_url(options: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """SQLAlchemy's address, '' for a file in the data directory, and what to tell of it."""
    if options["url"] or not options["jdbc.url"]:
        return options["url"], []
    return convert_jdbc(options["jdbc.url"])


def convert_jdbc(jdbc: str) -> tuple[str, list[tuple[str, str]]]:
    """An address of Java as SQLAlchemy has it, '' for H2, and what to tell of it."""
    if not jdbc.startswith("jdbc:"):
        return jdbc, []
    if match := _JDBC.match(jdbc):
        return f"{_DRIVERS[match['kind']]}://{match['host']}/{match['db'] or ''}", []
    if match := _SQLSERVER.match(jdbc):
        pairs = dict(p.split("=", 1) for p in match["rest"].split(";") if "=" in p)
        name = next((v for k, v in pairs.items() if k.lower().startswith("database")), "")
        return f"mssql+pymssql://{match['host']}/{name}", [_untested("jdbc.url")]
    if match := _ORACLE.match(jdbc):
        url = f"oracle+oracledb://{match['host']}:{match['port']}/?service_name={match['db']}"
        return url, [_untested("jdbc.url")]
    if jdbc.startswith("jdbc:sqlite:"):
        return f"sqlite:///{jdbc.removeprefix('jdbc:sqlite:')}", []
    if jdbc.startswith("jdbc:h2:"):
        note = f"jdbc.url='{jdbc}' is a SQLite file in the data directory: H2 is a Java library"
        return "", [("jdbc.url", note)]
    raise BadStore(f"'{jdbc}' is unknown: say url='...' as SQLAlchemy has it", "jdbc.url")


def _untested(option: str) -> tuple[str, str]:
    return option, f"{option}: this kind of database was not tried with Edgewise"


def name_file(spec: StoreSpec) -> str:
    """Of the SQLite file of a store without an address."""
    name = spec.options["datasource"] or spec.options["jdbc.url"].removeprefix("jdbc:h2:")
    name = name.split(";")[0].rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name) or 'tables'}.db"
