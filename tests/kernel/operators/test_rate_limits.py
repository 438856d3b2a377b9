import pytest
from tests.support.kernel_runs import play

EVENTS = [("A", 1000 + t, k, t) for t, k in ((1, "x"), (2, "y"), (3, "x"), (14, "x"))]


@pytest.mark.parametrize(
    ("limit", "group", "expected"),
    [
        ("every 2 events", "", [1, 2, 3, 14]),
        ("first every 2 events", "", [1, 3]),
        ("last every 2 events", "", [2, 14]),
        ("first every 2 events", "group by k", [1, 2, 14]),
        ("last every 4 events", "group by k", [14, 2]),
        ("every 10 milliseconds", "", [1, 2, 3, 14]),
        ("last every 10 milliseconds", "", [3, 14]),
        ("last every 10 milliseconds", "group by k", [3, 2, 14]),
        ("first every 10 milliseconds", "", [1, 14]),
        ("snapshot every 10 milliseconds", "", [3, 14, 14]),
    ],
)
def test_a_limit_lets_through(limit, group, expected):
    query = f"from A select v, k {group} output {limit} insert into O;"
    assert [row[2] for row in play(query, [*EVENTS, 1035])] == expected


def test_ticks_come_on_a_grid_from_the_start():
    query = "from A select v output every 10 milliseconds insert into O;"
    assert [row[0] for row in play(query, [("A", 1003, "x", 1), 1035])] == [1003]
    snapshot = "from A select v output snapshot every 10 milliseconds insert into O;"
    assert [row[0] for row in play(snapshot, [("A", 1003, "x", 1), 1035])] == [1010, 1020, 1030]


def test_a_snapshot_behind_a_window_shows_what_is_inside():
    query = (
        "from A#window.time(15 milliseconds) select k, count() as n group by k "
        "output snapshot every 10 milliseconds insert into O;"
    )
    rows = play(query, [("A", 1001, "x", 1), ("A", 1008, "x", 2), 1040])
    assert [row[2:] for row in rows] == [("x", 2), ("x", 1)]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("k, v group by k", [("x", 1), ("y", 2), ("x", 3), ("y", 2), ("x", 3)]),
        ("k, v, count() as n group by k", [("x", 1, 2), ("y", 2, 1), ("y", 2, 1), ("x", 3, 1)]),
        ("count() as n group by k", [(2,), (1,), (1,), (1,)]),
        ("count() as n", [(3,)]),
    ],
)
def test_a_snapshot_shows_rows_or_the_oldest_of_each_group(select, expected):
    query = (
        f"from A#window.time(18 milliseconds) select {select} "
        "output snapshot every 10 milliseconds insert into O;"
    )
    assert [row[2:] for row in play(query, [*EVENTS[:3], 1019, 1040])] == expected
