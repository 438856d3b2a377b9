from edgewise.event.schema import Schema
from edgewise.plan.nodes import Annotation, App, InsertInto, Query, Select, Stream, StreamInput


def test_annotation_keys_are_found_whatever_their_case():
    assert Annotation("sink", (("Path", "a/b"),)).get("path") == "a/b"
    assert Annotation("sink").get("path", "none") == "none"


def test_streams_that_no_query_writes_are_inputs():
    streams = (Stream(Schema.of("A", x="int")), Stream(Schema.of("B", x="int")))
    query = Query("q", StreamInput("A", "A"), Select(()), InsertInto("B"))
    app = App("app", streams, (query,))
    assert [s.name for s in app.inputs] == ["A"]
    assert [s.name for s in app.outputs] == ["B"]
