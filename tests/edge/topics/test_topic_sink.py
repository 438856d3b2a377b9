import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.topics.topic_sink import TopicSink, escape_segment
from edgewise.errors import EdgewiseError
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_path


def test_the_sink_of_the_demo():
    sink = TopicSink.parse(
        {"path": "alerts/{ip}", "conflate": "replace", "recovery": "gap", "ttl": "10 min"}
    )
    assert sink.format_path({"ip": "10.0.0.1", "n": 1}) == "alerts/10.0.0.1"
    assert (sink.policy.ttl_ms, sink.policy.conflatable, sink.attributes) == (
        600_000,
        True,
        ("ip",),
    )


def test_a_table_and_a_series():
    table = TopicSink.parse({"path": "book/{sym}", "kind": "table", "key": "{id}"})
    assert (table.policy.kind, table.key, table.attributes) == (
        TopicKind.TABLE,
        "id",
        ("sym", "id"),
    )
    assert TopicSink.parse({"path": "t", "kind": "series", "keep": "7"}).policy.keep == 7
    blob = TopicSink.parse({"path": "t/{id}", "kind": "blob", "body": "{text}"})
    assert (blob.policy.kind, blob.attributes) == (TopicKind.BLOB, ("id", "text"))
    assert TopicSink.parse({"path": "t", "recovery": "precise"}).policy.keep > 0


@given(st.text() | st.integers() | st.booleans() | st.none() | st.floats())
def test_any_value_is_one_segment(value):
    assert len(parse_path(f"a/{escape_segment(value)[:300]}")) == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": "a//b"},
        {"path": "a/#"},
        {"path": "a", "conflate": "sometimes"},
        {"path": "a", "recovery": "maybe"},
        {"path": "a", "ttl": "soon"},
        {"path": "a", "keep": "-1"},
        {"path": "a", "kind": "table"},
        {"path": "a", "kind": "picture"},
        {"path": "a", "kind": "blob"},
        {"path": "a", "kind": "table", "key": "{k}", "conflate": "merge(sum)"},
    ],
)
def test_what_is_wrong_is_said(options):
    with pytest.raises(EdgewiseError) as caught:
        TopicSink.parse(options)
    assert str(caught.value)
