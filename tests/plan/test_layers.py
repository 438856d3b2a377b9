from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edgewise.plan.layers import Box, Gaps, build_layers, position_boxes

arrows = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=16)


def placed(pairs):
    boxes = [Box(str(n), width=20 + n, height=10 + 3 * n) for n in range(8)]
    layers = build_layers(boxes, [(str(a), str(b)) for a, b in pairs if a < b])
    position_boxes(layers, 5, 7, Gaps(30, 4))
    return layers


@given(arrows)
def test_every_arrow_points_to_the_right_one_column_at_a_time(pairs):
    for route in placed(pairs).routes:
        for one, other in pairwise(route):
            assert other.rank == one.rank + 1
            assert one.x + one.width < other.x


@given(arrows)
def test_nothing_overlaps_and_all_is_inside(pairs):
    layers = placed(pairs)
    found = list(layers.boxes.values())
    for n, a in enumerate(found):
        assert 5 <= a.x <= a.x + a.width <= layers.right
        assert 7 <= a.y <= a.y + a.height <= layers.bottom
        for b in found[n + 1 :]:
            beside = a.x + a.width <= b.x or b.x + b.width <= a.x
            assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y


def test_arrows_that_need_not_cross_do_not():
    boxes = [Box(name, width=10) for name in "abcdwxyz"]
    layers = build_layers(boxes, [("a", "z"), ("b", "y"), ("c", "x"), ("d", "w")])
    position_boxes(layers, 0, 0, Gaps(10, 10))
    tops = [layers.boxes[name].y for name in "zyxw"]
    assert tops == sorted(tops)


def test_a_ring_ends():
    layers = build_layers([Box("a", 10), Box("b", 10)], [("a", "b"), ("b", "a")])
    position_boxes(layers, 0, 0, Gaps(10, 10))
    assert layers.right > 0
