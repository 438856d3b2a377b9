from hypothesis import given
from hypothesis import strategies as st

from edgewise.event import arrow
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
schemas = st.builds(
    lambda name, attrs: Schema(name, tuple(Attribute(n, t) for n, t in attrs)),
    names,
    st.lists(st.tuples(names, st.sampled_from(AttrType)), unique_by=lambda a: a[0], max_size=6),
)


@given(schemas)
def test_a_schema_survives_the_way_through_arrow(schema):
    assert arrow.from_arrow(arrow.to_arrow(schema)) == schema


def test_a_record_batch_holds_system_columns_then_attributes():
    schema = arrow.to_arrow(Schema.of("S", k="string", v="int"))
    batch = arrow.record_batch(schema, [1, 2], [10, 20], [0, 2], [["a", None], [7, None]])
    assert batch.schema.names == ["_ts", "_at", "_kind", "k", "v"]
    assert batch.to_pylist()[0] == {"_ts": 1, "_at": 10, "_kind": 0, "k": "a", "v": 7}


def test_objects_travel_as_text_and_come_back():
    values = [None, 1, "x", [1, {"a": None}], True]
    column = arrow.to_column(values, AttrType.OBJECT)
    assert column.type == "string"
    assert arrow.from_column(column, AttrType.OBJECT) == values


def test_keys_of_a_map_are_stored_as_text():
    values = [{None: 1, True: 2, 5: [{False: 3}]}, {"a": {1.5: None}}]
    column = arrow.to_column(values, AttrType.OBJECT)
    assert arrow.from_column(column, AttrType.OBJECT) == [
        {"null": 1, "true": 2, "5": [{"false": 3}]},
        {"a": {"1.5": None}},
    ]
