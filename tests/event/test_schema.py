from edgewise.event.schema import Schema
from edgewise.event.types import AttrType


def test_attributes_are_found_by_name():
    schema = Schema.of("S", k="string", v="int")
    assert schema.names == ("k", "v")
    assert schema.index("v") == 1
    assert schema.index("absent") == -1
    assert schema.type_of("v") is AttrType.INT
