from tests.support.kernel_runs import engine, feed

from edgewise.lang.compiler import compile_query

HEAD = (
    "define stream A (k string, v int); define table T (k string, v int); "
    "define window W (k string, v int) length(2); "
)
FILL = "from A insert into T; from A insert into W;"
EVENTS = [("A", 1, "x", 1), ("A", 2, "y", 5), ("A", 3, "x", 7)]


def asked(*texts):
    running = engine(FILL, HEAD)
    feed(running, EVENTS)
    answer = []
    for text in texts:
        answer = running.query(compile_query(text, running.app))
    return answer


def test_select_group_and_order():
    text = "from T on v > 0 select k, sum(v) as s group by k order by s desc"
    assert asked(text) == [("x", 8), ("y", 5)]
    assert asked("from T select max(v) as m") == [(7,)]


def test_a_window_shows_what_is_inside():
    assert asked("from W select k, v") == [("y", 5), ("x", 7)]


def test_changes():
    show = "from T select k, v"
    assert asked("delete T on T.k == 'x'", show) == [("y", 5)]
    assert asked("update T set T.v = 0 on T.k == 'x'", show) == [("x", 0), ("y", 5), ("x", 0)]
    assert asked("select 'z' as k, 3 as v insert into T", show)[-1] == ("z", 3)
    upsert = "select 'q' as k, 3 as v update or insert into T set T.v = v on T.k == k"
    assert asked(upsert, show)[-1] == ("q", 3)
