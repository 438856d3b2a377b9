from tests.support.compiled_plans import query, refused

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Field, OutField
from edgewise.plan.nodes import OrderBy


def test_all_attributes_are_selected_without_a_list():
    for text in ("", "select *"):
        items = query(f"from A {text} insert into X;").select.items
        assert [(i.name, i.expr) for i in items] == [
            ("k", Field(AttrType.STRING, "A", "k")),
            ("v", Field(AttrType.INT, "A", "v")),
        ]


def test_order_by_sees_the_output_and_then_the_input():
    order = query(
        "from S select k, v as w order by w desc, l limit 3 insert into X;"
    ).select.order_by
    assert order == (
        OrderBy(OutField(AttrType.INT, "w"), descending=True),
        OrderBy(Field(AttrType.LONG, "S", "l")),
    )


def test_what_is_refused():
    assert refused("from A select k, v as k insert into X;") == ["'k' is selected twice"]
    assert refused("from A select k limit 0 - 1 insert into X;") == ["'limit' must be a constant"]
    assert refused("from A select k limit -1 insert into X;") == [
        "'limit' needs a whole number, 0 or more"
    ]
    assert refused("from A select k having v + 1 insert into X;") == [
        "'having' needs a bool, this is int"
    ]
    join = "from A#window.length(1) join B#window.length(1) select * insert into X;"
    assert refused(join) == ["'k' comes from two inputs"]


def test_every_clause_of_a_selection_is_checked():
    text = "from S select x, k group by y having z > 1 insert into X;"
    assert refused(text) == ["there is no attribute 'x' here"]
    text = "from S select k group by y having z > 1 order by q insert into X;"
    assert len(refused(text)) == 3
