from tests.support.kernel_runs import data, engine, feed

HEAD = "define stream A (k string, v int); define stream B (k string, v int); "
TABLE = "@PrimaryKey('k') define table T (k string, v int); "
PLAIN = "define table T (k string, v int); "
FILL = "from A insert into T; "
ASK = "from B join T on B.k == T.k select T.k as k, T.v as v insert into O;"


def rows_of(text, events, table=TABLE):
    return data(text, events, HEAD + table)


def test_a_row_with_a_known_key_is_ignored_and_counted():
    running = engine(FILL + ASK, HEAD + TABLE)
    feed(running, [("A", 1, "x", 1), ("A", 2, "x", 2), ("B", 3, "x", 0)])
    assert [e.data for e in running.take() if e.stream == "O"] == [("x", 1)]
    assert running.kernel.stats.faults == {"duplicate key": 1}


def test_update_delete_and_upsert():
    text = (
        "define stream U (k string, v int); define stream D (k string); "
        "define stream W (k string, v int); " + HEAD + TABLE + FILL +
        "from U update T set T.v = v + T.v on T.k == k; from D delete T on T.k == k; "
        "from W update or insert into T on T.k == k; " + ASK
    )  # fmt: skip
    events = [
        ("A", 1, "x", 1), ("U", 2, "x", 5), ("B", 3, "x", 0), ("D", 4, "x"), ("B", 5, "x", 0),
        ("W", 6, "x", 7), ("B", 7, "x", 0), ("W", 8, "x", 8), ("B", 9, "x", 0),
    ]  # fmt: skip
    assert data(text, events, "") == [("x", 6), ("x", 7), ("x", 8)]


def test_in_asks_for_some_row():
    text = FILL + "from B[(T.k == k) in T] select k insert into O;"
    events = [("A", 1, "x", 1), ("B", 2, "x", 0), ("B", 3, "y", 0)]
    assert rows_of(text, events) == [("x",)]
    assert rows_of(text, events, PLAIN) == [("x",)]


def test_an_update_that_would_double_a_key_changes_nothing():
    text = FILL + "from B update T set T.k = 'z' on T.v > 0; from B select 1 as one insert into O;"
    running = engine(text, HEAD + TABLE)
    feed(running, [("A", 1, "x", 1), ("A", 2, "y", 1), ("B", 3, "q", 0)])
    assert running.kernel.stats.faults == {"duplicate key": 1}
