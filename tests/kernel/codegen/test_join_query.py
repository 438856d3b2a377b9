import pytest
from tests.support.kernel_runs import play

A, B = ("A", 1001, "x", 1), ("B", 1002, "x", 2)
JOIN = "from A#window.{} as a {} join B#window.{} as b on a.k == b.k select a.v as a, b.v as b "


def test_an_event_probes_and_so_does_what_expires():
    query = JOIN.format("length(1)", "", "length(1)") + "insert all events into O;"
    rows = play(query, [A, B, ("A", 1003, "x", 3)])
    assert [row[1:] for row in rows] == [("+", 1, 2), ("-", 1, 2), ("+", 3, 2)]


def test_an_outer_join_shows_null_where_nothing_fits():
    for kind, expected in (("left outer", [(1, None)]), ("full outer", [(1, None), (None, 9)])):
        query = JOIN.format("length(5)", kind, "length(5)") + "insert into O;"
        assert [row[2:] for row in play(query, [A, ("B", 1002, "y", 9)])] == expected


def test_a_side_without_a_window_is_never_found():
    query = "from A join B#window.length(5) on A.k == B.k select A.v as a, B.v as b insert into O;"
    assert [row[2:] for row in play(query, [A, B, A])] == [(1, 2)]


def test_a_self_join_meets_itself_once():
    query = (
        "from A#window.length(5) as a join A#window.length(5) as b select a.v as a insert into O;"
    )
    assert [row[2:] for row in play(query, [A])] == [(1,)]


def test_one_side_alone_may_trigger():
    query = (
        "from A#window.length(5) as a unidirectional join B#window.length(5) as b on a.k == b.k "
        "select a.v as a insert into O;"
    )
    assert play(query, [A, B]) == []
    assert [row[2:] for row in play(query, [B, A])] == [(1,)]


@pytest.mark.parametrize("streaming", ["", ", true"])
@pytest.mark.parametrize(("events", "kept"), [("", [1, 2, 3, 4]), ("all events ", [3, 4])])
def test_a_batch_is_forgotten_only_where_expired_rows_are_wanted(events, kept, streaming):
    query = (
        f"from A#window.lengthBatch(2{streaming}) as a join B#window.length(5) as b "
        f"select a.v as a, b.v as b insert {events}into O;"
    )
    sent = [("A", 1000 + v, "x", v) for v in (1, 2, 3, 4)]
    found = play(query, [*sent, ("B", 1010, "x", 9)])
    assert [row[2] for row in found] == kept


def test_what_one_event_finds_is_a_chunk_of_its_own():
    query = (
        "from A#window.time(50) as a unidirectional join B#window.length(2) as b "
        "select count() as n insert expired events into O;"
    )
    events = [("B", 1000, "x", 1), ("A", 1010, "x", 1), ("A", 1010, "x", 2), 1100]
    assert [row[2] for row in play(query, events)] == [1, 0]


def test_a_group_stays_while_any_of_its_sums_holds_something():
    query = (
        "from A#window.time(50) as a left outer join B#window.time(50) as b "
        "select a.k as k, count() as n, sum(b.v) as s group by a.k insert all events into O;"
    )
    events = [("B", 1013, "y", None), ("A", 1016, "y", 1), ("B", 1125, "y", -3),
              ("A", 1145, "y", 6), 1300]  # fmt: skip
    gone = [row[2:] for row in play(query, events) if row[1] == "-"]
    assert gone == [("y", 0, None), ("y", -1, None), ("y", -1, None), ("y", -2, None)]


def test_what_was_just_added_is_shown_even_where_more_has_left_than_came():
    query = (
        "from A#window.length(1) as a unidirectional join B#window.length(2) as b "
        "select sum(b.v) as s insert all events into O;"
    )
    events = [("A", 1000, "x", 1), ("B", 1001, "x", 5), ("A", 1002, "x", 2)]
    assert [row[1:] for row in play(query, events)] == [("-", -5), ("+", 0)]


def test_a_batch_of_an_array_is_not_found_where_nothing_that_leaves_is_wanted():
    query = "from A as a join B#window.batch() as b on a.k == b.k select a.v as a insert {}into O;"
    events = [("B", 1000, "x", 5), ("A", 1001, "x", 1)]
    assert play(query.format(""), events) == []
    assert [row[1:] for row in play(query.format("all events "), events)] == [("+", 1), ("-", 1)]
