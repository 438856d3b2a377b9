from tests.support.kernel_runs import data, play, rows

W = "define window W (k string, v int) {} output {} events; from A insert into W; "


def test_a_named_window_is_shared():
    query = W.format("length(1)", "all") + "from W select v insert all events into O;"
    assert [r[1:] for r in play(query, [("A", 1, "x", 1), ("A", 2, "x", 2)])] == [
        ("+", 1), ("-", 1), ("+", 2),
    ]  # fmt: skip


def test_a_named_window_lets_out_what_it_says():
    query = W.format("length(1)", "expired") + "from W select v insert all events into O;"
    assert [r[1:] for r in play(query, [("A", 1, "x", 1), ("A", 2, "x", 2)])] == [("-", 1)]


def test_a_named_window_can_be_joined():
    query = W.format("length(5)", "all") + (
        "from B join W on B.k == W.k select W.v as v insert into O;"
    )
    assert data(query, [("A", 1, "x", 1), ("B", 2, "x", 0), ("B", 3, "y", 0)]) == [(1,)]


def test_a_trigger_ticks_from_the_start():
    from tests.support.kernel_runs import engine, feed

    running = engine("define trigger T at every 10 milliseconds; "
                     "from T select triggered_time as t insert into O;")  # fmt: skip
    feed(running, [1025])
    assert rows(running) == [(1010, "+", 1010), (1020, "+", 1020)]
