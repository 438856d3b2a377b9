import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import maps


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (maps.create("a", 1), {"a": 1}),
        (maps.clear({"a": 1}), {}),
        (maps.clone({"a": 1}), {"a": 1}),
        (maps.combine_by_key({"a": 1}, {"b": 2}), {"a": [1, None], "b": [None, 2]}),
        (maps.contains_key({"a": 1}, "a"), True),
        (maps.contains_value({"a": 1}, True), False),
        (maps.create_from_json('{"a":{"b":1}}'), {"a": {"b": 1}}),
        (maps.get({"a": 1}, "b", 5), 5),
        (maps.is_empty({}), True),
        (maps.is_map([]), False),
        (maps.keys(maps.create("b", 1, "a", 2)), ["a", "b"]),
        (maps.values(maps.create("b", 1, "a", 2)), [2, 1]),
        (maps.put({"a": 1}, "a", 2), {"a": 2}),
        (maps.put_all({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        (maps.put_if_absent({"a": None}, "a", 2), {"a": 2}),
        (maps.put_if_absent({"a": 1}, "a", 2), {"a": 1}),
        (maps.remove({"a": 1, "b": 2}, "a"), {"b": 2}),
        (maps.replace({"a": 1}, "b", 2), {"a": 1}),
        (maps.replace_all({"a": 1}, {"a": 2, "b": 3}), {"a": 2}),
        (maps.size({"a": 1}), 1),
        (maps.to_json({"a": 1.0, "b": "</x"}), '{"a":1,"b":"<\\/x"}'),
        (maps.to_xml({"a": {"b": 1.0}}, "r"), "<r><a><b>1.0</b></a></r>"),
        (maps.create_from_xml("<r><a>1</a><b>x</b></r>"), {"a": 1, "b": "x"}),
        (maps.create_from_xml("<r><a>1.5</a><b>true</b><c/></r>"), {"a": 1.5, "b": True, "c": ""}),
        (maps.create_from_xml("<r xmlns='u'><a><b>1e3</b></a></r>"), {"{u}a": {"{u}b": 1000}}),
    ],
)
def test_maps(found, value):
    assert found == value


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.size(None),
        lambda: maps.create_from_json("bad"),
        lambda: maps.create_from_json(None),
        lambda: maps.create_from_xml("<r>"),
        lambda: maps.create_from_xml(None),
        lambda: maps.create_from_xml("<a>" * 200 + "</a>" * 200),
        lambda: maps.create_from_xml('<!DOCTYPE r [<!ENTITY x "y">]><r>&x;</r>'),
        lambda: maps.to_xml({"a": None}),
    ],
)
def test_what_the_original_throws_on_drops_the_event(call):
    with pytest.raises(BadEvent):
        call()


def test_no_map_is_changed():
    held = {"a": 1}
    maps.put(held, "b", 2)
    maps.remove(held, "a")
    assert held == {"a": 1}
