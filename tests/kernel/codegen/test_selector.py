from tests.support.kernel_runs import data as play_data

from edgewise.kernel.codegen.selector import arrange

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


def test_a_batch_is_projected_once_per_group_from_its_last_row():
    query = (
        "from A#window.lengthBatch(3) select k, v, count() as n, minForever(v) as m group by k "
        "insert into O;"
    )
    events = [
        ("A", 1, k, v) for k, v in (("x", 1), ("y", 5), ("x", 2), ("y", 9), ("y", 8), ("x", 3))
    ]
    assert play_data(query, events) == [
        ("x", 2, 2, 1), ("y", 5, 1, 5), ("y", 8, 2, 8), ("x", 3, 1, 3),
    ]  # fmt: skip


def test_rows_can_be_ordered_by_what_they_do_not_show():
    events = [("A", 1000, k, v) for k, v in (("b", 1), ("c", 2), ("a", 3), ("b", 4))]
    query = "from A#window.lengthBatch(4) select v {} order by k, v desc limit 3 insert into O;"
    assert play_data(query.format(""), events) == [(3,), (4,), (1,)]
    assert play_data(query.format("group by k").replace("v ", "sum(v) as v ", 1), events) == [
        (3,), (5,), (2,),
    ]  # fmt: skip
