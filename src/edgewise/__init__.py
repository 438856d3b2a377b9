"""Edgewise: SiddhiQL apps on a log, on Spark or in this process, and the last mile to who watches.

What is exported here is the public API: it changes only by the rule in CONTRIBUTING.md, and
`tests/test_public_api.py` freezes it. Everything is loaded when it is first used, so that
`import edgewise` costs a few milliseconds and needs no package that is an extra.

An app in this process, in a notebook too:

    >>> import edgewise
    >>> app = edgewise.App('''
    ...     define stream Sales (item string, price double);
    ...     from Sales select item, sum(price) as total group by item insert into Totals;
    ... ''')
    >>> app.send("Sales", ("tea", 2.5)).data()
    [('tea', 2.5)]

The same without SiddhiQL:

    >>> sales = edgewise.stream("Sales", item="string", price="double")
    >>> totals = sales.group_by("item").select("item", total=edgewise.sum_(edgewise.col.price))
    >>> totals.run([("tea", 2.5), ("tea", 1.0)]).data()
    [('tea', 2.5), ('tea', 3.5)]

A client of a running node:

    with edgewise.connect("ws://127.0.0.1:8008/ws") as edge:
        for update in edge.subscribe("alerts/#"):
            print(update.path, update.value)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgewise import eep
    from edgewise.client import aio
    from edgewise.client.publisher import publisher
    from edgewise.client.sync import connect
    from edgewise.edge.server.answers import answers
    from edgewise.edge.topics.merges import Merge
    from edgewise.eep.aggregate import Aggregate
    from edgewise.errors import (
        AppError,
        BadEvent,
        EdgewiseError,
        LogError,
        ProtocolError,
        SetupError,
    )
    from edgewise.event.event import Event, EventKind
    from edgewise.event.schema import Schema
    from edgewise.gateway.connectors import Sink, Source
    from edgewise.gateway.spec import Guarantee, Option, SinkSpec, SourceSpec
    from edgewise.lang.compiler import compile_app, compile_query
    from edgewise.lang.fluent.app import App
    from edgewise.lang.fluent.flow import Flow, every, pattern, sequence, stream
    from edgewise.lang.fluent.rows import Rows
    from edgewise.lang.fluent.terms import (
        avg,
        call,
        col,
        count,
        distinct_count,
        lit,
        max_,
        min_,
        std_dev,
        sum_,
    )
    from edgewise.lang.layout import format_app
    from edgewise.node.app.declared_merges import merge_from_aggregate
    from edgewise.node.commands.replay import replay
    from edgewise.plan.declare import aggregate, function
    from edgewise.plan.procedures import Procedure

__version__ = "0.2.0"

# Where each name is defined.
_MODULES = {
    # Apps in this process.
    "App": "lang.fluent.app",
    "Rows": "lang.fluent.rows",
    "Event": "event.event",
    "EventKind": "event.event",
    "Schema": "event.schema",
    "compile_app": "lang.compiler",
    "compile_query": "lang.compiler",
    "format_app": "lang.layout",
    "replay": "node.commands.replay",
    # The fluent API.
    "Flow": "lang.fluent.flow",
    "stream": "lang.fluent.flow",
    "pattern": "lang.fluent.flow",
    "sequence": "lang.fluent.flow",
    "every": "lang.fluent.flow",
    "col": "lang.fluent.terms",
    "lit": "lang.fluent.terms",
    "call": "lang.fluent.terms",
    "count": "lang.fluent.terms",
    "sum_": "lang.fluent.terms",
    "avg": "lang.fluent.terms",
    "min_": "lang.fluent.terms",
    "max_": "lang.fluent.terms",
    "distinct_count": "lang.fluent.terms",
    "std_dev": "lang.fluent.terms",
    # What a user adds: functions, aggregates, procedures, merges, answers, sources and sinks.
    "function": "plan.declare",
    "aggregate": "plan.declare",
    "Aggregate": "eep.aggregate",
    "Procedure": "plan.procedures",
    "Merge": "edge.topics.merges",
    "merge_from_aggregate": "node.app.declared_merges",
    "answers": "edge.server.answers",
    "Source": "gateway.connectors",
    "Sink": "gateway.connectors",
    "SourceSpec": "gateway.spec",
    "SinkSpec": "gateway.spec",
    "Option": "gateway.spec",
    "Guarantee": "gateway.spec",
    # Windows and aggregates without an app.
    "eep": "",
    # Clients of a node: `connect` blocks, `aio.connect` does not.
    "connect": "client.sync",
    "publisher": "client.publisher",
    "aio": "client",
    # What can go wrong.
    "EdgewiseError": "errors",
    "AppError": "errors",
    "BadEvent": "errors",
    "LogError": "errors",
    "ProtocolError": "errors",
    "SetupError": "errors",
}

_PACKAGES = {"", "client"}  # from these a module is exported, not a thing inside one

__all__ = [
    "Aggregate",
    "App",
    "AppError",
    "BadEvent",
    "EdgewiseError",
    "Event",
    "EventKind",
    "Flow",
    "Guarantee",
    "LogError",
    "Merge",
    "Option",
    "Procedure",
    "ProtocolError",
    "Rows",
    "Schema",
    "SetupError",
    "Sink",
    "SinkSpec",
    "Source",
    "SourceSpec",
    "__version__",
    "aggregate",
    "aio",
    "answers",
    "avg",
    "call",
    "col",
    "compile_app",
    "compile_query",
    "connect",
    "count",
    "distinct_count",
    "eep",
    "every",
    "format_app",
    "function",
    "lit",
    "max_",
    "merge_from_aggregate",
    "min_",
    "pattern",
    "publisher",
    "replay",
    "sequence",
    "std_dev",
    "stream",
    "sum_",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'edgewise' has no attribute {name!r}")
    where = f"edgewise.{_MODULES[name]}".removesuffix(".")
    if _MODULES[name] in _PACKAGES:
        found: Any = import_module(f"{where}.{name}")
    else:
        found = getattr(import_module(where), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
