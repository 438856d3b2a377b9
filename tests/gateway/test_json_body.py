import json

from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.json_body import NAME_CHARS_MAX, EventColumns, Fault, Framing, read_json

SCHEMA = Schema.of("S", k="string", v="double")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4),
    max_leaves=20,
)


@given(anything, st.sampled_from(Framing))
def test_any_json_value_is_columns_or_faults_with_a_field(value, framing):
    got = read_json(json.dumps(value), framing, SCHEMA)
    if not isinstance(got, EventColumns):
        assert got
        assert all((f.field and f.reason) or f.field == "" for f in got)


def test_plain_events_envelopes_and_lists_may_be_mixed():
    text = '{"k":"a","v":1} {"ts":5,"data":["b",null]}\n{"data":{"v":2.5,"k":null}}'
    got = read_json(text, Framing.LINES, SCHEMA)
    assert got == EventColumns([None, 5, None], [["a", "b", None], [1.0, None, 2.5]])


def test_the_list_of_faults_stops_at_its_limit():
    got = read_json(json.dumps([{"k": 1, "v": 1}] * 9), Framing.JSON, SCHEMA, problems_max=4)
    assert [f.index for f in got] == [0, 1, 2, 3]


def test_names_that_the_sender_chose_are_cut_and_printable():
    got = read_json(json.dumps({"k": "a", "v": 1, "\ud800" + "x" * 5000: 1}), Framing.JSON, SCHEMA)
    assert [len(f.field) <= NAME_CHARS_MAX + 5 for f in got] == [True]
    assert got[0].field.startswith("\\ud800x")


def test_a_syntax_error_has_its_place():
    got = read_json('{"k": "a",\n "v": }', Framing.JSON, SCHEMA)
    assert got == [Fault(-1, "body", "not JSON: expecting value at line 2, column 7")]
