from edgewise.event.schema import Schema
from edgewise.plan.inputs import Window
from edgewise.plan.stores import NamedWindow, Table


def test_a_store_is_named_by_its_schema():
    schema = Schema.of("T", k="string")
    assert Table(schema).name == "T"
    assert NamedWindow(schema, Window("length", ())).name == "T"
