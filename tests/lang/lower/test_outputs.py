import pytest
from tests.support.compiled_plans import query, refused

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Field, OutField
from edgewise.plan.nodes import (
    DeleteFrom,
    EventType,
    InsertInto,
    RateKind,
    RateLimit,
    Return,
    UpdateOrInsert,
    UpdateTable,
)


def test_inserts_and_returns():
    assert query("from A insert all events into B;").output == InsertInto("B", EventType.ALL)
    assert query("from A insert into T;").output == InsertInto("T")
    assert query("from A return expired events;").output == Return(EventType.EXPIRED)


def test_conditions_on_tables_see_columns_and_selected_attributes():
    output = query("from A select k as key delete T on T.k == key;").output
    assert isinstance(output, DeleteFrom)
    assert output.on.left == Field(AttrType.STRING, "T", "k")
    assert output.on.right == OutField(AttrType.STRING, "key")


def test_without_set_every_attribute_of_the_same_name_is_written():
    output = query("from A select k, v update T on T.k == k;").output
    assert isinstance(output, UpdateTable)
    assert [s.column for s in output.assignments] == ["k", "v"]
    output = query("from A update or insert into T set T.v = T.v + v on T.k == k;").output
    assert isinstance(output, UpdateOrInsert)
    assert [s.column for s in output.assignments] == ["v"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from S select k insert into B;",
            "stream 'B' has 2 attributes, this query selects 1"),
        ("from S select k, l insert into B;",
            "'l' is long, but 'v' of stream 'B' is int"),
        ("from A select k update or insert into T on T.k == k;",
            "table 'T' has 2 attributes, this query selects 1"),
        ("from A update T set T.z = v on T.k == k;", "'T' has no column 'z'"),
        ("from A update T set T.v = k on T.k == k;", "column 'v' is int, this is string"),
        ("from A update B on B.k == k;", "'B' is a stream, not a table"),
        ("from A delete T on T.v;", "'on' needs a bool, this is int"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert refused(text) == [message]


def test_rates():
    found = query("from A select k output last every 3 events insert into X;").rate
    assert found == RateLimit(RateKind.LAST, None, 3)
    found = query("from A output snapshot every 1 sec insert into X;").rate
    assert found == RateLimit(RateKind.SNAPSHOT, 1000, None)
