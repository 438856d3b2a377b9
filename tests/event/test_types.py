import itertools

from edgewise.event.types import NUMERIC, promote


def test_promotion_takes_the_later_numeric_type_whatever_the_order():
    for left, right in itertools.product(NUMERIC, NUMERIC):
        wider = promote(left, right)
        assert wider is promote(right, left)
        assert NUMERIC.index(wider) == max(NUMERIC.index(left), NUMERIC.index(right))
