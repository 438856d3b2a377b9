import pytest

from edgewise.gateway.spec import BadSpec
from edgewise.lang import compile_app
from edgewise.node.ends import Ends


def ends(annotations):
    return Ends.of(compile_app(f"{annotations} define stream S (k string);").app)


def test_topics_go_to_the_edge_and_http_to_the_gateway():
    found = ends("@source(type='http', path='/in') @sink(type='topic', path='s/{k}')")
    assert [(s.stream, s.type) for s in found.sources] == [("S", "http")]
    assert [(stream, sink.path) for stream, sink in found.topics] == [("S", "s/{k}")]
    assert found.sinks == ()


def test_a_type_nobody_knows_is_refused_with_the_nearest_one():
    with pytest.raises(BadSpec, match="did you mean 'http'"):
        ends("@source(type='htp')")
