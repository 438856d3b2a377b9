from tests.support.compiled_plans import query, refused

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Field, OutField

INT = AttrType.INT


def test_a_name_alone_means_the_one_input_that_has_it():
    found = query(
        "from A#window.length(1) as a join S#window.length(1) as s select p insert into X;"
    )
    assert found.select.items[0].expr == Field(AttrType.DOUBLE, "s", "p")


def test_ambiguous_and_unknown_names():
    join = "from A#window.length(1) join B#window.length(1) select {} insert into X;"
    assert refused(join.format("v")) == ["'v' is ambiguous"]
    assert refused(join.format("A.x as y")) == ["'A' has no attribute 'x'"]
    assert refused(join.format("C.v as y")) == ["'C' is not an input here"]


def test_an_alias_takes_the_place_of_the_name():
    text = (
        "from A#window.length(1) as a join B#window.length(1) as b select A.v as x insert into X;"
    )
    assert refused(text) == ["'A' is not an input here"]


def test_having_sees_the_output_first():
    found = query("from S select k, v + 1 as w having w > 1 insert into X;")
    assert found.select.having.left == OutField(INT, "w")


def test_a_counted_element_is_a_list_unless_an_index_picks_one():
    text = (
        "from e1=A<2:> -> e2=B select e1.v as all, e1[0].v as first, e1[last].v as last, e2.v as v"
    )
    items = query(text + " insert into X;").select.items
    assert [i.expr for i in items] == [
        Field(AttrType.OBJECT, "e1", "v"),
        Field(INT, "e1", "v", 0),
        Field(INT, "e1", "v", -1),
        Field(INT, "e2", "v"),
    ]
    assert refused("from e1=A -> e2=B select e1[2].v as x insert into X;") == [
        "'e1' holds one event, not a list"
    ]
