import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.plan.functions import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_json_is_read_as_python_reads_it(value):
    text = json.dumps(value)
    assert json_text.parse(text) == value
    assert json_text.parse_strict(text) == value


@given(VALUES)
def test_what_is_written_is_read_again(value):
    assert json.loads(json_text.write(value)) == value
    assert json.loads(json_text.write_compact(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a':1,}", {"a": 1}), ("{a:b}", {"a": "b"}), ("bad {", "bad {"), ("", ""),
        ("[1,,2]", [1, 2]),
        ('{"a":1} x', {"a": 1}), ("1.5", 1.5), ('"\\u0041\\n"', "A\n"),
    ],
)  # fmt: skip
def test_reading_is_lenient(text, value):
    assert json_text.parse(text) == value


@pytest.mark.parametrize("text", ['{"a":', '{"a"', "[1", '"x', '{"a" 1}', "[" * 300])
def test_what_cannot_be_read_drops_the_event(text):
    with pytest.raises(BadEvent):
        json_text.parse(text)


def test_html_is_escaped_and_numbers_are_javas():
    assert json_text.write({"<": 1e10}) == '{"\\u003c":1.0E10}'
    assert json_text.write_compact([1.0, 2.5, 1e10]) == "[1,2.5,1.0E10]"
    for write in (json_text.write, json_text.write_compact):
        with pytest.raises(BadEvent):
            write(float("nan"))
