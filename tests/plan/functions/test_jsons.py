import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import jsons

TEXT = '{"a":1,"b":true,"c":[1],"o":{"z":1.5},"s":"5"}'


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (jsons.get_int(TEXT, "$.a"), 1),
        (jsons.get_int(TEXT, "$.s"), 5),
        (jsons.get_int(TEXT, "$.o.z"), None),
        (jsons.get_long(TEXT, "$.c"), 1),
        (jsons.get_float(TEXT, "$.o.z"), 1.5),
        (jsons.get_double(TEXT, "$.b"), None),
        (jsons.get_bool(TEXT, "$.b"), True),
        (jsons.get_bool(TEXT, "$.a"), None),
        (jsons.get_string(TEXT, "$.o"), '{"z":1.5}'),
        (jsons.get_string(TEXT, "$.s"), "5"),
        (jsons.get_string(TEXT, "$.nope"), None),
        (jsons.get_object(TEXT, "$.c"), 1),
        (jsons.get_object({"a": {"b": 1}}, "$.a"), {"b": 1}),
        (jsons.is_exists(TEXT, "$.a"), True),
        (jsons.is_exists("not json", "$.a"), False),
        (jsons.to_object('{"b":1,"a":[1]}'), {"b": 1, "a": [1]}),
        (jsons.to_object('{"a":'), None),
        (jsons.to_string({"a": 1}), '{"a":1}'),
        (jsons.to_string({"a": 1}, True), '"{\\"a\\":1}"'),
        (jsons.to_string(None), "null"),
    ],
)
def test_jsons(found, value):
    assert found == value


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (("$.a", 5), {"a": 5, "l": [1], "o": {"z": 1}}),
        (("$.l", 5), {"a": 1, "l": [1, 5], "o": {"z": 1}}),
        (("$.l", '{"k":1}'), {"a": 1, "l": [1, {"k": 1.0}], "o": {"z": 1}}),
        (("$.o", 5, "key"), {"a": 1, "l": [1], "o": {"z": 1, "key": 5}}),
        (("$.nope", 5), {"a": 1, "l": [1], "o": {"z": 1}}),
        (("$", 5), {"a": 1, "l": [1], "o": {"z": 1}}),
    ],
)
def test_an_element_is_set(args, value):
    assert jsons.set_element('{"a":1,"l":[1],"o":{"z":1}}', *args) == value


def test_an_object_is_not_changed_by_setting_an_element():
    held = {"a": {"b": 1}}
    assert jsons.set_element(held, "$.a.b", 2) == {"a": {"b": 2}}
    assert held == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "call",
    [
        lambda: jsons.get_int("", "$.a"),
        lambda: jsons.get_int("null", "$.a"),
        lambda: jsons.get_int('{"a":', "$.a"),
        lambda: jsons.to_string(None, True),
    ],
)
def test_what_the_original_throws_on_drops_the_event(call):
    with pytest.raises(BadEvent):
        call()
