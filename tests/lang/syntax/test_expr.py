from edgewise.event.types import AttrType
from edgewise.lang.syntax.expr import Literal


def test_places_do_not_count_in_equality():
    assert Literal(AttrType.INT, 1, (0, 1)) == Literal(AttrType.INT, 1, (5, 6))
