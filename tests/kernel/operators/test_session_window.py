from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import engine, feed, play, rows

V = "from A#window.session({}, k{}) select v insert all events into O;"


def left(query, events):
    return [row[2] for row in play(query, events) if row[1] == "-"]


@given(st.lists(st.tuples(st.integers(0, 25), st.sampled_from("xy")), max_size=20))
def test_events_in_order_leave_once_their_key_was_quiet(steps):
    ts, events, sessions = 1000, [], {}
    for i, (gap, key) in enumerate(steps):
        ts += gap
        events.append(("A", ts, key, i))
        of_key = sessions.setdefault(key, [])
        if of_key and ts - of_key[-1][0] < 10:
            of_key[-1][0] = ts
            of_key[-1][1].append(i)
        else:
            of_key.append([ts, [i]])
    expected = sorted((end + 10, v) for of in sessions.values() for end, vs in of for v in vs)
    found = [(row[0], row[2]) for row in play(V.format(10, ""), [*events, ts + 50])
             if row[1] == "-"]  # fmt: skip
    assert sorted(found) == expected


def test_late_events_go_in_front_of_an_event_each():
    events = [("A", 1100, "x", 1), ("A", 1101, "x", 2), ("A", 1095, "x", 3), ("A", 1094, "x", 4)]
    assert left(V.format(10, ""), [*events, 1200]) == [3, 1, 4, 2]


def test_what_is_too_late_for_any_session_is_dropped():
    found = play(V.format(10, ""), [("A", 1100, "x", 1), ("A", 1080, "x", 2), 1200])
    assert [row[2] for row in found] == [1, 1]


def test_a_late_event_between_joins_the_ended_session_to_the_open_one():
    events = [("A", 1100, "x", 1), ("A", 1112, "x", 2), ("A", 1105, "x", 3)]
    apart = [row[:3] for row in play(V.format(10, ", 8"), [*events[:2], 1200]) if row[1] == "-"]
    assert apart == [(1118, "-", 1), (1130, "-", 2)]
    joined = [row[:3] for row in play(V.format(10, ", 8"), [*events, 1200]) if row[1] == "-"]
    assert [row[2] for row in joined] == [3, 1, 2]
    assert len({row[0] for row in joined}) == 1


def test_the_end_of_a_session_waits_behind_the_ends_that_were_set_before():
    late = [("A", 3020, "x", 3), ("A", 2920, "x", 4), ("A", 520, "x", 5), ("A", 620, "x", 6)]
    events = [("A", 1000, "x", 1), ("A", 1000, "x", 2), *late, 4020]
    found = [row for row in play(V.format(2000, ", 1000"), events) if row[1] == "-"]
    assert [row[2] for row in found] == [4, 1, 2, 5, 3, 6]
    assert {row[0] for row in found} == {4000}


def test_sessions_that_end_together_leave_in_one_chunk():
    query = V.format(10, "").replace("select v", "select count() as n")
    assert left(query, [("A", 1100, "x", 1), ("A", 1100, "y", 2), 1200]) == [0]


def test_a_join_meets_a_session_when_it_leaves():
    running = engine(
        "from A#window.session(10, k) as a join B#window.length(2) as b on a.k == b.k "
        "select a.v as a, b.v as b insert all events into O;"
    )
    feed(running, [("A", 1001, "x", 1), ("B", 1002, "x", 2)])
    assert rows(running) == []
    feed(running, [1100])
    assert [row[1:] for row in rows(running)] == [("-", 1, 2)]


def test_an_event_without_a_key_belongs_to_no_session():
    query = "from A#window.session(10, k) select v insert all events into O;"
    found = play(query, [("A", 1100, None, 1), ("A", 1101, "x", 2), 1200])
    assert [row[2] for row in found] == [2, 2]


def test_sessions_that_waited_behind_one_timer_leave_in_one_chunk():
    query = V.format(200, ", 100").replace("select v", "select count() as n")
    steps = ((131, "z"), (247, "y"), (497, "x"), (544, "z"), (655, "y"), (769, "y"))
    found = play(query, [*(("A", 1000 + at, key, 1) for at, key in steps), 1900])
    assert [row[0] for row in found if row[1] == "-"] == [1447, 1547, 1855]
