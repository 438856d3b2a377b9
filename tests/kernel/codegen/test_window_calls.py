import pytest
from tests.support.kernel_runs import data, play

from edgewise.errors import AppError

HEAD = "define stream T (t long, k string); "


def test_external_time_is_driven_by_events_alone():
    query = "from T#window.externalTime(t, 10 milliseconds) select count() as n insert into O;"
    assert data(query, [("T", 1, t, "a") for t in (1, 5, 11, 30)], HEAD) == [
        (1,),
        (2,),
        (2,),
        (1,),
    ]


def test_sort_keeps_the_smallest():
    query = "from T#window.sort(2, t, 'desc') select t insert all events into O;"
    rows = play(query, [("T", 1, t, "a") for t in (1, 5, 3)], HEAD)
    assert [(r[1], r[2]) for r in rows][-2:] == [("+", 3), ("-", 1)]


def test_a_session_leaves_together():
    query = "from T#window.session(10 milliseconds, k) select t insert all events into O;"
    rows = play(query, [("T", 1000, 1, "a"), ("T", 1005, 2, "a"), 1100], HEAD)
    assert rows[2:] == [(1015, "-", 1), (1015, "-", 2)]


def test_delay_lets_the_event_come_later():
    query = "from T#window.delay(50 milliseconds) select t insert into O;"
    assert play(query, [("T", 1000, 1, "a"), 1100], HEAD) == [(1050, "+", 1)]


def test_an_expression_slides():
    query = "from T#window.expression('sum(t) < 10') select t insert all events into O;"
    rows = play(query, [("T", 1, t, "a") for t in (4, 5, 6)], HEAD)
    assert [(r[1], r[2]) for r in rows] == [("+", 4), ("+", 5), ("-", 4), ("-", 5), ("+", 6)]


def test_an_unknown_window_is_refused_with_its_place():
    with pytest.raises(AppError, match="moon"):
        play("from T#window.moon(1) select t insert into O;", [], HEAD)
