import re

import pytest

from edgewise.errors import SetupError
from edgewise.gateway.spec import BadSpec
from edgewise.lang import compile_app
from edgewise.node.app.sources_sinks import SourcesAndSinks, check_live_change

APP = "@app:name('x') define stream S (k string, v int);"
QUERY = "from S select k insert into O;"


def parse(annotations):
    return SourcesAndSinks.parse(compile_app(f"{annotations} define stream S (k string);").app)


def load(text):
    app = compile_app(text).app
    return app, SourcesAndSinks.parse(app)


def test_topics_go_to_the_edge_and_http_to_the_gateway():
    found = parse("@source(type='http', path='/in') @sink(type='topic', path='s/{k}')")
    assert [(s.stream, s.type) for s in found.sources] == [("S", "http")]
    assert [(stream, sink.path) for stream, sink in found.topics] == [("S", "s/{k}")]
    assert found.sinks == ()


def test_an_unknown_type_is_refused_with_the_nearest_one():
    with pytest.raises(BadSpec, match="did you mean 'http'"):
        parse("@source(type='htp')")


def test_queries_and_topics_may_change():
    topic = "@sink(type='topic', path='p') define stream P (v int); from S select v insert into P;"
    assert not check_live_change(load(APP + QUERY), load(APP + topic))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (APP.replace("'x'", "'y'") + QUERY, "called 'y' now, not 'x'"),
        (APP.replace("v int", "v long") + QUERY, "'S' has other attributes now"),
        (APP + QUERY.replace("select k", "select v"), "'O' has other attributes now"),
        (APP + "define stream T (k string);" + QUERY, r"input streams changed \(T\)"),
        (
            APP.replace("define", "@source(type='http', path='/s', @map(type='json')) define")
            + QUERY,
            "a source or a sink changed",
        ),
    ],
)
def test_sources_sinks_and_schemas_may_not_change(text, why):
    assert re.search(why, check_live_change(load(APP + QUERY), load(text)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "@source(type='twitter', track='c') define stream S (v int);",
            "a source of S is not connected: there is no source of type 'twitter'",
        ),
        (
            "@sink(type='hl7', uri='x') define stream S (v int);",
            "a sink of S is not connected: there is no sink of type 'hl7'",
        ),
        ("@store(type='influxdb') define table S (v int);", "the store of S is not connected"),
    ],
)
def test_a_node_refuses_what_is_not_connected_and_names_it(text, why):
    with pytest.raises(SetupError, match=why):
        load(text + " define stream Q (v int);")


def test_the_nearest_type_may_be_a_topic():
    with pytest.raises(BadSpec, match="did you mean 'topic'"):
        parse("@sink(type='topics', path='p')")
