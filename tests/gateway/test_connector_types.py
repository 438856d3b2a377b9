from importlib import import_module

import pytest

from edgewise.gateway.connector_types import SINKS, SOURCES
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.spec import BadSpec, Guarantee, SinkSpec, SourceSpec


@pytest.mark.parametrize(("kind", "known"), [*SOURCES.items(), *SINKS.items()])
def test_every_connector_class_is_where_it_is_declared(kind, known):
    module, _, name = known.class_path.partition(":")
    found = getattr(import_module(module), name)
    assert found in {
        load_source_class(kind) if kind in SOURCES else None,
        load_sink_class(kind) if kind in SINKS else None,
    }


@pytest.mark.parametrize("known", [*SOURCES.values(), *SINKS.values()])
def test_only_what_waits_for_an_answer_promises_more_than_at_most_once(known):
    assert known.guarantees
    assert len(set(known.guarantees)) == len(known.guarantees)
    if "zeromq" in known.class_path:
        assert known.guarantees == (Guarantee.AT_MOST_ONCE,)


@pytest.mark.parametrize(
    ("kind", "options", "words", "option"),
    [
        ("amqp", {"url": "http://h", "queue": "q"}, "amqp://host or amqps://host", "url"),
        ("amqp1", {"url": "amqp://h", "address": ""}, "names no node of the broker", "address"),
        ("file", {"path": "/f", "follow": "yes"}, "must be one of: true, false", "follow"),
        ("kafka", {"servers": "h", "topic": "t"}, "must be host:port", "servers"),
        ("kafka", {"servers": "h:1", "topic": ""}, "names no topic", "topic"),
        ("kafka", {"servers": "h:1", "topic": "t", "from": "x"}, "one of: start, end", "from"),
        ("mqtt", {"url": "mqtt:", "topic": "t"}, "mqtt://host:port or mqtts://host:port", "url"),
        ("mqtt", {"url": "mqtt://h", "topic": "t", "qos": "3"}, "one of: 0, 1, 2", "qos"),
        ("mqtt", {"url": "mqtt://h", "topic": "t", "qos": "0"}, "can lose messages", "qos"),
        ("zeromq", {"url": "tcp://h:1", "socket": "push"}, "must be one of: sub, pull", "socket"),
    ],
)
def test_a_source_that_cannot_work_names_its_option(kind, options, words, option):
    with pytest.raises(BadSpec, match=words) as bad:
        check_source(SourceSpec("S", kind, options))
    assert bad.value.option == option


@pytest.mark.parametrize(
    ("kind", "options", "words", "option"),
    [
        ("file", {"path": "dir/"}, "is no file", "path"),
        ("http", {"url": "ftp://h"}, "http://host or https://host", "url"),
        ("zeromq", {"url": "tcp://h:1", "mode": "x"}, "must be one of: connect, bind", "mode"),
    ],
)
def test_a_sink_that_cannot_work_names_its_option(kind, options, words, option):
    with pytest.raises(BadSpec, match=words) as bad:
        check_sink(SinkSpec("S", kind, options))
    assert bad.value.option == option
