import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import lists


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (lists.create(), []),
        (lists.create(None), []),
        (lists.create(1, None), [1, None]),
        (lists.add([1], 2), [1, 2]),
        (lists.add([1], 2, 0), [2, 1]),
        (lists.add_all([1], [1, 2]), [1, 1, 2]),
        (lists.add_all([1], [1, 2], True), [1, 2]),
        (lists.clear([1]), []),
        (lists.clone([1]), [1]),
        (lists.contains([1], True), False),
        (lists.contains_all([1, 2], [2]), True),
        (lists.contains_any([1, 2], [3]), False),
        (lists.get([1], 5), None),
        (lists.index_of([1, 2, 1], 1), 0),
        (lists.last_index_of([1, 2, 1], 1), 2),
        (lists.is_empty([]), True),
        (lists.is_list({}), False),
        (lists.remove([1, 2, 1], 1), [2, 1]),
        (lists.remove_all([1, 2, 1], [1]), [2]),
        (lists.retain_all([1, 2, 1], [1]), [1, 1]),
        (lists.remove_by_index([1, 2], 0), [2]),
        (lists.set_value([1, 2], 0, 5), [5, 2]),
        (lists.size([1]), 1),
        (lists.sort([1, 2, 0]), [0, 2, 1]),
        (lists.sort([1, 2, 0], "asc"), [0, 1, 2]),
        (lists.sort(["b", "A"], "desc"), ["b", "A"]),
    ],
)
def test_lists(found, value):
    assert found == value


@pytest.mark.parametrize(
    "call",
    [
        lambda: lists.size(None),
        lambda: lists.add([1], 2, 9),
        lambda: lists.get([1], None),
        lambda: lists.remove_by_index([1], 1),
        lambda: lists.sort([1, None], "asc"),
        lambda: lists.size([0] * (lists.LIST_ITEMS_MAX + 1)),
    ],
)
def test_what_the_original_throws_on_drops_the_event(call):
    with pytest.raises(BadEvent):
        call()


def test_no_list_is_changed():
    held = [2, 1]
    lists.add(held, 3)
    lists.sort(held, "asc")
    assert held == [2, 1]
