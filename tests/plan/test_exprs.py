from edgewise.event.types import AttrType
from edgewise.plan.exprs import Arith, Compare, Const, Field, walk


def test_walk_gives_parents_before_children_left_to_right():
    a, one = Field(AttrType.INT, "S", "a"), Const(AttrType.INT, 1)
    plus = Arith(AttrType.INT, "+", a, one)
    over = Compare(">", plus, one)
    assert walk(over) == (over, plus, a, one, one)
