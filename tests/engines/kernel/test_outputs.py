from tests.engines.kernel.apps import engine, feed


def test_return_gives_rows_to_who_listens_to_the_query():
    running = engine("@info(name='q') from A select v return;")
    feed(running, [("A", 1, "x", 1)])
    assert [(e.stream, e.data) for e in running.take()] == [("@q", (1,))]


def test_rows_for_a_table_leave_no_event():
    running = engine("define table T (k string, v int); @info(name='q') from A insert into T;")
    feed(running, [("A", 1, "x", 1)])
    assert [e.stream for e in running.take()] == ["@q"]
