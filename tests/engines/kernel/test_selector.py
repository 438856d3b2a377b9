from edgewise.engines.kernel.selector import arrange

ROWS = [(0, 1, ("b", 2)), (0, 1, ("a", None)), (0, 1, ("c", 1))]


def data(rows):
    return [row[2][0] for row in rows]


def test_order_by_puts_null_first_and_keeps_ties():
    assert data(arrange(ROWS, ((1, False),), None, None)) == ["a", "c", "b"]
    assert data(arrange(ROWS, ((1, True),), None, None)) == ["b", "c", "a"]


def test_expired_rows_are_sorted_apart_and_never_cut():
    rows = [(1, 1, ("z", 9)), (1, 1, ("y", 3)), *ROWS]
    assert data(arrange(rows, ((0, False),), 3, None)) == ["y", "z", "a"]


def test_offset_comes_before_limit():
    assert data(arrange(ROWS, (), 1, 1)) == ["a"]
